"""Meetings: two people in one place at the same time may go on as each other, and no flow changes.

People whose flows are known can be brought nearer to any goal only at their meetings: between two of these, two people
either keep their paths or exchange them, whichever is worth more.
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
MOST_TURNS_OF_MANY = 20
LISTED = 60
CROWD = 1_000
"""Of a place with more people than that at a tick nobody is listed: they have little to do with each other."""
FEW_CHANGES = 0.02
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


class _Worth(NamedTuple):
    """By what an exchange is judged: as in `exchange_towards` by `likely`, or as in `exchange_until_likely`, or by what is wanted."""

    wanted: NDArray[np.int32]
    likely: Likely
    marginal: NDArray[np.float64] = np.empty((0, 0))
    states: NDArray[np.int64] = np.empty((0, 0), np.int64)


def exchange_towards(
    tracks: NDArray[np.integer],
    wanted: NDArray[np.integer],
    lengths: NDArray[np.int64],
    *,
    fixed: bool = False,
    likely: Likely = NOT_KNOWN,
) -> NDArray[np.int32]:
    """Exchange paths at meetings until people are where others want them, as much as can be.

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
    wishes = np.ascontiguousarray(wanted, dtype=np.int32)
    worth = _Worth(wishes[None] if wishes.ndim == 2 else wishes, likely)
    now = _chances(found, likely)
    if len(found) <= ALL_PAIRS_UP_TO:
        _try_all_pairs(found, worth, now, lengths, fixed, MOST_TURNS)
        return found
    places = 1 + max(int(found.max()), int(wishes.max()))
    changed = np.ones(len(found), np.bool_)
    for _ in range(MOST_TURNS_OF_MANY):
        changed = _try_listed(changed, found, worth, now, lengths, fixed, _who_is_where(found, places))
        if changed.sum() <= FEW_CHANGES * len(found):
            break
    return found


def exchange_until_likely(
    tracks: NDArray[np.integer], marginal: NDArray[np.float64], states: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Exchange paths at meetings until the time that people spend where they are likely to be is as long as can be.

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
    worth = _Worth(np.empty((0, 0, 0), np.int32), NOT_KNOWN, marginal, states)
    _try_all_pairs(found, worth, _chances(found, NOT_KNOWN), lengths, False, MOST_TURNS)
    return found


@compiled()
def _try_all_pairs(tracks, worth, now, lengths, fixed, most):
    people = len(tracks)
    gain = np.empty(tracks.shape[1], np.float32)
    changed = np.zeros(people, np.int64)  # the turn in which the ways of each person changed last
    for turn in range(1, most + 1):
        anything = False
        for p in range(people):
            for q in range(p + 1, people):
                if turn > 1 and changed[p] < turn - 1 and changed[q] < turn - 1:
                    continue
                if _exchange(p, q, tracks, worth, now, lengths, fixed, gain):
                    changed[p] = changed[q] = turn
                    anything = True
        if not anything:
            break


@compiled()
def _exchange(p, q, tracks, worth, now, lengths, fixed, gain):
    """Exchange the paths of two people between two meetings wherever that is worth more: all or nothing."""
    one, other, wanted, likely = tracks[p], tracks[q], worth.wanted, worth.likely
    last = len(one) - 1
    if len(now) > 0:
        chance, other_chance, rank, other_rank = likely.chance[p], likely.chance[q], likely.rank[p], likely.rank[q]
        for tick in range(last + 1):
            a, b = one[tick], other[tick]
            gain[tick] = (
                0.0
                if a == b
                else (
                    _chance(chance, rank, tick, b)
                    - now[p, tick]
                    + _chance(other_chance, other_rank, tick, a)
                    - now[q, tick]
                )
            )
    elif len(worth.marginal) > 0:
        for tick in range(last + 1):
            here, there = worth.states[tick, one[tick]], worth.states[tick, other[tick]]
            gain[tick] = worth.marginal[there, p] - worth.marginal[here, p]
            gain[tick] += worth.marginal[here, q] - worth.marginal[there, q]
    else:
        gain[:] = 0.0
        for wish in range(len(wanted)):
            mine, its = wanted[wish, p], wanted[wish, q]
            for tick in range(last + 1):
                a, b, c, d = one[tick], other[tick], mine[tick], its[tick]
                gain[tick] += np.int32(c == b) + np.int32(d == a) - np.int32(c == a) - np.int32(d == b)
    begin = 0
    total = 0.0
    swapped = False
    for tick in range(last + 1):
        total += lengths[tick] * gain[tick]
        if one[tick] == other[tick] or tick == last:
            if total > 1e-6 and not (fixed and begin == 0):
                for each in range(begin, tick + 1):
                    one[each], other[each] = other[each], one[each]
                swapped = True
            total = 0.0
            begin = tick + 1
    if swapped and len(now) > 0:
        for person in (p, q):
            _set_chances(person, tracks, likely, now)
    return swapped


@compiled()
def _chance(chance, rank, tick, place):
    return chance[tick, rank[place]] if rank[place] >= 0 else np.float32(0.0)


@compiled()
def _set_chances(person, tracks, likely, now):
    """Write how likely a person is where that person is at each tick."""
    for tick in range(tracks.shape[1]):
        now[person, tick] = _chance(likely.chance[person], likely.rank[person], tick, tracks[person, tick])


@compiled()
def _chances(tracks, likely):
    """How likely everyone is where they are: (people, ticks) float32; nobody where that is not known."""
    now = np.empty((len(likely.chance), tracks.shape[1]), np.float32)
    for person in range(len(now)):
        _set_chances(person, tracks, likely, now)
    return now


@compiled()
def _who_is_where(tracks, places):
    """List the people in each place at each tick, those who have just come first.

    Returns
    -------
    (ticks, people) int32; where each place begins in it, (ticks, places + 1) int64; where those begin who were there before,
    (ticks, places) int64; and (ticks, people) int32, the tick at which each of them leaves.
    """
    people, ticks = tracks.shape
    there, leaves = np.empty((ticks, people), np.int32), np.empty((ticks, people), np.int32)
    begin, stayed = np.zeros((ticks, places + 1), np.int64), np.zeros((ticks, places), np.int64)
    until = np.full(people, ticks, np.int32)
    for tick in range(ticks - 1, -1, -1):
        for person in range(people):
            place = tracks[person, tick]
            begin[tick, place + 1] += 1
            stayed[tick, place] += tick == 0 or tracks[person, tick - 1] != place
            if tick < ticks - 1 and tracks[person, tick + 1] != place:
                until[person] = tick + 1
        for place in range(places):
            begin[tick, place + 1] += begin[tick, place]
            stayed[tick, place] += begin[tick, place]
        come, been = begin[tick].copy(), stayed[tick].copy()
        for person in range(people):
            place = tracks[person, tick]
            if tick == 0 or tracks[person, tick - 1] != place:
                at = come[place]
                come[place] += 1
            else:
                at = been[place]
                been[place] += 1
            there[tick, at], leaves[tick, at] = person, until[person]
    return there, begin, stayed, leaves


@compiled()
def _try_listed(some, tracks, worth, now, lengths, fixed, index):
    """Try some people with those who are most where they are wanted themselves, but are not; gives who exchanged."""
    there, begin, stayed, leaves = index
    people, ticks = tracks.shape
    wanted = worth.wanted
    since = np.zeros(ticks + 1, np.int64)
    since[1:] = np.cumsum(lengths)
    time = np.zeros(people, np.int64)
    met = np.full(people, -1, np.int64)  # the last person whom each has met
    found, order = np.empty(people, np.int64), np.empty(people, np.int64)
    gain = np.empty(ticks, np.float32)
    changed = np.zeros(people, np.bool_)
    for p in np.flatnonzero(some):
        known = 0
        listed_at = -1  # the place whose people are listed: only those who come are new then
        for tick in range(ticks):
            place = tracks[p, tick]
            first, last = begin[tick, place], begin[tick, place + 1]
            if last - first > CROWD:
                listed_at = -1
                continue
            for entry in range(first, stayed[tick, place] if place == listed_at else last):
                met[there[tick, entry]] = p
            listed_at = place
        met[p] = -1
        for wish in range(len(wanted)):
            listed_at, end = -1, 0
            for tick in range(ticks):
                place = wanted[wish, p, tick]
                if place < 0 or place == tracks[p, tick] or begin[tick, place + 1] - begin[tick, place] > CROWD:
                    listed_at = -1
                    continue
                if place != listed_at:
                    end = tick + 1
                    while end < ticks and wanted[wish, p, end] == place and tracks[p, end] != place:
                        end += 1
                last = stayed[tick, place] if place == listed_at else begin[tick, place + 1]
                listed_at = place
                for entry in range(begin[tick, place], last):
                    q = there[tick, entry]
                    if met[q] == p:
                        if time[q] == 0:
                            found[known] = q
                            known += 1
                        time[q] += since[min(leaves[tick, entry], end)] - since[tick]
        # Those with the most time first, and of these the one who was met first.
        order[:known] = (-time[found[:known]] << 32) + np.arange(known)
        listed = min(LISTED, known)
        best = np.sort(np.partition(order[:known], listed - 1)[:listed] if known > listed else order[:known])
        for key in best:
            q = found[key & 0xFFFFFFFF]
            if _exchange(p, q, tracks, worth, now, lengths, fixed, gain):
                changed[p] = changed[q] = True
        for one in range(known):
            time[found[one]] = 0
    return changed
