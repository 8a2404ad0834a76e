"""Records of two projects as an index would hold them: three releases, 60 wheels and more."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from wheelmill.records import Audit, Build, Cell, Finding, Gates, Library, Platform, Record, Time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
CARD = "NVIDIA H200"
# operator, milliseconds on an H200, times the reference's
TIMES = (
    ("affine", 0.0676, 0.26),
    ("clip_add", 0.0677, 0.21),
    ("clip_add_backward", 0.0976, 0.33),
    ("scale_clamp_add", 0.0676, 0.18),
    ("scale_clamp_add_backward", 0.0974, 0.30),
    ("vector_add", 0.0973, 0.99),
)
SASS = {
    "cu118": ("50", "60", "70", "80", "90"),
    "cu121": ("50", "60", "70", "80", "90"),
    "cu126": ("50", "60", "70", "80", "90"),
    "cu128": ("75", "80", "90", "100", "120"),
    "cu130": ("75", "80", "90", "100", "120"),
}
ISA = {"cu118": "7.8", "cu121": "8.1", "cu126": "8.5", "cu128": "8.7", "cu130": "9.0"}
TOOLKIT = {"cu118": "11.8", "cu121": "12.1", "cu126": "12.6", "cu128": "12.8", "cu130": "13.0"}
# CUDA → torch minors, one wheel each (built per torch release).
PER_TORCH = {
    "cu118": ("2.4", "2.5", "2.6"),
    "cu121": ("2.4", "2.5"),
    "cu126": ("2.6", "2.7", "2.8", "2.9"),
    "cpu": ("2.4", "2.5", "2.6", "2.7", "2.8", "2.9"),
}
# CUDA → torch minors, one wheel for all (stable ABI).
STABLE = {
    "cu126": ("2.10", "2.11", "2.12", "2.13"),
    "cu128": ("2.10", "2.11"),
    "cu130": ("2.10", "2.11", "2.12", "2.13", "2.14"),
    "cpu": ("2.10", "2.11", "2.12", "2.13", "2.14"),
}
SLOW = Finding(
    rule="relro-missing",
    severity="warning",
    library="fusedops/libfusedops.so",
    message="fusedops/libfusedops.so has no full RELRO: its tables of functions can be overwritten while it runs",
    remedy="link with -Wl,-z,relro,-z,now",
)
BOM = Finding(
    rule="sbom-missing", severity="info", message="it carries no SBOM", remedy="build it with wheelmill build"
)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def library(cuda: str, abi: str, torch: str, *, sass: Sequence[str] | None = None) -> Library:
    gpu = cuda != "cpu"
    return Library(
        sass=tuple(SASS[cuda] if sass is None else sass) if gpu else (),
        ptx=(SASS[cuda][-1],) if gpu else (),
        ptx_isa=ISA[cuda] if gpu else None,
        needed=("libc10.so", "libtorch_cpu.so", *((f"libcudart.so.{TOOLKIT[cuda][:2]}",) if gpu else ()), "libc.so.6"),
        glibc="2.17",
        glibcxx="3.4.21",
        torch_abi="stable" if abi == "stable" else "unstable",
        min_torch="2.10" if abi == "stable" else None,
        cxx11_abi=None if abi == "stable" else torch not in ("2.4", "2.5"),
        torch_symbols=("aoti_torch_empty_strided", "torch_call_dispatcher")
        if abi == "stable"
        else (
            "_ZN2at4_ops5empty4callE",
            "_ZN3c106detail14torchCheckFailEPKcS2_jS2_",
            "_ZN3c104cuda20CUDACachingAllocator3getEv",
        ),
    )


def cells(cuda: str, torches: Sequence[str], pythons: Sequence[str], **broken: str) -> Iterator[Cell]:
    for torch in torches:
        for python in pythons:
            if torch == "2.14" and python == "3.10":
                why = "torch 2.14 has no wheel for Python 3.10 here"
                yield Cell(cuda=cuda, torch=torch, python=python, result="not-available", error=why)
            elif error := broken.get(f"py{python.replace('.', '')}"):
                yield Cell(cuda=cuda, torch=torch, python=python, result="fail", error=error)
            else:
                yield Cell(cuda=cuda, torch=torch, python=python, result="pass")


def record(
    project: str,
    public: str,
    cuda: str,
    torches: Sequence[str],
    *,
    abi: str = "stable",
    tags: str = "py3-none",
    pythons: Sequence[str] = PYTHONS,
    operators: Sequence[tuple[str, float, float]] = TIMES,
    faster: float = 1.0,
    broken: dict[str, str] | None = None,
    **more: Any,
) -> Record:
    local = cuda if abi == "stable" else f"{cuda}.torch{torches[0]}"
    file = f"{project}-{public}+{local}-{tags}-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl"
    gpu = cuda in ("cu130", "cu128")
    times = tuple(
        Time(operator=name, sample="large", card=CARD, milliseconds=ms * faster, of_reference=ratio * faster)
        for name, ms, ratio in (operators if gpu else ())
    )
    tried = (*cells(cuda, torches, pythons, **(broken or {})), *outside(cuda, torches, pythons))
    verdicts = {"ops": "pass", "gradcheck": "pass", "robust": "pass"}
    verdicts |= {"sanitize": "pass", "bench": "pass"} if gpu else {}
    verdicts |= {"sanitize": "incomplete"} if cuda in ("cu118", "cu121") else {}
    fields: dict[str, Any] = {
        "file": file,
        "sha256": sha(file),
        "size": 400_000 if cuda == "cpu" else 1_240_000 + 10_000 * len(torches),
        "project": project,
        "release": f"{public}+{local}",
        "requires_python": ">=3.10",
        "requires": ("torch>=2.10" if abi == "stable" else f"torch=={torches[0]}.*",),
        "environments": tuple(f"{cuda}-torch{torch}" for torch in torches),
        "build": Build(
            wheel=f"{cuda}-{'stable' if abi == 'stable' else 'torch'}{torches[0]}",
            engine="0.9.0",
            executor="docker",
            built="2026-11-28T09:14:00Z",
            cuda=cuda,
            toolkit=TOOLKIT.get(cuda),
            torch=f"{torches[0]}.0",
            compiler="GCC 12.2.1",
            sources=sha(project + public),
            key=sha(file + "key")[:24],
            sm=tuple(f"{one[:-1]}.{one[-1]}" for one in SASS.get(cuda, ())),
        ),
        "audit": Audit(
            verdict="pass",
            platform=Platform(claimed="manylinux_2_24_x86_64", needs="manylinux_2_24_x86_64"),
            libraries={f"{project}/lib{project}.so": library(cuda, abi, torches[0])},
            findings=(BOM,),
        ),
        "cover": tried,
        "gates": Gates(
            verdicts=verdicts,
            operators=tuple(name for name, _, _ in operators),
            cards=(CARD,) if gpu else (),
            torches=(f"{torches[-1]}.0",),
            times=times,
        ),
    }
    return Record(**(fields | more))


def outside(cuda: str, torches: Sequence[str], pythons: Sequence[str]) -> Iterator[Cell]:
    """A neighbour that the wheel does not promise, and where it fails."""
    if cuda == "cu130" and "2.10" in torches:
        error = "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory"
        yield Cell(
            cuda="cu128", torch="2.10", python=pythons[-1], unclaimed="it is for cu130", result="fail", error=error
        )


def fusedops(public: str, *, newest: bool) -> list[Record]:
    """One release: a stable wheel a CUDA, and a wheel a torch below 2.10."""
    faster = 1.0 if newest else 1.3
    found = []
    for cuda, torches in STABLE.items():
        served = torches if newest else torches[:-1]
        found.append(record("fusedops", public, cuda, served, faster=faster))
    for cuda, torches in PER_TORCH.items():
        for torch in torches if newest or cuda != "cu118" else torches[:2]:
            more: dict[str, Any] = {}
            if cuda == "cu118" and newest:
                more["gates"] = None
            if (cuda, torch) == ("cu121", "2.5"):
                libraries = {"fusedops/libfusedops.so": library(cuda, "release", torch, sass=("70", "80"))}
                more["audit"] = Audit(verdict="pass", libraries=libraries, findings=(SLOW, BOM))
            if (cuda, torch) == ("cpu", "2.4") and newest:
                more["yanked"] = "its clip_add wrote past the end of an empty tensor"
            if (cuda, torch) == ("cu126", "2.6"):
                more["broken"] = {"py313": "ImportError: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE"}
            found.append(record("fusedops", public, cuda, [torch], abi="release", faster=faster, **more))
    return found


def rotary(public: str = "0.3.1") -> list[Record]:
    """A project that builds a wheel for each torch, CUDA and Python: 60 of them."""
    operators = (("rotate", 0.0412, 0.38), ("rotate_backward", 0.0525, 0.44))
    found = []
    for cuda, torches in (
        ("cu126", ("2.9", "2.10", "2.11")),
        ("cu128", ("2.9", "2.10", "2.11")),
        ("cu130", ("2.9", "2.10", "2.11")),
    ):
        for torch in torches:
            found += [one_python("rotary", public, cuda, torch, python, operators) for python in PYTHONS]
    for torch in ("2.6", "2.7", "2.8", "2.9", "2.10", "2.11"):
        found += [one_python("rotary", public, "cpu", torch, python, operators) for python in PYTHONS]
    return found


def one_python(project: str, public: str, cuda: str, torch: str, python: str, operators: Any) -> Record:
    tag = "cp" + python.replace(".", "")
    more: dict[str, Any] = {}
    if cuda == "cu130" and torch == "2.9":  # never tried: nothing says that it works
        more = {"cover": None, "gates": None, "environments": ()}
    return record(
        project,
        public,
        cuda,
        [torch],
        abi="release",
        tags=f"{tag}-{tag}",
        pythons=[python],
        operators=operators,
        **more,
    )


def releases() -> dict[tuple[str, str], list[Record]]:
    newest = fusedops("1.1.0", newest=True)
    for place, who in (
        (0, "github:demo/fusedops@release.yml"),
        (2, "SHA256:mcHqLJDcEKrQAVyxWOhnQXcrp9c6kW0xSx1Zx2n0q1c"),
    ):
        newest[place] = newest[place].model_copy(update={"vouched": (who,)})
    return {
        ("fusedops", "1.1.0"): newest,
        ("fusedops", "1.0.0"): fusedops("1.0.0", newest=False),
        ("rotary", "0.3.1"): rotary(),
    }


KNOWN = {"fusedops": ["1.1.0", "1.0.0"], "rotary": ["0.3.1"]}
