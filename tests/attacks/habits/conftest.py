"""What the tests of the parts of Habits share."""

import numpy as np
import pytest
from tests.attacks.habits.made import problem_of
from tests.small import random_truth

from rekindle.attacks.habits.track import track


@pytest.fixture(scope="session")
def problem():
    return problem_of(random_truth(np.random.default_rng(5), people=10, places=9, steps=96, step="1h", stay=0.8))


@pytest.fixture(scope="session")
def tracks(problem):
    return track(problem, 0)
