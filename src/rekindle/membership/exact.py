"""The exact test: someone who knows everyone else, and asks whether one person is in the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from rekindle.membership.channel import Channel

FALSE_POSITIVES = (0.001, 0.01, 0.1)
"""Rates of false alarms at which the rate of right answers is told."""
_AT_ONCE = 2_000_000


def log_ratio(channel: Channel, published: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log likelihood ratio of "in" against "out" of the numbers that a person would be part of.

    Parameters
    ----------
    channel
        What is done to a number.
    published
        (draws, numbers) float64, NaN where withheld: the numbers of the person's own steps and locations. All others are
        the same with and without the person, and say nothing.
    others
        (numbers,) float64, what everyone else makes of them.
    """
    inside = channel.log_likelihood(published, others + 1)
    outside = channel.log_likelihood(published, others)
    impossible = np.isneginf(inside) & np.isneginf(outside)
    with np.errstate(invalid="ignore"):
        each = np.where(impossible, 0.0, inside - outside)
    # One number that only "in" explains decides; so does one that only "out" explains.
    certain_in, certain_out = (np.isposinf(each)).any(axis=1), (np.isneginf(each)).any(axis=1)
    total = np.where(np.isinf(each), 0.0, each).sum(axis=1)
    total = np.where(certain_in, np.inf, np.where(certain_out, -np.inf, total))
    # The last bits of count + noise tell the count (Mironov 2012), which is a fault of simulated noise, not of the mechanism.
    total = np.round(total, 9)
    if channel.included < 1:
        # Counted with that probability, and then at every step.
        total = np.logaddexp(np.log1p(-channel.included), np.log(channel.included) + total)
    return np.asarray(total)


def tell_apart(
    channel: Channel, others: NDArray[np.float64], draws: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Draw releases with and without a person, and weigh whether the person is in each.

    Parameters
    ----------
    channel
        What is done to a number.
    others
        (numbers,) float64, what everyone else makes of the numbers that the person is part of.
    draws
        How many releases of each kind.
    random
        Where the noise comes from.

    Returns
    -------
    (2, draws) float64: the log likelihood ratio of "in" against "out" in releases with the person, and without.
    """
    scores = np.empty((2, draws))
    at_once = max(1, _AT_ONCE // max(len(others), 1))
    for begin in range(0, draws, at_once):
        part = slice(begin, min(begin + at_once, draws))
        size = part.stop - part.start
        counted = random.random(size) < channel.included
        with_person = channel.draw(others + 1, size, random)
        if not counted.all():
            with_person = np.where(counted[:, None], with_person, channel.draw(others, size, random))
        scores[0, part] = log_ratio(channel, with_person, others)
        scores[1, part] = log_ratio(channel, channel.draw(others, size, random), others)
    return scores


def rates_of(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> tuple[float, tuple[float, ...]]:
    """The AUC of two sets of scores, and the share recognised at each rate of false alarms."""
    ordered = np.sort(outside)
    # P(in > out) + P(in = out) / 2
    pairs = np.searchsorted(ordered, inside, side="left") + np.searchsorted(ordered, inside, side="right")
    levels = np.unique(np.concatenate([inside, outside]))[::-1]
    false = 1 - np.searchsorted(ordered, levels, side="left") / len(outside)
    true = 1 - np.searchsorted(np.sort(inside), levels, side="left") / len(inside)
    # Where a threshold is met by many at once, some of them are let in.
    recognised = np.interp(FALSE_POSITIVES, np.append(0.0, false), np.append(0.0, true))
    return float(pairs.mean() / (2 * len(outside))), tuple(recognised.tolist())


def loss_at_half(inside: NDArray[np.float64]) -> float:
    """The loss at which half of the releases with the person are recognised, from the exact distribution of the noise.

    A lower bound on epsilon, which needs no counting of rare events; infinite where they are told without error. It is
    -log E[exp(-L) | L >= median], L the log likelihood ratio under "in".

    The rate of false alarms of a test L >= t is E[exp(-L); L >= t] under "in". So log(true / false) is known from draws
    of "in" alone, however rare false alarms are.
    """
    upper = np.sort(inside)[len(inside) // 2 :]
    return float(-(logsumexp(-upper) - np.log(len(upper)))) if np.isfinite(upper).any() else float(np.inf)
