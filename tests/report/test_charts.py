"""Charts are SVG in which every value has its place and every name is text."""

import re

from tests.report.made import around

from rekindle.auditing.risk import LEVELS
from rekindle.report.charts import WIDTH, Line, Point, histogram, lines, privacy_and_use
from rekindle.report.geography import Place, map_of_places

HOSTILE = '"><script>x</script>'


def places(text, shape="circle"):
    return [float(at) for at in re.findall(rf'<{shape}[^>]* cy="([\d.]+)"', text)]


def test_higher_values_lie_higher_and_gaps_are_left_out():
    line = Line("a", "k1", [(1, 0.1), (2, None), (3, 0.4)])
    text = lines("title", [line], xname="x", yname="y", xticks=[(1, "1"), (3, "3")])
    low, high = places(text)
    assert high < low
    assert ">40%<" in text


def test_a_point_alone_is_a_ring_that_hides_no_other():
    found = [Line("a", "k1", [(1, 0.4), (2, 0.3)]), Line("b", "k2", [(1, 0.4)])]
    text = lines("title", found, xname="x", yname="y", xticks=[(1, "1"), (2, "2")])
    assert len(re.findall('<circle class="dot k1"', text)) == 2
    assert len(re.findall('<circle class="line k2"', text)) == 1


def test_ticks_outside_the_values_stay_on_the_chart():
    line = Line("a", "k1", [(0.5, 0.5), (1, 0.4)])
    text = lines("title", [line], xname="x", yname="y", xticks=[(0, "zero"), (1, "one")])
    assert 'x="80.0" y="236" text-anchor="middle" class="tick">zero<' in text


def test_every_person_is_counted_and_those_above_half_stand_out():
    text = histogram("title", [0.0, 0.01, 0.5, 0.7, 1.0], 0.1, xname="x", yname="people")
    assert sum(int(count) for count in re.findall(r"<title>(\d+) pe", text)) == 5
    assert re.findall(r'class="fill (\w+)"', text) == ["spared", "exposed", "exposed", "exposed"]


def test_every_axis_has_a_title():
    drawn = [
        lines("title", [Line("a", "k1", [(0, 0.5)])], xname="across", yname="upwards", xticks=[(0, "0")]),
        histogram("title", [0.5], 0.1, xname="across", yname="upwards"),
    ]
    for text in drawn:
        assert ">across</text>" in text
        assert re.search(r"rotate\(-90[^>]*>upwards</text>", text)
    text = privacy_and_use("title", [Point(0, "as given", 0.0, around(0.8))], LEVELS)
    assert ">error of the published counts →</text>" in text
    assert ">advantage over chance</text>" in text


def test_all_charts_have_the_same_scale_of_type():
    drawn = [
        lines("title", [Line("a", "k1", [(0, 0.5)])], xname="x", yname="y", xticks=[(0, "0")]),
        histogram("title", [0.5], 0.1, xname="x", yname="y"),
        privacy_and_use("title", [Point(0, "as given", 0.0, around(0.8))], LEVELS),
        map_of_places("title", [Place("a", (0.0, 0.0), 1.0, 0.5)], None, None),
    ]
    assert {re.search(r'viewBox="0 0 (\d+) ', text)[1] for text in drawn} == {str(WIDTH)}


def test_names_are_text():
    drawn = [
        lines(HOSTILE, [Line(HOSTILE, "k1", [(0, 0.5)])], xname=HOSTILE, yname=HOSTILE, xticks=[(0, HOSTILE)]),
        privacy_and_use(HOSTILE, [Point(0, HOSTILE, 0.1, around(0.5))], LEVELS),
        map_of_places(HOSTILE, [Place(HOSTILE, (0.0, 0.0), 0.0, None)], None, None),
    ]
    assert not any("<script" in text for text in drawn)
    assert all("&lt;script&gt;" in text for text in drawn)


def test_safer_releases_lie_lower():
    points = [Point(0, "as given", 0.0, around(0.8)), Point(1, "noise", 0.3, around(-0.01))]
    safe, given = places(privacy_and_use("title", points, LEVELS))
    assert given < safe


def test_every_release_is_named_beside_its_point_and_no_names_overlap():
    points = [Point(at, f"defence number {at}", 0.3 + at / 50, around(0.5 + at / 100)) for at in range(8)]
    text = privacy_and_use("title", points, LEVELS)
    found = re.findall(r'class="pointname" x="([\d.]+)" y="([\d.]+)">([^<]+)<', text)
    assert {name for _, _, name in found} == {point.name for point in points}
    boxes = [(float(x), float(y), len(name) * 6.0) for x, y, name in found]
    for at, (x, y, wide) in enumerate(boxes):
        assert 80 <= x <= WIDTH - wide
        for left, top, width in boxes[at + 1 :]:
            assert abs(y - top) >= 12 or x + wide <= left or left + width <= x


def test_the_key_shows_dashes_and_rings_as_they_are_drawn():
    found = [Line("flows", "k1 dashed", [(1, 0.4), (2, 0.5)]), Line("all windows", "k2", [(1, 0.5)])]
    text = lines("title", found, xname="x", yname="y", xticks=[(1, "1"), (2, "24h")])
    assert '<span class="swatch k1 dashed">' in text
    assert '<span class="swatch k2 ring">' in text
    right = float(re.search(r'x="([\d.]+)"[^>]*>24h<', text)[1])
    assert right + 17 * 0.65 * len("100%") / 2 <= WIDTH  # in the type of phones
