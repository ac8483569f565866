"""Membership: exact where nothing protects, gone where noise is large, and never beyond what is claimed for a person."""

import json

import numpy as np
import pytest

import rekindle as rk
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.membership import Membership, infer_membership
from rekindle.membership.channel import Channel
from rekindle.membership.classifier import Groups, score_releases
from rekindle.membership.infer import _traces
from rekindle.membership.traces import PLACES, synthesise

CITY = rk.SyntheticCity(people=30, days=1, step="1h").trajectories()
COUNTS = CITY.counts()


def noisy(epsilon, per="event", seed=0):
    return rk.GeometricNoise(epsilon=epsilon, per=per, seed=seed)


def test_exact_counts_tell_everyone():
    found = infer_membership(COUNTS, CITY, targets=5)
    assert found.auc == 1.0
    assert found.true_positives == (1.0, 1.0, 1.0)
    assert found.epsilon == np.inf
    assert all(person.evidence == np.inf for person in found.people)
    assert found.to_json()["epsilon"] is None


def test_noise_per_person_keeps_its_promise():
    chain = rk.Chain([noisy(1.0, per="person"), rk.Suppress(below=2)])
    found = infer_membership(chain(COUNTS), CITY, targets=5, draws=4000)
    assert found.claimed_per_person == pytest.approx(1.0)
    assert 0.5 < found.auc < 0.8
    assert found.epsilon <= 1.0


def test_noise_per_event_promises_little_for_a_person():
    found = infer_membership(noisy(1.0)(COUNTS), CITY, targets=5, draws=4000)
    assert found.claimed_per_event == pytest.approx(1.0)
    assert found.epsilon > 3
    assert found.epsilon <= found.claimed_per_person
    assert "Claimed: epsilon 1 per event; for all that one person adds to the release: at least" in found.describe()


def test_auc_falls_with_noise():
    aucs = [infer_membership(noisy(epsilon)(COUNTS), CITY, targets=8, draws=2000).auc for epsilon in (3.0, 0.3, 0.03)]
    assert aucs == sorted(aucs, reverse=True)
    assert aucs[0] > 0.99
    assert aucs[-1] < 0.65


def test_the_computed_bound_needs_no_rare_events():
    # 24 numbers of Laplace noise with epsilon 2: the loss is near its mean, 24 x (2 - 1 + e^-2).
    found = infer_membership(rk.LaplaceNoise(epsilon=2.0, per="event", seed=0)(COUNTS), CITY, targets=1, draws=4000)
    mean = 24 * (2 + np.exp(-2) - 1)
    assert mean - 1 < found.people[0].computed_epsilon < 48
    assert found.people[0].counted_epsilon <= found.provable_epsilon


def test_a_release_of_unknown_origin_gets_no_exact_test():
    strange = rk.Release(COUNTS.values + 0.5, COUNTS.locations, COUNTS.calendar)
    with pytest.raises(InvalidSetting, match="`defence`"):
        infer_membership(strange, CITY)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["knock-knock", "zero-knowledge"])
@pytest.mark.parametrize("published", ["counts", "flows"])
def test_classifiers_beat_guessing_on_small_groups(method, published):
    pytest.importorskip("sklearn")
    city = rk.SyntheticCity(people=60, days=1, step="2h").trajectories()
    release = getattr(city, published)()
    found = infer_membership(release, city, method=method, group=6, targets=4, seed=1)
    assert found.auc > 0.7
    assert found.group == 6
    assert found.epsilon is None


def test_the_same_seed_gives_the_same_result():
    one, other = (infer_membership(noisy(0.5)(COUNTS), CITY, targets=3, draws=500, seed=4) for _ in range(2))
    assert one == other


def test_a_membership_survives_json():
    found = infer_membership(COUNTS, CITY, targets=3)
    assert Membership.from_json(json.loads(json.dumps(found.to_json()))) == found


def come_and_go():
    """Everyone is away for the first half of the day but the last person, who is never there."""
    cells = CITY.cells.copy()
    cells[::2, :12] = rk.AWAY
    cells[-1] = rk.AWAY
    return rk.Trajectories(cells, CITY.locations, CITY.calendar)


@pytest.mark.parametrize("method", ["exact", "knock-knock", "zero-knowledge"])
def test_a_person_adds_nothing_while_away(method, monkeypatch):
    monkeypatch.setattr("rekindle.membership.infer._SYNTHETIC", 500)
    truth = come_and_go()
    found = infer_membership(noisy(1.0)(truth), truth, method=method, targets=10, draws=1000)
    assert {one.steps for one in found.people} <= {12, 24}
    assert "29" not in {one.person for one in found.people}
    assert found.auc > 0.5


def test_who_is_counted_less_is_told_less():
    truth = come_and_go()
    found = infer_membership(noisy(0.3)(truth), truth, targets=30, draws=2000)
    auc = {steps: np.mean([one.auc for one in found.people if one.steps == steps]) for steps in (12, 24)}
    assert auc[12] < auc[24]
    assert infer_membership(truth.counts(), truth, targets=30).auc == 1.0


def test_exact_flows_tell_everyone():
    found = infer_membership(CITY.flows("2h"), CITY, targets=5)
    assert found.auc == 1.0
    assert found.people[0].steps == 11  # windows, not moments


def test_noise_on_flows_keeps_its_promise():
    noise = noisy(0.5)
    found = infer_membership(noise.of_flows(CITY), CITY, noise, targets=5, draws=4000)
    assert found.claimed_per_event == pytest.approx(0.5)
    for person in found.people:
        assert person.steps == 23
        assert 0 < person.computed_epsilon <= 0.5 * person.steps
    assert 0.5 < found.auc < 1


def test_the_evidence_in_flows_is_that_of_the_numbers_that_a_person_is_in():
    """By hand: who is in flows that are withheld leaves no trace, who makes one reach the threshold does."""
    cells = [[0, 1, 1], [0, 1, 0], [1, 1, rk.AWAY]]
    people = rk.Trajectories(np.array(cells), rk.Locations([[0.0, 0.0], [1.0, 0.0]]), rk.Calendar("2024-03-01", "8h"))
    found = infer_membership(rk.Suppress(below=2).of_flows(people), people)
    told = {one.person: (one.steps, one.auc) for one in found.people}
    assert told == {"0": (2, 1.0), "1": (2, 1.0), "2": (2, 0.5)}  # 0 and 1 go together once, the others alone


@pytest.mark.parametrize("method", ["knock-knock", "zero-knowledge"])
def test_classifiers_take_flows_of_people_who_come_and_go(method, monkeypatch):
    monkeypatch.setattr("rekindle.membership.infer._SYNTHETIC", 500)
    truth = come_and_go()
    noise = noisy(2.0)
    found = infer_membership(noise.of_flows(truth, "2h"), truth, noise, method=method, group=6, targets=4)
    assert {one.steps for one in found.people} <= {
        6,
        11,
    }  # windows: those of half a day, and the one by which they enter
    assert 0.5 < found.auc <= 1
    assert "Between which locations anyone went" in found.note
    with pytest.raises(InvalidData, match="other locations or steps"):
        infer_membership(truth.flows(), truth, rk.CoarserTime(step="2h"), method=method)


def test_traces_of_flows_are_the_numbers_of_a_release():
    truth = come_and_go()
    for release in (
        rk.Release.of(truth.flows()),
        rk.Release.of(truth.flows(stayers=False)),
        rk.Release.of(truth.counts()),
    ):
        traces = _traces(release, truth).toarray()
        assert np.array_equal(traces.sum(axis=0).reshape(release.values.shape), release.values)
        assert traces.max() <= 1


@pytest.mark.parametrize("stayers", [True, False])
def test_invented_people_go_between_locations_near_each_other_as_flows_say(stayers):
    truth = rk.SyntheticCity(people=60, days=1, step="1h", width_km=6, height_km=6).trajectories()
    release = rk.Release.of(truth.flows(stayers=stayers))
    channel = Channel.of(rk.Chain([]), release.calendar)
    found = synthesise(release, 60, channel, number=400, random=np.random.default_rng(1)).toarray()
    numbers = found.reshape(400, *release.values.shape)
    assert numbers.sum(axis=2).max() == 1  # once in a window
    assert numbers.sum() / 400 == pytest.approx(release.values.sum() / 60, rel=0.4)
    for person in numbers:
        ends = np.unique(release.pairs[np.flatnonzero(person.any(axis=0))])
        assert len(ends[ends != rk.AWAY]) <= PLACES
    assert np.corrcoef(numbers.sum(axis=(0, 1)), release.values.sum(axis=0))[0, 1] > 0.5


def test_groups_in_which_nothing_is_left_tell_nothing():
    """No number of a group of four reaches the threshold, with the person or without."""
    channel = Channel.of(rk.Suppress(below=25), CITY.calendar)
    traces = _traces(rk.Release.of(COUNTS), CITY)
    groups = Groups(traces, 4, channel)
    scores, _ = score_releases(
        groups, traces[[0]].toarray()[0], np.zeros((6, traces.shape[1]), np.float32), np.random.default_rng(1)
    )
    assert not scores.any()
