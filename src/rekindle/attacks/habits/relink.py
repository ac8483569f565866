"""Re-link: cut the tracks into segments and give each segment to the person whose other segments it resembles.

A person must also have been at the cut where the segment begins: otherwise that is one more move, which has a price.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.rng import generator

__all__ = ["POWER", "SEAM", "relink"]

LN2 = math.log(2.0)
AWAY_WEIGHT = 0.2
"""How much time away counts for beside time in a place: many people are away at the same time."""
POWER = 0.5
"""Time counts by its root: people who share a home are told apart by where they are for a short time only."""
SEAM = 0.1
"""Price of a move at a cut over a long way, in units of likeness."""
FREE_ROUNDS = 4
"""Rounds before moves at the cuts have their price: at first it would keep all tracks as they are."""
AWAY_DISTANCE = 4.0


def relink(
    problem: Problem,
    tracks: NDArray[np.int32],
    seed: int,
    *,
    segments_per_day: int = 4,
    rounds: int = 30,
    power: float = 1.0,
    seam: float = 0.0,
) -> NDArray[np.int32]:
    """Re-link tracks.

    Parameters
    ----------
    problem
        The counts.
    tracks
        (people, ticks) int32 places.
    seed
        The order in which segments take their turns.
    segments_per_day
        How many cuts a day.
    rounds
        At most how often each segment takes its turn.
    power
        Segments are alike in the time that they spend in each place, to this power.
    seam
        Price of a move at a cut over a long way, in units of likeness; 0 for none.

    Returns
    -------
    (people, ticks) int32 places: the same segments, linked in another way.
    """
    people, places = len(tracks), problem.counts.shape[1]
    length = max(1, problem.steps_per_day // segments_per_day)
    of_tick = problem.starts[:-1] // length
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(of_tick)) + 1, [len(of_tick)]])
    number = len(cuts) - 1
    if number < 2:
        return tracks.copy()
    time = np.zeros((number, people, places), np.float32)
    lengths = problem.lengths
    for segment in range(number):
        _spend(tracks, lengths, cuts[segment], cuts[segment + 1], time[segment])
    time **= np.float32(power)
    if problem.away >= 0:
        time[:, :, problem.away] *= AWAY_WEIGHT
    first, last = tracks[:, cuts[:-1]], tracks[:, cuts[1:] - 1]
    order = np.tile(np.arange(people), (number, 1))
    total = time.sum(axis=0)
    turns = np.random.default_rng(generator(seed, 2))
    priced = False
    for turn in range(rounds):
        priced = priced or (seam > 0 and turn >= min(FREE_ROUNDS, rounds // 2))
        changed = False
        for segment in turns.permutation(number):
            own = time[segment][order[segment]]
            others = total - own
            likeness = _likeness(others, own)
            if priced:
                if segment > 0:
                    before, here = order[segment - 1], order[segment]
                    likeness -= seam * _seams(problem, last[before, segment - 1], first[here, segment])
                if segment < number - 1:
                    here, after = order[segment], order[segment + 1]
                    likeness -= seam * _seams(problem, first[after, segment + 1], last[here, segment])
            chosen = linear_sum_assignment(-likeness)[1]
            gain = likeness[np.arange(people), chosen].sum() - np.trace(likeness)
            if gain > 1e-9 * people:
                changed = True
                order[segment] = order[segment][chosen]
                total = others + own[chosen]
        if not changed:
            if priced or not seam:
                break
            priced = True
    linked = np.empty_like(tracks)
    for segment in range(number):
        part = slice(cuts[segment], cuts[segment + 1])
        linked[:, part] = tracks[order[segment], part]
    return linked


def _seams(problem: Problem, one: NDArray[np.integer], other: NDArray[np.integer]) -> NDArray[np.float64]:
    """Price the way between each place of one and each of the other, from 0 (the same) to 1: (one, other) float64."""
    xy = np.append(problem.xy, [[np.nan, np.nan]], axis=0)  # of the place of people who are away
    gap = xy[one][:, None] - xy[other]
    distance = np.nan_to_num(np.hypot(gap[..., 0], gap[..., 1]), nan=AWAY_DISTANCE)
    return np.where(one[:, None] == other, 0.0, np.minimum(1.0, 0.5 + distance / 20))


@compiled()
def _spend(
    tracks: NDArray[np.int32], lengths: NDArray[np.int64], begin: int, end: int, time: NDArray[np.float32]
) -> None:
    for person in range(len(tracks)):
        for tick in range(begin, end):
            time[person, tracks[person, tick]] += lengths[tick]


@compiled()
def _likeness(others: NDArray[np.float32], own: NDArray[np.float32]) -> NDArray[np.float64]:
    """1 less the Jensen-Shannon divergence (bits) of each person's other time and each segment: (people, people)."""
    people, places = own.shape
    likeness = np.zeros((people, people))
    share = np.zeros((places, people))
    entropy = np.zeros((places, people))
    for person in range(people):
        total = max(float(others[person].sum()), 1e-9)
        for place in range(places):
            if others[person, place] > 0:
                a = others[person, place] / total
                share[place, person] = a
                entropy[place, person] = a * math.log(a)
    for column in range(people):
        total = float(own[column].sum())
        for place in range(places):
            if own[column, place] > 0:
                b = float(own[column, place]) / total
                less = b * math.log(b)
                for row in range(people):
                    a = share[place, row]
                    if a > 0:
                        # Places that only one of the two visited add nothing.
                        likeness[row, column] += 0.5 / LN2 * ((a + b) * math.log(a + b) - entropy[place, row] - less)
    return likeness
