"""The paper's rules, each on a case computed by hand."""

from datetime import UTC, datetime

import narwhals as nw
import polars as pl
import pytest

from rekindle.prepare import select
from rekindle.sources.engine import collect


def lazy(**columns):
    return nw.from_native(pl.DataFrame(columns).lazy())


def second(*date):
    return int(datetime(*date, tzinfo=UTC).timestamp())


def test_inside_circle():
    frame = lazy(lat=[40.0, 40.5, 40.3], lng=[116.0, 116.0, 116.4])
    assert collect(select.inside_circle(frame, (40.0, 116.0), 0.45))["lat"].to_list() == [40.0]
    assert collect(select.inside_circle(frame, (40.0, 116.0), 0.5000001))["lat"].to_list() == [40.0, 40.5, 40.3]


def test_several_trajectories():
    frame = lazy(person=["a", "a", "b", "b", "c"], trajectory=[0, 3, 5, 5, 0])
    assert collect(select.several_trajectories(frame, 2))["person"].to_list() == ["a", "a"]
    assert collect(select.several_trajectories(frame, 1)).height == 5


def test_active_months():
    # October: 1 h + 1 h; November: 3 h, which begins in November and ends in December; December: 90 min.
    rows = [
        (0, second(2008, 10, 1, 0)), (0, second(2008, 10, 1, 1)),
        (1, second(2008, 10, 9, 0)), (1, second(2008, 10, 9, 1)),
        (2, second(2008, 11, 30, 22)), (2, second(2008, 12, 1, 1)),
        (3, second(2008, 12, 5, 0)), (3, second(2008, 12, 5, 1, 30)),
    ]  # fmt: skip
    frame = lazy(person=["a"] * 8, trajectory=[row[0] for row in rows], time=[row[1] for row in rows])
    assert sorted(collect(select.active_months(frame, 1))["time"]) == [rows[4][1]]
    assert sorted(collect(select.active_months(frame, 2))["time"]) == [row[1] for row in rows[:5]]
    assert collect(select.active_months(frame, 3)).height == 8


def test_of_equal_months_the_earlier_is_kept():
    times = [second(2008, 11, 1), second(2008, 11, 1, 1), second(2008, 10, 1), second(2008, 10, 1, 1)]
    frame = lazy(person=["a"] * 4, trajectory=[0, 0, 1, 1], time=times)
    assert sorted(collect(select.active_months(frame, 1))["time"]) == sorted(times[2:])


@pytest.mark.parametrize(("published", "expected"), [(True, [0, 5, 26, 77, 49]), (False, [0, 5, 26, 29, 46])])
def test_move_closer(published, expected):
    """Steps of an hour. Gaps: 5 to 74 are 69 h, closed to 21 h; 74 to 77 stay; 77 to 142 are 65 h, closed to 17 h.

    As published, the trajectory at 77 stays where it was although the one before was moved by 48 h, and the last one
    is moved by its own 48 h and by the 45 h (69 h down to 24 h) of the first move. Consistently, all follow.
    """
    frame = lazy(person=["a"] * 5, trajectory=[0, 0, 1, 2, 3], step=[0, 5, 74, 77, 142])
    moved = collect(select.move_closer(frame, day=24, gap=24, published=published)).sort("trajectory", "step")
    assert moved["step"].to_list() == expected


def test_a_gap_of_exactly_a_day_stays():
    frame = lazy(person=["a", "a", "b"], trajectory=[0, 1, 0], step=[0, 24, 500])
    moved = collect(select.move_closer(frame, day=24, gap=24, published=False)).sort("person", "trajectory")
    assert moved["step"].to_list() == [0, 24, 500]


def test_merge_pieces():
    # One degree of latitude is 111.2 km: 0.05 degrees are 5.6 km, 0.07 are 7.8 km.
    frame = lazy(
        person=["a"] * 6,
        trajectory=[0, 1, 1, 2, 3, 3],
        step=[0, 36, 37, 74, 75, 76],
        lat=[40.0, 40.05, 40.12, 40.12, 40.12, 40.05],
        lng=[116.0] * 6,
    )
    merge = {"gap": 36, "distance_km": 7.0, "centre_lat": 40.0}
    pieces = collect(select.merge_pieces(frame, published=False, **merge)).sort("step")["piece"].to_list()
    assert pieces == [1, 1, 2, 3, 3, 4]  # too far; too late; too far
    named = collect(select.merge_pieces(frame, published=True, **merge)).sort("step")["piece"].to_list()
    assert named == [0, 0, 1, 2, 2, 3]


def test_as_published_pieces_that_begin_in_the_same_trajectory_are_one():
    frame = lazy(person=["a"] * 3, trajectory=[0] * 3, step=[0, 1, 2], lat=[40.0, 41.0, 40.0], lng=[116.0] * 3)
    merge = {"gap": 36, "distance_km": 7.0, "centre_lat": 40.0}
    assert collect(select.merge_pieces(frame, published=True, **merge))["piece"].to_list() == [0, 0, 0]
    assert sorted(collect(select.merge_pieces(frame, published=False, **merge))["piece"]) == [1, 2, 3]


def test_longest_pieces():
    frame = lazy(
        person=["a"] * 5 + ["b"] * 2 + ["c"] * 4,
        piece=[1, 1, 2, 2, 2, 1, 1, 1, 1, 2, 2],
        step=[0, 7, 10, 15, 18, 0, 6, 3, 10, 20, 27],
    )
    kept = collect(select.longest_pieces(frame, at_least=7)).sort("person", "step")
    assert kept.rows() == [("a", 10, 10), ("a", 15, 10), ("a", 18, 10), ("c", 3, 3), ("c", 10, 3)]


def test_above_average():
    trips = lazy(person=["a"] * 5 + ["b"] * 3 + ["c"])  # 3 on average: b has no more than that
    assert collect(select.above_average(trips))["person"].to_list() == ["a"]


def test_first_of_each_does_not_hang_on_the_order_of_rows():
    rows = [("a", 0, 5, 2.0), ("a", 0, 5, 1.0), ("a", 0, 9, 0.0), ("b", 0, 7, 3.0)]
    for order in (rows, rows[::-1]):
        frame = nw.from_native(pl.DataFrame(order, schema=["person", "step", "time", "lat"], orient="row").lazy())
        found = collect(select.first_of_each(frame, ["person", "step"], ["time", "lat"])).sort("person")
        assert found.rows() == [("a", 0, 5, 1.0), ("b", 0, 7, 3.0)]
