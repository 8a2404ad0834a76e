"""Every page: links, sizes, phones, no JavaScript, what axe finds, and pictures for a person to look at."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.web import records

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Response

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
BUDGET = 200_000
NEWEST = records.fusedops("1.1.0", newest=True)
WHEEL = quote(next(one.file for one in NEWEST if "+cu130-" in one.file))
POOR = quote(next(one.file for one in NEWEST if "+cu121.torch2.5" in one.file))
KINDS = {
    "landing": "index.html",
    "release": "releases/fusedops-1.1.0.html",
    "many-wheels": "releases/rotary-0.3.1.html",
    "wheel": f"wheels/{WHEEL}.html",
    "wheel-with-findings": f"wheels/{POOR}.html",
}
WIDTHS = {"desk": 1280, "phone": 360}


class _Links(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.found += [value for name in ("href", "src") if (value := values.get(name))]
        if identifier := values.get("id"):
            self.ids.add(identifier)


def test_every_link_leads_to_a_file(folder: Path) -> None:
    seen, todo = set(), [folder / "index.html"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        links = _Links(page.read_text(encoding="utf-8"))
        for link in links.found:
            parts = urlsplit(link)
            if parts.scheme == "data":
                continue
            assert not parts.scheme, f"{page.name} leads away: {link}"
            assert not parts.netloc
            if not parts.path:
                assert parts.fragment in links.ids, f"{page.name}: {link}"
                continue
            target = (page.parent / unquote(parts.path)).resolve()
            assert target.is_file(), f"{page.name}: {link}"
            assert target.is_relative_to(folder.resolve())
            if target.suffix == ".html":
                todo.append(target)
    assert {page for page in seen if page.parent.name == "wheels"} == {*(folder / "wheels").resolve().iterdir()}
    assert {page for page in seen if page.parent.name == "releases"} == {*(folder / "releases").resolve().iterdir()}


def test_links_that_scripts_make(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    for project, torch in (("fusedops", "2.11"), ("rotary", "2.11")):
        page.get_by_role("radio", name=project).check()
        page.locator("#answer").get_by_role("link", name=f"{project}-").wait_for()
        page.get_by_role("radio", name=torch).check()
        for href in page.locator("#answer a").evaluate_all("all => all.map((one) => one.href)"):
            assert page.request.get(href).status == 200, href
    changes = open_page(f"{served}/releases/fusedops-1.1.0.html")
    changes.get_by_role("link", name="fusedops 1.0.0").click()
    changes.get_by_role("heading", name="fusedops 1.0.0").wait_for()


def test_the_landing_page_and_all_that_it_loads_is_small(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    seen: list[Response] = []
    page.on("response", lambda one: seen.append(one))  # noqa: PLW0108, it wants a function
    page.reload()
    with page.expect_response(lambda one: "rotary-0.3.1" in one.url):
        page.get_by_role("radio", name="rotary").check()
    page.get_by_text("rotary 0.3.1+").first.wait_for()
    sizes = {one.url: len(one.body()) for one in seen}
    assert any("rotary-0.3.1" in url for url in sizes)
    assert sum(sizes.values()) < BUDGET, sizes


def test_what_changed(open_page: Callable[..., Page], folder: Path) -> None:
    page = open_page(f"{folder.as_uri()}/releases/fusedops-1.1.0.html")
    page.get_by_role("link", name="fusedops 1.0.0").wait_for()
    changes = expect(page.locator("#changes-body"))
    changes.to_contain_text("Environments added: torch 2.14, CUDA 13.0; torch 2.11, CUDA 12.8", use_inner_text=True)
    # The only wheel of what was dropped was withdrawn.
    changes.to_contain_text("Environments dropped: torch 2.4, CPU.", use_inner_text=True)
    changes.to_contain_text("Wheels added: cu118.torch2.6 py3-none.", use_inner_text=True)
    row = expect(page.get_by_role("row", name="affine").first)
    row.to_contain_text("0.08788 → 0.0676 ms", use_inner_text=True)
    row.to_contain_text("faster", use_inner_text=True)
    first = open_page(f"{folder.as_uri()}/releases/fusedops-1.0.0.html")
    first.get_by_text("It is the first release in this index.").wait_for()


def test_a_wheels_page_gives_its_own_command(open_page: Callable[..., Page], folder: Path) -> None:
    page = open_page(f"{folder.as_uri()}/{KINDS['wheel']}")
    page.get_by_label("In an environment with").select_option("cu130-torch2.11")
    command = expect(page.get_by_role("region", name="pip command"))
    wanted = re.compile(r"^pip install fusedops==1\.1\.0\+cu130 --find-links .*cu130-torch2\.11\.html")
    command.to_have_text(wanted, use_inner_text=True)
    page.get_by_role("link", name="fusedops 1.1.0").click()
    page.get_by_role("heading", name="fusedops 1.1.0").wait_for()


def test_without_scripts(open_page: Callable[..., Page], site: str) -> None:
    page = open_page(f"{site}/index.html", java_script_enabled=False)
    expect(page.get_by_role("link", name="torch 2.11, CUDA 13.0")).to_have_attribute("href", "cu130-torch2.11.html")
    expect(page.locator("#chooser")).to_be_hidden()
    page.get_by_role("link", name="1.1.0").click()
    expect(page.get_by_role("heading", name="fusedops 1.1.0")).to_be_visible()
    expect(page.get_by_role("table").first).to_be_visible()
    page.get_by_role("link", name="cu130").first.click()
    expect(page.locator("#commands")).to_contain_text("THIS-SITE/cu130-torch2.14.html", use_inner_text=True)


def picture(page: Page, name: str) -> None:
    """A picture for a person to look at; nothing may be cut off or scroll sideways."""
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=str(path), full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], path


def serious(page: Page, *rules: str) -> list[tuple[str, list[str]]]:
    """What axe finds serious or critical, of all rules or those: (rule, the first elements)."""
    only = {"runOnly": list(rules)} if rules else {}
    found = Axe().run(page, options={"resultTypes": ["violations"], **only}).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in bad]


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious_and_a_phone_scrolls_one_way(
    open_page: Callable[..., Page], served: str, kind: str
) -> None:
    page = open_page(f"{served}/{KINDS[kind]}")
    page.wait_for_load_state("networkidle")
    if kind == "landing":
        page.get_by_text("Or paste what").click()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for size, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 800})
            picture(page, f"{kind}-{size}-{scheme}")
        # Another scheme changes colours and nothing else, and sixty wheels are a release like others.
        assert kind == "many-wheels" or serious(page, *(() if scheme == "light" else ("color-contrast",))) == []


def test_axe_finds_nothing_serious_where_nothing_fits(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html", viewport={"width": 360, "height": 800})
    page.get_by_role("radio", name="2.9 (no wheel)").check()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"landing-none-phone-{scheme}")
        assert serious(page) == []


def test_axe_sees_a_planted_fault(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    page.evaluate("document.getElementById('gpu').labels[0].remove()")
    assert [rule for rule, _ in serious(page)] == ["select-name"]
