"""A risk is never a bare number: estimates with intervals, beside chance, and the verdict with its rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

__all__ = ["RULE", "Estimate", "Verdict", "estimate", "estimate_share", "judge"]

RESAMPLES = 2000
_SEED = 20130325
_KEPT = 1 << 23

LEVELS = ((0.10, "low"), (0.30, "moderate"), (0.60, "high"), (1.01, "very high"))

RULE = (
    "Judged by the strongest attack on the release as given, the naive one included: its accuracy less that of chance, as "
    "a share of the way from chance to perfect, with a 95% interval. No better than guessing: the lower limit is not "
    "above 0. Otherwise by the upper limit: low below 10%, moderate below 30%, high below 60%, very high from there on. "
    "These limits are Rekindle's own, not a law's."
)


@dataclass(frozen=True)
class Estimate:
    """A mean with the limits of its 95% interval.

    Attributes
    ----------
    value
        The mean.
    low, high
        The limits.
    """

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Value and limits."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """The answer in words.

    Attributes
    ----------
    level
        "no better than guessing", "low", "moderate", "high", "very high", or "unknown" without the truth.
    rule
        How the level follows from the numbers.
    """

    level: str
    rule: str = RULE


def judge(share: Estimate | None) -> Verdict:
    """Judge the share of the way from chance to perfect; None where the truth is not known."""
    if share is None:
        return Verdict(
            "unknown", "Without the truth nobody can say how much of a recovery is right, so there is no verdict."
        )
    if share.low <= 0:
        return Verdict("no better than guessing")
    return Verdict(next(word for limit, word in LEVELS if share.high < limit))


def estimate(table: NDArray[np.float64]) -> Estimate:
    """Estimate a mean over people and row orders.

    Parameters
    ----------
    table
        (orders, people) float64 shares: the value of each person under each row order. NaN: not measured.

    Notes
    -----
    Percentile bootstrap: people are drawn with replacement, and so are row orders, 2000 times; the limits are widened as
    Student's t is for few people. What is drawn is the score a person got; who is matched with whom is not solved again,
    so the interval leaves out what other people in the release would have changed about it. How often it holds the mean
    of fresh cities is measured in the guide on auditing.
    """
    kept = table[:, ~np.isnan(table).any(axis=0)]
    if not kept.size:
        return Estimate(np.nan, np.nan, np.nan)
    return _limits(float(kept.mean()), _resample([kept])[0], kept.shape[1], least=0.0)


def estimate_share(attack: NDArray[np.float64], chance: NDArray[np.float64]) -> Estimate:
    """Estimate the share of the way from chance to perfect: (attack - chance) / (1 - chance).

    Parameters
    ----------
    attack, chance
        (orders, people) float64 accuracies of the same people; the numbers of orders may differ.
    """
    means = _resample([attack, chance])
    return _limits(float(_way(attack.mean(), chance.mean())), _way(means[0], means[1]), attack.shape[1])


def _way(attack: Any, chance: Any) -> Any:
    """Where chance is perfect already, there is nothing left to find."""
    room = np.where(chance < 1 - 1e-12, 1 - chance, 1.0)
    return np.where(chance < 1 - 1e-12, (attack - chance) / room, 0.0)


def _limits(value: float, drawn: NDArray[np.float64], people: int, least: float = -np.inf) -> Estimate:
    """Take the middle 95%, widened as Student's t is for few people: a bootstrap of few is too narrow."""
    wider = 1.0 if people < 2 else t.ppf(0.975, people - 1) / norm.ppf(0.975) * np.sqrt(people / (people - 1))
    low, high = value + wider * (np.quantile(drawn, [0.025, 0.975]) - value)
    return Estimate(value, max(float(low), least), min(float(high), 1.0))


def _resample(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Draw people (the same for all tables) and row orders (of each table): (tables, resamples) float64 means."""
    people = tables[0].shape[1]
    orders = [_draws(len(table), at + 1) for at, table in enumerate(tables)]
    if people * RESAMPLES <= _KEPT:
        drawn = _draws(people, 0)
        return np.array([np.einsum("rp,rp->r", o @ t, drawn) for o, t in zip(orders, tables, strict=True)])
    random = np.random.default_rng([_SEED, 0])
    means = np.empty((len(tables), RESAMPLES))
    for at in range(RESAMPLES):
        one = np.bincount(random.integers(0, people, people), minlength=people) / people
        means[:, at] = [o[at] @ (t @ one) for o, t in zip(orders, tables, strict=True)]
    return means


@lru_cache(maxsize=16)
def _draws(size: int, stream: int) -> NDArray[np.float64]:
    """(resamples, size) float64: how often each was drawn, as shares."""
    random = np.random.default_rng([_SEED, stream])
    return random.multinomial(size, np.full(size, 1 / size), RESAMPLES) / size
