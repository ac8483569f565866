"""`rekindle attack`: rebuild trajectories from counts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from rekindle.attacks import Attack, Run
from rekindle.attacks.base import Progress
from rekindle.attacks.saving import SavedRun, read_run
from rekindle.cli.memory import MemoryLimit, check_memory, reading_bytes
from rekindle.cli.shared import (
    STOPPED,
    check_output,
    console,
    errors,
    make_attack,
    parse_time,
    read_input,
    showing_progress,
)
from rekindle.errors import InvalidData
from rekindle.io import RecoveryFolder, StoredRecovery, write_trajectories
from rekindle.io.safety.files import output
from rekindle.model import Counts, Trajectories

CHECKPOINT = "checkpoint.npz"


def attack(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder, or a csv or parquet table of counts.")],
    out: Annotated[Path, typer.Option(help="Folder for the recovery. Each finished day is written at once.")],
    attack: Annotated[
        str,
        typer.Option(
            help="baseline (Xu et al. 2017), enhanced (D'Silva et al. 2024), habits (ours, the strongest), or package:Class "
            "for your own."
        ),
    ] = "enhanced",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what an earlier run left in OUT.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Shuffle the order of interchangeable people, to measure the spread of ties."),
    ] = None,
    lookback_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Days to look back when days are linked. Default: the attack's own, 3 for enhanced, 1 for baseline.",
        ),
    ] = None,
    effort: Annotated[str | None, typer.Option(help="low, normal or high; for habits.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Attack the steps from this time on, e.g. 2014-05-03.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Attack the steps before this time, e.g. 2014-05-10T00:00.")
    ] = None,
    locations: Annotated[
        Path | None, typer.Option(help="File of locations, where DATASET is a table and not a folder.")
    ] = None,
    step: Annotated[
        str | None, typer.Option(help="Interval of such a table, e.g. 10min, where it has a single time.")
    ] = None,
    cell_km: Annotated[
        float, typer.Option(min=0.001, help="Side of a cell, where a table names its places '(row, column)'.")
    ] = 1.0,
    memory_limit: MemoryLimit = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the trajectories to this csv file too: person, datetime, location.")
    ] = None,
    geojson: Annotated[
        Path | None, typer.Option(help="Write the trajectories to this .geojson file too: one line a person.")
    ] = None,
) -> None:
    """Rebuild everyone's trajectory from counts, as an attacker would, to see what a release gives away.

    A folder: rekindle attack demo/dataset --out recovery

    The paper's files: rekindle attack counts.csv --locations grid.csv --out recovery

    The truth, where the dataset has it, is not looked at. Compare with it afterwards: rekindle evaluate OUT DATASET.
    """
    settings: dict[str, Any] = {"seed": seed, "lookback_days": lookback_days, "effort": effort}
    chosen = make_attack(attack, {name: value for name, value in settings.items() if value is not None})
    check_output(csv, (".csv",), overwrite=resume)
    check_output(geojson, (".geojson",), overwrite=resume)
    counts_file = dataset / "counts.parquet" if dataset.is_dir() else dataset
    check_memory(reading_bytes(counts_file), memory_limit, what=f"Reading {counts_file}", way_out="Give fewer days")
    counts = read_input(dataset, locations, step, cell_km, truth=False).counts
    if start or end:
        counts = counts.between(parse_time(start, "--from"), parse_time(end, "--to"))
    check_memory(
        chosen.memory_bytes(counts),
        memory_limit,
        what=f"{attack} on {counts.people:,} people, {counts.steps:,} steps and {len(counts.locations):,} places",
        way_out="Attack fewer days with --from and --to, coarser places or fewer people"
        + (", or with --attack enhanced" if chosen.revises else ""),
    )
    with ExitStack() as mine:
        for path in (out, csv, geojson):
            if path is not None:
                mine.enter_context(output(path, parents=path is out))
        folder = RecoveryFolder(
            out,
            attack=type(chosen).__name__,
            settings=chosen.settings(),
            locations=counts.locations,
            calendar=counts.calendar,
            people=counts.people,
            resume=resume,
        )
        with showing_progress("Days recovered") as progress:
            found, gap = recover_into(folder, chosen, counts, progress)
        for path in (csv, geojson):
            if path is not None:
                write_trajectories(path, found, overwrite=True)
    optimal = "every step and link optimal" if gap == 0 else f"largest proven gap {gap:.2%}"
    if chosen.revises:
        optimal = "every count met"
    console.print(
        f"{found.people} people, {found.steps} steps, {folder.days} days recovered "
        f"from {len(counts.locations)} places ({optimal}): [bold]{escape(str(out))}[/bold]",
        soft_wrap=True,
    )


def recover_into(
    folder: RecoveryFolder, chosen: Attack, counts: Counts, progress: Progress
) -> tuple[Trajectories, float]:
    """Run an attack and write each day to a recovery folder as soon as it stands; give all, and the largest gap.

    An attack that revises earlier days writes them in the end, and leaves a checkpoint until then.
    """
    checkpoint = folder.path / CHECKPOINT

    def after_day(done: int, total: int | None) -> None:
        if chosen.revises:
            run.save(checkpoint)
        else:
            write_new_days(folder, run)
        progress(done, total)

    run = chosen.start(counts.locations, counts.calendar, people=counts.people, progress=after_day)
    stored = folder.stored
    try:
        if stored is not None and stored.trajectories.steps:
            if not np.array_equal(stored.trajectories.counts().values, counts.values[: stored.trajectories.steps]):
                raise InvalidData(f"{folder.path} cannot be resumed: its days do not add up to these counts.")
            if stored.complete:
                checkpoint.unlink(missing_ok=True)
                return stored.trajectories, max(entry["gap"] for entry in stored.costs)
        if chosen.revises and checkpoint.exists():
            run.restore(_checked(checkpoint, counts))
        elif stored is not None and folder.days and not chosen.revises:
            run.restore(_saved(stored, run))
        if run.steps_done < counts.steps:
            run.feed(counts.part(slice(run.steps_done, counts.steps)))
        found = run.recovery()
        write_new_days(folder, run)
        checkpoint.unlink(missing_ok=True)
    except KeyboardInterrupt:
        if chosen.revises and folder.path.is_dir():
            run.save(checkpoint)
        console.print(
            f"Stopped. {folder.days} days are in {escape(str(folder.path))}; go on with the same command and --resume.",
            soft_wrap=True,
        )
        raise typer.Exit(STOPPED) from None
    except OSError:
        errors.print(
            f"{folder.days} finished days are kept. When that is mended, go on with the same command and --resume.",
            highlight=False,
            soft_wrap=True,
        )
        raise
    return found.trajectories, found.gap


def write_new_days(folder: RecoveryFolder, run: Run) -> None:
    """Write the finished days that the folder does not have yet."""
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
