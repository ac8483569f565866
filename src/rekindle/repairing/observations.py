"""What published numbers say of the counts behind them: a value, a variance and limits for each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, log_ndtr

from rekindle.model import Release

Floats = NDArray[np.float64]

NOTHING = 1e9
"""Variance of an observation that says nothing."""
FEWEST_STEPS = 12
"""Steps from which on sums can show that people come and go behind noise."""
CLEARLY = 4.0
"""Standard deviations of von Neumann's ratio beyond which sums are taken to vary."""
QUIET = 0.25
"""The share of the locations in which noise moves the numbers more than people do, at least."""


@dataclass(frozen=True, eq=False)
class Observations:
    """What the published numbers say of the counts behind them.

    A plain number is exact, whatever the steps add up to. A rounded one, whose base is stated or else the common divisor,
    lies within half the base. A withheld one lies below the threshold, or below the smallest number that is published. A
    number at a stated cap may hide more. With noise, which publishers state, or which shows in negative or broken numbers,
    the variance is that of the noise.

    Attributes
    ----------
    value, variance
        (steps, locations) float64: each count as it was seen, and how far off that may be, in people and squared.
        Where a count is hidden its value is NaN and its variance `NOTHING`.
    low, high
        (steps, locations) float64: whole numbers that each count lies between; `high` may be infinite.
    open_above
        (steps, locations) bool: numbers that a cap may have cut.
    noisy, varies
        Whether the numbers are noisy, and whether the sums of the steps then vary beyond the noise: people come and go.
    """

    value: Floats
    variance: Floats
    low: Floats
    high: Floats
    open_above: NDArray[np.bool_]
    noisy: bool = False
    varies: bool = False

    @property
    def hidden(self) -> NDArray[np.bool_]:
        """(steps, locations) bool: where nothing but the limits is known of a count."""
        return np.isnan(self.value)

    @property
    def doubt(self) -> Floats:
        """(steps, locations) float64: the variance, in which a hidden number that was seen as certain is not."""
        return np.where(self.hidden & (self.variance == 0), NOTHING, self.variance)

    def filled(self, totals: NDArray[np.int64]) -> Floats:
        """Share the people who are in no published number evenly among the numbers that may hide them.

        Parameters
        ----------
        totals
            (steps,) int64: how many people are counted at each step.
        """
        hidden, mean = self.hidden, float(totals.mean())
        missing = max(mean - float(np.nansum(self.value, axis=1).mean()), 0.0)
        part = missing / max(float(hidden.sum(axis=1).mean()), 1.0)
        parts = part * (totals / max(mean, 1.0))[:, None]
        return np.where(hidden, np.clip(parts, self.low, self.high), self.value)


def observe(release: Release) -> Observations:
    """Read the numbers of a release, with what it states of its defences."""
    values = release.values
    known = ~np.isnan(values)
    published = values[known]
    bases = [one.rounds_to for one in release.defences if one.rounds_to is not None]
    whole = bool(bases) or bool((published == np.floor(published)).all())
    if release.adds_noise or (published < 0).any() or not whole:
        return _observe_noise(values)
    base = min(max(bases), 2 * published.max() + 2) if bases else _common_divisor(release)
    low, high = np.zeros(values.shape), np.zeros(values.shape)
    low[known] = np.maximum(np.ceil(published - base / 2), 0) if base > 1 else published
    high[known] = np.ceil(published + base / 2) - 1 if base > 1 else published
    smallest = low[known & (values > 0)].min(initial=np.inf)
    stated = [math.ceil(one.withholds_below) for one in release.defences if one.withholds_below is not None]
    high[~known] = min([smallest, *stated]) - 1
    low[~known] = float((published == 0).any() and base <= 1)
    high = np.maximum(low, high)
    limits = [one.caps_at for one in release.defences if one.caps_at is not None]
    open_above = values >= min(limits) if limits else np.zeros(values.shape, dtype=bool)
    value = _expected(values, low, high) if base > 1 else values
    hidden = ~known | ((values == 0) & (base > 1))
    variance = np.where(low < high, (np.minimum(high - low, 1e3) + 1.0) ** 2 / 12.0, 0.0)
    # That a number is withheld says little of its value, however often it is said: the neighbours in time say more.
    variance[~known] = NOTHING
    return Observations(np.where(hidden, np.nan, value), variance, low, high, open_above)


def exact_totals(release: Release) -> NDArray[np.int64] | None:
    """How many people are counted at each step, (steps,) int64, where every number is exact; None where any is not.

    Numbers are exact that are whole, not negative and not withheld, unless noise, rounding or a cap that was reached is
    stated, or all of them are multiples of some base while their sums vary, which shows rounding.
    """
    values = release.values
    if release.adds_noise or not ((values >= 0) & (values == np.floor(values))).all() or not values.any():
        return None
    sums = values.sum(axis=1)
    changed = any(
        (one.rounds_to or 0) > 1 or (one.caps_at is not None and values.max() >= one.caps_at)
        for one in release.defences
    )
    rounded = changed or (np.ptp(sums) > 0 and _common_divisor(release) > 1)
    return None if rounded else sums.astype(np.int64)


def _common_divisor(release: Release) -> float:
    """Guess the base of rounding, unless the numbers are known not to be rounded: they may share a divisor by chance."""
    if release.defences and all(one.exact or one.caps_at is not None for one in release.defences):
        return 1.0
    return float(max(np.gcd.reduce(release.values[~release.withheld].astype(np.int64)), 1))


def _expected(values: Floats, low: Floats, high: Floats) -> Floats:
    """Mean of the counts that round to each published number, if a count is the rarer the larger it is."""
    least = np.maximum(low, 1.0)
    between = high >= least
    harmonic = digamma(np.where(between, high, least) + 1.0) - digamma(least)
    return np.where(between, (high - least + 1.0) / harmonic, values)


def _observe_noise(values: Floats) -> Observations:
    """Read noisy numbers; withheld ones are noisy numbers that fell below the smallest published."""
    shape, varies = values.shape, False
    if np.isnan(values).any():
        value, noise = _censored(values)
    else:
        value, sums = values, values.sum(axis=1)
        # Where the people stay the same, only the noise moves the sums.
        noise = float(sums.std(ddof=1)) / math.sqrt(shape[1]) if len(values) > 2 else 1.0
        if varies := _drifts(sums):
            noise = min(noise, _noise_of_quiet_locations(values))
    variance = np.full(shape, max(noise, 1e-3) ** 2)
    none = np.zeros(shape, dtype=bool)
    return Observations(value, variance, np.zeros(shape), np.full(shape, np.inf), none, noisy=True, varies=varies)


def _drifts(sums: Floats) -> bool:
    """Whether sums change more slowly than noise does, which leaves nothing of one step in the next.

    By von Neumann's ratio: the squared differences of successive sums over their squared distances from the mean. For
    noise alone it is 2, with a variance of 4 / steps.
    """
    apart = float(((sums - sums.mean()) ** 2).sum())
    if len(sums) < FEWEST_STEPS or apart == 0:
        return False
    return float((np.diff(sums) ** 2).sum()) / apart < 2.0 - CLEARLY * 2.0 / math.sqrt(len(sums))


def _noise_of_quiet_locations(values: Floats) -> float:
    """Standard deviation of the noise on a number, from the locations where successive numbers differ least."""
    return math.sqrt(float(np.quantile((np.diff(values, axis=0) ** 2).mean(axis=0) / 2, QUIET)))


def _censored(values: Floats) -> tuple[Floats, float]:
    """Fill in withheld noisy numbers by their expectation, for each location normal around its mean (Tobit's model).

    Returns
    -------
    The filled table, and the standard deviation.
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
    return value, noise
