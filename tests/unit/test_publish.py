"""Publishing into a folder: what is sent, what stays, and every way in which a site can be damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.index_wheels import add, beside, tree

from wheelmill import folder, keys, publish, yanks
from wheelmill.errors import InputError
from wheelmill.publish import Asked, RefusedError
from wheelmill.storage import Folder
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

import datetime as dt

FILE = "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
ASKED = Asked(demanded=("audit",))
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone.utc)


def indexed(tmp_path: Path, *versions: str, name: str = "site", **options: Any) -> Path:
    for version in versions:
        add(tmp_path / f"dist-{name}", version, ["cpu-torch2.11"])
    folder.write(tmp_path / f"dist-{name}", Folder(tmp_path / name), **options)
    return tmp_path / name


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return indexed(tmp_path, "1.0+cpu")


@pytest.fixture
def out(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "out")


def test_a_site_goes_there_as_it_is_and_only_once(site: Path, out: Folder) -> None:
    done = publish.publish(site, out, ASKED)
    assert (done.new, done.changed, done.unchanged) == ((FILE,), (), 0)
    assert tree(out.root) == tree(site)
    times = {path: path.stat().st_mtime_ns for path in out.root.rglob("[!.]*") if path.is_file()}
    done = publish.publish(site, out, ASKED)
    assert (done.new, done.changed, done.unchanged) == ((), (), 1)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_what_the_other_end_lists_besides_stays_unless_it_is_to_be_exact(tmp_path: Path, out: Folder) -> None:
    publish.publish(indexed(tmp_path, "1.0+cpu"), out, ASKED)
    second = indexed(tmp_path, "1.1+cpu", name="second")
    publish.publish(second, out, ASKED)
    assert out.size(f"files/{FILE}")
    assert "1.0%2Bcpu" in (out.read("all.html") or b"").decode()
    done = publish.publish(second, out, Asked(demanded=(), exactly=True))
    assert done.removed == (FILE,)
    assert "1.0%2Bcpu" not in (out.read("all.html") or b"").decode()
    assert out.size(f"files/{FILE}")  # the grace period
    again = indexed(tmp_path, "1.0+cpu", name="third")
    (again / "files" / FILE).write_bytes((again / "files" / FILE).read_bytes())
    assert publish.publish(again, out, Asked(demanded=(), allow_older=True)).new == (FILE,)


def test_a_dry_run_tells_and_touches_nothing(site: Path, out: Folder) -> None:
    before = tree(site)
    done = publish.publish(site, out, Asked(demanded=(), dry_run=True, attest=True))
    assert done.new == (FILE,)
    assert done.size == (site / "files" / FILE).stat().st_size
    assert not out.root.exists()
    assert tree(site) == before


def test_a_yank_there_is_not_undone_by_an_older_one_here(tmp_path: Path, site: Path, out: Folder) -> None:
    day = dt.timedelta(days=1)
    dist = tmp_path / "dist-site"
    folder.write(dist, Folder(site), amend={FILE: yanks.yank("old", NOW - 2 * day)})
    folder.write(dist, Folder(site), amend={FILE: yanks.unyank(NOW - day)})
    publish.publish(site, out, ASKED)
    folder.write(dist, out, add=True, amend={FILE: yanks.yank("it crashes", NOW)})
    publish.publish(site, out, ASKED)
    assert json.loads(out.read("simple/demo/index.json") or b"")["files"][0]["yanked"] == "it crashes"
    folder.write(dist, Folder(site), amend={FILE: yanks.yank("once more", NOW + day)})
    assert publish.publish(site, out, ASKED).changed == (FILE,)
    assert json.loads(out.read("simple/demo/index.json") or b"")["files"][0]["yanked"] == "once more"


def test_new_wheels_are_signed_and_their_record_says_by_whom(tmp_path: Path, site: Path, out: Folder) -> None:
    public = keys.create(tmp_path / "key", "")
    done = publish.publish(site, out, ASKED, key=keys.load(str(tmp_path / "key")))
    assert done.signed == (FILE,)
    assert json.loads(out.read(f"files/{FILE}.record.json") or b"")["vouched"] == [public.fingerprint]
    (site / "files" / f"{FILE}.sig").unlink()
    assert publish.publish(site, out, ASKED).changed == ()
    assert json.loads(out.read(f"files/{FILE}.record.json") or b"")["vouched"] == [public.fingerprint]


def test_a_file_that_left_the_pages_keeps_its_name(tmp_path: Path, out: Folder) -> None:
    publish.publish(indexed(tmp_path, "1.0+cpu", "1.1+cpu"), out, ASKED)
    publish.publish(indexed(tmp_path, "1.1+cpu", name="second"), out, Asked(demanded=(), exactly=True))
    add(tmp_path / "dist-third", "1.0+cpu", ["cpu-torch2.11"], requires=("numpy",))
    with pytest.raises(RefusedError) as told:
        publish.publish(indexed(tmp_path, name="third"), out, Asked(demanded=(), allow_older=True))
    assert [one.rule for one in told.value.refusals] == ["overwrite"]


def rules(site: Path, out: Folder) -> list[tuple[str, str]]:
    with pytest.raises(RefusedError) as told:
        publish.publish(site, out, ASKED)
    assert not out.root.exists()
    assert all(one.what in str(told.value) and one.remedy for one in told.value.refusals)
    return [(one.subject, one.rule) for one in told.value.refusals]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("subject", "damage"),
    [
        (FILE, lambda site: flip(site / "files" / FILE)),
        (FILE, lambda site: (site / "files" / FILE).write_bytes(b"cut")),
        (FILE, lambda site: (site / "files" / FILE).unlink()),
        (FILE, lambda site: (site / f"files/{FILE}.record.json").unlink()),
        (FILE, lambda site: (site / f"files/{FILE}.record.json").write_text("{")),
        (FILE, lambda site: (site / f"files/{FILE}.record.json").write_text("{}")),
        (FILE, lambda site: (site / f"files/{FILE}.metadata").unlink()),
        (FILE, lambda site: (site / f"files/{FILE}.metadata").write_text("Name: demo")),
        ("simple/demo/index.json", lambda site: (site / "simple/demo/index.json").write_text("<html>")),
        ("simple/demo/index.json", lambda site: (site / "simple/demo/index.json").write_text('{"files": []}')),
        ("simple/demo/index.json", lambda site: (site / "simple/demo/index.json").unlink()),
    ],
)
def test_a_damaged_site_is_not_published(
    site: Path, out: Folder, subject: str, damage: Callable[[Path], object]
) -> None:
    damage(site)
    assert rules(site, out) == [(subject, "damaged")]


def test_bytes_that_pass_for_another_release_are_refused(tmp_path: Path, out: Folder) -> None:
    """A record may be made to fit; METADATA, which installers read, is held against it."""
    site = indexed(tmp_path, "1.0+cpu")
    files = site / "files"
    record = json.loads((files / f"{FILE}.record.json").read_text())
    other = FILE.replace("1.0+", "1.1+")
    for suffix in ("", ".metadata"):
        (files / f"{FILE}{suffix}").rename(files / f"{other}{suffix}")
    (files / f"{FILE}.record.json").unlink()
    beside(files / other, ".record.json", {**record, "file": other, "release": "1.1+cpu"})
    page = site / "simple/demo/index.json"
    page.write_text(page.read_text().replace(FILE, other))
    assert rules(site, out) == [(other, "damaged")]


def test_a_wrong_signature_is_not_published(site: Path, out: Folder) -> None:
    (site / f"files/{FILE}.sig").write_text("none")
    assert rules(site, out) == [(FILE, "signature")]


def test_what_is_no_index_is_told(tmp_path: Path, out: Folder) -> None:
    with pytest.raises(InputError, match="is no index"):
        publish.publish(tmp_path, out, ASKED)


def test_a_damaged_index_at_the_other_end_is_told_and_left_alone(site: Path, out: Folder) -> None:
    publish.publish(site, out, ASKED)
    for path in ("simple/index.json", "simple/demo/index.json"):
        good = out.read(path) or b""
        out.write(path, b"<html>")
        before = tree(out.root)
        with pytest.raises(InputError, match=f"is damaged: {path}"):
            publish.publish(site, out, ASKED)
        assert tree(out.root) == before
        out.write(path, good)
    assert file_sha256(out.root / "files" / FILE) == file_sha256(site / "files" / FILE)


def test_metadata_of_a_published_wheel_is_held_against_it_when_its_record_changes(
    tmp_path: Path, site: Path, out: Folder
) -> None:
    publish.publish(site, out, ASKED)
    good = out.read(f"files/{FILE}.metadata")
    folder.write(tmp_path / "dist-site", Folder(site), amend={FILE: yanks.yank("bad", NOW)})
    (site / f"files/{FILE}.metadata").write_text("Name: demo\nRequires-Dist: other\n")
    with pytest.raises(RefusedError, match="is not the METADATA in it"):
        publish.publish(site, out, ASKED)
    assert out.read(f"files/{FILE}.metadata") == good


def test_a_yank_that_was_ended_at_the_other_end_excuses_no_gate(tmp_path: Path, site: Path, out: Folder) -> None:
    dist = tmp_path / "dist-site"
    folder.write(dist, Folder(site), amend={FILE: yanks.yank("bad", NOW)})
    publish.publish(site, out, ASKED)
    folder.write(dist, out, add=True, amend={FILE: yanks.unyank(NOW + dt.timedelta(days=1))})
    wheel = dist / FILE
    cell = {"cuda": "cpu", "torch": "2.11", "python": "3.12", "result": "pass"}
    beside(wheel, ".cover.json", {"version": 1, "sha256": file_sha256(wheel), "cells": [cell]})
    folder.write(dist, Folder(site))
    with pytest.raises(RefusedError, match="has not passed ops"):
        publish.publish(site, out, Asked(demanded=("ops",)))


def test_a_yank_that_only_the_other_end_knows_asks_for_nothing(tmp_path: Path, site: Path, out: Folder) -> None:
    dist = tmp_path / "dist-site"
    folder.write(dist, Folder(site), amend={FILE: yanks.yank("old", NOW)})
    folder.write(dist, Folder(site), amend={FILE: yanks.unyank(NOW)})
    publish.publish(site, out, ASKED)
    later = NOW + dt.timedelta(days=1)
    folder.write(dist, out, add=True, amend={FILE: yanks.yank("bad", later)})
    assert publish.publish(site, out, Asked(demanded=("ops",))).changed == ()


def test_an_index_of_another_tool_is_not_published_over(site: Path, out: Folder) -> None:
    out.write("simple/foo/index.html", b"another tool's")
    with pytest.raises(InputError, match="did not write"):
        publish.publish(site, out, ASKED)
    assert set(tree(out.root)) == {"simple/foo/index.html"}
