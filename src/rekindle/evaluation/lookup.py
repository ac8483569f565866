"""What someone learns who knows a few points of a person: they pick the recovered path that fits these points best.

Nobody tells them which path is the right one, so nothing here uses the mapping, except to say whether the right person was
picked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.assignment.kernels import compiled
from rekindle.model import AWAY, Trajectories

KNOWN_POINTS = (1, 2, 4, 8, 16)
"""How many points of a person someone knows."""

DRAWS = 20
MOST_LOOKED_UP = 1000
MOST_COMPARED = 1_000_000_000
"""At most so many people are looked up, and fewer where so many recovered paths go through a point that it takes too long."""


class Lookup(NamedTuple):
    """What was found by looking people up, each by `KNOWN_POINTS` points.

    Attributes
    ----------
    reidentified
        (true people, len(KNOWN_POINTS)) float64: share of the draws in which the right path, and no other, fits best.
    learnt
        (true people, len(KNOWN_POINTS)) float64: accuracy of the path that fits best at the points that were not known,
        mean over the draws. Among paths that fit equally well, one is picked at random.

    Both are NaN for people who were not looked up, and for those who are counted at fewer steps than so many points.
    """

    reidentified: NDArray[np.float64]
    learnt: NDArray[np.float64]


def look_up(
    recovered: Trajectories, truth: Trajectories, right: NDArray[np.int64], *, draws: int = DRAWS, seed: int = 0
) -> Lookup:
    """Look people up by a few points that someone knows of them.

    Points at which a true person is counted are drawn at random, and the recovered path that agrees with most of them is
    picked. At most 1000 people are looked up, evenly spread over all.

    Parameters
    ----------
    recovered, truth
        Trajectories over the same locations and steps.
    right
        (true people,) int64: the recovered person who is the right one for each true person, as `Mapping.recovered`; -1
        for none. `Lookup.learnt` does not depend on it.
    draws
        How many times the points are drawn for each person.
    seed
        Which points are drawn, and how ties are broken.
    """
    checks.whole("draws", draws, least=1)
    checks.whole("seed", seed)
    reidentified = np.full((truth.people, len(KNOWN_POINTS)), np.nan)
    learnt = reidentified.copy()
    there = _Passing(recovered)
    affordable = int(MOST_COMPARED / (there.crowd * draws * KNOWN_POINTS[-1]))
    number = min(truth.people, MOST_LOOKED_UP, max(1, affordable))
    for person in np.unique(np.linspace(0, truth.people - 1, number).astype(np.int64)):
        counted = np.flatnonzero(truth.cells[person] != AWAY)
        points = np.array([number for number in KNOWN_POINTS if number <= len(counted)], np.int64)
        if not len(points):
            continue
        random = np.random.default_rng([seed, person])
        known = np.array([random.choice(counted, points[-1], replace=False) for _ in range(draws)])
        lots = random.random((draws, len(points)))
        agreed, ties, picked = np.empty((3, *lots.shape), np.int64)
        here = truth.cells[person, known].astype(np.int32)
        _pick(there.paths, there.cells, known, here, points, lots, agreed, ties, picked)
        reidentified[person, : len(points)] = ((ties == 1) & (picked == right[person])).mean(axis=0)
        rows, row_of = np.unique(picked, return_inverse=True)
        total = (recovered.cells[rows] == truth.cells[person])[:, counted].sum(axis=1)[row_of].reshape(picked.shape)
        others = np.where(points < len(counted), len(counted) - points, np.nan)
        learnt[person, : len(points)] = ((total - agreed) / others).mean(axis=0)
    return Lookup(reidentified, learnt)


class _Passing:
    """Who is where: the recovered paths through a point, found without looking at all.

    Attributes
    ----------
    crowd
        How many paths go through a point of a path, on average.
    """

    def __init__(self, recovered: Trajectories) -> None:
        cells = recovered.cells
        self.paths = np.empty(cells.shape[::-1], np.int32)
        self.cells = np.empty(cells.shape[::-1], np.int32)
        for step in range(recovered.steps):
            self.paths[step] = np.argsort(cells[:, step], kind="stable")
            self.cells[step] = cells[self.paths[step], step]
        counts = recovered.counts().values.astype(np.float64)
        self.crowd = max(1.0, float((counts**2).sum() / max(counts.sum(), 1.0)))


@compiled()
def _pick(
    paths: NDArray[np.int32],
    cells: NDArray[np.int32],
    known: NDArray[np.int64],
    here: NDArray[np.int32],
    points: NDArray[np.int64],
    lots: NDArray[np.float64],
    agreed: NDArray[np.int64],
    ties: NDArray[np.int64],
    picked: NDArray[np.int64],
) -> None:
    """Of each draw of points, and of the first so many of them: how many points the best path fits, how many paths do, and one of these."""
    fits = np.zeros(paths.shape[1], np.int64)
    found, best = np.empty(paths.shape[1], np.int64), np.empty(paths.shape[1], np.int64)
    for draw in range(len(known)):
        size = at = 0
        for rank in range(known.shape[1]):
            step = known[draw, rank]
            begin = np.searchsorted(cells[step], here[draw, rank])
            for one in range(begin, paths.shape[1]):
                if cells[step, one] != here[draw, rank]:
                    break
                path = paths[step, one]
                if fits[path] == 0:
                    found[size] = path
                    size += 1
                fits[path] += 1
            if rank + 1 != points[at]:
                continue
            most = fits[found[:size]].max() if size else 0
            tied = 0
            for one in range(size):
                if fits[found[one]] == most:
                    best[tied] = found[one]
                    tied += 1
            agreed[draw, at] = most
            ties[draw, at] = tied if size else len(fits)
            lot = int(lots[draw, at] * ties[draw, at])
            picked[draw, at] = np.sort(best[:tied])[lot] if size else lot
            at += 1
        for one in range(size):
            fits[found[one]] = 0


def unique_points(truth: Trajectories, *, draws: int = DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """How often a few points of a true person fit nobody else in the truth (de Montjoye et al. 2013).

    Parameters
    ----------
    truth
        The true people.
    draws, seed
        As in `look_up`.

    Returns
    -------
    (people, len(KNOWN_POINTS)) float64: share of the draws; NaN as in `Lookup`.

    References
    ----------
    Y.-A. de Montjoye, C. A. Hidalgo, M. Verleysen, V. D. Blondel. Unique in the Crowd: The privacy bounds of human
    mobility. Scientific Reports 3, 1376 (2013).
    """
    return look_up(truth, truth, np.arange(truth.people), draws=draws, seed=seed).reidentified
