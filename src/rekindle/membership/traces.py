"""Synthetic traces from a release alone, for an attacker who knows nothing else (Guan, Guépin et al. 2024)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import Delaunay, QhullError

from rekindle.membership.channel import Channel
from rekindle.model import AWAY, Locations, Release

PLACES = 10
"""Locations that a synthetic person visits."""
ROUNDS = 5
_CLOSE = 0.05


def synthesise(
    release: Release, people: int, channel: Channel, *, number: int, random: np.random.Generator
) -> csr_array:
    """Invent people who would make such a release.

    Parameters
    ----------
    release
        What is published.
    people
        How many people are counted in it.
    channel
        What is done to a number before it is published.
    number
        How many people to invent.
    random
        Where they come from.

    Returns
    -------
    (number, rows x columns of the release) sparse: in which numbers of the release each is counted.

    Notes
    -----
    How often people are counted at each location and step follows the release's own marginals; where numbers are withheld
    the marginals are log(p / min p + 1), and where they are noisy p^q, with q raised until their variance is that of a
    normalised uniform vector. The number of visits is exponential. Its mean is refined in up to five rounds: invent
    people, protect their counts alike, compare the totals. Each person visits a connected set of ten locations, grown from
    a first one over Delaunay neighbours. Of flows, each person goes between these ten, from and to those that the flows
    between them say; whether one flow begins where the last one ended is not looked at.
    """
    published = np.nan_to_num(release.values)
    withheld, noisy = bool(release.withheld.any()), bool((published < 0).any() or (published % 1).any())
    columns = _marginal(published.sum(axis=0), withheld, noisy)
    pairs = release.pairs
    places = columns if pairs is None else _ends(columns, pairs, len(release.locations))
    times = _marginal(published.sum(axis=1), withheld, noisy)
    neighbours = _neighbours(release.locations)
    total = max(published.sum(), 1.0)
    mean = total / people

    def invent(size: int) -> csr_array:
        found = [_person(places, columns, pairs, times, neighbours, mean, random) for _ in range(size)]
        rows = np.repeat(np.arange(size), [len(steps) for steps, _ in found])
        numbers = np.concatenate([steps * len(columns) + which for steps, which in found])
        return csr_array((np.ones(len(rows)), (rows, numbers)), shape=(size, published.size))

    for _ in range(ROUNDS):
        counts = np.asarray(invent(people).sum(axis=0), np.float64)
        reached = np.nan_to_num(channel.publish(counts[None, :], random)).sum()
        if reached <= 0 or abs(reached / total - 1) < _CLOSE:
            break
        mean = float(np.clip(mean * total / reached, 1.0, len(times)))
    return invent(number)


def _marginal(sums: NDArray[np.float64], withheld: bool, noisy: bool) -> NDArray[np.float64]:
    """A distribution from what is published of it."""
    share = np.maximum(sums, 0.0)
    share = share / share.sum() if share.any() else np.full(len(sums), 1 / len(sums))
    if withheld:
        least = share[share > 0].min()
        share = np.log(share / least + 1)
    elif noisy:
        share = _sharpened(share)
    return np.asarray(share / share.sum())


def _ends(columns: NDArray[np.float64], pairs: NDArray[np.int64], locations: int) -> NDArray[np.float64]:
    """How often people begin or end a window in each location, from how often they go between two."""
    here = pairs != AWAY
    found = np.bincount(pairs[here], np.broadcast_to(columns[:, None], pairs.shape)[here], locations)
    return np.asarray(found / found.sum())


def _sharpened(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise to the power at which the variance is that of n uniform numbers, normalised: 1 / (3 n^2) or so."""
    size = len(share)
    aim = 1 / (3 * size**2)
    for power in np.arange(1.0, 10.0, 0.25):
        raised = share**power
        raised /= raised.sum()
        if raised.var() >= aim:
            return raised
    return raised


def _neighbours(locations: Locations) -> list[NDArray[np.int64]]:
    """The Delaunay neighbours of each location; where there is no triangulation, all locations."""
    everyone = [np.delete(np.arange(len(locations)), at) for at in range(len(locations))]
    if len(locations) < 4:
        return everyone
    try:
        starts, found = Delaunay(locations.xy_km, qhull_options="QJ").vertex_neighbor_vertices
    except QhullError:
        return everyone
    return [found[starts[at] : starts[at + 1]].astype(np.int64) for at in range(len(locations))]


def _person(
    places: NDArray[np.float64],
    columns: NDArray[np.float64],
    pairs: NDArray[np.int64] | None,
    times: NDArray[np.float64],
    neighbours: list[NDArray[np.int64]],
    mean: float,
    random: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    chosen = [int(random.choice(len(places), p=places))]
    around = set(neighbours[chosen[0]].tolist())
    while len(chosen) < min(PLACES, len(places)) and around:
        options = np.array(sorted(around))
        weight = places[options] + 1e-12
        chosen.append(int(random.choice(options, p=weight / weight.sum())))
        around |= set(neighbours[chosen[-1]].tolist())
        around -= set(chosen)
    visits = int(np.clip(np.ceil(random.exponential(mean)), 1, (times > 0).sum()))
    steps = np.sort(random.choice(len(times), visits, replace=False, p=times))
    options = np.array(chosen)
    if pairs is not None:
        within = np.isin(pairs, [*chosen, AWAY])
        # Without stayers, nobody may have gone between any two of them.
        options = np.flatnonzero(within.all(axis=1) if within.all(axis=1).any() else (pairs == chosen[0]).any(axis=1))
    weight = columns[options] + 1e-12
    return steps, np.asarray(random.choice(options, visits, p=weight / weight.sum()), np.int64)
