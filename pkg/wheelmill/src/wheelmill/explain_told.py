"""What a log tells of without suffering it: errors that are quoted, and those that a later attempt got over.

Both are about lines where a rule found its words. Such a line proves nothing, though it may tell of a version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.explain_log import Line

ECHOED = 3  # lines below a command in which what it prints is looked for
SHORTEST = 12
QUOTED = re.compile(
    r"""(?x)
    ^\++\ (?:echo|printf|trap|grep|:)\b                                   # a shell's trace
    | ^[$>%]\ .*(?:\becho|\bprintf|\bgrep|\brg|--message|\s-m)\s+-?\S*['"]  # a command with words
    | ^[-+]\ *(?:\ {2}|\t|[#]|//)                                         # a line of a diff
    | ^(?:commit\ )?[0-9a-f]{7,40}\ (?:\([^)]*\)\ )?[A-Z][a-z]+\ \S+\ \S   # a log of commits
    | ^[-*•]\ +(?:Fix|Add|Change|Handle|Document|Remove|Improve|Support|Avoid|Resolve|Known)\w*\b
    | ^[-*•]\ +[^"“`\n]{0,60}["“`]                                        # an item of a document
    | ^[A-Z][A-Z_]{2,}\ =\ [\[({]?["']                                     # a constant of a program
    | ^[-*•]\ [^\n]*\((?:before|formerly|previously|was):
    | ^(?:If|When|Should)\b[^"“`\n]*["“`]                                 # advice
    | ^(?:[\w.-]+/)*[\w.-]+\.(?:md|rst|txt|html|adoc)[:-]\d+[:-](?!\d+:)   # what grep finds in a document,
    | ^(?:[\w.-]+/)*[\w.-]+\.(?:pyi?|sh|toml|cfg|ya?ml|json|cmake|c|cc|cpp|cxx|cu|cuh|h|hpp)
        [:-]\d+[:-](?:\s{2}|[^\s\d])                                      # or in a source, with its indentation
    | ^>\s{3,}\S                                                          # pytest's failing line of source
    | "(?:evidence|expected|hints?|examples?|patterns?)":\ ?[\["]          # a report about errors
    | \bpytest\.raises\(|\bassertRaises|\bside_effect=|\bmatch=r?["']|\bcontaining\ ["'`]   # what a test expects
    | (?:^|\s)(?:PASSED|SKIPPED|XFAIL|XPASS)(?:\s|$)|^\s*SKIP(?:PED)?\b   # the name or reason of a test
    | ^(?:test\ )?[\w:./\[\]-]+\ \.\.\.\ ok$|Test\s+[#]\d+:.*\bPassed\b|"outcome":\ ?"(?:passed|skipped)"
    | ^--\                                                                # CMake's report of what it looked for
    """
)
RETRIED = re.compile(r"(?i:\bretry(?:ing)?\b|\battempt (?:\d|#)|\btrying again\b|\bsecond (?:try|attempt)\b)")
DONE = re.compile(
    r"Successfully (?:built|installed) |Installed \d+ package|(?i:\bsucceeded\b|\bsuccessful\b|build success|"
    r"training (?:finished|complete)|^=* ?\d+ passed(?! *, *\d+ (?:failed|error)))"
)
TRACEBACK = "Traceback (most recent call last)"
FRAME = re.compile(r'File "[^"]+", line \d+|\S{1,300}:\d+: in \S+$')
BLOCK = re.compile(r"^_{3,} \S.* _{3,}$")  # what pytest puts above a test's source
DEEPEST = 60  # lines of a traceback that are looked through
# A program that says it goes on without something, and what it then does or ends with that is another matter.
HANDLED = re.compile(r"Warning:|\bWARN(?:ING)?\b|(?i:\bcaught\b|\bfall(?:s|ing)? ?back\b|\bhalving\b)")
PROGRESS = re.compile(r"(?i)\b(?:epoch|step|iter(?:ation)?)\b[ :=#]{0,3}\d+")
RAISED = re.compile(r"(?:\w+\.)*(?P<name>[A-Z]\w*)(?::|$)")
UNRELATED = {
    *("KeyError", "IndexError", "FileNotFoundError", "ZeroDivisionError", "FloatingPointError", "JSONDecodeError"),
    *(
        "UnicodeDecodeError",
        "StopIteration",
        "OperationalError",
        "HTTPError",
        "ConnectionError",
        "ConnectionRefusedError",
    ),
}
FAILED = re.compile(r"(?i:\b(?:error|failed|fatal)\b)|Traceback")
COMPLAINT = re.compile(r"(?i)\b(?:error|fatal)\b")
INSTALLED = re.compile(r"Successfully installed |Installed \d+ package")
# Sections of which nothing stops: CMake's warnings, pytest's, and what a test printed whose own failure is another one.
CMAKE_WARNING = re.compile(r"CMake (?:Deprecation |Author )?Warning\b")
SECTION = re.compile(r"(?:={3,}|-{3,}|_{3,}) (?P<name>\S.*?) (?:={3,}|-{3,}|_{3,})$")
ASSERTED = re.compile(r"E\s+(?:AssertionError: )?(?:Tensor-likes are not close|Mismatched elements)")


def is_quoted(lines: Sequence[Line], index: int) -> bool:
    """Whether a line shows words of an error that did not happen there."""
    line = lines[index]
    if any(QUOTED.search(text) for text in (line.said, line.bare)):
        return True
    if _is_source(lines, index) or _is_aside(lines, index):
        return True
    said = line.bare.strip()
    return len(said) >= SHORTEST and any(
        said in other.bare and re.search(r"\b(?:echo|printf)\b", other.bare)
        for other in lines[max(index - ECHOED, 0) : index]
    )


def _is_source(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is the source that a traceback or pytest prints, not what was raised."""
    said = lines[index].said
    above = lines[index - 1].said if index else ""
    frame = FRAME.search(above)
    if frame and said.startswith(above[: frame.start()] + "  ") and not RAISED.match(said.strip()):
        return True
    at = index
    while at > max(index - DEEPEST, 0) and lines[at].said.startswith(("    ", ">  ")):
        at -= 1
    return at < index and not lines[index].text.startswith("E ") and bool(BLOCK.match(lines[at].said))


def _is_aside(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is within a section of which nothing stops."""
    at = index
    while at > max(index - DEEPEST, 0) and lines[at].said.startswith("  "):
        at -= 1
    if at < index and CMAKE_WARNING.match(lines[at].said):
        return True
    above = lines[max(index - DEEPEST, 0) : index]
    section = next((match["name"] for line in reversed(above) if (match := SECTION.match(line.said))), "")
    if section.startswith("Captured "):
        return any(ASSERTED.match(line.text) for line in above)
    return section == "warnings summary"


def got_over(lines: Sequence[Line], index: int) -> bool:
    """Whether what failed at a line kept the program from nothing."""
    return _survived(lines, index) or _went_well(lines, index)


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
        if start >= 0:
            before = line.said[:start]
        elif before is not None and line.said.startswith(before):
            raised = RAISED.match(line.said, len(before))
            if raised and (progressed or raised["name"] in UNRELATED):
                return True
    return False


def _introduced(lines: Sequence[Line], index: int) -> Iterator[int]:
    """The line, and what stands above its traceback or its text as the warning that it is of."""
    yield index
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
        if RETRIED.search(line.said):
            retried = index
        elif FAILED.search(line.said):
            retried = -1
        elif retried >= 0 and DONE.search(line.said):
            found = retried
    return found
