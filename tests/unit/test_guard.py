"""The guard of conftest.py does refuse."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest


def test_a_process_is_refused() -> None:
    with pytest.raises(AssertionError, match="integration test"):
        subprocess.run(["/bin/true"], check=False)


def test_a_shell_is_refused() -> None:
    with pytest.raises(AssertionError, match="integration test"):
        os.system("/bin/true")  # noqa: S605 - it does not run


def test_a_socket_is_refused() -> None:
    with pytest.raises(AssertionError, match="integration test"):
        socket.socket()
