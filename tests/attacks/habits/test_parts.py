"""The parts of Habits, each against a case worked out by hand or a plain reference."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits.consensus import align, decode
from rekindle.attacks.habits.polish import Rates, polish
from rekindle.attacks.habits.problem import Problem, count, spacing
from rekindle.attacks.habits.relink import POWER, SEAM, relink
from rekindle.attacks.habits.rng import generator, uniform, whole
from rekindle.attacks.habits.search import (
    BIN_PRIOR,
    DWELL_WEIGHT,
    MOVE_WEIGHT,
    PLACE_PRIOR,
    HabitModel,
    SwapSearch,
)
from rekindle.attacks.habits.track import assign, track


def problem_of(truth):
    counts = truth.counts()
    return Problem.of(counts.values, counts.locations, counts.calendar, counts.people)


@pytest.fixture(scope="module")
def problem():
    return problem_of(random_truth(np.random.default_rng(5), people=10, places=9, steps=96, step="1h", stay=0.8))


@pytest.fixture(scope="module")
def tracks(problem):
    return track(problem, 0)


def line(*rows, step="1h"):
    places = rk.Locations([[float(x), 0.0] for x in range(max(map(max, rows)) + 1)])
    return rk.Trajectories(np.array(rows), places, rk.Calendar("2024-03-01", step, len(rows[0])))


def test_problem_keeps_used_places_and_changes_only():
    made = problem_of(line([0, 0, 0, 3, 3], [1, 1, 1, 1, 1]))
    assert made.places.tolist() == [0, 1, 3]
    assert made.starts.tolist() == [0, 3, 5]
    assert made.counts.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert made.expand(np.array([[0, 2], [1, 1]])).tolist() == [[0, 0, 0, 3, 3], [1, 1, 1, 1, 1]]
    with pytest.raises(rk.errors.InvalidData, match="counts"):
        made.check(np.array([[0, 0], [1, 1]]))
    with pytest.raises(rk.errors.InvalidData, match="shape"):
        made.check(np.array([[0, 2]]))


def test_away_is_one_more_place_where_somebody_ever_is():
    made = problem_of(line([0, 0, rk.AWAY, 3, 3], [1, 1, 1, 1, 1], [rk.AWAY] * 5))
    assert made.places.tolist() == [0, 1, 3, rk.AWAY]
    assert (made.away, made.people, len(made.xy)) == (3, 3, 3)
    assert made.counts.tolist() == [[1, 1, 0, 1], [0, 1, 0, 2], [0, 1, 1, 1]]
    assert made.expand(np.array([[0, 3, 2]])).tolist() == [[0, 0, rk.AWAY, 3, 3]]
    assert problem_of(line([0, 0, 3], [1, 1, 1])).away == -1


def test_spacing_is_the_least_distance_between_different_centres():
    xy = np.random.default_rng(0).uniform(0, 10, (40, 2))
    gaps = np.hypot(*(xy[:, None] - xy).T)
    assert spacing(np.concatenate([xy, xy[:1]])) == pytest.approx(gaps[gaps > 0].min())
    assert spacing(xy[:1]) == 1.0


def test_random_numbers_are_even_and_repeatable():
    state = generator(1, 2)
    drawn = np.array([uniform(state) for _ in range(4000)])
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.02
    assert {whole(state, 3) for _ in range(100)} == {0, 1, 2}
    assert uniform(generator(1, 2)) == drawn[0]


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_assignment_is_optimal(size):
    cost = np.random.default_rng(size).integers(0, 20, (size, size)).astype(float)
    chosen = assign(cost)
    assert sorted(chosen) == list(range(size))
    rows, columns = linear_sum_assignment(cost)
    assert cost[np.arange(size), chosen].sum() == pytest.approx(cost[rows, columns].sum())


def test_last_in_first_out():
    """Someone passes a place where another has long been: it is the passer who goes on."""
    truth = line([1] * 12, [0] * 8 + [1] + [2] * 3)
    for backwards in (False, True):
        found = problem_of(truth).expand(track(problem_of(truth), 0, backwards=backwards))
        assert sorted(found.tolist()) == sorted(truth.cells.tolist())


def test_who_was_seen_last_in_a_place_returns_there():
    """Two phones are off at night, each at home; they are on again in the other order."""
    one = [0] * 4 + [rk.AWAY] * 4 + [0] * 4
    other = [4] * 3 + [rk.AWAY] * 4 + [4] * 5
    truth = line(one, other)
    for backwards in (False, True):
        found = problem_of(truth).expand(track(problem_of(truth), 0, backwards=backwards))
        assert sorted(found.tolist()) == sorted(truth.cells.tolist())


def test_one_goes_away_while_another_returns_far_off():
    """The number of those who are away does not change, but nobody jumps over the whole line."""
    truth = line([0] * 6 + [rk.AWAY] * 6, [rk.AWAY] * 6 + [30] * 6, [1] * 12)
    found = problem_of(truth).expand(track(problem_of(truth), 0))
    assert sorted(found.tolist()) == sorted(truth.cells.tolist())


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


def test_tracks_have_the_counts(problem):
    for seed in range(4):
        found = track(problem, seed, backwards=bool(seed % 2), noise=1.0)
        assert np.array_equal(count(found, problem.counts.shape[1]), problem.counts)


def test_segments_go_to_whom_they_resemble():
    """Two people whose tracks were exchanged on the third of five days get their own day back."""
    one, other = ([0] * 12 + [1] * 12) * 5, ([3] * 12 + [4] * 12) * 5
    truth = line(one, other)
    made = problem_of(truth)
    mixed = track(made, 0)
    by_place = mixed[np.argsort(mixed[:, 0])].copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    by_place[:, day_three] = by_place[::-1, day_three]
    found = made.expand(relink(made, by_place, 0, segments_per_day=1))
    assert sorted(found.tolist()) == sorted([one, other])


def with_day_three_exchanged(one, other):
    """The tracks of two people over five days, as they are and with their third days exchanged; and their problem.

    A third person moves at midnight, so that the counts change and the days can be cut there.
    """
    third = ([5] * 24 + [6] * 24) * 2 + [5] * 24
    made = problem_of(line(one, other, third))
    index = {place: number for number, place in enumerate(made.places.tolist())}
    right = np.vectorize(index.get)(np.array([one, other, third])[:, made.starts[:-1]]).astype(np.int32)
    mixed = right.copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    mixed[:2, day_three] = mixed[1::-1, day_three]
    return right, mixed, made


def test_a_short_stay_tells_people_of_one_home_apart():
    """By time alone, a day out would go to the person who is mostly out, though the hour in place 1 says whose it is."""
    one, other = [0] * 12 + [1] + [0] * 11, [0] * 3 + [3] * 18 + [0] * 3
    right, mixed, made = with_day_three_exchanged(
        one * 2 + [0] * 2 + [4] * 19 + [1] + [0] * 2 + one * 2, other * 2 + [0] * 12 + [3] + [0] * 11 + other * 2
    )
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1, power=POWER), right)
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1), mixed)


def test_segments_begin_where_the_person_was():
    """Two people with the same time in two places, each at home at midnight, are told apart by that alone."""
    right, mixed, made = with_day_three_exchanged(
        ([0] * 6 + [1] * 12 + [0] * 6) * 5, ([1] * 5 + [0] * 12 + [1] * 7) * 5
    )
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1, seam=SEAM), right)
    assert np.array_equal(relink(made, mixed, 0, segments_per_day=1), mixed)


def test_links_keep_the_counts(problem, tracks):
    for cuts in (1, 2, 4):
        assert np.array_equal(
            count(relink(problem, tracks, 1, segments_per_day=cuts), problem.counts.shape[1]), problem.counts
        )


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
            total += math.log((moved[last, here] + MOVE_WEIGHT * usual) / (left[last] + MOVE_WEIGHT))
            total += math.log(
                (stayed[last, kind] + DWELL_WEIGHT * model.dwells[last, kind]) / (left[last] + DWELL_WEIGHT)
            )
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


def test_alignment_undoes_any_order(problem, tracks):
    random = np.random.default_rng(0)
    answers = [tracks, *(tracks[random.permutation(len(tracks))] for _ in range(3))]
    aligned = align(answers, 0, lengths=problem.lengths, places=problem.counts.shape[1])
    for answer in aligned:
        assert np.array_equal(answer, tracks)


def test_consensus_follows_the_majority_with_exact_counts(problem, tracks):
    other = tracks.copy()
    other[[0, 1]] = other[[1, 0]]
    found, share = decode(problem, [tracks, tracks, other])
    assert np.array_equal(found, tracks)
    assert share[2:].min() == 1
    assert share[:2].min() == pytest.approx(2 / 3)
    mixed, _ = decode(problem, [track(problem, seed) for seed in range(5)])
    assert np.array_equal(count(mixed, problem.counts.shape[1]), problem.counts)


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


def test_links_see_where_people_were_more_than_that_they_were_away():
    """Two people with their days exchanged once; one is mostly away on that day, as the other was on all others."""
    one = ([0] * 12 + [1] * 12) * 2 + [rk.AWAY] * 23 + [0] + ([0] * 12 + [1] * 12) * 2
    other = ([rk.AWAY] * 12 + [3] * 12) * 2 + [3] * 12 + [4] * 12 + ([rk.AWAY] * 12 + [3] * 12) * 2
    made = problem_of(line(one, other, [2] * 120))
    index = {place: number for number, place in enumerate(made.places.tolist())}
    right = np.vectorize(index.get)(np.array([one, other, [2] * 120])[:, made.starts[:-1]]).astype(np.int32)
    mixed = right.copy()
    day_three = (made.starts[:-1] >= 48) & (made.starts[:-1] < 72)
    mixed[:2, day_three] = mixed[1::-1, day_three]
    found = made.expand(relink(made, mixed, 0, segments_per_day=1))
    assert sorted(found.tolist()) == sorted(made.expand(right).tolist())


def test_rates_find_two_kinds_of_stay():
    random = np.random.default_rng(0)
    dwells = np.concatenate([random.geometric(0.5, 3000), random.geometric(0.01, 1000)])
    rates = Rates.learn(dwells)
    assert rates.leave == pytest.approx(0.01, rel=0.15)
    assert rates.pass_on == pytest.approx(0.5 * 0.75, rel=0.15)
    assert Rates.learn(np.empty(0, np.int64)).leave > 0
