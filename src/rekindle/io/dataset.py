"""The dataset folder: counts, locations, and the truth where the owner has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile
from rekindle.io.files import new_folder, read_json, write_json
from rekindle.io.tables import (
    counts_table,
    name_column,
    names,
    numbers,
    read_locations,
    read_table,
    require,
    times,
    write_locations,
    write_table,
)
from rekindle.model import Calendar, Counts, Locations, Trajectories

__all__ = ["Dataset", "read_dataset", "write_dataset"]


@dataclass(frozen=True)
class Dataset:
    """What a dataset folder holds.

    Attributes
    ----------
    counts
        The release.
    truth
        The people behind it, or None where they are not known.
    info
        What else `dataset.json` says: where the data came from, its licence, how it was prepared.
    """

    counts: Counts
    truth: Trajectories | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.truth is not None:
            check_truth(self.counts, self.truth)

    @property
    def locations(self) -> Locations:
        """The places."""
        return self.counts.locations

    @property
    def calendar(self) -> Calendar:
        """When the steps are."""
        return self.counts.calendar

    @property
    def people(self) -> int:
        """How many people are counted at every step."""
        return self.counts.people


def check_truth(counts: Counts, truth: Trajectories) -> None:
    """Refuse a truth of other people, places or times than the counts."""
    if truth.locations != counts.locations:
        raise InvalidData("The truth has other locations than the counts.")
    if truth.calendar != counts.calendar:
        raise InvalidData(
            f"The truth has the calendar {truth.calendar.to_json()}, the counts {counts.calendar.to_json()}."
        )
    if truth.people != counts.people:
        raise InvalidData(f"The truth has {truth.people} people, the counts have {counts.people}.")
    wrong = np.argwhere(truth.counts().values != counts.values)
    if len(wrong):
        step, place = wrong[0]
        raise InvalidData(
            f"The truth does not fit the counts: at {counts.calendar.time(int(step))} in location "
            f"{counts.locations.ids[place]!r} the counts say {counts.values[step, place]}, "
            f"the truth has {int((truth.cells[:, step] == place).sum())}."
        )


def write_dataset(
    path: str | Path,
    *,
    counts: Counts,
    truth: Trajectories | None = None,
    info: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a dataset folder, whole or not at all.

    Parameters
    ----------
    path
        The folder. It must not exist, or be empty, unless `overwrite` is set.
    counts, truth
        The release, and the people behind it where they are known and may be stored.
    info
        Further entries of `dataset.json`, in plain JSON values.
    overwrite
        Replace a folder that is there.
    """
    dataset = Dataset(counts, truth, dict(info or {}))
    reserved = {"people", "calendar"} & dataset.info.keys()
    if reserved:
        raise InvalidData(f"info may not set {sorted(reserved)}; the counts say that.")
    if Path(path).is_dir() and any(Path(path).iterdir()) and not (Path(path) / "dataset.json").exists():
        raise InvalidFile(path, "this folder holds other things than a dataset; it was left as it is.")
    with new_folder(path, overwrite=overwrite) as folder:
        write_locations(folder / "locations.parquet", counts.locations)
        write_table(folder / "counts.parquet", counts_table(counts))
        if truth is not None:
            write_table(folder / "truth.parquet", trajectories_table(truth))
        write_json(
            folder / "dataset.json", {"people": counts.people, "calendar": counts.calendar.to_json()} | dataset.info
        )


def trajectories_table(trajectories: Trajectories) -> pl.DataFrame:
    """One row a person and step: person, datetime, location."""
    people, steps = trajectories.cells.shape
    when = trajectories.calendar.times().astype("datetime64[ms]")
    return pl.DataFrame(
        {
            "person": name_column(np.repeat(np.arange(people), steps), trajectories.people_ids),
            "datetime": pl.Series(np.tile(when, people)),
            "location": name_column(trajectories.cells.ravel(), trajectories.locations.ids),
        }
    )


def read_dataset(path: str | Path) -> Dataset:
    """Read a dataset folder: `counts`, `truth` (or None), `locations`, `calendar`, `people` and `info`."""
    folder = Path(path)
    if not folder.is_dir():
        problem = "this is a file, not a dataset folder." if folder.exists() else "this folder does not exist."
        raise InvalidFile(folder, problem)
    info = read_json(folder / "dataset.json")
    calendar = calendar_from_json(info.pop("calendar", None), folder / "dataset.json")
    people = info.pop("people", None)
    locations = read_locations(folder / "locations.parquet")
    counts = _read_counts(folder / "counts.parquet", locations, calendar)
    if people != counts.people:
        raise InvalidFile(
            folder / "dataset.json", f"'people' is {people!r}, but the counts add up to {counts.people}."
        )
    truth = None
    if (folder / "truth.parquet").exists():
        truth = read_trajectories(folder / "truth.parquet", locations, calendar)
    try:
        return Dataset(counts, truth, info)
    except InvalidData as error:
        raise InvalidFile(folder / "truth.parquet", str(error)) from None


def calendar_from_json(entry: object, path: Path) -> Calendar:
    """Read the calendar entry of a description."""
    if not isinstance(entry, dict) or not {"start", "step", "steps"} <= entry.keys():
        raise InvalidFile(path, f"'calendar' must hold start, step and steps; it is {entry!r:.200}.")
    if entry["steps"] is None:
        raise InvalidFile(path, "'calendar' has no number of steps.")
    if not isinstance(entry["start"], str) or not isinstance(entry["step"], str):
        raise InvalidFile(
            path, "'calendar' must give start and step as text, such as '2014-05-01 00:00' and '10min'."
        )
    try:
        return Calendar(entry["start"], entry["step"], entry["steps"])
    except InvalidData as error:
        raise InvalidFile(path, str(error)) from None


def _positions(table: pl.DataFrame, column: str, ids: tuple[str, ...], path: Path) -> NDArray[np.int64]:
    """Positions of the names in a column, whatever way it stores them."""
    values = table[column]
    if values.null_count():
        raise InvalidFile(path, f"row {int(values.is_null().arg_max() or 0) + 1}: {column} is missing.")
    distinct = values.unique(maintain_order=True)
    lookup = {name: position for position, name in enumerate(ids)}
    positions = np.array([lookup.get(name, -1) for name in distinct.cast(pl.String)], dtype=np.int64)
    if values.dtype in (pl.Enum, pl.Categorical):  # stored as codes: no need to look at each row's text
        table_of_codes = np.full(int(distinct.to_physical().max()) + 1, -1, dtype=np.int64)  # type: ignore[arg-type]
        table_of_codes[distinct.to_physical().to_numpy()] = positions
        result = table_of_codes[values.to_physical().to_numpy()]
    else:
        result = values.replace_strict(distinct, positions, return_dtype=pl.Int64).to_numpy()
    if (result < 0).any():
        row = int(np.argmax(result < 0))
        raise InvalidFile(path, f"row {row + 1}: {column} {values[row]!r} is unknown.")
    return np.asarray(result)


def _steps(table: pl.DataFrame, calendar: Calendar, path: Path) -> NDArray[np.int64]:
    offset = (times(table["datetime"], path) - np.datetime64(calendar.start, "s")).astype(np.int64)
    seconds = int(calendar.step.total_seconds())
    wrong = np.flatnonzero((offset < 0) | (offset >= seconds * (calendar.steps or 0)) | (offset % seconds != 0))
    if len(wrong):
        raise InvalidFile(
            path, f"row {wrong[0] + 1}: {table['datetime'][int(wrong[0])]} is not a step of the calendar."
        )
    return offset // seconds


def _read_counts(path: Path, locations: Locations, calendar: Calendar) -> Counts:
    table = read_table(path)
    require(table, {"datetime", "location", "count"}, path)
    steps = _steps(table, calendar, path)
    places = _positions(table, "location", locations.ids, path)
    values = np.zeros((calendar.steps or 0, len(locations)), dtype=np.int64)
    index, frequency = np.unique(steps * len(locations) + places, return_counts=True)
    if frequency.max() > 1:
        step, place = divmod(int(index[frequency.argmax()]), len(locations))
        raise InvalidFile(path, f"location {locations.ids[place]!r} is listed twice at {calendar.time(step)}.")
    values[steps, places] = numbers(table["count"], path, whole=True)
    try:
        return Counts(values, locations, calendar)
    except InvalidData as error:
        raise InvalidFile(path, str(error)) from None


def read_trajectories(path: str | Path, locations: Locations, calendar: Calendar) -> Trajectories:
    """Read one row a person and step (person, datetime, location) from csv or parquet; each must be there once."""
    path = Path(path)
    table = read_table(path)
    require(table, {"person", "datetime", "location"}, path)
    steps = _steps(table, calendar, path)
    places = _positions(table, "location", locations.ids, path)
    people_ids = tuple(names(table["person"].unique(maintain_order=True), path))
    people = _positions(table, "person", people_ids, path)
    cells = np.full((len(people_ids), calendar.steps or 0), -1, dtype=np.int32)
    cells[people, steps] = places
    if (cells < 0).any():
        person, step = np.argwhere(cells < 0)[0]
        raise InvalidFile(path, f"person {people_ids[person]!r} has no location at {calendar.time(int(step))}.")
    if table.height != cells.size:
        index, frequency = np.unique(people * cells.shape[1] + steps, return_counts=True)
        person, step = divmod(int(index[frequency.argmax()]), cells.shape[1])
        raise InvalidFile(path, f"person {people_ids[person]!r} is listed twice at {calendar.time(step)}.")
    return Trajectories(cells, locations, calendar, people_ids)
