"""The finished tasks of an audit, by their keys, and the folder that they are in."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rekindle
from rekindle.auditing.tasks import Result, Task, identity
from rekindle.io.safety.files import new_file, read_json, remove_leftovers, write_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder, read_mark
from rekindle.io.safety.untrusted import read_arrays

AUDIT = "audit"
"""What the mark of the output folder of an audit says."""

TASKS = "tasks"
"""The name of the folder of finished tasks, and what its mark says."""

CHOICE = "choice.json"
"""What an audit with a time budget chose to do, so that it goes on with the same."""

_SENSITIVE = {"?" * 40 + ".npz": Sensitive("finished task of an audit")}


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
        self._identities: dict[int, tuple[Any, Any]] = {}

    def key(self, task: Task) -> str:
        """The name of a result: a digest of the task and of the code that computes it."""
        for value in task.arguments:
            if id(value) not in self._identities:
                self._identities[id(value)] = value, identity(value)  # the value too, or its id might be another's
        parts = [code_digest(), task.call.__name__, [self._identities[id(value)][1] for value in task.arguments]]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()[:40]

    def get(self, key: str) -> Result | None:
        """Give the result of a task that was finished before; None where there is none, or the file is not its own."""
        if self.folder is None:
            return None
        try:
            arrays = read_arrays(self.folder / f"{key}.npz")
            if arrays.pop("key").tobytes().decode() != key:
                return None
            return Result(json.loads(arrays.pop("numbers").tobytes()), arrays)
        except (ValueError, KeyError, RecursionError):
            return None

    def put(self, key: str, result: Result) -> None:
        """Keep the result of a task."""
        if self.folder is None:
            return
        _begin(self.folder)
        texts = {"key": key, "numbers": json.dumps(result.numbers)}
        more = {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
        with (
            new_file(self.folder / f"{key}.npz", overwrite=True, private=True) as temporary,
            open(temporary, "wb") as file,
        ):
            np.savez_compressed(file, allow_pickle=False, **more, **result.arrays)

    def choice(self, key: Any) -> int | None:
        """Give what was chosen for the data and the request that plain values name; None where nothing was."""
        if self.folder is None or not (self.folder / CHOICE).exists():
            return None
        stored = read_json(self.folder / CHOICE)
        chosen = stored.get("choice") if stored.get("key") == key else None
        return chosen if isinstance(chosen, int) else None

    def remember(self, key: Any, chosen: int) -> None:
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


@cache
def code_digest() -> str:
    """The version, and a digest of the code and of the parts whose numbers may differ."""
    value = hashlib.sha256()
    folder = Path(inspect.getfile(rekindle)).parent
    rooms = (
        "model",
        "assignment",
        "attacks",
        "defences",
        "repairing",
        "evaluation",
        "membership",
        "auditing/tasks.py",
    )
    for room in rooms:
        for file in sorted((folder / room).rglob("*.py")) or [folder / room]:
            value.update(file.read_bytes())
    parts = {name: importlib.metadata.version(name) for name in ("numpy", "scipy")}
    return f"{rekindle.__version__} {value.hexdigest()} {parts}"
