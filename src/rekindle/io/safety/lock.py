"""Locks: one process at a time writes an output, and what it has under way is not taken for a leftover.

The system releases these locks when their process ends, however it ends.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from errno import ENOLCK, ENOSYS, EOPNOTSUPP
from pathlib import Path

from filelock import FileLock, Timeout

from rekindle.errors import OutputInUse

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCK = ".rekindle-lock"
_UNSUPPORTED = (ENOSYS, ENOLCK, EOPNOTSUPP)
"""What a file system says that has no locks; there, nothing is locked."""
_SECONDS = 0.1
"""How long to try: a lock that is being given up takes a moment."""


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
    lock = _acquire(target, Path(path))
    try:
        yield
    finally:
        if lock is not None:
            if lock.lock_counter == 1:
                # filelock leaves its file, which would stay beside every output; one that is gone is noticed by others.
                with suppress(OSError):
                    os.unlink(lock.lock_file)
            lock.release()


def _acquire(target: Path, wanted: Path) -> FileLock | None:
    """Lock the lock file of an output, or, where nothing may be written beside it, one in it; None without locks."""
    for name in (lock_file(target), target / lock_file(target).name):
        # One for each name and thread, so that those who call each other share it.
        lock = FileLock(name, timeout=_SECONDS, is_singleton=True, thread_local=True, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            holder = ""
            with suppress(OSError):
                holder = name.read_text(errors="replace")[:200]
            raise OutputInUse(
                f"{wanted} is being written by {holder or 'another process'}. "
                "Wait until it is done or stop it, or choose another output."
            ) from None
        except PermissionError:
            if not target.is_dir() or name.parent == target:
                raise
            continue
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return None
            raise
        if lock.lock_counter == 1:
            since = datetime.now().replace(microsecond=0)
            name.write_text(f"process {os.getpid()} on {socket.gethostname()}, since {since}")
        return lock
    return None


# By hand: filelock locks files of its own, while what is under way is held itself, so that no second name can outlive it,
# and it can be asked about without a trace.


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
