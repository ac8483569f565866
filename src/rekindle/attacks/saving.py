"""Saving a run to a file and going on from it: a zip of plain arrays, nothing that is executed when read."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidFile, OutputExists
from rekindle.io.safety.files import new_file
from rekindle.io.safety.untrusted import check_file, read_arrays
from rekindle.model import Calendar, Locations

FORMAT = "rekindle run 1"


@dataclass(frozen=True, eq=False)
class SavedRun:
    """What a saved run holds: which attack it was, where it stood, and its arrays."""

    attack: str
    settings: dict[str, Any]
    locations: Locations
    calendar: Calendar
    people: int
    arrays: dict[str, NDArray[Any]]

    @property
    def has_flows(self) -> bool:
        """Whether the days were fed with flows."""
        return bool(np.any(self.arrays.get("flows", False)))


def write_run(path: str | Path, run: SavedRun) -> None:
    """Write a run to a file, whole or not at all; an older saved run of that name is replaced."""
    path = Path(path)
    if path.exists() and not zipfile.is_zipfile(path):
        raise OutputExists(f"{path} exists already and is not a saved run; it was left as it is.")
    head = {
        "format": FORMAT,
        "attack": run.attack,
        "settings": run.settings,
        "calendar": run.calendar.to_json(),
        "people": run.people,
    }
    arrays: dict[str, NDArray[Any]] = {
        "head": np.array(json.dumps(head)),
        "ids": np.array(json.dumps(run.locations.ids)),  # as text: an array of names drops a NUL at their end
        "xy_km": run.locations.xy_km,
    }
    if run.locations.lat_lng is not None:
        arrays["lat_lng"] = run.locations.lat_lng
    with new_file(path, overwrite=True, private=True) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays, **run.arrays)


def read_run(path: str | Path) -> SavedRun:
    """Read a saved run."""
    path = Path(path)
    check_file(path, "saved run")
    try:
        arrays = read_arrays(path)
        head = json.loads(str(arrays.pop("head")))
        if head["format"] != FORMAT:
            raise InvalidFile(path, f"its format is {head['format']!r}, not {FORMAT!r}.")
        listed = arrays.pop("ids")
        ids = listed.tolist() if listed.ndim else json.loads(str(listed))
        "".join(ids).encode()  # half characters could be neither shown nor written
        locations = Locations(arrays.pop("xy_km"), ids, arrays.pop("lat_lng", None))
        calendar = Calendar(**head["calendar"])
        attack, settings, people = head["attack"], head["settings"], head["people"]
        if not isinstance(attack, str) or not isinstance(settings, dict) or type(people) is not int or people < 1:
            raise InvalidFile(path, "'attack' must be a name, 'settings' an object and 'people' at least 1.")
        return SavedRun(attack, settings, locations, calendar, people, arrays)
    except InvalidFile as error:
        raise InvalidFile(path, f"it is not a saved run, or a damaged one: {error.problem}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidFile(
            path, f"it is not a saved run, or a damaged one ({type(error).__name__}: {error})."
        ) from None
