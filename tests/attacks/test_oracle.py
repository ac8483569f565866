"""Every step and link of both attacks costs what the paper's equations say, and no assignment costs less."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import oracle
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.attacks import day_by_day

ATTACKS = {
    "baseline": (rk.Baseline, oracle.baseline_cost, 1),
    "enhanced": (rk.Enhanced, oracle.enhanced_cost, 3),
}


def assert_follows_the_equations(name, counts, flows=None, **settings):
    """With flows, before people who meet go on as each other, which is no part of a step."""
    attack, cost, lookback = ATTACKS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(day_by_day, "exchange_towards", lambda tracks, *_, **__: tracks)
        found = attack(**settings).recover(counts, flows=flows)
    lookback = settings.get("lookback_days", lookback)
    away_km = settings.get("away_km")
    if away_km is None:
        away_km = np.hypot(*np.ptp(counts.locations.xy_km, axis=0)) / 2
    cells = found.trajectories.cells
    least, taken, link_least, link_taken = oracle.follow(cells, counts, cost, lookback, away_km, flows)
    np.testing.assert_allclose(found.details.step_costs, least, atol=1e-9)
    np.testing.assert_allclose(taken, least, atol=1e-9)
    np.testing.assert_allclose(found.details.link_costs, link_least, atol=1e-9)
    np.testing.assert_allclose(link_taken, link_least, atol=1e-9)
    assert found.trajectories.counts() == counts
    assert flows is None or found.trajectories.flows() == flows
    assert found.details.gap == 0


@pytest.mark.parametrize("name", ATTACKS)
@settings(max_examples=100, deadline=None)
@given(truth=truths(), seed=st.none() | st.integers(0, 9))
def test_costs_are_those_of_the_paper(name, truth, seed):
    assert_follows_the_equations(name, truth.counts(), seed=seed)


@pytest.mark.parametrize("name", ATTACKS)
@settings(max_examples=100, deadline=None)
@given(truth=truths(away=True), seed=st.none() | st.integers(0, 9), away_km=st.sampled_from([None, 0.0, 0.4, 3.0]))
def test_people_who_come_and_go(name, truth, seed, away_km):
    assert_follows_the_equations(name, truth.counts(), seed=seed, away_km=away_km)


@pytest.mark.parametrize("name", ATTACKS)
def test_many_people_who_come_and_go(name):
    rng = np.random.default_rng(5)
    truth = random_truth(rng, people=40, places=25, steps=30, step="2h", stay=0.7, away=0.5)
    assert_follows_the_equations(name, truth.counts())
    assert_follows_the_equations(name, truth.counts(), away_km=0.6)


@pytest.mark.parametrize("name", ATTACKS)
@settings(max_examples=100, deadline=None)
@given(truth=truths(), seed=st.none() | st.integers(0, 9))
def test_flows(name, truth, seed):
    assert_follows_the_equations(name, truth.counts(), truth.flows(), seed=seed)


@pytest.mark.parametrize("name", ATTACKS)
@settings(max_examples=100, deadline=None)
@given(truth=truths(away=True), seed=st.none() | st.integers(0, 9), away_km=st.sampled_from([None, 0.0, 3.0]))
def test_flows_of_people_who_come_and_go(name, truth, seed, away_km):
    assert_follows_the_equations(name, truth.counts(), truth.flows(), seed=seed, away_km=away_km)


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("away", [0.0, 0.4])
def test_flows_of_many_people(name, away):
    """Many people in few places, who came from everywhere: problems of many groups and destinations."""
    rng = np.random.default_rng(7)
    truth = random_truth(rng, people=40, places=9, steps=30, step="2h", stay=0.3, away=away, lattice=False)
    assert_follows_the_equations(name, truth.counts(), truth.flows())


@pytest.mark.parametrize("lookback", [1, 2, 5])
def test_lookback(lookback):
    truth = random_truth(np.random.default_rng(lookback), people=8, places=6, steps=40, step="4h")
    assert_follows_the_equations("enhanced", truth.counts(), lookback_days=lookback)


@pytest.mark.parametrize("name", ATTACKS)
def test_more_people_and_places(name):
    truth = random_truth(np.random.default_rng(5), people=40, places=25, steps=30, step="2h", stay=0.7)
    assert_follows_the_equations(name, truth.counts())


def test_gain_of_days_of_equal_length_is_the_papers():
    a, b = np.array([[0, 0, 1, 2]]), np.array([[0, 1, 1, 3]])
    both = oracle.entropy([0, 0, 1, 2, 0, 1, 1, 3])
    expected = both - (oracle.entropy([0, 0, 1, 2]) + oracle.entropy([0, 1, 1, 3])) / 2
    assert rk.attacks.InformationGain()(a, b, 4)[0, 0] == pytest.approx(expected)


def test_gain_is_0_for_days_alike_and_1_for_days_apart():
    gain = rk.attacks.InformationGain()
    assert gain(np.array([[0, 1, 1]]), np.array([[1, 0, 1]]), 4)[0, 0] == pytest.approx(0, abs=1e-15)
    assert gain(np.array([[0, 1, 1]]), np.array([[2, 3, 3]]), 4)[0, 0] == pytest.approx(1)
