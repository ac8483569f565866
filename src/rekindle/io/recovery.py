"""The recovery folder: one file a day, each written whole, so that another process can read along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, OutputExists, OutputFailed
from rekindle.io.dataset import calendar_from_json
from rekindle.io.safety.files import check_new_folder, new_folder, output, read_json, remove_leftovers, write_json
from rekindle.io.tables.columns import numbers, positions, step_numbers
from rekindle.io.tables.locations import read_locations, write_locations
from rekindle.io.tables.table import read_table, write_table
from rekindle.io.tables.trajectories import read_trajectories, trajectories_table
from rekindle.model import Calendar, Locations, Trajectories

__all__ = ["RecoveryFolder", "StoredRecovery", "read_recovery"]

FORMAT = "rekindle recovery 1"
_MOST_PEOPLE = 10_000_000
"""Each has a name, which takes memory even before the first day."""


@dataclass(frozen=True, eq=False)
class StoredRecovery:
    """What a recovery folder holds.

    Attributes
    ----------
    trajectories
        The whole days that are there.
    attack, settings
        The attack that produced them.
    calendar
        The calendar of the release; longer than that of the trajectories where days are still missing.
    costs
        For each day: ``step_costs``, ``link_cost`` and ``gap``.
    confidence
        (people, steps) float32: how sure the attack was of each point, from 0 to 1; None where it did not say.
    """

    trajectories: Trajectories
    attack: str
    settings: dict[str, Any]
    calendar: Calendar
    costs: list[dict[str, Any]]
    confidence: NDArray[np.float32] | None = None

    @property
    def complete(self) -> bool:
        """Whether every step of the release is there."""
        return self.trajectories.steps == self.calendar.steps


class RecoveryFolder:
    """A recovery folder that is being written.

    Parameters
    ----------
    path
        The folder: new, empty, or one that an earlier run of the same attack left (`resume`).
    attack, settings
        What produces the recovery, by name and in plain values.
    locations, calendar, people
        What is being attacked.
    resume
        Go on with what is there. Without, a folder with anything in it is refused.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        attack: str,
        settings: dict[str, Any],
        locations: Locations,
        calendar: Calendar,
        people: int,
        resume: bool = False,
    ) -> None:
        self.path = Path(path)
        self._head = {
            "format": FORMAT,
            "attack": attack,
            "settings": settings,
            "people": people,
            "calendar": calendar.to_json(),
        }
        self._days: list[dict[str, Any]] = []
        self.stored: StoredRecovery | None = None
        check_new_folder(self.path, overwrite=True)
        if self.path.is_dir() and any(self.path.iterdir()):
            if not resume:
                raise OutputExists(
                    f"{self.path} exists already; it was left as it is. Choose another folder, or resume what is there."
                )
            remove_leftovers(self.path)
            self.stored = read_recovery(self.path)
            self._check_same(locations)
            self._days = self.stored.costs
        else:
            with new_folder(self.path, private=True) as folder:
                write_locations(folder / "locations.parquet", locations)
                self._write_head(folder, [])

    def _check_same(self, locations: Locations) -> None:
        there = read_json(self.path / "recovery.json")
        for name, value in self._head.items():
            if there.get(name) != value:
                raise InvalidData(
                    f"{self.path} cannot be resumed: there {name} is {there.get(name)!r:.200}, now it is {value!r:.200}."
                )
        if self.stored is None or self.stored.trajectories.locations != locations:
            raise InvalidData(f"{self.path} cannot be resumed: it has other locations.")

    def _write_head(self, folder: Path, days: list[dict[str, Any]]) -> None:
        write_json(folder / "recovery.json", self._head | {"days": days}, private=True)

    @property
    def days(self) -> int:
        """Days that are written."""
        return len(self._days)

    def add(
        self,
        day: Trajectories,
        *,
        step_costs: np.ndarray[Any, Any],
        link_cost: float,
        gap: float,
        confidence: NDArray[np.float32] | None = None,
    ) -> None:
        """Write one more day: first its file, then the list that says it is there."""
        table = trajectories_table(day)
        if confidence is not None:
            table = table.with_columns(pl.Series("confidence", confidence.ravel(), dtype=pl.Float32))
        entry = {
            "step_costs": [None if np.isnan(cost) else float(cost) for cost in step_costs],
            "link_cost": None if np.isnan(link_cost) else float(link_cost),
            "gap": float(gap),
        }
        if not self.path.is_dir():
            raise OutputFailed(
                self.path, "this folder is gone. Is its disk still connected? Connect it and start again."
            )
        with output(self.path):
            write_table(self.path / _day_file(self.days), table, overwrite=True, private=True)
            self._write_head(self.path, [*self._days, entry])
        self._days.append(entry)


def _day_file(number: int) -> str:
    return f"day-{number:04d}.parquet"


def _read_confidence(path: Path, day: Trajectories) -> NDArray[np.float32] | None:
    """Read how sure the attack was of each point of a day that `read_trajectories` accepted; None if it is not there."""
    table = read_table(path, within=path.parent)
    if "confidence" not in table.columns:
        return None
    sure = numbers(table["confidence"], path)
    if not (sure.min() >= 0 and sure.max() <= 1):
        raise InvalidFile(path, f"a confidence is from 0 to 1; here they are from {sure.min()} to {sure.max()}.")
    confidence = np.empty(day.cells.shape, np.float32)
    confidence[positions(table["person"], path)[0], step_numbers(table["datetime"], path, day.calendar)] = sure
    return confidence


def _check_costs(entry: Any, steps: int, day: str, path: Path) -> None:
    if not isinstance(entry, dict) or entry.keys() != {"step_costs", "link_cost", "gap"}:
        raise InvalidFile(path, f"{day} must have step_costs, link_cost and gap; it is {entry!r:.80}.")
    costs = entry["step_costs"]
    if not isinstance(costs, list) or len(costs) != steps:
        raise InvalidFile(path, f"the step_costs of {day} must be {steps} numbers; they are {costs!r:.80}.")
    if not all(isinstance(cost, (int, float, type(None))) for cost in (*costs, entry["link_cost"], entry["gap"])):
        raise InvalidFile(path, f"the costs of {day} must be numbers; they are {entry!r:.80}.")


def read_recovery(path: str | Path) -> StoredRecovery:
    """Read a recovery folder: all whole days that are there, also while an attack is still writing."""
    folder = Path(path)
    if not folder.is_dir():
        problem = "this is a file, not a recovery folder." if folder.exists() else "this folder does not exist."
        raise InvalidFile(folder, problem)
    head_path = folder / "recovery.json"
    head = read_json(head_path, within=folder)
    if head.get("format") != FORMAT:
        raise InvalidFile(head_path, f"its format is {head.get('format')!r}, not {FORMAT!r}.")
    calendar = calendar_from_json(head.get("calendar"), head_path)
    days, people = head.get("days"), head.get("people")
    if not isinstance(days, list) or type(people) is not int or not 0 < people < 2**31:
        raise InvalidFile(head_path, "'days' must be a list and 'people' a whole number of at least 1.")
    if not isinstance(head.get("attack"), str) or not isinstance(head.get("settings"), dict):
        raise InvalidFile(head_path, "'attack' must be a name and 'settings' an object.")
    if people > _MOST_PEOPLE:
        raise InvalidFile(head_path, f"'people' is {people}; more than {_MOST_PEOPLE} are not read.")
    if len(days) > calendar.number_of_days:
        raise InvalidFile(head_path, f"it lists {len(days)} days, but its calendar has {calendar.number_of_days}.")
    locations = read_locations(folder / "locations.parquet", within=folder)
    cells: list[NDArray[np.integer]] = [np.empty((people, 0), np.int32)]
    sure: list[NDArray[np.float32]] = []
    for number, entry in enumerate(days):
        day, file = calendar.day(number), folder / _day_file(number)
        part = read_trajectories(file, locations, calendar.part(day), within=folder)
        if part.people != people or part.people_ids != tuple(map(str, range(people))):
            raise InvalidFile(file, f"it must list the people 0 to {people - 1} in order.")
        cells.append(part.cells)
        confidence = _read_confidence(file, part)
        if confidence is not None:
            sure.append(confidence)
        _check_costs(entry, day.stop - day.start, f"day {number}", head_path)
    found = np.concatenate(cells, axis=1)
    trajectories = Trajectories(found, locations, calendar.closed_at(found.shape[1]))
    return StoredRecovery(
        trajectories,
        head["attack"],
        head["settings"],
        calendar,
        days,
        np.concatenate(sure, axis=1) if sure and len(sure) == len(days) else None,
    )
