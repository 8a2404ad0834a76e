"""What one job did: a stage file's content, and where it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wheelmill import ci_limits
from wheelmill.errors import InputError
from wheelmill.store import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

StageName = Literal["build", "audit", "cover", "cpu", "gpu"]
Result = Literal["pass", "fail", "missing", "skipped"]
# Colours and other controls, which a terminal or a page would act on.
# Also what turns the direction of a text around, or breaks its lines where no reader sees it.
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LARGEST = 32 << 20  # bytes of a stage file; what `run` writes of a wheel has some 10 KB
WheelId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=250)]
STAGES: tuple[StageName, ...] = ("build", "audit", "cover", "cpu", "gpu")


def plain(text: str) -> str:
    """The text without controls, line breaks and tabs apart."""
    return CONTROL.sub("", text)


class Outcome(BaseModel):
    """What became of a wheel. `cause` says why it did not pass, and `excerpt` holds the end of the log."""

    model_config = ConfigDict(frozen=True)

    id: WheelId
    file: str | None = None
    sha256: str | None = None
    result: Result
    seconds: float = 0.0
    cause: str = ""
    excerpt: str = ""


class Stage(BaseModel):
    """One stage of one job. `run` and `attempt` are GitHub's, 0 and 1 elsewhere: a later one replaces an earlier."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    stage: StageName
    id: str
    run: int = 0
    attempt: int = 1
    wheels: tuple[Outcome, ...] = Field(default=())


def path_of(folder: Path, stage: StageName, job: str) -> Path:
    return folder / f"{stage}-{ci_limits.safe(job)}.json"


def write(stage: Stage, folder: Path) -> Path:
    """Write the stage file, in a folder that git takes for no source."""
    if not (folder / ".gitignore").exists():
        write_atomic(folder / ".gitignore", "*\n")
    path = path_of(folder, stage.stage, stage.id)
    write_atomic(path, stage.model_dump_json(indent=1) + "\n")
    return path


def reason_of(error: Exception) -> str:
    """One line that says what is wrong with a file, with the key where there is one."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return plain(f"{where}: {first['msg']}" if where else first["msg"])
    return plain(str(error).splitlines()[0])


def _bytes(path: Path) -> bytes:
    if (size := path.stat().st_size) > LARGEST:
        raise ValueError(f"it has {size} bytes, and {LARGEST} are the most that one may have")
    return path.read_bytes()


def read(path: Path) -> Stage:
    """Raises InputError where the file is not what a stage writes."""
    try:
        return Stage.model_validate_json(_bytes(path))
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise InputError(
            f"{path} is no report of a stage, so what that job did is not known: {reason}",
            remedy="name folders that hold what `wheelmill ci run` wrote; download the artifact again",
        ) from error
