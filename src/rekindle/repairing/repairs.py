"""Several attackers' ways to turn a release back into valid counts.

Each takes a release and the number of people, uses nothing but what is published, and gives whole numbers of at least 0
that add up to the people at every step. Numbers that are published exactly are kept, where the total allows it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rekindle.checks import whole
from rekindle.model import Calendar, Counts, Release
from rekindle.repairing.observations import NOTHING, Floats, observe
from rekindle.repairing.people import adds_up_to, guess_people
from rekindle.repairing.smoothing import smooth
from rekindle.repairing.whole import nearest_counts

__all__ = ["REPAIRS", "daily_profile", "frozen", "kept", "repair", "smoothed"]

FEWEST_DAYS = 4
"""Days of a kind, weekdays or weekends, from which on they have a profile of their own."""


def repair(release: Release | Counts, people: int | None = None) -> Counts:
    """Turn a release back into valid counts, smoothed in time.

    Parameters
    ----------
    release
        What was published. Counts are given back as they are.
    people
        How many people are counted at every step. That is normally public; None guesses it, see `guess_people`.

    Returns
    -------
    Whole numbers of at least 0 that add up to the people at every step. Where the release is untouched, its counts.
    """
    if isinstance(release, Counts):
        release = Release.of(release)
    return smoothed(release, guess_people(release) if people is None else whole("people", people, least=1))


def smoothed(release: Release, people: int) -> Counts:
    """Smooth the numbers of each location in time."""
    return _repaired(release, people, lambda value, variance: smooth(value, variance, people))


def frozen(release: Release, people: int) -> Counts:
    """Use each location's mean over time at every step."""
    return _repaired(release, people, lambda value, _: np.broadcast_to(value.mean(axis=0), value.shape), loose=True)


def daily_profile(release: Release, people: int) -> Counts:
    """Use each location's mean by step of the day; weekdays and weekends apart, where there are enough of both.

    Where the numbers are noisy, the means are smoothed over the day.
    """
    kinds = _kinds_of_step(release.calendar)
    days = np.maximum(np.bincount(kinds), 1)[:, None]

    def means(table: Floats) -> Floats:
        sums = np.zeros((len(days), table.shape[1]))
        np.add.at(sums, kinds, table)
        return sums / days

    def profile(value: Floats, variance: Floats) -> Floats:
        found = means(value)
        if variance.min() > 0 and variance.max() < NOTHING:
            found = smooth(found, means(variance) / days, people)
        return found[kinds]

    return _repaired(release, people, profile, loose=True)


def kept(release: Release, people: int) -> Counts:
    """Take every published number as it is, and fill in those that are withheld so that the totals fit."""
    return _repaired(release, people, lambda value, _: value)


REPAIRS: dict[str, Callable[[Release, int], Counts]] = {
    "smoothed": smoothed,
    "frozen": frozen,
    "daily profile": daily_profile,
    "kept": kept,
}
"""The attacker's ways to repair a release, by name: (release, people) to counts. The first is that of `repair`."""


def _repaired(
    release: Release, people: int, guess: Callable[[Floats, Floats], Floats], *, loose: bool = False
) -> Counts:
    """Take the whole numbers nearest to a guess of every count, from its value and variance, within the limits.

    Where `loose`, a rounded number sets no limits: what is lost in one step is made up for by a steadier guess.
    """
    if adds_up_to(release) == people:
        return Counts(np.nan_to_num(release.values).astype(np.int64), release.locations, release.calendar)
    seen = observe(release)
    variance = np.where(seen.hidden & (seen.variance == 0), NOTHING, seen.variance)
    guessed = guess(seen.filled(people), variance)
    rounded = loose & (seen.low < seen.high) & ~release.withheld
    low, high = np.where(rounded, 0.0, seen.low), np.where(rounded, np.inf, seen.high)
    table = nearest_counts(guessed, people, low, high, seen.open_above)
    return Counts(table, release.locations, release.calendar)


def _kinds_of_step(calendar: Calendar) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number the kinds of steps: the step of the day, and whether it is at a weekend if there are enough days."""
    times = calendar.times().astype("datetime64[s]").astype(np.int64)
    day, second = np.divmod(times, 86_400)
    step = second // int(calendar.step.total_seconds())
    weekend = (day + 3) % 7 >= 5  # 1 January 1970 was a Thursday
    enough = min(len(np.unique(day[weekend])), len(np.unique(day[~weekend]))) >= FEWEST_DAYS
    return np.asarray(step + enough * weekend * (step.max() + 1), dtype=np.int64)
