"""What defences do, on numbers that can be checked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.small import truths

import rekindle as rk
from rekindle.defences import (
    CoarserSpace,
    CoarserTime,
    NothingLeft,
    Suppress,
)

row = rk.Locations(np.column_stack([np.arange(6) + 0.5, np.full(6, 0.5)]))
counts = rk.Counts([[0, 1, 2, 3, 7, 12], [1, 0, 3, 4, 8, 9]], row, rk.Calendar("2024-03-01", "6h"))


def values(release):
    return [[None if np.isnan(value) else value for value in line] for line in release.values.tolist()]


def test_coarser_space_on_a_lattice():
    release = CoarserSpace(km=2)(counts)
    assert values(release) == [[1, 5, 19], [1, 7, 17]]
    assert release.locations.ids == ("(0, 0)", "(0, 1)", "(0, 2)")
    assert release.locations.xy_km.tolist() == [[1, 1], [3, 1], [5, 1]]


def test_coarser_space_adds_what_is_known():
    assert values(CoarserSpace(km=2)(Suppress(below=3)(counts))) == [[None, 3, 19], [None, 7, 17]]


@pytest.mark.parametrize("cell", [0.1, 0.25, 0.3, 1.0, 1 / 3])
@pytest.mark.parametrize("factor", [2, 3, 5])
def test_coarser_space_never_splits_a_lattice_unevenly(cell, factor):
    side = factor * 4
    xy = np.array([(i, j) for j in range(side) for i in range(side)]) * cell + cell / 2 + 7.3
    merged, index = CoarserSpace(km=cell * factor).merge(rk.Locations(xy))
    assert len(merged) == 16
    assert set(np.bincount(index)) == {factor**2}
    assert np.array_equal(merged.distances_from(xy).argmin(axis=1), index)


@settings(max_examples=40, deadline=None)
@given(truth=truths(max_places=20))
def test_a_location_lies_nearest_to_its_cell(truth):
    try:
        merged, index = CoarserSpace(km=2.5).merge(truth.locations)
    except rk.errors.InvalidSetting:
        return
    distance = merged.distances_from(truth.locations.xy_km)
    assert np.allclose(distance.min(axis=1), distance[np.arange(len(index)), index])


def test_coarser_space_takes_two_sectors_of_a_mast_as_one_point():
    """Two locations at the same coordinates say nothing of the side of the cells."""
    xy = [[0.5, 0.5], [0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [3.5, 0.5]]
    merged, index = CoarserSpace(km=2).merge(rk.Locations(xy))
    assert index.tolist() == [0, 0, 0, 1, 1]
    assert merged.xy_km.tolist() == [[1, 1], [3, 1]]
    with pytest.raises(NothingLeft, match="merge all 2"):
        CoarserSpace(km=2).merge(rk.Locations([[0.5, 0.5], [0.5, 0.5]]))


def test_merged_locations_are_as_public_as_theirs():
    for public in (None, True, False):
        assert CoarserSpace(km=2).merge(row.declare_public(public))[0].public is public


def test_coarser_space_keeps_degrees():
    places = rk.Locations.from_lat_lng([[41.0, -8.0], [41.001, -8.0], [41.1, -8.0]])
    merged, index = CoarserSpace(km=1).merge(places)
    assert index.tolist() == [0, 0, 1]
    assert np.allclose(merged.lat_lng, [[41.0005, -8.0], [41.1, -8.0]])


def test_coarser_time_keeps_the_first_record():
    release = CoarserTime(step="12h")(counts)
    assert values(release) == [[0, 1, 2, 3, 7, 12]]
    assert release.calendar == rk.Calendar("2024-03-01", "12h", 1)


def test_coarser_time_keeps_a_last_step_that_is_short():
    ones = np.zeros((7, 6), int)
    ones[:, 0] = 1
    release = CoarserTime(step="3h")(rk.Counts(ones, row, rk.Calendar("2024-03-01 05:00", "1h")))
    assert release.calendar == rk.Calendar("2024-03-01 05:00", "3h", 3)


def test_those_who_are_away_stay_away_and_what_was_observed_is_kept():
    cells = np.array([[0, rk.AWAY, 3, 3], [rk.AWAY, 2, 2, rk.AWAY]])
    observed = np.array([[True, False, False, True], [False, True, True, False]])
    truth = rk.Trajectories(cells, rk.Locations([[x, 0.0] for x in range(4)]), rk.Calendar("2024-03-01", "1h"))
    truth = rk.Trajectories(cells, truth.locations, truth.calendar, ["a", "b"], observed)
    wider = CoarserSpace(km=2.0).coarsen(truth)
    assert wider.cells.tolist() == [[0, -1, 1, 1], [-1, 1, 1, -1]]
    assert np.array_equal(wider.observed, observed)
    # Of each longer step the first: who is away at it is away, even if counted later.
    longer = CoarserTime(step="2h").coarsen(truth)
    assert longer.cells.tolist() == [[0, 3], [-1, 2]]
    assert longer.observed.tolist() == [[True, False], [False, True]]
    drawn = rk.Sample(share=0.5, fixed_size=True, seed=0).coarsen(truth)
    row = truth.people_ids.index(drawn.people_ids[0])
    assert np.array_equal(drawn.cells[0], cells[row])
    assert np.array_equal(drawn.observed[0], observed[row])


def test_wider_cells_go_by_the_usual_distance_in_round_numbers():
    towers = rk.Locations([[0, 0], [0.02, 0], [0.998, 0], [0, 0.998], [0.998, 0.998], [1.996, 0]])
    assert CoarserSpace.wider(3, towers) == CoarserSpace(km=3.0)
    assert CoarserSpace.wider(2, row) == CoarserSpace(km=2.0)
    assert CoarserSpace.wider(3, rk.Locations([[0, 0]])) == CoarserSpace(km=3.0)
