"""Output folders: written whole or not at all, and marked, so that only what Rekindle wrote is ever replaced or removed."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, get_args

import rekindle
from rekindle.errors import InvalidFile, OutputExists
from rekindle.io.safety.files import REPLACED, beside, flush, output, read_json, under_way, write_json

MARK = "rekindle.json"

Why = Literal["derived", "truth", "recovery"]
"""Why a file is sensitive: it was derived from the truth, it is the truth, or it holds recovered trajectories."""

_NAME = re.compile(r"([\w-]+/)?(?=.*\w)[\w*?][\w.*?-]*")
"""A name in the folder or in a folder of it; * and ? stand for other characters, but not for all."""


@dataclass(frozen=True)
class Sensitive:
    """A kind of file that `rekindle clean` removes.

    Attributes
    ----------
    what
        What it is, in a few words.
    why
        Why it is sensitive.
    """

    what: str
    why: Why = "derived"


@dataclass(frozen=True)
class Mark:
    """What made a folder, and what in it is sensitive, by name."""

    kind: str
    sensitive: Mapping[str, Sensitive]

    def sensitive_files(self, folder: Path) -> list[tuple[Path, Sensitive]]:
        """The sensitive files that are there: regular ones, not through links."""
        found = []
        for pattern, one in self.sensitive.items():
            *inner, name = pattern.split("/")
            where = folder.joinpath(*inner)
            if where.is_symlink() or not where.is_dir():
                continue
            files = (path for path in sorted(where.iterdir()) if fnmatchcase(path.name, name))
            found += [(path, one) for path in files if path.is_file() and not path.is_symlink()]
        return found


def mark_folder(folder: Path, kind: str, sensitive: Mapping[str, Sensitive] | None = None) -> None:
    """Say what made a folder, and what in it is sensitive; what the mark said before is kept."""
    before = read_mark(folder)
    names = dict(before.sensitive if before else {}) | dict(sensitive or {})
    if before is not None and (before.kind, before.sensitive) == (kind, names):
        return
    listed = {name: {"what": one.what, "why": one.why} for name, one in names.items()}
    write_json(folder / MARK, {"rekindle": rekindle.__version__, "kind": kind, "sensitive": listed})


def read_mark(folder: Path) -> Mark | None:
    """Read the mark of a folder; None where there is none, or none of ours."""
    path = folder / MARK
    if path.is_symlink() or not path.is_file():
        return None
    try:
        found = read_json(path, within=folder)
        sensitive = {name: Sensitive(one["what"], one["why"]) for name, one in found["sensitive"].items()}
        kind = found["kind"]
    except (InvalidFile, KeyError, TypeError, AttributeError):
        return None
    valid = all(
        _NAME.fullmatch(name) and isinstance(one.what, str) and one.why in get_args(Why)
        for name, one in sensitive.items()
    )
    return Mark(kind, sensitive) if valid and isinstance(kind, str) else None


def check_new_folder(path: str | Path, kind: str, *, overwrite: bool = False) -> None:
    """Refuse a file, and a folder with anything in it that may not be overwritten or is not this kind of output."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise OutputExists(f"{folder} is a file, not a folder; it was left as it is.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    found = read_mark(folder)
    if found is None:
        raise InvalidFile(
            folder,
            f"this folder has no {MARK} by which Rekindle would know it: it was written by Rekindle 0.1 or by something "
            "else. It was left as it is; choose another folder, or move this one away.",
        )
    if found.kind != kind:
        raise InvalidFile(
            folder,
            f"this folder holds the output {found.kind!r}, not {kind!r}; it was left as it is. Choose another.",
        )
    if not overwrite:
        raise OutputExists(
            f"{folder} exists already; it was left as it is. Choose another name, or set `overwrite=True`."
        )


@contextmanager
def new_folder(path: str | Path, kind: str, *, overwrite: bool = False, private: bool = False) -> Iterator[Path]:
    """Give a temporary folder to fill; it takes its real name when the block ends well, and goes away otherwise.

    The name is locked for other processes meanwhile; see `output`.

    Parameters
    ----------
    path
        The folder. Where it is a link to a folder, that folder is meant.
    kind
        What kind of output it is; the folder is marked with it.
    overwrite
        Replace an output of the same kind that is there.
    private
        Let nobody but the owner look into it, also in the end. A folder that is replaced hands on its permissions.
    """
    target = Path(os.path.realpath(path))
    with output(path, parents=True):
        check_new_folder(path, kind, overwrite=overwrite)
        with under_way(target, folder=True, private=private) as (temporary, mode):
            yield temporary
            mark_folder(temporary, kind)
            for entry in temporary.rglob("*"):
                if not entry.is_symlink():
                    flush(entry)
            flush(temporary)
            if target.exists() and any(target.iterdir()):
                _exchange(temporary, target)
            else:
                os.replace(temporary, target)
            os.chmod(target, mode)
            flush(target.parent)


def _exchange(new: Path, old: Path) -> None:
    """Give a new folder the name of an old one, which takes the new one's name: in one step where the system can."""
    if _swap(new, old):
        return
    aside = beside(old, REPLACED)
    os.replace(old, aside)
    try:
        os.replace(new, old)
    except BaseException:
        os.replace(aside, old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _swap(one: Path, other: Path) -> bool:
    """Let two names change places in one step; False where the system or the file system cannot.

    Neither Python nor a library of its own offers this call; without it a killed process can leave the old folder under
    its hidden name until the next start.
    """
    here, swap, names = -100, 2, (os.fsencode(one), os.fsencode(other))  # AT_FDCWD, RENAME_EXCHANGE
    try:
        if sys.platform == "linux":
            return bool(ctypes.CDLL(None).renameat2(here, names[0], here, names[1], swap) == 0)
        if sys.platform == "darwin":
            return bool(ctypes.CDLL(None).renamex_np(*names, swap) == 0)
    except (OSError, AttributeError):
        pass
    return False
