"""The map of places: colours by person-time, degrees where they are known, a scale and north."""

import re

import numpy as np
import pytest

import rekindle as rk
from rekindle.report.geography import Place, coordinates, fit_degrees, map_of_places

SQUARES = [
    Place("much", (0.0, 0.0), 200.0, 0.5),
    Place("little", (1.0, 0.0), 2.0, 1.0),
    Place("nobody", (1.0, 1.0), 0.0, None),
]


def grid(lat, lng, side=8):
    lats, lngs = np.meshgrid(lat + np.arange(side) / 100, lng + np.arange(side) / 50)
    return rk.Locations.from_lat_lng(np.c_[lats.ravel(), lngs.ravel()])


def test_places_are_squares_on_a_lattice_and_dots_otherwise():
    assert map_of_places("title", SQUARES, 1.0, None).count('<rect class="place') == 3
    assert map_of_places("title", SQUARES, None, None).count('<circle class="place') == 3


def test_colours_are_by_person_time_and_by_share():
    much, little, nobody = re.findall(r'<rect class="place ([^"]+)"', map_of_places("title", SQUARES, 1.0, None))
    # 100 of at most 100 person-hours, and 2; a half, and all.
    assert (much, little, nobody) == ("t4 s2", "t0 s4", "nobody")


def test_the_key_has_round_numbers_and_tells_nobody_from_little():
    text = map_of_places("title", SQUARES, 1.0, None)
    for entry in ("under 5 h", "5–10 h", "10–20 h", "20–50 h", "from 50 h", "0–20%", "80–100%"):
        assert f"</span>{entry}</li>" in text
    assert text.count("nobody was here</li>") == 2


def test_places_are_named_when_pointed_at():
    text = map_of_places("title", SQUARES, 1.0, None)
    assert "<title>much: 50% of 200 person-hours recovered</title>" in text
    assert "<title>nobody: nobody was here</title>" in text


@pytest.mark.parametrize(
    ("lat", "lng", "labels"),
    [
        (59.9, 10.7, ["59.92° N", "10.75° E"]),
        (-33.9, 18.4, ["33.88° S", "18.45° E"]),
        (-0.02, 179.93, ["0.02° S", "0.02° N", "180.00° W"]),
    ],
)
def test_degrees_are_those_of_the_places(lat, lng, labels):
    locations = grid(lat, lng)
    degrees = fit_degrees(locations)
    for (x, y), (true_lat, true_lng) in zip(locations.xy_km, locations.lat_lng, strict=True):
        assert degrees.lat + degrees.lat_per_km * y == pytest.approx(true_lat, abs=1e-6)
        gap = degrees.lng + degrees.lng_per_km * x - true_lng
        assert (gap + 180) % 360 - 180 == pytest.approx(0, abs=1e-6)
    drawn = [Place(name, tuple(xy), 1.0, 0.5) for name, xy in zip(locations.ids, locations.xy_km, strict=True)]
    text = map_of_places("title", drawn, 1.1, degrees)
    for label in labels:
        assert f">{label}</text>" in text


def test_no_degrees_where_they_are_unknown_or_askew():
    assert fit_degrees(rk.Locations([(0, 0), (1, 1)])) is None
    straight = grid(59.9, 10.7)
    turned = straight.xy_km @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert fit_degrees(rk.Locations(turned, lat_lng=straight.lat_lng)) is None


def test_one_place_has_degrees_too():
    degrees = fit_degrees(rk.Locations.from_lat_lng([(59.9, 10.7)]))
    assert 1 / degrees.lat_per_km == pytest.approx(111.2, abs=0.1)
    assert 1 / degrees.lng_per_km == pytest.approx(55.8, abs=0.1)
    assert ">N</text>" in map_of_places("title", [Place("a", (0.0, 0.0), 1.0, 1.0)], None, degrees)


@pytest.mark.parametrize(("side", "label"), [(0.1, "200 m"), (1.0, "2 km"), (40.0, "50 km")])
def test_has_a_scale_and_north(side, label):
    drawn = [Place(str(at), (side * at, 0.0), 1.0, 0.5) for at in range(6)]
    text = map_of_places("title", drawn, side, None)
    assert f">{label}</text>" in text
    length = float(re.search(r'class="scale" d="M[\d.,]+v8M[\d.,]+h([\d.]+)', text)[1])
    unit = 0.001 if label.endswith(" m") else 1
    assert length == pytest.approx(480 / (6 * side) * float(label.split()[0]) * unit, abs=0.1)
    assert 'class="north"' in text


def test_coordinates_as_people_write_them():
    assert coordinates(-33.9249, 18.4241) == "33.9249° S, 18.4241° E"
    assert coordinates(37.77, -122.42, 2) == "37.77° N, 122.42° W"
