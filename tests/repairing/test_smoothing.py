import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.small import truths

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.defences import (
    PRESETS,
    Cap,
    Chain,
    GeometricNoise,
    LaplaceNoise,
    Round,
    Suppress,
)
from rekindle.model import Release
from rekindle.repairing import repair
from rekindle.repairing.smoothing import nearest_counts


@settings(max_examples=60, deadline=None)
@given(truth=truths())
def test_untouched_counts_come_back(truth):
    counts = truth.counts()
    assert repair(Release.of(counts)) == counts
    assert repair(counts) == counts
    assert repair(counts, truth.people) == counts


published = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
    elements=st.one_of(st.just(np.nan), st.integers(-3, 30).map(float), st.floats(-1e4, 1e4)),
).filter(lambda values: not np.isnan(values).all())


@settings(max_examples=100, deadline=None)
@given(values=published, people=st.one_of(st.none(), st.integers(1, 50)))
def test_any_release_becomes_valid_counts(values, people):
    places = rk.Locations(np.column_stack([np.arange(values.shape[1]), np.zeros(values.shape[1])]))
    release = Release(values, places, rk.Calendar("2024-03-01", "1h"))
    before = release.values.copy()
    counts = repair(release, people)
    assert people is None or counts.people == people
    assert counts == repair(release, people)
    assert np.array_equal(release.values, before, equal_nan=True)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), places=st.integers(1, 4), people=st.integers(1, 6))
def test_the_table_is_the_nearest_of_all(data, places, people):
    numbers = st.one_of(st.floats(-8, 8), st.integers(-16, 16).map(lambda half: half / 2))
    guess = data.draw(hnp.arrays(np.float64, (1, places), elements=numbers))
    low = data.draw(hnp.arrays(np.float64, (1, places), elements=st.integers(0, 2)))
    high = low + data.draw(
        hnp.arrays(np.float64, (1, places), elements=st.one_of(st.integers(0, 3), st.just(np.inf)))
    )
    fitting = [
        table
        for table in itertools.product(range(people + 1), repeat=places)
        if sum(table) == people and (low[0] <= table).all() and (table <= high[0]).all()
    ]
    found = nearest_counts(guess, people, low, high, np.zeros(guess.shape, bool))
    assert found.sum() == people
    assert (found >= 0).all()
    if fitting:
        assert (low <= found).all()
        assert (found <= high).all()
        best = min(((np.array(table) - guess[0]) ** 2).sum() for table in fitting)
        assert ((found - guess) ** 2).sum() == pytest.approx(best, abs=1e-6)


def test_people_beyond_the_limits_go_where_a_cap_may_hide_them():
    limits = np.array([[3.0, 1.0, 0.0]])
    found = nearest_counts(limits, 9, limits, limits, limits == 3)
    assert found.tolist() == [[8, 1, 0]]


def naive(release, people):
    """Withheld is 0, negative is 0, and the rest in proportion."""
    values = np.maximum(np.nan_to_num(release.values), 0.0)
    sums = values.sum(axis=1, keepdims=True)
    share = np.where(sums > 0, values / np.maximum(sums, 1e-9), 1 / values.shape[1]) * people
    return nearest_counts(share, people, np.zeros(share.shape), np.full(share.shape, np.inf), share < 0)


@pytest.fixture(scope="module", params=[0, 1, 2])
def city(request):
    return rk.SyntheticCity(people=60, days=3, step="20min", seed=request.param).trajectories()


@pytest.mark.parametrize(
    "defence",
    [
        *(LaplaceNoise(epsilon=epsilon, per="event", seed=0) for epsilon in (3.0, 1.0, 0.3, 0.1, 0.03)),
        GeometricNoise(epsilon=0.5, per="event", seed=0),
        Suppress(below=2),
        Suppress(below=4),
        Suppress(below=3, zeros=False),
        Round(to=2),
        Round(to=5),
        Cap(at=2),
        Chain([GeometricNoise(epsilon=1.0, per="event", seed=0), Suppress(below=2)]),
        Chain([Suppress(below=3), Round(to=5)]),
    ],
    ids=lambda defence: defence.describe(),
)
def test_better_than_a_naive_repair(city, defence):
    counts, release = city.counts().values, defence(city)
    ours = np.abs(repair(release, city.people).values - counts).mean()
    assert ours < np.abs(naive(release, city.people) - counts).mean()


def test_what_is_published_exactly_stays(city):
    counts = city.counts()
    release = Suppress(below=3)(counts)
    found = repair(release, city.people).values
    assert np.array_equal(found[~release.withheld], counts.values[~release.withheld])
    assert found[release.withheld].max() <= 2


def test_rounded_numbers_stay_within_their_interval(city):
    counts = city.counts()
    found = repair(Round(to=2)(counts), city.people).values
    assert np.array_equal(np.floor(found / 2 + 0.5), np.floor(counts.values / 2 + 0.5))


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
    assert abs(repair(defence(city)).people - city.people) <= off


def test_withheld_is_zero_where_everything_adds_up(city):
    counts = city.counts()
    values = np.where(counts.values == 0, np.nan, counts.values)
    assert repair(Release(values, counts.locations, counts.calendar)) == counts


@pytest.mark.parametrize("people", [0, -1, 2.5, True, "60"])
def test_refuses_people(city, people):
    with pytest.raises(rk.InvalidSetting, match="number of people"):
        repair(city.counts(), people)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_no_preset_crashes_any_attack(attack, preset):
    truth = rk.SyntheticCity(people=300, days=2, step="2h", width_km=5, height_km=5).trajectories()
    counts = repair(preset.seeded(0)(truth))
    assert attack().recover(counts).trajectories.counts() == counts
