"""The likelihood of published numbers: it adds up to 1, and agrees with what is drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekindle as rk
from rekindle.errors import InvalidSetting
from rekindle.membership.channel import Channel, rebuild_defence

CALENDAR = rk.Calendar("2024-01-01", "1h", 24)
AFTER = [
    [],
    [rk.Round(to=5)],
    [rk.Suppress(below=3)],
    [rk.Round(to=5), rk.Suppress(below=10)],
    [rk.Suppress(below=4), rk.Round(to=3)],
    [rk.Cap(at=6)],
    [rk.Cap(at=6), rk.Round(to=4)],
]


def outcomes(channel, count, draws=200_000):
    """What is drawn, as values and their frequencies; NaN is one of them."""
    drawn = channel.draw(np.array([float(count)]), draws, np.random.default_rng(0)).ravel()
    values, frequency = np.unique(drawn, return_counts=True)
    return values, frequency / draws


@pytest.mark.parametrize("after", AFTER, ids=lambda chain: " + ".join(one.label for one in chain) or "alone")
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_geometric_noise_has_the_likelihood_of_what_is_drawn(after, epsilon):
    channel = Channel.of(rk.Chain([rk.GeometricNoise(epsilon=epsilon, per="event", seed=0), *after]), CALENDAR)
    values, frequency = outcomes(channel, 4)
    likelihood = np.exp(channel.log_likelihood(values[:, None], np.array([4.0])))[:, 0]
    np.testing.assert_allclose(likelihood, frequency, atol=0.004)
    assert likelihood.sum() == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize("after", AFTER[1:], ids=lambda chain: " + ".join(one.label for one in chain))
def test_laplace_noise_that_is_rounded_or_withheld(after):
    channel = Channel.of(rk.Chain([rk.LaplaceNoise(epsilon=0.5, per="event", seed=0), *after]), CALENDAR)
    values, frequency = outcomes(channel, 4)
    often = frequency > 0.01
    likelihood = np.exp(channel.log_likelihood(values[:, None], np.array([4.0])))[:, 0]
    np.testing.assert_allclose(likelihood[often], frequency[often], atol=0.004)


@settings(max_examples=50, deadline=None)
@given(st.floats(-20, 20), st.integers(0, 10), st.floats(0.1, 3))
def test_laplace_ratio_is_the_formula_of_the_paper(published, others, epsilon):
    channel = Channel.of(rk.LaplaceNoise(epsilon=epsilon, per="event", seed=0), CALENDAR)
    value, count = np.array([[published]]), np.array([float(others)])
    ratio = channel.log_likelihood(value, count + 1) - channel.log_likelihood(value, count)
    difference = published - others
    np.testing.assert_allclose(ratio, (abs(difference) - abs(difference - 1)) * epsilon, atol=1e-9)


@pytest.mark.parametrize("after", AFTER, ids=lambda chain: " + ".join(one.label for one in chain) or "alone")
def test_without_noise_only_the_published_outcome_is_possible(after):
    channel = Channel.of(rk.Chain(after), CALENDAR)
    counts = np.arange(12.0)
    published = channel.draw(counts, 1, np.random.default_rng(0))
    assert (channel.log_likelihood(published, counts) == 0).all()
    for count in counts:
        same = np.isclose(published[0], published[0, int(count)], equal_nan=True)
        likelihood = channel.log_likelihood(np.full((1, 12), published[0, int(count)]), counts)[0]
        np.testing.assert_array_equal(np.isfinite(likelihood), same)


def test_a_release_states_enough_to_draw_it_again():
    counts = rk.SyntheticCity(people=12, days=1).trajectories().counts()
    chain = rk.Chain([rk.GeometricNoise(epsilon=1.0, per="event", seed=3), rk.Suppress(below=2)])
    assert rebuild_defence(chain(counts).defences).describe() == chain.describe()


def test_defences_without_an_exact_test_say_so():
    with pytest.raises(InvalidSetting, match="after noise"):
        Channel.of(
            rk.Chain([rk.GeometricNoise(epsilon=1.0, per="event", seed=0), rk.Suppress(below=3, zeros=False)]),
            CALENDAR,
        )
