"""What a log tells of without suffering it: errors that are quoted, and those that a later attempt got over.

Both are about lines where a rule found its words. Such a line proves nothing, though it may tell of a version.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
FAILED = re.compile(r"(?i:\b(?:error|failed|fatal)\b)|Traceback")


def is_quoted(lines: Sequence[Line], index: int) -> bool:
    """Whether a line shows words of an error that did not happen there."""
    line = lines[index]
    if any(QUOTED.search(text) for text in (line.said, line.bare)):
        return True
    said = line.bare.strip()
    return len(said) >= SHORTEST and any(
        said in other.bare and re.search(r"\b(?:echo|printf)\b", other.bare)
        for other in lines[max(index - ECHOED, 0) : index]
    )


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
