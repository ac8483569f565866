"""The recipe for trajectories of different years."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from tests.sources.raw import (
    write_geolife,
    write_plt,
)

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.prepare import Area, Grid, prepare_geolife
from rekindle.sources import read_geolife
from rekindle.sources.engine import collect


def walk(root, person, start, hours, lat=39.95):
    """A record every hour."""
    write_plt(root, person, [(start + timedelta(hours=i), lat, 116.35) for i in range(hours)])


def test_geolife_by_hand(tmp_path):
    """Two people who are seen for nine and eight days; the clock is kept or lost."""
    first = datetime(2008, 10, 6, 1, 30)  # 09:30 in Beijing
    for day in range(9):
        walk(tmp_path, "000", first + timedelta(days=day), 10)
    for day in range(8):
        walk(tmp_path, "001", datetime(2009, 4, 6, 3, 10) + timedelta(days=day), 10, lat=40.05)
    walk(tmp_path, "002", first, 10)  # a single trajectory
    walk(tmp_path, "003", first, 10)  # less than seven days
    walk(tmp_path, "003", first + timedelta(days=1), 10)
    for day in range(9):
        walk(tmp_path, "004", first + timedelta(days=day), 10, lat=41.95)  # outside
    points = read_geolife(tmp_path)
    found = prepare_geolife(points, step="1h")
    assert found.truth.people_ids == ("000", "001")
    # The second ends first: seven days and nine hours after its first record.
    assert found.truth.steps == 7 * 24 + 9 + 1
    assert found.truth.calendar.start == datetime(2000, 1, 1)
    assert np.flatnonzero(found.observed[0])[:11].tolist() == [*range(10), 24]
    kept = prepare_geolife(points, step="1h", align="day")
    assert np.flatnonzero(kept.observed[0])[0] == 9  # 09:30
    assert np.flatnonzero(kept.observed[1])[0] == 11  # 11:10
    assert kept.truth.steps == 7 * 24 + 11 + 9 + 1
    alone = prepare_geolife(points, step="1h", area=Area(41.95, 116.35, 0.2))
    assert alone.truth.people_ids == ("004",)
    with pytest.raises(InvalidData, match=r"Nobody is left.*`min_days`"):
        prepare_geolife(points, step="1h", min_days=12)


def test_aligned_by_day_everyone_keeps_the_clock(tmp_path):
    """Although gaps of days are closed, every record stays at its time of the day."""
    points = read_geolife(write_geolife(tmp_path))
    found = prepare_geolife(points, step="10min", min_days=4, align="day")
    original = collect(points.frame).with_columns(of_day=(pl.col("time") + 8 * 3_600) // 600 % 144)
    moved = 0
    for person, observed in zip(found.truth.people_ids, found.observed, strict=True):
        own = set(original.filter(pl.col("person") == person)["of_day"])
        assert set(np.flatnonzero(observed) % 144) <= own
        moved += len(own) < 144
    assert moved == found.truth.people > 1
    with pytest.raises(InvalidSetting, match="loses the clock"):
        prepare_geolife(points, align="day", merging="published")


def test_geolife_window_and_settings(tmp_path):
    points = read_geolife(write_geolife(tmp_path))
    everyone = prepare_geolife(points, step="10min", min_days=3)
    early = prepare_geolife(points, step="10min", min_days=3, start=datetime(2008, 1, 1), days=365)
    assert early.truth.people < everyone.truth.people
    for wrong in ({"merging": "x"}, {"align": "week"}, {"box_over": "x"}, {"months": 0}, {"merge_km": -1.0}):
        with pytest.raises(InvalidSetting, match=next(iter(wrong))):
            prepare_geolife(points, **wrong)
    with pytest.raises(InvalidSetting, match="radius"):
        Area(1.0, 2.0, -1.0)
    with pytest.raises(InvalidSetting, match="engine"):
        prepare_geolife(points, engine="abacus")


def test_the_box_looks_at_whole_or_cut_trajectories(tmp_path):
    first = datetime(2008, 10, 6)
    for day in range(12):
        walk(tmp_path, "000", first + timedelta(days=day), 10, lat=39.95 if day < 8 else 39.95 + (day - 7) * 0.02)
    for day in range(8):
        walk(tmp_path, "001", first + timedelta(days=day), 10)
    points = read_geolife(tmp_path)
    whole, cut = (
        prepare_geolife(points, step="1h", box_over=over, places=Grid(box=(0, 100))) for over in ("whole", "cut")
    )
    assert whole.truth.steps == cut.truth.steps
    assert len(whole.truth.locations) == 9  # 0.08 degrees are 8.9 km
    assert len(cut.truth.locations) == 1
