"""What a log only shows: errors in source, documents, diffs, tests that passed, and sections of which nothing stops.

A line where a rule found its words proves nothing there, though it may tell of a version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wheelmill.explain_log import Line

ECHOED = 3  # lines below a command in which what it prints is looked for
SHORTEST = 12
QUOTED = re.compile(
    r"""(?x)
    ^\++\ (?:echo|printf|trap|grep|:)\b                                   # a shell's trace
    | ^[$>%]\ .*(?:\becho|\bprintf|\bgrep|\brg|--message|\s-m)\s+-?\S*['"]  # a command with words
    | ^[-+]\ *(?:\ {2}|\t|[#]|//)                                         # a line of a diff
    | ^(?:commit\ )?[0-9a-f]{7,40}\ (?:\([^)]*\)\ )?[A-Z][a-z]+\ \S+\ \S   # a log of commits
    | ^(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,12}\ (?:\([^)]*\)\ )?[a-z][\w./-]*(?:\([^)]*\))?!?:?\ \S+\ \S
    | ^[-*•]\ +(?:Fix|Add|Change|Handle|Document|Remove|Improve|Support|Avoid|Resolve|Known)\w*\b
    | ^[-*•]\ +[^"“`\n]{0,60}["“`]                                        # an item of a document
    | ^[A-Z][A-Z_]{2,}\ =\ [\[({]?["']                                     # a constant of a program
    | ^[-*•]\ [^\n]*\((?:before|formerly|previously|was):
    | ^(?:If|When|Should)\b[^"“`\n]*["“`]                                 # advice
    | ^(?:[\w.-]+/)*[\w.-]+\.(?:md|rst|txt|html|adoc)[:-]\d+[:-](?!\d+:)   # what grep finds in a document,
    | ^(?:[\w.-]+/)*[\w.-]+\.(?:md|rst|txt|html|adoc):\d+(?::\d+)?\        # or a linter
    | ^(?:[\w.-]+/)*[\w.-]+\.(?:pyi?|sh|toml|cfg|ya?ml|json|cmake|c|cc|cpp|cxx|cu|cuh|h|hpp)
        [:-]\d+[:-](?:\s{2}|[^\s\d])                                      # or in a source, with its indentation
    | ^>\s{3,}\S                                                          # pytest's failing line of source
    | ^\s*E?\s*(?:Regex|Input|Expected\ regex|Actual\ message):\ ['"]     # what pytest.raises compared
    | "(?:evidence|expected|hints?|examples?|patterns?)":\ ?[\["]          # a report about errors
    | \bpytest\.raises\(|\bassertRaises|\bside_effect=|\bmatch=r?["']|\bcontaining\ ["'`]   # what a test expects
    | (?:^|\s)(?:PASSED|SKIPPED|XFAIL|XPASS)(?:\s|$)|^\s*SKIP(?:PED)?\b   # the name or reason of a test
    | ^(?:test\ )?[\w:./\[\]-]+\ \.\.\.\ ok$|Test\s+[#]\d+:.*\bPassed\b|"outcome":\ ?"(?:passed|skipped)"
    | ^--\                                                                # CMake's report of what it looked for
    """
)
RAISED = re.compile(r"(?:\w+\.)*(?P<name>[A-Z]\w*)(?::|$)")
FRAME = re.compile(r'File "[^"]+", line \d+|\S{1,300}:\d+: in \S+$')
BLOCK = re.compile(r"^_{3,} \S.* _{3,}$")  # what pytest puts above a test's source
GIVEN = re.compile(r"[a-z_]\w* = ")  # and a test's arguments
DEEPEST = 60  # lines that are looked through, for where a traceback, a section or a hunk begins
CMAKE_WARNING = re.compile(r"CMake (?:Deprecation |Author )?Warning\b")
SECTION = re.compile(r"(?:={3,}|-{3,}|_{3,}) (?P<name>\S.*?) (?:={3,}|-{3,}|_{3,})$")
ASSERTED = re.compile(r"E\s+(?:AssertionError: )?(?:Tensor-likes are not close|Mismatched elements)")
CARETS = re.compile(r"[\s|]*\^[~^]*\s*$")  # what a linter or a parser puts below a line of source
HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+|\s*- Snapshot\b")
STARTED, ENDED = "[ RUN      ] ", ("[       OK ] ", "[  FAILED  ] ")  # googletest
LOCALS = "─ locals ─"  # of rich
UNITTEST = re.compile(r"\w+ \([\w.]+\) \.\.\. ")


def is_quoted(lines: Sequence[Line], index: int) -> bool:
    """Whether a line shows words of an error that did not happen there."""
    line = lines[index]
    if any(QUOTED.search(text) for text in (line.said, line.bare)):
        return True
    if any(shown(lines, index) for shown in (_is_source, _is_aside, _is_of_a_diff, _is_of_a_good_test)):
        return True
    said = line.bare.strip()
    return len(said) >= SHORTEST and any(
        said in other.bare and re.search(r"\b(?:echo|printf)\b", other.bare)
        for other in lines[max(index - ECHOED, 0) : index]
    )


def _back(lines: Sequence[Line], index: int, within: Callable[[Line], bool]) -> Line | None:
    """The nearest line above that is not `within` what this one is of; None where this one is not."""
    at = index
    while at > max(index - DEEPEST, 0) and within(lines[at]):
        at -= 1
    return lines[at] if at < index else None


def _is_source(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is the source that a traceback, pytest or a linter prints, or a value that rich does."""
    said = lines[index].said
    above = lines[index - 1].said if index else ""
    frame = FRAME.search(above)
    if frame and said.startswith(above[: frame.start()] + "  ") and not RAISED.match(said.strip()):
        return True
    below = lines[index + 1].said if index + 1 < len(lines) else ""
    if not frame and said[:1].isspace() and CARETS.match(below) and 'File "' not in said:
        return True
    block = _back(lines, index, lambda one: one.said.startswith(("    ", ">  ")) or bool(GIVEN.match(one.said)))
    if block and not lines[index].text.startswith("E ") and BLOCK.match(block.said):
        return True
    box = _back(lines, index, lambda one: one.text.startswith("│") and LOCALS not in one.text)
    return box is not None and LOCALS in box.text


def _is_aside(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is within a section of which nothing stops: CMake's warnings, pytest's, what is run again, and
    what a test printed whose own failure is another one.
    """
    head = _back(lines, index, lambda one: one.said.startswith("  "))
    if head and CMAKE_WARNING.match(head.said):
        return True
    above = lines[max(index - DEEPEST, 0) : index]
    sections = [match["name"] for line in above if (match := SECTION.match(line.said))]
    if sections and sections[-1].startswith("Captured "):
        return any(ASSERTED.match(line.text) for line in above)
    heads = [line.said.strip("= ") for line in above if line.said.startswith("===") and line.said.endswith("===")]
    return bool(heads) and heads[-1] in {"warnings summary", "RERUNS"}


def _is_of_a_diff(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is within a hunk of a diff, or a snapshot that a test compares."""
    head = _back(lines, index, lambda one: one.said.startswith((" ", "+", "-")) and not HUNK.match(one.said))
    return head is not None and bool(HUNK.match(head.said))


def _is_of_a_good_test(lines: Sequence[Line], index: int) -> bool:
    """Whether a test printed a line and passed, as googletest or unittest tell."""
    for line in reversed(lines[max(index - DEEPEST, 0) : index]):
        if line.said.startswith(ENDED):
            break
        if line.said.startswith(STARTED):
            name = line.said.removeprefix(STARTED)
            end = next((one.said for one in lines[index:] if one.said.startswith(ENDED)), "")
            return end.startswith(ENDED[0] + name)
    return index + 1 < len(lines) and lines[index + 1].said == "ok" and bool(UNITTEST.match(lines[index].said))
