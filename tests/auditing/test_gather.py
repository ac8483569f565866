"""What the audit says of people whom a mean would hide."""

import json

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing import audit
from rekindle.defences import GeometricNoise, Round, Sample, Suppress

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
    (warning,) = audit_of(truth, seeds=1, defences=[GeometricNoise(epsilon=1, per="event")]).warnings
    assert "public" in warning
    declared = rk.Trajectories(truth.cells, truth.locations.declare_public(), truth.calendar)
    assert audit_of(declared, seeds=1, defences=[GeometricNoise(epsilon=1, per="event")]).warnings == ()


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
