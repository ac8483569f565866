"""The tasks of an audit as values: what tells one from another, and the folder of those that are finished."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rekindle
from rekindle.auditing.tasks import Result
from rekindle.io.safety.files import new_file, read_json, remove_leftovers, write_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder, read_mark
from rekindle.io.safety.untrusted import read_arrays
from rekindle.model import Counts, Release, Trajectories

__all__ = ["AUDIT", "TASKS", "Store", "Task", "begin_output", "digest", "remove_tasks"]

AUDIT = "audit"
"""What the mark of the output folder of an audit says."""

TASKS = "tasks"
"""The name of the folder of finished tasks, and what its mark says."""

CHOICE = "choice.json"
"""What an audit with a time budget chose to do, so that it goes on with the same."""

_SENSITIVE = {"?" * 40 + ".npz": Sensitive("finished task of an audit")}


@dataclass(frozen=True)
class Task:
    """A function of this package and its arguments, and what tells it from all others.

    Attributes
    ----------
    identity
        Plain values that name the input, the settings and the seed; equal identities have equal results.
    call, arguments
        What to do.
    work
        About how long it takes, in seconds of an ordinary core.
    reports
        Whether the call takes one argument more: a function that it tells the share that is done.
    """

    identity: tuple[Any, ...]
    call: Callable[..., Result]
    arguments: tuple[Any, ...]
    work: float = 1.0
    reports: bool = False

    @cached_property
    def key(self) -> str:
        """A name for the result: a digest of the identity and of the code that computes it."""
        text = json.dumps([code_digest(), self.call.__name__, self.identity], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:40]


class Store:
    """Finished tasks, one npz file each, written whole or not at all. Without a folder nothing is kept.

    Parameters
    ----------
    folder
        Where they are, or None. It is made when the first task is kept. A folder with anything else in it is refused.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            check_new_folder(self.folder, TASKS, overwrite=True)

    def get(self, task: Task) -> Result | None:
        """Give the result of a task that was finished before; None where there is none, or the file is not its own."""
        if self.folder is None:
            return None
        try:
            arrays = read_arrays(self.folder / f"{task.key}.npz")
            if arrays.pop("key").tobytes().decode() != task.key:
                return None
            return Result(json.loads(arrays.pop("numbers").tobytes()), arrays)
        except (ValueError, KeyError, RecursionError):
            return None

    def put(self, task: Task, result: Result) -> None:
        """Keep the result of a task."""
        if self.folder is None:
            return
        _begin(self.folder)
        numbers = np.frombuffer(json.dumps(result.numbers).encode(), np.uint8)
        key = np.frombuffer(task.key.encode(), np.uint8)
        with (
            new_file(self.folder / f"{task.key}.npz", overwrite=True, private=True) as temporary,
            open(temporary, "wb") as file,
        ):
            np.savez_compressed(file, allow_pickle=False, key=key, numbers=numbers, **result.arrays)

    def choice(self, key: Any) -> dict[str, Any] | None:
        """Give what was chosen for the data and the request that plain values name; None where nothing was."""
        if self.folder is None or not (self.folder / CHOICE).exists():
            return None
        stored = read_json(self.folder / CHOICE)
        chosen = stored.get("choice") if stored.get("key") == key else None
        return chosen if isinstance(chosen, dict) else None

    def remember(self, key: Any, chosen: dict[str, Any]) -> None:
        """Keep what was chosen."""
        if self.folder is not None:
            _begin(self.folder)
            write_json(self.folder / CHOICE, {"key": key, "choice": chosen}, private=True)


def begin_output(out: str | Path, *, resume: bool = True) -> Path:
    """Make the output folder of an audit, for its owner alone, and give the folder of its tasks.

    Parameters
    ----------
    out
        A new or empty folder, or that of an earlier audit. Any other is refused and left as it is.
    resume
        Whether the tasks that an earlier audit finished are kept.
    """
    check_new_folder(out, AUDIT, overwrite=True)
    out, folder = Path(out), Path(out) / TASKS
    check_new_folder(folder, TASKS, overwrite=True)
    out.mkdir(mode=0o700, exist_ok=True)
    mark_folder(out, AUDIT)
    _begin(folder)
    remove_leftovers(folder)
    if not resume:
        remove_tasks(folder)
        (folder / CHOICE).unlink(missing_ok=True)
    return folder


def remove_tasks(folder: str | Path) -> int:
    """Remove the finished tasks of an audit, and give how many there were.

    Only regular files with the names of tasks go, in a folder that an audit made; links are left as they are.
    """
    folder = Path(folder)
    mark = None if folder.is_symlink() else read_mark(folder)
    if mark is None or mark.kind != TASKS:
        return 0
    tasks = mark.sensitive_files(folder)
    for path, _ in tasks:
        path.unlink()
    return len(tasks)


def _begin(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark_folder(folder, TASKS, _SENSITIVE)


def digest(data: Counts | Release | Trajectories | None) -> str | None:
    """A digest of data, for the identity of tasks."""
    if data is None:
        return None
    value = hashlib.sha256(type(data).__name__.encode())
    array: NDArray[Any] = data.cells if isinstance(data, Trajectories) else data.values
    for part in (array, data.locations.xy_km):
        value.update(f"{part.dtype.str}{part.shape}".encode())
        value.update(np.ascontiguousarray(part).data)
    names: Any = data.people_ids if isinstance(data, Trajectories) else ()
    if isinstance(data, Release):
        names = [one.to_json() for one in data.defences]
    elif isinstance(data, Counts):
        names = data.people
    elif data.observed is not None:
        value.update(np.packbits(data.observed).data)
    value.update(json.dumps([data.locations.ids, names, data.calendar.to_json()]).encode())
    return value.hexdigest()


@cache
def code_digest() -> str:
    """The version, and a digest of the code and of the parts whose numbers may differ."""
    value = hashlib.sha256()
    folder = Path(inspect.getfile(rekindle)).parent
    for room in (
        "model",
        "assignment",
        "attacks",
        "defences",
        "repairing",
        "evaluation",
        "membership",
        "auditing/tasks.py",
    ):
        for file in sorted((folder / room).rglob("*.py")) or [folder / room]:
            value.update(file.read_bytes())
    parts = {name: importlib.metadata.version(name) for name in ("numpy", "scipy")}
    return f"{rekindle.__version__} {value.hexdigest()} {parts}"
