"""Defences that publish less detail: larger cells, longer steps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rekindle.checks import positive
from rekindle.defences.base import Defence, NothingLeft
from rekindle.errors import InvalidSetting
from rekindle.model import AWAY, AppliedDefence, Calendar, Locations, Release, Trajectories
from rekindle.model.calendar import format_step, parse_step


@dataclass(frozen=True, kw_only=True)
class CoarserSpace(Defence):
    """Merge locations into the cells of a grid.

    The grid begins in the south-west, half the smallest distance between two centres before the first one: where the
    locations are a grid themselves, that is their edge. A location belongs to the cell that its centre lies in. The new
    centre is the middle of the cell, the new name ``"(row, column)"`` counted from the south-west; cells without a
    location are left out. A merged number is withheld if all of its parts are; otherwise those that are known are added.

    Parameters
    ----------
    km
        Side of the cells, km.
    """

    exact: ClassVar[bool] = True
    words: ClassVar[str] = "Cells of {km:g} km"
    keeps_sensitivity: ClassVar[bool] = True
    km: float

    def __post_init__(self) -> None:
        positive("km", self.km)

    @classmethod
    def wider(cls, times: int, locations: Locations) -> Self:
        """Cells about so many times as wide as locations usually are apart, in a round number of km."""
        from scipy.spatial import cKDTree

        centres = np.unique(np.round(locations.xy_km, 6), axis=0)
        apart = np.median(cKDTree(centres).query(centres, k=2)[0][:, 1]) if len(centres) > 1 else 1.0
        return cls(km=float(f"{times * apart:.2g}"))

    def applied(self, release: Release | None = None) -> AppliedDefence:
        """See `Defence`: sums are not exact where some of their parts are withheld."""
        partly = release is not None and bool(release.withheld.any())
        return dataclasses.replace(super().applied(release), exact=not partly)

    def merge(self, locations: Locations) -> tuple[Locations, NDArray[np.int64]]:
        """Give the cells, and the cell of each location: (locations,) int64."""
        xy = locations.xy_km
        corner = xy.min(axis=0) - (locations.spacing_km or 0.0) / 2
        # A little more than rounding errors, so that a lattice never falls on the wrong side of an edge.
        column_row = np.floor((xy - corner) / self.km + 1e-9).astype(np.int64)
        merged, index = np.unique(column_row[:, ::-1], axis=0, return_inverse=True)
        index = index.ravel()
        if len(merged) == len(locations):
            raise InvalidSetting(
                f"{self.describe()} merges none of the {len(locations)} locations; use larger cells."
            )
        if len(merged) == 1:
            raise NothingLeft(
                f"{self.describe()} would merge all {len(locations)} locations into one, so that nothing is left to tell. "
                "Use smaller cells."
            )
        degrees = None
        if locations.lat_lng is not None:
            sums = np.zeros((len(merged), 2))
            np.add.at(sums, index, locations.lat_lng)
            degrees = sums / np.bincount(index)[:, None]
        names = [f"({row}, {column})" for row, column in merged]
        centres = corner + (merged[:, ::-1] + 0.5) * self.km
        return Locations(centres, names, degrees, public=locations.public), index

    def _change(self, release: Release) -> Release:
        locations, index = self.merge(release.locations)
        pairs = release.pairs
        if pairs is not None:
            pairs, index = np.unique(np.append(index, AWAY)[pairs], axis=0, return_inverse=True)  # -1 is the last
            index = index.ravel()
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(index.max() + 1))
        parts = release.values[:, order]
        sums = np.add.reduceat(np.nan_to_num(parts), starts, axis=1)
        withheld = np.logical_and.reduceat(np.isnan(parts), starts, axis=1)
        return Release(np.where(withheld, np.nan, sums), locations, release.calendar, pairs=pairs)

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Put everyone into the cells; those who are away stay away."""
        locations, index = self.merge(truth.locations)
        cells = np.append(index, AWAY)[truth.cells]  # index -1 is the last
        return Trajectories(cells, locations, truth.calendar, truth.people_ids, truth.observed)


@dataclass(frozen=True, kw_only=True)
class CoarserTime(Defence):
    """Publish fewer steps: of each longer step its first record, counted from the first of the data on.

    Who is away at that first record is not counted in the longer step, even if counted later in it.

    Parameters
    ----------
    step
        The longer interval, such as ``"1h"``: a multiple of the interval of the data that divides 24 hours.
    """

    exact: ClassVar[bool] = True
    words: ClassVar[str] = "Steps of {step}"
    keeps_sensitivity: ClassVar[bool] = True
    step: str | timedelta

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", format_step(Calendar("2000-01-01", self.step).step))

    def calendar(self, calendar: Calendar) -> Calendar:
        """See `Defence`."""
        steps = None if calendar.steps is None else -(-calendar.steps // self._every(calendar))
        return Calendar(calendar.start, self.step, steps)

    def _every(self, calendar: Calendar) -> int:
        times, rest = divmod(parse_step(self.step), calendar.step)
        if rest or not times:
            raise InvalidSetting(
                f"{self.describe()} does not fit data with a step of {format_step(calendar.step)}; "
                "the longer step must be a multiple of it."
            )
        return times

    def _change(self, release: Release) -> Release:
        if release.pairs is not None:
            raise InvalidSetting(
                f"{self.describe()} cannot be done to flows: who went where in a longer time does not follow from shorter "
                f"ones. Count them again with `truth.flows(window={self.step!r})`."
            )
        values = release.values[:: self._every(release.calendar)]
        return release.with_values(values, calendar=self.calendar(release.calendar))

    def coarsen(self, truth: Trajectories) -> Trajectories:
        """Keep the first step of each longer one; those who are away at it are away."""
        first = slice(None, None, self._every(truth.calendar))
        seen = None if truth.observed is None else truth.observed[:, first]
        calendar = self.calendar(truth.calendar)
        return Trajectories(truth.cells[:, first], truth.locations, calendar, truth.people_ids, seen)
