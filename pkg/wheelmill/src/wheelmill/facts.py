"""What torch and CUDA really offer: tables of data files beside this module, plus a site's own.

A matrix may name an extra file of the same rows (`[torch."2.11"]`, `[cuda.cu130]`, `index`); a row there
adds to the built-in table, and its fields replace those of a built-in row of the same name.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from wheelmill import arch
from wheelmill.errors import InputError
from wheelmill.names import cuda_key, did_you_mean, version_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wheelmill.model import Wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parent / "tables"

MINOR = re.compile(r"\d+\.\d+")
PYTHON = re.compile(r"3\.\d+t?")
TAG = re.compile(r"cu\d{3,}")

_TORCH_FIELDS = {
    "release": str,
    "pypi": str,
    "cuda": list,
    "python": list,
    "cxx": int,
    "manylinux": str,
    "cxx11_abi": bool,
    "cxx11_abi_of": dict,
    "sm": dict,
    "sm_source": str,
    "source": str,
}
_CUDA_FIELDS = {
    "minor": str,
    "sm": list,
    "ptx": str,
    "gcc": int,
    "driver": str,
    "pypi": str,
    "runtime": str,
    "source": str,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Torch:
    """One minor release of torch; see the head of tables/torch.toml for each field.

    `python` and `cuda` are in canonical order. `sm` lacks a variant whose targets are unknown.
    """

    minor: str
    release: str
    pypi: str | None
    cuda: tuple[str, ...]
    python: tuple[str, ...]
    cxx: int | None
    manylinux: str | None
    cxx11_abi: bool | None
    cxx11_abi_of: Mapping[str, bool]
    sm: Mapping[str, tuple[arch.Arch, ...]]

    def cxx11(self, cuda: str) -> bool | None:
        """Whether the variant was built with the C++11 ABI; None where that is unknown."""
        return self.cxx11_abi_of.get(cuda, self.cxx11_abi)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cuda:
    """One toolkit; see the head of tables/cuda.toml. `pypi` is None where no complete compiler is there."""

    tag: str
    minor: str
    sm: tuple[arch.Arch, ...]
    gcc: int | None
    driver: str | None
    pypi: str | None
    runtime: str | None
    ptx: tuple[int, int] | None

    @property
    def names(self) -> frozenset[str]:
        """The targets it compiles for, as words."""
        return frozenset(target.name for target in self.sm)


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """The tables. `torch` is keyed by minor and `cuda` by tag, both in canonical order."""

    torch: Mapping[str, Torch]
    cuda: Mapping[str, Cuda]
    arch_names: Mapping[str, str]
    index: str

    def torch_index(self, torch: str, cuda: str) -> str | None:
        """Address of the package index that holds torch's `cuda` variant; None means PyPI."""
        return None if self.torch[torch].pypi == cuda else self.index.format(cuda=cuda)

    def releases(self, wheel: Wheel) -> tuple[str, ...]:
        """The release of each torch minor that a wheel serves."""
        return tuple(self.torch[minor].release for minor in dict.fromkeys(cell.torch for cell in wheel.cells))

    @property
    def tags(self) -> tuple[str, ...]:
        """Every CUDA tag that some torch was built for, `cpu` first."""
        return tuple(sorted({tag for row in self.torch.values() for tag in row.cuda}, key=cuda_key))

    @property
    def pythons(self) -> tuple[str, ...]:
        """Every Python that some torch was built for."""
        return tuple(sorted({one for row in self.torch.values() for one in row.python}, key=version_key))


def load(extra: Path | None = None, *, tables: Path = DATA) -> Facts:
    """The tables of that folder, with the rows of `extra` merged over them.

    Raises InputError when a file is missing, is no TOML, or holds a row that cannot be understood.
    """
    torch = _read(tables / "torch.toml")
    index = torch.pop("index", None)
    cuda = _read(tables / "cuda.toml")
    names = cast("dict[str, str]", _read(DATA / "arch.toml")["names"])
    if extra is not None:
        added = _read(extra)
        for key in added:
            if key not in ("torch", "cuda", "index"):
                raise _bad(extra, key, "no such table", did_you_mean(key, ("torch", "cuda", "index")))
        index = added.get("index", index)
        _merge(torch, added.get("torch", {}), extra, "torch")
        _merge(cuda, added.get("cuda", {}), extra, "cuda")
    file = extra or tables
    if not isinstance(index, str) or "{cuda}" not in index:
        raise _bad(file, "index", "must be an address that holds {cuda}", "Write https://HOST/whl/{cuda}.")
    return Facts(
        torch={minor: _torch(file, minor, torch[minor]) for minor in _ordered_minors(file, torch)},
        cuda={tag: _cuda(file, tag, cuda[tag]) for tag in _ordered_tags(file, cuda)},
        arch_names=names,
        index=index,
    )


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"The table of facts {path} cannot be read: {why}.",
            remedy="`facts` in the matrix names it, relative to the matrix's folder.",
        ) from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both one
        raise InputError(f"{path} is not TOML: {error}.", remedy="Correct that place in the file.") from error


def _merge(rows: dict[str, object], added: object, file: Path, table: str) -> None:
    if not isinstance(added, dict):
        raise _bad(file, table, "must be a table of rows", f'Write [{table}."NAME"] above each row.')
    for name, fields in added.items():
        old = rows.get(name, {})
        if not isinstance(fields, dict) or not isinstance(old, dict):
            raise _bad(file, f"{table}.{name}", "must be a row", f'Write [{table}."{name}"] and its fields.')
        rows[name] = {**old, **fields}


def _ordered_minors(file: Path, rows: Mapping[str, object]) -> list[str]:
    for minor in rows:
        if not MINOR.fullmatch(minor):
            raise _bad(file, f"torch.{minor}", "is no minor release", 'Name rows like [torch."2.11"].')
    return sorted(rows, key=version_key)


def _ordered_tags(file: Path, rows: Mapping[str, object]) -> list[str]:
    for tag in rows:
        if not TAG.fullmatch(tag):
            raise _bad(file, f"cuda.{tag}", "is no CUDA tag", "Name rows like [cuda.cu130].")
    return sorted(rows, key=cuda_key)


def _torch(file: Path, minor: str, row: object) -> Torch:
    fields = _fields(file, f"torch.{minor}", row, _TORCH_FIELDS, required=("release", "cuda", "python"))
    cuda = _words(file, f"torch.{minor}.cuda", fields["cuda"], re.compile(r"cpu|cu\d{3,}"))
    python = _words(file, f"torch.{minor}.python", fields["python"], PYTHON)
    release = cast("str", fields["release"])
    if not re.fullmatch(re.escape(minor) + r"\.\d+(\+[a-z0-9.]+)?", release):
        raise _bad(file, f"torch.{minor}.release", f"{release} is no release of {minor}", f"Write {minor}.0.")
    targets = cast("dict[str, object]", fields.get("sm", {}))
    return Torch(
        minor=minor,
        release=release,
        pypi=cast("str | None", fields.get("pypi")),
        cuda=tuple(sorted(cuda, key=cuda_key)),
        python=tuple(sorted(python, key=version_key)),
        cxx=cast("int | None", fields.get("cxx")),
        manylinux=cast("str | None", fields.get("manylinux")),
        cxx11_abi=cast("bool | None", fields.get("cxx11_abi")),
        cxx11_abi_of=cast("dict[str, bool]", fields.get("cxx11_abi_of", {})),
        sm={tag: _targets(file, f"torch.{minor}.sm.{tag}", words) for tag, words in targets.items()},
    )


def _cuda(file: Path, tag: str, row: object) -> Cuda:
    fields = _fields(file, f"cuda.{tag}", row, _CUDA_FIELDS, required=("minor", "sm"))
    minor = cast("str", fields["minor"])
    if tag != "cu" + minor.replace(".", ""):
        raise _bad(file, f"cuda.{tag}.minor", f'"{minor}" does not belong to {tag}', "Make the two agree.")
    return Cuda(
        tag=tag,
        minor=minor,
        sm=_targets(file, f"cuda.{tag}.sm", fields["sm"]),
        gcc=cast("int | None", fields.get("gcc")),
        driver=cast("str | None", fields.get("driver")),
        pypi=cast("str | None", fields.get("pypi")),
        runtime=cast("str | None", fields.get("runtime")),
        ptx=_isa(file, f"cuda.{tag}.ptx", cast("str | None", fields.get("ptx"))),
    )


def _isa(file: Path, key: str, stated: str | None) -> tuple[int, int] | None:
    if stated is None:
        return None
    match = re.fullmatch(r"(\d+)\.(\d+)", stated)
    if match is None:
        raise _bad(file, key, f'"{stated}" is no version of the PTX ISA', "Write it as 8.4.")
    return int(match[1]), int(match[2])


def _fields(
    file: Path, key: str, row: object, known: Mapping[str, type], *, required: tuple[str, ...]
) -> dict[str, object]:
    """The row as a mapping whose fields are known and of the right type."""
    fields = cast("dict[str, object]", row)
    for name, value in fields.items():
        if name not in known:
            raise _bad(file, f"{key}.{name}", "no such field", did_you_mean(name, list(known)))
        if type(value) is not known[name]:
            kind = known[name].__name__
            raise _bad(file, f"{key}.{name}", f"must be of TOML's type for {kind}", "See the built-in tables.")
    for name in required:
        if name not in fields:
            raise _bad(file, key, f"lacks `{name}`", f"Add `{name}`; the built-in tables show its form.")
    return fields


def _words(file: Path, key: str, words: object, form: re.Pattern[str]) -> set[str]:
    found = words if isinstance(words, list) else [words]
    for word in found:
        if not isinstance(word, str) or not form.fullmatch(word):
            raise _bad(file, key, f"{word!r} is not of the form {form.pattern}", "Correct that word.")
    return set(found)


def _targets(file: Path, key: str, words: object) -> tuple[arch.Arch, ...]:
    targets = [arch.parse(word) for word in sorted(_words(file, key, words, arch.WORD))]
    return tuple(sorted(target for target in targets if target is not None))


def _bad(file: Path, key: str, what: str, remedy: str) -> InputError:
    return InputError(f"{file}: {key}: {what}.", remedy=remedy)
