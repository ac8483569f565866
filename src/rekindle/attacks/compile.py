"""Compile the kernels once, so that no later run waits for it: ``python -m rekindle.attacks.compile``.

Without this they are compiled when they are first used; see `rekindle.assignment.kernels`.
"""

from __future__ import annotations

import numpy as np

from rekindle.assignment.kernels import completion_mark
from rekindle.attacks import ATTACKS
from rekindle.model import Calendar, Locations, Trajectories

__all__ = ["compile_kernels"]

MANY = 1_000


def compile_kernels() -> None:
    """Run every attack on a tiny release, and note that it was done."""
    locations = Locations(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2))
    rng = np.random.default_rng(0)
    cells = rng.integers(0, len(locations), (96, 12))
    cells[1:] = np.where(rng.random((95, 12)) < 0.9, cells[:1], cells[1:])
    people = Trajectories(cells.T, locations, Calendar("2024-01-01", "30min"))
    for kind in ATTACKS.values():
        quick = {"effort": "low"} if "effort" in kind().settings() else {}
        kind(**quick).recover(people.counts())
        if kind.takes_flows:
            kind(**quick).recover(flows=people.flows())
        if quick:  # which goes about many people in another way
            many = Trajectories(np.tile(cells.T, (MANY // cells.shape[1] + 1, 1)), locations, people.calendar)
            kind(**quick).recover(many.counts())
            kind(**quick).recover(flows=many.flows())
    mark = completion_mark()
    if mark is not None:
        mark.touch()


if __name__ == "__main__":
    compile_kernels()
