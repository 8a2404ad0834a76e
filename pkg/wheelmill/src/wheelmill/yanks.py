"""Yanks (PEP 592): a file that installers take only when it is asked for by its exact version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import entries
from wheelmill.errors import InputError
from wheelmill.records import Record, Yank

if TYPE_CHECKING:
    import datetime as dt

    from wheelmill.change import Amend


def yank(reason: str, when: dt.datetime) -> Amend:
    """Yanks a record from now on; another reason than the one that holds is another yank."""

    def amend(record: Record) -> Record:
        if record.yanked == reason:
            return record
        began = Yank(reason=reason, since=entries.stated(when))
        return record.model_copy(update={"yanked": reason, "yanks": (*_ended(record, when), began)})

    return amend


def unyank(when: dt.datetime) -> Amend:
    """Ends the yank of a record, which keeps that there was one. Raises InputError where there is none."""

    def amend(record: Record) -> Record:
        if record.yanked is None:
            raise InputError(f"{record.file} is not yanked", remedy="leave out --unyank for it")
        return record.model_copy(update={"yanked": None, "yanks": _ended(record, when)})

    return amend


def newest(here: Record, there: Record | None) -> Record:
    """The record that is here, with what was said last of its yank: here, or there of the same bytes."""
    if there is None or there.sha256 != here.sha256 or _last(there) <= _last(here):
        return here
    return here.model_copy(update={"yanked": there.yanked, "yanks": there.yanks})


def _last(record: Record) -> str:
    """When a yank began or ended last, in one form of ISO 8601, so that later times sort later."""
    return max((time for one in record.yanks for time in (one.since, one.until or "")), default="")


def _ended(record: Record, when: dt.datetime) -> tuple[Yank, ...]:
    return tuple(
        one if one.until is not None else one.model_copy(update={"until": entries.stated(when)}) for one in record.yanks
    )
