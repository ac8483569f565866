"""Who is who, by lists of those whose past fits, is nearly what all pairs say."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.attacks.habits.made import problem_of
from tests.attacks.test_priors import last_days, some

import rekindle as rk
from rekindle.attacks.habits import known
from rekindle.attacks.habits.polish import Profile
from rekindle.attacks.habits.search import HabitModel
from rekindle.attacks.habits.track import track


@pytest.fixture(scope="module")
def city():
    return rk.SyntheticCity(people=70, days=4, step="1h", share_phones_off_at_night=0.3).trajectories()


def made(city, known_people):
    past, today = last_days(city, 2)
    problem = problem_of(today)
    return some(past, known_people), problem, track(problem, 0), today


@pytest.mark.parametrize("number", [70, 25])
def test_costs_are_the_likeness_of_all_pairs(city, number):
    past, problem, tracks, _ = made(city, np.arange(number))
    everyone = np.arange(problem.people)
    hours = known.past_profile(problem, past, everyone).hours[:number]
    plain = known.likeness(hours, Profile.of(problem, [tracks]).hours).T
    costs = known._Unlikeness(problem, tracks, past)
    between = costs.between(everyone, np.arange(number))
    # The same up to a factor and what every pair has in common.
    base = problem.lengths.sum() * np.log(known.UNSEEN / problem.counts.shape[1])
    most = problem.lengths.sum() * np.log1p(problem.counts.shape[1] / known.UNSEEN)
    np.testing.assert_allclose(1 - between, (plain - base) / most, atol=1e-6)
    listed = costs.scan(everyone, np.zeros(costs.likeness.shape[0]), 0.0)
    for person in everyone:
        there = listed.columns[person] >= 0
        columns = listed.columns[person][there]
        others = columns >= number
        assert (listed.costs[person][there][others] == 1.0).all()
        np.testing.assert_allclose(
            listed.costs[person][there][~others], between[person, columns[~others]], atol=1e-12
        )
        assert listed.costs[person].min() == pytest.approx(between[person].min())
    best = plain[linear_sum_assignment(-plain)].sum()
    rows = known.recognise(problem, tracks, past)
    assert len(set(rows.tolist())) == number
    assert plain[rows, np.arange(number)].sum() - base * number >= 0.99 * (best - base * number)


@pytest.mark.parametrize("number", [70, 25])
def test_where_not_all_fit_at_once_blocks_are_better_than_names_alone(city, number, monkeypatch):
    past, problem, tracks, today = made(city, np.arange(number))
    model = HabitModel.learn(problem, [tracks])

    def accuracy(**settings):
        named = known.put_names(problem, model, tracks, past, **settings)
        problem.check(named)
        return (problem.expand(named)[:number] == today.cells[:number]).mean()

    at_once = accuracy()
    assert accuracy(block_people=35) == at_once
    monkeypatch.setattr(known, "fits", lambda problem: False)
    alone, in_blocks = accuracy(), accuracy(block_people=35)
    assert alone < in_blocks < at_once
    assert accuracy(block_people=35, workers=3) == in_blocks
