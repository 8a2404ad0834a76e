"""One root, one exit code a kind. A message says what is so; `remedy` says what to do about it."""

from __future__ import annotations

from typing import ClassVar


class WheelmillError(Exception):
    """Root of everything that wheelmill raises on purpose; only the command line's entry point catches it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class GateError(WheelmillError):
    """A check or gate failed on a wheel."""

    exit_code = 1


class InputError(WheelmillError, ValueError):
    """The matrix, an argument or a name is wrong. A ValueError, so that pydantic collects it from validators."""

    exit_code = 2


class MissingError(WheelmillError):
    """Something needed is not here: a compiler, a toolkit, the network, disk space."""

    exit_code = 3


class BuildError(WheelmillError):
    """A build ran and failed."""

    exit_code = 4
