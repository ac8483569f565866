"""Counts to attack."""

import numpy as np
import pytest
from tests.small import random_truth


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(3), people=9, places=9, steps=36).counts()
