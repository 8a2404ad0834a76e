"""Whatever a record says is text on every page: nothing of it becomes markup, script or another place to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.web import demo, records

from wheelmill.records import Audit, Build, Cell, Finding, Gates, Library, Platform, Time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from wheelmill.records import Record

BAD = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7*7 }}\u2028\u2029*/`${alert(3)}`"
FILE = "evil-1.0+cu130-py3-none-<img src=x onerror=alert(4)>\"'&`${alert(5)}`.whl"


def hostile() -> Record:
    cell = Cell(cuda="cu130", torch="2.11", python="3.12", result="pass")
    fields: dict[str, Any] = {
        "file": FILE,
        "release": "1.0+" + BAD,
        "requires_python": BAD,
        "requires": (BAD, "torch>=2.10; " + BAD),
        "build": Build(
            wheel=BAD,
            engine=BAD,
            executor=BAD,
            built=BAD,
            cuda=BAD,
            torch=BAD,
            compiler=BAD,
            sources=BAD,
            key=BAD,
            sm=(BAD,),
        ),
        "audit": Audit(
            verdict="fail",
            platform=Platform(claimed=BAD, needs=BAD),
            libraries={
                BAD: Library(sass=("90",), needed=(BAD,), glibc=BAD, glibcxx=BAD, min_torch=BAD, torch_symbols=(BAD,))
            },
            findings=(Finding(rule=BAD, severity="error", library=BAD, message=BAD, remedy=BAD, waived=BAD),),
        ),
        "cover": (
            cell,
            Cell(cuda=BAD, torch="2.11", python=BAD, unclaimed=BAD, result="fail", error=BAD),
            Cell(cuda="cu130", torch="2.11", python="3.13", result="fail", error=BAD),
        ),
        "gates": Gates(
            verdicts={BAD: "fail"},
            operators=(BAD,),
            cards=(BAD,),
            torches=(BAD,),
            times=(Time(operator=BAD, sample=BAD, card=BAD, milliseconds=1, of_reference=0.5),),
        ),
        "yanked": BAD,
    }
    sound = records.record("evil", "1.0", "cu130", ["2.11"])
    return sound.model_copy(update=fields)


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evil")
    one, later = hostile(), hostile()
    later = later.model_copy(update={"file": FILE.replace("1.0+", "1.1+"), "release": "1.1+" + BAD, "requires": (BAD,)})
    found = {("evil", "1.0"): [one], ("evil", "1.1"): [later]}
    demo.write(out, found, {"evil": ["1.1", "1.0"]})
    return out


@pytest.mark.parametrize("path", ["index.html", "releases/evil-1.1.html", f"wheels/{quote(FILE)}.html"])
def test_nothing_of_a_record_runs(open_page: Callable[..., Page], evil: Path, path: str) -> None:
    page = open_page(f"{evil.as_uri()}/{path}")
    page.wait_for_load_state("networkidle")
    assert page.locator("img").count() == 0
    assert page.locator("script:not([src])").count() == 0
    text = page.content()
    assert "<script>alert" not in text
    assert "49" not in page.locator("main").inner_text().replace("849", "")
    if path != "index.html":
        expect(page.locator("body")).to_contain_text("<img src=x onerror=alert(", use_inner_text=True)


def test_a_hostile_release_can_be_chosen(open_page: Callable[..., Page], evil: Path) -> None:
    page = open_page(f"{evil.as_uri()}/index.html")
    page.get_by_text("No wheel of evil 1.1").wait_for()
    assert page.evaluate("wheelmill.releases.get('evil 1.1').wheels[0].yanked") == BAD
    assert page.locator("#answer img").count() == 0


def test_what_a_record_says_is_one_word_of_the_command(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    word = page.evaluate("(text) => shellWord(text)", "demo==1.0+$(id);'x'")
    assert word == "'demo==1.0+$(id);'\\''x'\\'''"
