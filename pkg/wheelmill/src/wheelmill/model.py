"""The values that flow from stage to stage: matrix → cells → wheels → steps. All frozen, none does I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TorchAbi = Literal["stable", "release"]
PythonAbi = Literal["none", "abi3", "version"]


def python_tag(python: str) -> str:
    """The interpreter part of ids and tags: `3.11` → `cp311`, `3.13t` → `cp313t`."""
    return "cp" + python.replace(".", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One environment somebody may have.

    `cuda` is `cpu` or a tag such as `cu130`; `torch` a minor release such as `2.11`; `python` a minor
    version such as `3.11`, with a `t` at the end for the free-threaded build.
    """

    cuda: str
    torch: str
    python: str

    @property
    def id(self) -> str:
        return f"{self.cuda}-torch{self.torch}-{python_tag(self.python)}"

    @property
    def environment(self) -> str:
        """The name of this cell's index page: the cell without its Python."""
        return f"{self.cuda}-torch{self.torch}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drop:
    """A combination that the matrix spans and that cannot exist, with the reason."""

    id: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """One build that serves `cells`.

    `torch` is the minor whose headers the build uses: for the stable ABI the lowest one served.
    `python` is None where one wheel serves every Python (`none`), else the lowest one served.
    `sm` holds the targets in TORCH_CUDA_ARCH_LIST's words, ascending, PTX as a suffix: `("8.0", "9.0+PTX")`.
    `requires` is the torch requirement that is true for the wheel, as METADATA states it.
    """

    id: str
    cuda: str
    torch: str
    torch_abi: TorchAbi
    python: str | None
    python_abi: PythonAbi
    sm: tuple[str, ...]
    local: str
    requires: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A wheel's build with its inputs named: exact torch release, toolkit release (None for cpu), Python."""

    wheel: Wheel
    torch_release: str
    toolkit: str | None
    python: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Everything a run needs, and everything `plan --json` prints."""

    cells: tuple[Cell, ...]
    drops: tuple[Drop, ...]
    wheels: tuple[Wheel, ...]
    steps: tuple[Step, ...]
