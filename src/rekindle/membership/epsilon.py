"""A lower bound on epsilon, from how well two neighbouring datasets are told apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv


def counted_epsilon(
    scores_in: NDArray[np.float64], scores_out: NDArray[np.float64], *, confidence: float = 0.95
) -> float:
    """Bound epsilon from below by counting errors.

    A mechanism with epsilon has true positives <= exp(epsilon) x false positives for any test, and the same with the roles
    exchanged. Half of the draws choose the threshold, the other half count, with Clopper-Pearson limits.

    Parameters
    ----------
    scores_in, scores_out
        (draws,) float64: any score of releases with and without the person, such as the log likelihood ratio.
    confidence
        With which probability the bound holds.
    """
    both = [np.asarray(scores_in, np.float64), np.asarray(scores_out, np.float64)]
    risk = (1 - confidence) / 4  # two limits, two directions
    best = 0.0
    for sign in (1.0, -1.0):
        first, other = both if sign > 0 else both[::-1]
        level = _best_level(sign * first[::2], sign * other[::2], risk)
        if level is None:
            continue
        true, false = (sign * first[1::2] >= level), (sign * other[1::2] >= level)
        best = max(best, _bound(int(true.sum()), len(true), int(false.sum()), len(false), risk))
    return best


def most_provable_epsilon(draws: int, *, confidence: float = 0.95) -> float:
    """The largest epsilon that `counted_epsilon` can prove from so many draws: all recognised, no false alarm."""
    half = draws // 2
    return _bound(half, half, 0, half, (1 - confidence) / 4)


def _best_level(first: NDArray[np.float64], other: NDArray[np.float64], risk: float) -> float | None:
    levels = np.unique(first[np.isfinite(first)])
    levels = np.append(levels[:: max(len(levels) // 500, 1)], np.inf if np.isposinf(first).any() else [])
    if not len(levels):
        return None
    true = len(first) - np.searchsorted(np.sort(first), levels, side="left")
    false = len(other) - np.searchsorted(np.sort(other), levels, side="left")
    bounds = [_bound(int(t), len(first), int(f), len(other), risk) for t, f in zip(true, false, strict=True)]
    return float(levels[int(np.argmax(bounds))])


def _bound(true: int, of: int, false: int, others: int, risk: float) -> float:
    """Log of the lower limit of one rate over the upper limit of the other (Clopper-Pearson); at least 0."""
    least = betaincinv(true, of - true + 1, risk) if true else 0.0
    most = betaincinv(false + 1, others - false, 1 - risk) if false < others else 1.0
    return float(max(np.log(least / most), 0.0)) if least > 0 else 0.0
