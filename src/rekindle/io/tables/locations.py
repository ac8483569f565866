"""Tables of locations: ours, latitudes and longitudes, and the paper's grid file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import in_file
from rekindle.io.tables.columns import bad_cell, names, numbers, require
from rekindle.io.tables.naming import find_column, known_column
from rekindle.io.tables.table import read_table, write_table
from rekindle.model import Locations

_GRID_ID = re.compile(r"\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)", re.ASCII)
_POINT = re.compile(r"\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)", re.ASCII)


def read_locations(
    path: str | Path,
    *,
    location: str | None = None,
    lat: str | None = None,
    lng: str | None = None,
    within: Path | None = None,
) -> Locations:
    """Read locations from a csv or parquet file.

    Columns ``location, x_km, y_km`` (and ``lat, lng`` where known); or ``location, lat, lng`` alone, which are projected
    to a local plane; or the paper's grid file with ``ID`` and ``towerlocation`` ("(north, east)" in km). Other usual names,
    such as ``cell_id, latitude, longitude``, are recognised.

    Parameters
    ----------
    path
        The file.
    location, lat, lng
        The names of the columns that name a location, and its latitude and longitude in degrees.
    within
        The folder that was handed in, where the file is part of one: links out of it are refused.
    """
    table = read_table(path, within=within)
    columns = set(table.columns)
    with in_file(path):
        if {"ID", "towerlocation"} <= columns:
            points = [_POINT.fullmatch(text.strip()) for text in names(table["towerlocation"], path)]
            if None in points:
                row = points.index(None)
                raise bad_cell(path, table["towerlocation"], row, "'(north, east)' in km")
            try:
                north_east = np.array([[float(p[1]), float(p[2])] for p in points if p])
            except ValueError as error:
                raise InvalidFile(path, f"a coordinate is not a number ({error}).") from None
            return Locations(north_east[:, ::-1], names(table["ID"], path))
        given = {"location": location, "lat": lat, "lng": lng}
        # Not x and y: of towers, nobody knows whether these are degrees, metres or something else.
        others = [name for name in table.columns if name.strip().lower() not in ("x", "y") or name in given.values()]
        ids = names(table[find_column(others, "location", given)], path)
        if planar := bool({"x_km", "y_km"} & columns):
            require(table, {"x_km", "y_km"}, path)
        degrees = []
        if not planar or all(given[role] or known_column(others, role) for role in ("lat", "lng")):
            degrees = [table[find_column(others, role, given)] for role in ("lat", "lng")]
        # A file may know some latitudes only; where there are centres in km too, distances do not need them.
        lat_lng = None
        if degrees and not (planar and any(column.has_nulls() for column in degrees)):
            lat_lng = np.stack([numbers(_with_points(column), path) for column in degrees], axis=1)
        if lat_lng is not None and not planar:
            return Locations.from_lat_lng(lat_lng, ids)
        return Locations(np.stack([numbers(table[name], path) for name in ("x_km", "y_km")], axis=1), ids, lat_lng)


def _with_points(column: pl.Series) -> pl.Series:
    """Degrees with a decimal comma as with a point: no coordinate has thousands."""
    return column.str.replace(",", ".", literal=True) if column.dtype == pl.String else column


def write_locations(path: str | Path, locations: Locations, *, overwrite: bool = False) -> None:
    """Write locations as csv or parquet, by the ending of the name.

    Parameters
    ----------
    path
        The file.
    locations
        What to write.
    overwrite
        Replace a file that is there.
    """
    write_table(path, locations.to_frame(), overwrite=overwrite)


def grid_locations(ids: list[str], cell_km: float) -> Locations | None:
    """Locations named "(row, column)" as the cells of a grid; None where the names are others."""
    cells = [_GRID_ID.fullmatch(name.strip()) for name in ids]
    if not cells or None in cells:
        return None
    row_column = np.array([[int(cell[1]), int(cell[2])] for cell in cells if cell], dtype=float)
    return Locations((row_column[:, ::-1] + 0.5) * cell_km, ids)
