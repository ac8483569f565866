"""The window of time, and the clock on the wall."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from tests.prepare.made import T, table
from tests.sources.raw import (
    some_points,
)

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.prepare import Grid, prepare_points
from rekindle.sources import points_from_frame


@pytest.mark.parametrize("fill", ["last", "nearest", "linear"])
def test_a_gap_may_reach_over_the_ends_of_the_window(fill):
    hour = 60
    rows = [("a", 23 * hour, 1.0, 0.0), ("a", 26 * hour, 2.0, 0.0), ("a", 48 * hour + 20, 3.0, 0.0)]
    rows += [("b", 23 * hour, 1.0, 1.0)]  # has no record in the window
    points = points_from_frame(table(*rows, ("a", 50 * hour, 9.0, 9.0), ("a", 12 * hour, 9.0, 9.0)))
    window = {"start": T + timedelta(days=1), "days": 1, "step": "1h", "fill": fill}
    found = prepare_points(points, max_gap="3h", places=Grid(box=(0, 100)), **window)
    assert found.truth.people_ids == ("a",)
    assert np.flatnonzero(found.observed[0]).tolist() == [2]
    known = found.positions[0, :, 0]
    if fill == "last":
        assert known[:6].tolist() == [1, 1, 2, 2, 2, 2]
        assert np.isnan(known[6:]).all()
    elif fill == "nearest":
        assert known[:4].tolist() == [1, 2, 2, 2]
        assert np.isnan(known[4:-1]).all()
        assert known[-1] == 3
    else:
        assert known[:3] == pytest.approx([4 / 3, 5 / 3, 2])
        assert np.isnan(known[3:]).all()
    carried = prepare_points(points, max_gap=None, places=Grid(box=(0, 100)), **window)
    assert (carried.positions[0, :, 0] == 2).all()
    with pytest.raises(InvalidData, match="There are no points"):
        prepare_points(points, start=T + timedelta(hours=51), step="1h")


def test_window_and_coverage():
    points = points_from_frame(some_points())
    found = prepare_points(points, step="10min", start=datetime(2020, 3, 3), days=1)
    assert found.truth.steps == 144
    assert found.truth.calendar.start == datetime(2020, 3, 3)
    best = found.observed.mean(axis=1).max()
    selected = prepare_points(points, step="10min", start=datetime(2020, 3, 3), days=1, min_coverage=best)
    assert 1 <= selected.truth.people < found.truth.people
    with pytest.raises(InvalidData, match=r"Nobody is left.*`min_coverage`"):
        prepare_points(points, min_coverage=1.0)
    with pytest.raises(InvalidData, match="no record lies in the time window"):
        prepare_points(points, start=datetime(2021, 1, 1), days=1)
    with pytest.raises(InvalidSetting, match="`days` is set, but not `start`"):
        prepare_points(points, days=3)
    with pytest.raises(InvalidSetting, match=r"`fill` is 'spline'.*last, nearest, linear"):
        prepare_points(points, fill="spline")
    with pytest.raises(InvalidSetting, match="from 0 to 1"):
        prepare_points(points, min_coverage=70)
    with pytest.raises(InvalidSetting, match="not a step"):
        prepare_points(points, start=datetime(2020, 3, 3, 0, 5), days=1)


def test_the_clock_is_that_on_the_wall_through_a_change():
    # Clocks in Paris went forward on 2020-03-29. Noon UTC is 13:00 before and 14:00 after.
    times = [datetime(2020, 3, day, 12) for day in (28, 29, 30)]
    frame = pl.DataFrame({"person": "a", "time": times, "lat": [1.0, 2.0, 3.0], "lng": 0.0})
    found = prepare_points(points_from_frame(frame, utc=True, timezone="Europe/Paris"), step="1h")
    assert found.truth.calendar.start == datetime(2020, 3, 28)
    assert np.flatnonzero(found.observed[0]).tolist() == [13, 24 + 14, 48 + 14]
    assert found.info["preparation"]["clock_changes"] == ["2020-03-29 02:00:00 becomes 03:00"]
    later = prepare_points(points_from_frame(frame, utc=True, timezone="Europe/Paris"), start=datetime(2020, 3, 30))
    assert "clock_changes" not in later.info["preparation"]
    with pytest.raises(InvalidSetting, match="'Paris'"):
        points_from_frame(frame, utc=True, timezone="Paris")


def test_local_times_and_instants_of_the_same_clock_give_the_same_steps():
    """Without a zone, 08:00 is 08:00; with one, too, whatever the offset of the day, on any side of a change."""
    zone = ZoneInfo("Europe/Oslo")
    local = [datetime(2024, 3, 25, 8) + timedelta(days=day, hours=3 * day) for day in range(10)]
    for start, days in ((None, None), (datetime(2024, 3, 30), 4)):
        found = [
            prepare_points(
                points_from_frame(pl.DataFrame({"person": "a", "time": times, "lat": 1.0, "lng": 2.0}), **settings),
                step="1h",
                start=start,
                days=days,
            )
            for times, settings in (
                (local, {}),
                ([time.replace(tzinfo=zone).isoformat() for time in local], {"timezone": "Europe/Oslo"}),
            )
        ]
        assert found[0].truth == found[1].truth
        assert np.array_equal(found[0].observed, found[1].observed)


def test_an_hour_that_comes_twice():
    # Clocks in Oslo went back at 01:00 UTC. The first record of a step is the first by time, not by clock.
    times = ["2024-10-27T02:40+02:00", "2024-10-27T02:10+01:00", "2024-10-27T04:00+01:00"]
    frame = pl.DataFrame({"person": "a", "time": times, "lat": [1.0, 2.0, 3.0], "lng": 0.0})
    found = prepare_points(points_from_frame(frame, timezone="Europe/Oslo"), step="1h")
    assert np.flatnonzero(found.observed[0]).tolist() == [2, 4]
    assert found.positions[0, [2, 4], 0].tolist() == [1.0, 3.0]
    assert found.info["preparation"]["clock_changes"] == ["2024-10-27 03:00:00 becomes 02:00"]
    assert found.truth.calendar.number_of_days == 1


def test_points_of_all_centuries_are_no_calendar():
    frame = pl.DataFrame({"person": "a", "time": ["2024-01-01T00:00Z", "9999-12-31T23:59Z"], "lat": 1.0, "lng": 2.0})
    with pytest.raises(InvalidData, match=r"between 2024-01-01 00:00:00 and 9999-12-31.*`start`"):
        prepare_points(points_from_frame(frame, timezone="Europe/Oslo"))
