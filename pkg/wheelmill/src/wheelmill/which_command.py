"""The commands that install a choice, and no other wheel."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from wheelmill import web, which_fit, which_index

if TYPE_CHECKING:
    from wheelmill.which import Answer
    from wheelmill.which_candidate import Candidate
    from wheelmill.which_index import Source

# What an installer sees itself, and so takes no such file.
SEEN = frozenset({"python-tag", "python-requires", "system", "libc", "glibc-tag", "yanked"})
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
    claim = choice.candidate.claim
    if _ambiguous(answer, choice.candidate, source):
        return f"{_direct(choice.candidate)}\n"
    lines = [f"{name} {_quoted(value)}" for name, value in _where(answer, source)]
    return "\n".join(["--only-binary :all:", *lines, f"{claim.project}=={claim.version} --hash=sha256:{digest}"]) + "\n"


def _quoted(value: str) -> str:
    # pip reads option lines of a requirements file as a shell would.
    return shlex.quote(value)


def hashed(file: str) -> str:
    """The pip command of a requirements file with hashes."""
    return shlex.join(["pip", "install", "--require-hashes", "--no-deps", "-r", file])


def _digest(candidate: Candidate) -> str | None:
    return candidate.link.sha256 or (candidate.record.sha256 if candidate.record else None)


def _command(answer: Answer, source: Source, *program: str) -> str | None:
    if answer.choice is None:
        return None
    candidate = answer.choice.candidate
    project, version = candidate.claim.project, candidate.claim.version
    if _ambiguous(answer, candidate, source):
        return shlex.join([*program, _direct(candidate)])
    words = [*program, f"{project}=={version}"]
    if source.listing.sdists:
        words += ["--only-binary", project]
    for option in _where(answer, source):
        words += option
    return shlex.join(words)


def _ambiguous(answer: Answer, candidate: Candidate, source: Source) -> bool:
    """Whether an installer may take another file of that version: one elsewhere, from which only a local version tells
    it, or one of this index whose tags are closer.
    """
    if candidate.version.local is None and not source.url.startswith(PYPI):
        return True
    env = answer.environment
    own = which_fit.closeness(env, candidate)
    return any(
        one.candidate.version == candidate.version
        and which_fit.closeness(env, one.candidate) > own
        and not {reason.rule for reason in one.against} & SEEN
        for one in answer.judged
    )


def _direct(candidate: Candidate) -> str:
    url, digest = web.shown(candidate.link.url), _digest(candidate)
    return f"{candidate.claim.project} @ {url}" + (f"#sha256={digest}" if digest else "")


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
    return [] if url.startswith(PYPI) else [["--extra-index-url", url]]
