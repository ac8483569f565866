"""What the audit says of people whom a mean would hide."""

import json

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing import audit, tasks
from rekindle.defences import GeometricNoise, Round, Sample, Suppress
from rekindle.evaluation import map_people
from rekindle.report import page, words

STEPS = 48


def crowd(movers, alone, seed=0):
    """People who move at random among ten locations, and some who each stay alone in a remote one."""
    rng = np.random.default_rng(seed)
    cells = np.concatenate(
        [rng.integers(0, 10, (movers, STEPS)), np.repeat(10 + np.arange(alone)[:, None], STEPS, 1)]
    )
    near = [(x, y) for x in range(5) for y in range(2)]
    far = [(100.0 + 10 * x, 100.0) for x in range(alone)]
    return rk.Trajectories(cells, rk.Locations(near + far), rk.Calendar("2024-01-01", "1h", STEPS))


def audit_of(truth, **settings):
    return audit(truth, **({"attacks": [rk.Enhanced()], "defences": [], "seeds": 3, "workers": 1} | settings))


@pytest.mark.parametrize(
    ("movers", "alone", "by_people"),
    [(60, 1, "high"), pytest.param(292, 8, "high", marks=pytest.mark.slow), (4, 1, "very high")],
)
def test_people_who_are_alone_are_not_hidden_by_a_crowd(movers, alone, by_people):
    found = audit_of(crowd(movers, alone))
    best = found.given.exposing.exposed
    assert best.half.people == best.almost_all.people == best.half.in_every_order == alone
    assert best.half.by_order == (alone,) * 3
    assert best.half.of == movers + alone
    assert best.half.share.low <= alone / (movers + alone) <= best.half.share.high
    assert best.most == 1
    assert best.half.by_chance == 0
    assert found.verdict.by_people == by_people
    assert found.verdict.level == by_people
    assert found.exposes(more_than=alone - 1, above=0.9)
    assert not found.exposes(more_than=alone)
    assert {person.person for person in found.people if person.orders == 3 and person.clearly} == {
        str(movers + one) for one in range(alone)
    }


def test_a_crowd_without_anyone_alone_is_not_exposed():
    found = audit_of(crowd(60, 0))
    assert found.given.exposing.exposed.half.people == 0
    assert found.verdict.by_people is None
    assert not found.exposes()


def test_people_whom_chance_finds_are_not_exposed():
    """In a village where everyone is at home nine tenths of the time, and all homes are one location."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((40, STEPS)) < 0.9, 0, rng.integers(1, 6, (40, STEPS)))
    truth = rk.Trajectories(cells, rk.Locations([(x, 0) for x in range(6)]), rk.Calendar("2024-01-01", "1h", STEPS))
    exposed = audit_of(truth).given.strongest.exposed
    assert exposed.half.by_chance == 40
    assert exposed.half.people == 0


def test_four_and_one_cannot_be_called_safe_by_the_mean():
    found = audit_of(crowd(4, 1))
    assert found.verdict.by_mean == "cannot tell"
    assert found.exceeds(0.3)


def test_limits_are_checked():
    found = audit_of(crowd(4, 1), seeds=1)
    with pytest.raises(rk.errors.InvalidSetting, match="`more_than`"):
        found.exposes(more_than=-1)
    with pytest.raises(rk.errors.InvalidSetting, match="`above`"):
        found.exposes(above=2)
    with pytest.raises(rk.errors.InvalidSetting, match="truth"):
        audit_of(crowd(4, 1).counts(), seeds=1).exposes()


def test_noise_on_locations_that_nobody_declared_public_is_warned_of():
    truth = crowd(20, 1)
    assert audit_of(truth, seeds=1).warnings == ()
    assert audit_of(truth, seeds=1, defences=[Round(to=2)]).warnings == ()
    noisy = {"seeds": 1, "defences": [GeometricNoise(epsilon=1, per="event")], "membership": "none"}
    (warning,) = audit_of(truth, **noisy).warnings
    assert "public" in warning
    declared = rk.Trajectories(truth.cells, truth.locations.declare_public(), truth.calendar)
    assert audit_of(declared, **noisy).warnings == ()


def test_what_someone_learns_from_known_points():
    found = audit_of(rk.SyntheticCity(people=24, days=2, step="1h", width_km=5, height_km=5).trajectories())
    risks = found.given.attacks
    assert list(risks["enhanced"].learnt) == [1, 2, 4, 8, 16]
    assert risks["perfect"].learnt[16].value > risks["enhanced"].learnt[16].value > risks["chance"].learnt[16].value
    assert risks["enhanced"].learnt[16].value > risks["enhanced"].learnt[1].value


def test_precision_of_an_attack_that_states_its_confidence():
    truth = rk.SyntheticCity(people=20, days=2, step="1h", width_km=5, height_km=5).trajectories()
    risks = audit_of(truth, attacks=[rk.Habits(effort="low")], seeds=1).given.attacks
    assert risks["chance"].precision is None
    curve = risks["habits"].precision
    assert curve.claimed[-1] == 1
    assert curve.precision[-1] == pytest.approx(risks["habits"].accuracy.value)
    assert 0 <= curve.people <= 20


def test_a_sample_of_a_tenth_is_as_exposed_as_those_who_were_drawn():
    """Everyone stays in a location of their own: those who were drawn are found, wholly."""
    cells = np.repeat(np.arange(40)[:, None], STEPS, axis=1)
    truth = rk.Trajectories(cells, rk.Locations([(x, 0) for x in range(40)]), rk.Calendar("2024-01-01", "1h", STEPS))
    sampled = audit_of(truth, defences=[Sample(share=0.1)]).releases[1]
    assert 0 < sampled.included < 0.3
    assert sampled.strongest.accuracy.value == sampled.strongest.advantage.value == 1
    assert sampled.strongest.exposed.almost_all.people == sampled.strongest.exposed.almost_all.of


def test_every_number_is_plain_json():
    found = audit_of(crowd(10, 1), seeds=2, defences=[Suppress(below=2)])
    numbers = json.loads(json.dumps(found.to_json(), allow_nan=False))
    risk = numbers["releases"][1]["attacks"]["enhanced"]
    assert risk["exposed"]["half"]["people"] == found.releases[1].attacks["enhanced"].exposed.half.people
    assert "clear" not in risk["exposed"]
    assert numbers["releases"][1]["repairs"]["kept"] == list(found.releases[1].repairs.kept)
    assert len(repr(found)) < 120


def come_and_go(observed_share=0.3):
    """Fifteen people; a third is away at night, one is never counted, and most points were filled in."""
    truth = rk.SyntheticCity(people=15, days=2, step="2h", width_km=4, height_km=4, seed=1).trajectories()
    cells = truth.cells.copy()
    cells[:5, [*range(4), *range(11, 16)]] = rk.AWAY
    cells[14] = rk.AWAY
    observed = (cells != rk.AWAY) & (np.random.default_rng(0).random(cells.shape) < observed_share)
    return rk.Trajectories(cells, truth.locations, truth.calendar, truth.people_ids, observed)


@pytest.fixture(scope="module")
def coming():
    defences = [
        Suppress(below=2),
        rk.Round(to=2),
        rk.LaplaceNoise(epsilon=2.0, per="event"),
        rk.CoarserTime(step="4h"),
    ]
    return rk.audit(come_and_go(), attacks=[rk.Enhanced()], defences=defences, seeds=2, workers=1)


def test_people_who_come_and_go_are_audited(coming):
    assert coming.settings["people_from"] == "truth"
    assert coming.settings["totals"] == [9, 14]
    assert coming.settings["people_in_release"] == 15
    assert coming.settings["assumed"] == [
        "The attacker is assumed to know that there are 15 people, as in the truth.",
        "At a step, from 9 to 14 of them are counted; the others are taken to be away.",
    ]
    # Nobody can be exposed who is never counted.
    assert {one.person for one in coming.people} == {str(person) for person in range(14)}
    assert coming.given.exposed.half.of == 14
    assert coming.given.attacks["perfect"].accuracy.value == coming.given.attacks["perfect"].point_precision == 1
    assert coming.given.attacks["enhanced"].repair == "as published"
    # The number of people is known; what a guess reaches stands beside it, exact numbers or not.
    assert coming.given.guessed.people == 14


def test_someone_who_is_never_counted_has_no_name_either(coming):
    unnamed = coming.unnamed()
    assert sorted(unnamed.truth.people_ids, key=int) == [str(rank) for rank in range(1, 16)]
    assert unnamed.truth.people_ids[14] == "15"
    assert [one.person for one in unnamed.people] == [str(rank) for rank in range(1, 15)]


def test_what_was_filled_in_is_said(coming):
    truth = come_and_go()
    share = truth.observed.sum() / (truth.cells != rk.AWAY).sum()
    assert coming.settings["observed"] == pytest.approx(share)
    assert any("of the points of the truth were filled in" in one for one in coming.warnings)
    attack = coming.given.attacks["enhanced"]
    assert attack.accuracy_observed.value != attack.accuracy.value
    assert coming.given.attacks["perfect"].accuracy_observed.value == 1
    assert coming.to_json()["releases"][0]["attacks"]["enhanced"]["accuracy_observed"] is not None
    said = " ".join(words.summary(coming))
    assert "of the true points were recorded, the others filled in. At recorded points it is right" in said
    assert "Of all the points that it rebuilds" in said


def test_counts_alone_are_audited_as_they_are():
    """A station: 8 people at night, 120 at noon."""
    hours = np.arange(48) % 24
    total = np.where((hours > 6) & (hours < 20), 120, 8)
    values = np.stack([total // 2, total // 4, total - total // 2 - total // 4], axis=1)
    counts = rk.Counts(values, rk.Locations([[0, 0], [1, 0], [2, 0]]), rk.Calendar("2024-03-04", "1h"))
    found = rk.audit(counts, attacks=[rk.Naive()], defences=[], seeds=1, workers=1)
    assert np.array_equal(found.recovered.counts().values, values)
    assert not found.given.people_known
    assert found.settings["people_from"] == "largest total"
    assert found.settings["totals"] == [8, 120]
    assert "the largest total of a step" in found.settings["assumed"][0]
    known = rk.Counts(values, counts.locations, counts.calendar, people=150)
    assert rk.audit(known, attacks=[rk.Naive()], defences=[], seeds=1, workers=1).given.people_known


def test_the_largest_gap_of_all_matchings_is_told(monkeypatch):
    # As if these were very many people.
    def sparsely(recovered, truth, *, method="optimal"):
        return map_people(recovered, truth, method=method, dense_up_to=0, gap=0.5)

    people = rk.SyntheticCity(people=40, days=1, step="1h", seed=1).trajectories()
    settings = {"attacks": [rk.Baseline()], "seeds": 1, "thorough": False}
    exact = audit_of(people, **settings)
    assert exact.gap == exact.to_json()["gap"] == 0
    assert "nearly so" not in words.matching(exact)
    monkeypatch.setattr(tasks, "map_people", sparsely)
    for data in (people, people.counts()):  # without the truth, recoveries are matched with each other
        found = audit_of(data, **settings)
        assert 0 < found.gap < 0.6
        assert found.to_json()["gap"] == found.gap
        assert words.matching(found) in page.build_page(found)
