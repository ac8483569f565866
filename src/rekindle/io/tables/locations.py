"""Tables of locations: ours, latitudes and longitudes, and the paper's grid file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekindle.errors import InvalidFile
from rekindle.io.safety.untrusted import in_file
from rekindle.io.tables.columns import bad_cell, names, numbers, require
from rekindle.io.tables.table import read_table, write_table
from rekindle.model import Locations

__all__ = ["grid_locations", "read_locations", "write_locations"]

_GRID_ID = re.compile(r"\(\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)", re.ASCII)
_POINT = re.compile(r"\(\s*([-+.\deE]+)\s*,\s*([-+.\deE]+)\s*\)", re.ASCII)


def read_locations(path: str | Path, *, within: Path | None = None) -> Locations:
    """Read locations from a csv or parquet file.

    Columns ``location, x_km, y_km`` (and ``lat, lng`` where known); or ``location, lat, lng`` alone, which are projected
    to a local plane; or the paper's grid file with ``ID`` and ``towerlocation`` ("(north, east)" in km).

    Parameters
    ----------
    path
        The file.
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
        require(table, {"location"}, path)
        ids = names(table["location"], path)
        planar, global_ = {"x_km", "y_km"} <= columns, {"lat", "lng"} <= columns
        if not planar and not global_:
            require(table, {"x_km", "y_km"}, path)
        # A file may know some latitudes only; where there are centres in km too, distances do not need them.
        lat_lng = None
        if global_ and not (planar and table["lat"].null_count() + table["lng"].null_count()):
            lat_lng = np.stack([numbers(table[name], path) for name in ("lat", "lng")], axis=1)
        if lat_lng is not None and not planar:
            return Locations.from_lat_lng(lat_lng, ids)
        return Locations(np.stack([numbers(table[name], path) for name in ("x_km", "y_km")], axis=1), ids, lat_lng)


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
    columns: dict[str, Any] = {
        "location": locations.ids,
        "x_km": locations.xy_km[:, 0],
        "y_km": locations.xy_km[:, 1],
    }
    if locations.lat_lng is not None:
        columns |= {"lat": locations.lat_lng[:, 0], "lng": locations.lat_lng[:, 1]}
    write_table(path, pl.DataFrame(columns), overwrite=overwrite)


def grid_locations(ids: list[str], cell_km: float) -> Locations | None:
    """Locations named "(row, column)" as the cells of a grid; None where the names are others."""
    cells = [_GRID_ID.fullmatch(name.strip()) for name in ids]
    if not cells or None in cells:
        return None
    row_column = np.array([[int(cell[1]), int(cell[2])] for cell in cells if cell], dtype=float)
    return Locations((row_column[:, ::-1] + 0.5) * cell_km, ids)
