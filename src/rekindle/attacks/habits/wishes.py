"""Wishes: of many people, answers that ignore the flows say where everyone is wanted; the flows say where they can be.

Everyone is a hidden Markov chain that would rather be where the answers have them, all coupled by one weight for each flow, such that
the expected number of people is the flow (as in `flow_polish`, but each person only in the places that they may have to do with).
Then one person after another takes the likeliest path through the flows that are left, the surest first, and people who meet
exchange paths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.flows import TickFlows
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.meetings import Likely, exchange_towards

__all__ = ["follow_wishes"]

OWN = 32
"""In so many places a person may be: where the answers have them, and where people go from there."""
NEIGHBOURS = 4
EAGER = 12.0
"""What a day where they are wanted is worth to a person, and what a day in a place that is usual at that time is, in logarithms of
chances."""
USUAL = 4.8
LEAST = -30.0
"""Below that, one chance is as small as another."""
UNLIKELY = 1e-10
"""Below that, a place of a person is like any other."""
BINS = 12
SWEEPS = 2
SCALINGS = 3


def follow_wishes(
    problem: Problem, wanted: Sequence[NDArray[np.integer]], *, quick: bool = False
) -> NDArray[np.int32]:
    """Follow people along the flows to where they are wanted, as far as these allow.

    Parameters
    ----------
    problem
        The flows.
    wanted
        Where everyone is wanted, each (people, ticks) places with exact counts, people in the same order; they count alike.
    quick
        Whether to weigh the flows once only, and leave out the exchanges.

    Returns
    -------
    (people, ticks) int32 places with exact flows.
    """
    flows = problem.flows
    if flows is None:
        raise RuntimeError("a problem without flows")
    wishes = np.stack(wanted).astype(np.int32, copy=False)
    places = problem.counts.shape[1]
    own, rank = _own_places(wishes, problem.lengths, _neighbours(flows, places), places)
    bins = np.minimum(problem.clock * BINS / 24, BINS - 1).astype(np.int64)
    usual = _usual(wishes, rank, own, problem.lengths, bins)
    eager = np.array([EAGER, USUAL]) / problem.steps_per_day
    emitted = (wishes, rank, own, problem.lengths, bins, usual, eager)
    forward = np.zeros((problem.ticks, *own.shape), np.float32)
    backward = np.ones_like(forward)
    begin = np.searchsorted(
        np.repeat(np.arange(problem.ticks), np.diff(flows.offsets)) * places + flows.origin,
        np.arange(problem.ticks * places + 1),
    )
    weight = np.ones(len(flows.origin))
    for _ in range(1 if quick else SWEEPS):
        for onwards in (True, False):
            _sweep(onwards, begin, flows.goal, flows.number, emitted, forward, backward, weight)
    likely = Likely(_join(forward, backward), rank)
    del forward, backward
    surest = np.argsort(-_surest(likely.chance, problem.lengths), kind="stable")
    tracks = _route(
        surest,
        problem.counts[0].copy(),
        flows.offsets,
        flows.origin,
        flows.goal,
        flows.number,
        own,
        likely,
        problem.lengths,
    )
    return tracks if quick else exchange_towards(tracks, wishes, problem.lengths, likely=likely)


def _neighbours(flows: TickFlows, places: int) -> NDArray[np.int64]:
    """Where most people go from each place, beside itself: (places, NEIGHBOURS) int64, -1 for none."""
    moves = flows.origin != flows.goal
    key, which = np.unique(flows.origin[moves] * places + flows.goal[moves], return_inverse=True)
    origin, goal = np.divmod(key, places)
    order = np.lexsort((-np.bincount(which, flows.number[moves], len(key)), origin))
    origin, goal = origin[order], goal[order]
    number = np.arange(len(origin)) - np.searchsorted(origin, origin)
    found = np.full((places, NEIGHBOURS), -1, np.int64)
    first = number < NEIGHBOURS
    found[origin[first], number[first]] = goal[first]
    return found


@compiled()
def _own_places(wishes, lengths, neighbours, places):
    """Places of each person, -1 after the last: (people, OWN) int64; and the number of each place among them or -1, (people, places)."""
    _, people, ticks = wishes.shape
    own = np.full((people, OWN), -1, np.int64)
    rank = np.full((people, places), -1, np.int8)
    spent = np.zeros(places, np.int64)
    for person in range(people):
        known = 0
        for wish in wishes:
            for tick in range(ticks):
                spent[wish[person, tick]] += lengths[tick]
        order = np.argsort(-spent, kind="mergesort")
        for place in order[:OWN]:
            if spent[place] > 0:
                own[person, known] = place
                rank[person, place] = known
                known += 1
        for one in range(known):
            for place in neighbours[own[person, one]]:
                if place >= 0 and rank[person, place] < 0 and known < OWN:
                    own[person, known] = place
                    rank[person, place] = known
                    known += 1
        spent[:] = 0
    return own, rank


@compiled()
def _usual(wishes, rank, own, lengths, bins):
    """Log chance of each place of a person by the time of day: (people, BINS, OWN) float32."""
    _, people, ticks = wishes.shape
    found = np.empty((people, BINS, own.shape[1]), np.float32)
    time = np.empty((BINS, own.shape[1]))
    for person in range(people):
        time[:] = 0.0
        for wish in wishes:
            for tick in range(ticks):
                at = rank[person, wish[person, tick]]
                if at >= 0:
                    time[bins[tick], at] += lengths[tick]
        overall = time.sum(axis=0)
        total = max(overall.sum(), 1.0)
        for one in range(BINS):
            then = max(time[one].sum(), 1.0)
            for at in range(len(overall)):
                chance = 0.6 * time[one, at] / then + 0.39 * overall[at] / total + 1e-4
                found[person, one, at] = math.log(chance)
    return found


@compiled()
def _emit(tick, person, emitted, chance):
    """What it is worth to a person to be in each of their places at a tick: chances, the highest of them 1; 0 after the last."""
    wishes, rank, own, lengths, bins, usual, eager = emitted
    for at in range(len(chance)):
        chance[at] = eager[1] * lengths[tick] * usual[person, bins[tick], at]
    for wish in wishes:
        at = rank[person, wish[person, tick]]
        if at >= 0:
            chance[at] += eager[0] * lengths[tick] / len(wishes)
    most = -np.inf
    for at in range(len(chance)):
        if own[person, at] >= 0:
            most = max(most, chance[at])
    for at in range(len(chance)):
        chance[at] = math.exp(max(chance[at] - most, LEAST)) if own[person, at] >= 0 else 0.0


@compiled()
def _normalise(message, otherwise):
    """Scale a message to a sum of 1; one that was lost begins again."""
    total = 0.0
    for at in range(len(message)):
        total += message[at]
    if total <= 1e-30:
        for at in range(len(message)):
            message[at] = otherwise[at]
            total += otherwise[at]
    for at in range(len(message)):
        message[at] /= total


@compiled()
def _sweep(onwards, begin, goal, number, emitted, forward, backward, weight):
    """Pass messages through all ticks in one direction, and scale the weights of the flows between each two of them."""
    own, rank = emitted[2], emitted[1]
    ticks, people, width = forward.shape
    places = rank.shape[1]
    chance = np.empty((people, width))
    everywhere = np.ones(width)
    # What each person may do from one tick to the next: the flow, from which of their places to which, and how likely.
    room = 4 * people * width
    flow = np.empty(room, np.int64)
    sides = np.empty((room, 2), np.int8)
    product = np.empty(room)
    ends = np.empty(people + 1, np.int64)
    expected, change = np.zeros(len(weight)), np.ones(len(weight))
    if onwards:
        for person in range(people):
            _emit(0, person, emitted, chance[person])
            forward[0, person] = chance[person]
            _normalise(forward[0, person], chance[person])
    for turn in range(1, ticks):
        tick = turn if onwards else ticks - turn
        before, after = forward[tick - 1], backward[tick]
        low, high = begin[tick * places], begin[(tick + 1) * places]
        known = 0
        ends[0] = 0
        for person in range(people):
            _emit(tick, person, emitted, chance[person])
            for a in range(width):
                if own[person, a] < 0:
                    break
                key = tick * places + own[person, a]
                if known + begin[key + 1] - begin[key] > len(flow):
                    flow, product = np.append(flow, flow), np.append(product, product)
                    sides = np.concatenate((sides, sides))
                for k in range(begin[key], begin[key + 1]):
                    b = rank[person, goal[k]]
                    if b >= 0:
                        flow[known] = k
                        sides[known, 0], sides[known, 1] = a, b
                        product[known] = weight[k] * before[person, a] * chance[person, b] * after[person, b]
                        known += 1
            ends[person + 1] = known
        for _ in range(SCALINGS):
            expected[low:high] = 0.0
            for person in range(people):
                total = 0.0
                for one in range(ends[person], ends[person + 1]):
                    product[one] *= change[flow[one]]
                    total += product[one]
                scale = 1.0 / total if total > 1e-300 else 0.0
                for one in range(ends[person], ends[person + 1]):
                    product[one] *= scale
                    expected[flow[one]] += product[one]
            highest = 0.0
            for k in range(low, high):
                # A flow that nobody is expected to be in is one for people out of their places.
                change[k] = number[k] / expected[k] if expected[k] > 1e-3 else 1.0
                weight[k] *= change[k]
                highest = max(highest, weight[k])
            for k in range(low, high):
                weight[k] = max(weight[k] / highest, 1e-100)
        for person in range(people):
            message = forward[tick, person] if onwards else backward[tick - 1, person]
            message[:] = 0.0
            for one in range(ends[person], ends[person + 1]):
                a, b = sides[one, 0], sides[one, 1]
                if onwards:
                    message[b] += weight[flow[one]] * before[person, a] * chance[person, b]
                else:
                    message[a] += weight[flow[one]] * chance[person, b] * after[person, b]
            _normalise(message, chance[person] if onwards else everywhere)


@compiled()
def _join(forward, backward):
    """Make of messages how likely everyone is in each of their places: (people, ticks, OWN) float32."""
    ticks, people, width = forward.shape
    chance = np.empty((people, ticks, width), np.float32)
    for person in range(people):
        for tick in range(ticks):
            total = np.float32(0.0)
            for at in range(width):
                chance[person, tick, at] = forward[tick, person, at] * backward[tick, person, at]
                total += chance[person, tick, at]
            for at in range(width):
                chance[person, tick, at] /= max(total, np.float32(1e-30))
    return chance


@compiled()
def _surest(chance, lengths):
    """How long everyone is expected to be where they are most likely to be: (people,) float64."""
    people, ticks, width = chance.shape
    found = np.zeros(people)
    for person in range(people):
        for tick in range(ticks):
            most = np.float32(0.0)
            for at in range(width):
                most = max(most, chance[person, tick, at])
            found[person] += lengths[tick] * most
    return found


@compiled()
def _route(order, start, offsets, origin, goal, number, own, likely, lengths):
    """Give one person after another the likeliest path through the flows that are left: (people, ticks) int32 places.

    Flows without one path are the flows of the other people. So those of whom least is known get what is left, and lead nobody
    else astray.
    """
    people, ticks, width = likely.chance.shape
    places = len(start)
    left = number.copy()
    live = np.arange(len(left))  # of each tick, those flows first that are left
    end = offsets[1:].copy()
    taken = np.empty((ticks, places), np.int64)  # by which flow each place is reached best
    value, reached = np.empty(places), np.empty(places)
    tracks = np.empty((people, ticks), np.int32)
    for person in order:
        for tick in range(ticks):
            if tick == 0:
                reached[:] = np.where(start > 0, 0.0, -np.inf)
            else:
                reached[:] = -np.inf
                kept = offsets[tick]
                for entry in range(offsets[tick], end[tick]):
                    k = live[entry]
                    if left[k] > 0:
                        live[kept] = k
                        kept += 1
                        if value[origin[k]] > reached[goal[k]]:
                            reached[goal[k]] = value[origin[k]]
                            taken[tick, goal[k]] = k
                end[tick] = kept
            value, reached = reached, value
            for at in range(width):
                if own[person, at] >= 0:
                    chance = max(likely.chance[person, tick, at], UNLIKELY)
                    value[own[person, at]] += lengths[tick] * math.log(chance / UNLIKELY)
        place = np.argmax(value)
        for tick in range(ticks - 1, 0, -1):
            tracks[person, tick] = place
            left[taken[tick, place]] -= 1
            place = origin[taken[tick, place]]
        tracks[person, 0] = place
        start[place] -= 1
    return tracks
