"""Compile the kernels once, so that no later run waits for it: ``python -m rekindle.attacks.compile``.

Without this they are compiled when they are first used; see `rekindle.assignment.kernels`.
"""

from __future__ import annotations

import numpy as np

from rekindle.assignment.kernels import completion_mark
from rekindle.attacks import ATTACKS
from rekindle.model import Calendar, Locations, Trajectories

__all__ = ["compile_kernels"]

MANY = 850


def compile_kernels() -> None:
    """Run every attack on a tiny release, and note that it was done."""
    locations = Locations(np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2))
    rng = np.random.default_rng(0)

    def stroll(number: int) -> Trajectories:
        cells = rng.integers(0, len(locations), (number, 96))
        cells = np.where(rng.random(cells.shape) < 0.9, cells[:, :1], cells)
        return Trajectories(cells, locations, Calendar("2024-01-01", "30min"))

    people = stroll(12)
    for kind in ATTACKS.values():
        quick = {"effort": "low"} if "effort" in kind().settings() else {}
        kind(**quick).recover(people.counts())
        if kind.takes_flows:
            kind(**quick).recover(flows=people.flows())
        if quick:  # which goes about many people in another way
            many = stroll(MANY)
            kind(**quick).recover(many.counts())
            kind(**quick).recover(flows=many.flows())
    mark = completion_mark()
    if mark is not None:
        mark.touch()


if __name__ == "__main__":
    compile_kernels()
