"""Whether a wheel's tags fit an environment: its Python, its system, its C library. Facts → reasons."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from packaging import tags
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from wheelmill import platforms
from wheelmill.names import listing, version_key
from wheelmill.reasons import Reason, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.which_candidate import Candidate
    from wheelmill.which_env import Environment, Python

LEGACY = {"manylinux1": "2_5", "manylinux2010": "2_12", "manylinux2014": "2_17"}
PLATFORM = re.compile(
    r"(?:(?P<many>manylinux)_(?P<glibc>\d+_\d+)|(?P<legacy>manylinux(?:1|2010|2014))|(?P<musl>musllinux)_(?P<its>\d+_\d+)"
    r"|(?P<linux>linux)|(?P<mac>macosx)_(?P<macos>\d+_\d+))_(?P<machine>\w+)|(?P<win>win(?:32|_amd64|_arm64))"
)
WINDOWS = {"win32": "i686", "win_amd64": "x86_64", "win_arm64": "aarch64"}
MAC_GROUPS = {"universal2": ("x86_64", "arm64"), "universal": ("x86_64", "i686"), "intel": ("x86_64", "i686")}
SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows", None: "a system"}
SHOWN = 4


def reasons(env: Environment, candidate: Candidate) -> Iterator[Reason]:
    yield from _python(env.python, candidate)
    if not candidate.pure:
        yield from _platform(env, candidate)


def named(python: Python) -> str:
    """A Python as its users call it."""
    kind = "" if python.implementation == "cpython" else f"{python.implementation} "
    return f"{kind}{python.version}{' free-threaded' if python.threaded else ''}"


def cell_python(python: Python) -> str:
    """A Python as cells name it: `3.12`, `3.13t`."""
    return f"{python.minor}{'t' if python.threaded else ''}"


def _python(python: Python | None, candidate: Candidate) -> Iterator[Reason]:
    pairs = {(tag.interpreter, tag.abi) for tag in candidate.claim.tags}
    every = all(interpreter in ("py3", "py2.py3") for interpreter, _ in pairs)
    if python is None:
        if not every:
            yield reason("python-unknown", have=_for(candidate))
        return
    if not _takes(python, pairs):
        yield reason("python-tag", have=_for(candidate), yours=named(python))
    stated = candidate.link.requires_python or str(candidate.claim.python)
    if stated:
        try:
            fits = SpecifierSet(stated).contains(_whole(python), prereleases=True)
        except InvalidSpecifier:
            return
        if not fits:
            yield reason("python-requires", have=stated, yours=named(python))


def _whole(python: Python) -> str:
    # As pip sees it: of a pre-release the release; a minor alone stands for its newest.
    match = re.match(r"\d+\.\d+\.\d+", python.version)
    return match[0] if match else f"{python.minor}.99"


def _takes(python: Python, pairs: set[tuple[str, str]]) -> bool:
    return not pairs.isdisjoint(_pairs(python))


def closeness(env: Environment, candidate: Candidate) -> tuple[int, tuple[int, ...]]:
    """How close its best tag is, as pip ranks them: the Python first, then the newer platform."""
    places = {pair: place for place, pair in enumerate(_pairs(env.python))} if env.python else {}
    return max(
        (-places.get((tag.interpreter, tag.abi), len(places)), _newness(tag.platform)) for tag in candidate.claim.tags
    )


def _newness(platform: str) -> tuple[int, ...]:
    """A sort key of platform tags: those that name a newer system come before older ones, and before plain ones."""
    match = PLATFORM.fullmatch(platform)
    if match is None or match["linux"] or match["win"]:
        return ()
    named = match["glibc"] or match["its"] or match["macos"] or LEGACY[match["legacy"]]
    return tuple(map(int, named.split("_")))


@cache
def _pairs(python: Python) -> list[tuple[str, str]]:
    """The (interpreter, ABI) pairs that a Python takes, the closest first."""
    minor = version_key(python.minor)[:2]
    digits = "".join(map(str, minor))
    if python.implementation == "cpython":
        abi = python.abi or f"cp{digits}"
        known = [*tags.cpython_tags(minor, abis=[abi], platforms=["any"])]
        interpreter = f"cp{digits}"
    else:
        interpreter = f"{ {'pypy': 'pp'}.get(python.implementation, python.implementation) }{digits}"
        known = [*tags.generic_tags(interpreter, abis=[python.abi or "none"], platforms=["any"])]
    known += tags.compatible_tags(minor, interpreter=interpreter, platforms=["any"])
    return list(dict.fromkeys((tag.interpreter, tag.abi) for tag in known))


def _for(candidate: Candidate) -> str:
    """The Pythons of its tags: `Python 3.12`, `Python 3.13 free-threaded`, `PyPy 3.10`."""
    found = set()
    for tag in candidate.claim.tags:
        match = re.fullmatch(r"(cp|pp|py)(\d)(\d*)", tag.interpreter)
        if match is None:
            found.add(tag.interpreter)
            continue
        number = f"{match[2]}.{match[3]}" if match[3] else match[2]
        if tag.abi == "abi3":
            number += " and later (not free-threaded)"
        elif re.fullmatch(r"cp\d+t", tag.abi):
            number += " free-threaded"
        found.add(f"{'PyPy' if match[1] == 'pp' else 'Python'} {number}")
    return listing(sorted(found), limit=SHOWN)


def _platform(env: Environment, candidate: Candidate) -> Iterator[Reason]:
    """None where one of its platform tags fits, else what the nearest of them lacks."""
    names = sorted({tag.platform for tag in candidate.claim.tags})
    if env.system is None or env.machine is None:
        yield reason("system-unknown", have=listing(names, limit=SHOWN))
        return
    found = [_one(env, name) for name in names]
    if any(one is None for one in found):
        yield from _needed(env, candidate)
        return
    wrong = [one for one in found if one is not None]
    rejected = [one for one in wrong if one.kind == "no"]
    # A tag of which something is only unknown may fit.
    yield min(wrong if len(rejected) == len(wrong) else [one for one in wrong if one.kind != "no"], key=_weight)


def _weight(one: Reason) -> int:
    return one.weight


def _one(env: Environment, name: str) -> Reason | None:
    match = PLATFORM.fullmatch(name)
    system = _system(match)
    if match is None or system is None:
        return None if name == "any" else reason("system", have=name, yours=_yours(env))
    machine = match["machine"] or WINDOWS[name]
    if system != env.system or env.machine not in MAC_GROUPS.get(machine, (machine,)):
        return reason("system", have=f"{SYSTEMS[system]} {machine}", yours=_yours(env))
    if match["mac"]:
        wanted = match["macos"].replace("_", ".")
        older = env.system_version is not None and version_key(env.system_version) < version_key(wanted)
        return reason("system", have=f"macOS {wanted}", yours=f"macOS {env.system_version}") if older else None
    if system == "linux":
        return _linux(env, match)
    return None


def _system(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    return "macos" if match["mac"] else "windows" if match["win"] else "linux"


def _yours(env: Environment) -> str:
    return f"{SYSTEMS[env.system]} {env.machine}"


def _linux(env: Environment, match: re.Match[str]) -> Reason | None:
    libc = env.libc
    kind = "musl" if match["musl"] else None if match["linux"] else "glibc"
    if kind is None:
        # The tag says nothing of the C library; a library that states what it needs of glibc does.
        musl = libc is not None and libc.kind == "musl"
        return reason("libc", have="a glibc system, it seems (its tag does not say)", yours="musl") if musl else None
    wanted = (match["its"] or match["glibc"] or LEGACY[match["legacy"]]).replace("_", ".")
    if libc is None:
        return reason("glibc-unknown", have=wanted) if kind == "glibc" else reason("libc", have="musl", yours="unknown")
    if libc.kind != kind:
        return reason("libc", have=kind, yours=libc.kind)
    if libc.version is None:
        return reason("glibc-unknown", have=wanted)
    if version_key(libc.version) < version_key(wanted):
        return reason("glibc-tag", have=wanted, yours=libc.version)
    return None


def _needed(env: Environment, candidate: Candidate) -> Iterator[Reason]:
    """What its libraries really ask of glibc, where they were looked at."""
    needs = [
        one.glibc for one in (candidate.together or {}).values() if one.glibc and platforms.DOTTED.fullmatch(one.glibc)
    ]
    libc = env.libc
    if not needs or env.system != "linux" or libc is None or libc.kind != "glibc" or libc.version is None:
        return
    most = max(needs, key=version_key)
    if version_key(libc.version) < version_key(most):
        yield reason("glibc-needed", have=most, yours=libc.version)
