"""Charts are SVG in which every value has its place and every name is text."""

import re

import numpy as np
from tests.report.made import around

from rekindle.auditing.verdict import LEVELS
from rekindle.report.charts import Line, Point, histogram, lines, map_of_places, privacy_and_use

HOSTILE = '"><script>x</script>'


def places(text, shape="circle"):
    return [float(at) for at in re.findall(rf'<{shape}[^>]* cy="([\d.]+)"', text)]


def test_higher_values_lie_higher_and_gaps_are_left_out():
    text = lines("title", [Line("a", "k1", [(1, 0.1), (2, None), (3, 0.4)])], xname="x", xticks=[(1, "1"), (3, "3")])
    low, high = places(text)
    assert high < low
    assert ">40%<" in text


def test_ticks_outside_the_values_stay_on_the_chart():
    text = lines("title", [Line("a", "k1", [(0.5, 0.5), (1, 0.4)])], xname="x", xticks=[(0, "zero"), (1, "one")])
    assert 'x="62.0" y="242" text-anchor="middle" class="tick">zero<' in text


def test_every_person_is_counted():
    text = histogram("title", [0.0, 0.01, 0.5, 1.0], 0.1, "a0", xname="x")
    assert sum(int(count) for count in re.findall(r"<title>(\d+) pe", text)) == 4


def test_names_are_text():
    drawn = [
        lines(HOSTILE, [Line(HOSTILE, "k1", [(0, 0.5)])], xname=HOSTILE, xticks=[(0, HOSTILE)]),
        privacy_and_use(HOSTILE, [Point(0, HOSTILE, 0.1, around(0.5))], LEVELS),
        map_of_places(HOSTILE, np.zeros((1, 2)), [None], [HOSTILE], None),
    ]
    assert not any("<script" in text for text in drawn)
    assert all("&lt;script&gt;" in text for text in drawn)


def test_safer_releases_lie_lower():
    points = [Point(0, "as given", 0.0, around(0.8)), Point(1, "noise", 0.3, around(-0.01))]
    safe, given = places(privacy_and_use("title", points, LEVELS))
    assert given < safe


def test_places_are_squares_on_a_lattice_and_dots_otherwise():
    xy = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert map_of_places("title", xy, [0.3, None], ["a", "b"], 1.0).count("<rect") == 2
    assert map_of_places("title", xy, [0.3, None], ["a", "b"], None).count("<circle") == 2
