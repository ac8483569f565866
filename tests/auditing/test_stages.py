"""The attacker of an audit: knows how many people there are, and takes the strongest of several repairs."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing import audit
from rekindle.auditing.stages import AS_PUBLISHED, SCOUT
from rekindle.defences import CoarserSpace, Defence, GeometricNoise, Sample, Suppress
from rekindle.repairing import REPAIRS, repair


@pytest.fixture(scope="module")
def truth():
    return rk.SyntheticCity(people=24, days=3, step="1h", width_km=5, height_km=5).trajectories()


@pytest.fixture(scope="module")
def found(truth):
    defences = [Suppress(below=2), GeometricNoise(epsilon=0.3, per="event"), CoarserSpace(km=2), Sample(share=0.5)]
    return audit(truth, attacks=[rk.Enhanced()], defences=defences, seeds=2, membership="none", workers=1)


def accuracy(counts, truth, seed):
    return rk.evaluate(rk.Enhanced(seed=seed).recover(counts).trajectories, truth).accuracy


def test_exact_and_whole_numbers_need_no_repair(found):
    given, _, _, coarse, sample = found.releases
    for release in (given, coarse, sample):
        assert release.repairs is None
        assert release.guessed is None
        assert release.attacks["enhanced"].repair == AS_PUBLISHED


def test_the_best_two_repairs_go_on(found, truth):
    for release, defence in zip(
        found.releases[1:3], (Suppress(below=2), GeometricNoise(epsilon=0.3, per="event")), strict=True
    ):
        compared = release.repairs
        assert compared.attack == SCOUT.name
        assert set(compared.accuracy) == set(REPAIRS)
        published = defence.seeded(0)(truth.counts())
        moving = [name for name, way in REPAIRS.items() if np.ptp(way(published, 24).values, axis=0).any()]
        assert ("frozen" in moving) == (not defence.adds_noise)
        assert compared.kept == tuple(sorted(moving, key=compared.accuracy.get, reverse=True)[:2])
        for name, way in REPAIRS.items():
            assert compared.accuracy[name] == pytest.approx(accuracy(way(published, 24), truth, 0))
        assert compared.true_counts == pytest.approx(accuracy(truth.counts(), truth, 0))
        assert compared.gap == pytest.approx(compared.true_counts - max(compared.accuracy.values()))


def test_an_attack_takes_the_repair_with_which_it_finds_most(found, truth):
    noisy = found.releases[2]
    by_repair = {
        name: np.mean(
            [
                accuracy(
                    REPAIRS[name](GeometricNoise(epsilon=0.3, per="event").seeded(seed)(truth.counts()), 24),
                    truth,
                    seed,
                )
                for seed in range(2)
            ]
        )
        for name in noisy.repairs.kept
    }
    risk = noisy.attacks["enhanced"]
    assert risk.repair == max(by_repair, key=by_repair.get)
    assert risk.accuracy.value == pytest.approx(max(by_repair.values()))


def test_the_attacker_knows_how_many_people_there_are_and_the_guess_stands_beside(found, truth):
    noisy = found.releases[2]
    assert noisy.people_known
    assert noisy.people == noisy.attacks["enhanced"].people == 24
    guesses = [
        rk.repair(GeometricNoise(epsilon=0.3, per="event").seeded(seed)(truth.counts())).people for seed in range(2)
    ]
    assert guesses != [24, 24]
    assert noisy.guessed.people == np.mean(guesses)
    assert noisy.guessed.attack == noisy.strongest.attack
    assert found.given.guessed is None


def test_a_number_that_was_given_is_scaled_to_a_sample(truth):
    given, sampled = audit(
        truth, attacks=[rk.Enhanced()], defences=[Sample(share=0.5, fixed_size=True)], seeds=1, workers=1, people=30
    ).releases
    assert given.people == 30
    assert sampled.people == 15


def test_without_the_truth_there_is_one_repair(truth):
    release = GeometricNoise(epsilon=0.3, per="event")(truth.counts())
    guessing = audit(release, attacks=[rk.Enhanced()], defences=[], seeds=1, workers=1)
    assert guessing.given.repairs is None
    assert not guessing.given.people_known
    assert guessing.given.people == repair(release).people
    assert guessing.given.attacks["enhanced"].repair == next(iter(REPAIRS))
    told = audit(release, attacks=[rk.Enhanced()], defences=[], seeds=1, workers=1, people=24)
    assert told.given.people_known
    assert told.given.people == 24
    defended = audit(truth.counts(), attacks=[rk.Enhanced()], defences=[Suppress(below=2)], seeds=1, workers=1)
    assert [one.people for one in defended.releases] == [24, 24]


def test_frozen_stands_beside_chance_and_naive(found, truth):
    """Everyone stays for all time where the mean counts put them."""
    frozen = found.given.attacks["frozen"]
    assert frozen.repair == "frozen"
    homes = np.array([np.bincount(cells).max() for cells in truth.cells])
    assert frozen.accuracy.value <= homes.sum() / truth.cells.size
    for release in found.releases:
        assert release.attacks["frozen"].accuracy.value > release.attacks["chance"].accuracy.value


class Counted(Defence):
    """A defence that says how often it was applied."""

    calls: list

    def __init__(self):
        self.calls = []

    def settings(self):
        return {}

    def _change(self, release):
        self.calls.append("changed")
        return release

    def coarsen(self, truth):
        self.calls.append("coarsened")
        return truth

    def __repr__(self):
        return "Counted()"


def test_a_defence_is_applied_once(truth):
    defence = Counted()
    audit(truth, attacks=[rk.Baseline(), rk.Enhanced()], defences=[defence], seeds=3, workers=1)
    assert defence.calls == ["changed", "coarsened"]


def test_two_locations_at_the_same_coordinates():
    """Two sectors on one mast: a whole audit with the default defences."""
    city = rk.SyntheticCity(people=20, days=2, step="1h", width_km=4, height_km=4).trajectories()
    xy = city.locations.xy_km.copy()
    xy[1] = xy[0]
    truth = rk.Trajectories(city.cells, rk.Locations(xy), city.calendar)
    found = audit(truth, attacks=[rk.Enhanced()], seeds=1, membership="none", workers=1)
    assert len(found.releases) + len(found.left_out) == 9
    assert any(release.label.startswith("Cells") for release in found.releases)
