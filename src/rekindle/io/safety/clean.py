"""What was derived from the truth, or was left by a process that was killed, in folders that Rekindle wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rekindle.errors import InvalidFile
from rekindle.io.safety.files import leftovers, output, settle
from rekindle.io.safety.folders import MARK, read_mark
from rekindle.io.safety.lock import in_use, is_lock_file

_OF_VERSION_0_1 = ("dataset.json", "recovery.json", "audit.json", "reproduction.json")


@dataclass(frozen=True)
class Trace:
    """Something to remove.

    Attributes
    ----------
    path
        A file, or a folder that was left unfinished.
    what
        What it is, in a few words.
    """

    path: Path
    what: str


def find_traces(folder: str | Path, *, truth: bool = False, recoveries: bool = False) -> list[Trace]:
    """Find what was derived from the truth, in a folder and the folders below it. Nothing is changed.

    Only what the mark of an output folder lists, or has a name that only Rekindle gives, is ours. Links are neither
    followed nor listed.

    Parameters
    ----------
    folder
        Where to look.
    truth
        Also the truth of datasets.
    recoveries
        Also recovered trajectories.
    """
    wanted = {"derived"} | ({"truth"} if truth else set()) | ({"recovery"} if recoveries else set())
    found: list[Trace] = []
    for here, folders in _walk(folder):
        found += (
            Trace(path, "left by a process that was killed") for path in leftovers(here) if not path.is_symlink()
        )
        found += (
            Trace(path, "lock of a process that is gone")
            for path in sorted(here.iterdir())
            if is_lock_file(path) and not path.is_symlink() and not in_use(path)
        )
        if mark := read_mark(here):
            found += (Trace(path, one.what) for path, one in mark.sensitive_files(here) if one.why in wanted)
        gone = {trace.path for trace in found}
        folders[:] = sorted(one for one in folders if here / one not in gone)
    return found


def find_unmarked(folder: str | Path) -> list[Path]:
    """Find folders that look like outputs of Rekindle 0.1, which nothing says what is sensitive in; they are left alone."""
    return [
        here
        for here, _ in _walk(folder)
        if read_mark(here) is None and any((here / name).is_file() for name in _OF_VERSION_0_1)
    ]


def remove_trace(trace: Trace) -> None:
    """Remove what was found, and a folder of which only the mark is left; one that is being written is refused."""
    folder = trace.path.parent
    with output(folder):
        if trace.path.is_dir():
            settle(trace.path)
        else:
            trace.path.unlink(missing_ok=True)
        if read_mark(folder) and [path.name for path in folder.iterdir()] == [MARK]:
            (folder / MARK).unlink()
            with suppress(OSError):
                folder.rmdir()


def _walk(folder: str | Path) -> Iterator[tuple[Path, list[str]]]:
    top = Path(folder)
    if not top.is_dir():
        raise InvalidFile(top, "this folder does not exist." if not top.exists() else "this is a file, not a folder.")
    return ((Path(name), folders) for name, folders, _ in os.walk(top))
