"""The recipe for taxi trips."""

from datetime import datetime

import numpy as np
import pytest
from tests.sources.raw import (
    porto_row,
    some_points,
    some_porto_rows,
    write_porto,
)

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.prepare import Grid, prepare_geolife, prepare_porto
from rekindle.sources import points_from_frame, read_porto

DAY = 86_400


def test_porto_by_hand(tmp_path):
    """Six days in UTC; 10 trips begin on days 1 and 2 (from 0), more than on any two other days in a row."""
    start = 1_372_636_800  # 2013-07-01 00:00 UTC
    here, there = (41.15, -8.61), (41.25, -8.50)
    rows = [porto_row(1, start + 10, [here]), porto_row(2, start + 20, [here])]
    rows += [porto_row(1, start + DAY + 600 * i, [here] * 41) for i in range(4)]
    rows += [porto_row(2, start + DAY + 50_000 + i, [there]) for i in range(3)]
    rows += [porto_row(1, start + 2 * DAY + 1_300, [there, here])]
    rows += [porto_row(3, start + 2 * DAY + i, [there]) for i in range(2)]
    rows += [porto_row(3, start + 5 * DAY + i, [here]) for i in range(8)]
    points = read_porto(write_porto(tmp_path / "train.csv", rows), timezone="UTC")
    found = prepare_porto(points, days=2, places=Grid(cell_km=2, box=(0, 100)))
    assert found.truth.calendar.start == datetime(2013, 7, 2)
    assert found.truth.steps == 2 * 144 + 1
    # Trips in the period: 5 of taxi 1, 3 of taxi 2, 2 of taxi 3; the average is 3.33.
    assert found.truth.people_ids == ("1",)
    assert np.flatnonzero(found.observed[0]).tolist() == [0, 1, 2, 3, 4, 146]
    assert found.positions[0, 4, 0] == 41.15  # 41 points are 10 minutes: the last lies in the next step
    assert found.positions[0, 146].tolist() == list(there)
    everyone = prepare_porto(points, days=2, busy_only=False)
    assert everyone.truth.people_ids == ("1", "2", "3")
    later = prepare_porto(points, days=1, start=datetime(2013, 7, 6), busy_only=False)
    assert (later.truth.people_ids, later.truth.steps) == (("3",), 145)
    with pytest.raises(InvalidSetting, match="midnight"):
        prepare_porto(points, days=1, start=datetime(2013, 7, 6, 1))


def test_nobody_above_average(tmp_path):
    points = read_porto(write_porto(tmp_path / "train.csv", [porto_row(1, 1_372_636_800, [(41.15, -8.61)])]))
    with pytest.raises(InvalidData, match="`busy_only=False`"):
        prepare_porto(points, days=1)
    assert prepare_porto(points, days=1, busy_only=False).truth.people == 1


def test_recipes_that_need_trajectories():
    points = points_from_frame(some_points())
    for prepare in (prepare_geolife, prepare_porto):
        with pytest.raises(InvalidData, match="no trajectory"):
            prepare(points)


def test_thirty_days_are_4321_steps(tmp_path):
    points = read_porto(write_porto(tmp_path / "train.csv", some_porto_rows()))
    assert prepare_porto(points).truth.steps == 4_321
