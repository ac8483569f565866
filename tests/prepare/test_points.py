"""Any points, on the clock they were recorded."""

from datetime import datetime

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.prepare.made import table
from tests.sources.raw import (
    some_points,
    write_cabs,
)

from rekindle.prepare import Grid, prepare_points
from rekindle.sources import points_from_frame, read_cabspotting


def test_points_by_hand():
    rows = [("a", 9, 1.0, 1.0), ("a", 5, 2.0, 2.0), ("a", 31, 3.0, 3.0), ("b", 10, 4.0, 4.0)]
    places = Grid(cell_km=50, box=(0, 100))
    found = prepare_points(points_from_frame(table(*rows)), step="10min", max_gap=None, places=places)
    # a: the first record of a step counts; the last known fills; b: its first record counts before it, too.
    assert found.positions[:, :, 0].tolist() == [[2, 2, 2, 3], [4, 4, 4, 4]]
    assert found.observed.tolist() == [[True, False, False, True], [False, True, False, False]]
    assert found.truth.people_ids == ("a", "b")
    assert found.truth.calendar.to_json() == {"start": "2020-03-02 00:00:00", "step": "10min", "steps": 4}
    assert found.filled.tolist() == [0.5, 0.75]
    assert found.info["points"] == {"observed": 0.375, "filled": 0.625, "away": 0.0}
    assert found.truth.observed.tolist() == found.observed.tolist()
    assert found.info["preparation"]["max_gap"] is None


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2_000), st.floats(48, 49), st.floats(2, 3)),
        min_size=1,
        max_size=60,
    )
)
def test_finer_steps_joined_again_are_the_coarser_steps(rows):
    """The records of the finer steps, two and two, are those of the coarser steps, and filled they are the same."""
    points = points_from_frame(table(*rows))
    fine, coarse = (
        prepare_points(points, step=step, max_gap=None, places=Grid(cell_km=20)) for step in ("10min", "20min")
    )
    for own, seen, expected, expected_seen in zip(
        fine.positions, fine.observed, coarse.positions, coarse.observed, strict=True
    ):
        steps = np.flatnonzero(seen)
        joined, first = np.unique(steps // 2, return_index=True)
        assert np.array_equal(joined, np.flatnonzero(expected_seen))
        before = np.maximum(np.searchsorted(joined, np.arange(coarse.truth.steps), side="right") - 1, 0)
        assert np.array_equal(own[steps[first]][before], expected)


def test_the_order_of_rows_means_nothing():
    rows = some_points()
    ahead, back = (prepare_points(points_from_frame(frame)) for frame in (rows, rows.reverse()))
    assert ahead.truth == back.truth
    assert ahead.info == back.info


def test_cabs(tmp_path):
    points = read_cabspotting(write_cabs(tmp_path))
    found = prepare_points(points, start=datetime(2008, 5, 18), days=2, min_coverage=0.2)
    assert found.truth.steps == 288
    assert "cab0" not in found.truth.people_ids
    assert found.truth.people == 3
