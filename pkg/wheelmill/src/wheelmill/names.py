"""Naming things for a reader: the nearest known name, and lists in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, or None when none is close enough to be meant."""
    import difflib  # only error paths need it, and it is slow to import

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.lower(), candidate)
    found = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A remedy for an unknown name: the nearest one if there is one, then what exists."""
    near = nearest(name, known)
    exists = f"Known: {listing(known)}."
    return f'Did you mean "{near}"? {exists}' if near else exists


def listing(words: Iterable[str], *, limit: int = 24) -> str:
    """`a, b, c`, cut after `limit` words with the number left out; `none` when there are none."""
    every = list(words)
    if not every:
        return "none"
    shown = ", ".join(every[:limit])
    return shown if len(every) <= limit else f"{shown} and {len(every) - limit} more"


def version_key(minor: str) -> tuple[int, ...]:
    """Sort key of `2.10`, `13.0` or `3.13t`: by number, a free-threaded Python after its plain one."""
    threaded = minor.endswith("t")
    return (*(int(part) for part in minor.removesuffix("t").split(".")), int(threaded))


def cuda_key(tag: str) -> int:
    """Sort key of a CUDA tag: `cpu` first, then `cu118`, `cu121`, … by number."""
    return -1 if tag == "cpu" else int(tag.removeprefix("cu"))
