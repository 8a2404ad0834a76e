"""The pages for installers as pure functions: lines that are put in, names that are escaped, versions that are told."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from wheelmill import entries, pages
from wheelmill.entries import Entry

SHA = "0" * 64


def entry(file: str = "demo-1.0+cu130-py3-none-any.whl", **fields: object) -> Entry:
    known = {"file": file, "sha256": SHA, "size": 3, "metadata": SHA, "record": SHA, "environments": ()}
    return Entry.model_validate({**known, **fields})


def test_a_line_escapes_what_a_stranger_wrote() -> None:
    one = entry(requires_python='>="3"\n<script>', yanked="<b>\r\n'x'")
    line = pages.link(one, "../../")
    assert line.count("\n") == 1
    assert "<script>" not in line
    assert 'data-requires-python="&gt;=&quot;3&quot;&#10;&lt;script&gt;"' in line
    assert 'data-yanked="&lt;b&gt;&#13;&#10;&#x27;x&#x27;"' in line
    assert 'href="../../files/demo-1.0%2Bcu130-py3-none-any.whl#sha256=' in line


FILES = st.lists(st.integers(0, 40).map(lambda n: f"p{n}-1.{n}+cpu-py3-none-any.whl"), unique=True, max_size=20)


@given(before=FILES, put=FILES, taken=FILES)
def test_lines_put_in_and_taken_out_give_the_page_of_what_is_left(
    before: list[str], put: list[str], taken: list[str]
) -> None:
    top = pages.environment_top("cpu-torch2.11")
    page = pages.links(top, map(entry, before), "")
    changes = dict.fromkeys(taken) | {file: entry(file, yanked="x") for file in put}
    left = {file: entry(file) for file in before} | changes
    found = pages.lines(page, top)
    assert found is not None
    assert pages.files(found) == sorted(before)
    wanted = pages.links(top, [one for one in left.values() if one is not None], "")
    assert pages.spliced(page, top, changes, "") == wanted


def test_another_page_is_not_taken_for_one_of_these() -> None:
    top, file = pages.all_top(), "demo-1.0+cu130-py3-none-any.whl"
    good = pages.links(top, [entry(file)], "")
    assert pages.lines(good, top) is not None
    for bad in (b"", good[:-1], good[1:], good.replace(b"<br>", b""), good.replace(b"</a>", b"")):
        assert pages.lines(bad, top) is None
        assert pages.spliced(bad, top, {file: None}, "") is None
    assert pages.lines(good.replace(b"<a ", b"<A "), top) is None
    assert pages.lines(good, pages.environment_top("cpu-torch2.11")) is None
    assert pages.spliced(good, pages.environment_top("cpu-torch2.11"), {}, "") is None


def test_an_entry_is_read_back_as_it_was_written() -> None:
    one = entry(
        requires_python=">=3.10",
        uploaded="2026-01-02T03:04:05Z",
        yanked="why",
        provenance=SHA,
        environments=("cpu-torch2.11",),
        toolkit="13.0",
    )
    assert entries.from_json(json.loads(json.dumps(entries.to_json(one)))) == one
    assert entries.from_json(entries.to_json(entry())) == entry()


def test_versions_and_environments_are_ordered_as_versions() -> None:
    files = [f"demo-{version}-py3-none-any.whl" for version in ("1.10", "1.9+cpu", "1.9+cu130", "1.10rc1", "2!0.1")]
    found = [entry(file) for file in files]
    assert pages.newest_first(found) == ["2!0.1", "1.10", "1.10rc1", "1.9"]
    stated = json.loads(pages.project_json("demo", found))["versions"]
    assert stated == ["1.9+cpu", "1.9+cu130", "1.10rc1", "1.10", "2!0.1"]
    names = ["cu130-torch2.9", "cpu-torch2.11", "cu121-torch2.4", "cu130-torch2.10"]
    root = json.loads(pages.root_json({}, names, variants=False))
    assert root["_wheelmill"]["environments"] == [names[1], names[2], names[0], names[3]]


def test_times_are_told_in_utc_or_not_at_all() -> None:
    assert entries.moment("2026-01-02T04:04:05+01:00") == "2026-01-02T03:04:05Z"
    assert entries.moment("2026-01-02T03:04:05.250Z") == "2026-01-02T03:04:05.250000Z"
    assert entries.moment("2026-01-02T03:04:05") is None
    assert entries.moment("yesterday") is None
