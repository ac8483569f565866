"""Trajectories as csv and parquet, and as GeoJSON for maps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidFile
from rekindle.io.safety.files import new_file
from rekindle.io.tables.columns import name_column, positions, require, step_numbers
from rekindle.io.tables.table import read_table, write_table
from rekindle.model import Calendar, Locations, Trajectories
from rekindle.model.locations import EARTH_RADIUS_KM

__all__ = ["read_trajectories", "trajectories_table", "write_trajectories"]


def trajectories_table(trajectories: Trajectories) -> pl.DataFrame:
    """One row a person and step: person, datetime, location."""
    people, steps = trajectories.cells.shape
    when = trajectories.calendar.times().astype("datetime64[ms]")
    return pl.DataFrame(
        {
            # As text: polars takes twenty times as long to read an Enum with as many names.
            "person": pl.Series(trajectories.people_ids, dtype=pl.String).gather(np.repeat(np.arange(people), steps)),
            "datetime": pl.Series(np.tile(when, people)),
            "location": name_column(trajectories.cells.ravel(), trajectories.locations.ids),
        }
    )


def read_trajectories(
    path: str | Path, locations: Locations, calendar: Calendar, *, within: Path | None = None
) -> Trajectories:
    """Read one row a person and step (person, datetime, location) from csv or parquet; each must be there once.

    Parameters
    ----------
    path
        The file.
    locations, calendar
        Where and when people were.
    within
        A folder that the file must not lead out of, as a link would.
    """
    path = Path(path)
    table = read_table(path, within=within)
    require(table, {"person", "datetime", "location"}, path)
    steps = step_numbers(table["datetime"], path, calendar)
    places, _ = positions(table["location"], path, locations.ids)
    people, people_ids = positions(table["person"], path)
    entries = np.bincount(people)
    if (entries < (calendar.steps or 0)).any():
        person = int(np.argmax(entries < (calendar.steps or 0)))
        missing = np.setdiff1d(np.arange(calendar.steps or 0), steps[people == person])[0]
        # Errors end up in logs, so they do not name people.
        row = 1 + int(np.argmax(people == person))
        raise InvalidFile(path, f"the person of row {row} has no location at {calendar.time(int(missing))}.")
    index = people * (calendar.steps or 0) + steps
    cells = np.full(len(people_ids) * (calendar.steps or 0), -1, dtype=np.int32)
    cells[index] = places
    if len(index) != len(cells) or cells.min() < 0:
        person, step = divmod(int(np.bincount(index, minlength=len(cells)).argmax()), calendar.steps or 1)
        raise InvalidFile(
            path,
            f"the person of row {1 + int(np.argmax(people == person))} is listed twice at {calendar.time(step)}; "
            "expected once.",
        )
    return Trajectories(cells.reshape(len(people_ids), -1), locations, calendar, people_ids)


def write_trajectories(path: str | Path, trajectories: Trajectories, *, overwrite: bool = False) -> None:
    """Write trajectories to one file that only its owner may read, by the ending of its name.

    ``.csv`` and ``.parquet``: one row a person and step with person, datetime and location. ``.geojson``: one feature a
    person with the centres they pass, a point only where the location changes, and the time they got there.

    Parameters
    ----------
    path
        The file; the ending of its name says which kind.
    trajectories
        What to write.
    overwrite
        Replace a file that is there.
    """
    path = Path(path)
    if path.suffix in (".csv", ".parquet"):
        write_table(path, trajectories_table(trajectories), overwrite=overwrite, private=True)
    elif path.suffix == ".geojson":
        with (
            new_file(path, overwrite=overwrite, private=True) as temporary,
            open(temporary, "w", encoding="utf-8") as file,
        ):
            _write_geojson(file, trajectories)
    else:
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .csv, .parquet or .geojson.")


def _write_geojson(file: TextIO, trajectories: Trajectories) -> None:
    """Write a feature a line, one at a time: together they would take many times the memory of the trajectories."""
    locations = trajectories.locations
    when = [str(time) for time in trajectories.calendar.times()]
    points = _lng_lat(locations).tolist()
    file.write('{"type": "FeatureCollection", ')
    if locations.lat_lng is None:
        file.write('"note": "The locations have no latitude and longitude; the plane is shown around 0, 0.", ')
    file.write('"features": [')
    for number, (name, cells) in enumerate(zip(trajectories.people_ids, trajectories.cells, strict=True)):
        arrivals = np.flatnonzero(np.diff(cells, prepend=-1)).tolist()
        passed = cells[arrivals].tolist()
        kind = "LineString" if len(passed) > 1 else "MultiPoint"  # a line needs two points
        feature = {
            "type": "Feature",
            "geometry": {"type": kind, "coordinates": [points[cell] for cell in passed]},
            "properties": {
                "person": name,
                "times": [when[step] for step in arrivals],
                "locations": [locations.ids[cell] for cell in passed],
            },
        }
        file.write((",\n" if number else "\n") + json.dumps(feature, ensure_ascii=False))
    file.write("\n]}\n")


def _lng_lat(locations: Locations) -> NDArray[np.float64]:
    if locations.lat_lng is not None:
        lat, lng = locations.lat_lng.T
        return np.stack([np.where(np.abs(lng) > 180, (lng + 180) % 360 - 180, lng), lat], axis=1)
    xy = locations.xy_km
    return np.asarray(np.degrees((xy - (xy.min(axis=0) + xy.max(axis=0)) / 2) / EARTH_RADIUS_KM))
