"""The C++ compiler that a build calls, those that it could call, and what variables name. Asked, not judged."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill.doctor_facts import Compiler, Named
from wheelmill.doctor_toolkits import asking, parted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Of the last two only CMake takes notice.
VARIABLES = ("CXX", "CC", "NVCC_CCBIN", "PYTORCH_NVCC", "CUDAHOSTCXX", "CUDACXX")
# To torch's build these are something even where they are empty.
EMPTY = ("CC", "PYTORCH_NVCC")
# What nvcc takes for its -ccbin: one program, or a folder that has it.
CCBIN = ("CC", "NVCC_CCBIN")
UNCHECKED = ("ON", "1", "YES", "TRUE", "Y")
MOST = 6


@contextmanager
def compiler(env: Mapping[str, str]) -> Iterator[Callable[[], Compiler]]:
    """What gives the C++ compiler that torch's build calls: CXX, else g++ or c++ by PATH."""
    names = named(env)
    stated = next((one for one in names if one.variable == "CXX"), None)
    path = stated.path if stated else next(filter(None, (_which(env, name) for name in ("g++", "c++"))), None)
    facts = {"variable": stated and stated.variable, "named": names, "default": _which(env, "g++")}
    checked = env.get("TORCH_DONT_CHECK_COMPILER_ABI") not in UNCHECKED
    with ExitStack() as stack:
        own = stack.enter_context(_asking(path)) if path else partial(Compiler, path=None)
        others = [stack.enter_context(_asking(other)) for other in _others(env, path)]
        yield lambda: own(**facts, checked=checked, others=tuple(other() for other in others))


def named(env: Mapping[str, str]) -> tuple[Named, ...]:
    return tuple(
        _named(env, name) for name in VARIABLES if env.get(name, "").strip() or (name in EMPTY and name in env)
    )


def _named(env: Mapping[str, str], variable: str) -> Named:
    value = env[variable]
    launchers, program = parted(value)
    if variable in CCBIN:
        path = _which(env, value) or (value if os.access(value, os.X_OK) else None)
    else:
        path = _which(env, program) if all(_which(env, one) for one in launchers) else None
    return Named(variable=variable, value=value, program=program, launcher=next(iter(launchers), None), path=path)


def _which(env: Mapping[str, str], name: str) -> str | None:
    return shutil.which(name, path=env.get("PATH", ""))


def _others(env: Mapping[str, str], path: str | None) -> Iterator[str]:
    """Each g++ of PATH that is another program than `path`."""
    seen = {os.path.realpath(path or "")}
    for folder in filter(None, env.get("PATH", "").split(os.pathsep)):
        for name in _listed(folder):
            if re.search(r"/g\+\+(-\d+)?$", name) and _which(env, name) and os.path.realpath(name) not in seen:
                seen.add(os.path.realpath(name))
                if len(seen) <= MOST:
                    yield name


def _listed(folder: str) -> list[str]:
    try:
        return sorted(map(str, Path(folder).glob("g++*")))
    except OSError:  # a loop of links, a name that is too long
        return []


@contextmanager
def _asking(path: str) -> Iterator[Callable[..., Compiler]]:
    """What gives a compiler, with facts that are known beforehand."""
    with asking([path, "--version"]) as named, asking([path, "-dumpfullversion", "-dumpversion"]) as numbered:

        def answer(**facts: Any) -> Compiler:
            banner, version = named(), numbered()
            match = re.search(r"\d+(\.\d+)*", version.said)
            said = banner.said.lower()
            return Compiler(
                path=path,
                kind="gcc" if "free software foundation" in said else "clang" if "clang" in said else None,
                version=match[0] if match and version.answer == "works" else None,
                answer=banner.answer,
                **facts,
            )

        yield answer
