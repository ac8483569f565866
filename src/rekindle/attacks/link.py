"""What a link between two days is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Link"]


@dataclass(frozen=True, eq=False)
class Link:
    """Who of today continues whom.

    Attributes
    ----------
    order
        (people,) int64: the row of today that continues each person.
    cost
        The sum of the costs of all links.
    gap
        The part of the cost that a better link might save at most; 0 where this one is optimal.
    """

    order: NDArray[np.int64]
    cost: float
    gap: float = 0.0
