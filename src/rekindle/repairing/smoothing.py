"""Repair: a release back to valid counts, the way an attacker would.

Attacks need whole numbers that add up to the same people at every step. What is published may be withheld, rounded,
capped or noisy. The repair uses only what is published:

1. Read each number as an observation of the count behind it: a value, a variance, and limits. A plain number is exact. A
   rounded one, whose base is the common divisor, lies within half the base. A withheld one lies below the smallest
   published. With noise, which publishers say, or which shows in negative or broken numbers or in steps that do not add
   up, the variance is that of the noise: it alone moves the sums of the steps.
2. Guess how many people there are, if nobody says: the mean of the sums, and for what is withheld the tail of the
   published numbers continued downwards, or with noise a censored mean of each place.
3. Smooth in time: in each place the count walks at random, as far in a step as makes the observations most likely (a
   Kalman smoother). Exact numbers stay as they are.
4. Take the nearest table of whole numbers within the limits in which every step adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

from rekindle.errors import InvalidSetting
from rekindle.model import Counts, Release

__all__ = ["nearest_counts", "repair"]

Floats = NDArray[np.float64]

WALKS = 16
STEEPEST = 0.5
"""How much rarer, as a logarithm, a count may be than the one below it; chosen on synthetic cities."""
NOTHING = 1e9
"""Variance of an observation that says nothing."""


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
    seen = _observe(release, None if people is None else int(people))
    guess = _smooth(seen)
    at_most = release.values == np.nanmax(release.values)
    whole = nearest_counts(guess, seen.people, seen.low, seen.high, at_most)
    return Counts(whole, release.locations, release.calendar)


@dataclass(frozen=True)
class _Observations:
    """What the published numbers say of the counts behind them.

    Attributes
    ----------
    people
        How many are counted at every step.
    value, variance
        (steps, locations) float64: each count as it was seen, and how far off that may be, in people and squared.
    low, high
        (steps, locations) float64: whole numbers that each count lies between.
    """

    people: int
    value: Floats
    variance: Floats
    low: Floats
    high: Floats


def _observe(release: Release, people: int | None) -> _Observations:
    """Read the published numbers; see the first two points above."""
    values = release.values
    known = ~np.isnan(values)
    published = values[known]
    sums = np.where(known, values, 0.0).sum(axis=1)
    if release.adds_noise or (published < 0).any() or (published != np.floor(published)).any():
        return _observe_noise(values, people)
    if (sums == sums[0]).all() and sums[0] > 0 and people in (None, int(sums[0])):
        # Everything adds up: nothing was rounded, and what is withheld is zero.
        value = np.where(known, values, 0.0)
        return _Observations(int(sums[0]), value, np.zeros(values.shape), value, value)
    # Numbers of a release that is known not to be rounded may share a divisor by chance.
    stated = [one.rounds_to for one in release.defences if one.rounds_to is not None]
    rounded = not release.defences or bool(stated) or any(not (one.exact or one.caps_at) for one in release.defences)
    base = max(int(np.gcd.reduce(published.astype(np.int64))), 1) if rounded else 1
    half_up = np.ceil(published + base / 2) - 1 if base > 1 else published
    low, high = np.zeros(values.shape), np.zeros(values.shape)
    low[known], high[known] = np.maximum(np.ceil(published - base / 2), 0), half_up
    smallest = low[known & (values > 0)].min(initial=np.inf)
    high[~known] = smallest - 1
    low[~known] = float((published == 0).any() and base == 1)
    if known.all() and low.sum(axis=1).max() > high.sum(axis=1).min() and not _capped(values):
        return _observe_noise(values, people)  # no number of people fits all steps: whole numbers, but noisy
    least = low.sum(axis=1).max()
    most = max(least, high.sum(axis=1).min()) if not _capped(values) else np.inf
    expected = _expected(values, low, high) if base > 1 else values
    sums = np.nansum(expected, axis=1)
    if people is None:
        # Where zeros are published, every withheld number hides somebody.
        hiding = float((~known).sum(axis=1).mean()) if (low[~known] > 0).any() else None
        hidden = _hidden_people(expected, smallest, hiding)
        people = max(int(np.rint(np.clip(sums.mean() + hidden, least, most))), 1)
    # The people who are not in the published numbers are shared by the numbers that may hide them.
    hides = ~known | ((values == 0) & (base > 1))
    part = max(people - float(sums.mean()), 0.0) / max(hides.sum(axis=1).mean(), 1.0)
    value = np.where(hides, np.clip(part, low, high), np.where(known, expected, 0.0))
    variance = np.where(low < high, (np.minimum(high, 1e3) - low + 1.0) ** 2 / 12.0, 0.0)
    # That a number is withheld says little of its value, however often it is said: the neighbours in time say more.
    variance[~known] = NOTHING
    return _Observations(people, value, variance, low, high)


def _capped(values: Floats) -> bool:
    """Whether a cap may explain why steps do not add up: those that miss people hold a number at the largest value."""
    at_cap = values == np.nanmax(values)
    sums = np.nansum(values, axis=1)
    return bool((at_cap.any(axis=1) | (sums == sums.max())).all() and at_cap.sum() > 1 and not np.isnan(values).any())


def _expected(values: Floats, low: Floats, high: Floats) -> Floats:
    """Mean of the counts that round to each published number, if a count is the rarer the larger it is."""
    result = values.copy()
    for value in np.unique(values[values > 0]):
        there = values == value
        between = np.arange(low[there][0], high[there][0] + 1.0)
        result[there] = len(between) / (1.0 / between).sum()
    return result


def _hidden_people(values: Floats, smallest: float, withheld: float | None) -> float:
    """Guess how many people of a step are in no published number: frequencies go on below as Fisher's log series.

    Parameters
    ----------
    values
        (steps, locations) float64, the published numbers.
    smallest
        The smallest count that is published.
    withheld
        How many numbers of a step hide somebody, where that is known.
    """
    published = values[values > 0]
    if smallest <= 1 or not len(published):
        return 0.0
    numbers = np.arange(smallest, smallest + min(20.0 * published.max() + 100.0, 1e5))

    def too_large(log_ratio: float) -> float:
        weight = np.exp(log_ratio * (numbers - smallest)) / numbers
        return float((numbers * weight).sum() / weight.sum() - published.mean())

    # A few numbers just above the threshold would make it too steep.
    steep, flat = -STEEPEST, -1e-9
    log_ratio = steep if too_large(steep) >= 0 else flat if too_large(flat) <= 0 else brentq(too_large, steep, flat)
    below = np.arange(1.0, smallest)
    frequency = np.exp(log_ratio * (below - smallest)) / below
    if withheld is None:
        scale = len(published) / len(values) / (np.exp(log_ratio * (numbers - smallest)) / numbers).sum()
    else:
        scale = withheld / frequency.sum()
    return float(scale * (below * frequency).sum())


def _observe_noise(values: Floats, people: int | None) -> _Observations:
    """Read noisy numbers; withheld ones are noisy numbers that fell below the smallest published."""
    known = ~np.isnan(values)
    shape = values.shape
    if known.all():
        sums = values.sum(axis=1)
        # The people stay the same, so that only the noise moves the sums.
        noise = sums.std(ddof=1) / math.sqrt(shape[1]) if len(values) > 2 else 1.0
        value = values
        total = sums.mean()
    else:
        value, mean, noise = _censored(values)
        total = np.maximum(mean, 0.0).sum()
    if people is None:
        people = max(int(np.rint(total)), 1)
    variance = np.full(shape, max(float(noise), 1e-3) ** 2)
    return _Observations(people, value, variance, np.zeros(shape), np.full(shape, np.inf))


def _censored(values: Floats) -> tuple[Floats, Floats, float]:
    """Fill in withheld noisy numbers by their expectation, for each place normal around its mean (Tobit's model).

    Returns
    -------
    The filled table, (locations,) the means, and the standard deviation.
    """
    known = ~np.isnan(values)
    limit = float(np.nanmin(values))
    mean = np.zeros(values.shape[1])
    noise = max(float(np.nanstd(values)), 1e-3)
    value = values
    for _ in range(100):
        z = (limit - mean) / noise
        hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - log_ndtr(z))
        below = mean - noise * hazard
        left_over = noise**2 * np.maximum(1.0 - z * hazard - hazard**2, 0.0)
        value = np.where(known, values, below)
        mean = value.mean(axis=0)
        noise = max(math.sqrt(float(((value - mean) ** 2 + np.where(known, 0.0, left_over)).mean())), 1e-3)
    return value, mean, noise


def _smooth(seen: _Observations) -> Floats:
    """Guess every count from the observations of the same place before and after: (steps, locations)."""
    value, variance = seen.value, seen.variance
    if not variance.any():
        return value
    unseen = variance >= NOTHING
    even = float(value[unseen].mean()) if unseen.any() else seen.people / value.shape[1]
    # How unequal places are, beyond what the errors of their means explain.
    start = max(float(value.mean(axis=0).var() - variance[~unseen].mean() / len(value)), 1e-4)
    # Likelihood of each length of step for each place; how frequent each is among all places is the prior.
    walks = np.geomspace(1e-5, max(float(value.var()), 1.0), WALKS)[:, None] * np.ones(value.shape[1])
    likely = _filter(value, variance, walks, even, start)[2]
    prior = np.zeros(WALKS)
    for _ in range(10):
        chance = np.exp(likely + prior[:, None] - (likely + prior[:, None]).max(axis=0))
        chance /= chance.sum(axis=0)
        prior = np.log(np.maximum(chance.mean(axis=1), 1e-12))
    walk = np.take_along_axis(walks, chance.argmax(axis=0)[None], axis=0)[0]
    level, spread, _ = _filter(value, variance, walk, even, start, keep=True)
    for step in range(len(value) - 2, -1, -1):
        back = spread[step] / (spread[step] + walk)
        level[step] += back * (level[step + 1] - level[step])
    return level


def _filter(
    value: Floats, variance: Floats, walk: Floats, mean: float, start: float, *, keep: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Kalman filter of a random walk in each place: levels, their variances (both if `keep`), and log-likelihoods."""
    ahead, ahead_spread = np.full(walk.shape, mean), np.full(walk.shape, start)
    likely = np.zeros(walk.shape)
    level = np.empty((len(value), *walk.shape)) if keep else np.empty(0)
    spread = np.empty_like(level)
    for step in range(len(value)):
        off, total = value[step] - ahead, ahead_spread + variance[step]
        likely -= 0.5 * (np.log(total) + off**2 / total)
        gain = ahead_spread / total
        ahead = ahead + gain * off
        ahead_spread = gain * variance[step]
        if keep:
            level[step], spread[step] = ahead, ahead_spread
        ahead_spread = ahead_spread + walk
    return level, spread, likely


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
