"""The metrics, against hand-computed cases and plain loops."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import oracle
from tests.small import line, random_truth, shuffled, truths

import rekindle as rk
from rekindle.evaluation import METRICS, Metric, Spread, evaluate, map_people, reference_scores, scores

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
    recovered = rk.Chance(seed=seed).recover(truth.counts()).trajectories
    result = rk.evaluate(recovered, truth)
    xy = truth.locations.xy_km
    error = [
        [sum(oracle.distance(xy[a], xy[b]) for a, b in zip(u, v, strict=True)) for v in truth.cells]
        for u in recovered.cells
    ]
    assert result.recovery_error_km == pytest.approx(oracle.least_cost(error))
    pairs = [(recovered.cells[i], truth.cells[j]) for j, i in enumerate(result.per_person.matched)]
    assert sorted(result.per_person.matched) == list(range(truth.people))
    assert result.accuracy == pytest.approx(np.mean([(u == v).mean() for u, v in pairs]))
    edits = [oracle.levenshtein(u.tolist(), v.tolist()) / truth.steps for u, v in pairs]
    assert result.levenshtein_accuracy == pytest.approx(1 - np.mean(edits))
    for k in range(1, 6):
        assert result.uniqueness[k] == pytest.approx(oracle.uniqueness(recovered.cells.tolist(), k))
        assert result.truth_uniqueness[k] == pytest.approx(oracle.uniqueness(truth.cells.tolist(), k))
        assert result.distinct_sets[k] >= result.uniqueness[k]


@settings(max_examples=60, deadline=None)
@given(truth=truths(away=True, max_steps=20), seed=st.integers(0, 99), people=st.none() | st.integers(1, 9))
def test_people_who_come_and_go_against_plain_loops(truth, seed, people):
    rng = np.random.default_rng(seed)
    seen = (rng.random(truth.cells.shape) < 0.4) & truth.counted
    truth = rk.Trajectories(truth.cells, truth.locations, truth.calendar, observed=seen)
    recovered = shuffled(truth, rng, people)
    result = rk.evaluate(recovered, truth)
    each, matched = result.per_person, result.per_person.matched
    mine, theirs, xy = recovered.cells.tolist(), truth.cells.tolist(), truth.locations.xy_km.tolist()
    nobody = [oracle.AWAY] * truth.steps
    accuracy, precision, observed, edits, missed, points, total = [], [], [], [], [], [], 0.0
    for person, real in enumerate(theirs):
        found = mine[matched[person]] if matched[person] >= 0 else nobody
        accuracy.append(oracle.accuracy(found, real))
        precision.append(oracle.accuracy(real, found))
        observed.append(oracle.accuracy(found, [b if s else -1 for b, s in zip(real, seen[person], strict=True)]))
        edits.append(oracle.levenshtein_accuracy(found, real))
        missed.append(oracle.accuracy([0 if a == -1 else 1 for a in found], [-1 if b == -1 else 0 for b in real]))
        both = [(a, b) for a, b in zip(found, real, strict=True) if a != -1 and b != -1]
        points += [oracle.distance(xy[a], xy[b]) for a, b in both]
        if matched[person] >= 0:
            total += oracle.trajectory_error(found, real, xy, oracle.price_of_away(theirs, xy))
    assert each.accuracy == pytest.approx(accuracy, nan_ok=True)
    assert each.precision == pytest.approx(precision, nan_ok=True)
    assert each.accuracy_observed == pytest.approx(observed, nan_ok=True)
    assert each.levenshtein_accuracy == pytest.approx(edits, nan_ok=True)
    assert each.missed == pytest.approx(missed, nan_ok=True)
    # Over all points, however they are distributed over people.
    right = sum(
        oracle.right(mine[matched[person]], real) for person, real in enumerate(theirs) if matched[person] >= 0
    )
    points_true, points_found = (sum(len(oracle.counted(path)) for path in paths) for paths in (theirs, mine))
    assert result.accuracy == pytest.approx(right / points_true)
    assert result.precision == pytest.approx(right / points_found if points_found else np.nan, nan_ok=True)
    weights = seen.sum(axis=1)
    expected = np.nansum(np.array(observed) * weights) / weights.sum() if seen.any() else np.nan
    assert result.accuracy_observed == pytest.approx(expected, nan_ok=True)
    assert result.mean_error_km == pytest.approx(np.mean(points) if points else np.nan, nan_ok=True)
    assert result.recovery_error_km == pytest.approx(total, abs=1e-9)
    assert result.recovery_error_km == pytest.approx(result.mapping.total_error_km, abs=1e-9)
    for k in range(1, 6):
        assert result.uniqueness[k] == pytest.approx(oracle.uniqueness(mine, k))
        assert result.truth_uniqueness[k] == pytest.approx(oracle.uniqueness(theirs, k))


# One person in locations 0, 0, 1, one in 4, 4, one who is never counted; two are recovered.
COME_AND_GO = line([0, 0, 1, -1], [4, 4, -1, -1], [-1, -1, -1, -1])
FOUND = ([0, 1, -1, 1], [-1, 4, 4, 4])


def test_people_who_come_and_go_by_hand():
    found = evaluate(line(*FOUND), COME_AND_GO)
    each = found.per_person
    assert each.matched.tolist() == [0, 1, -1]
    assert each.accuracy.tolist() == pytest.approx([1 / 3, 1 / 2, np.nan], nan_ok=True)
    assert each.precision.tolist() == pytest.approx([1 / 3, 1 / 3, np.nan], nan_ok=True)
    assert each.error_km.tolist() == pytest.approx([1 / 2, 0, np.nan], nan_ok=True)
    assert each.missed.tolist() == pytest.approx([1 / 3, 1 / 2, np.nan], nan_ok=True)
    # [0, 1, 1] for [0, 0, 1], and [4, 4, 4] for [4, 4].
    assert each.levenshtein_accuracy.tolist() == pytest.approx([2 / 3, 2 / 3, np.nan], nan_ok=True)
    assert (each.both_counted.tolist(), each.one_away.tolist()) == ([2, 1, 0], [2, 3, 0])
    # Of five true points two are right and two are missed, of six recovered points two are right; at three both are counted.
    assert (found.accuracy, found.missed) == (pytest.approx(2 / 5), pytest.approx(2 / 5))
    assert found.precision == pytest.approx(1 / 3)
    assert found.mean_error_km == pytest.approx(1 / 3)
    # Of 25 pairs of true points 4 are 1 km apart, 4 are 3 km and 8 are 4 km; at five steps only one of the two is away.
    assert each.away_km == found.mapping.away_km == pytest.approx(48 / 25)
    assert found.recovery_error_km == pytest.approx(1 + 5 * 48 / 25)
    assert found.truth_uniqueness[1] == found.uniqueness[1] == 1
    assert np.isnan(found.accuracy_observed)
    assert found.to_json()["accuracy_observed"] is None
    assert "observed" not in repr(found)
    assert "precision=0.333" in repr(found)


def test_people_who_were_invented_lower_the_precision():
    found = evaluate(line([4, 4, -1, -1], [-1, -1, -1, 2], [0, 0, 2, -1], [-1, -1, -1, -1]), COME_AND_GO)
    assert found.per_person.matched.tolist()[:2] == [2, 0]
    assert found.accuracy == pytest.approx(4 / 5)
    # Of the six recovered points one belongs to a person without a match.
    assert (found.per_person.points_recovered, found.precision) == (6, pytest.approx(4 / 6))
    everyone = line([0, 0], [1, 1])
    assert evaluate(everyone, everyone).precision == 1
    assert evaluate(line([0, 0], [1, 1], [4, 4]), everyone).precision == pytest.approx(2 / 3)


def test_observed_points_stand_beside_all():
    seen = [[True, False, False, False], [True, True, False, False], [False] * 4]
    truth = rk.Trajectories(COME_AND_GO.cells, COME_AND_GO.locations, COME_AND_GO.calendar, observed=seen)
    found = evaluate(line(*FOUND), truth)
    assert found.per_person.accuracy_observed.tolist() == pytest.approx([1, 1 / 2, np.nan], nan_ok=True)
    assert found.accuracy_observed == pytest.approx(2 / 3)
    assert found.accuracy == pytest.approx(2 / 5)
    assert found.to_json()["accuracy_observed"] == found.accuracy_observed


@settings(max_examples=20, deadline=None)
@given(truth=truths(away=True, max_steps=20))
def test_references_of_people_who_come_and_go(truth):
    seen = np.random.default_rng(0).random(truth.cells.shape) < 0.5
    truth = rk.Trajectories(truth.cells, truth.locations, truth.calendar, observed=seen & truth.counted)
    beside = reference_scores(truth, seeds=2)
    for attack, found in ((rk.Chance, beside.chance), (rk.Naive, beside.naive)):
        plain = [evaluate(attack(seed=seed).recover(truth.counts()).trajectories, truth) for seed in range(2)]
        for metric in METRICS:
            expected = [one.scores[metric.name] for one in plain]
            assert found[metric.name].values == pytest.approx(expected, nan_ok=True)


def test_a_recovery_is_not_its_trajectories():
    truth = line([0, 1], [1, 0])
    with pytest.raises(
        rk.errors.InvalidSetting,
        match=r"`recovered` is a Recovery; give trajectories, such as recovery\.trajectories",
    ):
        rk.evaluate(rk.Naive().recover(truth.counts()), truth)


def test_a_truth_without_anyone_is_refused():
    nobody = line([-1, -1])
    with pytest.raises(rk.errors.InvalidData, match="Nobody in the truth is counted"):
        evaluate(line([0, 0]), nobody)
    # A recovery without anyone is wrong everywhere.
    found = evaluate(nobody, line([0, 0]))
    assert (found.accuracy, found.missed, found.levenshtein_accuracy) == (0, 1, 0)
    assert np.isnan([found.precision, found.mean_error_km]).all()
    assert found.recovery_error_km == 2


def test_truth_against_itself_in_another_order():
    truth = random_truth(np.random.default_rng(0), people=20, places=9, steps=48)
    shuffled = rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar)
    result = rk.evaluate(shuffled, truth)
    assert result.accuracy == 1
    assert result.mean_error_km == 0
    assert result.levenshtein_accuracy == 1


def test_reference_scores_have_a_spread_over_seeds():
    truth = random_truth(np.random.default_rng(0), people=15, places=9, steps=48, stay=0.9)
    beside = rk.reference_scores(truth, seeds=4)
    for found in (beside.chance, beside.naive):
        assert set(found) == {metric.name for metric in METRICS}
        assert len(found["accuracy"].values) == 4
        assert found["accuracy"].sd == pytest.approx(np.std(found["accuracy"].values, ddof=1))
    assert beside.chance["accuracy"].mean < beside.naive["accuracy"].mean < 1


def test_refuses_what_cannot_be_compared():
    truth = of([[0, 1], [1, 1]])
    with pytest.raises(rk.errors.InvalidData, match="calendar"):
        rk.evaluate(of([[0], [1]]), truth)
    with pytest.raises(rk.errors.InvalidData, match="locations"):
        rk.evaluate(of([[0, 1], [1, 1]], rk.Locations(LINE.xy_km + 1)), truth)


def test_json_has_every_metric():
    values = rk.evaluate(of([[0, 1]]), of([[0, 1]])).to_json()
    assert {metric.name for metric in METRICS} <= values.keys()
    assert values["uniqueness"]["5"] == 1


def test_an_evaluation_by_hand():
    truth = line([0, 0, 1, 1], [4, 4, 4, 4])
    found = evaluate(line([4, 4, 4, 3], [0, 1, 1, 1]), truth)
    assert found.per_person.matched.tolist() == [1, 0]
    assert found.per_person.accuracy.tolist() == [0.75, 0.75]
    assert found.per_person.error_km.tolist() == [0.25, 0.25]
    assert found.per_person.levenshtein_accuracy.tolist() == [0.75, 0.75]
    assert (found.accuracy, found.mean_error_km, found.recovery_error_km) == (0.75, 0.25, 2.0)
    assert found.mapping.gap == 0
    values = found.to_json()
    assert {metric.name for metric in METRICS} < set(values)
    assert (values["accuracy"], values["mapping"]) == (0.75, "optimal")
    assert values["uniqueness"] == {str(k): share for k, share in found.uniqueness.items()}
    assert list(found.uniqueness) == [1, 2, 3, 4, 5]


def test_a_shift_in_time_costs_two_edits():
    found = evaluate(line([0, 1, 2, 3, 4, 4]), line([0, 0, 1, 2, 3, 4]))
    assert found.accuracy == pytest.approx(2 / 6)
    assert found.levenshtein_accuracy == pytest.approx(1 - 2 / 6)


def test_a_spread_over_seeds():
    assert Spread.of([1.0, 3.0]) == Spread(2.0, pytest.approx(2**0.5), (1.0, 3.0))
    assert Spread.of([1.5]) == Spread(1.5, 0.0, (1.5,))
    assert str(Spread.of([0.25, 0.25])) == "0.250 ± 0.000"


def test_no_steps_cannot_be_compared():
    none = line([0, 1]).part(slice(0, 0))
    with pytest.raises(rk.errors.InvalidData, match="no steps"):
        evaluate(none, none)


def test_scores_are_over_the_true_people_however_many_were_recovered():
    truth = line([0] * 4, [2] * 4)
    twice = evaluate(line([0] * 4, [2] * 4, [4] * 4, [3] * 4), truth)
    assert twice.per_person.matched.tolist() == [0, 1]
    assert (twice.accuracy, twice.levenshtein_accuracy, twice.mean_error_km) == (1.0, 1.0, 0.0)
    half = evaluate(line([2, 2, 2, 1]), truth)
    assert half.per_person.matched.tolist() == [-1, 0]
    assert half.per_person.accuracy.tolist() == [0.0, 0.75]
    assert (half.accuracy, half.levenshtein_accuracy) == (0.375, 0.375)
    # Distances are known of people with a match only.
    assert (half.mean_error_km, half.recovery_error_km) == (0.25, 1.0)


def test_a_mapping_is_handed_on(monkeypatch):
    truth = line([0, 0, 1, 1], [4, 4, 4, 4])
    recovered = line([4, 4, 4, 3], [0, 1, 1, 1])
    known = map_people(recovered, truth)
    monkeypatch.setattr("rekindle.evaluation.mapping.map_people", None)
    assert evaluate(recovered, truth, mapping=known).accuracy == 0.75
    with pytest.raises(rk.errors.InvalidData, match="mapping is of 2 recovered and 2 true people; there are 1 and 2"):
        evaluate(line([0, 0, 1, 1]), truth, mapping=known)
    with pytest.raises(rk.errors.InvalidSetting, match="`mapping` is 'best'"):
        evaluate(recovered, truth, mapping="best")


def test_uniqueness_is_computed_once_and_not_for_references(monkeypatch):
    asked = []
    monkeypatch.setattr(scores, "count_sets", lambda people: asked.append(people) or ({}, {}))
    truth = line([0, 0, 1, 1], [4, 4, 4, 4])
    evaluate(truth, truth)
    assert len(asked) == 2
    reference_scores(truth, seeds=2)
    assert len(asked) == 2


def test_a_metric_is_one_line(monkeypatch):
    worst = Metric("worst_accuracy", "share", "higher", "of the least exposed person", lambda one: one.accuracy.min())
    monkeypatch.setattr(scores, "METRICS", (*METRICS, worst))
    truth = line([0, 0, 1, 1], [4, 4, 4, 4])
    result = evaluate(line([4, 4, 4, 3], [0, 1, 2, 3]), truth)
    assert result.scores["worst_accuracy"] == result.to_json()["worst_accuracy"] == 0.25
    assert reference_scores(truth, seeds=1).chance["worst_accuracy"].mean < 1


def test_results_stay_as_they_are():
    truth = line([0, 1], [1, 1])
    for result in (evaluate(truth, truth), reference_scores(truth, seeds=1), Spread.of([1.0])):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, dataclasses.fields(result)[0].name, 3)
    assert evaluate(truth, truth) != evaluate(truth, truth)  # arrays are not compared by ==
