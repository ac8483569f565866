"""The dataset folder: counts, locations, and the truth where the owner has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rekindle.checks import whole
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io.safety.files import read_json, write_json
from rekindle.io.safety.folders import Sensitive, mark_folder, new_folder
from rekindle.io.safety.untrusted import in_file
from rekindle.io.tables.columns import names, require, times
from rekindle.io.tables.counts import counts_from_table, counts_table
from rekindle.io.tables.flows import flows_from_table, flows_table, of_window
from rekindle.io.tables.locations import read_locations, write_locations
from rekindle.io.tables.table import read_stored, stored, table_in, write_table
from rekindle.io.tables.trajectories import trajectories_of, trajectories_table
from rekindle.model import Calendar, Counts, Dataset, Flows, Locations, Trajectories, check_flows
from rekindle.model.calendar import format_step
from rekindle.model.flows import flows_of

DATASET = "dataset"
"""What the mark of a dataset folder says."""


def write_dataset(
    path: str | Path,
    *,
    counts: Counts,
    truth: Trajectories | None = None,
    flows: Flows | Sequence[Flows] = (),
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
    flows
        Flows that are published too, or those of several windows.
    info
        Further entries of `dataset.json`, in plain JSON values.
    overwrite
        Replace a folder that is there.
    """
    dataset = Dataset(counts, truth, dict(info or {}), (flows,) if isinstance(flows, Flows) else tuple(flows))
    reserved = {"people", "calendar", "public_locations", "flows"} & dataset.info.keys()
    if reserved:
        raise InvalidData(f"info may not set {sorted(reserved)}; the counts say that.")
    with new_folder(path, DATASET, overwrite=overwrite, private=truth is not None) as folder:
        fill_dataset(folder, dataset)


def fill_dataset(folder: Path, dataset: Dataset) -> None:
    """Write the files of a dataset into a folder of its own."""
    counts, truth = dataset.counts, dataset.truth
    write_locations(folder / "locations.parquet", counts.locations)
    write_table(folder / "counts.parquet", counts_table(counts))
    if dataset.flows:
        write_table(folder / "flows.parquet", flows_table(dataset.flows))
    windows = [(one.calendar, one.stayers) for one in dataset.flows]
    about = describe(counts.people, counts.locations, counts.calendar, windows)
    write_json(folder / "dataset.json", about | dataset.info)
    if truth is not None:
        write_table(folder / "truth.parquet", trajectories_table(truth), private=True)
        mark_folder(folder, DATASET, {"truth.parquet": Sensitive("the truth", "truth")})


def describe(
    people: int, locations: Locations, calendar: Calendar, flows: Sequence[tuple[Calendar, bool]] = ()
) -> dict[str, Any]:
    """What `dataset.json` says of a dataset, with the calendar of each flows and whether stayers are in them."""
    about: dict[str, Any] = {"people": people, "calendar": calendar.to_json()}
    if locations.public is not None:
        about["public_locations"] = locations.public
    if flows:
        about["flows"] = [
            {"window": format_step(one.step), "start": str(one.start), "steps": one.steps, "stayers": stayers}
            for one, stayers in flows
        ]
    return about


def read_dataset(
    path: str | Path,
    *,
    truth: bool = True,
    people: int | Collection[str] | None = None,
    days: int | slice | None = None,
    seed: int = 0,
) -> Dataset:
    """Read a dataset folder: `counts`, `truth` (or None), `flows`, `locations`, `calendar`, `people` and `info`.

    Instead of a file such as ``truth.parquet``, there may be a folder ``truth`` of parquet files, which are read one after
    the other: of a dataset that does not fit into memory, a part may.

    Parameters
    ----------
    path
        The folder.
    truth
        Whether to read the truth where it is there; without, its file is not opened.
    people
        Only so many people, drawn by `seed`, or those named; counts and flows are then theirs, by the truth.
    days
        Only so many days, from the first on; or a slice of days, counted from 0.
    seed
        Which people are drawn.

    Examples
    --------
    >>> import rekindle as rk
    >>> city = rk.SyntheticCity(people=20, days=3).trajectories()
    >>> rk.write_dataset("twenty", counts=city.counts(), truth=city, overwrite=True)
    >>> rk.read_dataset("twenty", people=5, days=2)
    Dataset(Counts(5 people, 96 steps from 2024-01-01 00:00:00, 100 locations), with the truth)
    """
    folder = Path(path)
    if not folder.is_dir():
        problem = "this is a file, not a dataset folder." if folder.exists() else "this folder does not exist."
        raise InvalidFile(folder, problem)
    about = folder / "dataset.json"
    if not about.exists():
        raise InvalidFile(
            folder,
            "it has no dataset.json; a dataset folder holds dataset.json, counts.parquet and locations.parquet.",
        )
    info = read_json(about, within=folder)
    calendar = _days(calendar_from_json(info.pop("calendar", None), about), days)
    everyone = info.pop("people", None)
    public = info.pop("public_locations", None)
    if public not in (None, True, False):
        raise InvalidFile(about, f"'public_locations' is {public!r:.80}; it must be true or false.")
    where = table_in(folder, "locations") or folder / "locations.parquet"
    locations = read_locations(where, within=folder).declare_public(public)
    if type(everyone) is not int:
        raise InvalidFile(about, f"'people' is {everyone!r:.80}; it must be a whole number.")
    windows = _windows(about, info.pop("flows", []))
    if days is not None:
        windows = [(part, stayers) for one, stayers in windows if (part := _within(one, calendar)) is not None]
    known = truth and bool(stored(folder, "truth"))
    if people is not None:
        if not known:
            raise InvalidSetting("`people` is set, but there is no truth to draw them from.")
        found = _read_truth(folder, locations, calendar, people, seed, part=days is not None)
        theirs = (
            flows_of(found.during(one).cells, locations, one, stayers=stayers, people=found.people)
            for one, stayers in windows
        )
        return Dataset(found.counts(), found, info | {"drawn_from": everyone}, tuple(theirs))
    path, pieces = read_stored(folder, "counts")
    table = pl.concat(piece if days is None else _during(piece, path, calendar) for piece in pieces)
    counts = counts_from_table(table, path, locations, calendar, everyone)
    flows = _read_flows(folder, windows, counts, part=days is not None)
    behind = _read_truth(folder, locations, calendar, None, seed, part=days is not None) if known else None
    with in_file(table_in(folder, "truth") or folder / "truth.parquet"):
        return Dataset(counts, behind, info, flows)


def published_in(path: Path) -> list[Path]:
    """The published tables of a dataset folder: its counts, and its flows where it has them. Anything else is a table itself."""
    found = [table_in(path, name) for name in ("counts", "flows")] if path.is_dir() else []
    return [table for table in found if table is not None] or [path]


def _days(calendar: Calendar, days: int | slice | None) -> Calendar:
    """The calendar of a part of the days."""
    if days is None:
        return calendar
    chosen = slice(whole("days", days, least=1)) if isinstance(days, int) else days
    numbers = range(calendar.number_of_days)[chosen]
    if not len(numbers) or numbers.step != 1 or (isinstance(days, int) and len(numbers) < days):
        raise InvalidSetting(f"`days` is {days}; the dataset has {calendar.number_of_days} days, counted from 0.")
    return calendar.part(slice(calendar.day(numbers[0]).start, calendar.day(numbers[-1]).stop))


def _during(table: pl.DataFrame, path: Path, calendar: Calendar) -> pl.DataFrame:
    """The rows of a table whose times lie in a calendar; those beside its steps are refused later."""
    require(table, {"datetime"}, path)
    when = times(table["datetime"], path)
    end = np.datetime64(calendar.time(calendar.steps or 0), "s")
    return table.filter((when >= np.datetime64(calendar.start, "s")) & (when < end))


def _read_truth(
    folder: Path,
    locations: Locations,
    calendar: Calendar,
    people: Any,
    seed: int,
    *,
    part: bool,
) -> Trajectories:
    """Read the truth of some people, and of part of the days; those who are away on all of these are in it, too."""
    ids: Sequence[str] | None = None
    if people is not None or part:
        ids = _people(folder)
    if isinstance(people, int):
        if whole("people", people, least=1) > len(ids or ()):
            raise InvalidSetting(f"`people` is {people}; the dataset has {len(ids or ())} people.")
        people = np.random.default_rng(seed).choice(sorted(ids or ()), people, replace=False).tolist()
    if people is not None:
        chosen = set[str](people)
        if unknown := chosen.difference(ids or ()):
            raise InvalidSetting(f"`people` names {len(unknown)} who are not in the dataset.")
        ids = [name for name in ids or () if name in chosen]

    def wanted(table: pl.DataFrame) -> pl.DataFrame:
        table = _during(table, path, calendar) if part else table
        return table if people is None else table.filter(names(table["person"], path).is_in(ids or ()))

    if len(stored(folder, "truth")) > 1:  # whose order says nothing
        ids = sorted(ids or _people(folder))
    path, pieces = read_stored(folder, "truth")
    return trajectories_of(map(wanted, pieces), path, locations, calendar, ids)


def _people(folder: Path) -> list[str]:
    """Who is in the truth, in the order that they come."""
    path, pieces = read_stored(folder, "truth")
    found: dict[str, None] = {}
    for table in pieces:
        require(table, {"person"}, path)
        found |= dict.fromkeys(names(table["person"], path).unique(maintain_order=True))
    return list(found)


def _windows(about: Path, entries: object) -> list[tuple[Calendar, bool]]:
    """When the windows of the flows that a description names begin and end, and whether people who stay are in them."""
    keys = {"window", "start", "steps", "stayers"}
    if not isinstance(entries, list) or not all(isinstance(one, dict) and keys <= one.keys() for one in entries):
        raise InvalidFile(
            about, f"'flows' must be a list of objects with window, start, steps and stayers; it is {entries!r:.200}."
        )
    found = []
    for one in entries:
        windows = calendar_from_json({"start": one["start"], "step": one["window"], "steps": one["steps"]}, about)
        if not isinstance(one["stayers"], bool):
            raise InvalidFile(about, f"'stayers' is {one['stayers']!r:.80}; it must be true or false.")
        found.append((windows, one["stayers"]))
    return found


def _within(windows: Calendar, calendar: Calendar) -> Calendar | None:
    """The windows that begin and end within a calendar; None where there is none."""
    first = max(0, -((windows.start - calendar.start) // windows.step))
    last = (calendar.time((calendar.steps or 0) - 1) - windows.start) // windows.step
    part = windows.part(slice(first, max(first, last + 1)))
    return part if (part.steps or 0) > 1 else None


def _read_flows(
    folder: Path, windows: list[tuple[Calendar, bool]], counts: Counts, *, part: bool
) -> tuple[Flows, ...]:
    """Read the flows of these windows, which may be a part of those that are stored."""
    found = []
    for calendar, stayers in windows:
        path, pieces = read_stored(folder, "flows")
        table = pl.concat(pieces)
        with in_file(path):
            rows, _ = of_window(table, path, calendar.step)
            table = table.filter(rows)
            if part:
                table = _during(table, path, calendar.closed_at((calendar.steps or 1) - 1))
            flows = flows_from_table(table, path, counts.locations, calendar, stayers, counts.people)
            check_flows(counts, flows)
        found.append(flows)
    return tuple(found)


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
    with in_file(path):
        return Calendar(entry["start"], entry["step"], entry["steps"])
