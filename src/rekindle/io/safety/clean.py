"""What was derived from the truth, or was left by a process that was killed, in folders that Rekindle wrote."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rekindle.errors import InvalidFile, RekindleError
from rekindle.io.safety.files import leftovers, output, read_json, settle, write_json
from rekindle.io.safety.lock import in_use, is_lock_file

__all__ = ["Trace", "find_traces", "remove_trace"]

_TASKS_MARKER = "rekindle-tasks.json"
_TASK = re.compile(r"[0-9a-f]{40}\.npz")


@dataclass(frozen=True)
class Trace:
    """Something to remove.

    Attributes
    ----------
    path
        A file or a folder; for names of people, the description that they are taken out of.
    what
        What it is, in a few words.
    names_only
        Only the names of people within the file.
    """

    path: Path
    what: str
    names_only: bool = False


def find_traces(folder: str | Path, *, truth: bool = False, recoveries: bool = False) -> list[Trace]:
    """Find what was derived from the truth, in a folder and the folders below it. Nothing is changed.

    Only what lies beside one of Rekindle's own descriptions (`dataset.json`, `recovery.json`, `audit.json`, `reproduction.json`), or has a name
    that only Rekindle gives, is ours. Links are neither followed nor listed.

    Parameters
    ----------
    folder
        Where to look.
    truth
        The truth of datasets, too.
    recoveries
        The rebuilt paths, too.
    """
    top = Path(folder)
    if not top.is_dir():
        raise InvalidFile(top, "this folder does not exist." if not top.exists() else "this is a file, not a folder.")
    found: list[Trace] = []
    for name, folders, _ in os.walk(top):
        here = Path(name)
        left = leftovers(here)
        found += (Trace(path, "left by a process that was killed") for path in left if not path.is_symlink())
        found += (
            Trace(path, "lock of a process that is gone")
            for path in sorted(here.iterdir())
            if is_lock_file(path) and not path.is_symlink() and not in_use(path)
        )
        for kind in (_of_recovery, _of_audit, _of_dataset, _of_reproduction):
            found += kind(here, truth, recoveries)
        gone = {trace.path for trace in found}
        folders[:] = sorted(one for one in folders if here / one not in gone)
    return found


def remove_trace(trace: Trace) -> None:
    """Remove what was found. A folder goes only when it is empty; one that is being written is refused."""
    with output(trace.path.parent):
        if trace.names_only:
            described = read_json(trace.path)
            described["filled"].pop("per_person")
            write_json(trace.path, described)
        elif trace.path.is_dir() and trace.path.name == "tasks":
            trace.path.rmdir()
        elif trace.path.is_dir():
            settle(trace.path)
        else:
            trace.path.unlink(missing_ok=True)


def _description(path: Path, ours: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
    """One of our descriptions, or None where there is none, or someone else's."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        found = read_json(path)
    except RekindleError:
        return None
    return found if ours(found) else None


def _files(folder: Path, *names: tuple[str, str]) -> Iterator[Trace]:
    for name, what in names:
        if (folder / name).is_file() and not (folder / name).is_symlink():
            yield Trace(folder / name, what)


def _of_recovery(folder: Path, truth: bool, recoveries: bool) -> Iterator[Trace]:
    if _description(folder / "recovery.json", lambda one: str(one.get("format")).startswith("rekindle recovery")):
        if _description(folder / "evaluation.json", lambda one: {"attack", "result", "per_person"} <= one.keys()):
            yield Trace(folder / "evaluation.json", "how a recovery compares with the truth")
        yield from _files(folder, ("checkpoint.npz", "checkpoint of an attack"))
        if recoveries:
            days = sorted(path.name for path in folder.glob("day-[0-9][0-9][0-9][0-9].parquet"))
            yield from _files(folder, *((name, "rebuilt paths of a day") for name in days))
            yield from _files(folder, ("locations.parquet", "their places"), ("recovery.json", "their description"))


def _of_audit(folder: Path, truth: bool, recoveries: bool) -> Iterator[Trace]:
    audit = _description(folder / "audit.json", lambda one: {"rekindle", "verdict", "releases"} <= one.keys())
    tasks = folder / "tasks"
    if (tasks / _TASKS_MARKER).is_file() and not tasks.is_symlink():
        inside = sorted(tasks.iterdir())
        ours = [path for path in inside if _is_task(path)]
        yield from (Trace(path, "finished task of an audit") for path in ours)
        # Leftovers in it are found when the walk comes there; the folder goes after them.
        if ours and len(ours) == len(inside):
            yield Trace(tasks, "folder of the tasks")
    if audit and audit.get("settings", {}).get("truth"):
        yield from _files(
            folder,
            ("report.html", "report of an audit with the truth"),
            ("recovered.png", "picture of a true path"),
            ("audit.json", "how exposed each person is"),
        )


def _is_task(path: Path) -> bool:
    if path.name == _TASKS_MARKER and not path.is_symlink():
        return True
    if path.is_symlink() or not path.is_file() or not _TASK.fullmatch(path.name):
        return False
    try:
        with zipfile.ZipFile(path) as file:
            return "numbers.npy" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _of_dataset(folder: Path, truth: bool, recoveries: bool) -> Iterator[Trace]:
    described = _description(folder / "dataset.json", lambda one: {"people", "calendar"} <= one.keys())
    if truth and described:
        yield from _files(folder, ("truth.parquet", "the truth"), ("grid.png", "picture of the raw points"))
        filled = described.get("filled")
        if isinstance(filled, dict) and "per_person" in filled:
            yield Trace(folder / "dataset.json", "names of people, in the description", names_only=True)


def _of_reproduction(folder: Path, truth: bool, recoveries: bool) -> Iterator[Trace]:
    if _description(folder / "reproduction.json", lambda one: {"effort", "skipped", "datasets"} <= one.keys()):
        yield from _files(folder, ("index.html", "page with true paths"), ("index.md", "page with true paths"))
        figures = folder / "figures"
        if figures.is_dir() and not figures.is_symlink():
            names = sorted(path.name for path in figures.glob("paths-*.*") if path.suffix in {".svg", ".png", ".csv"})
            yield from _files(figures, *((name, "true paths of a day") for name in names))
