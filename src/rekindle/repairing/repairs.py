"""Several attackers' ways to turn a release back into valid counts.

Each takes a release and the number of people in all, uses nothing but what is published, and gives whole numbers of at least
0. Where all numbers are exact, these are the counts, whatever they add up to. Otherwise how many people are counted at each
step is estimated first, see `totals_of`, and the numbers add up to that; those that are published exactly are kept, where the
total allows it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rekindle.checks import whole
from rekindle.errors import InvalidData
from rekindle.model import Calendar, Counts, Release
from rekindle.repairing.observations import NOTHING, Floats, exact_totals, observe
from rekindle.repairing.people import adds_up_to, guess_people
from rekindle.repairing.smoothing import smooth
from rekindle.repairing.totals import totals_of
from rekindle.repairing.whole import nearest_counts

Totals = NDArray[np.int64]
Guess = Callable[[Floats, Floats, Totals], Floats]
"""Guesses every number from its value, its variance and the total of its step."""

FEWEST_DAYS = 4
"""Days of a kind, weekdays or weekends, from which on they have a profile of their own."""


def repair(release: Release | Counts, people: int | None = None) -> Counts:
    """Turn a release back into valid counts, smoothed in time.

    Parameters
    ----------
    release
        What was published. Counts are given back as they are.
    people
        How many people there are in all, counted or away: at least the largest total. That is normally public; None guesses
        it, see `guess_people`.

    Returns
    -------
    Whole numbers of at least 0, of so many people. Where all numbers of the release are exact, these are its counts.
    """
    if isinstance(release, Counts):
        if people is None:
            return release
        release = Release.of(release)
    if release.pairs is not None:
        raise InvalidData("This is a release of flows; repair it with `repair_flows`.")
    return smoothed(release, guess_people(release) if people is None else whole("people", people, least=1))


def smoothed(release: Release, people: int) -> Counts:
    """Smooth the numbers of each location in time."""
    return _repaired(release, people, smooth_shares)


def smooth_shares(value: Floats, variance: Floats, totals: Totals) -> Floats:
    """Smooth numbers in time; one of which nothing is seen has an even share of the people."""
    return smooth(value, variance, float(totals.mean()) / value.shape[1])


def frozen(release: Release, people: int) -> Counts:
    """Use each location's mean share over time at every step."""
    return _repaired(release, people, _still, loose=True)


def hold_still(counts: Counts) -> Counts:
    """Put the people who are counted at each step where they are on the mean: counts in which nobody moves."""
    guess = _still(counts.values.astype(np.float64), np.empty(0), counts.totals)
    none = np.zeros(guess.shape)
    table = nearest_counts(guess, counts.totals, none, none + np.inf, none > 0)
    return Counts(table, counts.locations, counts.calendar, counts.people)


def _still(value: Floats, _: Floats, totals: Totals) -> Floats:
    return np.asarray(value.mean(axis=0) * (totals / max(float(totals.mean()), 1.0))[:, None])


def daily_profile(release: Release, people: int) -> Counts:
    """Use each location's mean by step of the day; weekdays and weekends apart, where there are enough of both.

    Where the numbers are noisy, the means are smoothed over the day.
    """
    return _repaired(release, people, profile_of(release.calendar), loose=True)


def profile_of(calendar: Calendar) -> Guess:
    """How to guess numbers by their mean at the same step of other days."""
    kinds = _kinds_of_step(calendar)
    days = np.maximum(np.bincount(kinds), 1)[:, None]

    def means(table: Floats) -> Floats:
        sums = np.zeros((len(days), table.shape[1]))
        np.add.at(sums, kinds, table)
        return sums / days

    def profile(value: Floats, variance: Floats, totals: Totals) -> Floats:
        found, usual = means(value), means(totals[:, None].astype(np.float64))
        if variance.min() > 0 and variance.max() < NOTHING:
            found = smooth(found, means(variance) / days, float(totals.mean()) / value.shape[1])
        return found[kinds] * (totals[:, None] / np.maximum(usual[kinds], 1.0))

    return profile


def kept(release: Release, people: int) -> Counts:
    """Take every published number as it is, and fill in those that are withheld so that the totals fit."""
    return _repaired(release, people, as_published)


def as_published(value: Floats, _: Floats, __: Totals) -> Floats:
    """Numbers as they are."""
    return value


REPAIRS: dict[str, Callable[[Release, int], Counts]] = {
    "smoothed": smoothed,
    "frozen": frozen,
    "daily profile": daily_profile,
    "kept": kept,
}
"""The attacker's ways to repair a release, by name: (release, people) to counts. The first is that of `repair`."""


def _repaired(release: Release, people: int, guess: Guess, *, loose: bool = False) -> Counts:
    """Take the whole numbers nearest to a guess of every count, from its value, variance and total, within the limits.

    Where `loose`, a rounded number sets no limits: what is lost in one step is made up for by a steadier guess.
    """
    if exact_totals(release) is not None or adds_up_to(release) == people:
        values = np.nan_to_num(release.values).astype(np.int64)
        return Counts(values, release.locations, release.calendar, people)
    seen = observe(release)
    totals = totals_of(release, seen, people)
    guessed = guess(seen.filled(totals), seen.doubt, totals)
    rounded = loose & (seen.low < seen.high) & ~release.withheld
    low, high = np.where(rounded, 0.0, seen.low), np.where(rounded, np.inf, seen.high)
    table = nearest_counts(guessed, totals, low, high, seen.open_above)
    return Counts(table, release.locations, release.calendar, people)


def _kinds_of_step(calendar: Calendar) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number the kinds of steps: the step of the day, and whether it is at a weekend if there are enough days."""
    times = calendar.times().astype("datetime64[s]").astype(np.int64)
    day, second = np.divmod(times, 86_400)
    step = second // int(calendar.step.total_seconds())
    weekend = (day + 3) % 7 >= 5  # 1 January 1970 was a Thursday
    enough = min(len(np.unique(day[weekend])), len(np.unique(day[~weekend]))) >= FEWEST_DAYS
    return np.asarray(step + enough * weekend * (step.max() + 1), dtype=np.int64)
