"""Repair: a release back to valid counts, the way an attacker would.

Attacks need whole numbers that add up to the same people at every step. What is published may be withheld, rounded,
capped or noisy. The repair uses only what is published:

1. What each number says: with noise, a guess with an error; without, an interval. A withheld number lies below the
   smallest published one, a rounded one within half the base, one at the largest published value at or above it.
2. How many people there are, if nobody says: the number that agrees with the most steps.
3. A guess for each number: a random walk in time for each place, seen with the error of the noise, smoothed (a Kalman
   smoother). Where there is no noise this keeps the published numbers and interpolates the withheld ones.
4. The nearest table of whole numbers within the intervals in which every step adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidSetting
from rekindle.model import Counts, Release

__all__ = ["nearest_counts", "repair"]

Floats = NDArray[np.float64]


def repair(release: Release | Counts, people: int | None = None) -> Counts:
    """Turn a release back into valid counts.

    Parameters
    ----------
    release
        What was published. Counts are given back as they are.
    people
        How many people are counted at every step, if that is known; otherwise it is guessed.

    Returns
    -------
    Whole numbers of at least 0 that add up to the people at every step. Where the release is untouched, its counts.
    """
    if isinstance(release, Counts):
        release = Release.of(release)
    if people is not None and (isinstance(people, bool) or not isinstance(people, (int, np.integer)) or people < 1):
        raise InvalidSetting(f"The number of people is {people!r}; it must be a whole number of at least 1, or None.")
    values = release.values
    reading = _read(values)
    n = int(people) if people is not None else _guess_people(values, reading)
    guess = _smooth(values, reading.noise)
    guess = _fill(guess, n, reading)
    whole = nearest_counts(guess, n, reading.low, reading.high, values == np.nanmax(values))
    return Counts(whole, release.locations, release.calendar)


@dataclass(frozen=True)
class _Reading:
    """What the published numbers say of the counts behind them.

    Attributes
    ----------
    noise
        Standard deviation of the noise on each number, in people; 0 where there is none.
    low, high
        (steps, locations) float64: the whole numbers that each count lies between.
    """

    noise: float
    low: Floats
    high: Floats


def _read(values: Floats) -> _Reading:
    known = ~np.isnan(values)
    low, high = np.zeros(values.shape), np.full(values.shape, np.inf)
    published = values[known]
    if (published < 0).any() or (published != np.floor(published)).any():
        return _Reading(_noise_level(values), low, high)
    base = max(int(np.gcd.reduce(published.astype(np.int64))), 1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    if known.all() and (sums == sums[0]).all():
        base = 1  # they add up, so nothing was rounded: all counts may share a factor
    low[known] = np.maximum(np.ceil(published - base / 2), 0)
    high[known] = np.ceil(published + base / 2) - 1 if base > 1 else published
    if not known.all():
        positive = published[published > 0]
        smallest = np.ceil(positive.min() - base / 2) if len(positive) and base > 1 else positive.min(initial=np.inf)
        high[~known] = smallest - 1
        low[~known] = 1.0 if (published == 0).any() and base == 1 else 0.0
    elif low.sum(axis=1).max() > high.sum(axis=1).min() and not _only_capped(values):
        # No number of people fits all steps: whole numbers, but noisy.
        return _Reading(_noise_level(values), np.zeros(values.shape), np.full(values.shape, np.inf))
    return _Reading(0.0, low, high)


def _only_capped(values: Floats) -> bool:
    """Whether a cap explains why steps do not add up: those that miss people hold a number at the largest value."""
    sums = values.sum(axis=1)
    at_cap = (values == values.max()).any(axis=1)
    return bool((at_cap | (sums == sums.max())).all() and (values == values.max()).sum() > 1)


def _noise_level(values: Floats) -> float:
    """Standard deviation of the noise on each number."""
    known = ~np.isnan(values)
    if known.all() and len(values) > 2:
        # The people stay the same, so that only the noise moves the sums.
        return max(float(values.sum(axis=1).std(ddof=1)) / math.sqrt(values.shape[1]), 1e-3)
    change = np.abs(np.diff(values, axis=0))
    change = change[~np.isnan(change)]
    # Most people stay from one step to the next, so that the typical change is noise.
    return max(float(np.median(change)) / 1.349 if len(change) else 1.0, 1e-3)


def _guess_people(values: Floats, reading: _Reading) -> int:
    """How many people are counted at every step."""
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0).sum(axis=1)
    if not reading.noise:
        if (sums == sums[0]).all() and sums[0] > 0 and not (known.all() and reading.low.sum(axis=1).max() > sums[0]):
            return int(sums[0])
        least, most = reading.low.sum(axis=1).max(), reading.high.sum(axis=1).min()
        guess = sums.mean() if known.all() else sums.mean() + _withheld_people(values, reading)
        return max(int(np.rint(np.clip(guess, least, max(least, most)))), 1)
    if known.all():
        return max(int(np.rint(sums.mean())), 1)
    smooth = np.nan_to_num(np.maximum(_smooth(values, reading.noise), 0.0))
    return max(int(np.rint(smooth.sum(axis=1).mean())), 1)


def _withheld_people(values: Floats, reading: _Reading) -> float:
    """Guess how many people are withheld at a step: the published numbers fall off geometrically, so go on below."""
    known = ~np.isnan(values)
    published = values[known & (values > 0)]
    if not len(published):
        return 0.0
    threshold = float(published.min())
    ratio = 1.0 - 1.0 / (1.0 + max(float((published - threshold).mean()), 0.1))
    below = np.arange(1, threshold)
    frequency = (1.0 - ratio) * ratio ** (below - threshold) * len(published) / len(values)
    return float(min((below * frequency).sum(), np.where(known, 0.0, reading.high).sum(axis=1).mean()))


def _smooth(values: Floats, noise: float) -> Floats:
    """Guess every number from those of the same place before and after: (steps, locations), NaN where none is known.

    For each place a random walk seen with noise; how far it walks in a step is measured from its own changes.
    """
    known = ~np.isnan(values)
    if not noise and known.all():
        return values
    steps = len(values)
    change = np.diff(values, axis=0)
    seen = np.maximum((~np.isnan(change)).sum(axis=0), 1)
    moved = np.nansum(change**2, axis=0) / seen if steps > 1 else np.ones(values.shape[1])
    error = noise**2
    # No place stands quite still: a person in a hundred steps.
    walk = np.maximum(moved - 2.0 * error, 0.01)
    level, spread = np.zeros((steps, values.shape[1])), np.full((steps, values.shape[1]), np.inf)
    ahead, ahead_spread = np.zeros(values.shape[1]), np.full(values.shape[1], np.inf)
    for step in range(steps):
        now = known[step]
        with np.errstate(invalid="ignore"):
            gain = np.where(np.isinf(ahead_spread), 1.0, ahead_spread / (ahead_spread + error))
        gain = np.where(now, gain, 0.0)
        level[step] = ahead + gain * (np.where(now, values[step], 0.0) - ahead)
        spread[step] = np.where(now, gain * error, ahead_spread)
        ahead, ahead_spread = level[step], spread[step] + walk
    for step in range(steps - 2, -1, -1):
        finite = np.where(np.isinf(spread[step]), 0.0, spread[step])
        back = np.where(np.isinf(spread[step]), 1.0, finite / (finite + walk))
        level[step] += back * (level[step + 1] - level[step])
    level[:, ~known.any(axis=0)] = np.nan
    return level


def _fill(guess: Floats, people: int, reading: _Reading) -> Floats:
    """Give places of which nothing is known an equal part of the people who are left."""
    unknown = np.isnan(guess)
    if not unknown.any():
        return guess
    left = np.maximum(people - np.nansum(np.maximum(guess, 0.0), axis=1), 0.0)
    part = (left / np.maximum(unknown.sum(axis=1), 1)).mean()
    return np.where(unknown, np.clip(part, reading.low, reading.high), guess)


def nearest_counts(
    guess: Floats, people: int, low: Floats, high: Floats, open_above: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Find the nearest table of whole numbers in which every row adds up: the least sum of squared differences.

    Parameters
    ----------
    guess
        (steps, locations) float64.
    people
        What each row must add up to.
    low, high
        (steps, locations) float64 whole numbers that the counts must lie between; `high` may be infinite. In rows where
        the people do not fit in between, first the numbers in `open_above` lose their upper limit, then all numbers
        lose theirs.
    open_above
        (steps, locations) bool.

    Returns
    -------
    (steps, locations) int64.
    """
    high = np.where(open_above & (high.sum(axis=1) < people)[:, None], np.inf, high)
    unfit = ((low.sum(axis=1) > people) | (high.sum(axis=1) < people))[:, None]
    low, high = np.where(unfit, 0.0, low), np.where(unfit, np.inf, high)
    real = _project(guess, people, low, high)
    # Rounding errors of the projection must not cost a person.
    whole = np.floor(real + 1e-9)
    rest = np.where((whole < high) & (real > low), real - whole, -1.0)
    missing = people - whole.sum(axis=1).astype(np.int64)
    # Of equal remainders the first place gets the person, so that the same guess gives the same counts at every step.
    order = np.argsort(-rest, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(guess.shape[1])[None, :], axis=1)
    return np.asarray(whole + (rank < missing[:, None]), dtype=np.int64)


def _project(guess: Floats, people: int, low: Floats, high: Floats) -> Floats:
    """Nearest real table within the limits in which every row adds up: clip(guess - shift), by bisection."""
    lower = (guess - np.minimum(high, people)).min(axis=1) - 1.0
    upper = (guess - low).max(axis=1) + 1.0
    for _ in range(64):
        middle = (lower + upper) / 2
        much = np.clip(guess - middle[:, None], low, high).sum(axis=1) > people
        lower, upper = np.where(much, middle, lower), np.where(much, upper, middle)
    return np.asarray(np.clip(guess - upper[:, None], low, high))
