"""Saving a run to a file and going on from it: a zip of plain arrays, nothing that is executed when read."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, OutputExists
from rekindle.io.files import new_file
from rekindle.model import Calendar, Locations

__all__ = ["SavedRun", "read_run", "write_run"]

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
        "ids": np.array(run.locations.ids),
        "xy_km": run.locations.xy_km,
    }
    if run.locations.lat_lng is not None:
        arrays["lat_lng"] = run.locations.lat_lng
    with new_file(path, overwrite=True) as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays, **run.arrays)


def read_run(path: str | Path) -> SavedRun:
    """Read a saved run."""
    path = Path(path)
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        head = json.loads(str(arrays.pop("head")))
        if head["format"] != FORMAT:
            raise InvalidFile(path, f"its format is {head['format']!r}, not {FORMAT!r}.")
        locations = Locations(arrays.pop("xy_km"), arrays.pop("ids").tolist(), arrays.pop("lat_lng", None))
        calendar = Calendar(**head["calendar"])
        return SavedRun(head["attack"], head["settings"], locations, calendar, head["people"], arrays)
    except FileNotFoundError:
        raise InvalidFile(path, "this file does not exist.") from None
    except InvalidFile:
        raise
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, InvalidData) as error:
        raise InvalidFile(
            path, f"it is not a saved run, or a damaged one ({type(error).__name__}: {error})."
        ) from None
