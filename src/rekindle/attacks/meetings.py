"""Meetings: two people in one place at the same time may go on as each other, and no flow changes.

Whatever is wanted of people whose flows are known, the way to it is through their meetings: between two of them, two people
either keep their ways or exchange them, whichever is worth more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled

__all__ = ["Likely", "exchange_towards", "exchange_until_likely"]

ALL_PAIRS_UP_TO = 300
"""People up to whom all pairs are tried; beyond, each person with those who are most where that person is wanted."""
MOST_TURNS = 50
MOST_TURNS_OF_MANY = 10
LISTED = 60
CROWD = 1_000
"""Of a place with more people than that at a tick nobody is listed: they have little to do with each other."""
FEW_CHANGES = 0.05
"""Share of the people below which another turn is not worth its time."""


class Likely(NamedTuple):
    """How likely each person is to be in some places.

    Attributes
    ----------
    chance
        (people, ticks, places of a person) float32: of two people, one row of each is read from end to end.
    rank
        (people, places) int8: the number of each place among those of a person, -1 where it is none of them.
    """

    chance: NDArray[np.float32]
    rank: NDArray[np.int8]


NOT_KNOWN = Likely(np.empty((0, 0, 0), np.float32), np.empty((0, 0), np.int8))


def exchange_towards(
    tracks: NDArray[np.integer],
    wanted: NDArray[np.integer],
    lengths: NDArray[np.int64],
    *,
    fixed: bool = False,
    likely: Likely = NOT_KNOWN,
) -> NDArray[np.int32]:
    """Exchange ways at meetings until people are where others want them, as much as can be.

    Parameters
    ----------
    tracks
        (people, ticks) whole numbers from 0: places, people in the order of those who are wanted.
    wanted
        (people, ticks) whole numbers: places, or -1 where nothing is wanted; or several of them, (wishes, people, ticks), which
        count alike.
    lengths
        (ticks,) int64: how much each tick counts.
    fixed
        Whether everyone begins at the first tick as they are.
    likely
        By what an exchange is judged, where it is known; then what is wanted only says who is tried with whom.

    Returns
    -------
    (people, ticks) int32 places with the same flows.
    """
    found = np.ascontiguousarray(tracks, dtype=np.int32).copy()
    wanted = np.ascontiguousarray(wanted, dtype=np.int32)
    wanted = wanted[None] if wanted.ndim == 2 else wanted
    none, nowhere = np.empty((0, 0)), np.empty((0, 0), np.int64)
    now = _chances(found, likely)
    if len(found) <= ALL_PAIRS_UP_TO:
        _try_all_pairs(found, wanted, none, nowhere, likely, now, lengths, fixed, MOST_TURNS)
        return found
    places = 1 + max(int(found.max()), int(wanted.max()))
    for _ in range(MOST_TURNS_OF_MANY):
        there, begin = _who_is_where(found, places)
        if _try_listed(found, wanted, likely, now, lengths, fixed, there, begin) <= FEW_CHANGES * len(found):
            break
    return found


def exchange_until_likely(
    tracks: NDArray[np.integer], marginal: NDArray[np.float64], states: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Exchange ways at meetings until the time that people spend where they are likely to be is as long as can be.

    All pairs are tried.

    Parameters
    ----------
    tracks, lengths
        As in `exchange_towards`.
    marginal
        (states, people) float64: how likely each person is to be in the place of each state.
    states
        (ticks, places) int64: the state of each place at each tick, -1 where nobody is.
    """
    found = np.ascontiguousarray(tracks, dtype=np.int32).copy()
    now = _chances(found, NOT_KNOWN)
    _try_all_pairs(found, np.empty((0, 0, 0), np.int32), marginal, states, NOT_KNOWN, now, lengths, False, MOST_TURNS)
    return found


@compiled()
def _try_all_pairs(tracks, wanted, marginal, states, likely, now, lengths, fixed, most):
    people = len(tracks)
    changed = np.zeros(people, np.int64)  # the turn in which the ways of each person changed last
    for turn in range(1, most + 1):
        anything = False
        for p in range(people):
            for q in range(p + 1, people):
                if turn > 1 and changed[p] < turn - 1 and changed[q] < turn - 1:
                    continue
                if len(now) > 0:
                    swapped = _exchange_likely(p, q, tracks, likely, now, lengths, fixed)
                else:
                    swapped = _exchange(p, q, tracks, wanted, marginal, states, lengths, fixed)
                if swapped:
                    changed[p] = changed[q] = turn
                    anything = True
        if not anything:
            break


@compiled()
def _exchange(p, q, tracks, wanted, marginal, states, lengths, fixed):
    """Exchange the ways of two people between two meetings wherever that is worth more: all or nothing."""
    begin = 0
    gain = 0.0
    swapped = False
    ticks = tracks.shape[1]
    by_wish = len(marginal) == 0
    for tick in range(ticks):
        a, b = tracks[p, tick], tracks[q, tick]
        if a != b:
            if by_wish:
                better = 0
                for wish in wanted:
                    better += (wish[p, tick] == b) + (wish[q, tick] == a)
                    better -= (wish[p, tick] == a) + (wish[q, tick] == b)
                gain += lengths[tick] * better
            else:
                here, there = states[tick, a], states[tick, b]
                gain += lengths[tick] * (
                    (marginal[there, p] - marginal[here, p]) + (marginal[here, q] - marginal[there, q])
                )
        if a == b or tick == ticks - 1:
            if gain > 1e-6 and not (fixed and begin == 0):
                for each in range(begin, tick + 1):
                    tracks[p, each], tracks[q, each] = tracks[q, each], tracks[p, each]
                swapped = True
            gain = 0.0
            begin = tick + 1
    return swapped


@compiled()
def _exchange_likely(p, q, tracks, likely, now, lengths, fixed):
    """The same by how likely both are to be where they are: of many people, nearly all the time is spent here."""
    begin = 0
    gain = 0.0
    swapped = False
    one, other, one_now, other_now = tracks[p], tracks[q], now[p], now[q]
    chance, other_chance, rank, other_rank = likely.chance[p], likely.chance[q], likely.rank[p], likely.rank[q]
    last = len(one) - 1
    for tick in range(last + 1):
        a, b = one[tick], other[tick]
        if a != b:
            gain += lengths[tick] * (
                _chance(chance, rank, tick, b)
                - one_now[tick]
                + _chance(other_chance, other_rank, tick, a)
                - other_now[tick]
            )
        if a == b or tick == last:
            if gain > 1e-6 and not (fixed and begin == 0):
                for each in range(begin, tick + 1):
                    one[each], other[each] = other[each], one[each]
                    one_now[each] = _chance(chance, rank, each, one[each])
                    other_now[each] = _chance(other_chance, other_rank, each, other[each])
                swapped = True
            gain = 0.0
            begin = tick + 1
    return swapped


@compiled()
def _chance(chance, rank, tick, place):
    return chance[tick, rank[place]] if rank[place] >= 0 else np.float32(0.0)


@compiled()
def _chances(tracks, likely):
    """How likely everyone is where they are: (people, ticks) float32; nobody where that is not known."""
    now = np.empty((len(likely.chance), tracks.shape[1]), np.float32)
    for person in range(len(now)):
        for tick in range(tracks.shape[1]):
            now[person, tick] = _chance(likely.chance[person], likely.rank[person], tick, tracks[person, tick])
    return now


@compiled()
def _who_is_where(tracks, places):
    """People by place: (ticks, people) int32, and where each place begins, (ticks, places + 1) int64."""
    people, ticks = tracks.shape
    there = np.empty((ticks, people), np.int32)
    begin = np.zeros((ticks, places + 1), np.int64)
    for tick in range(ticks):
        for person in range(people):
            begin[tick, tracks[person, tick] + 1] += 1
        for place in range(places):
            begin[tick, place + 1] += begin[tick, place]
        filled = begin[tick].copy()
        for person in range(people):
            place = tracks[person, tick]
            there[tick, filled[place]] = person
            filled[place] += 1
    return there, begin


@compiled()
def _try_listed(tracks, wanted, likely, now, lengths, fixed, there, begin):
    """Try everyone with those who are most where they are wanted themselves, but are not; gives how many exchanged."""
    people, ticks = tracks.shape
    time = np.zeros(people, np.int64)
    met = np.full(people, -1, np.int64)  # the last person whom each has met
    found, order = np.empty(people, np.int64), np.empty(people, np.int64)
    none, nowhere = np.empty((0, 0)), np.empty((0, 0), np.int64)
    exchanged = 0
    for p in range(people):
        known = 0
        for tick in range(ticks):
            first, last = begin[tick, tracks[p, tick]], begin[tick, tracks[p, tick] + 1]
            if last - first <= CROWD:
                for entry in range(first, last):
                    met[there[tick, entry]] = p
        met[p] = -1
        for tick in range(ticks):
            for wish in wanted:
                place = wish[p, tick]
                if place < 0 or place == tracks[p, tick]:
                    continue
                first, last = begin[tick, place], begin[tick, place + 1]
                if last - first > CROWD:
                    continue
                for entry in range(first, last):
                    q = there[tick, entry]
                    if met[q] != p:
                        continue
                    if time[q] == 0:
                        found[known] = q
                        known += 1
                    time[q] += lengths[tick]
        # Those with the most time first, and of these the one who was met first.
        order[:known] = (-time[found[:known]] << 32) + np.arange(known)
        listed = min(LISTED, known)
        best = np.sort(np.partition(order[:known], listed - 1)[:listed] if known > listed else order[:known])
        anything = False
        for key in best:
            q = found[key & 0xFFFFFFFF]
            if len(now) > 0:
                swapped = _exchange_likely(p, q, tracks, likely, now, lengths, fixed)
            else:
                swapped = _exchange(p, q, tracks, wanted, none, nowhere, lengths, fixed)
            anything |= swapped
        for one in range(known):
            time[found[one]] = 0
        exchanged += anything
    return exchanged
