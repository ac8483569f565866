"""What Habits doubts: who left, and who moved unseen; and how it deals two ways anew."""

import functools
import math

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits import doubt, schedule
from rekindle.attacks.habits.doubt import Gains, exchange_unseen, hidden_rates, seen_share, track_in_doubt
from rekindle.attacks.habits.problem import Problem, count
from rekindle.attacks.habits.rng import generator
from rekindle.attacks.habits.search import HabitModel, SwapSearch
from rekindle.attacks.habits.track import track
from rekindle.evaluation import assess_confidence


def problem_of(truth):
    counts = truth.counts()
    return Problem.of(counts.values, counts.locations, counts.calendar, counts.people)


def walkers(people, places, steps, stay, seed=0):
    """People who move to any place at any time: no habits."""
    random = np.random.default_rng(seed)
    cells = random.integers(places, size=(people, steps))
    for step in range(1, steps):
        still = random.random(people) < stay
        cells[still, step] = cells[still, step - 1]
    locations = rk.Locations([[float(place % 3), float(place // 3)] for place in range(places)])
    return rk.Trajectories(cells, locations, rk.Calendar("2024-03-01", "30min", steps))


def commuters(seed, people=4, days=10):
    """They all leave at the same time and pass one place; on some days some stay at home."""
    random = np.random.default_rng(seed)
    xy = [[0.0, y] for y in range(people)] + [[3.0, 1.5]] + [[6.0, y] for y in range(people)]
    work = random.permutation(people) + people + 1
    cells = np.repeat(np.arange(people), days * 48).reshape(people, days, 48)
    for person, day in zip(*np.nonzero(random.random((people, days)) >= 0.3), strict=True):
        cells[person, day, 16:35] = work[person]
        cells[person, day, [16, 34]] = people
    return rk.Trajectories(cells.reshape(people, -1), rk.Locations(xy), rk.Calendar("2024-03-01", "30min", days * 48))


def test_nothing_is_hidden_where_one_moves_at_a_time():
    cells = np.zeros((3, 12), np.int64)
    for person in range(3):
        cells[person, 2 + 3 * person :] = person + 1
    truth = rk.Trajectories(cells, rk.Locations(np.eye(4, 2)), rk.Calendar("2024-03-01", "2h", 12))
    assert not hidden_rates(problem_of(truth)).any()


def test_two_who_leave_together_may_hide_one_more():
    cells = np.array([[0, 0, 1], [0, 0, 1]])
    truth = rk.Trajectories(cells, rk.Locations([[0.0, 0.0], [1.0, 0.0]]), rk.Calendar("2024-03-01", "2h", 3))
    # The change is 2: 2 x 1 / 2 = 1 unseen, of 2 people counted at one tick in each place.
    assert hidden_rates(problem_of(truth)).tolist() == [0.5, 0.5]


def test_no_more_people_go_away_than_leave_somewhere():
    """Three phones go off at once, each in a place of its own: nothing is hidden."""
    cells = np.array([[0, rk.AWAY], [1, rk.AWAY], [2, rk.AWAY], [3, 3]])
    truth = rk.Trajectories(cells, rk.Locations(np.eye(4, 2)), rk.Calendar("2024-03-01", "2h", 2))
    problem = problem_of(truth)
    assert not hidden_rates(problem).any()
    assert seen_share(problem) == 1.0


def test_how_far_voters_agree_is_taken_from_counted_points():
    votes, lengths, gains = np.array([[0.9, 0.9], [0.1, 0.1]]), np.array([1, 3]), Gains(7.0, 1.0, 0.2)
    everyone = doubt.terms(votes, votes, lengths, gains)["all votes"]
    first = doubt.terms(votes, votes, lengths, gains, np.array([[True, True], [False, False]]))["all votes"]
    assert everyone < first == pytest.approx(math.log(0.884 / 0.116))


def test_where_people_are_mostly_away_less_agreement_is_enough():
    votes, lengths, gains = np.full((4, 2), 0.6), np.array([1, 3]), Gains(7.0, 1.0, 0.2)
    rarely, mostly = np.ones((4, 2), bool), np.ones((4, 2), bool)
    rarely[0], mostly[1:] = False, False
    sure = [doubt.calibrate(votes, votes, lengths, gains, counted)[0, 0] for counted in (None, rarely, mostly)]
    assert sure[0] == sure[1] < sure[2]


@pytest.mark.parametrize(("people", "stay"), [(60, 0.9), (200, 0.6)])
def test_the_counts_tell_how_often_people_move(people, stay):
    truth = walkers(people, 9, 400, stay)
    problem = problem_of(truth)
    moves = (np.diff(truth.cells) != 0).sum()
    seen = np.abs(np.diff(problem.counts, axis=0)).sum() / 2
    unseen = (hidden_rates(problem) * problem.counts.sum(axis=0)).sum()
    assert seen < 0.7 * moves
    assert seen + unseen == pytest.approx(moves, rel=0.1)


def test_unseen_exchanges_keep_the_counts():
    problem = problem_of(walkers(30, 9, 100, 0.8))
    tracks = track(problem, 0)
    moves = HabitModel.learn(problem, [tracks]).moves
    assert np.array_equal(exchange_unseen(tracks, np.zeros(9), moves, generator(1)), tracks)
    changed = exchange_unseen(tracks, hidden_rates(problem), moves, generator(1))
    assert np.array_equal(count(changed, 9), problem.counts)
    assert (np.diff(changed) != 0).sum() > 1.2 * (np.diff(tracks) != 0).sum()
    voter = track_in_doubt(problem, moves, 1, backwards=True, segments_per_day=2, rounds=3)
    problem.check(voter)


def test_who_cannot_be_followed_is_not_claimed():
    recovery = rk.Habits(effort="low", seed=1).recover(walkers(60, 9, 96, 0.3).counts())
    assert (recovery.confidence >= 0.9).mean() < 0.001


def test_who_is_alone_is_claimed():
    cells = np.repeat(np.arange(5), 96).reshape(5, 96)
    truth = rk.Trajectories(cells, rk.Locations(np.eye(5, 2)), rk.Calendar("2024-03-01", "30min", 96))
    assert (rk.Habits(effort="low").recover(truth.counts()).confidence > 0.99).all()


@pytest.mark.parametrize("seed", range(3))
def test_two_ways_dealt_anew_find_what_single_exchanges_do_not(seed):
    truth = commuters(seed)
    problem = problem_of(truth)
    right = np.searchsorted(problem.places, truth.cells[:, problem.starts[:-1]]).astype(np.int32)
    tracks = track(problem, 1)
    model = HabitModel.learn(problem, [tracks])
    best = SwapSearch(problem, model, right, generator(0)).score
    dealt = SwapSearch(problem, model, tracks, generator(2))
    dealt.run(600, redeal=1.0)
    single = SwapSearch(problem, model, tracks, generator(2))
    single.run(1200, redeal=0.0)
    assert single.score < dealt.score
    assert dealt.score == pytest.approx(best, abs=30)
    assert dealt.scores.sum() == pytest.approx(SwapSearch(problem, model, dealt.tracks, generator(0)).score)


def test_after_a_stop_without_voters_nothing_is_claimed():
    problem = problem_of(walkers(12, 9, 96, 0.9))
    made = schedule.Schedule.of(problem, "low", 0)
    answers = {0: schedule.follow(problem, made, 0, lambda: False)}
    tracks, confidence = schedule.finish(problem, made, answers, lambda: True)
    problem.check(tracks)
    assert confidence.dtype == np.float32
    assert confidence.max() <= 0.5


def test_confidence_rises_with_votes_probability_and_agreement_on_everyone():
    lengths = np.array([1, 3])
    calibrate = functools.partial(doubt.calibrate, gains=Gains(7.0, 1.0, 0.2))
    low, high = np.full((2, 2), 0.6), np.full((2, 2), 0.9)
    assert (calibrate(low, low, lengths) < calibrate(high, low, lengths)).all()
    assert (calibrate(low, low, lengths) < calibrate(low, high, lengths)).all()
    # One point with the same votes, among others on which the voters agree or not.
    mixed = np.array([[0.9, 0.9], [0.2, 0.2]])
    assert (calibrate(high, mixed, lengths)[0] < calibrate(high, high, lengths)[0]).all()
    # A tick counts as much as it is long.
    ticks = np.array([[0.9, 0.2], [0.9, 0.2]])
    assert (calibrate(high, ticks, np.array([9, 1])) > calibrate(high, ticks, np.array([1, 9]))).all()
    found = calibrate(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]), lengths)
    assert found.dtype == np.float32
    assert 0 < found[0, 0] < 0.1 < found[0, 1] <= 1


def test_confidence_rises_with_what_the_consensus_gains_and_needs_a_second_day():
    votes, lengths = np.full((2, 2), 0.7), np.array([1, 3])
    week = [
        doubt.calibrate(votes, votes, lengths, Gains(7.0, gain, 0.0)).max() for gain in (-50.0, 0.0, 3.0, 6.0, 50.0)
    ]
    assert week[0] == week[1] < week[2] < week[3] == week[4]
    assert doubt.calibrate(votes, votes, lengths, Gains(1.0, 0.0, 0.0)).max() < week[1]


def test_where_voters_hardly_agree_nothing_is_gained():
    lengths = np.array([1, 3])
    for vote, differs in ((0.3, False), (0.4, True)):
        votes = np.full((2, 2), vote)
        some = [doubt.calibrate(votes, votes, lengths, Gains(7.0, gain, 0.2)).max() for gain in (0.0, 3.0)]
        assert (some[0] < some[1]) == differs


def test_gains_are_per_person_and_day():
    problem = problem_of(walkers(12, 9, 96, 0.9))
    assert Gains.of(problem, -10.0, [-60.0, -56.0], [-90.0, -110.0]) == Gains(2.0, 48 / 24, 48 / 42)
    # Nobody moves: nothing is gained, and nothing divided by.
    assert Gains.of(problem, -5.0, [-5.0], [-5.0]) == Gains(2.0, 0.0, 0.0)


@pytest.mark.parametrize("settings", [{"days": 1}, {"width_km": 3, "height_km": 3}])
def test_confidence_is_calibrated_within_a_day_and_with_few_locations(settings):
    truth = rk.SyntheticCity(**{"people": 60, "days": 7, "seed": 22} | settings).trajectories()
    found = rk.Habits(effort="low").recover(truth.counts())
    assert assess_confidence(found.trajectories, found.confidence, truth).calibration_error < 0.08


@pytest.mark.parametrize("routine", [True, False])
def test_confidence_is_calibrated_with_and_without_routine(routine):
    """Cities that the constants were not fitted on."""
    without = {} if routine else {"share_without_routine": 1, "share_night_workers": 0, "share_without_work": 0}
    truth = rk.SyntheticCity(people=60, days=7, seed=10, **without).trajectories()
    found = rk.Habits(effort="low").recover(truth.counts())
    result = rk.evaluate(found.trajectories, truth)
    sure = assess_confidence(found.trajectories, found.confidence, truth, mapping=result.mapping)
    assert sure.calibration_error < 0.08
    if routine:
        assert sure.claims.points > 0.4
        assert sure.claims.points_right > 0.9
    else:
        assert sure.claims.points < 0.01


CROWD = random_truth(np.random.default_rng(1), people=40, places=4, steps=48, step="30min")


def test_a_crowd_within_a_day_is_left_to_the_rules():
    counts = CROWD.counts()
    assert seen_share(Problem.of(counts.values, counts.locations, counts.calendar)) < 0.5
    found = rk.Habits(effort="low", seed=3).recover(counts)
    np.testing.assert_array_equal(found.trajectories.cells, rk.Enhanced(seed=3).recover(counts).trajectories.cells)
    assert found.trajectories.counts() == counts
    assert isinstance(found.attack, rk.Habits)
    assert found.confidence.dtype == np.float32
    assert 0 < found.confidence.max() < 0.5


def test_a_crowd_that_comes_and_goes_is_left_to_the_rules_too():
    random = np.random.default_rng(1)
    counts = random_truth(random, people=60, places=4, steps=48, step="30min", stay=0.3, away=0.2).counts()
    assert seen_share(Problem.of(counts.values, counts.locations, counts.calendar, 60)) < 0.5
    found = rk.Habits(effort="low", seed=3).recover(counts)
    assert found.trajectories.counts() == counts
    np.testing.assert_array_equal(found.trajectories.cells, rk.Enhanced(seed=3).recover(counts).trajectories.cells)


def test_one_who_walks_alone_is_seen():
    cells = np.zeros((2, 6), np.int32)
    cells[0, 3:] = 1
    problem = Problem.of(
        rk.Trajectories(cells, CROWD.locations, CROWD.calendar.closed_at(6)).counts().values,
        CROWD.locations,
        CROWD.calendar.closed_at(6),
    )
    assert seen_share(problem) == 1.0
