"""An index that is updated: what changes, what stays, and what an interruption leaves at each single operation."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from tests import index_wheels
from tests.index_wheels import add, beside, change, tree

from wheelmill import attest, folder, listing, recording, writer, yanks
from wheelmill.errors import InputError
from wheelmill.storage import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wheelmill.writer import Written

NEW, OLD = ["cu130-torch2.11", "cu130-torch2.12"], ["cpu-torch2.11"]
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone.utc)
DAY = dt.timedelta(days=1)


class BrokenError(Exception):
    """The process was killed here."""


class Breaking(Folder):
    """A folder in which the writer is killed before a certain operation; all that it did before stays."""

    def __init__(self, root: Path, after: int) -> None:
        super().__init__(root)
        self.left = after

    def _count(self) -> None:
        if self.left == 0:
            raise BrokenError
        self.left -= 1

    def write(self, path: str, content: bytes) -> None:
        self._count()
        super().write(path, content)

    def put(self, path: str, source: Path, sha256: str) -> None:
        self._count()
        super().put(path, source, sha256)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))


def sound(site: Path, *, hashes: bool = True) -> None:
    """Every link of every page leads to a file that is there, and what it says of that file holds."""
    for page in site.rglob("*.html"):
        for link in Links(page.read_text()).found:
            path, _, stated = str(link.get("href", "#")).partition("#")
            if not path or "://" in path:
                continue
            stated = stated.removeprefix("sha256=")
            target = page.parent / unquote(path)
            # The landing page is written last, and every page for people leads back to it.
            assert target.exists() or target.resolve() == site.resolve() / "index.html", f"{page}: {path}"
            if path.endswith(".whl") and stated and hashes:
                assert hashlib.sha256(target.read_bytes()).hexdigest() == stated, f"{page}: {path}"
    for page in site.rglob("index.json"):
        for row in json.loads(page.read_text()).get("files", ()):
            target = page.parent / unquote(row["url"])
            assert target.exists(), f"{page}: {row['url']}"
            if "_wheelmill" in row and hashes:
                assert hashlib.sha256(target.read_bytes()).hexdigest() == row["hashes"]["sha256"]
                metadata = target.with_name(target.name + ".metadata").read_bytes()
                assert hashlib.sha256(metadata).hexdigest() == row["core-metadata"]["sha256"]


def write(dist: Path, site: Folder, **options: Any) -> Written:
    return folder.write(dist, site, **{"now": NOW, **options})[1]


def full(dist: Path, site: Path, **options: Any) -> dict[str, bytes]:
    """What a full write into an empty folder gives."""
    write(dist, Folder(site), **options)
    return tree(site)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    folder_ = tmp_path / "dist"
    add(folder_, "1.0+cu130", NEW)
    add(folder_, "1.0+cpu", OLD)
    add(folder_, "2.0+cpu", OLD, project="my-other")
    return folder_


@pytest.fixture
def site(tmp_path: Path, dist: Path) -> Folder:
    made = Folder(tmp_path / "site")
    write(dist, made)
    return made


def test_the_site_holds_what_its_documentation_says(site: Folder) -> None:
    names = set(tree(site.root))
    wheel = "files/demo-1.0+cu130-py3-none-manylinux_2_28_x86_64.whl"
    assert {wheel, f"{wheel}.metadata", f"{wheel}.record.json", "all.html", "index.html"} <= names
    for folder_ in ("simple", "simple/demo", "simple/my-other", "cpu-torch2.11", "cu130-torch2.12/demo"):
        assert {f"{folder_}/index.html", f"{folder_}/index.json"} <= names
    assert "cu130-torch2.12/my-other/index.html" not in names
    assert {name for name in names if name.endswith(".html") and "-torch" in name and "/" not in name} == {
        "cpu-torch2.11.html",
        "cu130-torch2.11.html",
        "cu130-torch2.12.html",
    }
    sound(site.root)


def adding(dist: Path) -> None:
    add(dist, "1.1+cu130", NEW)


def another_environment(dist: Path) -> None:
    add(dist, "1.1+cu132", ["cu132-torch2.12"], project="third")


def taking_out(dist: Path) -> None:
    (dist / "my_other-2.0+cpu-py3-none-manylinux_2_28_x86_64.whl").unlink()


def other_bytes(dist: Path) -> None:
    add(dist, "1.0+cu130", NEW, requires=("torch>=2.11",))


def fewer_environments(dist: Path) -> None:
    change(dist / "demo-1.0+cu130-py3-none-manylinux_2_28_x86_64.whl", environments=NEW[:1])


STEPS: list[Callable[[Path], None]] = [adding, another_environment, taking_out, other_bytes, fewer_environments]


@pytest.mark.parametrize("variants", [False, True])
def test_updates_one_after_the_other_give_the_bytes_of_a_full_write(
    tmp_path: Path, dist: Path, *, variants: bool
) -> None:
    site = Folder(tmp_path / "site")
    write(dist, site, variants=variants)
    for number, step in enumerate(STEPS):
        step(dist)
        write(dist, site, grace=dt.timedelta(0))
        assert tree(site.root) == full(dist, tmp_path / f"fresh{number}", variants=variants), step.__name__
        sound(site.root)


def test_only_what_changes_is_written(dist: Path, site: Folder) -> None:
    before = {path: path.stat().st_ino for path in site.root.rglob("*") if path.is_file()}
    adding(dist)
    write(dist, site)
    written = {
        path.relative_to(site.root).as_posix()
        for path in site.root.rglob("*")
        if path.is_file() and before.get(path) != path.stat().st_ino and path.name[0] != "."
    }
    wheel = "files/demo-1.1+cu130-py3-none-manylinux_2_28_x86_64.whl"
    listings = ["simple/demo", "cu130-torch2.11/demo", "cu130-torch2.12/demo"]
    assert written == {
        *(wheel + suffix for suffix in ("", ".metadata", ".record.json")),
        *(f"{name}/index.{form}" for name in listings for form in ("html", "json")),
        *("cu130-torch2.11.html", "cu130-torch2.12.html", "all.html", "simple/index.json", "index.html"),
        *(f"wheels/{wheel.removeprefix('files/')}.html", "releases/demo-1.1.html", "data/demo-1.1.js", "data/site.js"),
    }
    assert write(dist, site).changed == ()


@pytest.mark.parametrize(
    ("step", "grace"), [*((step, dt.timedelta(0)) for step in STEPS), (taking_out, DAY), (other_bytes, DAY)]
)
def test_a_kill_at_any_operation_leaves_a_sound_index_that_the_next_run_mends(
    tmp_path: Path, dist: Path, site: Folder, step: Callable[[Path], None], grace: dt.timedelta
) -> None:
    write(dist, site, variants=True)
    base = shutil.copytree(site.root, tmp_path / "base")
    step(dist)
    write(dist, site, grace=grace)
    wanted, operations = tree(site.root), 0
    while True:
        shutil.rmtree(site.root)
        shutil.copytree(base, site.root)
        try:
            write(dist, Breaking(site.root, operations), grace=grace)
        except BrokenError:
            # Between the new bytes of a file and its pages, installers refuse it for its hash.
            sound(site.root, hashes=step is not other_bytes)
        else:
            break
        write(dist, site, grace=grace)
        assert tree(site.root) == wanted, f"killed before operation {operations}"
        operations += 1
    assert operations > 10


def test_a_kill_at_any_operation_of_the_first_write(tmp_path: Path, dist: Path) -> None:
    wanted, operations = full(dist, tmp_path / "wanted", variants=True), 0
    while True:
        site = tmp_path / f"site{operations}"
        try:
            write(dist, Breaking(site, operations), variants=True)
        except BrokenError:
            sound(site)
        else:
            break
        write(dist, Folder(site), variants=True)
        assert tree(site) == wanted
        operations += 1
    assert operations > 30


def test_another_update_than_the_killed_one_mends_too(tmp_path: Path, dist: Path, site: Folder) -> None:
    base = shutil.copytree(site.root, tmp_path / "base")
    add(tmp_path / "one", "1.1+cu130", NEW)
    add(tmp_path / "two", "2.1+cpu", OLD, project="my-other")
    either = []
    for name, folders in {"without": ["two"], "with": ["one", "two"]}.items():
        fresh = shutil.copytree(base, tmp_path / name)
        for one in folders:
            write(tmp_path / one, Folder(fresh), add=True)
        either.append(tree(fresh))
    for operations in range(25):
        shutil.rmtree(site.root)
        shutil.copytree(base, site.root)
        try:
            write(tmp_path / "one", Breaking(site.root, operations), add=True)
        except BrokenError:
            write(tmp_path / "two", site, add=True)
            found = tree(site.root)
            # A file that was put and never listed waits for its removal.
            left = json.loads(found.pop("unlisted.json", b'{"files": {}}'))["files"]
            found = {path: content for path, content in found.items() if not any(one in path for one in left)}
            assert found in either
            sound(site.root)


def test_a_replaced_file_that_was_never_recorded_is_left_out(tmp_path: Path, dist: Path, site: Folder) -> None:
    other_bytes(dist)
    with pytest.raises(BrokenError):
        write(dist, Breaking(site.root, 5))  # what is pending, what was seen, two old proofs, and the file
    add(tmp_path / "two", "2.1+cpu", OLD, project="my-other")
    written = write(tmp_path / "two", site, add=True)
    assert written.dropped == ("demo-1.0+cu130-py3-none-manylinux_2_28_x86_64.whl",)
    assert "demo-1.0%2Bcu130" not in (site.root / "all.html").read_text()
    sound(site.root)


def test_adding_keeps_the_rest_and_a_folder_of_its_own_does_not(tmp_path: Path, dist: Path, site: Folder) -> None:
    other = tmp_path / "other"
    add(other, "3.0+cpu", OLD)
    write(other, site, add=True)
    assert len(index_wheels.files(site.root, "simple/demo/index.json")) == 3
    written = write(other, site)
    assert len(written.removed) == 3
    assert list(written.pages) == OLD
    assert sorted(json.loads((site.root / "unlisted.json").read_text())["files"]) == list(written.removed)
    sound(site.root)


def test_what_is_listed_no_more_stays_for_the_grace_period(dist: Path, site: Folder) -> None:
    file = "files/my_other-2.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    taking_out(dist)
    write(dist, site, grace=7 * DAY)
    assert site.size(file)
    assert site.read("simple/my-other/index.html") is None
    assert write(dist, site, grace=7 * DAY, now=NOW + 6.9 * DAY).expired == ()
    assert write(dist, site, grace=7 * DAY, now=NOW + 7 * DAY).expired == (file.removeprefix("files/"),)
    assert [path for path in tree(site.root) if "my_other" in path] == []
    assert site.size("unlisted.json") is None


def test_what_comes_back_in_time_is_not_removed(tmp_path: Path, dist: Path, site: Folder) -> None:
    taking_out(dist)
    write(dist, site)
    add(dist, "2.0+cpu", OLD, project="my-other")
    write(dist, site, now=NOW + DAY)
    write(dist, site, now=NOW + 30 * DAY)
    assert tree(site.root) == full(dist, tmp_path / "fresh")


def test_a_yank_is_shown_outlives_full_writes_and_is_remembered(dist: Path, site: Folder) -> None:
    file = "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    reason = 'wrong <b>"values"</b>'
    writer.update(site, [], {}, amend={file: yanks.yank(reason, NOW)}, now=NOW)
    (row,) = index_wheels.files(site.root, "cpu-torch2.11/demo/index.json")
    assert row["yanked"] == reason
    assert {link.get("data-yanked") for link in Links((site.root / "cpu-torch2.11.html").read_text()).found} == {
        reason,
        None,
    }
    yanked = tree(site.root)
    for again in (False, True):
        write(dist, site, full=again)
        assert tree(site.root) == yanked
    writer.update(site, [], {}, amend={file: yanks.unyank(NOW + DAY)}, now=NOW)
    (row,) = index_wheels.files(site.root, "cpu-torch2.11/demo/index.json")
    record = json.loads((site.root / f"files/{file}.record.json").read_text())
    assert row["yanked"] is False
    assert "yanked" not in record
    assert record["yanks"] == [{"reason": reason, "since": "2026-03-01T12:00:00Z", "until": "2026-03-02T12:00:00Z"}]
    with pytest.raises(InputError, match="is not yanked"):
        writer.update(site, [], {}, amend={file: yanks.unyank(NOW)})


@pytest.mark.parametrize("file", ["demo-9.9-py3-none-any.whl", "../../etc/passwd", "x"])
def test_what_is_not_listed_cannot_be_yanked(site: Folder, file: str) -> None:
    before = tree(site.root)
    with pytest.raises(InputError):
        writer.update(site, [], {}, amend={file: yanks.yank("no", NOW)})
    assert tree(site.root) == before


def test_an_attestation_beside_the_wheel_is_published_and_stays(
    dist: Path, site: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No identity attests a wheel that a test makes; test_signing.py verifies real attestations.
    monkeypatch.setattr(attest, "verify", lambda *_: ("github:owner/repo/release.yml",))
    wheel = dist / "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    proof = beside(wheel, ".provenance", {"version": 1, "attestation_bundles": []})
    write(dist, site)
    (row,) = index_wheels.files(site.root, "cpu-torch2.11/demo/index.json")
    assert row["provenance"] == "../../files/demo-1.0%2Bcpu-py3-none-manylinux_2_28_x86_64.whl.provenance"
    assert site.read(f"files/{wheel.name}.provenance") == proof.read_bytes()
    assert 'data-provenance="files/demo-1.0%2Bcpu' in (site.root / "cpu-torch2.11.html").read_text()
    newer = beside(wheel, ".provenance", {"version": 2}).read_bytes()
    write(dist, site)
    assert site.read(f"files/{wheel.name}.provenance") == newer
    proof.unlink()
    write(dist, site, full=True)
    assert site.read(f"files/{wheel.name}.provenance") == newer


def test_a_full_write_mends_damage_that_an_incremental_one_trusts(dist: Path, site: Folder) -> None:
    good = tree(site.root)
    wheel = site.root / "files/demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    wheel.write_bytes(b"damaged")
    (site.root / "wheels/gone-1.0-py3-none-any.whl.html").write_text("stale")
    (site.root / "cu118-torch2.4.html").write_text("stale")
    (site.root / "simple/demo/index.json").write_text("{")
    (site.root / "notes.txt").write_text("mine")
    write(dist, site)
    assert wheel.read_bytes() == b"damaged"
    write(dist, site, full=True)
    assert tree(site.root) == {**good, "notes.txt": b"mine"}


def test_a_folder_that_is_no_index_loses_nothing(tmp_path: Path, dist: Path) -> None:
    mine = {"data/table.js": b"1", "wheels/a.whl.html": b"2", "releases/x.html": b"3", "src/c.py": b"4"}
    for path, content in mine.items():
        Folder(tmp_path / "project").write(path, content)
    write(dist, Folder(tmp_path / "project"))
    assert mine.items() <= tree(tmp_path / "project").items()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("simple/index.json", "{"),
        ("simple/index.json", '{"projects": [{"name": "../x", "_wheelmill": {"versions": []}}]}'),
        ("simple/demo/index.json", '{"files": [{"_wheelmill": {}}]}'),
        ("simple/demo/index.json", '{"files": 3}'),
        ("simple/demo/index.json", '{"files": [{"filename": "<b>-variants.json", "hashes": {}, "size": 1}]}'),
        ("all.html", "<html>"),
        ("cu130-torch2.11.html", "another page"),
        ("cu130-torch2.11/index.json", '{"projects": [{"name": "a/b"}]}'),
        ("pending.json", '{"files": ["../../x"]}'),
        ("unlisted.json", '{"files": {"a-1-py3-none-any.whl": "yesterday"}}'),
    ],
)
def test_an_index_that_cannot_be_read_is_refused_and_written_anew(
    tmp_path: Path, dist: Path, site: Folder, path: str, content: str
) -> None:
    (site.root / path).write_text(content)
    adding(dist)
    before = tree(site.root)
    with pytest.raises(InputError, match="of the index") as caught:
        write(dist, site)
    assert "--full" in caught.value.remedy
    assert tree(site.root) == before
    write(dist, site, full=True)
    assert tree(site.root) == full(dist, tmp_path / "fresh")


def test_an_index_of_another_form_is_not_added_to(dist: Path, site: Folder) -> None:
    root = json.loads((site.root / listing.ROOT).read_text())
    root["_wheelmill"]["format"] = 0
    (site.root / listing.ROOT).write_text(json.dumps(root))
    adding(dist)
    with pytest.raises(InputError, match="form 0"):
        write(dist, site)


def test_a_check_sees_the_index_and_stops_the_update(dist: Path, site: Folder) -> None:
    before = tree(site.root)

    def check(current: listing.Current) -> None:
        assert current.known == {"demo": ("1.0",), "my-other": ("2.0",)}
        raise InputError("no")

    wheel = recording.read(add(dist, "0.1+cpu", OLD))
    with pytest.raises(InputError, match="no"):
        writer.update(site, [wheel.record], {wheel.record.file: wheel.source}, check=check)
    assert tree(site.root) == before


@pytest.mark.parametrize("changes", [{"project": "other"}, {"release": "1.1+cpu"}, {"release": "x"}])
def test_a_record_that_contradicts_its_file_is_refused(dist: Path, site: Folder, changes: dict[str, str]) -> None:
    wheel = recording.read(dist / "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl")
    record = wheel.record.model_copy(update=changes)
    with pytest.raises(InputError):
        writer.update(site, [record], {record.file: wheel.source})


def test_what_vouched_for_other_bytes_of_a_name_goes_with_them(
    dist: Path, site: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attest, "verify", lambda *_: ("github:owner/repo/release.yml",))
    wheel = dist / "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    proof = beside(wheel, ".provenance", {"version": 1})
    write(dist, site)
    site.write(f"files/{wheel.name}.sig", b"of the old bytes")
    proof.unlink()
    add(dist, "1.0+cpu", OLD, requires=("numpy",))
    write(dist, site)
    write(dist, site, full=True)
    assert [site.size(f"files/{wheel.name}{one}") for one in (".sig", ".provenance")] == [None, None]
    (row,) = index_wheels.files(site.root, "cpu-torch2.11/demo/index.json")
    assert "provenance" not in row


def test_a_wheel_that_changes_between_its_reading_and_its_copy_is_not_listed(dist: Path, tmp_path: Path) -> None:
    out = Folder(tmp_path / "out")
    wheel = dist / "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    with pytest.raises(InputError, match="was changed while"):
        write(dist, out, gate=lambda _: wheel.write_bytes(b"other"))
    assert out.size("all.html") is None


@pytest.mark.parametrize("page", ["simple/foo/index.html", "simple/index.json"])
def test_an_index_of_another_tool_is_written_over_only_when_asked(dist: Path, tmp_path: Path, page: str) -> None:
    other = Folder(tmp_path / "other")
    other.write(page, b'{"projects": [{"name": "foo"}]}')
    for add_ in (False, True):
        with pytest.raises(InputError) as told:
            write(dist, other, add=add_)
        assert "--full" in told.value.remedy
    assert set(tree(other.root)) == {page}
    write(dist, other, full=True)
    sound(other.root)


@pytest.mark.parametrize("name", ["demo.whl", "demo-x-py3-none-any.whl", "other-1.0-py3-none-any.whl"])
def test_a_page_that_lists_what_is_no_wheel_of_its_project_is_refused(dist: Path, site: Folder, name: str) -> None:
    page = site.root / "simple/demo/index.json"
    page.write_text(page.read_text().replace("demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl", name))
    adding(dist)
    with pytest.raises(InputError, match="is no wheel of demo"):
        write(dist, site)


def test_a_record_of_another_release_than_its_name_is_not_read(site: Folder) -> None:
    file = "demo-1.0+cpu-py3-none-manylinux_2_28_x86_64.whl"
    current = listing.read(site, anew=False)
    assert current.record(file)
    for wrong in ("nope", "1.1+cpu"):
        text = (site.read(f"files/{file}.record.json") or b"").decode()
        site.write(f"files/{file}.record.json", text.replace('"1.0+cpu"', f'"{wrong}"').encode())
        assert current.record(file) is None
