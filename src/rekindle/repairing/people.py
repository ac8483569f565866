"""How many people are behind a release, where nobody says."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from rekindle.model import Release
from rekindle.repairing.observations import Floats, Observations, exact_totals, observe
from rekindle.repairing.totals import path_of_noisy

STEEPEST = 0.5
"""How much rarer, as a logarithm, a count may be than the one below it; chosen on synthetic cities."""
MOST_HIDDEN = 4.0
"""How many people may be hidden for each one that is published, at most."""


def guess_people(release: Release) -> int:
    """Guess how many people there are in all, from the release alone.

    Where the numbers are exact, the largest total: more people may have come and gone, but nothing shows them. Otherwise,
    without noise, the mean of the sums, and for what is withheld the frequencies of the published numbers continued
    downwards as Fisher's log series. With noise, the mean of the sums; where the noise is so large that it says little, a
    smaller number is the likelier. Where the sums vary beyond noise and limits, the largest total that they show.
    """
    total = adds_up_to(release)
    if total is not None:
        return total
    exact = exact_totals(release)
    if exact is not None:
        return int(exact.max())
    seen = observe(release)
    if seen.varies:
        return max(int(np.rint(path_of_noisy(seen).max())), 1)
    if seen.noisy:
        return max(round(_total_of_noisy(seen, partly=bool(release.withheld.any()))), 1)
    return max(round(_total_of_exact(release.values, seen)), 1)


def adds_up_to(release: Release) -> int | None:
    """The sum of every step, where all are whole, not negative and add up to the same; then what is withheld is zero."""
    values = np.nan_to_num(release.values)
    sums = values.sum(axis=1)
    whole = (values >= 0).all() and (values == np.floor(values)).all()
    return int(sums[0]) if whole and (sums == sums[0]).all() and sums[0] > 0 and not release.adds_noise else None


def _total_of_exact(values: Floats, seen: Observations) -> float:
    withheld = np.isnan(values)
    sums = np.nansum(seen.value, axis=1)
    lowest, highest = seen.low.sum(axis=1), seen.high.sum(axis=1)
    least = float(lowest.max())
    # Where no total fits every step, people come and go, and the steps with most of them say how many there are.
    most = math.inf if seen.open_above.any() else float(highest.min() if least <= highest.min() else highest.max())
    if most > highest.min():
        sums = sums[highest >= least]
    smallest = seen.low[~withheld & (values > 0)].min(initial=np.inf)
    # Where zeros are published, every withheld number hides somebody.
    hiding = float(withheld.sum(axis=1).mean()) if (seen.low[withheld] > 0).any() else None
    published = float(sums.mean())
    hidden = min(_hidden_people(seen.value, smallest, hiding), MOST_HIDDEN * max(published, float(sums.max()), 1.0))
    return float(np.clip(published + hidden, least, most))


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
    below = np.arange(1.0, min(smallest, 1e6))
    frequency = np.exp(np.minimum(log_ratio * (below - smallest), 500.0)) / below
    if withheld is None:
        scale = len(published) / len(values) / (np.exp(log_ratio * (numbers - smallest)) / numbers).sum()
    else:
        scale = withheld / frequency.sum()
    return float(scale * (below * frequency).sum())


def _total_of_noisy(seen: Observations, *, partly: bool) -> float:
    """Posterior median of the people: the mean of the sums has a normal error, and a larger number is the rarer."""
    means = seen.value.mean(axis=0)
    # Means that are filled in where much is withheld are too low; the people of a location are not negative.
    total = float((np.maximum(means, 0.0) if partly else means).sum())
    error = max(math.sqrt(float(seen.variance.mean()) * len(means) / len(seen.value)), 1e-3)
    people = np.geomspace(1.0, max(total, 1.0) + 8.0 * error, 4_000)
    # Equal weight for equal ratios: with little noise this is the total, with much it does not follow a wild one.
    likely = -0.5 * ((people - total) / error) ** 2
    chance = np.cumsum(np.exp(likely - likely.max()))
    return float(people[np.searchsorted(chance, chance[-1] / 2)])
