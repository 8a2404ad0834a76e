"""Lines as one text, with the breaks undone that a tool or a terminal put into a message."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.explain_log import Line

NARROWEST = 40  # characters of a line that is broken
TERMINALS = (79, 80, 100, 120)  # widths at which one line alone is taken to be cut
PARAGRAPH = 76  # characters that a line of CMake and of many tools has at most
BESIDE = 15  # lines before and after one that tell how wide lines are
TRIES = 60  # places of one word that are looked at


class Text:
    """Strings joined, each to the next by its own separator, and which of them holds a place of the whole."""

    def __init__(self, parts: Sequence[str], separators: Sequence[str]) -> None:
        pieces = [word for pair in zip(parts, separators, strict=True) for word in pair]
        self.whole = "".join(pieces[:-1])
        self._starts = []
        at = 0
        for part, separator in zip(parts, separators, strict=True):
            self._starts.append(at)
            at += len(part) + len(separator)
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


def plain(parts: Sequence[str]) -> Text:
    return Text(parts, ["\n"] * len(parts))


def joined(lines: Sequence[Line], between: str) -> Text:
    """The lines without their frames, those that go on in the next one joined to it by `between`."""
    breaks = [between if goes_on(lines, index) else "\n" for index in range(len(lines))]
    return Text([line.bare for line in lines], breaks)


def is_cut(lines: Sequence[Line], index: int) -> bool:
    """Whether a line ends where its neighbours are cut: at a width of several, or of a terminal, that none passes."""
    width = len(lines[index].text)
    if width < NARROWEST:
        return False
    widths = _widths(lines, index)
    return max(widths) == width and (widths.count(width) > 1 or width in TERMINALS)


def goes_on(lines: Sequence[Line], index: int) -> bool:
    """Whether a message may go on in the next line: this one is cut, or the next one's first word had no room in it."""
    size = len(lines[index].text)
    if size < NARROWEST or index + 1 == len(lines):
        return False
    said, more = len(lines[index].said), 1 + len(lines[index + 1].bare.partition(" ")[0])
    return is_cut(lines, index) or max(_widths(lines, index)) < size + more or said <= PARAGRAPH < said + more


def _widths(lines: Sequence[Line], index: int) -> list[int]:
    return [len(line.text) for line in lines[max(index - BESIDE, 0) : index + BESIDE]]
