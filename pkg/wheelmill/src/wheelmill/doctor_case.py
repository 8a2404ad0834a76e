"""What a check is given: the facts, and what several checks work out of them. No I/O."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from wheelmill import arch, hardware
from wheelmill.doctor_findings import installers
from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelmill.doctor_facts import Machine, Nvcc, Package, Project
    from wheelmill.facts import Cuda, Facts
    from wheelmill.which_env import Torch

ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"
COMMON = "7.5 8.0 8.6 9.0 10.0 12.0+PTX"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    machine: Machine
    known: Facts
    project: Project | None = None
    package: Package | None = None

    @property
    def torch(self) -> Torch | None:
        """The torch that is there and whose version is known."""
        torch = self.machine.env.torch
        return torch if torch is not None and torch.version is not None else None

    @property
    def wants_cuda(self) -> bool:
        """Whether CUDA code is to be built or run: by the project, else unless the torch here has no CUDA."""
        if self.project is not None:
            return self.project.cuda
        return self.torch is None or self.torch.cuda is None or self.torch.major is not None

    @property
    def python(self) -> str:
        """The interpreter, as a command."""
        return shlex.quote(self.machine.python.executable)

    @property
    def pip(self) -> str:
        """The command that installs distributions for the interpreter: its own pip, else uv."""
        mine = self.machine.python
        if mine.managed:  # pip refuses to change a Python that the system's installer owns (PEP 668)
            return f"{self.python} -m venv .venv && .venv/bin/python -m pip install"
        return f"{self.python} -m pip install" if mine.tools.get("pip") else f"uv pip install --python {self.python}"

    @property
    def ninja(self) -> bool:
        """Whether there is a ninja that works."""
        return self.machine.ninja is not None and self.machine.ninja.answer == "works"

    @property
    def words(self) -> dict[str, str]:
        return {"python": self.python, "pip": self.pip}

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The compute capabilities of the GPUs here, each once."""
        found = {gpu.capability for gpu in self.machine.env.gpus or () if gpu.capability}
        return tuple(sorted(found, key=version_key))

    @property
    def best_list(self) -> str:
        """A TORCH_CUDA_ARCH_LIST for the GPUs here; without one for those that torch, or most users, have."""
        if self.capabilities:
            return " ".join(self.capabilities)
        row = self.known.torch.get(self.torch.minor) if self.torch else None
        known = row.sm.get(self.torch.tag or "", ()) if row and self.torch else ()
        words = arch.all_of(known) if known else tuple(COMMON.split())
        toolkit = self.toolkit
        if toolkit is not None:
            words = tuple(word for word in words if word.removesuffix("+PTX") in toolkit.names) or words
        return " ".join(words)

    @property
    def toolkit(self) -> Cuda | None:
        """The table's row of the toolkit that a build takes."""
        chosen = self.machine.toolkits.chosen
        return self.row(chosen.release) if chosen and chosen.release else None

    def row(self, release: str) -> Cuda | None:
        return self.known.cuda.get("cu" + release.replace(".", ""))

    def install(self, what: str) -> str:
        """The command that installs a compiler or Python's headers here."""
        python = self.machine.env.python
        minor = python.minor if python else "3"
        row = installers().get(self.machine.system.installer or "")
        if row is None:
            return {"compiler": "install g++ with the system's package manager"}.get(what, "install Python's headers")
        return row[what].format(minor=minor, digits=minor.replace(".", ""))

    def use(self, wanted: str | None, *, but: Nvcc | None = None, exact: bool = False) -> str:
        """The command that has a build take a toolkit of CUDA `wanted` (None: any that works), or gets one.

        One of the same major serves where it need not be `exact`.
        """
        usable = [one for one in self.machine.toolkits.nvccs if one.release and one.headers and one != but]
        major = wanted.partition(".")[0] if wanted else None
        same = [one for one in usable if wanted is None or one.release == wanted]
        near = [one for one in usable if one.release and one.release.partition(".")[0] == major]
        for one in same or (() if exact else near):
            return exported(one.home)
        newest = list(self.known.torch.values())[-1]
        release = wanted or self.known.cuda[newest.pypi or newest.cuda[-1]].minor
        own = self.row(release)
        fetched = "; or `wheelmill build`, which fetches a compiler itself" if own and own.pypi else ""
        image = "; in this container's place one of an nvidia/cuda devel image" if self.machine.system.container else ""
        home = exported(f"/usr/local/cuda-{release}")
        return f"install CUDA {release} ({ARCHIVE}), then {home}{image}{fetched}"

    def index(self, cuda: str) -> str:
        """The address of torch's own index for a CUDA tag."""
        return self.known.index.format(cuda=cuda)

    def torch_for(self, cuda: str | None) -> str:
        """The command that installs a torch of that CUDA tag, or of PyPI's."""
        where = f" --index-url {self.index(cuda)}" if cuda else ""
        return f"{self.pip} --force-reinstall torch{where}"

    def this_torch(self, options: str = "") -> str:
        """The command that installs the torch that is there once more, and what it requires."""
        torch, files = self.torch, self.machine.torch
        if torch is None:
            return f"{self.pip} {options}torch"
        if torch.origin == "conda":
            return "conda install --force-reinstall pytorch"
        if torch.origin == "other":
            return f"build torch {torch.version} again, or take PyTorch's own: {self.pip} --force-reinstall torch"
        variant = torch.parsed.local
        where = ""
        if variant and not torch.final:
            where = f" --pre --index-url {self.index('nightly/' + variant)}"
        elif variant and not (files and files.source == "PyPI"):
            where = f" --index-url {self.index(variant)}"
        return f"{self.pip} {options}'torch=={public(torch)}'{where}"


def exported(home: str) -> str:
    """The command that has builds take a toolkit."""
    return f"export CUDA_HOME={shlex.quote(home)} PATH={shlex.quote(home + '/bin')}:$PATH"


def oldest_and_newest(row: Cuda) -> tuple[str, str]:
    """The lowest and the highest target that a toolkit compiles for."""
    plain = [one for one in row.sm if not one.suffix]
    return plain[0].name, plain[-1].name


def runs(capability: str, sass: Iterable[str], ptx: Iterable[str]) -> bool:
    """Whether code runs on a GPU, PTX's age left aside."""
    return hardware.runs(capability, sass) or hardware.compiles(capability, ptx)


def gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"


def older(have: str, wanted: str) -> bool:
    """Whether a dotted version is older than another."""
    return _parts(have) < _parts(wanted)


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def pin(case: Case) -> str:
    """`==2.11.*` of the torch that is there, else of the newest."""
    return f"=={case.torch.minor if case.torch else list(case.known.torch)[-1]}.*"


def public(torch: Torch) -> str:
    """A torch's version without its variant."""
    return Version(torch.version or "0").public
