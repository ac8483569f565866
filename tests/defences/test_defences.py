"""What each defence does, on numbers that can be checked by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.small import truths

import rekindle as rk
from rekindle.defences import (
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    NothingLeft,
    Round,
    Sample,
    Suppress,
    make_defence,
    parse_defence,
)
from rekindle.model import Release

row = rk.Locations(np.column_stack([np.arange(6) + 0.5, np.full(6, 0.5)]))
counts = rk.Counts([[0, 1, 2, 3, 7, 12], [1, 0, 3, 4, 8, 9]], row, rk.Calendar("2024-03-01", "6h"))


def values(release):
    return [[None if np.isnan(value) else value for value in line] for line in release.values.tolist()]


def test_suppress():
    assert values(Suppress(below=3)(counts)) == [[None, None, None, 3, 7, 12], [None, None, 3, 4, 8, 9]]
    assert values(Suppress(below=3, zeros=False)(counts)) == [[0, None, None, 3, 7, 12], [None, 0, 3, 4, 8, 9]]


def test_round_half_up():
    assert values(Round(to=5)(counts)) == [[0, 0, 0, 5, 5, 10], [0, 0, 5, 5, 10, 10]]
    assert values(Round(to=2)(counts)) == [[0, 2, 2, 4, 8, 12], [2, 0, 4, 4, 8, 10]]


def test_cap():
    assert values(Cap(at=4)(counts)) == [[0, 1, 2, 3, 4, 4], [1, 0, 3, 4, 4, 4]]


def test_withheld_stays_withheld():
    release = Suppress(below=3)(counts)
    for defence in (Round(to=5), Cap(at=4), Suppress(below=2)):
        assert np.array_equal(defence(release).withheld, release.withheld)


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
def test_a_place_lies_nearest_to_its_square(truth):
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


def test_sample_draws_people_with_their_names():
    cells = np.repeat(np.arange(6)[:, None], 4, axis=1)
    truth = rk.Trajectories(cells, row, rk.Calendar("2024-03-01", "6h"), list("abcdef"))
    drawn = Sample(share=0.5, fixed_size=True, seed=3).coarsen(truth)
    assert drawn.people == 3
    assert [list("abcdef")[person] for person in drawn.cells[:, 0]] == list(drawn.people_ids)
    assert Sample(share=0.5).scale == 2.0
    assert Chain([Sample(share=0.5), Cap(at=3)]).scale == 2.0
    assert Sample(share=0.5, fixed_size=True, seed=3)(truth).values.sum() == 3 * 4


def test_sample_draws_each_person_for_themselves():
    truth = rk.Trajectories(np.zeros((2000, 1), int), row, rk.Calendar("2024-03-01", "6h"))
    sizes = [Sample(share=0.3, seed=seed).coarsen(truth).people for seed in range(60)]
    assert np.mean(sizes) == pytest.approx(600, abs=5 * np.sqrt(2000 * 0.21 / 60))
    assert np.std(sizes) == pytest.approx(np.sqrt(2000 * 0.21), rel=0.4)
    assert Sample(share=1.0).coarsen(truth).people == 2000


def test_sample_for_publication_cannot_be_drawn_again():
    assert Sample(share=0.5).for_publication().seed != Sample(share=0.5).for_publication().seed
    assert Chain([Sample(share=0.5), Cap(at=3)]).for_publication().defences[0].seed > 2**32


def test_defences_that_would_leave_nothing():
    truth = rk.Trajectories([[0, 0], [1, 1]], row, rk.Calendar("2024-03-01", "6h"))
    for defence, problem in (
        (Suppress(below=13), "withhold all 12 numbers: the largest is 12"),
        (Round(to=50), "turn every number into 0: the largest is 12"),
        (CoarserSpace(km=10), "merge all 6 places into one"),
    ):
        with pytest.raises(NothingLeft, match=problem):
            defence(counts)
    with pytest.raises(NothingLeft, match="none of the 2 people"):
        Sample(share=0.001)(truth)
    with pytest.raises(NothingLeft, match="none of the 2 people"):
        Sample(share=0.1, fixed_size=True)(truth)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Suppress(below=0), "`below` is 0"),
        (lambda: Suppress(below="10"), "is '10'"),
        (lambda: Round(to=-5), "`to` is -5"),
        (lambda: Round(to=float("nan")), "is nan"),
        (lambda: Cap(at=float("inf")), "`at` is inf"),
        (lambda: CoarserSpace(km=True), "`km` is True"),
        (lambda: CoarserSpace(km=0.5)(counts), "merges none of the 6 places"),
        (lambda: CoarserTime(step="7h"), "divide 24 hours"),
        (lambda: CoarserTime(step="8h")(counts), "multiple"),
        (lambda: CoarserTime(step="1h")(counts), "multiple"),
        (lambda: Sample(share=0), "`share` is 0"),
        (lambda: Sample(share=1.5), "`share` is 1.5"),
        (lambda: Sample(share=0.5, seed=-1), "`seed` is -1"),
        (lambda: make_defence("blur", {}), "no defence 'blur'; choose cap"),
        (lambda: make_defence("round", {"base": 5}), "no setting 'base'; it has to"),
        (lambda: make_defence("round", {}), "does not take these settings"),
        (lambda: parse_defence("round:5"), "'5' of the defence 'round' is no setting"),
        (lambda: parse_defence("Round!"), "'Round!' is no defence"),
        (lambda: parse_defence(""), "is no defence"),
    ],
)
def test_refuses(make, problem):
    with pytest.raises((rk.errors.InvalidSetting, rk.errors.InvalidData), match=problem):
        make()


def test_parse():
    assert parse_defence("suppress:below=10") == Suppress(below=10)
    assert parse_defence(" suppress:below=10, zeros=false + round:to=2.5") == Chain(
        [Suppress(below=10, zeros=False), Round(to=2.5)]
    )
    assert parse_defence("coarser-time:step=1h") == CoarserTime(step="1h")
    assert parse_defence("opensafely").defences == (Suppress(below=8), Round(to=5))
    assert parse_defence("none") == Chain()
    assert parse_defence("none")(counts) == Release.of(counts)
