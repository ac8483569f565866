"""How positions become locations: grid cells, a list of towers, or H3 cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rekindle.checks import choice, number, whole
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.frames import optional
from rekindle.model import AWAY, Locations
from rekindle.model.locations import EARTH_RADIUS_KM, project_to_plane
from rekindle.sources.engine import Frame, collect, with_computed

_BINS = (1e3, 1e8)
"""To a degree: a histogram of the coarse ones is small anywhere on earth, and one of the fine ones within some coarse ones."""


@dataclass(frozen=True)
class Extent:
    """The positions that say how far locations reach, on the engine that has them.

    Attributes
    ----------
    spells
        With `lat` and `lng` in degrees; a position counts for each step from `begin` to before `end`.
    steps
        How many steps will be counted: those after them say how far a box reaches, but visit no location.
    """

    spells: Frame
    steps: int

    def percentiles(self, percents: tuple[float, float]) -> NDArray[np.float64]:
        """(percents, 2) float64 of latitude and longitude, as `numpy.percentile` gives them of a position for each step."""
        return np.column_stack([self._percentiles(name, np.array(percents)) for name in ("lat", "lng")])

    def names(self, name: Callable[[NDArray[np.float64]], NDArray[np.str_]]) -> list[str]:
        """What a function calls the positions of the steps that will be counted, each name once, in order."""
        counted = self.spells.filter(nw.col("begin") < self.steps)
        named = with_computed(counted, "name", ["lat", "lng"], name, nw.String)
        return sorted(collect(named.select("name").unique())["name"])

    def _percentiles(self, column: str, percents: NDArray[np.float64]) -> NDArray[np.float64]:
        """By a histogram, then a finer one of the bins that matter, then their values: nobody has to sort all of them."""
        values = self.spells.select(value=nw.col(column), steps=nw.col("end") - nw.col("begin"))
        key, ranks = nw.col("value"), np.empty(0)
        for bins in (*_BINS, None):
            bin_of = key if bins is None else (key * bins).floor()
            values = values.with_columns(bin=bin_of)
            found = collect(values.group_by("bin").agg(nw.col("steps").sum())).sort("bin")
            steps, every = found["steps"].to_numpy(), found["bin"].to_numpy()
            if not len(ranks):
                share, lower = np.modf((steps.sum() - 1) * (percents / 100))
                ranks = np.concatenate([lower, np.minimum(lower + 1, steps.sum() - 1)]).astype(np.int64)
            at = np.searchsorted(steps.cumsum(), ranks, side="right")
            values = values.filter(nw.col("bin").is_in(every[np.unique(at)].tolist()))
            dropped = np.where(np.isin(np.arange(len(steps)), at), 0, steps)
            ranks = ranks - dropped.cumsum()[at]
        low, high = every[at].reshape(2, -1)
        # As numpy does it, to the last bit.
        return np.asarray(np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share)))


@dataclass(frozen=True)
class Located:
    """Locations, and which of them a position is in.

    Attributes
    ----------
    locations
        The locations.
    index
        From (positions, 2) float64 degrees to (positions,) indices of locations, `AWAY` for a position that is in none of them.
    """

    locations: Locations
    index: Callable[[NDArray[np.float64]], NDArray[np.integer]]


class Places(Protocol):
    """How positions become locations."""

    def fit(self, extent: Extent) -> Located:
        """Make the locations, and say which a position is in; what says it must be a function that can be pickled.

        Parameters
        ----------
        extent
            The positions that say how far the locations reach.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Square grid cells over a box, as in the paper's "General Preprocessing Steps".

    Parameters
    ----------
    cell_km
        The side of a grid cell in km.
    box
        The percentiles of latitude and of longitude at which the grid ends.
    bounds
        South, west, north and east of the grid in degrees, instead of percentiles. Only such a grid is fixed without
        looking at the data, and public. See `Locations`.
    outside
        What becomes of positions outside the grid: ``"edge"`` moves them onto its edge, as in the paper; ``"away"`` leaves
        people out of the counts while they are there.
    """

    cell_km: float = 1.0
    box: tuple[float, float] = (1.0, 99.5)
    bounds: tuple[float, float, float, float] | None = None
    outside: Literal["edge", "away"] = "edge"

    def __post_init__(self) -> None:
        number("cell_km", self.cell_km, least=0.001)
        choice("outside", self.outside, ("edge", "away"))
        low, high = self.box
        if not 0 <= low < high <= 100:
            raise InvalidSetting(f"`box` is {low}, {high}; give two percentiles that grow, from 0 to 100.")
        if self.bounds is not None:
            south, west, north, east = self.bounds
            if not (-90 <= south < north <= 90 and -180 <= west < east <= 180):
                raise InvalidSetting(
                    f"`bounds` is {self.bounds}; it must be south, west, north and east in degrees, in that order."
                )

    def fit(self, extent: Extent) -> Located:
        """See `Places`: cells are named ``"(i, j)"``, counted from the south-west, i to the east, j to the north."""
        corners = extent.percentiles(self.box) if self.bounds is None else np.reshape(self.bounds, (2, 2))
        origin = (float(corners[:, 0].mean()), float(corners[:, 1].mean()))
        # Whole metres: a box that hangs on the last bit of a float would give other cells on another machine.
        low, high = np.rint(project_to_plane(corners[:, 0], corners[:, 1], origin) * 1_000)
        cell = self.cell_km * 1_000
        shape = np.maximum(np.ceil((high - low) / cell), 1).astype(np.int64)
        if shape.prod() > 10_000_000:
            raise InvalidSetting(
                f"`cell_km` is {self.cell_km}, which makes a grid of {shape[0]} x {shape[1]}, more than 10 million. "
                "Use larger cells or a smaller `box`."
            )
        columns, rows = (index.ravel() for index in np.indices(shape))
        centres_km = (low + (np.stack([columns, rows], axis=-1) + 0.5) * cell) / 1_000
        names = [f"({i}, {j})" for i, j in zip(columns, rows, strict=True)]
        locations = Locations(centres_km, names, _degrees(centres_km, origin), public=self.bounds is not None)
        return Located(locations, partial(self._cells, origin=origin, low=low, high=high, shape=shape))

    def _cells(
        self,
        lat_lng: NDArray[np.float64],
        *,
        origin: tuple[float, float],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        shape: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The cell of each position; `low` and `high` are the corners of the box in metres, `shape` its columns and rows."""
        metres = project_to_plane(lat_lng[:, 0], lat_lng[:, 1], origin) * 1_000
        inside = np.clip(metres, low, high)
        column, row = np.minimum((inside - low) // (self.cell_km * 1_000), shape - 1).astype(np.int64).T
        cells = column * shape[1] + row
        if self.outside == "away":
            nearest = np.rint(metres)  # as the box: its own corners are inside
            cells[((nearest < low) | (nearest > high)).any(axis=-1)] = AWAY
        return np.asarray(cells)


@dataclass(frozen=True)
class Towers:
    """A list of towers: a position belongs to the nearest.

    Parameters
    ----------
    locations
        The towers; with `lat_lng`, unless the points name their tower.
    """

    locations: Locations

    def __post_init__(self) -> None:
        # The list of all towers is the operator's, no matter who was near them.
        object.__setattr__(self, "locations", self.locations.declare_public())

    def fit(self, extent: Extent) -> Located:
        """See `Places`: all towers are kept, also those that nobody is near to."""
        from scipy.spatial import cKDTree

        towers = self.locations.lat_lng
        if towers is None:
            raise InvalidData(
                "The towers have no lat and lng, so positions cannot be assigned to the nearest of them."
            )
        origin = (float(towers[:, 0].mean()), float(towers[:, 1].mean()))
        tree = cKDTree(project_to_plane(towers[:, 0], towers[:, 1], origin))
        return Located(self.locations, partial(_nearest, tree=tree, origin=origin))


@dataclass(frozen=True, kw_only=True)
class H3Cells:
    """H3 cells (needs the extra `h3`).

    Parameters
    ----------
    resolution
        From 0 to 15; 8 has cells of about 0.7 km2, 7 of about 5 km2.
    """

    resolution: int = 8

    def __post_init__(self) -> None:
        if whole("resolution", self.resolution) > 15:
            raise InvalidSetting(f"`resolution` is {self.resolution}; H3 has those from 0 to 15.")

    def fit(self, extent: Extent) -> Located:
        """See `Places`: only cells that somebody visits become locations."""
        h3 = optional("h3", extra="h3", what="A grid of H3 cells")
        names = extent.names(self._names)
        centres = [h3.cell_to_latlng(name) for name in names]
        locations = Locations.from_lat_lng(np.array(centres), names).declare_public(False)
        return Located(locations, partial(self._cells, names=np.array(names)))

    def _names(self, lat_lng: NDArray[np.float64]) -> NDArray[np.str_]:
        import h3  # type: ignore[import-untyped]

        positions, inverse = np.unique(lat_lng, axis=0, return_inverse=True)
        return np.array([h3.latlng_to_cell(lat, lng, self.resolution) for lat, lng in positions.tolist()], np.str_)[
            inverse
        ]

    def _cells(self, lat_lng: NDArray[np.float64], *, names: NDArray[np.str_]) -> NDArray[np.int64]:
        return np.searchsorted(names, self._names(lat_lng))


def _nearest(lat_lng: NDArray[np.float64], *, tree: Any, origin: tuple[float, float]) -> NDArray[np.int64]:
    _, nearest = tree.query(project_to_plane(lat_lng[:, 0], lat_lng[:, 1], origin))
    return np.asarray(nearest, dtype=np.int64)


def _degrees(xy_km: NDArray[np.float64], origin: tuple[float, float]) -> NDArray[np.float64]:
    """Turn `project_to_plane` round: (..., 2) km to (..., 2) degrees of latitude and longitude."""
    lat = origin[0] + np.degrees(xy_km[..., 1] / EARTH_RADIUS_KM)
    lng = origin[1] + np.degrees(xy_km[..., 0] / (EARTH_RADIUS_KM * math.cos(math.radians(origin[0]))))
    return np.stack([lat, lng], axis=-1)
