"""Locations, Counts and Trajectories."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.small import truths

import rekindle as rk

LOCATIONS = rk.Locations([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
HOURLY = rk.Calendar("2024-01-01", "1h")


def refuses(words, call, *arguments, **settings):
    with pytest.raises(rk.errors.InvalidData) as error:
        call(*arguments, **settings)
    for word in words:
        assert word in str(error.value)


# Locations


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


# Counts


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
def test_counts_are_a_read_only_view(dtype):
    values = np.array([[1, 2], [3, 0]], dtype)
    counts = rk.Counts(values, LOCATIONS, HOURLY)
    assert np.shares_memory(counts.values, values)
    assert values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        counts.values[0, 0] = 5
    with pytest.raises(AttributeError):
        counts.values = values
    assert (counts.people, counts.steps, counts.calendar.steps) == (3, 2, 2)


def test_whole_floats_are_counts():
    counts = rk.Counts([[1.0, 2.0]], LOCATIONS, HOURLY)
    assert counts.values.dtype == np.int64
    assert counts == rk.Counts([[1, 2]], LOCATIONS, HOURLY)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, 2], [4, -1]], ["2024-01-01 01:00:00", "'b'", "-1"]),
        ([[1, 2], [1.5, 1.5]], ["2024-01-01 01:00:00", "'a'", "1.5"]),
        ([[1, 2], [3, np.nan]], ["2024-01-01 01:00:00", "'b'", "missing"]),
        ([[1, 2], [3, np.inf]], ["'b'", "inf"]),
        ([[1, 2], [3, None]], ["missing"]),
        ([["1", "2"]], ["whole numbers"]),
        ([[True, False]], ["bool"]),
        ([[1, 2], [3]], ["Counts"]),
        ([[0, 0]], ["nobody"]),
        ([[1, 2, 3]], ["3 columns for 2"]),
        ([1, 2], ["(2,)"]),
        ([], ["(0,)"]),
        (np.empty((0, 2), int), ["(0, 2)"]),
        ([[2**31, 0]], [str(2**31)]),
        ([[2**31 - 1, 1]], [str(2**31)]),
        (np.array([[2**63, 2**63]], np.uint64), [str(2**63)]),
        ([[1e300, 0]], ["too large"]),
    ],
)
def test_counts_refuse(values, words):
    refuses(words, rk.Counts, values, LOCATIONS, HOURLY)


def test_counts_need_their_calendar():
    refuses(["1 rows", "2 steps"], rk.Counts, [[1, 2]], LOCATIONS, HOURLY.closed_at(2))


def test_days_of_counts():
    counts = rk.Counts([[1, 2]] * 30, LOCATIONS, rk.Calendar("2024-01-01 03:20", "1h"))
    days = list(counts.days())
    assert [day.steps for day in days] == [21, 9]
    assert str(days[1].calendar.start) == "2024-01-02 00:20:00"
    assert all(np.shares_memory(day.values, counts.values) for day in days)


def test_between():
    counts = rk.Counts([[hour % 4, 3 - hour % 4] for hour in range(50)], LOCATIONS, HOURLY)
    part = counts.between(datetime(2024, 1, 2), datetime(2024, 1, 2, 5))
    assert part == counts.part(slice(24, 29))
    assert counts.between(datetime(1999, 1, 1), datetime(2999, 1, 1)) == counts
    assert counts.between() == counts
    assert counts.between(datetime(2024, 1, 1, 0, 0, 0, 1)).calendar.start == datetime(2024, 1, 1, 1)
    assert counts.between(end=datetime(2024, 1, 1, 0, 0, 0, 1)).steps == 1
    refuses(["2025", "2024-01-03 01:00:00"], counts.between, datetime(2025, 1, 1))
    refuses(["2024-01-01"], counts.between, None, datetime(2024, 1, 1))
    refuses(["time zone"], counts.between, datetime(2024, 1, 1, tzinfo=UTC))


# Trajectories


def test_trajectories_are_a_read_only_view():
    cells = np.array([[0, 1], [1, 1]])
    found = rk.Trajectories(cells, LOCATIONS, HOURLY)
    assert np.shares_memory(found.cells, cells)
    assert cells.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        found.cells[0, 0] = 1
    with pytest.raises(AttributeError):
        found.cells = cells
    assert found.xy_km().tolist() == [[[0, 0], [3, 4]], [[3, 4], [3, 4]]]
    assert found.people_ids == ("0", "1")


@given(truths())
def test_people_are_conserved(truth):
    counts = truth.counts()
    assert counts.people == truth.people
    assert (counts.values.sum(axis=1) == truth.people).all()
    for place in range(len(truth.locations)):
        assert (counts.values[:, place] == (truth.cells == place).sum(axis=0)).all()
    assert truth.xy_km().shape == (truth.people, truth.steps, 2)
    day = list(truth.calendar.days())[-1]
    assert truth.part(day).counts() == counts.part(day)


def test_no_steps_yet():
    found = rk.Trajectories(np.empty((3, 0), int), LOCATIONS, HOURLY)
    assert (found.people, found.steps, found.xy_km().shape) == (3, 0, (3, 0, 2))
    refuses(["(0, 2)"], found.counts)


@pytest.mark.parametrize(
    ("cells", "settings", "words"),
    [
        ([[0, 2]], {}, ["Person 0", "index 2", "step 1"]),
        ([[0, -2]], {}, ["-2", "-1 for people who are away"]),
        ([[0.0, 1.0]], {}, ["float64"]),
        ([[0], [0, 1]], {}, ["Trajectories"]),
        ([0, 1], {}, ["(2,)"]),
        ([], {}, ["(0,)"]),
        ([[0], [1]], {"people_ids": ["x"]}, ["1 names for 2"]),
        ([[0], [1]], {"people_ids": ["x", "x"]}, ["same name"]),
    ],
)
def test_trajectories_refuse(cells, settings, words):
    refuses(words, rk.Trajectories, cells, LOCATIONS, HOURLY, **settings)


def test_trajectories_need_their_calendar():
    refuses(["1 columns", "2 steps"], rk.Trajectories, [[0]], LOCATIONS, HOURLY.closed_at(2))


def test_equal_means_equal_in_everything():
    one = rk.Trajectories([[0, 1]], LOCATIONS, HOURLY)
    assert one == rk.Trajectories([[0, 1]], LOCATIONS, HOURLY)
    assert one != rk.Trajectories([[0, 0]], LOCATIONS, HOURLY)
    assert one != rk.Trajectories([[0, 1]], LOCATIONS, HOURLY, ["x"])
    assert one != rk.Trajectories([[0, 1]], LOCATIONS, rk.Calendar("2024-01-02", "1h"))
    assert one != "no trajectories"
    assert one.counts() != rk.Trajectories([[0, 0]], LOCATIONS, HOURLY).counts()
    with pytest.raises(TypeError):
        hash(one)
    assert "1 people, 2 steps" in repr(one)


@pytest.mark.parametrize("km", [1e300, -1e300, 60_000])
def test_locations_beyond_the_earth_are_refused(km):
    with pytest.raises(rk.errors.InvalidData, match=r"centre of location 'b' is .* Are these metres"):
        rk.Locations([[0, 0], [km, 0]], ["a", "b"])


def test_spacing_ignores_coincident_locations():
    assert rk.Locations([[0, 0], [0, 0], [3, 4], [3, 5]]).spacing_km == 1.0
    assert rk.Locations([[0, 0], [0, 0]]).spacing_km is None
    assert rk.Locations([[7, 7]]).spacing_km is None


def test_a_dataset_on_a_longer_list_of_locations():
    few = rk.Locations([[1, 0], [0, 0]], ["b", "a"])
    truth = rk.Trajectories([[0, 1], [1, 1]], few, rk.Calendar("2024-03-01", "1h"))
    found = rk.Dataset(truth.counts(), truth).with_locations(
        rk.Locations([[0, 0], [1, 0], [2, 0]], list("abc"), public=True)
    )
    assert found.counts.values.tolist() == [[1, 1, 0], [2, 0, 0]]
    assert found.truth.cells.tolist() == [[1, 0], [0, 0]]
    assert found.locations.public
    with pytest.raises(rk.errors.InvalidData, match="'b' is unknown"):
        rk.Dataset(truth.counts()).with_locations(rk.Locations([[0, 0]], ["a"]))


# All of them


def test_nothing_is_equal_to_what_it_is_not():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    counts = truth.counts()
    release = rk.Release.of(counts)
    for noun in (places, truth, counts, release):
        assert noun != "other"
        assert noun == noun
    assert counts != rk.Counts(counts.values[::-1], places, counts.calendar)


def test_nouns_say_what_they_are():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]])
    truth = rk.Trajectories(np.array([[0, 1], [1, 1]]), places, rk.Calendar("2024-03-01", "1h"))
    assert repr(places) == "Locations(2)"
    assert repr(truth.counts()) == "Counts(2 people, 2 steps from 2024-03-01 00:00:00, 2 locations)"
    assert hash(places) == hash(rk.Locations([[0.0, 0.0], [1.0, 0.0]]))


AWAY_TRUTH = rk.Trajectories(
    [[0, rk.AWAY, 1], [rk.AWAY] * 3, [1, rk.AWAY, rk.AWAY]],
    LOCATIONS,
    HOURLY,
    observed=[[True, False, False]] + [[False] * 3] * 2,
)


def test_people_may_be_away():
    counts = AWAY_TRUTH.counts()
    assert counts.values.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert (counts.people, counts.totals.tolist(), counts.away.tolist()) == (3, [2, 0, 1], [1, 3, 2])
    assert AWAY_TRUTH.counted.sum() == 3
    assert np.isnan(AWAY_TRUTH.xy_km()).all(axis=2).tolist() == (~AWAY_TRUTH.counted).tolist()
    assert repr(counts).startswith("Counts(3 people, up to 3 away")
    assert repr(AWAY_TRUTH).startswith("Trajectories(3 people, 67% away")


def test_people_are_the_largest_total_unless_given():
    counts = rk.Counts([[1, 2], [0, 1]], LOCATIONS, HOURLY)
    assert (counts.people, counts.away.tolist()) == (3, [0, 2])
    more = rk.Counts([[1, 2], [0, 1]], LOCATIONS, HOURLY, people=5)
    assert (more.people, more.away.tolist(), more.part(slice(1, 2)).people) == (5, [2, 4], 5)
    assert more != counts
    refuses(["`people` is 2", "3 people"], rk.Counts, [[1, 2]], LOCATIONS, HOURLY, 2)
    with pytest.raises(rk.errors.InvalidSetting, match=r"`people` is 2\.5"):
        rk.Counts([[1, 2]], LOCATIONS, HOURLY, people=2.5)


def test_observed_points_are_kept():
    part = AWAY_TRUTH.part(slice(0, 2))
    assert np.array_equal(np.asarray(part.observed)[0], [True, False])
    assert part != rk.Trajectories(part.cells, LOCATIONS, HOURLY)
    same = rk.Trajectories(AWAY_TRUTH.cells, LOCATIONS, HOURLY, observed=AWAY_TRUTH.observed)
    assert same == AWAY_TRUTH
    for observed, words in ((np.ones((3, 3), bool), ["step 1", "away"]), ([[1, 0, 0]], ["int64", "(1, 3)"])):
        refuses(words, rk.Trajectories, AWAY_TRUTH.cells, LOCATIONS, HOURLY, observed=observed)


def test_a_dataset_on_other_locations_keeps_who_is_away():
    public = rk.Locations([[9.0, 9.0], *LOCATIONS.xy_km], ["x", *LOCATIONS.ids])
    moved = rk.Dataset(AWAY_TRUTH.counts(), AWAY_TRUTH).with_locations(public)
    assert moved.people == 3
    assert moved.truth is not None
    assert moved.truth.cells.tolist() == [[1, -1, 2], [-1] * 3, [2, -1, -1]]
    assert np.array_equal(moved.truth.observed, AWAY_TRUTH.observed)
