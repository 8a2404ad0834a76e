"""`wheelmill index`: what it says and refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from tests.index_wheels import add, beside, tree

from wheelmill import folder
from wheelmill.cli_index import index
from wheelmill.errors import GateError, InputError
from wheelmill.storage import Folder

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

FILE = "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(index, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    add(tmp_path / "dist", "1.0+cpu", ["cpu-torch2.11"])
    add(tmp_path / "dist", "1.1+cpu", ["cpu-torch2.11"], proven=False)
    return tmp_path / "dist"


@pytest.fixture
def site(tmp_path: Path, dist: Path) -> Path:
    assert run(dist, "--out", tmp_path / "site").exit_code == 0
    return tmp_path / "site"


def test_what_is_left_out_is_named_also_when_nothing_changed(tmp_path: Path, dist: Path) -> None:
    for _ in range(2):
        said = run(dist, "--out", tmp_path / "site").output
        assert "left out, not proven to load: demo-1.1+cpu" in said
        assert f"cpu-torch2.11: {tmp_path / 'site' / 'cpu-torch2.11.html'}" in said


def test_reports_of_other_bytes_are_noted(tmp_path: Path, dist: Path) -> None:
    beside(dist / FILE, ".gates.json", {"sha256": "0"})
    assert f"note: {FILE}.gates.json is of another file" in run(dist, "--out", tmp_path / "site").output


def test_the_report_as_json(dist: Path, site: Path) -> None:
    assert json.loads(run(dist, "--out", site, "--json").output) == {
        "version": 1,
        "pages": {"cpu-torch2.11": [FILE]},
        "left_out": ["demo-1.1+cpu-py3-none-manylinux_2_28_x86_64.whl"],
        "changed": [],
        "removed": [],
        "expired": [],
    }


def test_a_yank_needs_no_folder_of_wheels_and_costs_no_full_write(dist: Path, site: Path) -> None:
    assert run("--out", site, "--yank", f"{FILE}=wrong = bad values").exit_code == 0
    assert 'data-yanked="wrong = bad values"' in (site / "all.html").read_text()
    assert folder.scan(dist, (site / ".seen.json").read_bytes()).same_unproven
    assert json.loads(run("--out", site, "--unyank", FILE, "--json").output)["changed"] == [FILE]
    assert "data-yanked" not in (site / "all.html").read_text()


@pytest.mark.parametrize("value", ["x.whl", "x.whl=", "x.whl= ", "=why", "x.whl=a\nb"])
def test_a_yank_without_a_reason_is_refused(site: Path, value: str) -> None:
    result = run("--out", site, "--yank", value)
    assert result.exit_code == 2
    assert "FILE=REASON" in result.output


@pytest.mark.parametrize("value", ["7", "-1d", "1w", "", "1.5d", "9999999d"])
def test_a_grace_period_is_a_duration(dist: Path, site: Path, value: str) -> None:
    assert "is no duration" in run(dist, "--out", site, "--grace", value).output


def test_what_cannot_be_done_is_refused_and_changes_nothing(tmp_path: Path, dist: Path, site: Path) -> None:
    before = tree(site)
    with pytest.raises(InputError, match="nothing to do"):
        run("--out", site)
    with pytest.raises(InputError, match="to be yanked and its yank ended"):
        run("--out", site, "--yank", f"{FILE}=x", "--unyank", FILE)
    with pytest.raises(InputError, match="lists no demo-9"):
        run("--out", site, "--yank", "demo-9.9-py3-none-any.whl=x")
    with pytest.raises(InputError, match="holds no index"):
        run("--out", tmp_path / "nothing", "--yank", f"{FILE}=x")
    (dist / FILE).unlink()
    with pytest.raises(GateError, match=r"no wheel of .* was proven"):
        run(dist, "--out", site)
    assert tree(site) == before


def test_gates_that_the_matrix_demands_are_asked_of_unchanged_wheels_too(
    tmp_path: Path, dist: Path, site: Path
) -> None:
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text('version: 1\ntorch: ">=2.10"\ncuda: [cpu]\ngates: {publish: [audit, ops]}\n')
    with pytest.raises(GateError, match=r"demo-1\.0\+cpu.*: ops: it was never run"):
        run(dist, "--out", site, "--require-gates", "--matrix", matrix)


def test_variant_metadata_stays_until_it_is_turned_off(dist: Path, site: Path) -> None:
    path = "simple/demo/demo-1.0-variants.json"
    for options, there in (([], False), (["--variants"], True), ([], True), (["--no-variants"], False)):
        run(dist, "--out", site, *options)
        assert (Folder(site).read(path) is not None) is there
    run(dist, "--out", site, "--variants")
    add(dist, "1.2+cpu", ["cpu-torch2.11"])
    run(dist, "--out", site)
    assert '<a href="demo-1.2-variants.json#sha256=' in (site / "simple/demo/index.html").read_text()
    assert '<a href="demo-1.0-variants.json#sha256=' in (site / "simple/demo/index.html").read_text()
