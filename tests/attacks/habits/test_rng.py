"""Random numbers in kernels."""

import numpy as np

from rekindle.attacks.habits.rng import generator, uniform, whole


def test_random_numbers_are_even_and_repeatable():
    state = generator(1, 2)
    drawn = np.array([uniform(state) for _ in range(4000)])
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.02
    assert {whole(state, 3) for _ in range(100)} == {0, 1, 2}
    assert uniform(generator(1, 2)) == drawn[0]
