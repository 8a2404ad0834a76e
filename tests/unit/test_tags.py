"""Links of HTML pages, of well-made ones and of those that are not."""

import time

import pytest

from wheelmill import tags


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<a href='x'>y</a>", [("a", {"href": "x"})]),
        (
            '<A HREF="x&amp;y" data-requires-python="&gt;=3.8">',
            [("a", {"href": "x&y", "data-requires-python": ">=3.8"})],
        ),
        ('<a data-requires-python=">=3.8" href=x>', [("a", {"data-requires-python": ">=3.8", "href": "x"})]),
        ("<a\n href = x\n data-yanked >", [("a", {"href": "x", "data-yanked": ""})]),
        ("<a href=x href=y>", [("a", {"href": "x"})]),
        ("<!-- <a href=x> --><base href=/b/><a/href=z>", [("base", {"href": "/b/"}), ("a", {"href": "z"})]),
        ("<abbr href=x><address><link href=x>", []),
        ("<!-- <a href=x>", []),
        ("<a href='x", [("a", {"href": ""})]),
        ("<a", []),
        ("", []),
    ],
)
def test_links(text: str, found: list[tuple[str, dict[str, str]]]) -> None:
    assert list(tags.read(text)) == found


@pytest.mark.parametrize("piece", ["<!--", "<a ", "<a href='", "<a x=", "<a " + " " * 50, "<", "<!---->"])
def test_a_long_broken_page_takes_its_length(piece: str) -> None:
    text = piece * (2_000_000 // len(piece))
    started = time.process_time()
    for _ in tags.read(text):
        pass
    assert time.process_time() - started < 20
