"""The report in a real browser: it opens from disk, stays silent, and its replay works by keyboard."""

import shutil
import time
from itertools import pairwise

import pytest
from tests.report.hostile import HOSTILE, hostile_audit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (extra 'dev')")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore"),  # of Playwright's event loop
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module", params=["truth", "no truth in it", "no truth known"])
def path(request, tmp_path_factory):
    found = hostile_audit(request.param != "no truth known")
    path = tmp_path_factory.mktemp("report") / "report.html"
    found.to_html(path, include_truth=request.param == "truth", names=True)
    return path


class Opened:
    """A page, and everything it complained about or asked for."""

    def __init__(self, browser, path, **settings):
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def wait(self, condition):
        """Wait until a condition holds; the page's own policy forbids Playwright's way."""
        end = time.monotonic() + 60
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(50)

    def dots(self):
        """What the canvases show."""
        return self.page.evaluate("[...document.querySelectorAll('canvas')].map(c => c.toDataURL())")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_opens_from_disk_in_silence(browser, path, theme, width):
    with Opened(browser, path, color_scheme=theme, viewport={"width": width, "height": 800}) as opened:
        page = opened.page
        page.click("#play")
        page.wait_for_timeout(300)
        assert opened.complaints == []
        assert opened.requests == [opened.url]
        assert page.evaluate("window.hacked") is None
        # Nothing but tables, which scroll on their own, is wider than the screen.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, back[4:-1].split(","))) > 380
        assert light == (theme == "light")


def test_the_replay_moves(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        page.select_option("#speed", "4")
        clock, slider = page.text_content("#clock"), page.input_value("#time")
        page.click("#play")
        opened.wait("Number(document.getElementById('time').value) > 5")
        assert page.text_content("#clock") != clock
        assert page.input_value("#time") != slider
        opened.wait("document.getElementById('status').textContent === 'End of the day.'")
        last = page.get_attribute("#time", "max")
        assert page.input_value("#time") == last
        seen = opened.dots()
        page.click("#play")
        page.wait_for_timeout(200)
        page.click("#play")
        assert opened.dots() != seen
        assert opened.complaints == []


def test_places_are_named_when_tapped(browser, path):
    with Opened(browser, path, viewport={"width": 360, "height": 740}, has_touch=True) as opened:
        page = opened.page
        before = page.text_content("#spot")
        page.tap("#map")
        assert page.text_content("#spot").startswith("Here: ") != before
        if page.query_selector(".map"):
            place = page.query_selector(".map .place:not(.nobody)")
            place.tap()
            assert page.text_content("#place") == place.query_selector("title").text_content()
        assert opened.complaints == []


def test_colours_of_the_map_can_be_chosen(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        if page.query_selector(".map") is None:
            pytest.skip("without the truth there is no map of what was recovered")
        fills = "[...document.querySelectorAll('.map .place')].map(e => getComputedStyle(e).fill)"
        by_time = page.evaluate(fills)
        nobody = page.evaluate("getComputedStyle(document.querySelector('.map .nobody')).fill")
        page.check("#by-share")
        by_share = page.evaluate(fills)
        assert by_time != by_share
        little = "getComputedStyle(document.documentElement).getPropertyValue('--shade0')"
        assert (
            by_time.count(nobody)
            == by_share.count(nobody)
            == page.evaluate("document.querySelectorAll('.nobody.place').length")
        )
        assert page.evaluate(little) != page.evaluate(little.replace("shade0", "nobody"))
        assert page.is_visible(".for-share")
        assert not page.is_visible(".for-time")


def test_wide_tables_say_that_they_scroll(browser, path):
    with Opened(browser, path, viewport={"width": 360, "height": 740}) as opened:
        page = opened.page
        hint, scroll = page.query_selector("#defences .hint"), page.query_selector("#defences .scroll")
        assert hint.is_visible()
        assert page.evaluate("document.querySelector('#defences .table').classList.contains('more')")
        scroll.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
        opened.wait("!document.querySelector('#defences .table').classList.contains('more')")
    with Opened(browser, path, viewport={"width": 1400, "height": 740}) as opened:
        assert not opened.page.query_selector("#defences .hint").is_visible()


def test_text_is_as_large_in_every_chart(browser, path):
    for width in (1200, 900, 360):
        with Opened(browser, path, viewport={"width": width, "height": 800}) as opened:
            sizes = opened.page.evaluate(
                """[...document.querySelectorAll('.chart .tick')].filter(e => e.getClientRects().length).map(e =>
                parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a).filter(size => size > 0)"""
            )
            assert not sizes or max(sizes) / min(sizes) < 1.1


def test_by_keyboard_alone(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        page.focus("#person")
        before = page.evaluate("document.getElementById('person').selectedIndex")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.getElementById('person').selectedIndex") == before + 1
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "day"
        before = page.text_content("#clock")
        page.keyboard.press(
            "ArrowDown" if page.evaluate("document.getElementById('day').selectedIndex") == 0 else "ArrowUp"
        )
        assert page.text_content("#clock") != before
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "play"
        page.keyboard.press("Enter")
        assert page.text_content("#play") == "Pause"
        page.keyboard.press("Space")
        assert page.text_content("#play") == "Play"
        page.keyboard.press("Tab")
        at = int(page.input_value("#time"))
        page.keyboard.press("ArrowRight")
        assert int(page.input_value("#time")) == at + 1
        page.keyboard.press("Home")
        assert page.input_value("#time") == "0"
        assert opened.complaints == []


def test_hostile_names_are_shown_as_text(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        shown = page.evaluate(
            """() => { const slider = document.getElementById('time'), seen = [];
            for (let person = 0; person < document.getElementById('person').options.length; person++) {
              document.getElementById('person').selectedIndex = person;
              document.getElementById('person').dispatchEvent(new Event('change'));
              for (let at = 0; at <= Number(slider.max); at++) {
                slider.value = at; slider.dispatchEvent(new Event('input'));
                seen.push(document.getElementById('clock').textContent); } }
            return seen; }"""
        )
        assert any(name in text for text in shown for name in HOSTILE)
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        assert opened.complaints == []
        assert opened.requests == [opened.url]


def test_people_can_read_it_without_seeing_it(browser, path):
    with Opened(browser, path) as opened:
        page = opened.page
        assert page.title()
        assert page.get_attribute("html", "lang") == "en"
        names = page.evaluate(
            "[...document.querySelectorAll('select, input, button')].map(e => (e.labels?.[0]?.innerText || e.innerText))"
        )
        assert all(name.strip() for name in names)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        contrast = page.evaluate(
            """() => { const parts = (s) => s.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => {
              v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
            return [...document.querySelectorAll('main p, main li, main td, main th, main figcaption, main small, .level')]
              .filter((e) => e.offsetParent && !e.closest('.chart')).map((e) => {
                let back = e; while (getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
                const a = light(parts(getComputedStyle(e).color)), b = light(parts(getComputedStyle(back).backgroundColor));
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }); }"""
        )
        assert min(contrast) >= 4.5


def test_prints(browser, path):
    with Opened(browser, path) as opened:
        pdf = opened.page.pdf(format="A4")
        assert pdf.startswith(b"%PDF")
        assert len(pdf) > 20_000
        assert opened.complaints == []
