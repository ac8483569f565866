"""The search by exchanges, against a plain score."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.attacks.habits.made import line, problem_of
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits.problem import count
from rekindle.attacks.habits.rng import generator
from rekindle.attacks.habits.search import (
    BIN_PRIOR,
    PLACE_PRIOR,
    HabitModel,
    SwapSearch,
)
from rekindle.attacks.habits.track import track


def test_absence_has_lengths_of_its_own():
    """Phones are off for eight hours every night; nobody stays anywhere else for so long."""
    truth = line(*[([rk.AWAY] * 8 + [a] * 4 + [b] * 4 + [a] * 4 + [b] * 4) * 5 for a, b in ((0, 1), (3, 4))])
    made = problem_of(truth)
    index = {place: number for number, place in enumerate(made.places.tolist())}
    tracks = np.vectorize(index.get)(truth.cells[:, made.starts[:-1]]).astype(np.int32)
    model = HabitModel.learn(made, [tracks])
    assert model.dwells[made.away].argmax() == 3
    assert model.dwells[0].argmax() == 2
    # From b they go away, and return to a.
    assert model.back < 0.2
    assert model.moves[index[1], made.away] > 0.3


def plain_score(row, problem, model):
    """Log probability of a person's moves, stays and places, each given those before."""
    moved, left, stayed, at, at_bin = Counter(), Counter(), Counter(), Counter(), Counter()
    total, since, seen = 0.0, 0, None
    for tick, here in enumerate(map(int, row)):
        if tick and row[tick - 1] != here:
            last, kind = int(row[tick - 1]), min(11, int(math.log2(problem.starts[tick] - since)))
            usual = model.moves[last, here]
            if last == problem.away and seen is not None:
                usual = (1 - model.back) * usual + model.back * (here == seen)
            seen = last
            trust, lengths = (2, 2), 1
            if problem.away < 0 and problem.flows is None:
                trust, lengths = (4, 16), 2**kind
            total += math.log((moved[last, here] + trust[0] * usual) / (left[last] + trust[0]))
            stay = (stayed[last, kind] + trust[1] * model.dwells[last, kind]) / (left[last] + trust[1])
            total += math.log(stay / lengths)
            moved[last, here] += 1
            left[last] += 1
            stayed[last, kind] += 1
            since = problem.starts[tick]
        for sample in range(problem.samples[tick], problem.samples[tick + 1]):
            part = int(problem.bins[sample])
            total += 0.25 * (math.log(at[here] + PLACE_PRIOR) + math.log(at_bin[here, part] + BIN_PRIOR))
            at[here] += 1
            at_bin[here, part] += 1
    return total


@pytest.mark.parametrize("away", [0.0, 0.3])
def test_score_equals_the_plain_one_before_and_after_the_search(away):
    random = np.random.default_rng(5)
    problem = problem_of(random_truth(random, people=10, places=9, steps=96, step="1h", stay=0.8, away=away))
    tracks = track(problem, 0)
    model = HabitModel.learn(problem, [tracks])
    chain = SwapSearch(problem, model, tracks, generator(0))
    assert chain.scores == pytest.approx([plain_score(row, problem, model) for row in tracks])
    before = chain.score
    assert chain.run(500) > 0
    assert np.array_equal(count(chain.tracks, problem.counts.shape[1]), problem.counts)
    assert chain.scores == pytest.approx([plain_score(row, problem, model) for row in chain.tracks])
    assert chain.score > before
    assert not np.array_equal(chain.tracks, tracks)


def test_an_exchange_at_a_meeting_repairs_two_people():
    """Two people meet at noon every day; once their ways were exchanged. The search exchanges them back."""
    rows = [([home] * 11 + [2] * 2 + [home] * 11) * 6 for home in (0, 4)]
    made = problem_of(line(*rows))
    right = np.searchsorted(made.places, np.array(rows)[:, made.starts[:-1]]).astype(np.int32)
    wrong = right.copy()
    wrong[:, made.starts[:-1] >= 60] = wrong[::-1, made.starts[:-1] >= 60]
    chain = SwapSearch(made, HabitModel.learn(made, [wrong]), wrong, generator(0))
    assert SwapSearch(made, chain.model, right, generator(0)).score > chain.score
    chain.run(200)
    assert sorted(chain.tracks.tolist()) == sorted(right.tolist())
