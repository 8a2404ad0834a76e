"""An import tried in a child process, and what the binary and the installed torch say to the error it ends with.

The answer is a text like any log, which the rules then explain: the traceback, and below it lines that begin with
`explain: ` with what was read from the files.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import elf, loading, proc, torch_use, which_read
from wheelmill.errors import GateError, InputError, WheelmillError
from wheelmill.explain_words import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
LIBRARY = re.compile(r"(?P<path>/[^\s:'\"]+\.so[\w.]*)(?=[:)\s]|$)")
SYMBOL = re.compile(r"undefined symbol: (?P<symbol>\w+)")
MISSING = re.compile(r"(?P<name>lib[\w.+-]+\.so[\w.]*): cannot open shared object")
GRAFTED = re.compile(r"(lib[\w+]+)-[0-9a-f]{6,}(\.so[\w.]*)")
# The child prints where packages lie before it imports, so that a crash leaves that too. No file that it writes, its
# output first of all, becomes larger than 128 MiB.
CHILD = """
import sys, sysconfig, importlib, importlib.util, os
try:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 27, 1 << 27))
except (ImportError, ValueError, OSError):
    pass
sys.stdout.write("SITE" + sysconfig.get_path("purelib") + "\\n")
spec = importlib.util.find_spec(sys.argv[1].partition(".")[0])
sys.stdout.write("FOUND" + str(spec.origin if spec else "") + "\\n")
sys.stdout.flush()
try:
    module = importlib.import_module(sys.argv[1])
except SystemExit as error:
    sys.stdout.write(f"SystemExit: {error.code}\\n")
    sys.exit(f"the import of {sys.argv[1]} ended the interpreter by sys.exit")
try:
    version = str(getattr(module, "__version__", ""))
except Exception:
    version = ""
sys.stdout.write(f"DONE{version}\\n")
sys.stdout.flush()
os._exit(0)
"""
SHOWN = 4
LONGEST = 86_400.0  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """`text` is what a log of it would say. `note` tells an import that went well in a few words."""

    imported: bool
    text: str
    note: str = ""


def attempt(name: str, program: str | None, seconds: float) -> Attempt:
    """Import `name` with an interpreter, for a bounded time. A crash and a hang are answers too.

    Raises InputError for what is no name of a module, no Python or no time.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"--import {name[:80]}: that is no name of a module", remedy="write it as import does: a.b")
    if not 0 < seconds <= LONGEST:
        raise InputError(f"--timeout {seconds:g}: that is no time to wait", remedy=f"state 1 to {LONGEST:g} seconds")
    python = which_read.interpreter(program)
    with tempfile.TemporaryDirectory(prefix="wheelmill-import-") as folder:
        script = Path(folder) / "import-it.py"  # a name that no module has
        script.write_text(CHILD, encoding="utf-8")
        status, said = _run([python, "-X", "faulthandler", str(script), name], seconds, Path(folder))
    told = dict(re.findall(r"^(SITE|FOUND|DONE)(.*)$", said, re.MULTILINE))
    text = re.sub(r"^(SITE|FOUND|DONE).*\n?", "", said, flags=re.MULTILINE)
    if status == 0 and "SITE" not in told:
        raise InputError(f"{python} does not answer as a Python does", remedy="name an interpreter: --python PATH")
    if status == 0 and "DONE" in told:
        return Attempt(imported=True, text=text, note=f"{told['DONE'] or 'no version'}, {told.get('FOUND', '')}")
    lines = [f"$ {python} -c 'import {name}'", text.rstrip(), *_ended(status, name, seconds)]
    if told.get("SITE"):
        lines += [f"explain: {line}" for line in _facts(text, Path(told["SITE"]), told.get("FOUND", ""), python)]
    return Attempt(imported=False, text="\n".join(lines))


def _run(args: list[str], seconds: float, folder: Path) -> tuple[int | None, str]:
    """(status, what was printed); no status where it had to be ended."""
    log = folder / "log"
    try:
        proc.run(args, log=log, timeout=seconds, cwd=folder)
    except proc.TimedOutError as error:
        return None, error.output
    except proc.ProcessError as error:
        return error.status, error.output
    return 0, log.read_text(errors="replace").partition("\n")[2]


def _ended(status: int | None, name: str, seconds: float) -> Iterator[str]:
    if status is None:
        yield f"the import of {name} did not end within {seconds:g} seconds"
    elif status < 0:
        known = next((one.name for one in signal.Signals if one == -status), f"signal {-status}")
        yield f"the import of {name} crashed with {known}"
    elif status == 0:
        yield f"the import of {name} ended the interpreter with status 0"


def _facts(text: str, site: Path, found: str, python: str) -> Iterator[str]:
    """What the files say, a line each."""
    if not found:
        yield f"{python} has no package of that name in {site}"
    yield from _torch(site, python)
    symbol, missing = SYMBOL.search(text), MISSING.search(text)
    named = [Path(match["path"]) for match in LIBRARY.finditer(text)]
    own = Path(found).parent if found else site
    libraries = [
        path for path in named if path.is_file() and "libstdc++" not in path.name and "libc.so" not in path.name
    ]
    if not libraries and found.endswith("__init__.py"):
        libraries = [path for path in sorted(own.rglob("*.so*"))[:50] if path.is_file()]
    for path in dict.fromkeys(libraries):
        library = _read(path)
        if library is not None and (missing is None or missing["name"] in library.needed or path in named):
            yield from _library(path, library)
    if symbol:
        yield from _symbol(symbol["symbol"], site)
    if missing:
        yield from _beside(missing["name"], site)


def _torch(site: Path, python: str) -> Iterator[str]:
    try:
        torch = which_read.ask(python, 30).torch
    except WheelmillError:
        torch = None
    if torch is not None and torch.version is not None:
        abi = {True: "new", False: "old", None: "unknown"}[torch.cxx11_abi]
        whose = torch.origin or "an unknown builder"
        yield f"torch {torch.version} of {whose}, CUDA {torch.cuda or 'unknown'}, its C++ ABI is the {abi} one"
    elif not (site / "torch").is_dir():
        yield f"there is no torch in {site}"


def _read(path: Path) -> Library | None:
    try:
        return elf.read(path, path.name)
    except (GateError, OSError, subprocess.SubprocessError):
        return None


def _library(path: Path, library: Library) -> Iterator[str]:
    """What decides of one library: torch's ABI, CUDA, targets, and tables that contradict each other."""
    use = torch_use.classify(library)
    abi = {True: ", C++ ABI new", False: ", C++ ABI old", None: ""}[use.cxx11_abi]
    cuda = sorted({major for name in library.needed if (major := loading.cuda_major(name))})
    yield f"{path.name} uses torch's {use.abi} interface{abi}" + (f", needs CUDA {', '.join(cuda)}" if cuda else "")
    if library.sass or library.ptx:
        yield f"{path.name} holds SASS {' '.join(library.sass) or '-'}, PTX {' '.join(library.ptx) or '-'}"
    for needs in library.versions:
        if needs not in library.needed:
            grafted = GRAFTED.fullmatch(needs)
            kind = "of which DT_NEEDED names another" if grafted else "which DT_NEEDED does not name"
            yield f"{path.name}: version needs name {needs}, {kind}: {' '.join(library.needed[:SHOWN])}"


def _symbol(symbol: str, site: Path) -> Iterator[str]:
    """Which library of torch defines a symbol, and what of nearly that name there is."""
    written = demangle(symbol)
    name = re.split(r"[(\[]", written)[0].rpartition(" ")[2]
    near: dict[str, str] = {}
    for path in sorted((site / "torch" / "lib").glob("lib*.so")):
        try:
            offered = elf.exported(path)
        except (GateError, OSError):
            continue
        if symbol in offered:
            yield f"{path.name} of the installed torch defines {symbol}: it was not loaded, so import torch first"
            return
        last = name.rpartition("::")[2]
        for one in offered:
            if last and last in one and one not in near and demangle(one).startswith(name + "("):
                near[one] = path.name
    yield f"no library of the installed torch defines {written}"
    for one, where in list(near.items())[:SHOWN]:
        yield f"{where} has {demangle(one)} instead"


def _beside(name: str, site: Path) -> Iterator[str]:
    """Files of the missing library's name with any version, in the environment."""
    stem = name.partition(".so")[0]
    places = [
        *site.glob(f"nvidia/*/lib/{stem}.so*"),
        *site.glob(f"torch/lib/{stem}*.so*"),
        *site.glob(f"*.libs/{stem}*"),
    ]
    for path in places[:SHOWN]:
        yield f"{path.name} is in {path.parent.relative_to(site)}, {name} is nowhere"
    if not places:
        yield f"no {stem} is in this environment"
