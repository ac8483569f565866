"""The metrics, against hand-computed cases and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import oracle
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.evaluation import METRICS, distinct_sets, top_places, uniqueness

LINE = rk.Locations([[0, 0], [3, 4], [6, 8], [100, 0]])


def of(cells, locations=LINE):
    return rk.Trajectories(np.array(cells), locations, rk.Calendar("2024-01-01", "6h"))


def test_hand_computed():
    truth = of([[0, 0, 1, 1], [2, 2, 2, 2]])
    recovered = of([[2, 2, 2, 1], [0, 0, 1, 2]])
    result = rk.evaluate(recovered, truth)
    assert result.per_person.matched.tolist() == [1, 0]
    assert result.accuracy == pytest.approx(6 / 8)
    assert result.per_person.accuracy == pytest.approx([3 / 4, 3 / 4])
    assert result.recovery_error_km == pytest.approx(10.0)
    assert result.mean_error_km == pytest.approx(10 / 8)
    assert result.per_person.error_km == pytest.approx([5 / 4, 5 / 4])


def test_levenshtein_forgives_a_shift():
    result = rk.evaluate(of([[0, 1, 2, 3, 0, 1]]), of([[1, 2, 3, 0, 1, 0]]))
    assert result.accuracy == 0
    assert result.levenshtein_accuracy == pytest.approx(1 - 2 / 6)


def test_greedy_takes_the_nearest_who_is_left():
    truth = of([[0], [1]])
    recovered = of([[1], [1]])
    # Xu's greedy gives the first recovered person the true one at 1, and leaves the second with the other.
    assert rk.evaluate(recovered, truth, mapping="greedy").per_person.matched.tolist() == [1, 0]
    line = rk.Locations([[0, 0], [1, 0], [2.1, 0], [50, 0]])
    truth, recovered = of([[0], [2]], line), of([[1], [0]], line)
    assert rk.evaluate(recovered, truth).recovery_error_km == pytest.approx(1.1)
    assert rk.evaluate(recovered, truth, mapping="greedy").recovery_error_km == pytest.approx(1 + 2.1)


@settings(max_examples=60, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_against_plain_loops(truth, seed):
    recovered = rk.deal_at_random(truth.counts(), seed=seed)
    result = rk.evaluate(recovered, truth)
    xy = truth.locations.xy_km
    error = [
        [sum(oracle.distance(xy[a], xy[b]) for a, b in zip(u, v, strict=True)) for v in truth.cells]
        for u in recovered.cells
    ]
    assert result.recovery_error_km == pytest.approx(oracle.least_cost(error))
    pairs = [(recovered.cells[i], truth.cells[j]) for i, j in enumerate(result.per_person.matched)]
    assert sorted(result.per_person.matched) == list(range(truth.people))
    assert result.accuracy == pytest.approx(np.mean([(u == v).mean() for u, v in pairs]))
    edits = [oracle.levenshtein(u.tolist(), v.tolist()) / truth.steps for u, v in pairs]
    assert result.levenshtein_accuracy == pytest.approx(1 - np.mean(edits))
    for k in range(1, 6):
        assert result.uniqueness[k] == pytest.approx(oracle.uniqueness(recovered.cells.tolist(), k))
        assert result.truth_uniqueness[k] == pytest.approx(oracle.uniqueness(truth.cells.tolist(), k))
        assert result.distinct_sets[k] >= result.uniqueness[k]


def test_truth_against_itself_in_another_order():
    truth = random_truth(np.random.default_rng(0), people=20, places=9, steps=48)
    shuffled = rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar)
    result = rk.evaluate(shuffled, truth)
    assert result.accuracy == 1
    assert result.mean_error_km == 0
    assert result.levenshtein_accuracy == 1


def test_uniqueness_is_not_the_ratio_of_distinct_sets():
    # Two people share their most frequent place: one in three is unique, though there are two distinct sets.
    people = of([[0, 0, 1, 1], [0, 0, 0, 2], [3, 3, 3, 3]])
    assert uniqueness(people, 1) == pytest.approx(1 / 3)
    assert distinct_sets(people, 1) == pytest.approx(2 / 3)
    assert uniqueness(people, 2) == 1


def test_top_places_break_ties_by_the_order_of_locations():
    assert top_places(of([[2, 2, 1, 1], [3, 0, 0, 1]]), 3).tolist() == [[1, 2, -1], [0, 1, 3]]
    assert top_places(of([[2, 2, 1, 1]]), 6).tolist() == [[1, 2, -1, -1, -1, -1]]


@settings(max_examples=40, deadline=None)
@given(truth=truths(), seed=st.integers(0, 99))
def test_yardsticks_meet_the_counts(truth, seed):
    counts = truth.counts()
    assert rk.deal_at_random(counts, seed=seed).counts() == counts
    naive = rk.stay_if_possible(counts, seed=seed)
    assert naive.counts() == counts
    # As many stay as the counts allow.
    stays = (naive.cells[:, 1:] == naive.cells[:, :-1]).sum(axis=0)
    possible = np.minimum(counts.values[1:], counts.values[:-1]).sum(axis=1)
    assert np.array_equal(stays, possible)


def test_yardsticks_have_a_spread_over_seeds():
    truth = random_truth(np.random.default_rng(0), people=15, places=9, steps=48, stay=0.9)
    beside = rk.reference_scores(truth, seeds=4)
    for found in (beside.chance, beside.naive):
        assert set(found) == {metric.name for metric in METRICS}
        assert len(found["accuracy"].values) == 4
        assert found["accuracy"].sd == pytest.approx(np.std(found["accuracy"].values, ddof=1))
    assert beside.chance["accuracy"].mean < beside.naive["accuracy"].mean < 1


def test_refuses_what_cannot_be_compared():
    truth = of([[0, 1], [1, 1]])
    with pytest.raises(rk.InvalidData, match="1 people, the truth 2"):
        rk.evaluate(of([[0, 1]]), truth)
    with pytest.raises(rk.InvalidData, match="calendar"):
        rk.evaluate(of([[0], [1]]), truth)
    with pytest.raises(rk.InvalidData, match="locations"):
        rk.evaluate(of([[0, 1], [1, 1]], rk.Locations(LINE.xy_km + 1)), truth)


def test_json_has_every_metric():
    values = rk.evaluate(of([[0, 1]]), of([[0, 1]])).to_json()
    assert {metric.name for metric in METRICS} <= values.keys()
    assert values["uniqueness"]["5"] == 1
