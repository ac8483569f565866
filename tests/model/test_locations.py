"""Locations: the plane, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.model.nouns import LOCATIONS, refuses

import rekindle as rk


def haversine_km(one, two):
    (lat1, lng1), (lat2, lng2) = np.radians(one), np.radians(two)
    half = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lng2 - lng1) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.sqrt(half))


CITIES = [(41.15, -8.61), (39.9, 116.4), (-33.87, 151.2), (0.0, 0.0), (60.17, 24.94), (-16.5, 179.97), (52.0, 359.9)]


@pytest.mark.parametrize("city", CITIES)
@given(offsets=arrays(float, (2, 2), elements=st.floats(-0.15, 0.15)))
def test_plane_distances_are_those_on_the_globe(city, offsets):
    """Within half a percent over 30 km, also across the date line."""
    degrees = np.array(city) + offsets
    degrees[:, 1] = np.where(degrees[:, 1] > 180, degrees[:, 1] - 360, degrees[:, 1])
    truth = haversine_km(*degrees)
    found = rk.Locations.from_lat_lng(degrees).distances[0, 1]
    assert found == pytest.approx(truth, rel=0.005, abs=1e-6)


def test_east_is_x_and_north_is_y():
    x, y = rk.Locations.from_lat_lng([[41.0, -8.0], [41.0, -7.9], [41.1, -8.0]]).xy_km.T
    assert x[1] > x[0] == x[2]
    assert y[2] > y[0] == y[1]


def test_distances():
    assert LOCATIONS.distances.tolist() == [[0, 5], [5, 0]]
    assert not LOCATIONS.distances.flags.writeable
    assert LOCATIONS.indices(["b", "a", "b"]).tolist() == [1, 0, 1]
    refuses(["'c'", "2 locations"], LOCATIONS.indices, ["a", "c"])


def test_locations_are_read_only_views():
    xy = np.array([[0.0, 0.0], [3.0, 4.0]])
    locations = rk.Locations(xy, lat_lng=xy)
    for array in (locations.xy_km, locations.lat_lng):
        assert np.shares_memory(array, xy)
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert xy.flags.writeable
    with pytest.raises(AttributeError):
        locations.ids = ("x", "y")
    assert locations.ids == ("0", "1")
    assert len({locations, rk.Locations(xy)}) == 1


@pytest.mark.parametrize(
    ("xy", "settings", "words"),
    [
        ([], {}, ["(0,)"]),
        (np.empty((0, 2)), {}, ["(0, 2)"]),
        ([[1, 2, 3]], {}, ["(1, 3)"]),
        ([[1, 2], [3]], {}, ["Centres"]),
        ([["x", 2]], {}, ["Centres", "'x'"]),
        ([[1, 2], [3, np.nan]], {"ids": "ab"}, ["'b'", "nan"]),
        ([[1, np.inf]], {}, ["'0'", "inf"]),
        ([[0, 0], [1e300, 0]], {}, ["'1'", "1e+300", "metres"]),
        ([[500_000, 4_600_000]], {}, ["metres"]),
        ([[1, 2], [3, 4]], {"ids": ["a"]}, ["1 names for 2"]),
        ([[1, 2], [3, 4]], {"ids": ["a", "a"]}, ["'a'", "twice"]),
        ([[1, 2], [3, 4]], {"lat_lng": [[1, 2]]}, ["(1, 2)", "(2, 2)"]),
        ([[1, 2]], {"lat_lng": [[116.4, 39.9]]}, ["116.4", "exchanged"]),
        ([[1, 2]], {"lat_lng": [[39.9, 361]]}, ["361"]),
        ([[1, 2]], {"lat_lng": [[39.9, np.nan]]}, ["'0'", "nan"]),
    ],
)
def test_locations_refuse(xy, settings, words):
    refuses(words, rk.Locations, xy, **settings)


@pytest.mark.parametrize(
    ("degrees", "words"),
    [
        ([[41, -8], [41, np.nan]], ["'b'", "nan"]),
        ([[41, -8], [95, -8]], ["'b'", "95"]),
        ([[41, -8]], ["2 names for 1"]),
        ([], ["(0,)"]),
    ],
)
def test_degrees_refuse(degrees, words):
    refuses(words, rk.Locations.from_lat_lng, degrees, "ab")


@pytest.mark.parametrize("km", [1e300, -1e300, 60_000])
def test_locations_beyond_the_earth_are_refused(km):
    with pytest.raises(rk.errors.InvalidData, match=r"centre of location 'b' is .* Are these metres"):
        rk.Locations([[0, 0], [km, 0]], ["a", "b"])


def test_spacing_ignores_coincident_locations():
    assert rk.Locations([[0, 0], [0, 0], [3, 4], [3, 5]]).spacing_km == 1.0
    assert rk.Locations([[0, 0], [0, 0]]).spacing_km is None
    assert rk.Locations([[7, 7]]).spacing_km is None
