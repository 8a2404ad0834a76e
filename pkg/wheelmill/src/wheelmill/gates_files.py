"""The files that people write or keep for the gates: suppressions of compute-sanitizer's reports, accepted times."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from wheelmill.errors import InputError
from wheelmill.store import digest, file_sha256, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from wheelmill.gates import Report

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Suppression(_Strict):
    tool: Literal["memcheck", "racecheck", "initcheck", "synccheck"] | None = None
    kernel: str | None = None
    message: str | None = None
    reason: str = Field(pattern=r"\S")

    @model_validator(mode="after")
    def _says_which(self) -> _Suppression:
        if self.kernel is None and self.message is None:
            raise ValueError("name a kernel or a message, or it would suppress everything")
        return self


class _Suppressions(_Strict):
    suppress: list[_Suppression]


class _Times(BaseModel):
    median: Annotated[float, Field(gt=0)]
    values: Annotated[list[float], Field(min_length=8)]


class _Operator(BaseModel):
    sample: str
    milliseconds: _Times


class _Baseline(BaseModel):
    version: Literal[1]
    card: str
    operators: dict[str, _Operator]


def suppressions(path: Path) -> tuple[dict[str, str | None], ...]:
    """Read `[[suppress]]` tables. Raises InputError that names the key."""
    try:
        found = _Suppressions.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: the suppressions cannot be read: {_first(error)}",
            remedy='write [[suppress]] tables of kernel = "GLOB" or message = "GLOB", tool where it is one tool\'s, '
            'and reason = "TEXT"',
        ) from error
    return tuple(one.model_dump() for one in found.suppress)


def baseline(path: Path) -> dict[str, Any]:
    """Read accepted times of one card. Raises InputError."""
    try:
        return _Baseline.model_validate_json(path.read_bytes()).model_dump()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: the accepted times cannot be read: {_first(error)}", remedy="write it with --accept"
        ) from error


def accept(made: Report, path: Path) -> None:
    """Write what this run and card measured as what later times are held against. Raises InputError without any."""
    rows = [row for row in made.rows if row.gate == "bench" and row.result == "pass" and made.is_of_now(row)]
    if not rows:
        raise InputError("no time was measured that could be accepted", remedy="run the bench gate on a GPU")
    names = ("sample", "milliseconds", "reference", "of_reference")
    operators = {row.operator: {name: row.found[name] for name in names} for row in rows}
    about = {"version": 1, "card": rows[0].found["card"], "wheel": made.file, "sha256": made.sha256}
    write_json(path, {**about, "torch": rows[0].where["torch"], "operators": operators})


def content(paths: Iterable[Path]) -> str:
    """Names what these files and folders hold: rows of an earlier run are of this content alone."""
    files = [
        (str(file.relative_to(path)), file_sha256(file))
        for path in paths
        for file in sorted([path] if path.is_file() else path.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    ]
    return digest(files)


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        one = error.errors()[0]
        return f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
    return str(error)
