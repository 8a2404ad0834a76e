"""Unit tests start no process and open no socket; what they share is made here."""

from __future__ import annotations

import os
import socket
import ssl  # noqa: F401, it makes a class of the socket that tests are refused
import subprocess
from typing import TYPE_CHECKING, NoReturn

import pytest

from wheelmill import facts, matrix, plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.facts import Facts
    from wheelmill.model import Plan


@pytest.fixture(autouse=True)
def _nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a unit test starts no process and opens no socket: make it an integration test")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    for name in ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="session")
def known() -> Facts:
    """The built-in tables."""
    return facts.load()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a matrix file of the given text, in a folder of its own."""

    def writer(text: str) -> Path:
        file = tmp_path / "matrix.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    return writer


@pytest.fixture
def planned(write: Callable[[str], Path]) -> Callable[..., Plan]:
    """The plan of a matrix of the given lines under `version: 1`, and of SELECT patterns."""

    def planner(lines: str, *select: str) -> Plan:
        made = matrix.load(write("version: 1\n" + lines))
        return plan.make(made, facts.load(made.facts), select)

    return planner
