"""The bound on epsilon holds for mechanisms whose epsilon is known, and comes near to it."""

import numpy as np
import pytest

from rekindle.membership.epsilon import counted_epsilon, most_provable_epsilon


def laplace_scores(epsilon, draws, seed):
    random = np.random.default_rng(seed)
    noise = random.laplace(0, 1 / epsilon, (2, draws))
    inside, outside = noise[0] + 1, noise[1]
    return tuple(np.round(epsilon * (np.abs(x) - np.abs(x - 1)), 9) for x in (inside, outside))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_never_above_the_truth_and_near_it(epsilon):
    found = [counted_epsilon(*laplace_scores(epsilon, 20_000, seed), confidence=1 - 1e-6) for seed in range(10)]
    assert max(found) <= epsilon
    assert np.mean(found) > epsilon - 0.35


def test_a_broken_mechanism_is_found():
    # Claimed 1, but the noise was scaled for a sensitivity of one half.
    assert counted_epsilon(*laplace_scores(2.0, 20_000, 0), confidence=1 - 1e-6) > 1.0


def test_what_draws_can_prove():
    perfect = counted_epsilon(np.full(10_000, np.inf), np.full(10_000, -np.inf))
    assert perfect == most_provable_epsilon(10_000)
    # One half chooses the threshold; Clopper-Pearson at 1.25% leaves ln(5000 / 4.4).
    assert perfect == pytest.approx(np.log(5000 / 4.38), abs=0.01)


def test_no_difference_is_no_epsilon():
    random = np.random.default_rng(0)
    assert counted_epsilon(*random.normal(size=(2, 5000))) < 0.2
    assert counted_epsilon(np.zeros(100), np.zeros(100)) == 0.0
