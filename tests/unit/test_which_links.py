"""Pages of an index: what is taken of them, and what is left."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelmill import which_links
from wheelmill.errors import InputError
from wheelmill.web import Page

SHA = "0" * 63 + "1"
URL = "https://index.example/simple/demo/"
WHEEL = "demo-1.0+cu130-py3-none-any.whl"


def page(body: str | bytes, kind: str = "text/html", url: str = URL) -> Page:
    return Page(url=url, kind=kind, charset=None, body=body.encode() if isinstance(body, str) else body)


def told(*files: Any, **more: Any) -> Page:
    return page(json.dumps({"files": files, **more}), which_links.JSON)


def test_html_and_json_say_the_same() -> None:
    body = (
        f'<meta name="pypi:repository-version" content="1.1">'
        f'<a href="../../files/demo-1.0%2Bcu130-py3-none-any.whl#sha256={SHA}"'
        f' data-requires-python="&gt;=3.10" data-yanked="bad" data-core-metadata="sha256={SHA}"'
        f' data-provenance="https://index.example/p">anything</a>'
    )
    entry = {
        "filename": WHEEL,
        "url": "../../files/demo-1.0%2Bcu130-py3-none-any.whl",
        "hashes": {"sha256": SHA},
        "requires-python": ">=3.10",
        "yanked": "bad",
        "core-metadata": {"sha256": SHA},
        "provenance": "https://index.example/p",
    }
    (html,), (data,) = which_links.read(page(body), "demo").links, which_links.read(told(entry), "demo").links
    assert html == data
    assert html.url == "https://index.example/files/demo-1.0%2Bcu130-py3-none-any.whl"
    assert html.metadata == SHA


def test_a_base_and_a_plain_link() -> None:
    body = '<base href="https://cdn.example/w/"><a href="demo-1.0-py3-none-any.whl">x</a>'
    (link,) = which_links.read(page(body), "demo").links
    assert link.url == "https://cdn.example/w/demo-1.0-py3-none-any.whl"
    assert (link.sha256, link.yanked, link.metadata, link.requires_python) == (None, None, None, None)


def test_only_this_project_and_only_safe_links() -> None:
    names = [
        "demo_two-1.0-py3-none-any.whl",
        "demo-1.0.tar.gz",
        "demo-1.0.tar.gz.asc",
        "demo-x.whl",
        "Demo-2.0-py3-none-any.whl",
    ]
    links = "".join(f'<a href="{name}">x</a>' for name in names)
    bad = "".join(
        f'<a href="{one}/demo-3.0-py3-none-any.whl">x</a>'
        for one in ("file:///etc", "javascript:x", "ftp://x", "data:,")
    )
    found = which_links.read(page(links + bad), "demo")
    assert [link.file for link in found.links] == ["Demo-2.0-py3-none-any.whl"]
    assert found.sdists == ("demo-1.0.tar.gz",)
    assert len(found.skipped) == 5


def test_a_folder_may_name_files_and_a_server_may_not() -> None:
    link = '<a href="file:///w/demo-1.0-py3-none-any.whl">x</a>'
    assert not which_links.read(page(link), "demo").links
    assert which_links.read(page(link, url="file:///w/index.html"), "demo").links
    remote = '<a href="file://host/w/demo-1.0-py3-none-any.whl">x</a>'
    assert not which_links.read(page(remote, url="file:///w/index.html"), "demo").links


def test_what_our_index_adds() -> None:
    entry = {"filename": WHEEL, "url": "x", "_wheelmill": {"record": SHA, "environments": ["cu130-torch2.11"]}}
    (link,) = which_links.read(told(entry), "demo").links
    assert (link.record, link.environments) == (SHA, ("cu130-torch2.11",))
    wrong = {**entry, "_wheelmill": {"record": SHA, "environments": ["../../x"]}}
    assert which_links.read(told(wrong), "demo").links == ()
    assert len(which_links.read(told(wrong), "demo").skipped) == 1


@pytest.mark.parametrize(
    "bad",
    [
        page("x", "application/pdf"),
        page("{", which_links.JSON),
        page("[]", which_links.JSON),
        page("null", which_links.JSON),
        page('{"files": 3}', which_links.JSON),
        page('{"files": [], "meta": 3}', which_links.JSON),
        told(meta={"api-version": "2.0"}),
        page('<meta name="pypi:repository-version" content="2.0"><a href="x">x</a>'),
    ],
)
def test_what_is_no_index(bad: Page) -> None:
    with pytest.raises(InputError):
        which_links.read(bad, "demo")


@settings(deadline=None, max_examples=120)
@given(st.binary(max_size=300), st.sampled_from(["", "text/html", which_links.JSON, "application/json"]))
def test_any_bytes_end_in_links_or_a_refusal(body: bytes, kind: str) -> None:
    try:
        found = which_links.read(page(body, kind), "demo")
    except InputError:
        return
    assert isinstance(found.links, tuple)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda v: st.lists(v) | st.dictionaries(st.text(max_size=8), v),
    max_leaves=6,
)


@settings(deadline=None, max_examples=120)
@given(
    st.dictionaries(
        st.sampled_from(["filename", "url", "hashes", "yanked", "core-metadata", "requires-python", "_wheelmill"]),
        VALUES,
    )
)
def test_any_entry_is_taken_or_left(entry: dict[str, Any]) -> None:
    found = which_links.read(told({"filename": WHEEL, "url": "x", **entry}), "demo")
    assert len(found.links) + len(found.skipped) <= 1
