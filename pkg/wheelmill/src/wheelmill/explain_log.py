"""A failure's log, read once in pieces: the lines that may tell, with their numbers and without what tools put around.

A small log is kept whole. Of a large one the head, the end, and what lies around each line with an error are kept,
each shape of line only so often, so that neither time nor memory grows with what repeats.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

from wheelmill import explain_past, explain_text, explain_told
from wheelmill.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelmill.explain_text import Text

PIECE = 4 << 20
WHOLE = 2 << 20  # a log up to this size is kept as it is
HEAD, END, MIDDLE = 128 << 10, 512 << 10, 1 << 20
AROUND = 12 << 10  # bytes kept before and after a line with an error
SAME = 6  # lines of one shape that are kept around
SHAPES = 50_000
LONGEST = 8000  # characters of a line
# A line that tells of a failure has one of these, or stands near one that has; a file or test named for errors has
# none. Each costs a pass over the log, a quick one while it begins with letters that are the same in every match.
MARKS = (re.compile(rb"rror(?![\w.,/-])(?<!-Werror)"), re.compile(rb"ERROR(?!\w)"))
DIGITS = b"0123456789"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as PowerShell's > writes
# How files begin that are given by mistake.
KINDS = {
    b"\x7fELF": (
        "a library or program",
        "give what it printed; `--import NAME` imports a package, and `wheelmill audit WHEEL` reads its libraries",
    ),
    b"PK\x03\x04": (
        "a zip archive",
        "unpack it: `unzip -p FILE | wheelmill explain -`; a wheel is looked at by `wheelmill audit`",
    ),
    b"\x1f\x8b": ("compressed by gzip", "unpack it: `zcat FILE | wheelmill explain -`"),
    b"BZh": ("compressed by bzip2", "unpack it: `bzcat FILE | wheelmill explain -`"),
    b"\xfd7zXZ": ("compressed by xz", "unpack it: `xzcat FILE | wheelmill explain -`"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it: `zstdcat FILE | wheelmill explain -`"),
}
# What a stream may put before each line.
STREAM = re.compile(r"\(\w+ pid=\d+\) |(?=[^ ])[^\n\"'`=]{1,60}?(?:[:\])|] |> )")
MASKED = str.maketrans("0123456789", "0" * 10)
BESIDE, ALIKE = 6, 4  # lines before and after, and how many of them begin alike
CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
LANGUAGES = Path(__file__).parent / "tables" / "languages.toml"
# What CI runners, BuildKit, Compose and ninja put before a line.
PREFIX = re.compile(
    r"""(?x)
    (?:[^\t]{1,80}\t[^\t]{0,80}\t(?=\d{4}-))?                            # gh run view --log
    (?:[\w.-]{1,40}\ +\|\ )?                                            # a service of Compose
    (?:\[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?\ ?
      |\d\d:\d\d:\d\d(?:\.\d+)?\ +                                        # Jenkins
      |\d\d[OE][ +]\ ?                                                   # GitLab
      |\#\d+\ (?:\d+\.\d+\ ?)?                                           # BuildKit, and where it sums up
      |\d{1,4}\.\d{1,3}\ (?=\ |[A-Z/])
    ){0,4}
    (?:\#\#\[\w+\])?
    (?:\[gw\d+\]\ )?(?:E\ {2,})?                                         # xdist, pytest
    """
)
# What a tool draws around text that it has wrapped.
FRAME = re.compile(r"^\s*(?:[│|╭╰├─>\u00d7]+\s*)*(?:E\s{2,})?|\s*[│|]?\s*$")


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is quoted. `said` is without prefixes and in English, `bare` without frames too.

    `breaks` says that nothing follows it.
    """

    number: int
    text: str
    said: str
    bare: str
    breaks: bool = False


@cache
def _foreign() -> tuple[tuple[bytes, re.Pattern[str], str], ...]:
    """(what such a message always has, its pattern, what it is in English) of tables/languages.toml."""
    rows = []
    for english, messages in tomllib.loads(LANGUAGES.read_text(encoding="utf-8")).items():
        for message in messages:
            key = max(message.split("{}"), key=len).encode()
            rows.append((key, re.compile(re.escape(message).replace(r"\{\}", r"(\S+)")), english.replace("{}", r"\1")))
    return tuple(rows)


def _lines(data: bytes, number: int) -> Iterator[Line]:
    """The lines of a piece whose first has that number. What a carriage return overwrote is a line of its own."""
    foreign = [(pattern, english) for key, pattern, english in _foreign() if key in data]
    parts = data.split(b"\n")
    for offset, raw in enumerate(parts):
        for part in raw.decode("utf-8", "replace").split("\r"):
            text = CONTROL.sub("", part[:LONGEST]).rstrip()
            if text:
                start = PREFIX.match(text)
                said = text[start.end() if start else 0 :].strip("│")
                for pattern, english in foreign:
                    said = pattern.sub(english, said)
                yield Line(number + offset, text, said, FRAME.sub("", said))
    yield Line(number + len(parts), "", "", "", breaks=True)


def shared(lines: Sequence[Line]) -> list[Line]:
    """The lines without what a stream puts before each of them: a rank, a service, a level with its time.

    It is what neighbours begin with alike, digits apart, where one of them goes on with an indentation.
    """
    keys = [start[0].translate(MASKED) if (start := STREAM.match(line.said)) else "" for line in lines]
    found = [*lines]
    for index, (line, key) in enumerate(zip(lines, keys, strict=True)):
        near = range(max(index - BESIDE, 0), min(index + BESIDE + 1, len(lines))) if key else ()
        alike = [lines[one] for one in near if keys[one] == key]
        if len(alike) >= ALIKE and any(one.said[len(key) :].startswith("  ") for one in alike):
            said = line.said[len(key) :]
            found[index] = replace(line, said=said, bare=FRAME.sub("", said))
    return found


class Log:
    """The kept lines. `plain` is what they say, `bare` that without frames, `loose` and `tight` with its breaks undone.

    `matches` keeps what patterns found, as (lines, groups), for rules that ask again.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.matches: dict[re.Pattern[str], tuple[list[int], dict[str, str]] | None] = {}
        self._said: dict[re.Pattern[str], bool] = {}
        self._quoted: dict[int, bool] = {}
        self._parts: dict[range, Log] = {}

    def part(self, where: range) -> Log:
        """Some of the lines, by their index, as a log."""
        if where not in self._parts:
            self._parts[where] = Log(self.lines[where.start : where.stop])
        return self._parts[where]

    def quotes(self, index: int) -> bool:
        """Whether a line shows words of an error that did not happen there."""
        if index not in self._quoted:
            self._quoted[index] = explain_told.is_quoted(self.lines, index)
        return self._quoted[index]

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern matches anywhere in the lines as they are."""
        if pattern not in self._said:
            self._said[pattern] = bool(pattern.search(self.plain.whole))
        return self._said[pattern]

    @cached_property
    def plain(self) -> Text:
        return explain_text.plain([line.said for line in self.lines])

    @cached_property
    def bare(self) -> Text:
        return explain_text.plain([line.bare for line in self.lines])

    @cached_property
    def loose(self) -> Text:
        return explain_text.joined(self.lines, " ")

    @cached_property
    def tight(self) -> Text:
        return explain_text.joined(self.lines, "")

    @cached_property
    def overcome(self) -> int:
        """The last line whose error a later attempt got over."""
        return explain_past.overcome(self.lines)


class _Recoded:
    """A file of UTF-16, read as UTF-8."""

    def __init__(self, begun: bytes, file: IO[bytes]) -> None:
        self._begun, self._file = begun, file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def read(self, size: int) -> bytes:
        """So many bytes at least, unless the file ends."""
        text = ""
        while len(text) < size:
            data, self._begun = self._begun or self._file.read(size), b""
            text += self._decoder.decode(data, final=not data)
            if not data:
                break
        return text.encode("utf-8", "replace")


def read(file: IO[bytes]) -> Log:
    """Read a log to its end. Raises InputError for a file that is no text."""
    data = file.read(WHOLE + 1)
    for start, (kind, remedy) in KINDS.items():
        if data.startswith(start):
            raise InputError(f"the log is {kind} and no text, so nothing in it can be read", remedy=remedy)
    if data[:2] in UTF_16:
        recoded = _Recoded(data, file)
        data = recoded.read(WHOLE + 1)
        return Log(shared(list(_lines(data, 1)) if len(data) <= WHOLE else _large(data, recoded)))
    if len(data) <= WHOLE:
        return Log(shared(list(_lines(data, 1))))
    return Log(shared(_large(data, file)))


def _large(data: bytes, file: IO[bytes] | _Recoded) -> list[Line]:
    kept = Kept()
    end, number = b"", 1
    while data:
        # A piece ends where a line does, unless one line is longer than a piece.
        more = file.read(PIECE)
        cut = data.rfind(b"\n") + 1 if more else len(data)
        piece, rest = (data[:cut], data[cut:]) if cut else (data, b"")
        counted = 0
        for start, stop in _regions(piece, kept):
            number += piece.count(b"\n", counted, start)
            counted = start
            kept.add(piece[start:stop], number)
        number += piece.count(b"\n", counted)
        end = (end + piece)[-END:] if len(piece) < END else piece[-END:]
        data = rest + more
    first = end.find(b"\n") + 1
    last = number - end.count(b"\n", first)
    found = [*kept.lines(last), *_lines(end[first:], last)]
    return sorted(found, key=lambda line: line.number)


class Kept:
    """What is kept of a large log before its end: the first bytes, and as many of the latest."""

    def __init__(self) -> None:
        self.shapes: Counter[bytes] = Counter()
        self._first: list[tuple[bytes, int]] = []
        self._last: list[tuple[bytes, int]] = []
        self._sizes = [0, 0]

    def add(self, data: bytes, number: int) -> None:
        late = self._sizes[0] > MIDDLE
        (self._last if late else self._first).append((data, number))
        self._sizes[late] += len(data)
        while self._sizes[1] > MIDDLE and len(self._last) > 1:
            self._sizes[1] -= len(self._last.pop(0)[0])

    def lines(self, before: int) -> Iterator[Line]:
        """The lines whose numbers are below `before`, where the end of the log begins."""
        for data, number in (*self._first, *self._last):
            if number < before:
                yield from (line for line in _lines(data, number) if line.number < before)


def _regions(piece: bytes, kept: Kept) -> Iterator[tuple[int, int]]:
    """(start, stop) of what to keep, on the bounds of lines, in order and without overlaps."""
    spans = [] if kept.shapes else [(0, min(HEAD, len(piece)))]
    kept.shapes[b""] += 1
    for mark in MARKS:
        match = mark.search(piece)
        while match:
            at = match.start()
            start = piece.rfind(b"\n", max(at - LONGEST, 0), at) + 1 or max(at - LONGEST, 0)
            stop = piece.find(b"\n", at, at + LONGEST)
            stop = min(at + LONGEST, len(piece)) if stop < 0 else stop
            if _is_new(piece[start:stop], kept):
                spans.append((max(start - AROUND, 0), stop + AROUND))
                stop += AROUND // 2  # what lies there is kept anyway
            match = mark.search(piece, stop)
    last = 0
    for start, stop in _merged(spans):
        # A bound is where a line begins, or within one that is longer than anything is kept of.
        low = max(piece.rfind(b"\n", 0, start) + 1, last)
        end = piece.find(b"\n", stop, stop + LONGEST)
        last = min(stop, len(piece)) if end < 0 else end + 1
        yield low, last


def _is_new(line: bytes, kept: Kept) -> bool:
    """Whether few lines of that shape were seen, of as many shapes as are counted."""
    if len(kept.shapes) < SHAPES:
        shape = line[-200:].translate(None, DIGITS)
        kept.shapes[shape] += 1
        return kept.shapes[shape] <= SAME
    return True


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans in order, those that touch as one."""
    start = stop = 0
    for low, high in sorted(spans):
        if low > stop:
            if stop:
                yield start, stop
            start = low
        stop = max(stop, high)
    if stop:
        yield start, stop
