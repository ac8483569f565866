"""Polishing: exact counts, and what everybody agrees on stays."""

import numpy as np
import pytest
from tests.attacks.habits.made import line, problem_of
from tests.small import random_truth

from rekindle.attacks.habits.consensus import decode
from rekindle.attacks.habits.polish import Rates, polish
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.search import (
    HabitModel,
)
from rekindle.attacks.habits.track import track


def test_polish_keeps_counts_and_unanimous_people():
    rows = [([home] * 11 + [2] * 2 + [home] * 11) * 6 for home in (0, 4)]
    made = problem_of(line(*rows))
    right = np.searchsorted(made.places, np.array(rows)[:, made.starts[:-1]]).astype(np.int32)
    found, probability = polish(made, HabitModel.learn(made, [right]), [right, right])
    assert np.array_equal(found, right)
    assert probability.min() > 0.9


def test_polish_has_exact_counts_on_noise(problem):
    answers = [track(problem, seed) for seed in range(3)]
    found, probability = polish(problem, HabitModel.learn(problem, answers), answers, rounds=2)
    assert np.array_equal(count(found, problem.counts.shape[1]), problem.counts)
    assert probability.min() >= 0
    assert probability.max() <= 1 + 1e-6


def test_parts_keep_the_counts_where_people_come_and_go():
    random = np.random.default_rng(5)
    made = problem_of(random_truth(random, people=10, places=9, steps=96, step="1h", stay=0.8, away=0.4))
    answers = [track(made, seed, backwards=bool(seed % 2), noise=1.0) for seed in range(3)]
    for each in answers:
        made.check(each)
        made.check(relink(made, each, 1))
    made.check(polish(made, HabitModel.learn(made, answers), answers, rounds=2)[0])
    made.check(decode(made, answers)[0])


def test_rates_find_two_kinds_of_stay():
    random = np.random.default_rng(0)
    dwells = np.concatenate([random.geometric(0.5, 3000), random.geometric(0.01, 1000)])
    rates = Rates.learn(dwells)
    assert rates.leave == pytest.approx(0.01, rel=0.15)
    assert rates.pass_on == pytest.approx(0.5 * 0.75, rel=0.15)
    assert Rates.learn(np.empty(0, np.int64)).leave > 0
