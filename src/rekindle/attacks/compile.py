"""Compile the kernels once, so that no later run waits for it: ``python -m rekindle.attacks.compile``.

Without this they are compiled when they are first used, which takes about a minute in all; the logger ``rekindle`` then
says so. See `rekindle.assignment.kernels` for where they are kept.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np

from rekindle.assignment.kernels import source_stamp
from rekindle.assignment.step_kernel import run_steps
from rekindle.attacks import ATTACKS
from rekindle.errors import RekindleError
from rekindle.model import Calendar, Counts, Locations

__all__ = ["compile_kernels", "ensure_compiled"]


def compile_kernels() -> None:
    """Run every attack on a tiny release, and note that it was done."""
    locations = Locations(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2))
    rng = np.random.default_rng(0)
    cells = rng.integers(0, len(locations), (96, 12))
    cells[1:] = np.where(rng.random((95, 12)) < 0.9, cells[:1], cells[1:])
    values = np.stack([np.bincount(row, minlength=len(locations)) for row in cells])
    counts = Counts(values, locations, Calendar("2024-01-01", "30min"))
    for kind in ATTACKS.values():
        quick = {"effort": "low"} if "effort" in kind().settings() else {}
        kind(**quick).recover(counts)
    note = _note()
    if note is not None:
        note.touch()


def ensure_compiled(notice: Callable[[str], None] | None = None) -> None:
    """Compile the kernels unless that was done, in a process of its own, which can be stopped at any time.

    Several processes that are about to run attacks would otherwise compile the same kernels side by side.

    Parameters
    ----------
    notice
        Called with a sentence before the work begins, which takes about a minute.
    """
    note = _note()
    if note is None or note.exists():
        return
    if notice is not None:
        notice("Compiling Rekindle's kernels, once; this takes about a minute.")
    done = subprocess.run([sys.executable, "-m", __name__], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RekindleError(f"The kernels cannot be compiled: {done.stderr.strip()[-500:]}")


def _note() -> Path | None:
    """Give the file that says that these kernels are compiled, for this Python and processor; None if nothing is kept."""
    folder = getattr(getattr(run_steps, "stats", None), "cache_path", None)
    if folder is None:
        return None
    made_for = f"{platform.python_version()}-{numba.__version__}-{llvmlite.binding.get_host_cpu_name()}"
    return Path(folder) / f"rekindle-{source_stamp()[:16]}-{made_for}.compiled"


if __name__ == "__main__":
    compile_kernels()
