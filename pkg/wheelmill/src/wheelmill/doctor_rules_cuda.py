"""Checks of the CUDA toolkit, and of the targets that a build is told. Facts → findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import arch
from wheelmill.doctor_case import exported, oldest_and_newest, runs
from wheelmill.doctor_extension import Tables
from wheelmill.doctor_findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Nvcc, Project, Toolkits
    from wheelmill.findings import Severity


HEADERLESS = (
    "C++ files stop with 'fatal error: cuda_runtime.h: No such file or directory', or linking with "
    "'cannot find -lcudart'"
)


def toolkit(case: Case) -> Iterator[Finding]:
    kits = case.machine.toolkits
    torch = case.torch
    wanted = torch.cuda if torch is not None and torch.major is not None else None
    if kits.chosen is None:
        yield from _none(case, kits, wanted)
        return
    chosen = kits.chosen
    if chosen.release is None:
        why = "did not answer within seconds" if chosen.answer == "hangs" else "does not say its release"
        yield found("nvcc-broken", nvcc=chosen.path, why=why, command=case.use(wanted, but=chosen))
        return
    yield from _complete(case, kits, chosen, wanted)
    yield from _against_torch(case, chosen)
    yield from _others(case, kits, chosen, wanted)
    row = case.toolkit
    for capability in case.capabilities if row is not None else ():
        if row is not None and capability not in row.names:
            low, high = oldest_and_newest(row)
            number = capability.replace(".", "")
            words = {"have": row.minor, "gpu": capability, "low": low, "high": high, "number": number}
            yield found("nvcc-gpu", **words, command=case.use(_compiling(case, capability), but=chosen))


def _compiling(case: Case, capability: str) -> str | None:
    """The newest CUDA whose compiler knows a GPU, of torch's own major where that has one."""
    rows = [row for row in case.known.cuda.values() if capability in row.names]
    major = case.torch.major if case.torch else None
    own = [row for row in rows if row.minor.partition(".")[0] == str(major)]
    return (own or rows)[-1].minor if rows else None


def _none(case: Case, kits: Toolkits, wanted: str | None) -> Iterator[Finding]:
    if kits.home is not None and kits.origin in ("CUDA_HOME", "CUDA_PATH"):
        command = case.use(wanted)
        if command.startswith("install") and not kits.nvccs:
            command = f"unset {kits.origin}; {command}"
        yield found("cuda-home-wrong", variable=kits.origin, home=kits.home, command=command)
        return
    if kits.origin == "PATH":  # as X/nvcc, where torch expects X/bin/nvcc
        first = next((one for one in kits.nvccs if one.origin == "PATH"), None)
        words = {"nvcc": first.path if first else "an nvcc", "home": kits.home, "lacks": "bin/nvcc"}
        stops = f"torch's build stops with \"nvcc not found at '{kits.home}/bin/nvcc'\""
        yield found("cuda-home-guessed", **words, stops=stops, command=case.use(wanted, but=first))
        return
    looked = "neither CUDA_HOME, PATH nor /usr/local/cuda leads to one"
    if kits.nvccs:
        looked += f", where builds look; {listing(one.path for one in kits.nvccs)} is here"
    yield found("nvcc-absent", looked=looked, command=case.use(wanted))


def _complete(case: Case, kits: Toolkits, chosen: Nvcc, wanted: str | None) -> Iterator[Finding]:
    if chosen.headers:
        return
    better = wanted or chosen.release
    if kits.origin == "PATH":
        command = case.use(better, but=chosen)
        words = {"nvcc": chosen.path, "home": kits.home, "lacks": "include/cuda_runtime.h"}
        yield found("cuda-home-guessed", **words, stops=HEADERLESS, command=command)
    else:
        yield found("cuda-home-headers", home=chosen.home, command=case.use(better, but=chosen))


def _against_torch(case: Case, chosen: Nvcc) -> Iterator[Finding]:
    torch = case.torch
    if torch is None or torch.major is None or chosen.release in (None, torch.cuda):
        return
    same = chosen.release is not None and chosen.release.partition(".")[0] == str(torch.major)
    words = {"nvcc": chosen.path, "have": chosen.release, "version": torch.version, "wanted": torch.cuda}
    command = case.use(torch.cuda, but=chosen, exact=same)
    if same and command.startswith("install"):
        command = f"nothing, as a rule; for the very same: {command}"
    yield found("nvcc-minor" if same else "nvcc-major", **words, command=command)


def _others(case: Case, kits: Toolkits, chosen: Nvcc, wanted: str | None) -> Iterator[Finding]:
    """Another nvcc that a build system may take: PATH's first; and where no torch decides, the default's."""
    first = next((one for one in kits.nvccs if one.origin == "PATH"), None)
    default = next((one for one in kits.nvccs if one.home == "/usr/local/cuda"), None)
    for other in (first, default if wanted is None else None):
        if other is not None and other.release and other.release != chosen.release:
            better = case.use(wanted) if wanted else exported(chosen.home)
            if wanted is None:
                better += f", or the same with {other.home}"
            words = {"nvcc": chosen.path, "have": chosen.release, "other": other.path, "its": other.release}
            yield found("nvcc-several", **words, origin=_where(other), command=better)
            return


def _where(nvcc: Nvcc) -> str:
    return "first on PATH" if nvcc.origin == "PATH" else "where builds look by default"


def arch_list(case: Case) -> Iterator[Finding]:
    text = case.machine.toolkits.arch_list
    env = case.machine.env
    if not text or text == "native":
        if not case.capabilities and env.gpus is not None:
            stated = "'native', which means the GPUs here" if text else "not set"
            severity: Severity | None = "error" if _needs_list(case.project) else None
            yield found("arch-list-unset", severity, stated=stated, best=case.best_list)
        return
    words, wrong = _targets(case, text)
    if wrong is not None:
        yield found("arch-list-wrong", list=repr(text), **wrong, best=case.best_list)
        return
    known = [target for word in words if (target := arch.parse(word))]
    row = case.toolkit
    unknown = next((one for one in known if row is not None and one.name not in row.names), None)
    if row is not None and unknown is not None:
        low, high = oldest_and_newest(row)
        yield found("arch-list-toolkit", word=unknown.name, have=row.minor, low=low, high=high, best=case.best_list)
    sass = [one.name.replace(".", "") for one in known]
    ptx = [one.name.replace(".", "") for one in known if one.ptx]
    for gpu in dict.fromkeys(env.gpus or ()):
        if gpu.capability and not runs(gpu.capability, sass, ptx):
            yield found("arch-list-gpu", list=text, gpu=gpu, best=" ".join([*words, gpu.capability]))


def _targets(case: Case, text: str) -> tuple[tuple[str, ...], dict[str, str] | None]:
    """(the targets of a TORCH_CUDA_ARCH_LIST, what is to be said of the first that torch's build refuses)."""
    files = case.machine.torch
    own = files.tables if files is not None else Tables()
    # Only setup.py goes through torch's cpp_extension: its CMake files are not as strict.
    strict = case.project is None or case.project.setup
    # It splits at every blank and semicolon, so two in a row, or one at an end, make an empty target.
    parts = text.replace(" ", ";")
    for name, words in (own.names or case.known.arch_names).items():
        parts = parts.replace(name, words.replace(" ", ";"))
    targets = tuple(parts.split(";")) if strict else arch.split(parts)
    taken = {word + more for word in own.arches for more in ("", "+PTX")} if strict else set()
    wrong = next((word for word in targets or [""] if (word not in taken if taken else not arch.parse(word))), None)
    if wrong is None:
        return targets, None
    whose = f" that torch {case.torch.version} takes" if case.torch is not None and arch.parse(wrong) else ""
    what = f"{wrong} is no target{whose}" if wrong else "torch splits it at each blank and semicolon: one part is empty"
    return targets, {"word": wrong, "what": what}


def _needs_list(project: Project | None) -> bool:
    """Whether torch's build is sure to look for targets: where setup.py has CUDA code and names none itself."""
    pinned = project is not None and any(not one.aside for one in project.architectures)
    return project is not None and project.certain and not project.conditional and not pinned
