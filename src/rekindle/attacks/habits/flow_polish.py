"""Polish along flows: everyone as a hidden Markov chain with the habits of the consensus, all coupled by the flows.

As in `polish`, but people move only where somebody did, and there is one weight for each flow, of those who stay too, such
that the expected number of people is the flow. In float64: weights of flows that nobody likes become very small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.flows import TickFlows
from rekindle.attacks.habits.polish import (
    HOURS,
    MOVE_WEIGHT,
    OBSERVATIONS_PER_DAY,
    Profile,
    chances,
    emit,
    expect,
    learn_rates,
    log_habits,
    stay_chances,
)
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.search import HabitModel
from rekindle.attacks.meetings import exchange_until_likely

__all__ = ["flow_sweep_work", "polish_flows", "project_votes"]

LEAST = 1e-290
SCALINGS = 3


def flow_sweep_work(problem: Problem) -> float:
    """How many products one sweep takes."""
    if problem.flows is None:
        raise RuntimeError("a problem without flows")
    return 8.0 * len(problem.flows.origin) * problem.people


def polish_flows(
    problem: Problem,
    flows: TickFlows,
    model: HabitModel,
    answers: Sequence[NDArray[np.integer]],
    *,
    rounds: int = 4,
    exact: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Polish a consensus, and bring it back to exact flows; parameters and result as in `polish`.

    So many of the answers, the first ones, have the flows; None for all.
    """
    people = problem.people
    given = Profile.of(problem, answers)
    states, offsets, place = _states(problem)
    pair, share = _shares(flows, given, model)
    entry = (
        flows.offsets,
        _state_of(flows.origin, flows.offsets, states, 1),
        _state_of(flows.goal, flows.offsets, states, 0),
        pair,
        flows.number.astype(np.float64),
    )
    stay = _stays(problem, learn_rates(problem, answers), offsets, place)
    hour = np.minimum(problem.clock * HOURS / 24, HOURS - 1).astype(np.int64)
    beta = min(1.0, OBSERVATIONS_PER_DAY / problem.steps_per_day)
    forward = np.empty((2, len(place), people))
    backward = np.ones((2, len(place), people))
    weight = np.ones(len(flows.origin))
    emission = np.empty((len(place), people))
    marginal = np.empty((len(place), people))
    hours = given.hours
    for turn in range(rounds):
        emit(log_habits(hours), hour, problem.lengths, beta, offsets, place, emission)
        for _ in range(3 if turn == 0 else 1):
            for onwards in (True, False):
                _sweep(onwards, offsets, entry, share, stay, emission, forward, backward, weight)
        _marginals(forward, backward, marginal)
        now = np.zeros_like(hours)
        expect(marginal, hour, problem.lengths, offsets, place, now)
        if stopped():
            break
        hours = 0.5 * given.hours + 0.5 * now
    return _exact(problem, answers[:exact], marginal, states)


def project_votes(
    problem: Problem, answers: Sequence[NDArray[np.integer]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Put everyone where most of the aligned answers have them, with exact flows; result as in `decode`."""
    states, _, place = _states(problem)
    votes = np.zeros((len(place), problem.people))
    person = np.arange(problem.people)[:, None]
    for tracks in answers:
        votes[states[np.arange(problem.ticks), tracks], person] += 1 / len(answers)
    return _exact(problem, answers, votes, states)


def _exact(
    problem: Problem, answers: Sequence[NDArray[np.integer]], marginal: NDArray[np.float64], states: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Start at the answer that fits best."""
    ticks, person = np.arange(problem.ticks), np.arange(problem.people)[:, None]

    def likely(tracks: NDArray[np.integer]) -> NDArray[np.float64]:
        return np.asarray(marginal[states[ticks, tracks], person])

    fits = [float((likely(tracks) * problem.lengths).sum()) for tracks in answers]
    tracks = exchange_until_likely(answers[int(np.argmax(fits))], marginal, states, problem.lengths)
    return tracks, likely(tracks).astype(np.float32)


def _states(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """List the places with people at each tick: (ticks, places) number of each or -1, where ticks begin, and their places."""
    tick, place = np.nonzero(problem.counts)
    states = np.full(problem.counts.shape, -1, np.int64)
    states[tick, place] = np.arange(len(tick))
    return states, np.searchsorted(tick, np.arange(problem.ticks + 1)).astype(np.int64), place.astype(np.int64)


def _state_of(
    place: NDArray[np.int64], offsets: NDArray[np.int64], states: NDArray[np.int64], before: int
) -> NDArray[np.int64]:
    tick = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.asarray(states[tick - before, place])


def _shares(flows: TickFlows, given: Profile, model: HabitModel) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Price the moves that anybody makes, for everyone.

    Returns
    -------
    (flows,) int64: which move each flow is, -1 for those who stay; (moves, people) float64: chance that a person who
    leaves the place makes it.
    """
    places, people = given.left.shape
    move = flows.origin * places + flows.goal
    moves = flows.origin != flows.goal
    codes, which = np.unique(move[moves], return_inverse=True)
    pair = np.full(len(move), -1, np.int64)
    pair[moves] = which
    share = np.repeat(MOVE_WEIGHT * model.moves[codes // places, codes % places][:, None], people, axis=1)
    own = given.origin * places + given.goal
    row = np.minimum(np.searchsorted(codes, own), max(0, len(codes) - 1))
    known = codes[row] == own if len(codes) else np.zeros(len(own), bool)
    person = np.repeat(np.arange(people), np.diff(given.starts))
    np.add.at(share, (row[known], person[known]), given.often[known])
    share /= MOVE_WEIGHT + given.left[codes // places]
    return pair, share


def _stays(
    problem: Problem, rates: NDArray[np.float64], offsets: NDArray[np.int64], place: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Chances of each state: to leave passing by and staying, to go on so, to settle, and the same over its tick.

    Returns
    -------
    (states, 8) float64.
    """
    found = np.empty((len(place), 8))
    of_tick = np.repeat(problem.lengths, np.diff(offsets))
    for length in np.unique(of_tick):
        for away in (False, True):
            rows = (of_tick == length) & ((place == problem.away) == away)
            found[rows] = [*chances(rates, away), *stay_chances(rates, away, float(length - 1))]
    return found


@compiled(fastmath=True)
def _sweep(onwards, offsets, entry, share, stay, emission, forward, backward, weight):
    """Pass messages through all ticks in one direction, and scale the weights of the flows between each two of them."""
    first, origin, goal, pair, number = entry
    ticks, people = len(offsets) - 1, forward.shape[2]
    most = 0
    for tick in range(ticks):
        most = max(most, first[tick + 1] - first[tick])
    product = np.empty((most, people))
    total = np.empty(people)
    arrive = np.empty((2, max(1, (offsets[1:] - offsets[:-1]).max()), people))
    if onwards:
        for at in range(offsets[0], offsets[1]):
            for person in range(people):
                passing = 0.2 * emission[at, person]
                forward[1, at, person] = 0.8 * emission[at, person] * stay[at, 6] + passing * stay[at, 7]
                forward[0, at, person] = passing * stay[at, 5]
        _normalise(forward, offsets[0], offsets[1], total)
    else:
        backward[:, offsets[ticks - 1] : offsets[ticks]] = 1.0
    for turn in range(1, ticks):
        tick = turn if onwards else ticks - turn
        begin, end = offsets[tick], offsets[tick + 1]
        low, high = first[tick], first[tick + 1]
        # What arriving in each place of the tick is worth, passing by and staying.
        for at in range(begin, end):
            for person in range(people):
                e = emission[at, person]
                arrive[0, at - begin, person] = e * (
                    stay[at, 5] * backward[0, at, person] + stay[at, 7] * backward[1, at, person]
                )
                arrive[1, at - begin, person] = e * stay[at, 6] * backward[1, at, person]
        for k in range(low, high):
            was, at = origin[k], goal[k] - begin
            if pair[k] >= 0:
                for person in range(people):
                    product[k - low, person] = weight[k] * (
                        (stay[was, 0] * forward[0, was, person] + stay[was, 1] * forward[1, was, person])
                        * share[pair[k], person]
                        * arrive[0, at, person]
                    )
            else:
                for person in range(people):
                    product[k - low, person] = weight[k] * (
                        forward[0, was, person]
                        * (stay[was, 2] * arrive[0, at, person] + stay[was, 4] * arrive[1, at, person])
                        + stay[was, 3] * forward[1, was, person] * arrive[1, at, person]
                    )
        # Scale: the expected number of people in each flow is the flow.
        for _ in range(SCALINGS):
            for person in range(people):
                total[person] = 0.0
            for k in range(high - low):
                for person in range(people):
                    total[person] += product[k, person]
            for person in range(people):
                total[person] = 1.0 / max(total[person], LEAST)
            highest = 0.0
            for k in range(high - low):
                expected = 0.0
                for person in range(people):
                    product[k, person] *= total[person]
                    expected += product[k, person]
                factor = number[low + k] / max(expected, 1e-100)
                weight[low + k] *= factor
                highest = max(highest, weight[low + k])
                for person in range(people):
                    product[k, person] *= factor
            for k in range(low, high):
                weight[k] = max(weight[k] / highest, 1e-100)
        if onwards:
            forward[:, begin:end] = 0.0
            for k in range(low, high):
                was, at = origin[k], goal[k]
                if pair[k] >= 0:
                    for person in range(people):
                        forward[0, at, person] += (
                            weight[k]
                            * share[pair[k], person]
                            * (stay[was, 0] * forward[0, was, person] + stay[was, 1] * forward[1, was, person])
                        )
                else:
                    for person in range(people):
                        forward[0, at, person] += weight[k] * stay[was, 2] * forward[0, was, person]
                        forward[1, at, person] += weight[k] * (
                            stay[was, 3] * forward[1, was, person] + stay[was, 4] * forward[0, was, person]
                        )
            for at in range(begin, end):
                for person in range(people):
                    passing = forward[0, at, person] * emission[at, person]
                    forward[1, at, person] = (
                        forward[1, at, person] * emission[at, person] * stay[at, 6] + passing * stay[at, 7]
                    )
                    forward[0, at, person] = passing * stay[at, 5]
            _normalise(forward, begin, end, total)
        else:
            backward[:, offsets[tick - 1] : begin] = 0.0
            for k in range(low, high):
                was, at = origin[k], goal[k] - begin
                if pair[k] >= 0:
                    for person in range(people):
                        value = weight[k] * share[pair[k], person] * arrive[0, at, person]
                        backward[0, was, person] += stay[was, 0] * value
                        backward[1, was, person] += stay[was, 1] * value
                else:
                    for person in range(people):
                        backward[0, was, person] += weight[k] * (
                            stay[was, 2] * arrive[0, at, person] + stay[was, 4] * arrive[1, at, person]
                        )
                        backward[1, was, person] += weight[k] * stay[was, 3] * arrive[1, at, person]
            _normalise(backward, offsets[tick - 1], begin, total)


@compiled()
def _normalise(message, begin, end, total):
    for person in range(len(total)):
        total[person] = 0.0
    for at in range(begin, end):
        for person in range(len(total)):
            total[person] += message[0, at, person] + message[1, at, person]
    for at in range(begin, end):
        for person in range(len(total)):
            scale = 1.0 / max(total[person], LEAST)
            message[0, at, person] *= scale
            message[1, at, person] *= scale


@compiled()
def _marginals(forward, backward, marginal):
    for at in range(marginal.shape[0]):
        for person in range(marginal.shape[1]):
            marginal[at, person] = (
                forward[0, at, person] * backward[0, at, person]
                + forward[1, at, person] * backward[1, at, person]
                + LEAST
            )
