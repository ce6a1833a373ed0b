"""The report as a reader has it: opened in headless Chromium, with the keyboard, in both themes, with scripts off."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.html.pages import HOSTILE_NAMES, demo_evidence, evidence_of_runs, hostile_runs

from tracebridge.report.html import render_html

pytestmark = pytest.mark.browser

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
]

Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """The report of the packaged corpus, and that of runs with hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = evidence_of_runs(tmp_path_factory.mktemp("hostile"), hostile_runs(), resamples=0)
    texts = {"demo": demo_evidence(tmp_path_factory.mktemp("demo"), resamples=0)[2], "hostile": render_html(hostile)}
    found = {}
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, pages) -> Iterator[Open]:
    """Open a page; whatever a test does, nothing is said on the console and nothing is asked for but the page."""
    urls: set[str] = set()

    def open_page(name: str) -> Any:
        url = pages[name].as_uri()
        urls.add(url)
        browser.get("about:blank")
        browser.get(url)
        return browser

    for kind in ("browser", "performance"):
        browser.get_log(kind)
    yield open_page
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"}
    assert urls
    assert asked <= urls


def texts(driver: Any, selector: str) -> list[str]:
    return [each.text for each in driver.find_elements("css selector", selector)]


def press(driver: Any, *keys: str) -> None:
    driver.switch_to.active_element.send_keys(*keys)


def test_verdicts_come_first_and_every_section_is_reached(opened):
    driver = opened("demo")
    first = driver.find_element("css selector", "main table")
    assert first.find_element("tag name", "caption").text == "Verdict of each property"
    assert first.location["y"] < 400
    assert "success_rate_reached" in first.text
    for link in driver.find_elements("css selector", "nav a"):
        link.click()
        target = driver.execute_script("return document.querySelector(arguments[0])", link.get_attribute("hash"))
        assert target.find_element("tag name", "h2").is_displayed()
    width = driver.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width[0] <= width[1]


def test_the_keyboard_reaches_and_works_everything(opened):
    from selenium.webdriver.common.keys import Keys

    driver = opened("demo")
    driver.find_element("tag name", "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the verdicts"
    press(driver, Keys.TAB)
    assert driver.switch_to.active_element.text == "Unfold all"
    press(driver, Keys.TAB)
    assert driver.switch_to.active_element.get_attribute("id") == "theme"
    assert driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    press(driver, Keys.ENTER)
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") != before
    fold = driver.find_element("css selector", "#measured details summary")
    driver.execute_script("arguments[0].focus()", fold)
    press(driver, Keys.ENTER)
    assert driver.execute_script("return arguments[0].parentElement.open", fold)
    sort = driver.find_element("css selector", "#states button.sort")
    driver.execute_script("arguments[0].focus()", sort)
    names = texts(driver, "#states tbody th")
    press(driver, Keys.ENTER)
    assert texts(driver, "#states tbody th") == sorted(names) != names
    assert driver.find_element("css selector", "#states thead th").get_attribute("aria-sort") == "ascending"
    visits = driver.find_elements("css selector", "#states button.sort")[1]
    visits.click()
    assert texts(driver, "#states tbody th") == names


def test_a_link_opens_the_block_that_it_leads_into(opened):
    from selenium.webdriver.support.wait import WebDriverWait

    driver = opened("demo")
    driver.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
    driver.find_element("css selector", "#verdicts tbody tr:nth-child(2) a").click()
    block = driver.find_element("id", "property-2")
    WebDriverWait(driver, 30).until(lambda _: block.get_attribute("open"))
    assert "REL-1" in block.text
    driver.find_element("id", "unfold").click()
    assert all(each.get_attribute("open") for each in driver.find_elements("tag name", "details"))


def test_hostile_names_make_no_element_and_run_nothing(opened):
    driver = opened("hostile")
    assert driver.title.startswith("Reliability evidence")
    for selector in ("img", "iframe", "[onerror]", "[onmouseover]", "script:not(:last-child)"):
        assert driver.find_elements("css selector", f"body {selector}") == []
    shown = driver.execute_script("return document.body.textContent")
    for name in HOSTILE_NAMES[:3]:
        assert name in shown
    refused = driver.execute_script(
        "const made = document.createElement('script'); made.textContent = 'document.title = 1';"
        "document.body.append(made); return document.title"
    )
    assert refused.startswith("Reliability evidence")  # by the policy of the page
    assert "Content Security Policy" in driver.get_log("browser")[0]["message"]


def test_it_is_read_with_scripts_off(opened, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = opened("demo")
        assert not driver.find_element("id", "controls").is_displayed()
        assert "success_rate_reached" in texts(driver, "#verdicts tbody tr")[1]
        summary = driver.find_element("css selector", "#measured details summary")
        table = driver.find_element("css selector", "#measured details table")
        assert not table.is_displayed()
        summary.click()
        assert table.is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes(opened, theme):
    from selenium.webdriver.support.wait import WebDriverWait

    driver = opened("demo")
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    page, ink = driver.execute_script(
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    lightness = [sum(map(int, colour.strip("rgb()").split(","))) / 765 for colour in (page, ink)]
    assert (lightness[0] > 0.9) is (theme == "light")
    assert abs(lightness[0] - lightness[1]) > 0.7
    toggle = driver.find_element("id", "theme")
    WebDriverWait(driver, 30).until(lambda _: toggle.text == ("Dark" if theme == "light" else "Light"))
    toggle.click()
    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") != page


def test_nothing_is_folded_on_paper(opened):
    driver = opened("demo")
    visible = "return [...document.querySelectorAll('details table')].map((each) => each.checkVisibility())"
    assert not all(driver.execute_script(visible))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert all(driver.execute_script(visible))
        assert not driver.find_element("tag name", "nav").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.fixture
def resized(browser) -> Iterator[Callable[[int], None]]:
    """Give the window a width."""

    def resize(width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield resize
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_verdicts_need_no_scrolling_at_any_width_and_are_rows_where_there_is_room(opened, resized):
    driver = opened("demo")
    for width in (390, 768, 1024, 1200, 1280, 1600):
        resized(width)
        over, page, display = driver.execute_script(
            "const box = document.querySelector('table.verdicts').parentElement, page = document.documentElement;"
            "return [box.scrollWidth - box.clientWidth, page.scrollWidth - page.clientWidth,"
            " getComputedStyle(box.querySelector('tbody tr')).display]"
        )
        assert (over, page) == (0, 0), width
        assert display == ("table-row" if width >= 1024 else "grid")
        assert driver.find_element("css selector", "#verdicts tbody tr:nth-child(2)").text.count("REL-1") == 1


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_the_diagram_is_read_without_scaling_or_scrolling(opened, resized, name):
    driver = opened(name)
    resized(1280)
    over, sizes, overlaps = driver.execute_script("""
        const svg = document.querySelector('#chain svg'), box = svg.closest('.scroll');
        const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
        const texts = [...svg.querySelectorAll('text')];
        const rects = (found) => found.map((each) => each.getBoundingClientRect());
        const numbers = rects(texts.filter((each) => each.classList.contains('share')));
        const all = [...rects([...svg.querySelectorAll('rect.node')]), ...numbers];
        const meet = (a, b) => a !== b && a.left < b.right && b.left < a.right && a.top + 2 < b.bottom - 2
            && b.top + 2 < a.bottom - 2;  // a line of text is higher than its letters
        const size = (each) => scale * parseFloat(getComputedStyle(each).fontSize);
        const overlapping = numbers.filter((each) => all.some((other) => meet(each, other)));
        return [box.scrollWidth - box.clientWidth, texts.map(size), overlapping.length];
    """)
    assert over == 0
    assert min(sizes) >= 12
    assert overlaps == 0
