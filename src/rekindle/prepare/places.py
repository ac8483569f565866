"""How positions become locations: grid cells, a list of towers, or H3 cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rekindle.checks import choice, number, whole
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import AWAY, Locations
from rekindle.model.locations import EARTH_RADIUS_KM, project_to_plane


class Places(Protocol):
    """How positions become locations."""

    def locate(
        self, lat_lng: NDArray[np.float64], extent: NDArray[np.float64]
    ) -> tuple[Locations, NDArray[np.int32]]:
        """Make the locations and put each position into one.

        Parameters
        ----------
        lat_lng
            (..., 2) float64, degrees.
        extent
            (points, 2) float64, degrees: the positions that say how far the locations reach.

        Returns
        -------
        The locations, and (...) int32 indices into them; `AWAY` for a position that is in none of them.
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

    def locate(
        self, lat_lng: NDArray[np.float64], extent: NDArray[np.float64]
    ) -> tuple[Locations, NDArray[np.int32]]:
        """See `Places`: cells are named ``"(i, j)"``, counted from the south-west, i to the east, j to the north."""
        corners = np.percentile(extent, self.box, axis=0) if self.bounds is None else np.reshape(self.bounds, (2, 2))
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
        metres = project_to_plane(lat_lng[..., 0], lat_lng[..., 1], origin) * 1_000
        inside = np.clip(metres, low, high)
        column, row = np.moveaxis(np.minimum((inside - low) // cell, shape - 1).astype(np.int32), -1, 0)
        columns, rows = (index.ravel() for index in np.indices(shape))
        centres_km = (low + (np.stack([columns, rows], axis=-1) + 0.5) * cell) / 1_000
        names = [f"({i}, {j})" for i, j in zip(columns, rows, strict=True)]
        locations = Locations(centres_km, names, _degrees(centres_km, origin), public=self.bounds is not None)
        cells = (column * np.int32(shape[1]) + row).astype(np.int32)
        if self.outside == "away":
            nearest = np.rint(metres)  # as the box: its own corners are inside
            cells[((nearest < low) | (nearest > high)).any(axis=-1)] = AWAY
        return locations, cells


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

    def locate(
        self, lat_lng: NDArray[np.float64], extent: NDArray[np.float64]
    ) -> tuple[Locations, NDArray[np.int32]]:
        """See `Places`: all towers are kept, also those that nobody is near to."""
        from scipy.spatial import cKDTree

        towers = self.locations.lat_lng
        if towers is None:
            raise InvalidData("The towers have no lat and lng; positions cannot be put to the nearest of them.")
        origin = (float(towers[:, 0].mean()), float(towers[:, 1].mean()))
        tree = cKDTree(project_to_plane(towers[:, 0], towers[:, 1], origin))
        _, nearest = tree.query(project_to_plane(lat_lng[..., 0], lat_lng[..., 1], origin))
        return self.locations, np.asarray(nearest, dtype=np.int32)


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

    def locate(
        self, lat_lng: NDArray[np.float64], extent: NDArray[np.float64]
    ) -> tuple[Locations, NDArray[np.int32]]:
        """See `Places`: only cells that somebody visits become locations."""
        try:
            import h3  # type: ignore[import-untyped]
        except ImportError:
            raise InvalidSetting(
                "H3 cells need the package h3; install it with: pip install 'rekindle-mobility[h3]'."
            ) from None
        positions, inverse = np.unique(lat_lng.reshape(-1, 2), axis=0, return_inverse=True)
        cells = np.array([h3.latlng_to_cell(lat, lng, self.resolution) for lat, lng in positions.tolist()])
        names, index = np.unique(cells, return_inverse=True)
        centres = [h3.cell_to_latlng(name) for name in names.tolist()]
        locations = Locations.from_lat_lng(np.array(centres), names.tolist()).declare_public(False)
        return locations, index[inverse].reshape(lat_lng.shape[:-1]).astype(np.int32)


def _degrees(xy_km: NDArray[np.float64], origin: tuple[float, float]) -> NDArray[np.float64]:
    """Turn `project_to_plane` round: (..., 2) km to (..., 2) degrees of latitude and longitude."""
    lat = origin[0] + np.degrees(xy_km[..., 1] / EARTH_RADIUS_KM)
    lng = origin[1] + np.degrees(xy_km[..., 0] / (EARTH_RADIUS_KM * math.cos(math.radians(origin[0]))))
    return np.stack([lat, lng], axis=-1)
