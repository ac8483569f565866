"""Corners of the evaluation that the other tests leave out, each worked out by hand."""

import dataclasses

import numba
import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.errors import InvalidData
from rekindle.evaluation import (
    METRICS,
    UTILITIES,
    Spread,
    deal_at_random,
    distinct_sets,
    evaluate,
    implied_flows,
    map_people,
    mapping,
    mapping_kernel,
    reference_scores,
    stay_if_possible,
    top_places,
    uniqueness,
    utility,
)
from rekindle.evaluation import exposure as exposures
from rekindle.evaluation.confidence import assess_confidence
from rekindle.evaluation.exposure import agreement, day_steps, expose, night_steps, usual_place
from rekindle.evaluation.mapping_kernel import Errors, _block_sums, _Bounded, _group
from rekindle.evaluation.usefulness import read_at
from rekindle.model import Release


def line(*rows, start="2024-03-01", step="1h", places=5):
    """People on a line of places, 1 km apart; 1 March 2024 is a Friday."""
    xy = [[float(x), 0.0] for x in range(places)]
    return rk.Trajectories(np.array(rows), rk.Locations(xy), rk.Calendar(start, step))


def test_an_evaluation_by_hand():
    truth = line([0, 0, 1, 1], [4, 4, 4, 4])
    found = evaluate(line([4, 4, 4, 3], [0, 1, 1, 1]), truth)
    assert found.per_person.matched.tolist() == [1, 0]
    assert found.per_person.accuracy.tolist() == [0.75, 0.75]
    assert found.per_person.error_km.tolist() == [0.25, 0.25]
    assert found.per_person.levenshtein_accuracy.tolist() == [0.75, 0.75]
    assert (found.accuracy, found.mean_error_km, found.recovery_error_km) == (0.75, 0.25, 2.0)
    assert found.mapping_gap == 0
    values = found.to_json()
    assert {metric.name for metric in METRICS} < set(values)
    assert (values["accuracy"], values["mapping"]) == (0.75, "optimal")
    assert values["uniqueness"] == {str(k): share for k, share in found.uniqueness.items()}
    assert list(found.uniqueness) == [1, 2, 3, 4, 5]


def test_a_shift_in_time_costs_two_edits():
    found = evaluate(line([0, 1, 2, 3, 4, 4]), line([0, 0, 1, 2, 3, 4]))
    assert found.accuracy == pytest.approx(2 / 6)
    assert found.levenshtein_accuracy == pytest.approx(1 - 2 / 6)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (line([0, 1], places=4), "other locations"),
        (line([0, 1], start="2024-03-02"), "2024-03-02"),
        (line([0, 1], [0, 1]), "1 people, the truth 2"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, words):
    with pytest.raises(InvalidData, match=words):
        evaluate(line([0, 1]), other)


def test_no_steps_cannot_be_compared():
    none = line([0, 1]).part(slice(0, 0))
    with pytest.raises(InvalidData, match="no steps"):
        evaluate(none, none)
    with pytest.raises(InvalidData, match="no steps"):
        expose(none, none)


def test_a_spread_over_seeds():
    assert Spread.of([1.0, 3.0]) == Spread(2.0, pytest.approx(2**0.5), (1.0, 3.0))
    assert Spread.of([1.5]) == Spread(1.5, 0.0, (1.5,))
    assert str(Spread.of([0.25, 0.25])) == "0.250 ± 0.000"


def test_top_places_by_hand(monkeypatch):
    found = line([3, 3, 1, 1, 2], [0, 0, 0, 0, 4], [4, 0, 0, 0, 0])
    expected = [[1, 3, 2, -1, -1, -1], [0, 4, -1, -1, -1, -1], [0, 4, -1, -1, -1, -1]]
    for block in (1 << 24, 1, 7):
        monkeypatch.setitem(top_places.__globals__, "_BLOCK_CELLS", block)
        assert top_places(found, 6).tolist() == expected
        assert top_places(found, 1).tolist() == [[1], [0], [0]]
    assert uniqueness(found, 1) == uniqueness(found, 2) == pytest.approx(1 / 3)
    assert distinct_sets(found, 1) == distinct_sets(found, 2) == pytest.approx(2 / 3)


def test_chance_and_the_naive_attack_meet_the_counts_and_the_naive_one_moves_no_more_than_it_must():
    counts = random_truth(np.random.default_rng(0), people=30, places=6, steps=20, stay=0.7).counts()
    for attack in (deal_at_random, stay_if_possible):
        one, two, other = attack(counts, seed=1), attack(counts, seed=1), attack(counts, seed=2)
        assert one.counts() == counts
        assert one == two
        assert one != other
    moves = (np.diff(one.cells, axis=1) != 0).sum(axis=0)
    change = np.diff(counts.values.astype(int), axis=0)
    assert moves.tolist() == np.maximum(change, 0).sum(axis=1).tolist()
    assert len({tuple(row) for row in deal_at_random(counts).cells[:, :2].tolist()}) > 6


def test_an_exposure_by_hand():
    hours = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0]
    truth = line(hours, [4] * 24)
    found = expose(line([4] * 24, [0] * 6 + [1] * 3 + [3] * 8 + [1] * 3 + [0] * 4), truth)
    assert found.matched.tolist() == [1, 0]
    assert found.accuracy.tolist() == [pytest.approx(16 / 24), 1.0]
    assert found.error_km.tolist() == [pytest.approx(8 / 24), 0.0]
    assert found.home.tolist() == [1.0, 1.0]
    assert found.work.tolist() == [0.0, 1.0]
    assert found.by_hour.tolist() == [1.0] * 9 + [0.5] * 8 + [1.0] * 7
    assert found.by_place.tolist() == pytest.approx([1.0, 1.0, 0.0, np.nan, 1.0], nan_ok=True)
    assert (found.people_recovered, found.weight) == (2, 1.0)
    assert found.mean_accuracy == pytest.approx(20 / 24)
    assert found.reidentified.shape == (2, 5)
    assert found.reidentified[1].tolist() == [1.0] * 5
    assert set(found.arrays()) == {field.name for field in dataclasses.fields(found)}


def test_other_numbers_of_people():
    truth = line([0] * 4, [2] * 4)
    more = expose(line([0] * 4, [2] * 4, [4] * 4), truth)
    assert more.matched.tolist() == [0, 1]
    assert more.weight == pytest.approx(2 / 3)
    assert more.mean_accuracy == pytest.approx(2 / 3)
    fewer = expose(line([2, 2, 2, 1]), truth)
    assert fewer.matched.tolist() == [-1, 0]
    assert fewer.accuracy.tolist() == [0.0, 0.75]
    assert fewer.error_km.tolist() == pytest.approx([np.nan, 0.25], nan_ok=True)
    assert fewer.weight == 1
    assert np.isnan(fewer.work).all()
    assert fewer.home.tolist() == [0.0, 1.0]
    assert agreement(truth, line([0, 0, 0, 1])) == pytest.approx(3 / 8)
    assert agreement(truth, truth) == 1


def test_very_many_people_of_unequal_number_are_matched_greedily(monkeypatch):
    asked = []
    usual = exposures.map_people
    monkeypatch.setattr(exposures, "map_people", lambda *given, method: asked.append(method) or usual(*given))
    agreement(line([0], [1]), line([0]))
    monkeypatch.setattr(exposures, "_MOST_UNEQUAL", 1)
    agreement(line([0], [1]), line([0]))
    agreement(line([0], [1]), line([0], [1]))
    assert asked == ["optimal", "greedy", "optimal"]


def test_which_steps_are_night_and_work():
    friday = rk.Calendar("2024-03-01", "1h", 24)
    assert np.flatnonzero(night_steps(friday)).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.flatnonzero(day_steps(friday)).tolist() == list(range(9, 17))
    three = rk.Calendar("2024-03-01", "1h", 72)
    assert np.flatnonzero(day_steps(three)).tolist() == list(range(9, 17))  # Friday, not the weekend
    saturday = rk.Calendar("2024-03-02", "1h", 24)
    assert np.flatnonzero(day_steps(saturday)).tolist() == list(range(9, 17))
    assert usual_place(line([1, 3, 3, 1], [4, 2, 2, 2]), np.array([True, True, True, True])).tolist() == [1, 2]


def test_points_are_looked_up_for_at_most_so_many(monkeypatch):
    monkeypatch.setattr(exposures, "_MOST_LOOKED_UP", 3)
    truth = line(*([place, place] for place in range(5)))
    found = exposures.reidentify(truth, truth, np.arange(5), draws=2)
    assert found.shape == (5, 2)
    assert np.flatnonzero(~np.isnan(found[:, 0])).tolist() == [0, 2, 4]
    assert (found[[0, 2, 4]] == 1).all()
    assert (exposures.reidentify(truth, truth, np.array([1, 0, 2, 3, 4]), draws=2)[0] == 0).all()
    twins = line([0, 0], [0, 0])
    assert (exposures.reidentify(twins, twins, np.arange(2)) == 0).all()


def test_many_points_go_to_the_kernels_and_give_the_same(monkeypatch):
    one, two = (random_truth(np.random.default_rng(seed), people=9, places=6, steps=12) for seed in (1, 2))
    plain = {method: map_people(one, two, method=method) for method in ("optimal", "greedy")}
    asked, usual = [], mapping._plain_errors
    monkeypatch.setattr(mapping, "_plain_errors", lambda *given: asked.append(given) or usual(*given))
    monkeypatch.setattr(mapping, "PLAIN_UP_TO", 9 * 9 * 12)
    map_people(one, two)
    assert len(asked) == 1
    monkeypatch.setattr(mapping, "PLAIN_UP_TO", 9 * 9 * 12 - 1)
    monkeypatch.setattr(mapping, "ROWS_AT_ONCE", 2)
    for method, expected in plain.items():
        found = map_people(one, two, method=method)
        assert found.matched.tolist() == expected.matched.tolist()
        assert found.total_error_km == pytest.approx(expected.total_error_km)
        assert found.gap == 0
    assert len(asked) == 1


def test_settings_are_by_keyword_and_results_stay_as_they_are():
    truth = line([0, 1], [1, 1])
    for attack in (deal_at_random, stay_if_possible):
        with pytest.raises(TypeError, match="positional"):
            attack(truth.counts(), 1)
    results = [evaluate(truth, truth), reference_scores(truth, seeds=1), utility(truth.counts(), truth.counts())]
    for result in [*results, map_people(truth, truth), expose(truth, truth), Spread.of([1.0])]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, 3)
    assert evaluate(truth, truth) != results[0]  # arrays are not compared by ==


def test_one_bin_of_confidence():
    truth = line([0, 1], [3, 3])
    found = assess_confidence(truth, np.full((2, 2), 0.75), truth, bins=1, level=0.75)
    assert (found.share.tolist(), found.accuracy.tolist(), found.confidence.tolist()) == ([1.0], [1.0], [0.75])
    assert found.calibration_error == pytest.approx(0.25)
    assert (found.claims.points, found.claims.points_right, found.claims.people) == (1.0, 1.0, 1.0)


def test_progress_of_the_greedy_mapping(monkeypatch):
    monkeypatch.setattr(mapping, "ROWS_AT_ONCE", 2)
    told = []
    truth = line([0], [1], [2], [3], [4])
    found = map_people(truth, truth, method="greedy", progress=lambda *at: told.append(at))
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert found.matched.tolist() == [0, 1, 2, 3, 4]


def test_a_utility_by_hand():
    truth = line([0, 0, 1, 1], [0, 0, 0, 1], [4, 4, 4, 4])
    counts = truth.counts()
    same = utility(counts, counts)
    assert same.to_json() == {metric.name: metric.value(same) for metric in UTILITIES}
    assert same.count_error == same.flow_error == same.withheld == 0
    assert same.busiest_rank_correlation == 1
    values = counts.values.astype(float)
    values[0, 4] = np.nan
    values[2, 0] = 3.0
    found = utility(counts, Release(values, counts.locations, counts.calendar))
    assert found.count_error == pytest.approx(3 / 12)
    assert found.place_total_error == pytest.approx(3 / 12)
    assert found.hour_total_error == pytest.approx(3 / 12)
    assert found.profile_error == pytest.approx(3 / 12)
    assert found.withheld == pytest.approx(1 / 20)
    twice = utility(counts, Release(counts.values * 2.0, counts.locations, counts.calendar))
    assert twice.count_error == 1
    halved = utility(counts, Release(counts.values * 2.0, counts.locations, counts.calendar), scale=0.5)
    assert halved.count_error == 0


def test_flows_by_hand():
    values = np.array([[4.0, 0.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-2.0, 2.0, 3.0]])
    # Three leave the first place, two for the second and one for the third; in the end one goes nowhere.
    assert implied_flows(values).tolist() == [[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_coarse_release_is_read_at_the_detail_of_the_counts():
    fine = rk.Locations([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0]])
    coarse = rk.Locations([[0.5, 0.0], [10.0, 0.0]])
    release = Release(np.array([[4.0, 1.0], [2.0, np.nan]]), coarse, rk.Calendar("2024-03-01", "2h"))
    read = read_at(release, fine, rk.Calendar("2024-03-01", "1h", 6))
    assert read.tolist() == [[2, 2, 1], [2, 2, 1], [1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]]


no_jit = pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="looks into kernels: set NUMBA_DISABLE_JIT=1")


@no_jit
@pytest.mark.parametrize("listed", [3, 64])
def test_a_scan_of_errors_lists_the_best(monkeypatch, listed):
    monkeypatch.setattr(mapping_kernel, "LISTED", listed)
    monkeypatch.setattr(mapping_kernel, "LEAF", 8)
    monkeypatch.setattr(mapping_kernel, "BLOCKS", 3)
    rng = np.random.default_rng(4)
    xy = rng.random((12, 2)) * 20
    homes = rng.integers(0, 12, (30, 1))
    here, there = (
        rk.Trajectories(
            np.where(rng.random((30, 7)) < 0.4, rng.integers(0, 12, (30, 7)), homes),
            rk.Locations(xy),
            rk.Calendar("2024-01-01", "1h"),
        )
        for _ in range(2)
    )
    errors = Errors(here, there)
    _, rows = _group(errors.xy, here.cells)
    _, columns = _group(errors.xy, there.cells)
    assert sorted(rows) == sorted(columns) == list(range(30))
    bounded = _Bounded(errors, rows, columns)
    true = errors.between(rows, columns)
    plain = np.array([[np.hypot(*(a - b).T).sum() for b in there.xy_km()] for a in here.xy_km()])
    assert true == pytest.approx(plain[np.ix_(rows, columns)])
    for prices in (np.zeros(30), rng.random(30) * 9):
        some = rng.permutation(30)
        found = bounded.scan(some, prices, 0.0)
        values = true[some] + prices
        for at in range(30):
            kept = found.columns[at][found.columns[at] >= 0]
            assert len(set(kept.tolist())) == len(kept) == min(listed, 30)
            # In single precision, and never above the true costs.
            assert (found.costs[at][: len(kept)] <= true[some[at], kept]).all()
            assert found.costs[at][: len(kept)] == pytest.approx(true[some[at], kept], rel=1e-4)
            left = np.setdiff1d(np.arange(30), kept)
            assert found.bound[at] == np.inf if not len(left) else found.bound[at] <= values[at, left].min()
            assert found.bound[at] >= values[at, kept].max() * (1 - 1e-4)


def test_sums_over_blocks_of_steps(monkeypatch):
    monkeypatch.setattr(mapping_kernel, "BLOCKS", 2)
    xy = np.array([[0.0, 1.0], [2.0, 3.0]])
    found = _block_sums(xy, np.array([[0, 0, 1, 1], [1, 0, 0, 1]]))
    assert found.tolist() == [[[0.0, 2.0], [4.0, 2.0]], [[2.0, 4.0], [6.0, 4.0]]]


@no_jit
def test_people_alike_are_matched_as_one_group(monkeypatch):
    monkeypatch.setattr(mapping_kernel, "LEAF", 2)
    truth = line([0, 1, 2], [3, 3, 3], [0, 1, 2], [4, 4, 4], [1, 1, 1], [3, 3, 3])
    order = [3, 0, 5, 4, 2, 1]
    found = map_people(truth.part(slice(0, 3)), line(*truth.cells[order].tolist()), dense_up_to=0)
    assert truth.cells[order][found.matched].tolist() == truth.cells.tolist()
    # Among people who are alike, the order is kept.
    assert found.matched.tolist() == [1, 2, 4, 0, 3, 5]
