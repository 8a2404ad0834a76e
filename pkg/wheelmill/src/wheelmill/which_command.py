"""The commands that install a choice, and no other wheel."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from wheelmill import web, which_index

if TYPE_CHECKING:
    from wheelmill.which import Answer
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_index import Source

PYPI = ("https://pypi.org/simple/", "https://pypi.org/")


def pip(answer: Answer, source: Source) -> str | None:
    """The pip command of the choice, None without one. Every word is quoted for a POSIX shell."""
    return _command(answer, source, "pip", "install")


def uv(answer: Answer, source: Source) -> str | None:
    """The same for uv."""
    return _command(answer, source, "uv", "pip", "install")


def requirements(answer: Answer, source: Source) -> str | None:
    """A requirements file that pins the choice's bytes, for `--require-hashes --no-deps`; None where no hash is known.

    With hashes every requirement must have one, so what it depends on is left to what is installed.
    """
    choice = answer.choice
    digest = _digest(choice.candidate) if choice else None
    if choice is None or digest is None:
        return None
    lines = [" ".join(words) for words in _where(answer, source)]
    pin = f"{choice.candidate.claim.project}=={choice.candidate.claim.version} --hash=sha256:{digest}"
    return "\n".join(["--only-binary :all:", *lines, pin]) + "\n"


def hashed(file: str) -> str:
    """The pip command of a requirements file with hashes."""
    return shlex.join(["pip", "install", "--require-hashes", "--no-deps", "-r", file])


def _digest(candidate: Candidate) -> str | None:
    return candidate.link.sha256 or (candidate.record.sha256 if candidate.record else None)


def _command(answer: Answer, source: Source, *program: str) -> str | None:
    if answer.choice is None:
        return None
    claim = answer.choice.candidate.claim
    words = [*program, f"{claim.project}=={claim.version}"]
    if source.listing.sdists:
        words += ["--only-binary", claim.project]
    for option in _where(answer, source):
        words += option
    return shlex.join(words)


def _where(answer: Answer, source: Source) -> list[list[str]]:
    """The options that name the index: of ours, the page of the environment, which lists nothing that does not fit."""
    choice = answer.choice
    if choice is not None and source.site is not None:
        here, listed = answer.environment.id, choice.candidate.measured or ()
        name = here if here in listed else listed[0] if listed else "all"
        return [["--find-links", web.shown(which_index.page_of(source, f"{name}.html"))]]
    url = web.shown(source.url) if source.kind != "folder" else source.url
    if source.kind in ("links", "folder"):
        return [["--find-links", url]]
    if url.startswith(PYPI):
        return []
    return [["--extra-index-url", url]]
