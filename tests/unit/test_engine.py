"""What is wrong with a container engine, told apart by what its client raises and says."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import DockerException

from wheelmill import engine

if TYPE_CHECKING:
    from pathlib import Path


def wrapped(cause: Exception) -> DockerException:
    """The exception as the SDK raises it: the transport's own, wrapped as an argument and as a cause."""
    try:
        try:
            raise cause
        except OSError as error:
            raise ConnectionError("Connection aborted.", error) from None
    except ConnectionError as error:
        outer = DockerException(f"Error while fetching server API version: {error}")
        outer.__cause__ = error
        return outer


@pytest.mark.parametrize(
    ("error", "kind", "message", "remedy"),
    [
        (wrapped(FileNotFoundError(errno.ENOENT, "none")), engine.NoEngineError, "no container engine", "dockerd"),
        (
            wrapped(ConnectionRefusedError(errno.ECONNREFUSED, "no")),
            engine.NoEngineError,
            "its socket is there",
            "start",
        ),
        (wrapped(PermissionError(errno.EACCES, "no")), engine.NoPermissionError, "no permission", "usermod -aG docker"),
        (DockerException("client version 1.52 is too new"), engine.OldEngineError, "do not share", "20.10"),
        (DockerException("odd"), engine.NoEngineError, "cannot be used: odd", "docker info"),
    ],
)
def test_connection_failures(error: Exception, kind: type[Exception], message: str, remedy: str) -> None:
    found = engine.explain(error)
    assert type(found) is kind
    assert message in str(found)
    assert remedy in found.remedy
    assert found.exit_code == 3


def test_an_engine_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(api=SimpleNamespace(api_version="1.40"), ping=lambda: True)
    monkeypatch.setattr("docker.from_env", lambda **_: client)
    with pytest.raises(engine.OldEngineError, match=r"API is 1\.40, and 1\.41 is needed"):
        engine.connect()
    client.api.api_version = "1.100"
    assert engine.connect() is client


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Get https://r/v2/: dial tcp: lookup r on 10.0.0.1:53: no such host", "cannot be reached"),
        ("net/http: TLS handshake timeout", "cannot be reached"),
        ("x509: certificate signed by unknown authority", "cannot be reached"),
        ("pull access denied for a/b, repository does not exist", "refuses it"),
        ("manifest for a/b:c not found: manifest unknown", "does not have it"),
        ("toomanyrequests: You have reached your pull rate limit", "refuses more downloads"),
    ],
)
def test_pull_failures(said: str, told: str) -> None:
    error = engine.explain_pull("a/b:c", said)
    assert isinstance(error, engine.NoImageError)
    assert told in str(error)
    assert said in str(error)
    assert error.remedy
    assert engine.explain_pull("a/b:c", said, remedy="make it").remedy == "make it"


def test_a_pull_that_fills_the_disk() -> None:
    assert isinstance(engine.explain_pull("a", "write /x: no space left on device"), engine.NoSpaceError)


def client_at(root: Path, url: str = "http+docker://localhost") -> Any:
    return SimpleNamespace(api=SimpleNamespace(base_url=url), info=lambda: {"DockerRootDir": str(root)})


def test_space_is_seen_on_a_local_engine_only(tmp_path: Path) -> None:
    local, remote = client_at(tmp_path), client_at(tmp_path, "http+docker://ssh")
    assert engine.free_space(local)
    assert engine.free_space(remote) is None
    assert engine.free_space(client_at(tmp_path / "in" / "a" / "machine")) is None
    engine.require_space(remote, 1 << 60, "anything")
    engine.require_space(local, 1, "little")
    with pytest.raises(engine.NoSpaceError, match=r"too much needs .* GB are free"):
        engine.require_space(local, 1 << 60, "too much")
