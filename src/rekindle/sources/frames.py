"""Data frames of other packages as plain tables, by what they can do: none of these packages is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rekindle.errors import InvalidData
from rekindle.io.tables.naming import known_column

_DEGREES = 4326
"""The EPSG number of latitude and longitude as GPS gives them."""


def plain_frame(frame: Any, given: Mapping[str, str | None]) -> tuple[Any, dict[str, str | None]]:
    """Turn geometry and an index of times into columns.

    Parameters
    ----------
    frame
        A data frame of any kind, or a movingpandas `TrajectoryCollection`; it is not changed.
    given
        The column names that the caller gave, by role.

    Returns
    -------
    The frame with columns instead, and the column names that are known now.
    """
    names = dict(given)
    if hasattr(frame, "to_point_gdf"):  # movingpandas
        frame = frame.to_point_gdf()
    columns: dict[str, Any] = {}
    if hasattr(frame, "index") and hasattr(frame, "assign"):  # pandas, and what derives from it
        for level in range(frame.index.nlevels):
            values = frame.index.get_level_values(level)
            for role in ("person", "time"):
                if _is_role(values, role, names[role], frame.columns):
                    names[role] = f"__{role}"
                    columns[f"__{role}"] = values
    if hasattr(frame, "active_geometry_name") and names["location"] is None and not (names["lat"] or names["lng"]):
        lat, lng = _degrees(frame)
        columns |= {"__lat": lat, "__lng": lng}
        names |= {"lat": "__lat", "lng": "__lng"}
    return frame.assign(**columns) if columns else frame, names


def _is_role(values: Any, role: str, given: str | None, columns: Any) -> bool:
    """Whether a level of an index is what a column should be: by its name, or as times where no column holds them."""
    if given is not None:
        return bool(values.name == given) and given not in columns
    if known_column(columns, role):
        return False
    times = role == "time" and type(values).__name__ == "DatetimeIndex"
    return times or (values.name is not None and bool(known_column([values.name], role)))


def _degrees(frame: Any) -> tuple[Any, Any]:
    """Latitudes and longitudes of a geometry column; NaN where a geometry is missing."""
    name = frame.active_geometry_name
    if name is None:
        raise InvalidData(
            "The frame is a GeoDataFrame without an active geometry; set it with frame.set_geometry(...), or name the "
            "columns with `lat` and `lng`."
        )
    geometry = frame[name]
    if geometry.crs is None:
        raise InvalidData(
            f"The geometry {name!r} has no coordinate reference system, so that nobody knows what its numbers mean; set it, "
            f"such as with frame.set_crs({_DEGREES}) for degrees."
        )
    kinds = set(geometry[~(geometry.isna() | geometry.is_empty)].geom_type) - {"Point"}
    if kinds:
        raise InvalidData(
            f"The geometry {name!r} holds {', '.join(sorted(kinds))}; expected one Point per row. For staypoints or other "
            "areas, take the centre: frame.set_geometry(frame.centroid)."
        )
    points = geometry if geometry.crs.to_epsg() == _DEGREES else geometry.to_crs(_DEGREES)
    return points.y, points.x
