"""Recover into a folder: each finished day is written at once, so that a run that ends early can be resumed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rekindle.assignment.kernels import ensure_compiled
from rekindle.attacks.base import Attack, Recovery, Run
from rekindle.attacks.flows import counts_and_flows
from rekindle.attacks.saving import SavedRun, read_run
from rekindle.errors import InvalidData
from rekindle.io.recovery import CHECKPOINT, RecoveryFolder, StoredRecovery
from rekindle.model import Counts, Flows, Trajectories
from rekindle.progress import Progress

__all__ = ["CHECKPOINT", "open_folder", "recover_into"]


def open_folder(path: str | Path, attack: Attack, counts: Counts, *, resume: bool = False) -> RecoveryFolder:
    """Make a recovery folder for an attack on counts (and flows), or open the one that an earlier run left.

    Parameters
    ----------
    path
        A folder that is new or empty; with `resume`, also one with the days of the same attack on the same counts.
    attack, counts
        What is about to be run.
    resume
        Whether days that are there may be kept.
    """
    # An attack that refuses these counts leaves no folder behind.
    attack.start(counts.locations, counts.calendar, people=counts.people)
    return RecoveryFolder(
        path,
        attack=type(attack).__name__,
        settings=attack.settings(),
        locations=counts.locations,
        calendar=counts.calendar,
        people=counts.people,
        names=attack.names(counts.people),
        named=attack.named,
        known_people=attack.known_people,
        resume=resume,
    )


def recover_into(
    folder: RecoveryFolder,
    attack: Attack,
    counts: Counts,
    *,
    flows: Flows | Sequence[Flows] | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Run an attack and write each day to its folder as soon as it is final.

    Whatever ends it early, Ctrl-C included, the days that are written can be resumed from. An attack that revises earlier
    days writes them all in the end, and leaves a checkpoint until then. With flows of several windows all days are written in
    the end, and there is none.

    Parameters
    ----------
    folder
        What `open_folder` gave for the same attack and counts.
    attack, counts, flows
        What to run.
    progress
        Called after each day.
    """
    if flows is not None and not isinstance(flows, Flows):
        ensure_compiled()
        together = attack.recover(counts, flows=flows, progress=progress)
        stored = folder.stored
        if stored is not None and not np.array_equal(
            stored.trajectories.cells, together.trajectories.cells[:, : stored.trajectories.steps]
        ):
            raise InvalidData(f"{folder.path} cannot be resumed: its days are not those of this attack.")
        for day in [*counts.calendar.days()][folder.days :]:
            folder.add(together.trajectories.part(day), details={}, confidence=None)
        return together
    counts, flows = counts_and_flows(counts, flows)
    checkpoint = folder.path / CHECKPOINT

    def after_day(done: int, total: int | None) -> None:
        if attack.revises:
            run.save(checkpoint)
        else:
            _write_new_days(folder, run)
        if progress is not None:
            progress(done, total)

    run = attack.start(counts.locations, counts.calendar, people=counts.people, progress=after_day)
    stored = folder.stored
    if stored is not None and stored.trajectories.steps:
        if not np.array_equal(stored.trajectories.counts().values, counts.values[: stored.trajectories.steps]):
            raise InvalidData(f"{folder.path} cannot be resumed: its days do not add up to these counts.")
        if flows is not None and not _has_flows(stored.trajectories, flows.with_stayers(counts)):
            raise InvalidData(f"{folder.path} cannot be resumed: its days do not have these flows.")
        if attack.revises and stored.complete:
            checkpoint.unlink(missing_ok=True)
            return Recovery(stored.trajectories, attack, stored.confidence)
    ensure_compiled()
    try:
        _restore(run, stored, checkpoint, counts, flows)
        if run.steps_done < counts.steps:
            run.feed(counts.part(slice(run.steps_done, counts.steps)), flows=flows)
        found = run.recovery()
        _write_new_days(folder, run)
        checkpoint.unlink(missing_ok=True)
    except KeyboardInterrupt:
        if attack.revises and folder.path.is_dir():
            run.save(checkpoint)
        raise
    return found


def _write_new_days(folder: RecoveryFolder, run: Run) -> None:
    """Write the finished days that the folder does not have yet."""
    for number in range(folder.days, run.days_done):
        found = run.day(number)
        folder.add(found.trajectories, details=found.details.arrays(), confidence=found.confidence)


def _with(flows: bool) -> str:
    return "with" if flows else "without"


def _has_flows(found: Trajectories, flows: Flows) -> bool:
    """Whether recovered days have the flows of the same days."""
    mine, theirs = found.flows(), flows.part(slice(0, found.steps))
    names = ("step", "origin", "destination", "count")
    return all(np.array_equal(getattr(mine, name), getattr(theirs, name)) for name in names)


def _restore(run: Run, stored: StoredRecovery | None, checkpoint: Path, counts: Counts, flows: Flows | None) -> None:
    """Take up what an earlier run left in the folder: its checkpoint, or its days."""
    if run.attack.revises:
        if not checkpoint.exists():
            return
        saved = read_run(checkpoint)
        there = saved.arrays.get("counts", counts.values)
        if not np.array_equal(there, counts.values[: len(there)]):
            raise InvalidData(f"{checkpoint.parent} cannot be resumed: its checkpoint is of other counts.")
        if len(there) and saved.has_flows != (flows is not None):
            raise InvalidData(
                f"{checkpoint.parent} cannot be resumed: its checkpoint is {_with(saved.has_flows)} flows."
            )
    elif stored is not None and stored.trajectories.steps:
        arrays = {"cells": stored.trajectories.cells, "flows": np.array(flows is not None), **stored.details}
        saved = SavedRun(stored.attack, stored.settings, run.locations, run.calendar, run.people, arrays)
    else:
        return
    try:
        run.restore(saved)
    except (KeyError, IndexError, ValueError) as error:
        raise InvalidData(
            f"{checkpoint.parent} cannot be resumed: what it holds is damaged ({type(error).__name__}: {error})."
        ) from None
