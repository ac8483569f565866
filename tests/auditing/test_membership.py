"""An audit also tells whether it can be told who is in the data."""

import json

import numpy as np
import pytest

import rekindle as rk

CITY = rk.SyntheticCity(people=12, days=1, step="2h").trajectories()
NOISE = rk.GeometricNoise(epsilon=0.5, per="event")


@pytest.fixture(scope="module")
def found():
    defences = [NOISE, rk.Sample(share=0.5)]
    return rk.audit(CITY, attacks=[rk.Baseline()], defences=defences, seeds=1, workers=1)


def test_each_release_is_tested(found):
    given, noisy, sample = (one.membership["exact"] for one in found.releases)
    assert given.auc == 1.0
    assert given.epsilon == np.inf
    assert 0.5 < noisy.auc < 1.0
    assert noisy.epsilon <= noisy.claimed_per_person
    assert isinstance(sample, str) == rk.Sample(share=0.5).fixed_size


def test_names_are_left_out_of_the_numbers(found):
    # Names that no number could contain by chance.
    ids = [f"name{person:02d}x" for person in range(CITY.people)]
    named = rk.Trajectories(CITY.cells, CITY.locations, CITY.calendar, ids)
    result = rk.audit(named, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1)
    assert "name03x" in json.dumps(result.to_json())
    assert "name" + "03x" not in json.dumps(result.unnamed().to_json())


def test_a_release_of_unknown_origin_says_that_it_cannot_be_tested():
    noisy = NOISE(CITY.counts())
    unknown = rk.Release(noisy.values, noisy.locations, noisy.calendar)
    result = rk.audit(unknown, truth=CITY, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1)
    assert "not known" in result.given.membership["exact"]


def test_none_tests_nothing():
    result = rk.audit(CITY, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1, membership="none")
    assert result.given.membership == {}
