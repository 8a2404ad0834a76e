"""A failure's log, read once in pieces: the lines that may tell, with their numbers and without what tools put around.

A small log is kept whole. Of a large one the head, the end, and what lies around each line with an error are kept,
each shape of line only so often, so that neither time nor memory grows with what repeats.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIECE = 4 << 20
WHOLE = 2 << 20  # a log up to this size is kept as it is
HEAD, END, MIDDLE = 128 << 10, 512 << 10, 1 << 20
AROUND = 12 << 10  # bytes kept before and after a line with an error
SAME = 6  # lines of one shape that are kept around
TRIES = 60  # places of one word that are looked at
LONGEST = 8000  # characters of a line
# A line that tells of a failure has one of these, or stands near one that has. Each costs a pass over the log.
MARKS = (b"rror", b"ERROR", b"Killed")
NO_MARK = re.compile(rb"-Werror|[\w.]*errors?[._/-]\w|\b0 errors?\b")
DIGITS = b"0123456789"
CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
# What CI runners, BuildKit, Compose and ninja put before a line.
PREFIX = re.compile(
    r"""(?x)
    (?:[^\t]{1,80}\t[^\t]{0,80}\t)?                                     # gh run view --log
    (?:[\w.-]{1,40}\ +\|\ )?                                            # a service of Compose
    \[?(?:\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?)?\]?[ ]?
    (?:\d\d[OE][ +]\ ?)?                                                # GitLab
    (?:\#\d+\ (?:\d+\.\d+\ ?)?)?                                        # BuildKit
    (?:\#\#\[\w+\])?
    (?:\[gw\d+\]\ )?
    """
)
# What a tool draws around text that it has wrapped.
FRAME = re.compile(r"^\s*(?:[│|╭╰├─>\u00d7]+\s*)*(?:E\s{2,})?|\s*[│|]?\s*$")


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is quoted. `bare` is without prefixes and frames; `breaks` says that nothing follows it."""

    number: int
    text: str
    bare: str
    breaks: bool = False


def _lines(data: bytes, number: int) -> Iterator[Line]:
    """The lines of a piece whose first has that number. What a carriage return overwrote is a line of its own."""
    parts = data.split(b"\n")
    for offset, raw in enumerate(parts):
        for part in raw.decode("utf-8", "replace").split("\r"):
            text = CONTROL.sub("", part[:LONGEST]).rstrip()
            if text:
                start = PREFIX.match(text)
                bare = FRAME.sub("", text[start.end() if start else 0 :])
                yield Line(number + offset, text, bare)
    yield Line(number + len(parts), "", "", breaks=True)


class Log:
    """The kept lines. `plain` is their text, `loose` and `tight` the same with the breaks of wrapped lines undone."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    @cached_property
    def plain(self) -> Text:
        return Text([line.text for line in self.lines], "\n")

    @cached_property
    def loose(self) -> Text:
        return Text([line.bare for line in self.lines], " ")

    @cached_property
    def tight(self) -> Text:
        return Text([line.bare for line in self.lines], "")


class Text:
    """Strings joined, and which of them holds a place of the whole."""

    def __init__(self, parts: Sequence[str], between: str) -> None:
        self.whole = between.join(parts)
        self._starts = []
        at = 0
        for part in parts:
            self._starts.append(at)
            at += len(part) + len(between)

        self._places: dict[str, tuple[int, ...]] = {}

    def places(self, word: str) -> tuple[int, ...]:
        """The strings in which a word stands or begins, the first ones and the last."""
        if word not in self._places:
            found: dict[int, None] = {}
            at = self.whole.find(word)
            while at >= 0 and len(found) < TRIES:
                found[self.index(at)] = None
                at = self.whole.find(word, at + len(word))
            if at >= 0:
                found[self.index(self.whole.rfind(word))] = None
            self._places[word] = tuple(found)
        return self._places[word]

    def index(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1


def read(file: IO[bytes], alone: Sequence[bytes] = ()) -> Log:
    """Read a log to its end. `alone` are further marks: what tells of a failure with no error near it."""
    data = file.read(WHOLE + 1)
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:  # PowerShell's > writes UTF-16
        data = (data + file.read(PIECE)).decode("utf-16", "replace").encode()
        return Log(list(_lines(data, 1)))
    if len(data) <= WHOLE:
        return Log(list(_lines(data, 1)))
    return Log(_large(data, file, (*MARKS, *alone)))


def _large(data: bytes, file: IO[bytes], marks: Sequence[bytes]) -> list[Line]:
    kept = Kept()
    end, number = b"", 1
    while data:
        # A piece ends where a line does, unless one line is longer than a piece.
        more = file.read(PIECE)
        cut = data.rfind(b"\n") + 1 if more else len(data)
        piece, rest = (data[:cut], data[cut:]) if cut else (data, b"")
        for start, stop in _regions(piece, marks, kept):
            kept.add(piece[start:stop], number + piece.count(b"\n", 0, start))
        number += piece.count(b"\n")
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


def _regions(piece: bytes, marks: Sequence[bytes], kept: Kept) -> Iterator[tuple[int, int]]:
    """(start, stop) of what to keep, on the bounds of lines, without overlaps."""
    spans = [(0, min(HEAD, len(piece)))] if not kept.shapes else []
    kept.shapes[b""] += 1
    for mark in marks:
        at = piece.find(mark)
        while at >= 0:
            start = piece.rfind(b"\n", max(at - LONGEST, 0), at) + 1 or max(at - LONGEST, 0)
            stop = piece.find(b"\n", at, at + LONGEST)
            stop = min(at + LONGEST, len(piece)) if stop < 0 else stop
            line = piece[start:stop]
            shape = line[-200:].translate(None, DIGITS)
            kept.shapes[shape] += 1
            if kept.shapes[shape] <= SAME and not (mark == b"rror" and b"rror" not in NO_MARK.sub(b"", line)):
                spans.append((max(start - AROUND, 0), min(stop + AROUND, len(piece))))
            at = piece.find(mark, stop)
    yield from _merged(spans, piece)


def _merged(spans: list[tuple[int, int]], piece: bytes) -> Iterator[tuple[int, int]]:
    last = 0
    for start, stop in sorted(spans):
        # On the bounds of lines.
        low = max(last, piece.rfind(b"\n", 0, start) + 1 if start else 0)
        high = piece.find(b"\n", stop)
        high = len(piece) if high < 0 or high - stop > LONGEST else high
        if low < high:
            yield low, high
            last = high
