"""A confidence from the agreement of several recoveries."""

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import confidence_from_agreement
from rekindle.errors import InvalidData


@pytest.fixture(scope="module")
def counts():
    truth = random_truth(np.random.default_rng(1), people=12, places=9, steps=70, step="2h", start="2024-03-01 04:00")
    return truth.counts()


def test_agreement_of_row_orders(counts):
    orders = [rk.Enhanced(seed=seed).recover(counts) for seed in range(3)]
    sure = confidence_from_agreement(orders)
    assert sure.trajectories is orders[0].trajectories
    assert sure.confidence.min() >= np.float32(1 / 3)
    assert np.array_equal(confidence_from_agreement([orders[0], orders[0]]).confidence, np.ones((12, 70), np.float32))
    with pytest.raises(rk.errors.InvalidData, match="at least two"):
        confidence_from_agreement(orders[:1])
    other = rk.Enhanced().recover(counts.part(slice(0, 34)))
    with pytest.raises(rk.errors.InvalidData, match="same counts"):
        confidence_from_agreement([orders[0], other])


@pytest.fixture(scope="module")
def few():
    return random_truth(np.random.default_rng(2), people=4, places=4, steps=12, step="4h").counts()


def test_agreement_is_the_share_of_recoveries_that_say_the_same(few):
    several = [rk.Enhanced(seed=seed).recover(few) for seed in range(3)]
    found = confidence_from_agreement([several[0], several[0], several[0]])
    assert (found.confidence == 1).all()
    assert found.trajectories is several[0].trajectories
    found = confidence_from_agreement(several)
    assert found.confidence.shape == (4, 12)
    assert set(np.unique(np.round(found.confidence * 3, 6))) <= {1.0, 2.0, 3.0}
    with pytest.raises(InvalidData, match="There are 1 recoveries"):
        confidence_from_agreement(several[:1])
    other = random_truth(np.random.default_rng(9), people=4, places=4, steps=12, step="4h").counts()
    with pytest.raises(InvalidData, match="not of the same counts"):
        confidence_from_agreement([several[0], rk.Enhanced().recover(other)])
