"""How hot loops are compiled: once for all runs, and again only where the source of a kernel changed.

Numba keeps what it compiled beside the source, or in the folder that ``NUMBA_CACHE_DIR`` names. On its own it notices a
change in the file of the outermost function only; here it is given a stamp of all files that hold kernels.

Kernels are compiled at set-up (``python -m rekindle.attacks.compile``), or when they are first used: the logger
``rekindle`` then says so.
"""

from __future__ import annotations

import hashlib
import logging
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.core.event import Event, Listener, register

__all__ = ["compiled", "completion_mark", "ensure_compiled", "source_stamp"]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parents[1]

logger = logging.getLogger("rekindle")

MESSAGE = "Compiling Rekindle's kernels, once; this takes a few minutes."


@cache
def source_stamp() -> str:
    """Give a digest of the source of all modules that hold kernels."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"assignment.kernels import" in source or path.samefile(__file__):
            found.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + source + b"\0")
    return found.hexdigest()


def compiled(**flags: Any) -> Callable[[Kernel], Kernel]:
    """Compile a hot loop, once for all runs, such that threads can run it side by side.

    Parameters
    ----------
    flags
        What the results depend on: ``fastmath``, the liberties that the compiler may take with floating-point numbers, and
        ``error_model="numpy"``, by which a division by zero gives infinity. A kernel without them takes those of its caller.

    A variable that begins as a plain number and is handed to another kernel makes Numba compile that one twice, for the constant
    too: write ``np.int64(0)``.
    """

    def compile_kernel(function: Kernel) -> Kernel:
        try:
            kernel = numba.njit(cache=True, nogil=True, **flags)(function)
        except RuntimeError:  # no folder to keep it in: compiled once for each process
            return cast(Kernel, numba.njit(nogil=True, **flags)(function))
        kept = getattr(kernel, "_cache", None)  # none where NUMBA_DISABLE_JIT is set
        if kept is not None:
            kept._cache_file._source_stamp = source_stamp()
        return cast(Kernel, kernel)

    return compile_kernel


def ensure_compiled() -> None:
    """Compile all kernels unless that was done, in a process of its own, which ends at once when it is stopped.

    Processes that are about to run attacks would otherwise compile the same kernels side by side, and an interrupt
    within the compiler may be lost.
    """
    mark = completion_mark()
    if mark is None or mark.exists() or not sys.executable:
        return
    logger.info(MESSAGE)
    subprocess.run([sys.executable, "-m", "rekindle.attacks.compile"], capture_output=True, check=False)


def completion_mark() -> Path | None:
    """Give the file that says that these kernels are compiled, for this Python and processor; None if nothing is kept."""
    from rekindle.assignment.step_kernel import run_steps  # which needs this module

    folder = getattr(getattr(run_steps, "stats", None), "cache_path", None)
    if folder is None:
        return None
    made_for = f"{platform.python_version()}-{numba.__version__}-{llvmlite.binding.get_host_cpu_name()}"
    return Path(folder) / f"rekindle-{source_stamp()[:16]}-{made_for}.compiled"


class _Announcement(Listener):
    """Says once that kernels are being compiled, because that takes a while."""

    def __init__(self) -> None:
        self._said = threading.Event()

    def on_start(self, event: Event) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if module.startswith("rekindle.") and not self._said.is_set():
            self._said.set()
            logger.info(MESSAGE)

    def on_end(self, event: Event) -> None:
        pass


register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
