"""Locations: where people are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekindle.errors import InvalidData
from rekindle.frames import Frame, Library, geoframe, to_frame

AWAY = -1
"""In place of the index of a location, in `Trajectories.cells` and `Flows`: not counted at this step."""
EARTH_RADIUS_KM = 6371.0088
FARTHEST_KM = 50_000.0
"""How far from the origin a centre may lie: farther than any two points of the earth."""
LARGEST_KM = 100_000
"""Of a coordinate on the plane; false eastings and northings of map projections are far smaller."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Give a read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


class ByValue:
    """A dataclass whose objects are equal if their fields are, arrays number by number; they cannot be hashed."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__]
        pairs.sort(key=lambda pair: isinstance(pair[0], np.ndarray))  # they take longest
        return all(_same(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]


def _same(one: Any, other: Any) -> bool:
    arrays = isinstance(one, np.ndarray), isinstance(other, np.ndarray)
    if not any(arrays):
        return bool(one == other)
    return all(arrays) and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def to_array(values: ArrayLike, what: str, dtype: Any = None) -> NDArray[Any]:
    """Take values as an array, without a copy where they are one of that type already."""
    try:
        return np.asarray(values, dtype)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"{what} cannot be read as an array of numbers ({error}).") from None


def project_to_plane(lat: ArrayLike, lng: ArrayLike, origin: tuple[float, float]) -> NDArray[np.float64]:
    """Project onto a local plane around an origin (equirectangular, good to a part in a thousand within a city).

    Parameters
    ----------
    lat, lng
        Degrees, any shape.
    origin
        Latitude and longitude of the point that becomes (0, 0).

    Returns
    -------
    (..., 2) float64, km to the east and to the north.
    """
    lat0, lng0 = origin
    east = np.radians((np.asarray(lng, float) - lng0 + 180.0) % 360.0 - 180.0) * np.cos(np.radians(lat0))
    north = np.radians(np.asarray(lat, float) - lat0)
    return np.stack([east, north], axis=-1) * EARTH_RADIUS_KM


@dataclass(frozen=True, init=False, eq=False)
class Locations:
    """Where people are counted: locations, each with a name and a centre.

    Parameters
    ----------
    xy_km
        (locations, 2) centres on a plane, km to the east and to the north. Distances are Euclidean.
    ids
        A name for each location; ``"0"``, ``"1"``, ... by default.
    lat_lng
        (locations, 2) degrees, where known. Only for maps: distances use `xy_km`.
    public
        Whether the list was fixed without looking at the data, such as all towers or a grid over given bounds: True.
        False where it was made from the data, so that it says by itself where somebody was. None where that is unknown.
    """

    xy_km: NDArray[np.float64]
    ids: tuple[str, ...]
    lat_lng: NDArray[np.float64] | None
    public: bool | None

    def __init__(
        self,
        xy_km: ArrayLike,
        ids: Iterable[str] | None = None,
        lat_lng: ArrayLike | None = None,
        *,
        public: bool | None = None,
    ) -> None:
        xy = np.ascontiguousarray(to_array(xy_km, "Centres", np.float64))
        if xy.ndim != 2 or xy.shape[1:] != (2,) or not len(xy):
            raise InvalidData(f"Centres must be an array of locations x 2, at least one; its shape is {xy.shape}.")
        names = _names(ids, len(xy))
        _refuse_not_finite(xy, names, "centre")
        far = np.flatnonzero(np.abs(xy).max(axis=1) > FARTHEST_KM)
        if len(far):
            raise InvalidData(
                f"The centre of location {names[far[0]]!r} is {xy[far[0]].tolist()} km; it must lie within "
                f"{FARTHEST_KM:,.0f} km of the origin. Are these metres?"
            )
        if (far := np.abs(xy).max(axis=1)).max() > LARGEST_KM:
            at = int(far.argmax())
            raise InvalidData(
                f"The centre of location {names[at]!r} is {xy[at].tolist()} km; more than {LARGEST_KM:,} km is further than "
                "any two points on Earth. Are these metres?"
            )
        degrees = None
        if lat_lng is not None:
            degrees = np.ascontiguousarray(to_array(lat_lng, "lat_lng", np.float64))
            if degrees.shape != xy.shape:
                raise InvalidData(f"lat_lng has the shape {degrees.shape}; it must be {xy.shape}, like the centres.")
            _refuse_not_finite(degrees, names, "latitude or longitude")
            outside = np.flatnonzero((np.abs(degrees) > (90.0, 360.0)).any(axis=1))
            if len(outside):
                at = outside[0]
                raise InvalidData(
                    f"Location {names[at]!r} has latitude {degrees[at, 0]} and longitude {degrees[at, 1]}; "
                    "they must lie within 90 and 360 degrees. Are the two exchanged?"
                )
            degrees = frozen(degrees)
        object.__setattr__(self, "xy_km", frozen(xy))
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "lat_lng", degrees)
        object.__setattr__(self, "public", public)

    @classmethod
    def from_lat_lng(cls, lat_lng: ArrayLike, ids: Iterable[str] | None = None) -> Locations:
        """Build from degrees alone: centres are projected to a local plane around their middle."""
        degrees = to_array(lat_lng, "lat_lng", np.float64)
        if degrees.ndim != 2 or degrees.shape[1:] != (2,) or not len(degrees):
            raise InvalidData(
                f"lat_lng must be an array of locations x 2, at least one; its shape is {degrees.shape}."
            )
        names = _names(ids, len(degrees))
        _refuse_not_finite(degrees, names, "latitude or longitude")
        # Around the middle of the box, on whichever side of the date line most of it lies.
        lng = degrees[:, 1]
        unwrapped = (lng - lng[0] + 180.0) % 360.0 - 180.0 + lng[0]
        origin = (
            float(degrees[:, 0].min() + degrees[:, 0].max()) / 2,
            float(unwrapped.min() + unwrapped.max()) / 2,
        )
        return cls(project_to_plane(degrees[:, 0], lng, origin), names, degrees)

    def declare_public(self, public: bool | None = True) -> Locations:
        """Give the same locations, with `public` as said."""
        return self if self.public is public else Locations(self.xy_km, self.ids, self.lat_lng, public=public)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Locations):
            return NotImplemented
        return self is other or (self.ids == other.ids and np.array_equal(self.xy_km, other.xy_km))

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        return f"Locations({len(self)})"

    @property
    def lng_lat(self) -> NDArray[np.float64] | None:
        """(locations, 2) float64 degrees, as maps want them: the longitude first, within 180. None where not known."""
        if self.lat_lng is None:
            return None
        lat, lng = self.lat_lng.T
        return np.stack([np.where(np.abs(lng) > 180, (lng + 180) % 360 - 180, lng), lat], axis=1)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each location: location, x_km, y_km, and lat, lng where known.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        columns: dict[str, Any] = {"location": self.ids, "x_km": self.xy_km[:, 0], "y_km": self.xy_km[:, 1]}
        if self.lat_lng is not None:
            columns |= {"lat": self.lat_lng[:, 0], "lng": self.lat_lng[:, 1]}
        return to_frame(columns, library)

    def to_geoframe(self) -> Any:
        """A `geopandas.GeoDataFrame` of the centres: in degrees (EPSG:4326) where known, else in km without a CRS."""
        return geoframe({"location": self.ids}, *self.geometry())

    def geometry(self) -> tuple[NDArray[np.float64], str | None]:
        """The centres as a GeoDataFrame has them, (locations, 2) float64, and the name of their CRS."""
        degrees = self.lng_lat
        return (self.xy_km, None) if degrees is None else (degrees, "EPSG:4326")

    @cached_property
    def spacing_km(self) -> float | None:
        """The smallest distance between two centres that differ, km: the side of the cells of a grid. None for one."""
        # Two sectors of a mast lie at the same coordinates.
        centres = self.xy_km[np.unique(np.round(self.xy_km, 6), axis=0, return_index=True)[1]]
        if len(centres) == 1:
            return None
        from scipy.spatial import cKDTree

        return float(cKDTree(centres).query(centres, k=2)[0][:, 1].min())

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        """(locations, locations) distances between centres in km, read-only."""
        return frozen(self.distances_from(self.xy_km))

    def distances_from(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances in km from points (..., 2) to every centre: (..., locations) float64."""
        gap = points[..., None, :] - self.xy_km
        return np.hypot(gap[..., 0], gap[..., 1])

    def indices(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Positions of locations by name: (len(ids),) int64."""
        try:
            return np.array([self._position[name] for name in ids], dtype=np.int64)
        except KeyError as error:
            raise InvalidData(
                f"Location {error.args[0]!r} is unknown; it is not among the {len(self)} locations."
            ) from None

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.ids)}


def _names(ids: Iterable[str] | None, size: int) -> tuple[str, ...]:
    names = tuple(map(str, range(size) if ids is None else ids))
    if len(names) != size:
        raise InvalidData(f"There are {len(names)} names for {size} locations.")
    if len(set(names)) != size:
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidData(f"Location {twice!r} is listed twice; every location needs a name of its own.")
    return names


def _refuse_not_finite(values: NDArray[np.float64], names: tuple[str, ...], what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InvalidData(
            f"The {what} of location {names[bad[0]]!r} is {values[bad[0]].tolist()}; it must be two finite numbers."
        )
