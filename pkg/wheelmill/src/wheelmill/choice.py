"""How torch releases and Pythons are chosen: by a range, or one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheelmill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.specifiers import SpecifierSet


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A range over minors, or a list of them; never both. `key` is where the matrix says it, else empty.

    A range with `patches` is a project's requires-python, which speaks of patch releases: there a minor
    is in the range when its newest patch release is.
    """

    key: str
    range: str = ""
    listed: tuple[str, ...] = ()
    patches: bool = False

    def among(self, known: Iterable[str]) -> tuple[str, ...]:
        """Those of `known` that are chosen, in its order; a free-threaded Python only where it is listed."""
        if self.listed:
            wanted = frozenset(self.listed)
            return tuple(minor for minor in known if minor in wanted)
        plain = (minor for minor in known if not minor.endswith("t"))
        if not self.range:
            return tuple(plain)
        specifiers = _specifiers(self.range)
        patch = ".999" if self.patches else ""
        return tuple(minor for minor in plain if specifiers.contains(minor + patch))


def ranged(text: str, key: str) -> Choice:
    """A Choice of the range `text` over minors. Raises InputError where it is none, or names patches."""
    for specifier in _specifiers(text):
        parts = specifier.version.removesuffix(".*").split(".")
        if len(parts) > 2 or not all(part.isdigit() for part in parts):  # noqa: PLR2004 - major and minor
            raise InputError(
                f'"{text}" names {specifier.version}, but what is chosen here are minor releases.',
                remedy=f"Write {specifier.operator}{'.'.join(parts[:2])}.",
            )
    return Choice(key=key, range=text)


def required(text: str) -> Choice:
    """A Choice of a project's own requires-python. Raises InputError where it is no version range."""
    _specifiers(text)
    return Choice(key="", range=text, patches=True)


def _specifiers(text: str) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # a list of minors needs none of it

    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        stripped = text.strip()
        one = stripped.replace(".", "").removesuffix("t").isdigit()
        raise InputError(
            f'"{text}" is no version range.',
            remedy=f'Write ["{stripped}"] for that one, or ">={stripped.removesuffix("t")}" from it on.'
            if one
            else 'Write a range such as ">=2.10" or ">=3.10,<3.14", or a list such as ["2.10", "2.11"].',
        ) from error
