"""Every nvcc of a machine and the one that a torch build would take; ninja; asking programs. Nothing is judged."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import proc, toolkit
from wheelmill.doctor_facts import Answer, Nvcc, Program, Toolkits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

SECONDS = 10.0
GCC_LIMIT = re.compile(r"#\s*if\s+__GNUC__\s*>\s*(\d+)")
# The first that it does not accept.
CLANG_LIMIT = re.compile(r"clang version must be less than (\d+)")
# conda's compilers look into the second by themselves.
HEADERS = ("include/cuda_runtime.h", "targets/*/include/cuda_runtime.h")
LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache", "env", "nice", "time"})
DEFAULT_HOME = "/usr/local/cuda"
# Under the root, and under site-packages.
HOMES = ("usr/local/cuda", "usr/local/cuda-*", "opt/cuda", "opt/cuda-*", "usr/lib/cuda", "usr/lib/nvidia-cuda-toolkit")
WHEELS = ("nvidia/cu[0-9]*/bin/nvcc", "nvidia/cuda_nvcc/bin/nvcc")


def ask(args: Sequence[str], *, seconds: float = SECONDS) -> Program:
    """What a program says."""
    with asking(args, seconds=seconds) as answer:
        return answer()


@contextmanager
def asking(args: Sequence[str], *, seconds: float = SECONDS) -> Iterator[Callable[[], Program]]:
    """A program that runs beside the block, and what gives its answer; one that does not start fails."""
    with ExitStack() as stack:
        try:
            question = stack.enter_context(proc.Question(args, seconds=seconds))
        except (OSError, ValueError) as error:
            failed = Program(path=args[0], answer="fails", said=str(getattr(error, "strerror", None) or error))
            yield lambda: failed
            return
        yield lambda: _answered(args[0], *question.answer())


def _answered(path: str, status: int | None, said: str) -> Program:
    answer: Answer = "hangs" if status is None else "fails" if status else "works"
    return Program(path=path, answer=answer, status=status, said=said.strip())


def toolkits(env: Mapping[str, str], site: Iterable[str], prefixes: Iterable[str | None]) -> Toolkits:
    """The nvccs in `env`, /usr/local, /opt, NVIDIA's wheels of `site` (where modules are) and the conda `prefixes`.

    CUDA_HOME is found as torch.utils.cpp_extension does it: the variable, else the folder above PATH's nvcc, else
    /usr/local/cuda.
    """
    every: dict[str, str] = {}
    for origin, path in _places(env, site, prefixes):
        if _runs(path):
            every.setdefault(str(path), origin)
    home, by = _home(env)
    own = str(Path(home) / "bin" / "nvcc") if home else ""
    asked = [*every, own] if own and own not in every and _runs(Path(own)) else [*every]
    with ExitStack() as stack:  # several that hang take the time of one
        answers = [stack.enter_context(asking([path, "--version"])) for path in asked]
        known = {path: _nvcc(answer(), every.get(path, str(by))) for path, answer in zip(asked, answers, strict=True)}
    chosen = known.get(_found(env, "PYTORCH_NVCC") or own) or known.get(own)
    return Toolkits(
        nvccs=tuple(known[path] for path in every),
        home=home,
        origin=by,
        chosen=chosen,
        arch_list=env.get("TORCH_CUDA_ARCH_LIST"),
    )


def _places(env: Mapping[str, str], site: Iterable[str], prefixes: Iterable[str | None]) -> Iterator[tuple[str, Path]]:
    """(where it is from, a path at which an nvcc may be)."""
    path = env.get("PATH", "")
    yield from ((name, Path(env[name]) / "bin" / "nvcc") for name in ("CUDA_HOME", "CUDA_PATH") if env.get(name))
    for name in ("CUDACXX", "PYTORCH_NVCC"):
        if (found := _found(env, name)) is not None:
            yield name, Path(found)
    yield from (("PATH", Path(folder) / "nvcc") for folder in path.split(os.pathsep) if folder)
    for pattern in HOMES:
        yield from ((str(home), home / "bin" / "nvcc") for home in sorted(Path("/").glob(pattern)))
    for folder in site:
        for pattern in WHEELS:
            yield from (("NVIDIA's wheels", found) for found in sorted(Path(folder).glob(pattern)))
    yield from (("conda", Path(prefix) / "bin" / "nvcc") for prefix in prefixes if prefix)


def parted(text: str) -> tuple[list[str], str]:
    """(the launchers, the program) that a variable such as CXX='ccache g++ -m64' names."""
    launchers: list[str] = []
    for word in text.split():
        if Path(word).name in LAUNCHERS:
            launchers.append(word)
        elif not launchers or ("=" not in word and not word.startswith("-")):  # `env` takes variables and options
            return launchers, word
    return launchers, ""


def _found(env: Mapping[str, str], variable: str) -> str | None:
    _, program = parted(env.get(variable, ""))
    return shutil.which(program, path=env.get("PATH", "")) if program else None


def _runs(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:  # a loop of links, a name that is too long
        return False


def _home(env: Mapping[str, str]) -> tuple[str | None, str | None]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if env.get(name):
            return env[name], name
    found = shutil.which("nvcc", path=env.get("PATH", ""))
    if found:
        return str(Path(found).parent.parent), "PATH"
    return (DEFAULT_HOME, DEFAULT_HOME) if Path(DEFAULT_HOME).exists() else (None, None)


def _nvcc(told: Program, origin: str) -> Nvcc:
    path = Path(told.path)
    home = path.parent.parent
    gcc, clang = _limits(path)
    return Nvcc(
        path=str(path),
        origin=origin,
        home=str(home),
        release=toolkit.release_in(told.said) if told.answer == "works" else None,
        answer=told.answer,
        gcc=gcc,
        clang=clang,
        headers=any(any(home.glob(one)) for one in HEADERS),
    )


def _limits(path: Path) -> tuple[int | None, int | None]:
    """The newest GCC and clang that the toolkit of an nvcc accepts, by its crt/host_config.h."""
    for home in (path.parent.parent, path.resolve().parent.parent):
        for header in (home / "include/crt/host_config.h", *home.glob("targets/*/include/crt/host_config.h")):
            try:
                text = header.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            gcc, clang = GCC_LIMIT.search(text), CLANG_LIMIT.search(text)
            if gcc or clang:
                return int(gcc[1]) if gcc else None, int(clang[1]) - 1 if clang else None
    return None, None


@contextmanager
def ninja(env: Mapping[str, str], python: str) -> Iterator[Callable[[], Program | None]]:
    """What gives the ninja that torch calls by PATH, else the one beside the interpreter; None where there is none."""
    path = shutil.which("ninja", path=env.get("PATH", "")) or shutil.which(str(Path(python).with_name("ninja")))
    if path is None:
        yield lambda: None
        return
    with asking([path, "--version"]) as answer:
        yield answer
