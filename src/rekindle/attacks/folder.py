"""An attack that writes its days to a folder as it goes, and continues there after it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rekindle.attacks.base import Attack, Run
from rekindle.attacks.saving import SavedRun, read_run
from rekindle.errors import InvalidData
from rekindle.io.recovery import RecoveryFolder, StoredRecovery
from rekindle.model import Counts, Trajectories
from rekindle.progress import Progress

__all__ = ["recover_into"]

CHECKPOINT = "checkpoint.npz"


def recover_into(
    folder: RecoveryFolder, attack: Attack, counts: Counts, progress: Progress
) -> tuple[Trajectories, float]:
    """Run an attack and write each day to a recovery folder as soon as it is final.

    An attack that revises earlier days writes them all at the end, and keeps a checkpoint until then. Interrupted, it
    leaves the folder in a state from which the same call continues.

    Parameters
    ----------
    folder
        Where the days go; it may hold the first days of the same attack on the same counts.
    attack, counts
        What is run on what.
    progress
        Called with the number of finished days, and of all days.

    Returns
    -------
    trajectories, gap
        Everyone's trajectory, and the largest gap to a proven optimum.
    """
    checkpoint = folder.path / CHECKPOINT

    def after_day(done: int, total: int | None) -> None:
        if attack.revises:
            run.save(checkpoint)
        else:
            _write_new_days(folder, run)
        progress(done, total)

    run = attack.start(counts.locations, counts.calendar, people=counts.people, progress=after_day)
    stored = folder.stored
    if stored is not None and stored.trajectories.steps:
        if not np.array_equal(stored.trajectories.counts().values, counts.values[: stored.trajectories.steps]):
            raise InvalidData(f"{folder.path} cannot be resumed: its days do not add up to these counts.")
        if stored.complete:
            checkpoint.unlink(missing_ok=True)
            return stored.trajectories, max(entry["gap"] for entry in stored.costs)
    if attack.revises and checkpoint.exists():
        run.restore(_checked(checkpoint, counts))
    elif stored is not None and folder.days and not attack.revises:
        run.restore(_saved(stored, run))
    try:
        if run.steps_done < counts.steps:
            run.feed(counts.part(slice(run.steps_done, counts.steps)))
        found = run.recovery()
        _write_new_days(folder, run)
    except KeyboardInterrupt:
        if attack.revises and folder.path.is_dir():
            run.save(checkpoint)
        raise
    checkpoint.unlink(missing_ok=True)
    return found.trajectories, found.gap


def _write_new_days(folder: RecoveryFolder, run: Run) -> None:
    for number in range(folder.days, run.days_done):
        found = run.day(number)
        folder.add(
            found.trajectories,
            step_costs=found.step_costs,
            link_cost=float(found.link_costs[0]),
            gap=found.gap,
            confidence=found.confidence,
        )


def _checked(checkpoint: Path, counts: Counts) -> SavedRun:
    """Read a checkpoint, which must be of these counts."""
    saved = read_run(checkpoint)
    there = saved.arrays.get("counts", counts.values)
    if not np.array_equal(there, counts.values[: len(there)]):
        raise InvalidData(f"{checkpoint.parent} cannot be resumed: its checkpoint is of other counts.")
    return saved


def _saved(stored: StoredRecovery, run: Run) -> SavedRun:
    def number(value: float | None) -> float:
        return np.nan if value is None else value

    arrays = {
        "cells": stored.trajectories.cells,
        "step_costs": np.array([number(cost) for day in stored.costs for cost in day["step_costs"]]),
        "link_costs": np.array([number(day["link_cost"]) for day in stored.costs]),
        "gaps": np.array([number(day["gap"]) for day in stored.costs]),
    }
    return SavedRun(stored.attack, stored.settings, run.locations, run.calendar, run.people, arrays)
