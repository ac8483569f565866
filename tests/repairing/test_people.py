import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import Cap, Chain, GeometricNoise, LaplaceNoise, Round, Suppress
from rekindle.model import Release
from rekindle.repairing import guess_people


@pytest.fixture(scope="module", params=[0, 1, 2])
def city(request):
    return rk.SyntheticCity(people=60, days=3, step="20min", seed=request.param).trajectories()


@pytest.mark.parametrize(
    ("defence", "off"),
    [
        (LaplaceNoise(epsilon=1.0, per="event", seed=0), 1),
        (GeometricNoise(epsilon=0.5, per="event", seed=0), 3),
        (Suppress(below=2), 15),
        (Suppress(below=3, zeros=False), 5),
        (Round(to=2), 8),
        (Cap(at=2), 8),
        (Chain([GeometricNoise(epsilon=1.0, per="event", seed=0), Suppress(below=2)]), 15),
    ],
    ids=lambda value: value.describe() if isinstance(value, rk.defences.Defence) else None,
)
def test_guesses_how_many_people_there_are(city, defence, off):
    assert abs(guess_people(defence(city)) - city.people) <= off


@pytest.mark.parametrize("epsilon", [0.01, 0.001])
@pytest.mark.parametrize("seed", range(4))
def test_a_guess_does_not_follow_wild_noise(epsilon, seed):
    city = rk.SyntheticCity(people=24, days=2, step="30min", seed=seed).trajectories()
    assert guess_people(GeometricNoise(epsilon=epsilon, per="event", seed=seed)(city)) <= 5 * city.people


def test_a_guess_does_not_follow_few_numbers():
    """One number above the threshold among many that are withheld does not stand for hundreds of people."""
    values = np.full((48, 60), np.nan)
    values[:, 0] = 20
    values[0, 0] = 21
    release = Release(values, rk.Locations(np.arange(120.0).reshape(60, 2)), rk.Calendar("2024-03-01", "1h"))
    assert guess_people(release) <= 5 * 21


def test_what_adds_up_is_not_guessed(city):
    values = np.where(city.counts().values == 0, np.nan, city.counts().values)
    assert guess_people(Release(values, city.locations, city.calendar)) == city.people


def test_exact_numbers_say_the_largest_total():
    """Nobody is guessed who was never counted, and nothing is taken for noise."""
    values = np.array([[40, 0], [0, 35], [2, 3]])
    release = Release(values, rk.Locations([[0, 0], [1, 0]]), rk.Calendar("2024-03-01", "1h"))
    assert guess_people(release) == 40


def test_behind_noise_the_largest_total_of_the_path_counts(city):
    cells = city.cells.copy()
    cells[:30, city.steps // 2 :] = rk.AWAY
    half = rk.Trajectories(cells, city.locations, city.calendar)
    assert abs(guess_people(LaplaceNoise(epsilon=3.0, per="event", seed=0)(half)) - 60) <= 4
