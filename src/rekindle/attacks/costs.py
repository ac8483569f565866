"""What a move costs: the heuristics for how people get from one step to the next.

A move cost is any object that can be called as ``cost(previous, current, context)`` and gives a matrix of rows x
locations. It may depend on where a person was at the step before, where they are, and the context, never on who they
are: people with the same two locations are interchangeable, but for a cost that looks back on the whole day (`looks_back`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rekindle.model import Locations


@dataclass(frozen=True)
class MoveContext:
    """What is known when a move is priced.

    Attributes
    ----------
    locations
        The locations.
    departs
        Clock time of the step that people leave from.
    transitions
        (locations, locations) int64, sparse: the paper's B, how often each location was predicted to follow another, over
        all fully predicted days. Staying counts as a transition from a location to itself.
    today
        (rows, steps so far) int32: where each of the rows has been since the day began, `AWAY` where not counted. None but
        for a cost whose `looks_back` is True: such a cost is asked to price everyone, people with the same two last
        locations included.
    """

    locations: Locations
    departs: datetime
    transitions: sparse.csr_array
    today: NDArray[np.int32] | None = None


@runtime_checkable
class MoveCost(Protocol):
    """What every move cost is."""

    def __call__(
        self, previous: NDArray[np.int32], current: NDArray[np.int32], context: MoveContext
    ) -> NDArray[np.float64]:
        """Price the moves of several rows to every location.

        Parameters
        ----------
        previous, current
            (rows,) indices of the location at the step before and now; equal at the first step of a day.
        context
            What else is known.

        Returns
        -------
        (rows, locations) float64 costs, in any unit; infinite where a move is impossible.
        """
        ...


@dataclass(frozen=True)
class TargetCost:
    """A cost that is the distance in km to the nearest of a few targets; the step solvers know how to cut these short.

    The first target is the current location, or the point that the last movement extrapolates to (`extrapolates`); the
    others are the locations that most often followed the current one (`remembers`).
    """

    extrapolates: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def __call__(
        self, previous: NDArray[np.int32], current: NDArray[np.int32], context: MoveContext
    ) -> NDArray[np.float64]:
        """Price the moves of several rows to every location: (rows, locations) float64, km."""
        locations = context.locations
        here = locations.xy_km[current]
        target = here + (here - locations.xy_km[previous]) if self.extrapolates else here  # equation (1)
        cost = locations.distances_from(target)  # equation (2)
        if self.remembers:
            indptr, indices = popular_places(context.transitions)
            for row, place in enumerate(current):
                followers = indices[indptr[place] : indptr[place + 1]]
                if len(followers):
                    cost[row] = np.minimum(cost[row], locations.distances[followers].min(axis=0))  # cost(p, l)
        return cost


def is_target_cost(cost: MoveCost) -> TypeGuard[TargetCost]:
    """Whether a cost is what its targets say; not where a subclass has a price of its own."""
    return isinstance(cost, TargetCost) and type(cost).__call__ is TargetCost.__call__


class Stay(TargetCost):
    """Distance from the current location: most people do not move. The baseline's night."""


class Velocity(TargetCost):
    """Distance from the point that the last movement extrapolates to, equations (1) and (2). The baseline's day."""

    extrapolates: ClassVar[bool] = True


class Popular(TargetCost):
    """Distance from that point or from the most frequent next locations, whichever is nearest. The enhanced attack's."""

    extrapolates: ClassVar[bool] = True
    remembers: ClassVar[bool] = True


def popular_places(transitions: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find H_p, the locations that most often followed each location p, of those that ever did.

    Returns
    -------
    Row pointers (locations + 1,) and locations, as in a sparse matrix in CSR form; empty for locations never left.
    """
    matrix = transitions
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    highest = np.zeros(matrix.shape[0], dtype=np.int64)
    np.maximum.at(highest, rows, matrix.data)
    kept = (matrix.data == highest[rows]) & (matrix.data > 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=matrix.shape[0]))])
    return indptr.astype(np.int64), matrix.indices[kept].astype(np.int64)
