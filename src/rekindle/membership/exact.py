"""The exact test: someone who knows everyone else, and asks whether one person is in the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from rekindle.membership.channel import Channel

FALSE_POSITIVES = (0.001, 0.01, 0.1)
"""Rates of false alarms at which the rate of right answers is told."""
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Errors:
    """How well the exact test tells whether a person is in the data.

    Attributes
    ----------
    auc
        Probability that a release with the person looks more like one than a release without; 0.5 is guessing.
    true_positives
        Share of releases with the person that are recognised, at the rates of `FALSE_POSITIVES`.
    scores_in, scores_out
        (draws,) float64: log likelihood ratio of "in" against "out" in releases with and without the person.
    computed_epsilon
        The loss at which half of the releases with the person are recognised, from the exact distribution of the noise:
        a lower bound on epsilon, which needs no counting of rare events. Infinite where they are told without error.
    """

    auc: float
    true_positives: tuple[float, ...]
    scores_in: NDArray[np.float64]
    scores_out: NDArray[np.float64]
    computed_epsilon: float


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


def tell_apart(channel: Channel, others: NDArray[np.float64], draws: int, random: np.random.Generator) -> Errors:
    """Draw releases with and without a person, and see how well the likelihood ratio tells them apart.

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
    inside, outside = scores
    return Errors(
        auc=auc_of(inside, outside),
        true_positives=tuple(true_positives_of(inside, outside, rate) for rate in FALSE_POSITIVES),
        scores_in=inside,
        scores_out=outside,
        computed_epsilon=_loss_at_half(inside),
    )


def auc_of(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """P(in > out) + P(in = out) / 2."""
    ordered = np.sort(outside)
    below = np.searchsorted(ordered, inside, side="left")
    up_to = np.searchsorted(ordered, inside, side="right")
    return float((below + up_to).mean() / (2 * len(outside)))


def true_positives_of(inside: NDArray[np.float64], outside: NDArray[np.float64], rate: float) -> float:
    """Share recognised at a rate of false alarms; where a threshold is met by many at once, some of them are let in."""
    levels = np.unique(np.concatenate([inside, outside]))[::-1]
    false = 1 - np.searchsorted(np.sort(outside), levels, side="left") / len(outside)
    true = 1 - np.searchsorted(np.sort(inside), levels, side="left") / len(inside)
    return float(np.interp(rate, np.concatenate([[0.0], false]), np.concatenate([[0.0], true])))


def _loss_at_half(inside: NDArray[np.float64]) -> float:
    """-log E[exp(-L) | L >= median], L the log likelihood ratio under "in".

    The rate of false alarms of a test L >= t is E[exp(-L); L >= t] under "in". So log(true / false) is known from draws
    of "in" alone, however rare false alarms are.
    """
    upper = np.sort(inside)[len(inside) // 2 :]
    return float(-(logsumexp(-upper) - np.log(len(upper)))) if np.isfinite(upper).any() else float(np.inf)
