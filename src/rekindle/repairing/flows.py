"""A release of flows back to flows in which nobody gets lost: who arrives in a location leaves it, or stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

from rekindle.checks import whole
from rekindle.errors import InvalidData
from rekindle.model import AWAY, Counts, Flows, Release
from rekindle.repairing.observations import NOTHING, Floats, Observations, exact_totals, observe
from rekindle.repairing.people import guess_people
from rekindle.repairing.repairs import Guess, as_published, profile_of, smooth_shares
from rekindle.repairing.totals import totals_of
from rekindle.repairing.whole import nearest_counts

ROUNDS = 100
"""Of fitting rows and columns in turn."""
UNSEEN = 1e-6
"""The weight of a flow of which nothing was seen, beside one of a person."""
KNOWN = 1e3
"""The price of changing a number that is known; that of a flow between locations that are not listed is between 1 and 2."""
BEYOND = 50.0
"""The price of a person above what a number can be at most: more than that of any flow of which nothing was seen."""
MOST_LEFT = 2_000
"""People of a window who are given a flow one by one, so that as few as possible go where nobody was seen to go."""


def repair_flows(release: Release, people: int | None = None, counts: Counts | None = None) -> Flows:
    """Turn a release of flows back into flows that fit each other, and counts where these are published too.

    Numbers are read as those of counts are, and smoothed in time. Then how many people are in each location when windows
    begin and end is estimated, unless it is known, and the flows of each window are fitted to both ends (iterative
    proportional fitting, rounded so that the sums stay). Numbers that are published exactly are kept, and withheld or rounded ones
    stay within what they can be, where the ends allow it.

    Parameters
    ----------
    release
        What was published of the flows. Pairs of locations without a column are taken to have no flow.
    people
        How many people there are in all; None takes those of the counts, or guesses.
    counts
        How many people are in each location, where that is known: at least at the steps of the flows. Without stayers
        in the release, flows say nothing of most people, so that counts are needed.

    Returns
    -------
    Flows with stayers, of so many people.
    """
    return _repaired(release, people, counts, smooth_shares)


def daily_profile_of_flows(release: Release, people: int | None = None, counts: Counts | None = None) -> Flows:
    """Use each flow's mean over the windows that begin at the same step of the day; otherwise as `repair_flows`."""
    return _repaired(release, people, counts, profile_of(release.calendar))


def kept_flows(release: Release, people: int | None = None, counts: Counts | None = None) -> Flows:
    """Take every published number as it is; otherwise as `repair_flows`."""
    return _repaired(release, people, counts, as_published)


FLOW_REPAIRS: dict[str, Callable[[Release, int | None, Counts | None], Flows]] = {
    "smoothed": repair_flows,
    "daily profile": daily_profile_of_flows,
    "kept": kept_flows,
}
"""The attacker's ways to repair a release of flows, by name: (release, people, counts) to flows. The first is `repair_flows`."""


def _repaired(release: Release, people: int | None, counts: Counts | None, guess_from: Guess) -> Flows:
    if release.pairs is None:
        raise InvalidData("This is a release of counts; repair it with `repair`.")
    if not release.stayers and counts is None:
        raise InvalidData(
            "This release of flows is without stayers, so that it does not say how many people are where. Give `counts`, "
            "or publish the stayers too."
        )
    calendar = release.moments
    everyone = counts.people if counts is not None and people is None else people
    everyone = guess_people(release) if everyone is None else whole("people", everyone, least=1)
    if exact_totals(release) is not None and release.stayers:
        window, column = np.nonzero(release.values)
        start, end = release.pairs[column].T
        with suppress(InvalidData):  # numbers that look exact may not be
            return Flows(
                window,
                start,
                end,
                release.values[window, column].astype(np.int64),
                release.locations,
                calendar,
                people=everyone,
            )
    pairs, guess, low, high = _estimate(release, everyone, guess_from)
    places = len(release.locations)
    origin, destination = np.where(pairs == AWAY, places, pairs).T
    if counts is None:
        there = _ends(guess, low, high, origin, destination, places, everyone)
    else:
        nobody = Flows([], [], [], [], release.locations, calendar, stayers=False)
        values = counts.values[nobody.moments(counts.calendar)].astype(np.int64)
        there = np.append(values, everyone - values.sum(axis=1, keepdims=True), axis=1)
    unlisted = np.ones((places + 1, places + 1))
    unlisted[origin, destination] = 0.0
    far = np.pad(release.locations.distances, ((0, 1), (0, 1)), constant_values=1e3)
    columns = []
    for step in range(release.steps):
        table = np.zeros((3, places + 1, places + 1))
        table[2] = np.inf
        table[:, origin, destination] = guess[step], low[step], high[step]
        price = KNOWN * (table[1] == table[2]) + unlisted * (1.0 + far / (1.0 + far))
        fitted = _fit(table[0], table[1], table[2], price, there[step], there[step + 1])
        fitted[places, places] = 0  # people who are away at both ends are in no flow
        start, end = np.nonzero(fitted)
        columns.append((np.full(len(start), step), start, end, fitted[start, end]))
    when, start, end, count = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    start, end = (np.where(side == places, AWAY, side) for side in (start, end))
    return Flows(when, start, end, count, release.locations, calendar, people=everyone)


def _estimate(release: Release, people: int, guess_from: Guess) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """The pairs, stayers included, and of each window and pair: a guess of its flow, the least and the most that it can be."""
    values, pairs, places = release.values, np.asarray(release.pairs), len(release.locations)
    seen = observe(release)
    if exact_totals(release) is not None:
        none = np.zeros(values.shape)
        seen = Observations(values, none, values, values, none > 0)
    if release.stayers:
        totals = totals_of(release, seen, people)
    else:
        totals = np.full(len(values), people)
        pairs = np.append(pairs, np.repeat(np.arange(places), 2).reshape(-1, 2), axis=0)
        parts = ((seen.value, np.nan), (seen.variance, NOTHING), (seen.low, 0.0), (seen.high, np.inf))
        value, variance, low, high = (
            np.append(part, np.full((len(values), places), unknown), axis=1) for part, unknown in parts
        )
        seen = Observations(value, variance, low, high, np.zeros(value.shape, bool))
    guess = guess_from(seen.filled(totals), seen.doubt, totals)
    high = np.where(seen.open_above, np.inf, seen.high)
    return pairs, np.clip(guess, seen.low, high), seen.low, high


def _ends(
    guess: Floats,
    low: Floats,
    high: Floats,
    origin: NDArray[np.int64],
    destination: NDArray[np.int64],
    places: int,
    people: int,
) -> NDArray[np.int64]:
    """Estimate how many people are in each location when windows begin and end, and away: (steps, locations + 1) int64."""

    def both(flows: Floats) -> tuple[Floats, Floats]:
        sums = np.zeros((2, len(flows), places + 1))
        for side, ends in zip(sums, (origin, destination), strict=True):
            np.add.at(side.T, ends, flows.T)
        return sums[0], sums[1]

    leave, arrive = both(guess)
    value = np.concatenate([leave[:1], (leave[1:] + arrive[:-1]) / 2, arrive[-1:]])
    least_leave, least_arrive = both(low)
    least = np.concatenate([least_leave[:1], np.maximum(least_leave[1:], least_arrive[:-1]), least_arrive[-1:]])
    most_leave, most_arrive = both(high)
    most = np.concatenate([most_leave[:1], np.minimum(most_leave[1:], most_arrive[:-1]), most_arrive[-1:]])
    # What leaves at least may be more than what arrives at most, where numbers are wrong.
    most = np.maximum(most, least)
    most[:, places] = np.inf
    # Numbers that are all exact say of everyone else that they are away.
    if places in origin or places in destination or np.array_equal(guess, low):
        value[:, places] = np.maximum(people - value[:, :places].sum(axis=1), least[:, places])
    else:
        most[:, places] = 0.0
    return nearest_counts(value, np.full(len(value), people), least, most, np.zeros(value.shape, bool))


def _fit(
    guess: Floats, low: Floats, high: Floats, price: Floats, leave: NDArray[np.int64], arrive: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Find whole numbers near a guess, between `low` and `high`, whose rows add up to `leave` and whose columns to `arrive`.

    Where the guess has a price, somebody is put only where the sums need it. Where the sums cannot be had otherwise, numbers are
    below `low`, or above `high`.
    """
    if (low.sum(axis=1) > leave).any() or (low.sum(axis=0) > arrive).any():
        low = np.zeros(low.shape)
    rows, columns = leave - low.sum(axis=1), arrive - low.sum(axis=0)
    some = np.ix_(rows > 0, columns > 0)  # mostly few, of many locations
    rows, columns, price, room = rows[rows > 0], columns[columns > 0], price[some], (high - low)[some]
    real = np.maximum(guess - low, 0.0)[some] + UNSEEN / (1.0 + price) ** 2
    for _ in range(ROUNDS):
        real *= (rows / real.sum(axis=1))[:, None]
        real *= columns / real.sum(axis=0)
        real = np.minimum(real, room + UNSEEN**2)  # no row may become empty
    # Rows and columns that are a little too large would be so in whole numbers, too.
    real *= np.minimum(rows / real.sum(axis=1), 1.0)[:, None]
    real *= np.minimum(columns / real.sum(axis=0), 1.0)
    found = np.floor(real + 1e-4)  # what is nearly whole is so
    missing = [np.rint(sums - found.sum(axis=1 - side)).astype(np.int64) for side, sums in enumerate((rows, columns))]
    found = _share_out(real, found, room, price, *missing)
    low = low.copy()
    low[some] += found
    return low.astype(np.int64)


def _share_out(
    real: Floats, found: Floats, room: Floats, price: Floats, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> Floats:
    """Give those who are left over a flow each, by the remainders and prices, and beyond the room of a flow only if need be."""
    start, end = np.repeat(np.arange(len(rows)), rows), np.repeat(np.arange(len(columns)), columns)
    gain = np.maximum(real - found, 0.0) - price - BEYOND * (found + 1 > room)
    if len(start) <= MOST_LEFT:
        first, second = linear_sum_assignment(-gain[np.ix_(start, end)])
        start, end = start[first], end[second]
    shared = found.copy()
    np.add.at(shared, (start, end), 1)
    if not (shared > np.minimum(room, found + 1)).any():
        return shared
    # Several in one flow: a transport problem with limits, whose corners are whole numbers. What is found already comes first, then more
    # at growing prices; flows that nobody listed only where somebody is.
    cell = np.nonzero((price < 1.0) | (shared > 0))
    free, price, gain, first = np.maximum(room - found, 0.0)[cell], price[cell], gain[cell], found[cell]
    costs = np.concatenate([np.full(len(free), -2.0), -gain, price + 1.0, price + 2.0 + BEYOND])
    most = np.concatenate([first, np.minimum(free, 1.0), np.maximum(free - 1.0, 0.0), np.full(len(free), np.inf)])
    sums = np.concatenate([np.tile(side, 4) for side in (cell[0], len(rows) + cell[1])])
    every = np.tile(np.arange(len(costs)), 2)
    solved = linprog(
        costs,
        A_eq=sparse.csr_array((np.ones(len(sums)), (sums, every)), shape=(len(rows) + len(columns), len(costs))),
        b_eq=np.concatenate([rows + found.sum(axis=1), columns + found.sum(axis=0)]),
        bounds=np.stack([np.zeros(len(most)), most], axis=1),
        method="highs-ds",
    )
    if solved.x is not None:
        shared = np.zeros(found.shape)
        shared[cell] = np.rint(solved.x.reshape(4, -1).sum(axis=0))
    return shared
