"""Rules of CUDA: runtimes, device code, and what the label claims."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill import loading, platforms
from wheelmill.fatbin import sm_order
from wheelmill.findings import Finding, found
from wheelmill.names import listing
from wheelmill.rules_platform import GPU_CODE, hosted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wheelmill.elf import Library, Units
    from wheelmill.rules_plan import Expected
    from wheelmill.wheelfacts import WheelFacts

OWN = re.compile(r"lib(torch(_cpu|_cuda|_python|_hip|_xpu)?|c10(_cuda)?|cudart|cuda)([-.].*)?\.so.*")

# Different lists of targets that a wheel's libraries are compared with; real wheels have two or three.
KINDS = 50


def label(facts: WheelFacts, expected: Expected) -> str | None:
    """The CUDA that the wheel claims: the plan's, else its local version's, as `cu130` or `cpu`."""
    if expected.wheel is not None:
        return expected.wheel.cuda
    local = facts.name.version.local if facts.name.version else None
    words = (local or "").split(".")
    for word in words:
        match = re.match(r"cpu$|cu\d{2,3}(?=\D|$)", word)
        if match:
            return match[0]
    return None


def findings(facts: WheelFacts, expected: Expected) -> Iterator[Finding]:
    libraries = hosted(facts)
    if not _is_cuda_or_torch_itself(facts):
        together = _together(libraries)
        both = list(_two_runtimes(together))
        yield from both
        yield from _grafted(libraries, told=bool(both))
        yield from _mixed(together)
        yield from _label(facts, libraries, expected)
    device = [library for library in libraries if library.sass or library.ptx]
    for library in device:
        yield from _ptx(library, label(facts, expected), expected)
        yield from _reading(facts, library)
        yield from _units(library)
        if expected.wheel is not None:
            yield from _asked(library, expected.wheel.sm)
        elif library.path in {one.path for one in _together(libraries)}:
            yield from _reach(library, expected)
    yield from _differing(_together(libraries), expected)


def _is_cuda_or_torch_itself(facts: WheelFacts) -> bool:
    return facts.name.project == "torch" or facts.name.project.startswith(("nvidia-", "cuda-"))


def _together(libraries: Iterable[Library]) -> tuple[Library, ...]:
    """The project's own libraries that one process may load together."""
    every = tuple(libraries)
    apart = loading.alternatives(every)
    return tuple(library for library in every if library.path not in apart)


def _runtime(library: Library) -> str | None:
    return next((name for name in library.needed if platforms.original(name).startswith("libcudart.so")), None)


def _two_runtimes(libraries: tuple[Library, ...]) -> Iterator[Finding]:
    """Where one library's runtime is a renamed copy, and another's is not, or another copy."""
    users = [(library, name) for library in libraries if (name := _runtime(library)) is not None]
    for library, name in users:
        renamed = platforms.original(name) != name
        other = next(((one, its) for one, its in users if its != name), None)
        if renamed and other is not None:
            yield found(
                "two-runtimes", library.path, first=library.path, one=name, second=other[0].path, other=other[1]
            )
            return


def _grafted(libraries: tuple[Library, ...], *, told: bool) -> Iterator[Finding]:
    for library in libraries:
        name = platforms.original(library.path.rpartition("/")[2])
        if OWN.fullmatch(name) and not (told and name.startswith("libcudart")):
            yield found("grafted-runtime", library.path, what=name)


def _mixed(libraries: tuple[Library, ...]) -> Iterator[Finding]:
    needs = [
        (library, name, major)
        for library in libraries
        for name in library.needed
        if (major := loading.cuda_major(platforms.original(name))) is not None
    ]
    for library, name, major in needs[1:]:
        first, one, its = needs[0]
        if its != major:
            yield found("cuda-mixed", library.path, first=first.path, one=one, second=library.path, other=name)
            return


def _label(facts: WheelFacts, libraries: tuple[Library, ...], expected: Expected) -> Iterator[Finding]:
    claimed = label(facts, expected)
    if claimed is None:
        return
    apart = loading.alternatives(libraries)
    for library in libraries:
        for name in library.needed:
            major = loading.cuda_major(platforms.original(name))
            if major and library.path not in apart and (claimed == "cpu" or major != claimed[2:4]):
                yield found("cuda-major", library.path, needed=name, label=claimed)
                break
    holds = any(library.sass or library.ptx for library in libraries)
    holds = holds or any(library.machine in GPU_CODE for library in facts.libraries)
    if claimed != "cpu" and libraries and not holds:
        yield found("no-device-code", label=claimed)


def _ptx(library: Library, claimed: str | None, expected: Expected) -> Iterator[Finding]:
    row = expected.facts.cuda.get(claimed or "")
    if row is None or library.ptx_isa is None:
        return
    # Where SASS serves every GPU of that CUDA, its drivers never compile the PTX: newer ones do, for newer GPUs.
    unread = _unread(library, [arch.order for arch in row.sm if not arch.suffix])
    newest = row.ptx
    if newest is not None and library.ptx_isa > newest:
        what = "of ISA {}.{}".format(*library.ptx_isa)
        words = {"what": what, "label": claimed, "newest": "{}.{}".format(*newest)}
        yield found("ptx-newer", library.path, severity="info" if unread else None, **words)
        return
    known = max((arch.order for arch in row.sm), default=0)
    beyond = [target for target in library.ptx if sm_order(target)[0] > known]
    if known and beyond:
        words = {"what": f"for SM {listing(beyond)}", "label": claimed, "newest": f"SM {known}"}
        yield found("ptx-newer", library.path, severity="info" if unread else None, **words)


def _unread(library: Library, known: list[int]) -> bool:
    """Whether SASS serves each of those GPUs from the oldest that the library is for."""
    oldest = min(_plain((*library.sass, *library.ptx)), default=0)
    sass = _plain(library.sass)
    return bool(sass) and all(any(one // 10 == sm // 10 and one <= sm for one in sass) for sm in known if sm >= oldest)


def _reading(facts: WheelFacts, library: Library) -> Iterator[Finding]:
    reading = facts.readings.get(library.path)
    if reading is None or reading.failure:
        return
    # cuobjdump does not list the PTX of code that is linked when it is loaded.
    if reading.sass != library.sass or (reading.ptx != library.ptx and not library.relocatable):
        have = f"SASS {listing(library.sass)}, PTX {listing(library.ptx)}"
        other = f"SASS {listing(reading.sass)}, PTX {listing(reading.ptx)}"
        yield found("cuobjdump-disagrees", library.path, have=have, other=other)


def _asked(library: Library, words: tuple[str, ...]) -> Iterator[Finding]:
    asked = {word.removesuffix("+PTX").replace(".", "") for word in words}
    asked_ptx = {word.removesuffix("+PTX").replace(".", "") for word in words if word.endswith("+PTX")}
    for kind, want, holds in (("sass", asked, set(library.sass)), ("ptx", asked_ptx, set(library.ptx))):
        have = listing(sorted(holds, key=sm_order))
        for target in sorted(want - holds, key=sm_order):
            yield found(f"{kind}-missing", library.path, target=target, have=have)
        for target in sorted(holds - want, key=sm_order):
            yield found(f"{kind}-unasked", library.path, target=target)


def _plain(targets: Iterable[str]) -> set[int]:
    return {int(target) for target in targets if target.isdigit()}


def _reach(library: Library, expected: Expected) -> Iterator[Finding]:
    """GPUs that neither its SASS nor its PTX serves, of those that some toolkit knows."""
    sass, ptx = _plain(library.sass), _plain(library.ptx)
    if not sass and not ptx:
        return
    known = {arch.order for row in expected.facts.cuda.values() for arch in row.sm if not arch.suffix}
    lowest, highest = min(sass | ptx), max(sass | ptx)
    missing = [
        sm
        for sm in sorted(known)
        if lowest < sm < highest
        and not any(one // 10 == sm // 10 and one <= sm for one in sass)
        and not any(one <= sm for one in ptx)
    ]
    if missing:
        told = f"PTX for {listing(sorted(library.ptx, key=sm_order))} only" if ptx else "no PTX"
        have = listing(library.sass)
        yield found("sm-gap", library.path, have=have, ptx=told, missing=listing(map(str, missing)))
    if not library.ptx and any(sm // 10 > highest // 10 for sm in known):
        yield found("ptx-none", library.path, newest=highest)


def _units(library: Library) -> Iterator[Finding]:
    """Units that lack a target which the library has in others: its list of targets is not theirs."""
    targets = sorted(_plain((*library.sass, *library.ptx)))
    lacking = {
        unit: missing
        for unit in library.units
        if (missing := [sm for sm in targets if not _serves(unit, sm) and f"{sm}a" not in (*unit.sass, *unit.ptx)])
    }
    if lacking:
        unit, missing = max(lacking.items(), key=lambda item: len(item[1]))
        yield found(
            "units-differ",
            library.path,
            count=sum(one.count for one in lacking),
            units=sum(one.count for one in library.units),
            have=listing((*unit.sass, *(f"{target} (PTX)" for target in unit.ptx))),
            missing=listing(map(str, missing)),
        )


def _serves(library: Library | Units, target: int) -> bool:
    return any(one // 10 == target // 10 and one <= target for one in _plain(library.sass)) or any(
        one <= target for one in _plain(library.ptx)
    )


def _differing(libraries: tuple[Library, ...], expected: Expected) -> Iterator[Finding]:
    """Libraries that load together, of which one serves fewer GPUs than another."""
    device = [one for one in libraries if _plain(one.sass) and not one.path.partition("/")[0].endswith(".libs")]
    if expected.wheel is not None:
        return
    kinds = list({one.sass: one for one in device}.values())[:KINDS]
    for library in device:
        lacking = {target: one for one in kinds for target in sorted(_plain(one.sass)) if not _serves(library, target)}
        if lacking:
            other = max(lacking.values(), key=lambda one: len(one.sass))
            yield found(
                "targets-differ",
                library.path,
                have=listing(library.sass),
                other=other.path,
                most=listing(other.sass),
                missing=listing(map(str, sorted(lacking))),
            )


def unoffered(libraries: Iterable[Library], offered: frozenset[str], cuda: str) -> Iterator[Finding]:
    """Symbols that libraries need of CUDA's runtime and that the one which offers `offered` has not."""
    for library in libraries:
        for symbol, version in library.undefined.items():
            if (version or "").startswith("libcudart") and symbol not in offered:
                yield found("cudart-symbol-missing", library.path, symbol=symbol, cuda=cuda)
