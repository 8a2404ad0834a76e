"""The choice of a wheel: the decision by a table of environments, and the page that asks for it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web import demo, records

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))["case"]
BY_ID = {case["id"]: case for case in CASES}
DECIDE = """async ([report, project, version]) => {
  const data = await wheelmill.load(project, version ?? wheelmill.project(project).newest);
  const { wheel, notes, problem, refused, nearest } =
    choose(data.wheels, readReport(report, wheelmill.known), wheelmill.known);
  return {
    file: wheel && wheel.file,
    says: [...notes, problem ?? "", ...refused.slice(0, 1).flatMap((one) => one.reasons.map((reason) => reason.text))],
    nearest: nearest.map((one) => `${one.cuda}-torch${one.torch} ${one.python}`),
  };
}"""


@pytest.fixture(scope="module")
def desk(browser: Browser, folder: Path) -> Any:
    """One page in which every case is decided."""
    page = browser.new_page()
    page.goto((folder / "index.html").as_uri())
    yield page
    page.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_decisions(desk: Page, case: dict[str, Any]) -> None:
    found = desk.evaluate(DECIDE, [case["report"], case.get("project", "fusedops"), case.get("version")])
    said = "\n".join(found["says"])
    if "choice" in case:
        assert case["choice"] in (found["file"] or ""), said
    else:
        assert found["file"] is None
    for words in case.get("says", []):
        assert words in said
    if case.get("silent"):
        assert said.strip() == ""
    if "nearest" in case:
        assert (found["nearest"] or [""])[0] == case["nearest"], found["nearest"]


RULES = [
    # target, kind, card, runs
    ("80", "sass", "86", True),
    ("86", "sass", "80", False),
    ("80", "sass", "90", False),
    ("90a", "sass", "90", True),
    ("100a", "sass", "103", False),
    ("100f", "sass", "103", True),
    ("86", "sass", "87", False),
    ("80", "ptx", "121", True),
    ("90a", "ptx", "100", False),
    ("100f", "ptx", "103", True),
    ("100f", "ptx", "120", False),
    ("90", "ptx", "86", False),
]


@pytest.mark.parametrize(("target", "kind", "card", "runs"), RULES)
def test_what_runs_on_what(desk: Page, target: str, kind: str, card: str, runs: bool) -> None:
    call = "([t, c]) => sassRuns(t, c, wheelmill.known)" if kind == "sass" else "([t, c]) => ptxCompiles(t, c)"
    assert desk.evaluate(call, [target, card]) is runs


RANGES = [
    ("2.11.0", ">=2.10", True),
    ("2.9.1", ">=2.10", False),
    ("2.4.1", "==2.4.*", True),
    ("2.5.0", "==2.4.*", False),
    ("2.4.1", "==2.4.0", False),
    ("2.4", "==2.4.0", True),
    ("2.11.0", ">=2.10,<2.12", True),
    ("2.12.0", ">=2.10,<2.12", False),
    ("2.4.3", "~=2.4.1", True),
    ("2.5.0", "~=2.4.1", False),
    ("2.5.0", "!=2.5.*", False),
    ("2.5.0", "", True),
    ("2.5.0", "@ https://host/x.whl", False),
]


@pytest.mark.parametrize(("version", "wanted", "fits"), RANGES)
def test_ranges_of_torch(desk: Page, version: str, wanted: str, fits: bool) -> None:
    assert desk.evaluate("([v, r]) => satisfies(v, r)", [version, wanted]) is fits


def answered(page: Page, text: str) -> None:
    expect(page.locator("#answer")).to_contain_text(text, use_inner_text=True)


def pick(page: Page, **choice: str) -> None:
    for name, value in choice.items():
        page.locator(f'input[name="{name}"][value="{value}"]').check()


def command(page: Page, tool: str = "pip") -> list[str]:
    """The command as a shell splits it."""
    return shlex.split(page.get_by_role("region", name=f"{tool} command").inner_text())


def test_choosing_gives_the_command(open_page: Callable[..., Page], site: str) -> None:
    page = open_page(f"{site}/index.html")
    pick(page, torch="2.11", cuda="cu128", python="3.11")
    page.get_by_label("GPU").select_option("90")
    answered(page, "fusedops 1.1.0+cu128 for torch 2.11, CUDA 12.8, Python 3.11")
    address = page.evaluate("new URL('cu128-torch2.11.html', location.href).href")
    assert command(page) == ["pip", "install", "fusedops==1.1.0+cu128", "--find-links", address]
    assert command(page, "uv") == ["uv", "pip", "install", "fusedops==1.1.0+cu128", "--find-links", address]
    pick(page, project="rotary")
    page.get_by_text("rotary 0.3.1+cu128.torch2.11 for").wait_for()


def test_nothing_fits_and_the_nearest_is_one_click_away(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    expect(page.get_by_role("radio", name="2.9 (no wheel)")).to_have_count(1)
    pick(page, torch="2.9")
    answered(page, "No wheel of fusedops 1.1.0 for torch 2.9, CUDA 13.0, Python 3.12")
    assert page.locator(".command").count() == 0
    page.get_by_role("button", name="torch 2.9, CUDA 12.6, Python 3.12").click()
    assert command(page)[2:] == [
        "fusedops==1.1.0+cu126.torch2.9",
        "--find-links",
        page.evaluate("new URL('cu126-torch2.9.html', location.href).href"),
    ]


def test_a_card_without_code_gets_no_command(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    page.get_by_label("GPU").select_option("70")
    answered(page, "has no code for compute capability 7.0")
    assert page.locator(".command").count() == 0


def test_an_older_release_is_taken_and_a_newer_one_named(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    pick(page, torch="2.13")
    pick(page, torch="2.14")
    page.get_by_label("Release", exact=True).select_option("1.0.0")
    page.get_by_role("button", name="Take fusedops 1.1.0").wait_for()
    pick(page, torch="2.13")
    assert command(page)[2] == "fusedops==1.0.0+cu130"


def test_a_withdrawn_wheel_leads_to_the_release_that_has_one(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    pick(page, cuda="cpu", torch="2.4")
    answered(page, "withdrawn")
    page.get_by_role("button", name="Take fusedops 1.0.0").click()
    page.get_by_text("fusedops 1.0.0+cpu.torch2.4 for").wait_for()
    assert command(page)[2] == "fusedops==1.0.0+cpu.torch2.4"


def paste(page: Page, text: str) -> None:
    page.locator("#paste").evaluate("(box) => { box.open = true; }")
    page.get_by_label("Output of collect_env").fill(text)


def test_pasting_a_report_gives_the_command(open_page: Callable[..., Page], site: str) -> None:
    page = open_page(f"{site}/index.html")
    paste(page, BY_ID["current torch on an H200"]["report"])
    expect(page.locator("#reading")).to_contain_text(
        "Read: torch 2.11.0; CUDA 13.0; Python 3.12; glibc 2.35; driver 580.65.06; NVIDIA H200 (9.0).",
        use_inner_text=True,
    )
    expect(page.get_by_role("radio", name="2.11")).to_be_checked()
    expect(page.get_by_label("GPU")).to_have_value("report")
    assert command(page)[4].endswith("/cu130-torch2.11.html")


def test_a_report_that_nothing_fits_gives_the_reason(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    paste(page, BY_ID["driver older than torch's CUDA"]["report"])
    answered(page, "CUDA 13.0 needs driver 580 or newer")
    page.get_by_role("button", name="torch 2.11, CUDA 12.8, Python 3.12").click()
    assert command(page)[4].endswith("/cu128-torch2.11.html")
    # The driver of the report still counts.
    pick(page, cuda="cu130")
    answered(page, "CUDA 13.0 needs driver 580 or newer")


def test_another_torch_of_the_same_release_is_called_so(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    paste(page, BY_ID["conda's torch"]["report"])
    page.get_by_role("button", name="PyTorch's own torch 2.6, CUDA 12.6, Python 3.12").click()
    assert command(page)[2] == "fusedops==1.1.0+cu126.torch2.6"


def test_what_is_no_report(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    for text in ("hello", "PyTorch", "x" * 200_000, "<script>alert(1)</script>"):
        page.get_by_label("Output of collect_env").evaluate("(box, text) => { box.value = text; readPasted(); }", text)
        expect(page.locator("#reading")).to_contain_text("not what collect_env prints", use_inner_text=True)
    paste(page, "PyTorch version:")
    answered(page, "No torch is installed there")
    paste(page, "")
    expect(page.locator("#reading")).to_have_text("", use_inner_text=True)


def test_a_hostile_report_is_text(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    report = BY_ID["a card that nobody knows"]["report"].replace("Frobnicator", "<img src=x onerror=alert(1)>")
    paste(page, report)
    answered(page, "<img src=x onerror=alert(1)>")
    assert page.locator("main img").count() == 0


def test_by_keyboard_alone(open_page: Callable[..., Page], site: str) -> None:
    page = open_page(f"{site}/index.html")
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    press("Enter")
    for _ in range(3):  # project, release, torch
        press("Tab")
    assert page.evaluate("document.activeElement.name") == "torch"
    for _ in range(3):
        press("ArrowRight")
    expect(page.get_by_role("radio", name="2.11")).to_be_checked()
    outline = page.evaluate("getComputedStyle(document.activeElement.nextElementSibling).outlineStyle")
    assert outline == "solid", "the focus is seen"
    while page.evaluate("document.activeElement.className") != "copy":
        press("Tab")
    press("Enter")
    page.get_by_text("Copied").wait_for()
    answered(page, "torch 2.11, CUDA 13.0")


def test_the_clipboard_gets_the_command(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the uv command").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == shlex.join(command(page, "uv"))


def test_the_answer_is_announced(open_page: Callable[..., Page], served: str) -> None:
    page = open_page(f"{served}/index.html")
    expect(page.get_by_role("status").filter(has_text="fusedops 1.1.0+cu130 for")).to_have_count(1)


def test_data_that_cannot_be_had_is_told(browser: Browser, served: str) -> None:
    page = browser.new_page()
    page.route("**/data/rotary*", lambda route: route.abort())
    page.route("**/data/fusedops-1.0.0.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto(f"{served}/index.html")
    pick(page, project="rotary")
    page.get_by_text("The data of rotary 0.3.1 cannot be loaded").wait_for()
    pick(page, project="fusedops")
    page.get_by_label("Release", exact=True).select_option("1.0.0")
    page.get_by_text("The data of fusedops 1.0.0 cannot be loaded").wait_for()
    page.close()


def test_a_release_that_nobody_may_have_and_many_projects(
    open_page: Callable[..., Page], tmp_path_factory: pytest.TempPathFactory
) -> None:
    yanked = records.record("bad", "1.0", "cu130", ["2.11"], yanked="wrong results")
    nowhere = records.record("bad", "1.0", "cu126", ["2.11"], environments=(), cover=None)
    found = {("bad", "1.0"): [yanked, nowhere]}
    known = {"bad": ["1.0"]}
    for number in range(8):
        name = f"demo-{number}"
        found[name, "1.0"] = [records.record(name, "1.0", "cu130", ["2.11"])]
        known[name] = ["1.0"]
    out = tmp_path_factory.mktemp("many")
    demo.write(out, found, known)
    page = open_page(f"{out.as_uri()}/index.html")
    page.get_by_text("No wheel of bad 1.0 is offered").wait_for()
    assert page.locator(".command").count() == 0
    page.get_by_label("Project", exact=True).select_option("demo-7")
    page.get_by_text("demo-7 1.0+cu130 for").wait_for()
