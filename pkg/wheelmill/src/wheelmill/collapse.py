"""Cells → the fewest wheels that serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wheelmill.model import Wheel, python_tag
from wheelmill.names import version_key
from wheelmill.targets import sm_of

if TYPE_CHECKING:
    from wheelmill.facts import Facts
    from wheelmill.matrix import Matrix
    from wheelmill.model import Cell, PythonAbi
    from wheelmill.resolve import Resolved


class _Group(NamedTuple):
    """What the cells of one wheel share: CUDA, build torch, ABI, and a Python that does not collapse."""

    cuda: str
    torch: str
    stable: bool
    python: str | None


def collapse(matrix: Matrix, facts: Facts, resolved: Resolved) -> tuple[Wheel, ...]:
    """One wheel per group of cells that one binary can serve, in canonical order.

    Torch releases collapse from `abi.torch`'s floor on; the wheel is built with the floor's headers even
    where its CUDA variant came later. Pythons collapse under `none` and `abi3`. The limited API does not
    exist on free-threaded Pythons, so under `abi3` each of those has a wheel of its own.
    """
    floor = version_key(matrix.stable_from) if matrix.stable_from is not None else None
    stable = {minor for minor in facts.torch if floor is not None and version_key(minor) >= floor}
    groups: dict[_Group, list[Cell]] = {}
    for cell in resolved.cells:
        is_stable = cell.torch in stable
        torch = matrix.stable_from if is_stable and matrix.stable_from is not None else cell.torch
        group = _Group(cell.cuda, torch, is_stable, _kept_python(matrix.python_abi, cell.python))
        groups.setdefault(group, []).append(cell)
    targets: dict[tuple[str, str, bool], tuple[str, ...]] = {}
    for group, cells in groups.items():
        wanted = (group.cuda, group.torch, group.stable)
        if wanted not in targets:
            served = dict.fromkeys(cell.torch for cell in cells)
            targets[wanted] = sm_of(matrix, facts, group.cuda, served)
    return tuple(
        _wheel(matrix.python_abi, group, cells, targets[group.cuda, group.torch, group.stable])
        for group, cells in groups.items()
    )


def _kept_python(abi: PythonAbi, python: str) -> str | None:
    """The Python that stays in the wheel's id, or None where it collapses."""
    return python if abi == "version" or (abi == "abi3" and python.endswith("t")) else None


def _wheel(abi: PythonAbi, group: _Group, cells: list[Cell], sm: tuple[str, ...]) -> Wheel:
    torch = f"stable{group.torch}" if group.stable else f"torch{group.torch}"
    suffix = "" if group.python is None else f"-{python_tag(group.python)}"
    lowest = group.python or (min((cell.python for cell in cells), key=version_key) if abi == "abi3" else None)
    return Wheel(
        id=f"{group.cuda}-{torch}{suffix}",
        cuda=group.cuda,
        torch=group.torch,
        torch_abi="stable" if group.stable else "release",
        python=lowest,
        python_abi="version" if group.python is not None else abi,
        sm=sm,
        local=group.cuda if group.stable else f"{group.cuda}.torch{group.torch}",
        requires=f"torch>={group.torch}" if group.stable else f"torch=={group.torch}.*",
        cells=tuple(cells),
    )
