"""Locks: one process at a time writes an output, and what it has under way is not taken for a leftover.

The locks are advisory (`flock`), so the system releases them when their process ends, however it ends. Where there is no
`flock`, as on Windows, nothing is locked.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path

from rekindle.errors import OutputInUse

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["hold", "in_use", "is_lock_file", "lock_file", "locked"]

_LOCK = ".rekindle-lock"

_HELD: ContextVar[frozenset[Path]] = ContextVar("_HELD", default=frozenset())
"""Outputs that are locked by those who called this code, and so not by others."""


def lock_file(path: Path) -> Path:
    """The file beside an output that is locked while the output is written."""
    return path.with_name(f".{path.name}{_LOCK}")


def is_lock_file(path: Path) -> bool:
    """Whether a path is the lock file of some output."""
    return path.name.startswith(".") and path.name.endswith(_LOCK) and path.is_file()


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Keep others from writing a file or folder until the block ends; within it, the same may be locked again.

    Raises
    ------
    OutputInUse
        Another process, or another thread, holds it; the message says which, and since when.
    """
    target = Path(os.path.realpath(path))
    if fcntl is None or target in _HELD.get():
        yield
        return
    file, name = _acquire(target, Path(path))
    _HELD.set(_HELD.get() | {target})
    try:
        yield
    finally:
        _HELD.set(_HELD.get() - {target})
        with suppress(OSError):
            name.unlink(missing_ok=True)
        os.close(file)


def _acquire(target: Path, wanted: Path) -> tuple[int, Path]:
    """Open and lock the lock file; in the folder itself, where nothing may be written beside it."""
    name = lock_file(target)
    while True:
        try:
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except PermissionError:
            if name.parent == target or not target.is_dir():
                raise
            name = target / lock_file(target).name
            continue
        if not hold(file):
            holder = os.read(file, 200).decode(errors="replace") or "another process"
            os.close(file)
            raise OutputInUse(
                f"{wanted} is being written by {holder}. Wait until it is done or stop it, or choose another output."
            )
        # Whoever held it before may have removed the file between our opening and our locking it.
        if _is(file, name):
            break
        os.close(file)
    os.truncate(file, 0)
    since = datetime.now().replace(microsecond=0)
    os.write(file, f"process {os.getpid()} on {socket.gethostname()}, since {since}".encode())
    return file, name


def hold(file: int) -> bool:
    """Lock an open file or folder until it is closed; False where another has it. A system without locks locks nothing."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def in_use(path: Path) -> bool:
    """Whether a living process holds a file or folder."""
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not hold(file)
    finally:
        os.close(file)


def _is(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
