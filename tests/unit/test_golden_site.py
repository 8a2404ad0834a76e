"""A whole site's pages for installers, and the records that they are made of, against tests/golden/site."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.index_wheels import add, beside, tree

from wheelmill import attest, folder, writer, yanks
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "site"
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone.utc)
SHOWN = re.compile(r"simple/.*|(cpu|cu\d+)-torch.*|all\.html|files/.*(\.metadata|\.json|\.provenance)|unlisted\.json")


def house(dist: Path) -> None:
    """A stable wheel with every report, one for the CPU that is yanked, an old per-release one, another project."""
    stable = add(dist, "1.10.0+cu130", ["cu130-torch2.10", "cu130-torch2.11"], requires=("torch>=2.10",))
    sha256 = file_sha256(stable)
    cell = {"cuda": "cu130", "python": "3.12", "unclaimed": None, "error": None}
    cells = [{**cell, "torch": "2.10", "result": "pass"}, {**cell, "torch": "2.11", "result": "fail", "error": "<no>"}]
    beside(stable, ".cover.json", {"version": 1, "sha256": sha256, "cells": cells})
    row = {
        "unit": "u",
        "operator": "f",
        "device": "cuda",
        "result": "pass",
        "where": {"card": "H200", "torch": "2.11.0"},
    }
    found = {"card": "H200", "sample": "large", "milliseconds": {"median": 0.5}, "of_reference": 0.25}
    rows = [{**row, "gate": "ops", "found": {}}, {**row, "gate": "bench", "found": found}]
    gates = {
        "version": 1,
        "sha256": sha256,
        "gates": {"ops": "pass", "bench": "pass"},
        "operators": ["f"],
        "rows": rows,
    }
    beside(stable, ".gates.json", gates)
    beside(stable, ".provenance", {"version": 1, "attestation_bundles": []})
    add(dist, "1.10.0+cpu", ["cpu-torch2.11"], requires=("torch>=2.10", 'numpy; extra == "np"'))
    add(dist, "1.9.0+cu121.torch2.4", ["cu121-torch2.4"], requires=("torch==2.4.*",))
    add(dist, "0.1", ["cpu-torch2.11"], project="my-other", tag="cp311-cp311-linux_x86_64")
    add(dist, "2.0+cpu", ["cpu-torch2.11"], project="unproven", proven=False)
    add(dist, "0.2", ["cpu-torch2.9"], project="gone")


def test_the_site_is_the_golden_one(
    tmp_path: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No identity attests a wheel that a test makes; test_signing.py verifies real attestations.
    monkeypatch.setattr(attest, "verify", lambda *_: ("github:owner/repo/release.yml",))
    dist, site = tmp_path / "dist", Folder(tmp_path / "site")
    house(dist)
    folder.write(dist, site, variants=True, now=NOW)
    for file in dist.glob("gone-*"):
        file.unlink()
    reason = 'broken & "bad"'
    yank = {"demo-1.10.0+cpu-py3-none-manylinux_2_28_x86_64.whl": yanks.yank(reason, NOW)}
    folder.write(dist, site, amend=yank, now=NOW)
    made = {path: content.decode() for path, content in tree(site.root).items() if SHOWN.fullmatch(path)}
    for path, text in made.items():
        golden(GOLDEN / path, text)
    assert {path for path in tree(GOLDEN) if SHOWN.fullmatch(path)} == set(made)
    assert writer.update(site, [], {}, now=NOW).changed == ()
