"""On a synthetic city: what defences do to exposure, attacked through the repair, and to use."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import Chain, LaplaceNoise, Sample, Suppress
from rekindle.evaluation import map_people, utility
from rekindle.repairing import repair


@pytest.fixture(scope="module")
def city():
    return rk.SyntheticCity(people=60, days=3, step="20min").trajectories()


def exposure(defence, city, people=None):
    """Share of everyone's points that were found; people too many or too few count as wrong."""
    coarse = defence.coarsen(city)
    found = rk.Enhanced(seed=0).recover(repair(defence(city), people)).trajectories
    matched = map_people(found, coarse).matched
    right = (found.cells[matched >= 0] == coarse.cells[matched[matched >= 0]]).sum()
    return right / coarse.steps / max(found.people, city.people)


def test_more_noise_exposes_less_in_the_end(city):
    known = [
        exposure(LaplaceNoise(epsilon=e, per="event", seed=0), city, city.people) for e in (0.3, 0.03, 0.003, 0.0003)
    ]
    assert known == sorted(known, reverse=True)
    assert known[0] > 2 * known[-1]


def test_more_suppression_exposes_less(city):
    found = [exposure(defence, city) for defence in (Chain(), Suppress(below=2), Suppress(below=5))]
    assert found == sorted(found, reverse=True)


def test_suppression_of_ones_alone_is_undone(city):
    """Where zeros are published, a number that is withheld below 2 can only be 1."""
    assert repair(Suppress(below=2, zeros=False)(city)) == city.counts()


def test_stronger_defences_leave_less_use(city):
    counts = city.counts()
    for stronger in (
        [LaplaceNoise(epsilon=e, per="event", seed=0) for e in (3.0, 0.3, 0.03)],
        [Suppress(below=k) for k in (2, 3, 5)],
    ):
        left = [utility(counts, defence(city)) for defence in stronger]
        assert np.all(np.diff([one.count_error for one in left]) > 0)
        assert np.all(np.diff([one.flow_error for one in left]) > 0)
        assert np.all(np.diff([one.busiest_rank_correlation for one in left]) < 0)


def test_who_is_not_in_a_sample_is_not_exposed(city):
    assert exposure(Sample(share=0.5, seed=1), city) <= 0.5
