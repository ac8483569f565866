"""The neural model of moves. Without the extra `learned` only what it says then is tested."""

import dataclasses
import importlib.util
import sys
from datetime import datetime

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import neural
from rekindle.attacks.moves import Today
from rekindle.errors import InvalidSetting

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs the extra learned")


@pytest.fixture(scope="module")
def city():
    return rk.SyntheticCity(people=60, days=7, step="30min", seed=3).trajectories()


def some(truth, rows):
    return rk.Trajectories(truth.cells[rows], truth.locations, truth.calendar)


def test_it_says_what_it_needs(city, monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(InvalidSetting, match=r"rekindle-mobility\[learned\]"):
        _ = rk.OtherTraces(some(city, [0, 1]), model="neural").learnt


@pytest.fixture(scope="module")
def traces(city):
    return some(city, np.arange(30))


@pytest.fixture(scope="module")
def model(traces):
    return rk.OtherTraces(traces, model="neural", seed=1).learnt


@needs_jax
def test_chances_add_up(model, city):
    for hour in (3, 9, 18):
        today = Today(city.cells[30:, : 2 * hour + 1].astype(np.int32))
        log = model.next_location(today, datetime(2024, 1, 1, hour))
        assert log.shape == (30, len(city.locations))
        assert np.exp(log).sum(axis=1) == pytest.approx(1.0, abs=1e-6)


@needs_jax
def test_it_learns(model, traces, city):
    """People it has not seen are explained better than by a network that has learnt nothing."""
    blank = neural.first_weights(np.random.default_rng(0), model.traces, model.counted)

    def score(model):
        total = 0.0
        for step in range(10, 47):
            log = model.next_location(Today(city.cells[30:, : step + 1].astype(np.int32)), city.calendar.time(step))
            total += log[np.arange(30), city.cells[30:, step + 1]].sum()
        return total

    assert score(model) > score(dataclasses.replace(model, weights=blank)) + 20


@needs_jax
def test_moves_and_stays_are_as_many_as_in_the_traces(model):
    assert model.moves().sum() == pytest.approx(model.traces.left.sum())
    assert (model.moves().toarray().diagonal() == 0).all()
    assert model.stays().sum() > 0
    assert model.away > 0


@needs_jax
def test_the_same_seed_gives_the_same(traces, model, monkeypatch):
    monkeypatch.setattr(neural, "MOST_UPDATES", 20)
    one, two, other = (rk.OtherTraces(traces, model="neural", seed=seed).learnt.weights for seed in (3, 3, 4))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)


@needs_jax
def test_attacks_use_it(traces, city, model, monkeypatch):
    monkeypatch.setattr(neural, "MOST_UPDATES", 20)
    attacked = some(city, np.arange(30, 60))
    prior = rk.OtherTraces(traces, model="neural")
    assert "neural, seed 0" in repr(prior)
    for attack in (rk.Enhanced(seed=0), rk.Habits(effort="low", workers=1)):
        found = attack.recover(attacked.counts(), prior=prior).trajectories
        assert found.counts() == attacked.counts()


@needs_jax
def test_one_person_and_long_days(monkeypatch):
    """More stays than are read at once, nobody else to hold out, and people who are away."""
    monkeypatch.setattr(neural, "MOST_UPDATES", 20)
    truth = random_truth(np.random.default_rng(2), people=1, places=5, steps=288, step="20min", stay=0.2, away=0.2)
    model = rk.OtherTraces(truth, model="neural").learnt
    log = model.next_location(Today(truth.cells[:, :60].astype(np.int32)), truth.calendar.time(59))
    assert np.isfinite(log).all()
