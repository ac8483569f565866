"""Search: exchange the paths of two people wherever they meet, towards people with few, repeated habits.

Two people who are in one place at the same time can exchange their futures, and no count changes. With all meetings of
two people (and all moments at which one of them moves), their two paths split into pieces, and each piece can go to
either. The best split, for habits as they are without the piece itself, is found by dynamic programming.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.assignment.kernels import compiled
from rekindle.attacks.habits.problem import BINS_PER_DAY, Problem
from rekindle.attacks.habits.rng import gumbel, uniform, whole
from rekindle.attacks.moves import MoveModel

__all__ = ["HabitModel", "SwapSearch"]

DWELL_CLASSES = 12
WEIGHTS, PLAIN_WEIGHTS = (4.0, 16.0), (2.0, 2.0)
"""How many moves and stays everybody's count for, beside a person's own: hardly anyone has lengths of stay of their own. The
second pair holds where people are away at times, of whom less was found with the first, and with flows; there lengths do not
count within their class either."""
PLACE_PRIOR = 0.05
BIN_PRIOR = 0.02
REDEAL = 0.25
"""Share of the proposals that redistribute two paths, from a part of the time."""


@dataclass(frozen=True, eq=False)
class HabitModel:
    """What is usual for everybody, learnt from tracks.

    Attributes
    ----------
    moves
        (places, places) float64: share of the moves from a place that lead to another.
    dwells
        (places, DWELL_CLASSES) float64: share of the stays by the logarithm of their length; the same for all places but away.
    away
        The place of people who are away; -1 where nobody ever is.
    back
        Share of the returns that lead to where the person was seen last.
    weights
        (2,) float64: how many moves and stays of a person everybody's count for.
    widths
        (DWELL_CLASSES,) float64: among how many lengths a stay of each class is of one.
    log_place, log_bin
        float64 tables: log(n + prior) for n samples, times the weight of the term.
    """

    moves: NDArray[np.float64]
    dwells: NDArray[np.float64]
    away: int
    back: float
    weights: NDArray[np.float64]
    widths: NDArray[np.float64]
    log_place: NDArray[np.float64]
    log_bin: NDArray[np.float64]

    @classmethod
    def learn(
        cls,
        problem: Problem,
        tracks: list[NDArray[np.int32]],
        place_weight: float = 0.25,
        bin_weight: float = 0.25,
        known: MoveModel | None = None,
    ) -> HabitModel:
        """Learn from tracks, each (people, ticks) int32 places, and from a model of how people move, if there is one."""
        places = problem.counts.shape[1]
        away = problem.away
        seen = np.zeros((places, places))
        dwells = np.ones((2, DWELL_CLASSES))
        returns = np.ones(2)
        for each in tracks:
            _pool(each, problem.starts, away, seen, dwells, returns)
        seen /= len(tracks)
        ring = np.zeros((places, places), np.int64)
        centres = len(problem.xy)
        if known is not None:
            seen[:centres, :centres] += known.moves()[problem.places[:centres]][:, problem.places[:centres]].toarray()
            dwells[0] += known.stays()
        ring[:centres, :centres] = np.minimum(np.rint(problem.distances()), 60)
        # To go away and to return are no distances.
        ring[:centres, centres:], ring[centres:, :centres] = 61, 62
        by_distance = np.bincount(ring.ravel(), seen.ravel(), 63) + 0.01
        available = np.maximum(np.bincount(ring.ravel(), minlength=63), 1)
        rate = (by_distance / available)[ring]
        np.fill_diagonal(rate, 0.0)
        rate /= np.maximum(rate.sum(axis=1, keepdims=True), 1e-12)
        moves = (seen + 5.0 * rate) / (seen.sum(axis=1, keepdims=True) + 5.0)
        shares = dwells / dwells.sum(axis=1, keepdims=True)
        # A piece that only a part of the time counts for is scored on top of all of it.
        count = np.arange(2 * len(problem.bins) + 2)
        plain = away >= 0 or problem.flows is not None
        return cls(
            np.maximum(moves, 1e-6),
            np.ascontiguousarray(shares[(np.arange(places) == away).astype(np.int64)]),
            away,
            float(returns[1] / returns.sum()),
            np.array(PLAIN_WEIGHTS if plain else WEIGHTS),
            np.exp2(np.arange(DWELL_CLASSES) * float(not plain)),
            place_weight * np.log(count + PLACE_PRIOR),
            bin_weight * np.log(count + BIN_PRIOR),
        )


@compiled()
def _pool(
    tracks: NDArray[np.int32],
    starts: NDArray[np.int64],
    away: int,
    moves: NDArray[np.float64],
    dwells: NDArray[np.float64],
    returns: NDArray[np.float64],
) -> None:
    """Count moves, stays elsewhere and away by length, and returns to another place and to the place last seen."""
    for person in range(len(tracks)):
        since = 0
        last = -1
        for tick in range(1, tracks.shape[1]):
            a, b = tracks[person, tick - 1], tracks[person, tick]
            if a != b:
                moves[a, b] += 1.0
                dwells[int(a == away), _dwell_class(starts[tick] - since)] += 1.0
                since = starts[tick]
                if a == away and last >= 0:
                    returns[int(b == last)] += 1.0
                last = a


@compiled()
def _dwell_class(length: int) -> int:
    kind = 0
    while length > 1 and kind < DWELL_CLASSES - 1:
        length >>= 1
        kind += 1
    return kind


@compiled()
def _usual(a, b, last, habits):
    """Chance that somebody who leaves a goes to b; who returns is likely to be where they were seen last."""
    moves, _, away, back, _, _ = habits
    if a != away or last < 0:
        return moves[a, b]
    return (1.0 - back) * moves[a, b] + (back if b == last else 0.0)


@compiled()
def _slot(keys: NDArray[np.int64], key: int) -> int:
    """Find where a key is in an open-addressing table, or where it would go; -1 marks a free slot."""
    slot = (key * 40503) & (len(keys) - 1)
    while keys[slot] != key and keys[slot] != -1:
        slot = (slot + 1) & (len(keys) - 1)
    return slot


class SwapSearch:
    """One chain of the search: its tracks, the score of each person, and its random numbers.

    Attributes
    ----------
    tracks
        (people, ticks) int32 places.
    scores
        (people,) float64: log probability of each person's habits, up to a constant.
    """

    def __init__(
        self, problem: Problem, model: HabitModel, tracks: NDArray[np.int32], random: NDArray[np.int64]
    ) -> None:
        self.problem, self.model, self.random = problem, model, random
        self.tracks = np.ascontiguousarray(tracks, dtype=np.int32).copy()
        places = problem.counts.shape[1]
        # A power of two, larger than twice any number of different moves of one person.
        slots = 1 << (2 * min(problem.ticks, places**2)).bit_length()
        self._tables = (
            np.full((2, slots), -1, np.int64),  # keys of moves
            np.zeros((2, slots), np.int64),  # how often
            np.zeros((2, places), np.int64),  # moves from a place
            np.zeros((2, places * DWELL_CLASSES), np.int64),  # stays by place and class
            np.zeros((2, places), np.int64),  # samples by place
            np.zeros((2, places * BINS_PER_DAY), np.int64),  # samples by place and part of the day
        )
        self._fixed = (
            problem.starts,
            problem.samples,
            problem.bins,
            (model.moves, model.dwells, model.away, model.back, model.weights, model.widths),
            model.log_place,
            model.log_bin,
        )
        self.scores = np.array([_score(row, *self._fixed, self._tables) for row in self.tracks])

    @property
    def score(self) -> float:
        """Log probability of everybody's habits, up to a constant."""
        return float(self.scores.sum())

    def run(
        self, proposals: int, redeal: float = REDEAL, hot: float = 1.0, cold: float = 1.0, noise: float = 0.3
    ) -> int:
        """Make proposals while the temperature falls from hot to cold; give how many were taken."""
        fixed, tables = self._fixed, self._tables
        return int(
            _anneal(
                self.tracks,
                self.scores,
                *fixed,
                tables,
                self.problem.flows is not None,
                proposals,
                redeal,
                hot,
                cold,
                noise,
                self.random,
            )
        )


@compiled()
def _score(row, starts, samples, bins, habits, log_place, log_bin, tables):
    """Log probability of one person's moves, stays and places, each given those before."""
    keys, often, left, stays, at, at_bin = tables
    ticks = len(row)
    dwells, weights, widths = habits[1], habits[4], habits[5]
    move_weight, dwell_weight = weights[0], weights[1]
    places = len(dwells)
    total = 0.0
    chance = 1.0
    since = 0
    last = np.int64(-1)
    for tick in range(ticks):
        a = row[tick]
        if tick > 0 and row[tick - 1] != a:
            b = a
            a = row[tick - 1]
            slot = _slot(keys[0], a * places + b)
            keys[0, slot] = a * places + b
            kind = _dwell_class(starts[tick] - since)
            # A stay of a class is of one length among several.
            chance *= (
                (often[0, slot] + move_weight * _usual(a, b, last, habits))
                * (stays[0, a * DWELL_CLASSES + kind] + dwell_weight * dwells[a, kind])
                / ((left[0, a] + move_weight) * (left[0, a] + dwell_weight) * widths[kind])
            )
            if chance < 1e-200:
                total += math.log(chance)
                chance = 1.0
            last = np.int64(a)
            often[0, slot] += 1
            left[0, a] += 1
            stays[0, a * DWELL_CLASSES + kind] += 1
            since = starts[tick]
            a = b
        for sample in range(samples[tick], samples[tick + 1]):
            cell = a * BINS_PER_DAY + bins[sample]
            total += log_place[at[0, a]] + log_bin[at_bin[0, cell]]
            at[0, a] += 1
            at_bin[0, cell] += 1
    _forget(row, samples, places, tables, np.int64(0))
    return total + math.log(chance)


@compiled()
def _forget(row, samples, places, tables, side):
    """Empty the tables of one side of everything that a row may have put there."""
    keys, often, left, stays, at, at_bin = tables
    last = -1
    for tick in range(len(row)):
        a = row[tick]
        if a == last:
            continue
        if last >= 0:
            # A table emptied slot by slot breaks its probe chains: follow each chain to its end.
            slot = ((last * places + a) * 40503) & (keys.shape[1] - 1)
            while keys[side, slot] != -1:
                keys[side, slot] = -1
                often[side, slot] = 0
                slot = (slot + 1) & (keys.shape[1] - 1)
        last = a
        left[side, a] = 0
        at[side, a] = 0
        for kind in range(DWELL_CLASSES):
            stays[side, a * DWELL_CLASSES + kind] = 0
        for part in range(BINS_PER_DAY):
            at_bin[side, a * BINS_PER_DAY + part] = 0


@compiled()
def _remember(row, window, starts, samples, bins, places, tables, side):
    """Count one person's moves, stays and places within a window of ticks; the stay that it begins with is whole."""
    keys, often, left, stays, at, at_bin = tables
    since = 0
    for tick in range(window[1]):
        a = row[tick]
        if tick <= window[0] and tick > 0 and row[tick - 1] != a:
            since = starts[tick]
        if tick < window[0]:
            continue
        if tick > window[0] and row[tick - 1] != a:
            b = row[tick - 1]
            slot = _slot(keys[side], b * places + a)
            keys[side, slot] = b * places + a
            often[side, slot] += 1
            left[side, b] += 1
            stays[side, b * DWELL_CLASSES + _dwell_class(starts[tick] - since)] += 1
            since = starts[tick]
        for sample in range(samples[tick], samples[tick + 1]):
            at[side, a] += 1
            at_bin[side, a * BINS_PER_DAY + bins[sample]] += 1


@compiled()
def _presence(side, place, own, first, last, bins, log_place, log_bin, at, at_bin):
    """Score a piece's samples in a place, given all others of that person."""
    if own:
        for sample in range(first, last):
            at[side, place] -= 1
            at_bin[side, place * BINS_PER_DAY + bins[sample]] -= 1
    total = 0.0
    for sample in range(first, last):
        cell = place * BINS_PER_DAY + bins[sample]
        total += log_place[at[side, place]] + log_bin[at_bin[side, cell]]
        at[side, place] += 1
        at_bin[side, cell] += 1
    if not own:
        for sample in range(first, last):
            at[side, place] -= 1
            at_bin[side, place * BINS_PER_DAY + bins[sample]] -= 1
    return total


@compiled()
def _leaving(side, a, b, last, length, own_a, own_b, own_kind, habits, tables):
    """Chance of a move from a to b after a stay, given all others of that person.

    The person now moves from own_a to own_b at this moment (the same twice: does not move), after a stay of own_kind.
    """
    keys, often, left, stays = tables[0], tables[1], tables[2], tables[3]
    dwells, weights, widths = habits[1], habits[4], habits[5]
    slot = _slot(keys[side], a * len(dwells) + b)
    n = often[side, slot] if keys[side, slot] != -1 else 0
    kind = _dwell_class(length)
    stay = stays[side, a * DWELL_CLASSES + kind]
    out = left[side, a]
    if a == own_a and own_a != own_b:
        out -= 1
        if b == own_b:
            n -= 1
        if kind == own_kind:
            stay -= 1
    return (
        (n + weights[0] * _usual(a, b, last, habits))
        * (stay + weights[1] * dwells[a, kind])
        / ((out + weights[0]) * (out + weights[1]) * widths[kind])
    )


@compiled()
def _split(rows, window, starts, samples, bins, habits, log_place, log_bin, tables, meet, noise, random, work, new):
    """Find the best split of two ways, given the habits that each has within a window of ticks: fills new, tells a change.

    Where flows are known (meet), the two can exchange their paths only when they leave a place in which both were.
    """
    begin, crossed = work
    ticks = rows.shape[1]
    places = len(habits[1])
    at, at_bin = tables[4], tables[5]
    best = np.zeros(2)
    best_next = np.empty(2)
    came = np.zeros((2, 2), np.int64)  # state, side: when the person came to where he is
    came_next = np.empty((2, 2), np.int64)
    last_at = np.full((2, 2), -1, np.int64)  # state, side: where the person was before
    last_next = np.empty((2, 2), np.int64)
    cell = np.empty(2, np.int64)  # places of the two rows now, and next
    goal = np.empty(2, np.int64)
    own_since = np.zeros(2, np.int64)
    own_kind = np.empty(2, np.int64)
    # Pieces of the two ways: from one moment at which either moves to the next.
    pieces = 1
    begin[0] = 0
    for tick in range(1, ticks):
        if rows[0, tick] != rows[0, tick - 1] or rows[1, tick] != rows[1, tick - 1]:
            begin[pieces] = tick
            pieces += 1
    begin[pieces] = ticks
    for side in range(2):
        _remember(rows[side], window, starts, samples, bins, places, tables, side)
    goal[0], goal[1] = rows[0, 0], rows[1, 0]
    for piece in range(pieces):
        own = window[0] <= begin[piece] and begin[piece + 1] <= window[1]
        first, last = samples[begin[piece]], samples[begin[piece + 1]]
        if piece > 0:
            now = starts[begin[piece]]
            cell[0], cell[1] = goal[0], goal[1]
            goal[0], goal[1] = rows[0, begin[piece]], rows[1, begin[piece]]
            meeting = goal[0] == goal[1]
            counted = window[0] < begin[piece] < window[1]
            for side in range(2):
                own_kind[side] = -1
                if cell[side] != goal[side]:
                    own_kind[side] = _dwell_class(now - own_since[side])
                    own_since[side] = now
            for state in range(2):
                best_next[state] = -np.inf
                for before in range(2):
                    # Who came by which path to a meeting is part of the state, so that stays are known.
                    if before != state and (meeting or (meet and cell[0] != cell[1])):
                        continue
                    gain = best[before]
                    chance = 1.0
                    for side in range(2):
                        a, b = cell[side ^ before], goal[side ^ state]
                        if a != b:
                            chance *= _leaving(
                                side,
                                a,
                                b,
                                last_at[before, side],
                                now - came[before, side],
                                cell[side] if counted else -1,
                                goal[side],
                                own_kind[side],
                                habits,
                                tables,
                            )
                    if chance != 1.0:
                        gain += math.log(chance)
                    if before != state and noise > 0.0:
                        gain += noise * gumbel(random)
                    if gain > best_next[state]:
                        best_next[state] = gain
                        crossed[piece, state] = before
                        for side in range(2):
                            stays_put = cell[side ^ before] == goal[side ^ state]
                            came_next[state, side] = came[before, side] if stays_put else now
                            last_next[state, side] = last_at[before, side] if stays_put else cell[side ^ before]
            best[:] = best_next
            came[:] = came_next
            last_at[:] = last_next
        if goal[0] != goal[1] and last > first:
            for side in range(2):
                best[0] += _presence(side, goal[side], own, first, last, bins, log_place, log_bin, at, at_bin)
                best[1] += _presence(side, goal[side ^ 1], False, first, last, bins, log_place, log_bin, at, at_bin)
            if noise > 0.0:
                drawn = uniform(random)
                best[1] += noise * math.log(drawn / (1.0 - drawn))
    for side in range(2):
        _forget(rows[side], samples, places, tables, side)
    state = 0 if best[0] >= best[1] else 1
    changes = False
    for piece in range(pieces - 1, -1, -1):
        for tick in range(begin[piece], begin[piece + 1]):
            new[state, tick] = rows[0, tick]
            new[state ^ 1, tick] = rows[1, tick]
        if piece > 0:
            earlier = crossed[piece, state]
            if earlier != state:
                changes = True
            state = earlier
    return changes


@compiled()
def _anneal(
    tracks,
    scores,
    starts,
    samples,
    bins,
    habits,
    log_place,
    log_bin,
    tables,
    meet,
    proposals,
    redeal,
    hot,
    cold,
    noise,
    random,
):
    people, ticks = tracks.shape
    work = (np.empty(ticks + 1, np.int64), np.empty((ticks, 2), np.int8))
    others = np.empty(people, np.int64)
    begin = np.empty(ticks + 1, np.int64)
    all_rows = np.empty((2, ticks), np.int32)
    all_new = np.empty((2, ticks), np.int32)
    all_starts = np.empty(ticks + 1, np.int64)
    all_samples = np.empty(ticks + 1, np.int64)
    taken = 0
    for proposal in range(proposals):
        temperature = hot * (cold / hot) ** (proposal / max(1, proposals - 1))
        p = whole(random, people)
        tick = whole(random, ticks)
        found = 0
        for person in range(people):
            if person != p and tracks[person, tick] == tracks[p, tick]:
                others[found] = person
                found += 1
        if found == 0:
            continue
        q = others[whole(random, found)]
        # Both paths change only where a piece begins, however they are split.
        pieces = _pieces(tracks[p], tracks[q], begin)
        rows, new = all_rows[:, :pieces], all_new[:, :pieces]
        for piece in range(pieces):
            rows[0, piece], rows[1, piece] = tracks[p, begin[piece]], tracks[q, begin[piece]]
        for piece in range(pieces + 1):
            all_starts[piece], all_samples[piece] = starts[begin[piece]], samples[begin[piece]]
        times, sampled = all_starts[: pieces + 1], all_samples[: pieces + 1]
        redealt = uniform(random) < redeal
        if redealt:
            # Redistribute all from what the two did in a part of the time; else one habit cannot move without the others.
            length = max(1, int(ticks * math.exp(math.log(0.05) * uniform(random))) // 2)
            first = whole(random, ticks - length + 1)
            window = (
                np.int64(np.searchsorted(begin[:pieces], first, side="right")) - 1,
                np.int64(np.searchsorted(begin[:pieces], first + length)),
            )
            _split(
                rows, window, times, sampled, bins, habits, log_place, log_bin, tables, meet, 0.0, random, work, new
            )
            rows[:] = new
        changes = _split(
            rows,
            (np.int64(0), np.int64(pieces)),
            times,
            sampled,
            bins,
            habits,
            log_place,
            log_bin,
            tables,
            meet,
            temperature * noise,
            random,
            work,
            new,
        )
        if not (changes or redealt):
            continue
        one = _score(new[0], times, sampled, bins, habits, log_place, log_bin, tables)
        two = _score(new[1], times, sampled, bins, habits, log_place, log_bin, tables)
        gain = one + two - scores[p] - scores[q]
        if gain >= 0 or uniform(random) < math.exp(gain / temperature):
            for piece in range(pieces):
                tracks[p, begin[piece] : begin[piece + 1]] = new[0, piece]
                tracks[q, begin[piece] : begin[piece + 1]] = new[1, piece]
            scores[p] = one
            scores[q] = two
            taken += 1
    return taken


@compiled()
def _pieces(one, other, begin):
    """Find where either path changes: fills in where each piece begins, and the end; gives how many there are."""
    pieces = 1
    begin[0] = 0
    for tick in range(1, len(one)):
        if one[tick] != one[tick - 1] or other[tick] != other[tick - 1]:
            begin[pieces] = tick
            pieces += 1
    begin[pieces] = len(one)
    return pieces
