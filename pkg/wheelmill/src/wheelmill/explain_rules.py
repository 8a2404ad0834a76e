"""The rules that tell a failure's cause, as data: tables/causes/*.toml, one table a rule."""

from __future__ import annotations

import re
import string
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wheelmill.errors import InputError
from wheelmill.explain_words import FUNCTIONS
from wheelmill.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Confidence = Literal["certain", "likely", "possible"]
CONFIDENCE: tuple[Confidence, ...] = ("certain", "likely", "possible")
TABLES = Path(__file__).parent / "tables" / "causes"
SHARED = Path(__file__).parent / "tables" / "patterns.toml"
PATTERNS = ("line", "also", "near", "unless", "unless_near", "proof", "hint")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A table of tables/causes; docs/explain.md says what each field is."""

    id: str
    table: str
    title: str
    find: tuple[str, ...]
    line: tuple[re.Pattern[str], ...]
    cause: str
    remedy: str
    not_: str
    rank: int = 50
    confidence: Confidence = "certain"
    also: tuple[re.Pattern[str], ...] = ()
    near: tuple[re.Pattern[str], ...] = ()
    unless: tuple[re.Pattern[str], ...] = ()
    unless_near: tuple[re.Pattern[str], ...] = ()
    proof: tuple[re.Pattern[str], ...] = ()
    hint: tuple[re.Pattern[str], ...] = ()
    ask: str = ""
    derive: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    where: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


FIELDS = {name.rstrip("_"): name for name in Rule.__slots__ if name not in {"id", "table"}}


class _Words(string.Formatter):
    """Fills {groups} into a message; `{a|b|or these words}` takes the first that was found."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:  # noqa: ARG002
        *names, last = field_name.split("|")
        found = next((kwargs[name] for name in names if kwargs.get(name)), None)
        return (found or kwargs.get(last) or (last if names or " " in last else "")), field_name


def fill(message: str, groups: Mapping[str, str]) -> str:
    """A rule's message with what was found."""
    return _Words().vformat(message, (), groups)


@cache
def rules(folder: Path = TABLES) -> Mapping[str, Rule]:
    """Every rule by its id. Raises InputError for a table that is none."""
    found: dict[str, Rule] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise InputError(f"{path}: {name}: there are two rules of that name", remedy="rename one of them")
            found[name] = _rule(path, name, row)
    return found


def _rule(path: Path, name: str, row: Mapping[str, Any]) -> Rule:
    values: dict[str, Any] = {"id": name, "table": path.stem}
    for key, value in row.items():
        if key not in FIELDS:
            raise InputError(f"{path}: {name}.{key}: no such field", remedy=did_you_mean(key, list(FIELDS)))
        try:
            values[FIELDS[key]] = _value(key, value)
        except (re.error, KeyError) as error:
            raise InputError(f"{path}: {name}.{key}: {error}", remedy="correct that pattern or function") from error
    try:
        return Rule(**values)
    except TypeError as error:
        raise InputError(
            f"{path}: {name}: {error}", remedy="every rule has title, find, line, cause, remedy, not"
        ) from error


@cache
def _shared() -> Mapping[str, list[str]]:
    return {f"<{name}>": patterns for name, patterns in tomllib.loads(SHARED.read_text(encoding="utf-8")).items()}


def _value(key: str, value: Any) -> Any:
    if key in PATTERNS:
        given = [value] if isinstance(value, str) else value
        return tuple(re.compile(one, re.MULTILINE) for name in given for one in _shared().get(name, [name]))
    if key == "where":
        return {name: re.compile(one) for name, one in value.items()}
    if key == "derive":
        calls = {name: tuple(one.split()) for name, one in value.items()}
        for function, *_ in calls.values():
            FUNCTIONS[function]
        return calls
    return tuple(value) if isinstance(value, list) else value
