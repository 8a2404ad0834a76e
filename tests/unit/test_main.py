"""The entry point: exit codes and what is printed."""

import errno
import io
import sys
from pathlib import Path

import click
import pytest

from wheelmill import __main__ as entry
from wheelmill import errors


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    @click.command("plan")
    def command() -> None:
        raise error

    monkeypatch.setattr(entry.Verbs, "get_command", lambda *_: command)
    return entry.main(["plan"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.GateError("a gate failed", remedy="mend it"), 1),
        (errors.InputError("a bad key", remedy="mend it"), 2),
        (errors.MissingError("no compiler", remedy="mend it"), 3),
        (errors.BuildError("it failed", remedy="mend it"), 4),
        (OSError(errno.ENOSPC, "No space left on device", "store"), 3),
        (PermissionError(errno.EACCES, "Permission denied", "site"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_code_and_a_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
) -> None:
    assert failing(monkeypatch, error) == code
    said = capsys.readouterr().err
    assert said.lstrip().startswith("error: ")
    assert "what to do: " in said


def test_an_error_that_nobody_foresaw_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="odd"):
        failing(monkeypatch, OSError(errno.EIO, "odd"))


def test_usage_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert entry.main(["bild"]) == 2
    assert 'Did you mean "build"?' in capsys.readouterr().err
    assert entry.main(["index", str(tmp_path / "absent"), "--out", "site"]) == 2
    assert entry.main(["build", "--executor", "cloud"]) == 2
    assert capsys.readouterr().err.count("error: ") == 2


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(verb in said for verb in entry.VERBS)


@pytest.mark.parametrize(
    ("encoding", "said"), [("ascii", b"a \\u2192 b\n"), ("latin-1", b"a \\u2192 b\n"), ("utf-8", "a → b\n".encode())]
)
def test_letters_that_an_encoding_lacks_end_no_report(
    monkeypatch: pytest.MonkeyPatch, encoding: str, said: bytes
) -> None:
    @click.command("plan")
    def command() -> None:
        print("a → b")

    monkeypatch.setattr(entry.Verbs, "get_command", lambda *_: command)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert entry.main(["plan"]) == 0
    sys.stdout.flush()
    assert written.getvalue() == said
