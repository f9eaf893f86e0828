"""The pages in a real Chromium: opened from a file, clicked, switched, narrowed, printed, and photographed.

Needs the packages of the group `browser` and a Chromium that BISECT_ENV_TEST_BROWSER names by its path, as
`nox -s browser_tests` does. The screenshots, of both themes and a phone's width, lie in ``screenshots/`` afterwards, to
be looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bisect_env.report.html import bisection as bisection_page
from bisect_env.report.html import explanation as explanation_page
from bisect_env.report.html import gate as gate_page
from tests.report.build import Judged, laptop, row, under
from tests.report.explanations import busy, explanation, hung, raced, stuck
from tests.report.html.pages import bisection, gate, matrix_page, timed
from tests.report.html.test_every_page import planted_explanation, planted_finding, planted_gate, planted_matrix

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = os.environ.get("BISECT_ENV_TEST_BROWSER", "")
pytestmark = pytest.mark.skipif(not BROWSER, reason="BISECT_ENV_TEST_BROWSER names no Chromium")
SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
SHEET = {"width": 688, "height": 1017}
"""A4 without its margins of 14 mm, at 96 pixels an inch."""
WAIT = 5000
"""Milliseconds for anything that a page does."""


def wide() -> list[Judged]:
    """A matrix of every tone, with more columns than a phone has room for, under two states of the cache."""
    rounds = [
        timed("2.13.0", number, "." * 8, rate, seed=at)
        for at, (number, rate) in enumerate((("4.52.4", 21_500), ("5.6.0", 21_200), ("5.8.1", 20_900)))
    ]
    shown = [
        *laptop(),
        *rounds,
        row("2.12.0", "5.6.0", "HHHFH."),
        row("2.12.0", "5.8.1", "F....."),
        row("2.12.0", "4.52.4", ""),
    ]
    return [under(each, "cache", state) for state in ("cold", "warm") for each in shown]


def matrix() -> str:
    return matrix_page(
        wide(),
        axes=("torch", "cuda", "transformers", "pattern", "cache"),
        reference=(("torch", "2.13.0"), ("transformers", "4.52.4")),
    )


def bisect() -> str:
    return bisection_page.page(*bisection())


def gated() -> str:
    return gate_page.page(gate())


def explained() -> str:
    return explanation_page.page(explanation(raced(), stuck(), hung(), busy()))


PAGES: list[Callable[[], str]] = [matrix, bisect, gated, explained]
each_page = pytest.mark.parametrize("made", PAGES, ids=lambda made: made.__name__)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER)
        yield found
        found.close()


@dataclass
class Opened:
    """A page with everything it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a document from a file of its own; it must ask for nothing else, and complain of nothing."""
    opened: list[Opened] = []

    def open_(document: str, **options: Any) -> Opened:
        file = tmp_path / "report.html"
        file.write_text(document, encoding="utf-8")
        page = browser.new_page(**{"viewport": DESK, **options})
        page.set_default_timeout(WAIT)
        found = Opened(page)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("console", lambda message: found.complaints.append(message.text))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.goto(file.as_uri())
        opened.append(found)
        return found

    yield open_
    for each in opened:
        assert {url.partition("#")[0] for url in each.requests} == {(tmp_path / "report.html").as_uri()}
        assert not each.complaints
        each.page.close()


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def spilled(page: Page) -> list[str]:
    """What reaches beyond the window's right edge and lies in no box that scrolls by itself."""
    script = """() => [...document.querySelectorAll("body *")].filter(each =>
        each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, pre, svg")
    ).map(each => each.tagName + "." + each.className)"""
    return list(page.evaluate(script))


@each_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_a_file_alone(open_page: Callable[..., Opened], made: Callable[[], str], scheme: str) -> None:
    page = open_page(made(), color_scheme=scheme).page
    assert page.locator("h1").inner_text() and overflow(page) == 0
    photograph(page, made.__name__, scheme)


@each_page
def test_on_a_phone_it_does_not_scroll_sideways(open_page: Callable[..., Opened], made: Callable[[], str]) -> None:
    page = open_page(made(), viewport=PHONE, is_mobile=True, device_scale_factor=2).page
    photograph(page, made.__name__, "phone")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert overflow(page) == 0 and spilled(page) == []
    for box in page.locator("button:visible, a.cell:visible").all():
        size = box.bounding_box()
        assert size is not None and size["height"] >= 24, "too small for a finger"


@each_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_that_would_keep_somebody_out(
    browser: Browser, made: Callable[[], str], scheme: str, tmp_path: Path
) -> None:
    """Everything opened: contrast as it is drawn, names, roles, tables, landmarks (axe-core's own rules)."""
    from axe_playwright_python.sync_playwright import Axe

    file = tmp_path / "report.html"
    file.write_text(made(), encoding="utf-8")
    # The page's own policy would stop the script that looks at it.
    page = browser.new_page(color_scheme=scheme, viewport=DESK, bypass_csp=True)
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    results = Axe().run(page)
    assert results.response["passes"], "it looked at nothing"
    assert results.violations_count == 0, results.generate_report()
    page.close()


@pytest.mark.parametrize(
    "made", [planted_matrix, planted_finding, planted_gate, planted_explanation], ids=lambda made: made.__name__
)
def test_long_names_do_not_widen_a_phone_either(open_page: Callable[..., Opened], made: Callable[[], str]) -> None:
    page = open_page(made(), viewport=PHONE, is_mobile=True).page
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert overflow(page) == 0 and spilled(page) == []


def photograph(page: Page, name: str, about: str) -> None:
    """The whole page, into the folder of the screenshots."""
    SCREENSHOTS.mkdir(exist_ok=True)
    path = SCREENSHOTS / f"{name}-{about}.png"
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("scripts", [True, False], ids=["with its script", "without"])
def test_a_click_on_a_cell_opens_its_evidence(open_page: Callable[..., Opened], scripts: bool) -> None:
    page = open_page(matrix(), java_script_enabled=scripts).page
    cell = page.locator("a.cell", has_text="RACE 5/6").first
    evidence = page.locator(f"details:has({cell.get_attribute('href')})")
    assert not evidence.locator(".body").is_visible()
    cell.click()
    evidence.locator(".body").wait_for(state="visible")
    assert evidence.locator("h4", has_text="Trials").is_visible()
    top = evidence.bounding_box()
    assert top is not None and -200 < top["y"] < DESK["height"]
    if scripts:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "matrix-evidence.png")
        evidence.locator("summary").first.click()
        cell.click()  # The same anchor once more.
        evidence.locator(".body").wait_for(state="visible")


def test_the_keyboard_is_enough(open_page: Callable[..., Opened]) -> None:
    page = open_page(matrix()).page
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the content"
    cell = page.locator("a.cell").first
    cell.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert "3px" in str(cell.evaluate("each => getComputedStyle(each).outlineWidth")), (
        "where the focus is cannot be seen"
    )
    page.keyboard.press("Enter")
    evidence = page.locator(f"details:has({cell.get_attribute('href')})")
    evidence.locator(".body").wait_for(state="visible")
    evidence.locator("summary").first.focus()
    page.keyboard.press("Space")
    evidence.locator(".body").wait_for(state="hidden")


def test_the_theme_follows_the_system_until_it_is_switched(open_page: Callable[..., Opened]) -> None:
    page = open_page(matrix(), color_scheme="light").page
    from playwright.sync_api import expect

    light, switch = background(page), page.locator("#theme")
    assert switch.inner_text() == "Dark theme"
    page.emulate_media(color_scheme="dark")
    # The page is told of the change a moment after the browser has drawn it.
    expect(switch).to_have_text("Light theme")
    dark = background(page)
    assert dark != light
    switch.click()
    assert background(page) == light and switch.inner_text() == "Dark theme"
    page.reload()
    assert background(page) == light, "the choice is kept"
    switch.click()
    page.emulate_media(color_scheme="light")
    expect(switch).to_have_text("Light theme")
    assert background(page) == dark


def test_only_the_verdicts_that_are_chosen_are_shown(open_page: Callable[..., Opened]) -> None:
    page = open_page(matrix()).page
    every = page.locator("details.evidence").count()
    only = page.get_by_role("button", name="DENSE", exact=True)
    only.click()
    shown = page.locator("details.evidence:visible")
    assert 0 < shown.count() < every and only.get_attribute("aria-pressed") == "true"
    assert all("DENSE" in text for text in shown.all_inner_texts())
    page.locator("a.cell", has_text="RACE").first.click()
    assert page.locator("details.evidence:visible", has_text="RACE").count(), "a click opens it all the same"
    only.click()
    assert shown.count() == every
    page.get_by_role("button", name="Open all").click()
    assert page.locator("details.evidence[open]").count() == every
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.evidence[open]").count() == 0


@pytest.mark.parametrize(
    "made", [planted_matrix, planted_finding, planted_gate, planted_explanation], ids=lambda made: made.__name__
)
def test_what_is_planted_does_not_run(open_page: Callable[..., Opened], made: Callable[[], str]) -> None:
    page = open_page(made()).page
    title = page.title()
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.title() == title != "planted"
    assert page.locator("img, script").count() == 1
    photograph(page, made.__name__, "light")


def test_the_policy_stops_what_escaping_would_have_missed(browser: Browser, tmp_path: Path) -> None:
    """The same page with markup put in by hand: neither the script nor the picture is let do anything."""
    file = tmp_path / "report.html"
    bad = """<script>document.title = "planted"</script><img src="http://127.0.0.1:9/x" onerror="document.title=1">"""
    file.write_text(matrix().replace("<footer>", f"{bad}<footer>"), encoding="utf-8")
    page = browser.new_page()
    asked: list[str] = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_load_state("load")
    assert "laptop" in page.title() and page.locator("img").count() == 1
    assert asked == [file.as_uri()]
    page.close()


@each_page
def test_it_prints(open_page: Callable[..., Opened], made: Callable[[], str], tmp_path: Path) -> None:
    page = open_page(made(), color_scheme="dark", viewport=SHEET).page
    page.emulate_media(media="print")
    assert overflow(page) == 0, "the sheet's edge cuts something off"
    assert background(page) == "rgb(255, 255, 255)" and not page.locator("#theme").is_visible()
    pages = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert pages.startswith(b"%PDF") and len(pages) > 10_000
