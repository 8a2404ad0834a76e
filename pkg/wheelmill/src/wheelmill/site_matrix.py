"""The matrix of a release: what is known of each environment and Python, wheel by wheel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from wheelmill import site_rows as rows
from wheelmill.site_view import mark, size_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wheelmill.records import Record

STEPS = ("build", "audit", "cover", "gates")
KNOWN = re.compile(r"(cpu|cu[0-9]+)-torch[0-9]+\.[0-9]+")


def grid(records: Sequence[Record], pythons: Sequence[str]) -> dict[str, Any]:
    """Environments by CUDA and the Pythons they were measured in; each cell is its wheels and their four statuses."""
    columns = _columns(records, pythons)
    groups: dict[str, list[dict[str, Any]]] = {}
    for name in _environments(records):
        cells = [_cell(records, name, python) for python in columns]
        cuda, _, torch = name.partition("-torch")
        listed = any(name in record.environments for record in records)
        groups.setdefault(cuda, []).append({"name": name, "torch": torch, "listed": listed, "cells": cells})
    return {
        "pythons": columns,
        "groups": [{"tag": cuda, "words": rows.cuda_words(cuda), "rows": found} for cuda, found in groups.items()],
    }


def wheels(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A line for each wheel of the release."""
    found = []
    names = [short_name(record.file) for record in records]
    for record, name in zip(records, names, strict=True):
        sass, ptx = rows.targets(record)
        found.append(
            {
                "file": record.file,
                "name": name if names.count(name) == 1 else record.file,
                "href": quote(record.file),
                "size": size_words(record.size),
                "environments": len(record.environments),
                "sass": sass,
                "ptx": ptx,
                "audit": mark(rows.audit_status(record)),
                "gates": mark(rows.gates_status(record)),
                "yanked": record.yanked,
            }
        )
    return found


def short_name(file: str) -> str:
    """What tells a wheel from others of its release: `cu130 py3-none` of `demo-1.0+cu130-py3-none-linux_x86_64.whl`."""
    match = re.fullmatch(r"[^-]+-[^-+]+(?:\+([^-]+))?(?:-\d[^-]*)?-([^-]+-[^-]+)-[^-]+\.whl", file)
    return f"{match[1] or ''} {match[2]}".strip() if match else file


def _promised(record: Record) -> set[str]:
    """Environments that a wheel is listed for, or promises and was tried in."""
    tried = {f"{cell.cuda}-torch{cell.torch}" for cell in record.cover or () if cell.unclaimed is None}
    return {name for name in tried | set(record.environments) if KNOWN.fullmatch(name)}


def _environments(records: Sequence[Record]) -> list[str]:
    names = {name for record in records for name in _promised(record)}
    return sorted(names, key=rows.environment_key, reverse=True)


def _columns(records: Sequence[Record], pythons: Sequence[str]) -> list[str]:
    """The Pythons that something was measured in; for a wheel that was measured in none, those that it admits."""
    found = {cell.python for record in records for cell in record.cover or () if cell.unclaimed is None}
    for record in records:
        if not record.cover:
            found |= {python for python in pythons if rows.admits(record, python)}
    return sorted(found, key=rows.natural)


def _cell(records: Sequence[Record], name: str, python: str) -> list[dict[str, Any]]:
    found = []
    for record in records:
        if name not in _promised(record) or not rows.admits(record, python):
            continue
        statuses = {
            "build": "pass" if record.build else "unknown",
            "audit": rows.audit_status(record),
            "cover": rows.cell_status(rows.cell_of(record, name, python)),
            "gates": rows.gates_status(record),
        }
        marks = [{"step": step, **mark(statuses[step])} for step in STEPS]
        words = ", ".join(f"{one['step']} {one['word']}" for one in marks)
        yanked = ", yanked" if record.yanked is not None else ""
        found.append(
            {
                "href": quote(record.file),
                "marks": marks,
                "label": f"{record.file}: {words}{yanked}",
                "yanked": record.yanked is not None,
            }
        )
    return found
