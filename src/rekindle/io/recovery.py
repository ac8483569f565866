"""The recovery folder: one file a day, each written whole, so that another process can read along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, OutputExists, OutputFailed
from rekindle.io.dataset import calendar_from_json
from rekindle.io.safety.files import output, read_json, remove_leftovers, write_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder, new_folder
from rekindle.io.tables.columns import numbers, positions, step_numbers
from rekindle.io.tables.locations import read_locations, write_locations
from rekindle.io.tables.table import read_pieces, write_table
from rekindle.io.tables.trajectories import read_trajectories, trajectories_table
from rekindle.model import Calendar, Locations, Trajectories

FORMAT = "rekindle recovery 2"
OLD_FORMATS = ("rekindle recovery 1",)
RECOVERY = "recovery"
"""What the mark of a recovery folder says."""
CHECKPOINT = "checkpoint.npz"
"""Where an attack that revises earlier days saves its run."""
EVALUATION = "evaluation.json"
"""Where the comparison of a recovery with the truth is kept."""
_SENSITIVE = {
    EVALUATION: Sensitive("how a recovery compares with the truth"),
    CHECKPOINT: Sensitive("checkpoint of an attack"),
    "day-*.parquet": Sensitive("recovered trajectories of a day", "recovery"),
    "locations.parquet": Sensitive("their locations", "recovery"),
    "recovery.json": Sensitive("their description", "recovery"),
}
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
    confidence
        (people, steps) float32: how sure the attack was of each point, from 0 to 1; None where it did not say.
    details
        What the attack alone has to say, by name: float64, one number for each step or each day.
    named
        Whether the attack knew people's past and says who is who; then it is to be scored by their names.
    known_people
        Names of the people whom the attacker knew, to be left out of the score.
    """

    trajectories: Trajectories
    attack: str
    settings: dict[str, Any]
    calendar: Calendar
    confidence: NDArray[np.float32] | None
    details: dict[str, NDArray[np.float64]]
    named: bool = False
    known_people: tuple[str, ...] = ()

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
    names, named, known_people
        What the recovered people are called, where anyone has a name; whether these say who is who; and whom the attacker
        knew.
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
        names: Sequence[str] | None = None,
        named: bool = False,
        known_people: Sequence[str] = (),
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
        if names is not None:
            self._head |= {"names": list(names), "named": named, "known_people": list(known_people)}
        self._days: list[dict[str, Any]] = []
        self.stored: StoredRecovery | None = None
        check_new_folder(self.path, RECOVERY, overwrite=True)
        if self.path.is_dir() and any(self.path.iterdir()):
            if not resume:
                raise OutputExists(
                    f"{self.path} exists already; it was left as it is. Choose another folder, or set `resume=True`."
                )
            remove_leftovers(self.path)
            self.stored = read_recovery(self.path)
            self._check_same(locations)
            self._days = read_json(self.path / "recovery.json")["days"]
        else:
            with new_folder(self.path, RECOVERY, private=True) as folder:
                write_locations(folder / "locations.parquet", locations)
                self._write_head(folder, [])
                mark_folder(folder, RECOVERY, _SENSITIVE)

    def _check_same(self, locations: Locations) -> None:
        there = read_json(self.path / "recovery.json")
        for name, value in self._head.items():
            if there.get(name) != value:
                raise InvalidData(
                    f"{self.path} cannot be resumed: {name!r} was {there.get(name)!r:.200}, and is {value!r:.200} now."
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
        details: Mapping[str, NDArray[np.floating]] | None = None,
        confidence: NDArray[np.float32] | None = None,
    ) -> None:
        """Write one more day: first its file, then the list that says it is there.

        Parameters
        ----------
        day
            The trajectories of the day.
        details
            What the attack alone has to say, by name: one number, or one for each step of the day.
        confidence
            (people, steps) float32: how sure the attack is of each point.
        """
        table = trajectories_table(day, away=True, confidence=confidence)
        entry = {
            name: [None if np.isnan(number) else float(number) for number in array]
            for name, array in (details or {}).items()
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
    confidence = np.empty(day.cells.shape, np.float32)
    number = {name: at for at, name in enumerate(day.people_ids)}
    for table in read_pieces(path, within=path.parent):
        if "confidence" not in table.columns:
            return None
        sure = numbers(table["confidence"], path)
        if not (sure.min() >= 0 and sure.max() <= 1):
            raise InvalidFile(path, f"a confidence is from 0 to 1; here they are from {sure.min()} to {sure.max()}.")
        person, names = positions(table["person"], path)
        people = np.array([number[name] for name in names], np.int64)
        confidence[people[person], step_numbers(table["datetime"], path, day.calendar)] = sure
    return confidence


def _read_details(days: list[Any], calendar: Calendar, path: Path) -> dict[str, NDArray[np.float64]]:
    """Join the details of the days: each has the same names, and for each one number, or one for each step."""
    names = days[0].keys() if days and isinstance(days[0], dict) else ()
    for number, entry in enumerate(days):
        day = calendar.day(number)
        if not isinstance(entry, dict) or entry.keys() != set(names):
            raise InvalidFile(path, f"day {number} must have {', '.join(names) or 'details'}; it is {entry!r:.80}.")
        for name, values in entry.items():
            if not isinstance(values, list) or len(values) not in (1, day.stop - day.start):
                raise InvalidFile(
                    path, f"{name} of day {number} must be 1 or {day.stop - day.start} numbers; it is {values!r:.80}."
                )
            if not all(isinstance(one, (int, float, type(None))) and not isinstance(one, bool) for one in values):
                raise InvalidFile(path, f"{name} of day {number} must be numbers; it is {values!r:.80}.")
    try:
        return {
            name: np.array([np.nan if one is None else float(one) for day in days for one in day[name]], np.float64)
            for name in names
        }
    except OverflowError:
        raise InvalidFile(path, "a number of the details is too large.") from None


def _read_names(head: dict[str, Any], people: int, path: Path) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """What the recovered people are called, whom the attacker knew, and whether the names say who is who."""
    names, known, named = head.get("names"), head.get("known_people", []), head.get("named", False)
    if names is None:
        return tuple(map(str, range(people))), (), False
    for each in (names, known):
        if not isinstance(each, list) or not all(isinstance(name, str) for name in each):
            raise InvalidFile(path, "'names' and 'known_people' must be lists of names.")
    if len(names) != people or len(set(names)) != people or not set(known) <= set(names) or type(named) is not bool:
        raise InvalidFile(
            path,
            f"'names' must be {people} different names, with those of 'known_people', and 'named' true or false.",
        )
    return tuple(names), tuple(known), named


def read_recovery(path: str | Path) -> StoredRecovery:
    """Read a recovery folder: all whole days that are there, also while an attack is still writing."""
    folder = Path(path)
    if not folder.is_dir():
        problem = "this is a file, not a recovery folder." if folder.exists() else "this folder does not exist."
        raise InvalidFile(folder, problem)
    head_path = folder / "recovery.json"
    head = read_json(head_path, within=folder)
    if head.get("format") in OLD_FORMATS:
        raise InvalidFile(
            folder,
            "this recovery is of Rekindle 0.1 and was left as it is. Run the attack again, into another folder.",
        )
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
    details = _read_details(days, calendar, head_path)
    names, known_people, named = _read_names(head, people, head_path)
    for number in range(len(days)):
        day, file = calendar.day(number), folder / _day_file(number)
        part = read_trajectories(file, locations, calendar.part(day), people_ids=names, within=folder)
        cells.append(part.cells)
        confidence = _read_confidence(file, part)
        if confidence is not None:
            sure.append(confidence)
    found = np.concatenate(cells, axis=1)
    trajectories = Trajectories(found, locations, calendar.closed_at(found.shape[1]), names)
    return StoredRecovery(
        trajectories,
        head["attack"],
        head["settings"],
        calendar,
        np.concatenate(sure, axis=1) if sure and len(sure) == len(days) else None,
        details,
        named,
        known_people,
    )
