"""How many people are counted at each step of a release, where its numbers do not say so themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekindle.model import Release
from rekindle.repairing.observations import CLEARLY, FEWEST_STEPS, Floats, Observations
from rekindle.repairing.smoothing import smooth

USUAL = 0.25
"""The quantile over the steps of the share of the hidden people that is usual: that of steps at which most are there."""
AT_LEAST = 0.2
"""By how much the share exceeds the usual one where people are away, at least. It varies with the time of day, up to 0.19 in
synthetic cities from which nobody is ever away."""


def totals_of(release: Release, seen: Observations, people: int) -> NDArray[np.int64]:
    """Estimate how many people are counted at each step: (steps,) int64, between 0 and `people`.

    Everyone, unless the release shows otherwise. Behind noise, sums that change more slowly than noise does show a path,
    and so does a mean that lies clearly below the people. Without noise, each step has limits, and where too few people fit
    into a step, the others are away.

    Parameters
    ----------
    release, seen
        What is published, and what it says of the counts.
    people
        How many people there are in all.
    """
    if seen.varies:
        path = path_of_noisy(seen)
    elif seen.noisy:
        path = _level_of_noisy(release, seen, people)
    else:
        path = _path_within_limits(seen, people)
        # Nothing is known of a step of which nothing is published, unless it is stated below what numbers are withheld.
        unseen = release.withheld.all(axis=1)
        if unseen.any() and all(one.withholds_below is None for one in release.defences):
            path[unseen] = np.interp(np.flatnonzero(unseen), np.flatnonzero(~unseen), path[~unseen])
    totals = np.clip(np.rint(path), 0, people).astype(np.int64)
    if not totals.any():
        totals[path.argmax()] = 1  # nobody at all would be no release
    return totals


def path_of_noisy(seen: Observations) -> Floats:
    """Smooth the sums of noisy numbers in time: (steps,) float64."""
    noise = seen.variance.sum(axis=1, keepdims=True)
    return smooth(seen.value.sum(axis=1, keepdims=True), noise)[:, 0]


def _level_of_noisy(release: Release, seen: Observations, people: int) -> Floats:
    """Everyone at every step, or the mean of the sums where that is clearly less: (steps,) float64."""
    sums = seen.value.sum(axis=1)
    # What is withheld or cut is missing from the sums, and says nothing of who is away.
    cut = release.withheld.any() or any(one.caps_at is not None for one in release.defences)
    error = float(np.sqrt(seen.variance.sum(axis=1).mean() / len(sums)))
    fewer = not cut and len(sums) >= FEWEST_STEPS and sums.mean() < people - CLEARLY * error
    return np.full(len(sums), sums.mean() if fewer else float(people))


def _path_within_limits(seen: Observations, people: int) -> Floats:
    """Everyone at every step that can plausibly hold them, and fewer where it cannot: (steps,) float64.

    Between its limits, the hidden numbers of a step hold a share of what they could hold. Where that share would have to be
    far above the usual one for everyone to be there, people are away, and the usual share says how many are left.
    """
    lowest, highest = seen.low.sum(axis=1), np.where(seen.open_above.any(axis=1), np.inf, seen.high.sum(axis=1))
    path: Floats = np.clip(float(people), lowest, highest)
    room = highest - lowest
    hides = np.isfinite(room) & (room > 0)
    if not hides.any():
        return path
    share = np.divide(people - lowest, room, out=np.zeros(len(room)), where=hides)
    usual = float(np.quantile(share[hides], USUAL))
    # A share of independent numbers has a standard deviation of at most 1/2 over the root of how many they are.
    hidden = np.maximum((seen.low < seen.high).sum(axis=1), 1)
    away = hides & (share > np.minimum(usual + np.maximum(CLEARLY / 2 / np.sqrt(hidden), AT_LEAST), 1.0))
    if away.any() and not away[hides].all():
        left = float(np.clip(np.median(share[hides & ~away]), 0.0, 1.0))
        path[away] = lowest[away] + left * room[away]
    return path
