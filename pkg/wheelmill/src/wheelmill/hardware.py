"""GPUs, drivers and PTX: which code a card runs, and which CUDA a driver serves. Facts are in tables/gpus.toml."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from wheelmill.facts import DATA
from wheelmill.names import version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGET = re.compile(r"(\d+)(\d)([af]?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """GPUs of one capability (`sm`, such as `90`): what to call them, and the models that drivers name."""

    sm: str
    name: str
    models: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """The table; its head says what each part is. Driver branches and PTX ISAs are in ascending order."""

    cards: tuple[Card, ...]
    tegra: frozenset[str]
    drivers: Mapping[int, str]
    isa: Mapping[str, str]


@cache
def table() -> Hardware:
    rows = tomllib.loads((DATA / "gpus.toml").read_text(encoding="utf-8"))
    return Hardware(
        cards=tuple(Card(sm=row["sm"], name=row["name"], models=tuple(row["models"])) for row in rows["gpu"]),
        tegra=frozenset(rows["tegra"]),
        drivers={int(branch): rows["drivers"][branch] for branch in sorted(rows["drivers"], key=int)},
        isa={isa: rows["isa"][isa] for isa in sorted(rows["isa"], key=version_key)},
    )


def capability(name: str) -> str | None:
    """The compute capability of a GPU by its name, None for a name in which no model of the table occurs."""
    words = _words(name)
    found = ((len(model), card.sm) for card in table().cards for model in card.models if _words(model) in words)
    _, sm = max(found, default=(0, ""))
    return f"{sm[:-1]}.{sm[-1]}" if sm else None


def _words(text: str) -> str:
    return f" {re.sub(r'[^a-z0-9]+', ' ', text.lower()).strip()} "


def serves(driver: str) -> str | None:
    """The newest CUDA that a driver surely serves, by its version; None for one older than every row."""
    branch = int(driver.partition(".")[0])
    return next((cuda for row, cuda in reversed(tuple(table().drivers.items())) if row <= branch), None)


def branch_for(cuda: str) -> int | None:
    """The oldest driver branch that serves a CUDA; None where no row does."""
    wanted = version_key(cuda)
    return next((branch for branch, served in table().drivers.items() if version_key(served) >= wanted), None)


def cuda_of_isa(isa: str) -> str:
    """The CUDA whose drivers first read that PTX ISA; for one that no row states the next newer row's, else a CUDA
    beyond them all, so that what is not known is not taken for readable.
    """
    wanted = version_key(isa)
    later = (cuda for row, cuda in table().isa.items() if version_key(row) >= wanted)
    return next(later, f"{wanted[0] + 4}.{wanted[1]}")


def runs(capability_: str, sass: Iterable[str]) -> bool:
    """Whether compiled code for those targets (`80`, `90a`, `100f`) runs on a GPU."""
    return any(_native(capability_, target) for target in sass)


def compiles(capability_: str, ptx: Iterable[str]) -> bool:
    """Whether a driver can compile PTX for those targets for a GPU, the driver's own age left aside."""
    major, minor = _parts(capability_)
    for target in ptx:
        match = TARGET.fullmatch(target)
        if match is None:
            continue
        its = int(match[1]), int(match[2])
        if not match[3] and its <= (major, minor):
            return True
        if its == (major, minor) or (match[3] == "f" and its[0] == major and its[1] <= minor):
            return True
    return False


def _native(capability_: str, target: str) -> bool:
    match = TARGET.fullmatch(target)
    if match is None:
        return False
    (major, minor), its = _parts(capability_), (int(match[1]), int(match[2]))
    if its == (major, minor):
        return True
    apart = {f"{major}{minor}", f"{its[0]}{its[1]}"} & table().tegra
    return not apart and match[3] != "a" and its[0] == major and its[1] < minor


def _parts(capability_: str) -> tuple[int, int]:
    major, _, minor = capability_.partition(".")
    return int(major), int(minor)
