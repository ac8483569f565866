"""Compile the kernels once, so that no later run waits for it: ``python -m rekindle.attacks.compile``.

Numba keeps what it compiled beside the source, or in the folder that ``NUMBA_CACHE_DIR`` names. Without this, the first
large attack takes some seconds longer.
"""

from __future__ import annotations

import numpy as np

from rekindle.attacks import ATTACKS, day_by_day
from rekindle.model import Calendar, Counts, Locations

__all__ = ["compile_kernels"]


def compile_kernels() -> None:
    """Run every attack on a tiny release, large enough for the compiled way through it."""
    locations = Locations(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2))
    people = 2 + day_by_day.SMALL_DAY // 48
    cells = np.random.default_rng(0).integers(0, len(locations), (96, people))
    cells[1:] = np.where(np.random.default_rng(1).random((95, people)) < 0.9, cells[:1], cells[1:])
    values = np.stack([np.bincount(row, minlength=len(locations)) for row in cells])
    counts = Counts(values, locations, Calendar("2024-01-01", "30min"))
    for kind in ATTACKS.values():
        quick = {"effort": "low"} if "effort" in kind().settings() else {}
        kind(**quick).recover(counts)


if __name__ == "__main__":
    compile_kernels()
