import math
import sys

import numpy as np
import pytest
from scipy import stats

import rekindle as rk
from rekindle.defences import Cap, Chain, CoarserTime, GeometricNoise, LaplaceNoise, Round, Sample, Suppress, budgets
from rekindle.model import Release

calendar = rk.Calendar("2024-03-01", "10min", 144 * 7)
places = rk.Locations(np.random.default_rng(0).uniform(0, 9, (40, 2)), public=True)
empty = np.zeros((600, 40), int)
empty[:, 0] = 1
counts = rk.Counts(empty, places, rk.Calendar("2024-03-01", "10min"))


def noise_of(release):
    return (release.values - counts.values).ravel()


@pytest.mark.parametrize("kind", [LaplaceNoise, GeometricNoise])
@pytest.mark.parametrize(
    ("epsilon", "per", "event", "day", "person"),
    [
        (0.5, "event", 0.5, 72.0, 504.0),
        (2.64, "person-day", 2.64 / 144, 2.64, 2.64 * 7),
        (10.0, "person", 10 / 1008, 10 / 7, 10.0),
    ],
)
def test_budget_is_converted(kind, epsilon, per, event, day, person):
    budget = kind(epsilon=epsilon, per=per).budget(calendar)
    assert budget.per_event == pytest.approx(event)
    assert budget.per_person_day == pytest.approx(day)
    assert budget.per_person == pytest.approx(person)
    assert budget.scale == pytest.approx(1 / event)
    assert kind(epsilon=epsilon, per=per, neighbours="substitute").budget(calendar).scale == pytest.approx(2 / event)


def test_budget_of_less_than_a_day():
    budget = LaplaceNoise(epsilon=1.0, per="person-day").budget(calendar.closed_at(10))
    assert budget.per_person_day == budget.per_person == pytest.approx(1.0)


def test_the_conversion_is_shown():
    text = LaplaceNoise(epsilon=2.64, per="person-day").budget(calendar).describe()
    assert "0.0183333 x 144 steps = 2.64" in text
    assert "0.0183333 x 1008 steps = 18.48" in text
    assert "for substitute multiply by 2" in text
    assert "sample" not in text.split("without a sample")[0]
    assert "scale 54.5455 people" in text


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_poisson_sample_amplifies(share):
    chain = Chain([Sample(share=share), GeometricNoise(epsilon=2.0, per="person")])
    (budget,) = budgets(chain, calendar)
    assert budget.spent("person") == pytest.approx(math.log(1 + share * (math.exp(2.0) - 1)))
    assert budget.scale == pytest.approx(1008 / 2)
    assert f"with the sample of {share} before it" in budget.describe()
    assert f"{budget.spent('person'):.6g} per person" in budget.describe()
    assert budget.spent("event") <= budget.per_event
    assert budget.spent("person-day") <= budget.per_person_day


def test_amplification_where_a_record_is_substituted():
    chain = Chain([Sample(share=0.5), GeometricNoise(epsilon=2.0, per="person", neighbours="substitute")])
    assert budgets(chain, calendar)[0].spent("person") == pytest.approx(math.log((1 + math.e) / (1 + 1 / math.e)))


def test_an_event_is_given_away_by_the_others_of_its_person():
    """With a large budget the other steps tell who was drawn, and nothing is gained; alone, an event is like a person."""
    chain = Chain([Sample(share=0.5), GeometricNoise(epsilon=1.0, per="event")])
    assert budgets(chain, calendar)[0].spent("event") == pytest.approx(1.0)
    assert budgets(chain, calendar.closed_at(1))[0].spent("event") == pytest.approx(math.log(0.5 * math.e + 0.5))


def test_a_sample_of_fixed_size_needs_twice_the_noise():
    for neighbours, scale in (("add-remove", 2.0), ("substitute", 2.0)):
        noise = GeometricNoise(epsilon=1.0, per="event", neighbours=neighbours)
        (budget,) = budgets(Chain([Sample(share=0.5, fixed_size=True), noise]), calendar)
        assert budget.scale == pytest.approx(scale)
        assert budget.spent("event") == pytest.approx(1.0)
    assert "displace" in budgets(Chain([Sample(share=0.5, fixed_size=True), LaplaceNoise(epsilon=1, per="event")]), calendar)[0].describe()  # fmt: skip


def test_the_noise_that_is_drawn_is_that_of_the_budget():
    truth = rk.Trajectories(np.zeros((9, 600), int), places, rk.Calendar("2024-03-01", "10min"))
    noise = LaplaceNoise(epsilon=1.0, per="event")
    for sample, scale in ((Sample(share=0.5), 1.0), (Sample(share=0.5, fixed_size=True), 2.0)):
        values = Chain([sample, noise]).seeded(3)(truth).values[:, 1:]
        assert np.abs(values).mean() == pytest.approx(scale, rel=0.05)


@pytest.mark.parametrize("public", [None, False])
def test_noise_for_publication_needs_public_locations(public):
    hidden = rk.Counts(empty, places.declare_public(public), counts.calendar)
    with pytest.raises(rk.errors.InvalidSetting, match="says by itself where somebody was") as error:
        LaplaceNoise(epsilon=1.0, per="event")(hidden)
    assert error.value.settings == ("public_locations",)
    LaplaceNoise(epsilon=1.0, per="event", seed=0)(hidden)


def test_longer_steps_need_less_noise():
    noise = LaplaceNoise(epsilon=1.0, per="person-day", seed=0)
    often, seldom = noise(counts), Chain([CoarserTime(step="2h"), noise])(counts)
    assert np.abs(noise_of(often)).mean() == pytest.approx(144, rel=0.05)
    assert np.abs(seldom.values).mean() == pytest.approx(12, rel=0.1)


def test_simulated_laplace_noise():
    drawn = noise_of(LaplaceNoise(epsilon=0.5, per="event", seed=3)(counts))
    assert stats.kstest(drawn, stats.laplace(scale=2.0).cdf).pvalue > 1e-3


def test_simulated_geometric_noise():
    drawn = noise_of(GeometricNoise(epsilon=0.5, per="event", neighbours="substitute", seed=3)(counts))
    assert np.array_equal(drawn, np.rint(drawn))
    value, frequency = np.unique(np.clip(drawn, -12, 12), return_counts=True)
    law = stats.dlaplace(0.25)
    expected = law.pmf(value)
    expected[0] = expected[-1] = law.cdf(-12)
    assert stats.chisquare(frequency, expected * len(drawn)).pvalue > 1e-3


def test_zeros_are_noisy_too():
    assert (LaplaceNoise(epsilon=1.0, per="event", seed=0)(counts).values[:, 1:] != 0).all()


@pytest.mark.parametrize("kind", [LaplaceNoise, GeometricNoise])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_simulated_like_opendp(kind, neighbours):
    pytest.importorskip("opendp", reason="OpenDP is not installed (extra dp)")
    setting = {"epsilon": 0.7, "per": "event", "neighbours": neighbours}
    published, simulated = noise_of(kind(**setting)(counts)), noise_of(kind(**setting, seed=1)(counts))
    assert stats.ks_2samp(published, simulated).pvalue > 1e-6
    assert np.abs(published).mean() == pytest.approx(np.abs(simulated).mean(), rel=0.05)
    if kind is GeometricNoise:
        assert np.array_equal(published, np.rint(published))


def test_opendp_draws_anew():
    pytest.importorskip("opendp", reason="OpenDP is not installed (extra dp)")
    noise = GeometricNoise(epsilon=0.1, per="event", seed=1).for_publication()
    assert noise.seed is None
    first, second = noise(counts), noise(counts)
    assert first != second
    assert not first.defences[0].simulated


def test_without_opendp_nothing_is_published(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(rk.errors.InvalidSetting, match=r"pip install 'rekindle-mobility\[dp\]'"):
        LaplaceNoise(epsilon=1.0, per="event")(counts)
    simulated = LaplaceNoise(epsilon=1.0, per="event", seed=0)(counts)
    assert simulated.defences[0].simulated
    assert "not for publication" in simulated.describe()


@pytest.mark.parametrize("before", [Suppress(below=1), Round(to=2), GeometricNoise(epsilon=1, per="event", seed=0)])
def test_noise_comes_before_what_breaks_its_budget(before):
    with pytest.raises(rk.errors.InvalidSetting, match="its budget would not be what it says"):
        Chain([before, GeometricNoise(epsilon=1.0, per="event", seed=0)])(rk.Counts([[2, 4]] * 3, rk.Locations([[0, 0], [1, 0]]), rk.Calendar("2024-03-01", "1h")))  # fmt: skip
    with pytest.raises(rk.errors.InvalidSetting, match="withheld or not whole"):
        GeometricNoise(epsilon=1.0, per="event", seed=0)(Release([[0.5]], rk.Locations([[0, 0]]), rk.Calendar("2024-03-01", "1h")))  # fmt: skip


def test_noise_may_follow_these():
    truth = rk.SyntheticCity(people=10, days=1, step="1h").trajectories()
    chain = Chain(
        [Sample(share=0.5), CoarserTime(step="2h"), Cap(at=2), LaplaceNoise(epsilon=1.0, per="event", seed=0)]
    )
    assert len(chain(truth).defences) == 4


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"epsilon": 0, "per": "event"}, "`epsilon` is 0"),
        ({"epsilon": 1, "per": "week"}, "`per` is 'week'; choose one of event, person-day, person"),
        ({"epsilon": 1, "per": "event", "neighbours": "all"}, "`neighbours` is 'all'"),
        ({"epsilon": 1, "per": "event", "seed": 1.5}, "`seed` is 1.5"),
    ],
)
def test_refuses(settings, problem):
    with pytest.raises(rk.errors.InvalidSetting, match=problem):
        LaplaceNoise(**settings)


def test_refuses_a_calendar_without_end():
    with pytest.raises(rk.errors.InvalidData, match="no end"):
        LaplaceNoise(epsilon=1, per="person").budget(rk.Calendar("2024-03-01", "1h"))
