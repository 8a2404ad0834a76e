"""What a log tells of and its program got over: errors after which a later attempt, or another way, went well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill.explain_told import DEEPEST, ECHOED, RAISED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.explain_log import Line

RETRIED = re.compile(r"(?i:\bretry(?:ing)?\b|\battempt (?:\d|#)|\btrying again\b|\bsecond (?:try|attempt)\b)")
DONE = re.compile(
    r"Successfully (?:built|installed) |Installed \d+ package|(?i:\bsucceeded\b|\bsuccessful\b|build success|"
    r"training (?:finished|complete)|^=* ?\d+ passed(?! *, *\d+ (?:failed|error)))"
)
TRACEBACK = "Traceback (most recent call last)"
# A program that says it goes on without something, and what it then does or ends with that is another matter.
HANDLED = re.compile(r"Warning:|\bWARN(?:ING)?\b|(?i:\bcaught\b|\bfall(?:s|ing)? ?back\b|\bhalving\b|level\W{1,4}warn)")
AFTER = re.compile(r"(?i)\bcaught\b|\bhalving\b|\bretrying\b")  # what it says below, with HANDLED's words
PROGRESS = re.compile(r"(?i)\b(?:epoch|step|iter(?:ation)?)\b[ :=#]{0,3}\d+")
WORSE = re.compile(r"(?i)level\W{1,4}(?:error|crit|fatal)")
UNRELATED = frozenset(
    {
        *("KeyError", "IndexError", "FileNotFoundError", "ZeroDivisionError", "FloatingPointError", "JSONDecodeError"),
        *("UnicodeDecodeError", "StopIteration", "OperationalError", "HTTPError", "ConnectionError"),
        "ConnectionRefusedError",
    }
)
FAILED = re.compile(r"(?i:\b(?:error|failed|fatal)\b)|Traceback")
COMPLAINT = re.compile(r"(?i)\b(?:error|fatal)\b")
INSTALLED = re.compile(r"Successfully installed |Installed \d+ package")
# A status that is let go, and a step of BuildKit.
IGNORED = re.compile(r"^\+ true$|\(ignored\)$|^\.\.\.ignoring$|\(optional\)$")
STEP = re.compile(r"#(\d+) ")


def got_over(lines: Sequence[Line], index: int) -> bool:
    """Whether what failed at a line kept the program from nothing."""
    return any(over(lines, index) for over in (_survived, _went_well, _ignored, _of_a_good_step))


def _went_well(lines: Sequence[Line], index: int) -> bool:
    """Whether what a compiler complained of at a line kept nothing from being installed."""
    if not COMPLAINT.search(lines[index].said):
        return False
    later = [line.said for line in lines[index + 1 :]]
    return any(map(INSTALLED.match, later)) and not any(FAILED.search(said) or "Error" in said for said in later)


def _survived(lines: Sequence[Line], index: int) -> bool:
    """Whether a program says at a line that it goes on without what failed, and then fails of something else."""
    if not any(HANDLED.search(lines[at].said) for at in _introduced(lines, index)):
        return False
    before, progressed = None, False
    for line in lines[index + 1 :]:
        start = line.said.find(TRACEBACK)
        progressed |= bool(PROGRESS.search(line.said))
        if WORSE.search(line.said):
            return True
        if start >= 0:
            before = line.said[:start]
        elif before is not None and line.said.startswith(before):
            raised = RAISED.match(line.said, len(before))
            if raised and (progressed or raised["name"] in UNRELATED):
                return True
    return False


def _ignored(lines: Sequence[Line], index: int) -> bool:
    """Whether the status of what failed was let go, and something else failed afterwards."""
    near = range(index, min(index + ECHOED + 1, len(lines)))
    at = next((one for one in near if IGNORED.search(lines[one].said)), None)
    return at is not None and any(FAILED.search(line.said) or "***" in line.said for line in lines[at + 1 :])


def _of_a_good_step(lines: Sequence[Line], index: int) -> bool:
    """Whether a complaint is of a step of BuildKit that was done, and another one failed."""
    step = STEP.match(lines[index].text)
    if step is None or not (COMPLAINT.search(lines[index].said) or HANDLED.search(lines[index].said)):
        return False
    later = [line.text for line in lines[index + 1 :]]
    done = any(text.startswith(f"#{step[1]} DONE") for text in later)
    return done and any(re.match(r"#\d+ ERROR|ERROR: failed to", text) for text in later)


def _introduced(lines: Sequence[Line], index: int) -> Iterator[int]:
    """The line, and what stands above its traceback or its text as the warning that it is of."""
    yield index
    yield from (at for at in range(index + 1, min(index + ECHOED, len(lines))) if AFTER.search(lines[at].said))
    for at in range(index - 1, max(index - ECHOED, 0) - 1, -1):
        if lines[at].said.endswith("Warning:"):
            yield at
    for at in range(index - 1, max(index - DEEPEST, 0), -1):
        if TRACEBACK in lines[at].said:
            yield at - 1
            return
        if not lines[at].said.startswith("  "):
            return


def overcome(lines: Sequence[Line]) -> int:
    """The last line, by its index, after which it was tried again and went well; -1 where there is none."""
    found = retried = -1
    for index, line in enumerate(lines):
        if retried >= 0 and DONE.search(line.said) and not FAILED.search(line.said):
            found = retried
        elif RETRIED.search(line.said):
            retried = index
        elif FAILED.search(line.said):
            retried = -1
    return found
