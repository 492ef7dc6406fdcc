"""The page in a real browser: accessible, interactive, offline."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from concurve.findings.run import Report
from concurve.report.html import to_html
from concurve.report.sections.run import run_document
from tests.report import samples
from tests.report.demonstrations import of_the_demonstration, on_a_busy_machine

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]

Open = Callable[..., Page]

DEMONSTRATION, DISTURBED = "the demonstration", "the demonstration on a busy machine"
PAGES: dict[str, Callable[[], Report]] = {
    **samples.ALL,
    DEMONSTRATION: lambda: of_the_demonstration("nothing", 0),
    DISTURBED: on_a_busy_machine,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a sample's page, written once."""
    folder = tmp_path_factory.mktemp("pages")

    def file(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(to_html(run_document(PAGES[name]())), encoding="utf-8")
        return path

    return file


@pytest.fixture
def opened(browser: Browser, written: Callable[[str], Path]) -> Iterator[Open]:
    """Opens a sample's page; a request or an error of its script fails the test."""
    tabs: list[Page] = []
    wrong: list[str] = []

    def open_page(name: str, width: int = 1200, scheme: str = "light") -> Page:
        size = {"width": width, "height": 800}
        tab = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        tab.on("request", lambda request: wrong.append(request.url))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        address = written(name).as_uri()
        tab.goto(address)
        wrong.remove(address)
        tabs.append(tab)
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert not wrong


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("judged", 1200, "light"), ("judged", 400, "dark"), ("troubled", 1200, "dark"),
     ("text_factor", 400, "light")],
)  # fmt: skip
def test_axe_finds_no_violation(name: str, width: int, scheme: str, opened: Open) -> None:
    page = opened(name, width, scheme)
    assert_accessible(page)
    page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true })")
    assert_accessible(page)


def assert_accessible(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    assert not found, [(item["id"], item["nodes"][0]["html"][:200]) for item in found]


LIMITS = {
    "judged": "Locks.",
    DEMONSTRATION: "Locks.",
    DISTURBED: "No cause is named",
    "thread_scaling": "",
    "troubled": "",
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_first_screen_holds_the_answer_its_chart_and_the_cause(name: str, opened: Open) -> None:
    page = opened(name)
    said = [item.sentence for item in PAGES[name]().sentences if item.kind == "answer"]
    parts = [page.get_by_text(sentence).first for sentence in said]
    assert parts or name == "judged", "it alone says nothing of its figures"
    parts.append(page.locator(".overview figure svg.chart:visible").first)
    if LIMITS[name]:
        parts.append(page.get_by_role("heading", name="What limits it"))
        parts.append(page.locator(".beside").get_by_text(LIMITS[name]).first)
    for part in parts:
        box = part.bounding_box()
        assert box is not None, part
        assert box["y"] >= 0 and box["y"] + box["height"] <= 800, (part, box)


@pytest.mark.parametrize("name", ["judged", "thread_scaling", "text_factor"])
def test_a_phone_scrolls_in_one_direction_only(name: str, opened: Open) -> None:
    page = opened(name, 400)
    page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_mark_says_its_figure_under_the_pointer_and_the_focus(opened: Open) -> None:
    page = opened("thread_scaling")
    tip = page.locator("#tip")
    marks = page.locator(".overview [data-mark]:visible")
    marks.nth(1).hover(force=True)
    assert tip.inner_text() == "cpus=1 threads=2: 0.970 [0.920, 1.021], 5 trials"
    marks.first.focus()
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    assert tip.is_visible() and tip.inner_text() != first
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_curves_can_be_hidden_and_axes_changed(opened: Open) -> None:
    page = opened("thread_scaling")
    figure = page.locator(".overview figure")
    before = figure.locator("[data-mark]:visible").count()
    figure.get_by_role("button", name="cpus 1").click()
    assert figure.locator("[data-mark]:visible").count() == before / 2
    figure.get_by_role("button", name="cpus 1").click()
    assert figure.locator("[data-mark]:visible").count() == before
    shown = figure.locator("svg.chart:visible")
    assert "logarithmic" in shown.inner_html()
    figure.get_by_role("button", name="Linear axes").click()
    assert shown.count() == 1 and "logarithmic" not in shown.inner_html()


def test_time_can_be_stretched_and_the_names_of_threads_stay(opened: Open) -> None:
    page = opened("judged", 400)
    page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true })")
    figure = page.locator("figure", has_text="What each thread did")
    picture = figure.locator("svg.chart")
    marks = figure.locator("[data-mark]")
    name = figure.locator("text", has_text="worker 101").first

    def size(of: Locator) -> tuple[float, float]:
        box = of.bounding_box()
        assert box is not None
        return box["width"], box["height"]

    def relative(now: Locator, before: tuple[float, float]) -> tuple[float, float]:
        wide, high = size(now)
        return round(wide / before[0], 1), round(high / before[1], 1)

    out = figure.get_by_role("button", name="Zoom out")
    assert out.is_disabled()
    whole, mark, label = size(picture), size(marks.first), size(name)
    figure.get_by_role("button", name="Zoom in").click()
    assert relative(marks.first, mark) == (2, 1)
    assert relative(name, label) == (1, 1)
    assert relative(picture, whole)[0] > 1.5
    out.click()
    assert out.is_disabled() and relative(picture, whole) == (1, 1)
    assert relative(marks.first, mark) == (1, 1)


def test_paper_shows_what_is_folded(opened: Open) -> None:
    page = opened("judged")
    fact = page.get_by_text("Example 3000 @ 2.40GHz").last
    assert not fact.is_visible()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert fact.is_visible()
    assert page.locator(".tools").first.is_hidden()
