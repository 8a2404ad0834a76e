"""A refresh of the tables against what PyPI really said, trimmed (tests/refresh_recorded.py), read from a folder."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from tests import refresh_recorded

from wheelmill import cli_refresh, facts, images, refresh, refresh_read, refresh_tables, refresh_view
from wheelmill.__main__ import main
from wheelmill.errors import InputError, MissingError
from wheelmill.refresh_change import Row
from wheelmill.web import Web

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATE = "2026-12-06"


def without(text: str, *rows: str) -> str:
    """A table without those rows."""
    for row in rows:
        text = re.sub(rf'(?ms)^\["?{re.escape(row)}"?\]\n.*?(?=^\[|\Z)', "", text)
    return text.rstrip() + "\n"


class Place:
    """Tables in a folder, and servers in another."""

    def __init__(self, root: Path) -> None:
        self.root, self.tables, self.whl = root, root / "tables", root / "whl"
        self.pages, self.parts = refresh_recorded.pages(), refresh_recorded.parts()
        shutil.copytree(refresh_recorded.TABLES, self.tables)

    def edit(self, table: str, change: Callable[[str], str]) -> None:
        file = self.tables / f"{table}.toml"
        file.write_text(change(file.read_text()))

    def text(self, table: str) -> str:
        return (self.tables / f"{table}.toml").read_text()

    def variant(self, tag: str, *releases: str, pythons: tuple[str, ...] = ()) -> None:
        """A page of torch's own index, with those releases of that tag for each Python that PyPI has them for."""
        files = []
        for one in self.pages["torch"]:
            name = one["filename"]
            if (release := name.split("-")[1]) in releases and (not pythons or name.split("-")[3] in pythons):
                files.append({"filename": name.replace(release, f"{release}+{tag}", 1), "url": name})
        refresh_recorded.page(self.whl / tag / "torch", "torch", files)

    def all_variants(self) -> None:
        self.variant("cpu", "2.9.1", "2.10.0", "2.14.1", "2.15.0")
        self.variant("cu126", "2.9.1", "2.10.0", "2.14.1")
        self.variant("cu128", "2.9.1", "2.10.0")
        self.variant("cu130", "2.9.1", "2.10.0", "2.14.1")
        self.variant("cu132", "2.14.1", "2.15.0")

    def served(self) -> tuple[str, str]:
        return refresh_recorded.lay_out(self.root, self.pages, self.parts), (self.whl / "{cuda}").as_uri()

    def result(self) -> refresh.Result:
        pypi, torch = self.served()
        torch = torch.replace("%7B", "{").replace("%7D", "}")
        known = facts.load(tables=self.tables)
        said = refresh_read.read(known, refresh_read.Places(pypi=pypi, torch=torch), Web())
        return refresh.compare(known, said, DATE)

    def write(self, result: refresh.Result) -> None:
        old = refresh_tables.texts(self.tables)
        refresh_tables.write(self.tables, old, refresh_tables.changed(old, result, DATE))

    def run(self, *arguments: str) -> int:
        pypi, torch = self.served()
        torch = torch.replace("%7B", "{").replace("%7D", "}")
        where = ["--pypi", pypi, "--torch-index", torch, "--tables", str(self.tables), "--no-images"]
        return main(["refresh", *where, *arguments])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def told(rows: tuple[Any, ...]) -> list[str]:
    return [f"{one.row}: {one.what}" for one in rows]


def yank(place: Place, release: str) -> None:
    for one in place.pages["torch"]:
        if f"-{release}-" in one["filename"]:
            one["yanked"] = "broken"


def test_tables_that_are_up_to_date_do_not_change(place: Place) -> None:
    place.all_variants()
    result = place.result()
    assert (result.changes, result.rows, result.differs, result.open, result.unreached) == ((), (), (), (), ())
    before = place.text("torch")
    place.write(result)
    assert place.text("torch") == before


def test_a_new_release_gets_the_row_that_a_person_wrote_but_for_what_nobody_says(place: Place) -> None:
    place.all_variants()
    by_hand = facts.load(tables=place.tables)
    whole = place.text("torch")
    place.edit("torch", lambda text: without(text, "2.14", "2.15"))
    result = place.result()
    assert [row.row for row in result.rows] == ["2.14", "2.15"]
    place.write(result)
    made = facts.load(tables=place.tables)
    for minor in ("2.14", "2.15"):
        for field in ("release", "pypi", "cuda", "python", "cxx", "manylinux", "cxx11_abi"):
            assert getattr(made.torch[minor], field) == getattr(by_hand.torch[minor], field), (minor, field)
        assert made.torch[minor].sm == {}
    said = place.text("torch")
    assert said.startswith(without(whole, "2.14", "2.15"))
    assert 'python = ["3.11", "3.12", "3.13", "3.14", "3.15", "3.14t", "3.15t"]' in said
    assert (
        f"PyPI's index (release, python); torch's own index (cuda); the PyPI wheel of 2.15.0 (pypi, cxx, cxx11_abi); "
        f"read {DATE}" in said
    )
    assert "2.15: the SM targets of torch's own kernels for cu132 (sm)" in told(result.open)
    assert place.result().rows == ()


def test_a_new_release_without_torchs_index_has_the_variant_of_pypi_alone(place: Place) -> None:
    place.edit("torch", lambda text: without(text, "2.15"))
    result = place.result()
    (row,) = result.rows
    assert row.fields["cuda"] == ["cu132"]
    assert "only the PyPI variant is known yet (cuda)" in str(row.fields["source"])
    assert [one.source for one in result.unreached] == ["torch's own index"]
    assert any("the variants beside PyPI's, cpu among them" in one for one in told(result.open))
    assert result.changes == ()


def test_a_row_goes_to_its_place_and_every_other_byte_stays(place: Place) -> None:
    place.all_variants()
    whole = place.text("torch")
    place.edit("torch", lambda text: without(text, "2.10"))
    place.write(place.result())
    assert list(re.findall(r'^\["(.+)"\]', place.text("torch"), re.MULTILINE)) == ["2.9", "2.10", "2.14", "2.15"]
    assert without(place.text("torch"), "2.10") == without(whole, "2.10")


def test_a_comment_above_a_head_stays_with_its_row(place: Place) -> None:
    place.all_variants()
    place.edit(
        "torch", lambda text: without(text, "2.14").replace('["2.15"]', '# First line.\n# Of the newest.\n["2.15"]')
    )
    place.write(place.result())
    assert '# First line.\n# Of the newest.\n["2.15"]' in place.text("torch")
    assert re.findall(r'^\["(.+)"\]', place.text("torch"), re.MULTILINE)[-2:] == ["2.14", "2.15"]


@pytest.mark.parametrize(
    "file", ["torch-1!2.0.0-cp313-cp313", "torch-3-cp313-cp313", "torch-2.15.0-cp3x-cp3x", "cuda_toolkit-14-py3-none"]
)
def test_a_release_that_no_table_can_hold_is_none(place: Place, file: str) -> None:
    page = place.pages[file.split("-", maxsplit=1)[0].replace("_", "-")]
    platform = "any" if file.endswith("none") else "manylinux_2_28_x86_64"
    page.append({**page[-1], "filename": f"{file}-{platform}.whl"})
    place.all_variants()
    result = place.result()
    assert (result.changes, result.rows, result.unreached) == ((), (), ())


def test_an_odd_name_in_torchs_index_costs_nothing(place: Place) -> None:
    place.all_variants()
    page = place.whl / "cpu" / "torch" / "index.json"
    content = json.loads(page.read_text())
    content["files"].append({"filename": "torch-1.0.0.with.pypi-cp27.whl", "url": "torch-1.0.0.with.pypi-cp27.whl"})
    page.write_text(json.dumps(content))
    assert place.result().unreached == ()


def test_a_cuda_of_torch_without_a_row_is_told(place: Place) -> None:
    place.variant("cpu", "2.9.1", "2.10.0", "2.14.1", "2.15.0")
    place.all_variants()
    place.pages["cuda-toolkit"] = [{"filename": "cuda_toolkit-12.1.1-py3-none-any.whl"}, *place.pages["cuda-toolkit"]]
    place.variant("cu121", "2.15.0")
    assert "cu121: torch has wheels of it, and it has no row" in told(place.result().open)


def test_a_patch_release_moves_the_row_where_all_its_variants_have_it(place: Place) -> None:
    place.all_variants()
    whole = place.text("torch")
    place.edit("torch", lambda text: text.replace('release = "2.14.1"', 'release = "2.14.0"'))
    result = place.result()
    assert [(one.field, one.old, one.new) for one in result.changes] == [("release", "2.14.0", "2.14.1")]
    place.write(result)
    assert place.text("torch") == whole.replace(
        "the PyPI wheel of 2.14.1 (pypi, cxx); read 2026-11-29",
        f"the PyPI wheel of 2.14.1 (pypi, cxx); read 2026-11-29; PyPI's index (release), refreshed {DATE}",
    )


@pytest.mark.parametrize("index", ["missing", "behind"])
def test_a_patch_release_whose_variants_are_not_known_leaves_the_row(place: Place, index: str) -> None:
    if index == "behind":
        place.all_variants()
        place.variant("cu126", "2.9.1", "2.10.0")
    place.edit("torch", lambda text: text.replace('release = "2.14.1"', 'release = "2.14.0"'))
    result = place.result()
    assert result.changes == ()
    (one,) = told(result.differs)
    assert one.startswith("2.14: 2.14.1 is out, and the row stays at 2.14.0: ")
    assert one.endswith("index was not read" if index == "missing" else "torch's index has no cu126 of it")


def test_a_new_variant_and_a_new_python_are_added_with_their_source(place: Place) -> None:
    place.all_variants()
    place.variant("cu134", "2.15.0")
    place.edit("torch", lambda text: text.replace('"3.15", "3.14t", "3.15t"]', '"3.14t"]'))
    result = place.result()
    assert {(one.row, one.field) for one in result.changes} == {("2.15", "cuda"), ("2.15", "python")}
    place.write(result)
    row = facts.load(tables=place.tables).torch["2.15"]
    assert row.cuda == ("cpu", "cu132", "cu134")
    assert row.python[-1] == "3.15t"
    clauses = f"PyPI's index (python), refreshed {DATE}; torch's own index (cuda), refreshed {DATE}"
    assert clauses in place.text("torch")
    assert "2.15: the SM targets of torch's own kernels for cu134 (sm)" in told(result.open)


def test_what_a_later_refresh_says_takes_the_place_of_what_an_earlier_one_said() -> None:
    source = refresh_tables._sourced("a hand; read 2026-11-29", "PyPI's index", ["release"], "2026-12-06")
    source = refresh_tables._sourced(source, "torch's own index", ["cuda"], "2026-12-06")
    source = refresh_tables._sourced(source, "PyPI's index", ["release", "python"], "2026-12-13")
    assert source == (
        "a hand; read 2026-11-29; torch's own index (cuda), refreshed 2026-12-06; "
        "PyPI's index (release, python), refreshed 2026-12-13"
    )


def test_a_yanked_release_is_told_and_the_row_stays(place: Place) -> None:
    place.all_variants()
    yank(place, "2.14.1")
    yank(place, "2.15.0")
    before = place.text("torch")
    result = place.result()
    place.write(result)
    assert place.text("torch") == before
    assert told(result.differs) == [
        "2.14: the row has 2.14.1, and the newest on PyPI that is not yanked is older: 2.14.0",
        "2.15: PyPI has no wheel of it for Linux x86_64 that is not yanked",
    ]


def test_a_yanked_new_release_gets_no_row(place: Place) -> None:
    place.edit("torch", lambda text: without(text, "2.15"))
    yank(place, "2.15.0")
    assert place.result().rows == ()


def test_what_a_server_contradicts_is_told_and_not_overwritten(place: Place) -> None:
    place.all_variants()
    place.variant("cu130", "2.9.1", "2.10.0", "2.14.1", pythons=("cp310", "cp311", "cp312", "cp313", "cp314"))
    place.edit(
        "torch",
        lambda text: (
            text.replace('pypi = "cu132"', 'pypi = "cu130"')
            .replace('cuda = ["cpu", "cu132"]', 'cuda = ["cpu", "cu118", "cu130", "cu132"]')
            .replace("sm.cu132", "sm.cu130")
            .replace('python = ["3.11", "3.12"', 'python = ["3.10", "3.11", "3.12"')
        ),
    )
    before = place.text("torch")
    result = place.result()
    place.write(result)
    assert place.text("torch") == before
    assert set(told(result.differs)) >= {
        "2.15: the CUDA of its PyPI wheel is cu132, not cu130",
        "2.15: torch's index has no cu118 of 2.15.0",
        "2.15: PyPI has no wheel of 2.15.0 for Python 3.10",
        "2.9: cu130 of 2.9.1 has no wheel for Python 3.13t, 3.14t, which PyPI has",
    }


def test_a_new_cuda_gets_the_row_that_a_person_wrote(place: Place) -> None:
    by_hand = facts.load(tables=place.tables).cuda["cu135"]
    text = place.text("cuda")
    place.edit("cuda", lambda text: without(text, "cu135"))
    result = place.result()
    place.write(result)
    assert facts.load(tables=place.tables).cuda["cu135"] == by_hand
    assert place.text("cuda").rpartition("source = ")[0] == text.rpartition("source = ")[0]
    assert told(result.open) == ["cu135: the PTX ISA that its compiler writes (ptx)"]


def test_a_new_cuda_is_left_out_where_reading_targets_fails_on_the_cuda_that_is_known(place: Place) -> None:
    place.edit("cuda", lambda text: without(text, "cu135").replace('"10.7", ', ""))
    result = place.result()
    assert result.rows == ()
    (one,) = told(result.open)
    assert one == (
        "cu135: CUDA 13.5 is on PyPI and has no row yet. Read: cuda-toolkit 13.5.0, gcc 16. "
        "Not known: its targets by ptxas --help (sm)"
    )


def test_a_cuda_of_a_new_major_waits_for_its_driver(place: Place) -> None:
    place.edit("cuda", lambda text: without(text, "cu134", "cu135"))
    result = place.result()
    assert result.rows == ()
    assert [one.row for one in result.open] == ["cu134", "cu135"]
    assert all("the lowest driver branch of its major (driver)" in one.what for one in result.open)


def test_moved_pins_of_cuda_are_taken(place: Place) -> None:
    whole = place.text("cuda")
    place.edit("cuda", lambda text: text.replace('"13.4.3"', '"13.4.2"').replace("cu12==12.6.77", "cu12==12.6.68"))
    result = place.result()
    assert [(one.row, one.field, one.new) for one in result.changes] == [
        ("cu126", "runtime", "nvidia-cuda-runtime-cu12==12.6.77"),
        ("cu134", "pypi", "13.4.3"),
    ]
    place.write(result)
    assert re.sub(r"; PyPI's index \(\w+\), refreshed [\d-]+", "", place.text("cuda")) == whole


def test_a_toolkit_that_lost_its_compiler_is_not_taken(place: Place) -> None:
    place.edit("cuda", lambda text: text.replace('"13.4.3"', '"13.4.2"'))
    ((name, members),) = [one for one in place.parts.items() if one[0].startswith("cuda_toolkit-13.4.3")]
    place.parts[name] = {key: text.replace("Provides-Extra: nvcc\n", "") for key, text in members.items()}
    result = place.result()
    assert result.changes == ()
    assert told(result.differs) == ["cu134: cuda-toolkit 13.4.3 is out and lacks one of nvcc,cudart,cccl,crt,nvvm"]


MALFORMED = {
    "no JSON": lambda body: body[: len(body) // 2],
    "no files": lambda _: "{}",
    "another version": lambda body: body.replace('"api-version": "1.1"', '"api-version": "2.0"'),
    "a name that is no wheel's": lambda body: body.replace("torch-2.9.1-cp310", "torch-2.9.1-@someone"),
    "no wheel": lambda body: json.dumps({**json.loads(body), "files": []}),
    "another project's": lambda body: body.replace("torch-", "torhc-"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_answer_leaves_its_rows(place: Place, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place.all_variants()
    place.edit("torch", lambda text: without(text, "2.15"))
    place.edit("cuda", lambda text: text.replace('"13.4.3"', '"13.4.2"'))
    before = place.text("torch")
    lay_out = refresh_recorded.lay_out

    def spoiled(*arguments: Any) -> str:
        index = lay_out(*arguments)
        file = place.root / "simple" / "torch" / "index.json"
        file.write_text(MALFORMED[kind](file.read_text()))
        return index

    monkeypatch.setattr(refresh_recorded, "lay_out", spoiled)
    result = place.result()
    assert [one.source for one in result.unreached] == ["PyPI's page of torch"]
    place.write(result)
    assert place.text("torch") == before
    assert '"13.4.3"' in place.text("cuda")


def test_a_wheel_that_is_no_archive_costs_its_own_row_alone(place: Place) -> None:
    place.all_variants()
    place.edit("torch", lambda text: without(text, "2.14", "2.15"))
    place.served()
    ((name, _),) = [one for one in place.parts.items() if one[0].startswith("torch-2.15.0")]
    del place.parts[name]
    (place.root / "wheels" / name).write_bytes(b"no archive")
    result = place.result()
    assert [row.row for row in result.rows] == ["2.14"]
    assert [one.source for one in result.unreached] == ["the PyPI wheel of torch 2.15.0"]
    assert "2.15: 2.15.0 is out, and has no row yet: its CUDA could not be read from PyPI's wheel" in told(result.open)


def test_metadata_of_pep_658_is_held_against_its_hash(place: Place) -> None:
    place.all_variants()
    for one in place.pages["torch"]:
        if one["filename"].startswith("torch-2.15.0-cp311"):
            one["core-metadata"] = {"sha256": "0" * 64}
            (place.root / "wheels").mkdir(exist_ok=True)
            (place.root / "wheels" / f"{one['filename']}.metadata").write_text("Name: torch\n")
    result = place.result()
    assert [one.source for one in result.unreached] == ["the PyPI wheel of torch 2.15.0"]
    assert "is not the one that the index states" in result.unreached[0].why


def test_tables_that_would_not_load_are_not_written(place: Place) -> None:
    place.all_variants()
    row = Row(table="torch", row="2.16", fields={"release": "2.17.0", "cuda": ["cpu"], "python": ["3.14"]})
    result = refresh.Result(changes=(), rows=(row,), differs=(), open=(), unreached=())
    before = place.text("torch")
    with pytest.raises(InputError, match="is no release of"):
        place.write(result)
    assert place.text("torch") == before


def test_a_table_that_a_person_changes_meanwhile_is_left(place: Place) -> None:
    place.edit("torch", lambda text: without(text, "2.15"))
    old = refresh_tables.texts(place.tables)
    new = refresh_tables.changed(old, place.result(), DATE)
    place.edit("torch", lambda text: text + "# mine\n")
    with pytest.raises(InputError, match="was changed while the servers were asked"):
        refresh_tables.write(place.tables, old, new)
    assert place.text("torch").endswith("# mine\n")


def test_check_changes_nothing_and_fails_where_something_would(place: Place, capsys: Any) -> None:
    place.all_variants()
    assert place.run("--check") == 0
    assert "nothing changes" in capsys.readouterr().out
    place.edit("torch", lambda text: without(text, "2.15"))
    before = place.text("torch")
    summary = place.root / "summary.md"
    assert place.run("--check", "--json", "--summary", str(summary)) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["version"], said["written"], [row["row"] for row in said["rows"]]) == (1, False, ["2.15"])
    assert place.text("torch") == before
    assert "| torch 2.15 | new: release 2.15.0; pypi cu132; " in summary.read_text()
    assert "### To be stated by a person" in summary.read_text()
    assert place.run() == 0
    assert '["2.15"]' in place.text("torch")
    assert place.run("--check") == 0


def test_no_server_at_all_is_an_error(place: Place, tmp_path: Path, capsys: Any) -> None:
    nowhere = (tmp_path / "nowhere").as_uri() + "/"
    arguments = ["--pypi", nowhere, "--torch-index", nowhere + "{cuda}", "--tables", str(place.tables), "--no-images"]
    assert main(["refresh", *arguments]) == 3
    assert "no server gave an answer" in capsys.readouterr().err


def test_an_index_without_a_place_for_the_tag_is_refused() -> None:
    with pytest.raises(InputError, match="holds no"):
        cli_refresh._template("https://torch.example/whl")


def test_what_servers_say_is_text_in_the_summary() -> None:
    why = "<img src=x> [a](javascript:b) `x` @someone #1\n# title | cell"
    unreached = (cli_refresh.Unreached(source="a <b>page</b>", why=why),)
    said = refresh_view.markdown(refresh.Result(changes=(), rows=(), differs=(), open=(), unreached=unreached), ())
    assert said.splitlines()[-1] == (
        "- a \\<b\\>page\\</b\\>: ``<img src=x> [a](javascript:b) `x` @someone #1 # title | cell``"
    )


def test_image_pins_that_cannot_be_asked_for_leave_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    from wheelmill import image_refresh

    folder = shutil.copytree(images.FOLDER, tmp_path / "docker")
    monkeypatch.setattr(images, "FOLDER", folder)

    def half(pins: images.Pins, **_: str) -> tuple[str, ...]:
        (pins.folder / images.PINS).write_text("half")
        raise MissingError("gone")

    monkeypatch.setattr(image_refresh, "refresh", half)
    pinned, result = cli_refresh._images(place.result(), DATE, check=False)
    assert (pinned, result.unreached[-1].source) == ((), "the image pins")
    assert images.drifted(images.load(folder)) == ()


@pytest.mark.parametrize("check", [True, False])
def test_image_pins_are_taken_unless_it_is_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place, check: bool
) -> None:
    from wheelmill import image_refresh

    folder = shutil.copytree(images.FOLDER, tmp_path / "docker")
    monkeypatch.setattr(images, "FOLDER", folder)
    before = (folder / images.PINS).read_text()

    def newer(pins: images.Pins, **_: str) -> tuple[str, ...]:
        (pins.folder / images.PINS).write_text(before + "# newer\n")
        return (images.PINS,)

    monkeypatch.setattr(image_refresh, "refresh", newer)
    pinned, _ = cli_refresh._images(place.result(), DATE, check=check)
    assert pinned == (images.PINS,)
    assert (folder / images.PINS).read_text() == (before if check else before + "# newer\n")


def test_a_minor_is_new_above_the_rows_of_its_major() -> None:
    known = facts.load(tables=refresh_recorded.TABLES)  # 11.8, 12.6, 12.9, 13.4, 13.5
    minors = ["10.2", "11.7", "11.8", "12.5", "12.10", "13.3", "13.6", "14.0"]
    assert refresh_read.newer(known, minors) == ["12.10", "13.6", "14.0"]
