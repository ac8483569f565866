"""A map in a real browser: it draws, it names what is pointed at, and it asks nobody for anything."""

import pytest
from tests.browser.test_report import CHROMIUM, FLAGS, Opened, playwright

import rekindle as rk
from rekindle.report.figures import explore

pytest.importorskip("pydeck", reason="the extra 'maps' is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore"),  # of Playwright's event loop
]

SOFTWARE = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PLACES = rk.Locations.from_lat_lng(
    [[59.9, 10.7], [59.9, 10.8], [59.95, 10.8], [59.925, 10.75]], ["a", "b", "d", "<i>the middle</i>"]
)
PEOPLE = rk.Trajectories([[0, 1], [3, 3]], PLACES, rk.Calendar("2024-03-01", "1h"), ["ann", "<i>bob</i>"])


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        chromium = play.chromium.launch(
            executable_path=CHROMIUM, args=[flag for flag in FLAGS if "gpu" not in flag] + SOFTWARE
        )
        yield chromium
        chromium.close()


@pytest.mark.parametrize(
    ("data", "name"), [(PEOPLE, "<i>bob</i>"), (PEOPLE.counts(), "<i>the middle</i>")], ids=["paths", "counts"]
)
def test_shows_names_and_asks_nobody(browser, tmp_path, data, name):
    explore(data).save(tmp_path / "map.html")
    with Opened(browser, tmp_path / "map.html", viewport={"width": 900, "height": 600}) as opened:
        opened.wait("document.querySelector('#map canvas') !== null")
        opened.page.wait_for_timeout(2000)
        shown = opened.page.screenshot()
        assert len(shown) > 3000  # an empty page is smaller
        for x in (440, 448, 450):
            opened.page.mouse.move(x, 300)
            opened.page.wait_for_timeout(300)
        opened.wait(
            "[...document.querySelectorAll('.deck-tooltip')].some(one => one.innerText.startsWith('" + name + "'))"
        )
        assert opened.requests == [opened.url]
        assert [text for text in opened.complaints if "map provider" not in text] == []
