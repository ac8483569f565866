"""Trajectories as csv and parquet, and as GeoJSON for maps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidFile
from rekindle.frames import name_column
from rekindle.io.safety.files import new_file
from rekindle.io.safety.untrusted import check_unfolded, in_file
from rekindle.io.tables import table as tables
from rekindle.io.tables.columns import after_rows, bad_cell, flags, positions, require, step_numbers
from rekindle.io.tables.table import read_pieces, write_table
from rekindle.model import AWAY, Calendar, Locations, Trajectories
from rekindle.model.locations import EARTH_RADIUS_KM


def trajectories_table(
    trajectories: Trajectories, *, away: bool = False, confidence: NDArray[np.float32] | None = None
) -> Iterator[pl.DataFrame]:
    """One row a person and step at which they are counted: person, datetime, location, and `observed` where that is known.

    The people in parts, one after the other, because a table takes many times the memory of trajectories.

    Parameters
    ----------
    trajectories
        The people.
    away
        Whether the other steps have rows too, without a location. If not, only a person who is never counted has one.
    confidence
        (people, steps) float32, one more column where it is known.
    """
    when = trajectories.calendar.times().astype("datetime64[ms]")
    size = max(1, tables.ROWS_AT_ONCE // max(trajectories.steps, 1))
    for first in range(0, trajectories.people, size):
        part = slice(first, first + size)
        cells = trajectories.cells[part]
        listed = (cells != AWAY) | away
        listed[~listed.any(axis=1), :1] = True
        person, step = np.nonzero(listed)
        columns = {
            # As text: polars takes twenty times as long to read an Enum with as many names.
            "person": pl.Series(trajectories.people_ids[part], dtype=pl.String).gather(person),
            "datetime": pl.Series(when[step]),
            "location": name_column(cells[person, step], trajectories.locations.ids),
        }
        if trajectories.observed is not None:
            columns["observed"] = pl.Series(trajectories.observed[part][person, step])
        if confidence is not None:
            columns["confidence"] = pl.Series(confidence[part][person, step], dtype=pl.Float32)
        yield pl.DataFrame(columns)


def read_trajectories(
    path: str | Path,
    locations: Locations,
    calendar: Calendar,
    *,
    people_ids: Sequence[str] | None = None,
    within: Path | None = None,
) -> Trajectories:
    """Read one row a person and step (person, datetime, location, and `observed` where steps were filled) from csv or parquet.

    A person without a row, or without a location, at a step is away then.

    Parameters
    ----------
    path
        The file.
    locations, calendar
        Where and when people were.
    people_ids
        All people, in order; by default those in the file.
    within
        A folder that the file must not lead out of, as a link would.
    """
    return trajectories_of(read_pieces(path, within=within), Path(path), locations, calendar, people_ids)


def trajectories_of(
    pieces: Iterable[pl.DataFrame],
    path: Path,
    locations: Locations,
    calendar: Calendar,
    people_ids: Sequence[str] | None = None,
) -> Trajectories:
    """Take trajectories from the pieces of a table, one after the other, as `read_trajectories` says."""
    steps = calendar.steps or 0
    known = {name: at for at, name in enumerate(people_ids or ())}
    # Room for the people so far and some more. Cells count from 1 here: 0 is what new room holds, and stands for away.
    cells, seen, observed = np.zeros(len(known) * steps, np.int32), np.zeros(len(known) * steps, bool), None
    read = 0
    for table in pieces:
        with after_rows(read):
            require(table, {"person", "datetime", "location"}, path)
            step = step_numbers(table["datetime"], path, calendar)
            person, found = positions(table["person"], path)
            if people_ids is None:
                number = [known.setdefault(name, len(known)) for name in found]
            else:
                number = [known.get(name, -1) for name in found]
            person = np.array(number, np.int64)[person]
            if person.min(initial=0) < 0:
                column = table["person"].cast(pl.String)
                raise bad_cell(path, column, int(np.argmax(person < 0)), f"one of {len(known)} known names")
            check_unfolded(path, 4 * len(known) * steps, 8 * (read + table.height) * table.width)
            if observed is None and "observed" in table.columns:
                observed = np.zeros(len(cells), bool)
            if len(known) * steps > len(cells):
                room = max(len(known), len(cells) // max(steps, 1) * 5 // 4) * steps
                for array in (cells, seen, observed):
                    if array is not None:
                        array.resize(room, refcheck=False)
            index = person * steps + step
            _refuse_twice(index, person, cells, seen, path, calendar, read)
            there = table["location"].is_not_null().to_numpy()
            cells[index[there]] = positions(table["location"].filter(there), path, locations.ids)[0] + 1
            if observed is not None:
                observed[index] = flags(table["observed"], path) & there
        read += table.height
    shape = (len(known), steps)
    cells -= 1
    with in_file(path):
        return Trajectories(
            cells[: len(known) * steps].reshape(shape),
            locations,
            calendar,
            known,
            None if observed is None else observed[: len(known) * steps].reshape(shape),
        )


def _refuse_twice(
    index: NDArray[np.int64],
    person: NDArray[np.int64],
    cells: NDArray[np.int32],
    seen: NDArray[np.bool_],
    path: Path,
    calendar: Calendar,
    read: int,
) -> None:
    """Refuse points that were seen before, in this piece (`index`, which is cleared in `cells`) or an earlier one; note them."""
    row = np.arange(len(index), dtype=np.int32)
    again = seen[index]
    if not again.any():
        cells[index] = row
        again = cells[index] != row
    if again.any():
        first = int(np.flatnonzero(again)[index[again].argmin()])
        # Errors end up in logs, so they do not name people.
        number = read + 1 + int(np.argmax(person == person[first]))
        when = calendar.time(int(index[first]) % (calendar.steps or 1))
        raise InvalidFile(path, f"the person of row {number} is listed twice at {when}; expected once.")
    cells[index], seen[index] = 0, True


def write_trajectories(
    path: str | Path,
    trajectories: Trajectories,
    *,
    form: Literal["paths", "trips"] = "paths",
    overwrite: bool = False,
) -> None:
    """Write trajectories to one file that only its owner may read, by the ending of its name.

    ``.csv`` and ``.parquet``: one row a person and step at which they are counted, with person, datetime, location, and
    `observed` where that is known. ``.geojson``: one line for each stretch of time in which a person is counted, of the
    centres they pass; there is no line across the time that they are away.

    Parameters
    ----------
    path
        The file; the ending of its name says which kind.
    trajectories
        What to write.
    form
        Of a ``.geojson`` file. "paths": a point only where the location changes, with the times and names of the locations
        as properties. "trips": as kepler.gl plays them, points of longitude, latitude, 0 and the time in seconds, where a
        stay begins and where it ends. The clock times are taken for UTC, as kepler.gl shows them.
    overwrite
        Replace a file that is there.
    """
    path = Path(path)
    trips = choice("form", form, ("paths", "trips")) == "trips"
    if trips and path.suffix != ".geojson":
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; trips are written to .geojson.")
    if path.suffix in (".csv", ".parquet"):
        write_table(path, trajectories_table(trajectories), overwrite=overwrite, private=True)
    elif path.suffix == ".geojson":
        with (
            new_file(path, overwrite=overwrite, private=True) as temporary,
            open(temporary, "w", encoding="utf-8") as file,
        ):
            _write_geojson(file, trajectories, _trips if trips else _paths)
    else:
        raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .csv, .parquet or .geojson.")


_Features = Iterator[dict[str, Any]]


def _write_geojson(file: TextIO, trajectories: Trajectories, features: Callable[[Trajectories], _Features]) -> None:
    """Write a feature a line, one at a time: together they would take many times the memory of the trajectories."""
    file.write('{"type": "FeatureCollection", ')
    if trajectories.locations.lat_lng is None:
        file.write('"note": "The locations have no latitude and longitude; the plane is shown around 0, 0.", ')
    file.write('"features": [')
    for number, feature in enumerate(features(trajectories)):
        file.write((",\n" if number else "\n") + json.dumps({"type": "Feature"} | feature, ensure_ascii=False))
    file.write("\n]}\n")


def _paths(trajectories: Trajectories) -> _Features:
    locations = trajectories.locations
    when = [str(time) for time in trajectories.calendar.times()]
    points = lng_lat(locations).tolist()
    for name, cells in zip(trajectories.people_ids, trajectories.cells, strict=True):
        for arrivals, _ in stretches(cells):
            passed = cells[arrivals].tolist()
            kind = "LineString" if len(passed) > 1 else "MultiPoint"  # a line needs two points
            yield {
                "geometry": {"type": kind, "coordinates": [points[cell] for cell in passed]},
                "properties": {
                    "person": name,
                    "times": [when[step] for step in arrivals],
                    "locations": [locations.ids[cell] for cell in passed],
                },
            }


def _trips(trajectories: Trajectories) -> _Features:
    seconds = trajectories.calendar.times().astype(np.int64)
    points = lng_lat(trajectories.locations).tolist()
    for name, cells in zip(trajectories.people_ids, trajectories.cells, strict=True):
        for arrivals, last in stretches(cells):
            steps = np.union1d(arrivals, np.append(arrivals[1:] - 1, last))
            line = [[*points[cells[step]], 0, int(seconds[step])] for step in steps]
            if len(line) == 1:  # a line needs two points: the stay lasts a step
                line.append([*line[0][:3], line[0][3] + int(trajectories.calendar.step.total_seconds())])
            yield {"geometry": {"type": "LineString", "coordinates": line}, "properties": {"person": name}}


def stretches(cells: NDArray[np.integer]) -> Iterator[tuple[NDArray[np.int64], int]]:
    """For each stretch of steps at which a person is counted: the steps at which the location changes, and the last step."""
    counted = cells != AWAY
    edges = np.flatnonzero(np.diff(counted, prepend=False, append=False))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        yield first + np.flatnonzero(np.diff(cells[first:end], prepend=AWAY)), int(end) - 1


def lng_lat(locations: Locations) -> NDArray[np.float64]:
    """(locations, 2) float64 degrees, the longitude first; where they are not known, the plane around 0, 0."""
    degrees = locations.lng_lat
    if degrees is not None:
        return degrees
    xy = locations.xy_km
    return np.asarray(np.degrees((xy - (xy.min(axis=0) + xy.max(axis=0)) / 2) / EARTH_RADIUS_KM))
