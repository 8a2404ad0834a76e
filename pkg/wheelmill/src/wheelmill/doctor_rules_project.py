"""Checks of a project's files. Facts → findings."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from wheelmill.doctor_case import oldest_and_newest, pin, public, runs
from wheelmill.doctor_facts import CMAKES
from wheelmill.doctor_findings import Finding, found
from wheelmill.doctor_setup import FORCE, LIST
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Architectures, Project, Stated
    from wheelmill.findings import Severity
    from wheelmill.which_env import Torch

SETUPTOOLS = "setuptools.build_meta"
MESON = ("mesonpy",)
LINES = 6
Said = TypeVar("Said", bound="Stated")


def project(case: Case) -> Iterator[Finding]:
    one = case.project
    if one is None:
        return
    own = sys.version_info[:2]
    python = case.machine.env.python
    for file, what, will in one.broken:
        if one.newer and file == "setup.py" and python is not None and Version(python.minor).release > own:
            yield found("project-unread", what=f"{what}, for Python {own[0]}.{own[1]}, in which the doctor runs")
        else:
            yield found("project-unreadable", what=what, will=will, file=file)
    for what in one.unread:
        yield found("project-unread", what=what)
    if not one.files:
        yield found("project-empty", root=one.root)
        return
    asked = one.listed and case.machine.toolkits.arch_list
    if one.cuda and one.conditional and not case.machine.env.gpus and not asked:
        yield from _conditional(one.conditional, forced=case.machine.system.forced)
    for first, second in one.collisions:
        yield _collision(first, second, guessed=one.guessed)
    yield from _standards(case, one)
    stated = [each for each in one.architectures if not (each.default and case.machine.toolkits.arch_list)]
    for together in _together(stated, lambda each: (each.variable, each.default)):
        yield from _architectures(case, together)
    yield from _requires(case, one)
    yield from _unpinned(case, one)


def _conditional(what: str, *, forced: bool) -> Iterator[Finding]:
    if what == FORCE:
        if not forced:
            will = "the build succeeds without CUDA code, unless it stops: its operators do not exist on GPUs"
            yield found("cuda-conditional", what="FORCE_CUDA, which is not 1", will=will, command="export FORCE_CUDA=1")
        return
    will = "the build stops, or succeeds without CUDA code: its operators do not exist on GPUs"
    command = (
        "build where a GPU is seen (in a container: docker run --gpus all), or have setup.py ask for FORCE_CUDA=1 too"
    )
    yield found("cuda-conditional", what=what, will=will, command=command)


def _collision(first: str, second: str, *, guessed: bool) -> Finding:
    renamed = PurePosixPath(second)
    word = "cuda" if renamed.suffix == ".cu" else renamed.suffix.lstrip(".")
    what = "become, if they are of one extension," if guessed else "are sources of one extension and become"
    if first == second:
        return found("sources-twice", source=first)
    words = {"first": first, "second": second, "what": what, "object": str(renamed.with_suffix(".o"))}
    new = str(renamed.with_name(f"{renamed.stem}_{word}{renamed.suffix}"))
    return found("sources-collide", "warning" if guessed else None, **words, renamed=new)


def _together(every: Iterable[Said], key: Callable[[Said], object]) -> list[list[Said]]:
    """What one file says alike, in the order of its first line."""
    groups: dict[object, list[Said]] = {}
    for one in every:
        groups.setdefault((one.file, one.aside, key(one)), []).append(one)
    return list(groups.values())


def _where(together: Sequence[Stated]) -> str:
    """`setup.py:7`, or `setup.py (lines 7, 9 and 3 more)`."""
    file, lines = together[0].file, list(dict.fromkeys(one.line for one in together))
    return f"{file}:{lines[0]}" if len(lines) == 1 else f"{file} (lines {listing(map(str, lines), limit=LINES)})"


def _shown(together: Sequence[Architectures]) -> str:
    """The text that names targets, or the targets where there are several texts."""
    texts = dict.fromkeys(one.text for one in together)
    if len(texts) == 1:
        return together[0].text
    sass = dict.fromkeys(number for one in together for number in one.sass)
    ptx = dict.fromkeys(number for one in together for number in one.ptx)
    order = sorted([*(f"sm_{one}" for one in sass), *(f"compute_{one}" for one in ptx)], key=_order)
    return listing(order)


def _order(target: str) -> tuple[bool, int, str]:
    """Sort key of `sm_100a`: SASS first, then by number."""
    return target.startswith("compute"), int("".join(filter(str.isdigit, target))), target


def _standards(case: Case, one: Project) -> Iterator[Finding]:
    """Pinned standards, of a project that uses torch's C++ API: its headers are what needs one."""
    if one.unstable is None and one.imports_torch is False:
        return
    files, torch = case.machine.torch, case.torch
    minor, row = list(case.known.torch.items())[-1]
    newest = row.cxx or 0
    demanded = (files.demanded or files.standard) if files is not None and torch is not None else None
    usual = files.standard if files is not None and torch is not None else None
    name = f"torch {torch.version}" if torch else f"torch {minor}"
    required = None if torch else _required(case, one)
    if required is not None:  # the torch that an isolated build takes
        name = f"torch {required}, which the build requires,"
        demanded = usual = case.known.torch[required].cxx
    for together in _together(one.standards, lambda each: (each.value, each.sure)):
        stated = together[0]
        low, needed = stated.value < (demanded or 0), usual or newest
        words = {"where": _where(together) + ("" if stated.sure else ", under a condition,"), "have": stated.value}
        words["command"] = f"delete {stated.text} from {_where(together)}: torch's build adds the flag that it needs"
        if stated.file != "setup.py":
            words["command"] = f"ask for C++{demanded if low else max(needed, newest)} in {_where(together)}"
        if low:
            milder: Severity | None = "info" if stated.aside else None if stated.sure else "warning"
            yield found("standard-pinned", milder, **words, needed=demanded, torch=name)
        elif stated.aside:
            continue
        elif stated.value < needed:
            yield found("standard-ageing", "warning" if usual else None, **words, needed=needed, torch=name)
        elif stated.value < newest:
            yield found("standard-ageing", **words, needed=newest, torch=f"torch {minor}")


def _required(case: Case, one: Project) -> str | None:
    """The one minor of torch that the build requires, where the table knows it."""
    asked = named(one.requires or (), case).get("torch")
    if asked is None or not asked.specifier:
        return None
    minors = [minor for minor in case.known.torch if asked.specifier.contains(f"{minor}.0")]
    return minors[0] if len(minors) == 1 and _pinned(asked, case) else None


def _architectures(case: Case, together: Sequence[Architectures]) -> Iterator[Finding]:
    """Of the targets that one file fixes: each flag names one, and another flag may serve the GPU."""
    first, row = together[0], case.toolkit
    words = {"where": _where(together), "text": _shown(together), "variable": first.variable}
    words["flags"] = first.text if len(together) == 1 else "these flags"
    words["command"] = f"export {LIST}='{case.best_list}'"
    if first.variable != LIST and case.project is not None and case.project.needs_torch is None:
        words["command"] = f"export CUDAARCHS='{';'.join(map(_of_cmake, case.best_list.split()))}'"
    milder: Severity | None = "info" if first.aside else None
    numbers = {one.name.replace(".", "") for one in row.sm} if row else frozenset()
    # What a condition admits is left to it: it may well ask for the toolkit's version.
    bad = [one for one in together if row and one.sure and not {*one.sass, *one.ptx} <= numbers]
    if row is not None and bad:
        low, high = oldest_and_newest(row)
        unknown = sorted({number for one in bad for number in (*one.sass, *one.ptx)} - numbers)
        extra = {"where": _where(bad), "text": f"{_shown(bad)} ({listing(unknown)})"}
        yield found("architectures-toolkit", milder, **{**words, **extra}, have=row.minor, low=low, high=high)
    sass = [number for one in together for number in one.sass]
    ptx = [number for one in together for number in one.ptx]
    gpus = [gpu for gpu in dict.fromkeys(case.machine.env.gpus or ()) if gpu.capability and (sass or ptx)]
    lost = [gpu for gpu in gpus if not runs(gpu.capability or "", sass, ptx)]
    if lost:
        yield found("architectures-gpu", milder, **words, gpu=listing(map(str, lost)))
    elif not first.default:
        yield found("architectures-pinned", milder, **words)


def _of_cmake(target: str) -> str:
    """`9.0` of TORCH_CUDA_ARCH_LIST as CMake names it: `90-real`; with PTX, `90`."""
    number = target.removesuffix("+PTX").replace(".", "")
    return number if target.endswith("+PTX") else f"{number}-real"


def named(texts: Iterable[str], case: Case) -> dict[str, Requirement]:
    """Requirements by name, of those that count here; what is none is left out, and told by the back end."""
    found_: dict[str, Requirement] = {}
    minor = case.machine.env.python.minor if case.machine.env.python else None
    here = {"python_version": minor, "python_full_version": f"{minor}.0"} if minor else None
    for text in texts:
        try:
            one = Requirement(text)
            if one.marker is None or one.marker.evaluate(here):
                found_.setdefault(re.sub(r"[-_.]+", "-", one.name).lower(), one)
        except (InvalidRequirement, UndefinedComparison, UndefinedEnvironmentName):
            continue
    return found_


def _requires(case: Case, one: Project) -> Iterator[Finding]:
    file = "pyproject.toml"
    words = {**case.words, "root": shlex.quote(one.root)}
    given = named(one.requires or (), case)
    missing = [name for name in one.modules if name.lower() not in given]
    if one.setup and one.imports_torch is not False and "torch" not in given and not one.dynamic:
        severity: Severity | None = None if one.imports_torch else "warning"
        who = "setup.py imports torch" + ("" if one.imports_torch else ", where a condition holds")
        yield _torch_required(case, one, who, [f"torch{pin(case)}", "ninja", *missing], severity)
    elif one.needs_torch and (one.backend or "").startswith(CMAKES) and "torch" not in given and not one.dynamic:
        who = f"{one.needs_torch.file}:{one.needs_torch.line} looks for torch"
        yield _torch_required(case, one, who, [f"torch{pin(case)}"], None if one.needs_torch.sure else "warning")
    elif missing and one.setup and not one.dynamic:
        yield found("requires-module", **words, file=file, modules=listing(missing))
    if one.requires is not None and "setuptools" not in given and (one.backend or SETUPTOOLS).startswith("setuptools"):
        yield found("requires-setuptools", file=file, backend=one.backend or f"{SETUPTOOLS}, for it names none")
    if one.ninja and "torch" in given and "ninja" not in given and not case.ninja:
        yield found("requires-ninja", file=file)
    asked, torch = given.get("torch"), case.torch
    if asked is not None and torch is not None and one.unstable is not None and _other(asked, torch, case):
        change = f"pin torch=={public(torch)} in build-system.requires"
        if not asked.specifier.contains(torch.version or "", prereleases=True):
            change = f"install the torch that it asks for: {case.pip} '{asked}'"
        extra = {"requirement": asked, "version": public(torch), "change": change}
        yield found("isolation-torch", **words, file=file, **extra)


def _torch_required(case: Case, one: Project, who: str, wanted: list[str], severity: Severity | None) -> Finding:
    """That a build asks for torch, which pyproject.toml does not require for it."""
    file, texts = "pyproject.toml", listing([f'"{text}"' for text in wanted if text != "ninja"])
    why, change = f"{file} does not require it for the build", f"add {texts} to build-system.requires"
    if one.requires is None:
        why = f"{file} has no build-system table" if file in one.files else f"there is no {file} to require it"
        table = ", ".join(f'"{text}"' for text in ("setuptools", *wanted))
        lines = f"'' '[build-system]' 'requires = [{table}]'"
        change = f"printf '%s\\n' {lines} >> {shlex.quote(f'{one.root}/{file}')}"
    first = f"{case.pip} --no-build-isolation {shlex.quote(one.root)}, or " if case.torch else ""
    return found("requires-torch", severity, who=who, file=why, change=first + change)


def _other(asked: Requirement, torch: Torch, case: Case) -> bool:
    """Whether a build requirement of torch may bring another one than is installed."""
    return not _pinned(asked, case) or not asked.specifier.contains(torch.version or "", prereleases=True)


def _pinned(one: Requirement, case: Case) -> bool:
    """Whether a requirement admits one minor of torch at most, of those there are and will be."""
    newest = Version(list(case.known.torch)[-1]).release
    later = [f"{newest[0]}.{newest[1] + more}" for more in range(1, 4)] + [f"{newest[0] + 1}.0"]
    admitted = {minor for minor in (*case.known.torch, *later) if any(map(one.specifier.contains, _patches(minor)))}
    return one.url is not None or len(admitted) <= 1


def _patches(minor: str) -> list[str]:
    return [f"{minor}.{patch}" for patch in range(3)]


def _unpinned(case: Case, one: Project) -> Iterator[Finding]:
    if one.unstable is None or not (one.setup or (one.backend or "").startswith(CMAKES + MESON)):
        return
    for stated in one.dependencies:
        asked = named([stated.text], case).get("torch")
        if asked is not None and not _pinned(asked, case):
            words = {"file": f"{stated.file}:{stated.line}", "requirement": stated.text, "source": one.unstable}
            both = f", where its build does not take {one.stable}, of the stable ABI," if one.stable else ""
            severity: Severity | None = "info" if one.stable else None
            yield found("torch-unpinned", severity, **words, both=both, pin=pin(case).removeprefix("=="))
