"""Small nouns to test with."""

import pytest

import rekindle as rk

LOCATIONS = rk.Locations([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
HOURLY = rk.Calendar("2024-01-01", "1h")


def refuses(words, call, *arguments, **settings):
    with pytest.raises(rk.errors.InvalidData) as error:
        call(*arguments, **settings)
    for word in words:
        assert word in str(error.value)


AWAY_TRUTH = rk.Trajectories(
    [[0, rk.AWAY, 1], [rk.AWAY] * 3, [1, rk.AWAY, rk.AWAY]],
    LOCATIONS,
    HOURLY,
    observed=[[True, False, False]] + [[False] * 3] * 2,
)
