"""Pages for people: which are written, that they are the same each time, and what is refused."""

from __future__ import annotations

import html
import json
import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from tests.web import records

from wheelmill import site
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from wheelmill.records import Record

NEW = records.fusedops("1.1.0", newest=True)
OLD = records.fusedops("1.0.0", newest=False)
KNOWN = {"fusedops": ["1.1.0", "1.0.0"]}


def write(
    releases: dict[tuple[str, str], list[Record]], known: dict[str, list[str]] | None = None, **more: object
) -> dict[str, bytes]:
    touched = frozenset(one.file for found in releases.values() for one in found)
    return dict(site.pages(releases, known or KNOWN, more.pop("touched", touched), **more))  # type: ignore[arg-type]


def data(content: bytes) -> dict[str, object]:
    found = re.fullmatch(rb"wheelmill\.\w+\((.*)\);\n", content, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_each_wheel_and_release_has_its_page_and_data() -> None:
    made = write({("fusedops", "1.1.0"): NEW})
    assert {f"wheels/{one.file}.html" for one in NEW} == {path for path in made if path.startswith("wheels/")}
    assert {"index.html", "releases/fusedops-1.1.0.html", "data/fusedops-1.1.0.js", "data/site.js"} <= set(made)
    rows = data(made["data/fusedops-1.1.0.js"])["wheels"]
    assert [row["file"] for row in rows] == sorted(one.file for one in NEW)


def test_the_order_of_records_changes_no_byte() -> None:
    assert write({("fusedops", "1.1.0"): NEW}) == write({("fusedops", "1.1.0"): NEW[::-1]})


def test_one_more_wheel_changes_its_own_page_and_its_releases_alone() -> None:
    before = write({("fusedops", "1.1.0"): NEW[:-1], ("fusedops", "1.0.0"): OLD})
    after = write({("fusedops", "1.1.0"): NEW, ("fusedops", "1.0.0"): OLD})
    own = f"wheels/{NEW[-1].file}.html"
    assert {path for path in after if after[path] != before.get(path)} == {
        own,
        "releases/fusedops-1.1.0.html",
        "data/fusedops-1.1.0.js",
    }
    part = write({("fusedops", "1.1.0"): NEW}, touched=frozenset({NEW[-1].file}))
    assert all(after[path] == content for path, content in part.items())
    assert [path for path in part if path.startswith("wheels/")] == [own]


def test_a_release_more_changes_the_landing_page_and_the_list_of_releases() -> None:
    before = write({("fusedops", "1.0.0"): OLD}, {"fusedops": ["1.0.0"]})
    after = write({("fusedops", "1.0.0"): OLD})
    assert {path for path in after if after[path] != before[path]} == {"index.html", "data/site.js"}


def test_the_newest_release_is_no_pre_release_where_there_is_another() -> None:
    found = data(write({}, {"a": ["2.0rc1", "1.0"], "b": ["1.0a1"], "c": []})["data/site.js"])["projects"]
    assert [one["newest"] for one in found] == ["1.0", "1.0a1", None]


def test_an_empty_index_has_a_page() -> None:
    made = write({}, {"a": []})
    assert "index.html" in made
    assert b"no release yet" in dict(site.pages({}, {}, frozenset()))["index.html"]


def test_many_releases_are_linked_in_part() -> None:
    page = write({}, {"a": [f"1.{minor}" for minor in range(500, 0, -1)]})["index.html"].decode()
    assert page.count('href="releases/') == site.LINKED
    assert f"and {500 - site.LINKED} older" in page


def test_how_a_wheel_is_signed() -> None:
    one = NEW[0]
    pages = [
        write({("fusedops", "1.1.0"): [one.model_copy(update={"vouched": by})]})[f"wheels/{one.file}.html"].decode()
        for by in ((), ("SHA256:abc",), ("github:demo/fusedops@release.yml",))
    ]
    assert ["not signed" in page for page in pages] == [True, False, False]
    assert ["signed with the offline key SHA256:abc" in page for page in pages] == [False, True, False]
    assert ["attested by github:demo/fusedops@release.yml" in page for page in pages] == [False, False, True]
    assert [".sig" in page for page in pages] == [False, True, False]
    assert [".provenance" in page for page in pages] == [False, False, True]


def test_no_page_asks_another_site_or_holds_a_script() -> None:
    for path, content in write({("fusedops", "1.1.0"): NEW}).items():
        if path.endswith(".html"):
            text = content.decode()
            assert "default-src 'none'; script-src 'self'" in text
            assert not re.search(r"<script(?![^>]* src=)|\son\w+=|style=|https?:", text), path


def test_brand() -> None:
    brand = site.Brand(title="Fused <wheels>", link="https://example.org/?a=1&b=2")
    page = write({}, brand=brand)["index.html"].decode()
    assert "Fused &lt;wheels&gt;" in page
    assert 'href="https://example.org/?a=1&amp;b=2"' in page
    for link in ("javascript:alert(1)", "file:///etc/passwd", 'https://x"onclick="', "//host"):
        with pytest.raises(InputError, match="only to web addresses"):
            site.Brand(link=link)


@pytest.mark.parametrize("project", ["../x", "A", "a_b", "a.b", "", "a--b", "-a", "<b>", "a/b", "a\n"])
def test_a_name_that_is_no_project_is_refused(project: str) -> None:
    with pytest.raises(InputError, match="normalised name"):
        write({(project, "1.0"): []})


@pytest.mark.parametrize("version", ["../1", "1.0+cu130", "", "1.0/x", "<b>", "1.0\n", "latest"])
def test_what_is_no_public_version_is_refused(version: str) -> None:
    with pytest.raises(InputError, match="public version"):
        write({("a", version): []}, {"a": []})


@pytest.mark.parametrize("file", ["../x.whl", "a/b.whl", ".x.whl", "x", "a\\b.whl", "a\0.whl", "a\n.whl", ".whl"])
def test_a_file_name_that_leaves_its_folder_is_refused(file: str) -> None:
    with pytest.raises(InputError, match="leave its folder"):
        write({("fusedops", "1.1.0"): [NEW[0].model_copy(update={"file": file})]})


def test_what_a_page_leads_to_comes_before_it() -> None:
    """So that whoever writes them in turn, and is stopped, leaves no page that leads to a missing one."""
    written: set[str] = set()
    for path, content in write({("fusedops", "1.1.0"): NEW, ("fusedops", "1.0.0"): OLD}).items():
        written.add(path)
        if path.endswith(".html"):
            for link in re.findall(r'(?:href|src)="([^"#:]+)"', content.decode()):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(html.unescape(link))))
                if target.startswith(("wheels/", "releases/", "data/", "assets/")):
                    assert target in written, f"{path} leads to {target}"
