"""The dataset folder: counts, locations, and the truth where the owner has it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rekindle.errors import InvalidData, InvalidFile
from rekindle.io.safety.files import read_json, write_json
from rekindle.io.safety.folders import Sensitive, mark_folder, new_folder
from rekindle.io.safety.untrusted import in_file
from rekindle.io.tables.counts import counts_from_table, counts_table
from rekindle.io.tables.flows import flows_from_table, flows_table, of_window
from rekindle.io.tables.locations import read_locations, write_locations
from rekindle.io.tables.table import read_table, write_table
from rekindle.io.tables.trajectories import read_trajectories, trajectories_table
from rekindle.model import Calendar, Counts, Dataset, Flows, Trajectories, check_flows
from rekindle.model.calendar import format_step

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
    about: dict[str, Any] = {"people": counts.people, "calendar": counts.calendar.to_json()}
    if counts.locations.public is not None:
        about["public_locations"] = counts.locations.public
    if dataset.flows:
        write_table(folder / "flows.parquet", flows_table(dataset.flows))
        about["flows"] = [
            {
                "window": format_step(one.window),
                "start": str(one.calendar.start),
                "steps": one.steps,
                "stayers": one.stayers,
            }
            for one in dataset.flows
        ]
    write_json(folder / "dataset.json", about | dataset.info)
    if truth is not None:
        write_table(folder / "truth.parquet", trajectories_table(truth), private=True)
        mark_folder(folder, DATASET, {"truth.parquet": Sensitive("the truth", "truth")})


def read_dataset(path: str | Path, *, truth: bool = True) -> Dataset:
    """Read a dataset folder: `counts`, `truth` (or None), `flows`, `locations`, `calendar`, `people` and `info`.

    Parameters
    ----------
    path
        The folder.
    truth
        Whether to read the truth where it is there; without, its file is not opened.
    """
    folder = Path(path)
    if not folder.is_dir():
        problem = "this is a file, not a dataset folder." if folder.exists() else "this folder does not exist."
        raise InvalidFile(folder, problem)
    if not (folder / "dataset.json").exists():
        raise InvalidFile(
            folder,
            "it has no dataset.json; a dataset folder holds dataset.json, counts.parquet and locations.parquet.",
        )
    info = read_json(folder / "dataset.json", within=folder)
    calendar = calendar_from_json(info.pop("calendar", None), folder / "dataset.json")
    people = info.pop("people", None)
    public = info.pop("public_locations", None)
    if public not in (None, True, False):
        raise InvalidFile(folder / "dataset.json", f"'public_locations' is {public!r:.80}; it must be true or false.")
    locations = read_locations(folder / "locations.parquet", within=folder).declare_public(public)
    counts_path = folder / "counts.parquet"
    if type(people) is not int:
        raise InvalidFile(folder / "dataset.json", f"'people' is {people!r:.80}; it must be a whole number.")
    counts = counts_from_table(read_table(counts_path, within=folder), counts_path, locations, calendar, people)
    flows = _read_flows(folder, info.pop("flows", []), counts)
    people_behind = None
    if truth and os.path.lexists(folder / "truth.parquet"):
        people_behind = read_trajectories(folder / "truth.parquet", locations, calendar, within=folder)
    with in_file(folder / "truth.parquet"):
        return Dataset(counts, people_behind, info, flows)


def _read_flows(folder: Path, entries: object, counts: Counts) -> tuple[Flows, ...]:
    """Read the flows that the description of a dataset names."""
    path, about = folder / "flows.parquet", folder / "dataset.json"
    keys = {"window", "start", "steps", "stayers"}
    if not isinstance(entries, list) or not all(isinstance(one, dict) and keys <= one.keys() for one in entries):
        raise InvalidFile(
            about, f"'flows' must be a list of objects with window, start, steps and stayers; it is {entries!r:.200}."
        )
    if not entries:
        return ()
    table, found = read_table(path, within=folder), []
    for one in entries:
        calendar = calendar_from_json({"start": one["start"], "step": one["window"], "steps": one["steps"]}, about)
        if not isinstance(one["stayers"], bool):
            raise InvalidFile(about, f"'stayers' is {one['stayers']!r:.80}; it must be true or false.")
        with in_file(path):
            rows, _ = of_window(table, path, calendar.step)
            flows = flows_from_table(
                table.filter(rows), path, counts.locations, calendar, one["stayers"], counts.people
            )
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
