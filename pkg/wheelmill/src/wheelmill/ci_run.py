"""One stage of one job: a verb called for each wheel of the group, and what became of each."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import ci_limits, ci_stage, index, matrix, proc
from wheelmill.ci_stage import Outcome, Stage
from wheelmill.errors import InputError, MissingError
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from wheelmill.ci_secrets import Mask
    from wheelmill.ci_stage import Result, StageName

LINES = 20
WIDEST = 400  # characters of a line of an excerpt
TOLD = "error: "
REMEDY = "  what to do: "
BUILD, AUDIT = "build.json", "audit.sarif"
LEVELS = ("error", "warning", "note", "none")
SUMMING = re.compile(r"\d+ of \d+ wheels failed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What one stage is given. `tell` gets each line of the verb's output, masked."""

    stage: StageName
    id: str
    wheels: tuple[str, ...]
    matrix: Path
    dist: Path
    out: Path
    options: tuple[str, ...]
    mask: Mask
    tell: Callable[[str], None]
    run: int = 0
    attempt: int = 1


def written(job: Job) -> list[Stage]:
    """What the job's stage file tells so far."""
    path = ci_stage.path_of(job.out, job.stage, job.id)
    return [ci_stage.read(path)] if path.exists() else []


def run(job: Job) -> int:
    """Call the stage's verb for each wheel, and return the worst of the exit codes.

    The stage file is written before the first wheel and after each, so a job that is killed has told what it did.
    """
    found = files(job.dist)
    done: list[Outcome] = []
    worst = 0
    _keep(job, done)
    try:
        for wheel in job.wheels:
            outcome, code = _wheel(job, wheel, found)
            done.append(outcome)
            worst = max(worst, code)
            _keep(job, done)
    except KeyboardInterrupt:
        _keep(job, done, "the job was stopped before this wheel was done")
        raise
    return worst


def _keep(job: Job, done: Sequence[Outcome], why: str = "the job ended before this wheel was done") -> None:
    rest = [Outcome(id=wheel, result="missing", cause=why) for wheel in job.wheels[len(done) :]]
    stage = Stage(stage=job.stage, id=job.id, run=job.run, attempt=job.attempt, wheels=(*done, *rest))
    ci_stage.write(stage, job.out)


def files(dist: Path) -> dict[str, Path]:
    """The wheel files of a folder by wheel id, as their manifests say; one without a manifest has no id."""
    found: dict[str, Path] = {}
    for path in sorted(dist.rglob("*.whl")):
        try:
            found[index.manifest_of(path).wheel] = path
        except InputError:
            continue
    return found


def _wheel(job: Job, wheel: str, found: dict[str, Path]) -> tuple[Outcome, int]:
    file = found.get(wheel)
    if why := _of_no_concern(job, wheel):
        return Outcome(id=wheel, result="skipped", cause=why), 0
    if job.stage != "build" and file is None:
        job.tell(f"{wheel}: there is no file of it in {job.dist}")
        cause = f"{job.dist} holds no file of it: its build failed, or the artifact was not downloaded"
        return Outcome(id=wheel, result="missing", cause=cause), MissingError.exit_code
    began = time.monotonic()
    code, said, text = _call(job, wheel, file)
    if job.stage == "build":
        file = files(job.dist).get(wheel) if code == 0 else None
        if code == 0 and file is None:
            code, said = 1, f"the build ended well, and {job.dist} holds no file of it"
    outcome = Outcome(
        id=wheel,
        file=file.name if file else None,
        sha256=file_sha256(file) if file else None,
        result=result_of(code),
        seconds=round(time.monotonic() - began, 1),
        cause=said if code else "",
        excerpt=text if code else "",
    )
    return outcome, code


def _of_no_concern(job: Job, wheel: str) -> str | None:
    """Why the stage is not for that wheel; None where it is."""
    for_cpu = wheel.startswith("cpu-")
    if job.stage == "gpu" and for_cpu:
        return "it is for the CPU"
    if job.stage == "cpu" and not for_cpu:
        return "it is for GPUs, where its operators are called on the CPU too"
    if job.stage == "cpu" and matrix.load(job.matrix).operators is None:
        return "the matrix names no operators"
    return None


def result_of(code: int) -> Result:
    """3 means that something needed is missing here, such as a GPU: nothing is known of the wheel."""
    return "pass" if code == 0 else "missing" if code == MissingError.exit_code else "fail"


def _call(job: Job, wheel: str, file: Path | None) -> tuple[int, str, str]:
    """(exit code, cause, excerpt) of the verb. Its output goes to `tell` and to a log beside the stage file."""
    log = job.out / f"{job.stage}-{ci_limits.safe(job.id)}.{ci_limits.safe(wheel)}.log"
    with tempfile.TemporaryDirectory() as folder, log.open("w", encoding="utf-8") as out:
        arguments, answer = _arguments(job, wheel, file, Path(folder))
        lines: deque[str] = deque(maxlen=1000)

        def each(line: str) -> None:
            shown = job.mask(ci_stage.plain(line))
            lines.append(shown)
            out.write(shown + "\n")
            job.tell(shown)

        status = proc.follow([sys.executable, "-m", "wheelmill", *arguments], each=each, output=answer)
        # A status below 0 is the signal that ended it, as a shell counts them.
        code = status if status >= 0 else 128 - status
        said = _answered(job.stage, Path(folder)) if code else []
    text = list(lines)
    cause = job.mask(ci_stage.plain(cause_of(said or _error(text), code)))
    return code, _clipped(cause), excerpt_of(text)


def _arguments(job: Job, wheel: str, file: Path | None, folder: Path) -> tuple[list[str], Path | None]:
    """The verb with its arguments, and the file that takes its JSON, where it is asked for any."""
    given = ["--matrix", str(job.matrix)]
    match job.stage:
        case "build":
            build = ["build", wheel, *given, "--no-prove", "--out", str(job.dist), "--json", *job.options]
            return build, folder / BUILD
        case "audit":
            sarif = ["--sarif", str(folder / AUDIT)]
            return ["audit", str(file), *given, "--expect", wheel, *sarif, *job.options], None
        case "cover":
            return ["cover", str(file), *given, *job.options], None
        case "cpu":
            return ["test", str(file), *given, "--device", "cpu", *job.options], None
        case "gpu":
            return ["test", str(file), *given, "--require-gpu", *job.options], None


def _answered(stage: StageName, folder: Path) -> list[str]:
    """The lines of the error that the verb told as JSON or SARIF; none where it told none."""
    try:
        match stage:
            case "build":
                return str(json.loads((folder / BUILD).read_bytes())["wheels"][0]["error"] or "").splitlines()
            case "audit":
                return _found(json.loads((folder / AUDIT).read_bytes())["runs"][0]["results"])
            case _:
                return []
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _found(results: Sequence[dict[str, Any]]) -> list[str]:
    """The first finding of the gravest kind, of those that are not waived."""
    counted = [one for one in results if not one.get("suppressions")]
    worst = min(counted, key=lambda one: LEVELS.index(one["level"]))
    return [f"{worst['ruleId']}: {' '.join(worst['message']['text'].split())}"]


def _error(lines: Sequence[str]) -> list[str]:
    """What the command line's own error says, without its remedy; else the last line, such as a traceback's."""
    start = max((at for at, line in enumerate(lines) if line.startswith(TOLD)), default=None)
    if start is None:
        return [line for line in lines if line.strip()][-1:]
    told = [lines[start].removeprefix(TOLD), *lines[start + 1 :]]
    end = next((at for at, line in enumerate(told) if line.startswith(REMEDY)), len(told))
    return told[1:end] if SUMMING.match(told[0]) and end > 1 else told[:end]


def cause_of(said: Sequence[str], code: int) -> str:
    """One line that says why: an error's first, with the first complaint of what it quotes."""
    if not said:
        return f"it ended with status {code} and said nothing"
    first = said[0].strip()
    quoted = proc.complaint("\n".join(said[1:])) if first.endswith(":") else None
    return f"{first} {quoted}" if quoted else first


def excerpt_of(lines: Sequence[str]) -> str:
    return "\n".join(_clipped(line) for line in [line for line in lines if _says(line)][-LINES:])


def _says(line: str) -> bool:
    """Whether a line holds anything for a reader: not one that folds a log."""
    return bool(line.strip()) and not line.startswith(("::group::", "::endgroup::"))


def _clipped(line: str) -> str:
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def gathered(stages: Sequence[Path]) -> Iterator[Stage]:
    """Every stage file below the folders. Raises InputError for a folder that is not there, or a file that is none."""
    for folder in stages:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder", remedy="name the folders into which the reports were downloaded")
        for path in sorted(folder.rglob("*.json")):
            # What lies beside a wheel is none, whatever the project's name.
            if path.name.startswith(tuple(f"{name}-" for name in ci_stage.STAGES)) and ".whl." not in path.name:
                yield ci_stage.read(path)
