"""Smoothing in time: in each location the count walks at random (a Kalman smoother).

How far it walks in a step is what makes the observations most likely, with the frequencies of step lengths among all
locations as the prior.
"""

from __future__ import annotations

import numpy as np

from rekindle.repairing.observations import NOTHING, Floats

WALKS = 16


def smooth(value: Floats, variance: Floats, even: float | None = None) -> Floats:
    """Guess every count from the observations of the same location before and after.

    Parameters
    ----------
    value, variance
        (steps, locations) float64, as in `Observations`, with the hidden counts filled in.
    even
        What a location is taken to count before anything is seen of it, in people. By default the mean of the values.

    Returns
    -------
    (steps, locations) float64 people. Exact numbers stay as they are.
    """
    if not variance.any():
        return value
    unseen = variance >= NOTHING
    if unseen.any() or even is None:
        even = float(value[unseen].mean() if unseen.any() else value.mean())
    # How unequal locations are, beyond what the errors of their means explain.
    error = float(variance[~unseen].mean()) / len(value) if not unseen.all() else 0.0
    start = max(float(value.mean(axis=0).var()) - error, 1e-4) if value.shape[1] > 1 else float(value.var())
    # Likelihood of each length of step for each location; how frequent each is among all locations is the prior.
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
    """Kalman filter of a random walk in each location: levels, their variances (both if `keep`), and log-likelihoods."""
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
