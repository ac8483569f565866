"""Whether locations are the cells of a grid, so that they can be drawn as such."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_NOISE = 0.02


def lattice_sides(centres: NDArray[np.float64]) -> tuple[float, float] | None:
    """Width and height of the cells where the centres lie on a lattice of at least two lines each way; else None.

    Parameters
    ----------
    centres
        (locations, 2) float64 in any unit.
    """
    sides = []
    for along in centres.T:
        gaps = np.diff(np.sort(along))
        gaps = gaps[gaps > _NOISE * gaps.max(initial=0)]
        if not len(gaps):
            return None
        side = float(np.median(gaps[gaps < 1.5 * gaps.min()]))
        lines = (along - along.min()) / side
        if (np.abs(lines - lines.round()) > _NOISE).any():
            return None
        sides.append(side)
    return sides[0], sides[1]
