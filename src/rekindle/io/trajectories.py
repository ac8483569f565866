"""Writing trajectories for other tools: csv, parquet, GeoJSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidFile
from rekindle.io.dataset import trajectories_table
from rekindle.io.files import new_file
from rekindle.io.tables import write_table
from rekindle.model import Locations, Trajectories
from rekindle.model.locations import EARTH_RADIUS_KM

__all__ = ["write_trajectories"]


def write_trajectories(path: str | Path, trajectories: Trajectories, *, overwrite: bool = False) -> None:
    """Write trajectories to one file, by the ending of its name.

    ``.csv`` and ``.parquet``: one row a person and step with person, datetime and location. ``.geojson``: one feature a
    person with the centres they pass, a point only where the place changes, and the time they got there.
    """
    path = Path(path)
    if path.suffix in (".csv", ".parquet"):
        write_table(path, trajectories_table(trajectories), overwrite=overwrite)
    elif path.suffix == ".geojson":
        with new_file(path, overwrite=overwrite) as temporary:
            temporary.write_text(json.dumps(_geojson(trajectories), ensure_ascii=False), encoding="utf-8")
    else:
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .csv, .parquet or .geojson.")


def _geojson(trajectories: Trajectories) -> dict[str, Any]:
    locations, when = trajectories.locations, trajectories.calendar.times()
    lng_lat = _lng_lat(locations)
    features = []
    for name, cells in zip(trajectories.people_ids, trajectories.cells, strict=True):
        arrivals = np.concatenate([[0], 1 + np.flatnonzero(np.diff(cells))]) if len(cells) else np.empty(0, int)
        points = lng_lat[cells[arrivals]].tolist()
        kind = "LineString" if len(points) > 1 else "MultiPoint"  # a line needs two points
        features.append(
            {
                "type": "Feature",
                "geometry": {"type": kind, "coordinates": points},
                "properties": {
                    "person": name,
                    "times": [str(time) for time in when[arrivals]],
                    "locations": [locations.ids[cell] for cell in cells[arrivals]],
                },
            }
        )
    collection: dict[str, Any] = {"type": "FeatureCollection", "features": features}
    if locations.lat_lng is None:
        collection["note"] = "The places have no latitude and longitude; the plane is shown around 0, 0."
    return collection


def _lng_lat(locations: Locations) -> NDArray[np.float64]:
    if locations.lat_lng is not None:
        return locations.lat_lng[:, ::-1]
    xy = locations.xy_km
    return np.asarray(np.degrees((xy - (xy.min(axis=0) + xy.max(axis=0)) / 2) / EARTH_RADIUS_KM))
