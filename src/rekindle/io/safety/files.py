"""Files that are written whole or not at all, and are for their owner alone until they are whole."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rekindle.errors import InvalidData, InvalidFile, OutputExists, OutputFailed, RekindleError
from rekindle.io.safety.lock import hold, in_use, locked
from rekindle.io.safety.untrusted import read_content

LEFTOVER = ".unfinished"
"""What the names of temporary files and folders contain."""

REPLACED = ".replaced"
"""What the name of an old folder contains while a new one takes its place, where that takes two steps."""

_HIDDEN = re.compile(r"\.(.+)\.[0-9a-f]+(\.unfinished|\.replaced)(\.[^.]*)?")

_OS_ERROR = re.compile(r"\(os error (\d+)\)")

_LARGEST_JSON = 16 * 2**20
_SURROGATE = b"\\ud"


@contextmanager
def output(path: str | Path, *, parents: bool = False) -> Iterator[None]:
    """Keep a file or folder for the process that writes it, for as long as it works on it.

    What a process that was killed left of it is put in order first: leftovers go away, and an old folder of which only
    the hidden name is there gets its name back.

    Parameters
    ----------
    path
        The file or folder.
    parents
        Make the folders above it.
    """
    with _naming(Path(path)):
        parent = Path(os.path.realpath(path)).parent
        if parents:
            parent.mkdir(parents=True, exist_ok=True)
        elif not parent.is_dir():
            raise InvalidFile(path, "its folder does not exist.")
    with _naming(Path(path)), locked(path):
        _mend(Path(os.path.realpath(path)))
        yield


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = False, private: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to; it takes its real name when the block ends well, and goes away otherwise.

    Parameters
    ----------
    path
        The file.
    overwrite
        Replace a file that is there.
    private
        Let nobody but the owner read it, also in the end. A file that is replaced hands on its permissions.
    """
    path = Path(path)
    if not overwrite and path.exists():
        raise OutputExists(
            f"{path} exists already; it was left as it is. Choose another name, or set `overwrite=True`."
        )
    if not path.parent.is_dir():
        raise InvalidFile(path, "its folder does not exist.")
    with _naming(path), under_way(path, folder=False, private=private) as (temporary, mode):
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
        os.chmod(path, mode)
        flush(path.parent)


@contextmanager
def under_way(path: Path, *, folder: bool, private: bool) -> Iterator[tuple[Path, int]]:
    """Make a temporary file or folder for the owner alone, and hold it: its path, and its permissions in the end."""
    owner = stat.S_IRWXU if folder else stat.S_IRUSR | stat.S_IWUSR
    usual = (0o777 if folder else 0o666) & ~_umask()
    temporary, held = beside(path), None
    try:
        # Made within the block that removes it: an interrupt may come at any moment.
        while True:
            if folder:
                temporary.mkdir(owner)
            else:
                temporary.touch(owner, exist_ok=False)
            held = None if sys.platform == "win32" else os.open(temporary, os.O_RDONLY)
            # Another process may have taken it for a leftover before it was held.
            if held is None or (hold(held) and temporary.exists()):
                break
            os.close(held)
            temporary, held = beside(path), None
        yield temporary, stat.S_IMODE(path.stat().st_mode) if path.exists() else usual & owner if private else usual
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


def _umask() -> int:
    """Permissions that new files do not get. Asking the system changes them for a moment, for all threads: not if avoidable."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def beside(path: Path, kind: str = LEFTOVER) -> Path:
    """A hidden name beside a file or folder."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{kind}{path.suffix}")


_WAYS_OUT = {
    (errno.ENOSPC, errno.EDQUOT): "The disk is full: make room or choose another folder, then start again.",
    (errno.EFBIG,): "The system allows no file so large: raise the limit or choose another folder, then start again.",
    (errno.EROFS, errno.EACCES, errno.EPERM): "Choose another folder, or change who may write there.",
    (errno.EBUSY, errno.EXDEV): "It is the root of a disk: choose a folder in it.",
    (errno.ENOENT, errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE): (
        "Is its disk still connected? Connect it and start again."
    ),
}


def write_failure(path: Path, error: Exception) -> OutputFailed:
    """Say what could not be written, why, and what to do."""
    number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or str(error)
    if number is None and (told := _OS_ERROR.search(str(error))):
        number, reason = int(told[1]), os.strerror(int(told[1]))
    way_out = next((f" {text}" for numbers, text in _WAYS_OUT.items() if number in numbers), "")
    found = OutputFailed(path, f"it cannot be written ({reason}).{way_out}")
    found.errno = number
    return found


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file that was wanted, not the temporary one, where nothing can be written."""
    try:
        yield
    except RekindleError:
        raise
    except Exception as error:
        # Polars raises errors of its own when it cannot write, and tells the number in their text.
        if isinstance(error, OSError) or _OS_ERROR.search(str(error)):
            raise write_failure(path, error) from None
        raise


def _owner_of(name: str) -> tuple[str | None, str]:
    """The name of the file or folder that a hidden name was made for (None: it is no such name), and what it is."""
    kind, found = "", _HIDDEN.fullmatch(name)
    if found is None:
        return None, kind
    while found is not None:
        name, kind = found[1], found[2]
        found = _HIDDEN.fullmatch(name)
    return name, kind


def leftovers(folder: Path) -> list[Path]:
    """Temporary files and folders that a process which was killed left in a folder; none of a living one."""
    return [path for path in sorted(folder.iterdir()) if _owner_of(path.name)[0] is not None and not in_use(path)]


def remove_leftovers(folder: Path) -> None:
    """Remove what a process which was killed left in a folder; an old folder without a successor gets its name back."""
    for path in leftovers(folder):
        settle(path)


def settle(left: Path) -> None:
    """Remove a leftover, or, where it is an old folder without a successor, give it its name back."""
    name, kind = _owner_of(left.name)
    if name is not None and kind == REPLACED and not left.with_name(name).exists():
        os.replace(left, left.with_name(name))
    elif left.is_dir() and not left.is_symlink():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _mend(path: Path) -> None:
    """Put in order what a killed process left of a file or folder, beside it and in it."""
    if path.parent.is_dir():
        for left in leftovers(path.parent):
            if _owner_of(left.name)[0] == path.name:
                settle(left)
    if path.is_dir():
        remove_leftovers(path)


def flush(path: Path) -> None:
    """Make sure that a file, or the names in a folder, are on the disk."""
    if path.is_dir():
        if sys.platform == "win32":
            return
        file = os.open(path, os.O_RDONLY)
    else:
        file = os.open(path, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_json(path: Path, value: dict[str, Any], *, overwrite: bool = True, private: bool = False) -> None:
    """Write a JSON file, whole or not at all."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidData(f"{path} cannot be written: its content is not plain JSON values ({error}).") from None
    with new_file(path, overwrite=overwrite, private=private) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path, *, within: Path | None = None) -> dict[str, Any]:
    """Read a JSON file that holds one object.

    Parameters
    ----------
    path
        The file.
    within
        The folder that was handed in, where the file is part of one.
    """
    content = read_content(path, "description", largest=_LARGEST_JSON, within=within)
    try:
        value = json.loads(content.decode("utf-8-sig"), parse_constant=_no_constant, parse_float=_finite)
        if _SURROGATE in content.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidFile(path, "it holds half of a character (a lone surrogate).") from None
    except (ValueError, RecursionError) as error:
        raise InvalidFile(path, f"it is not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise InvalidFile(path, f"it must hold one JSON object, not a {type(value).__name__}.")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if abs(number) == float("inf"):
        raise ValueError(f"{text:.40} is too large for a number")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
