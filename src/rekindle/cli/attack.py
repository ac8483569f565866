"""`rekindle attack`: rebuild trajectories from counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from rekindle.attacks import Attack, Run
from rekindle.attacks.state import SavedRun, read_run
from rekindle.cli.shared import check_output, console, make_attack, parse_time, read_input, showing_progress
from rekindle.errors import InvalidData
from rekindle.io import RecoveryFolder, write_trajectories
from rekindle.model import Counts

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
    counts = read_input(dataset, locations, step, cell_km).counts
    if start or end:
        counts = counts.between(parse_time(start, "--from"), parse_time(end, "--to"))
    say_memory(chosen.memory_bytes(counts))
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
        run = recover_into(folder, chosen, counts, progress)
    found = run.recovery()
    for path in (csv, geojson):
        if path is not None:
            write_trajectories(path, found.trajectories, overwrite=True)
    optimal = "every step and link optimal" if found.gap == 0 else f"largest proven gap {found.gap:.2%}"
    console.print(
        f"{found.trajectories.people} people, {found.trajectories.steps} steps, {run.days_done} days recovered "
        f"from {len(counts.locations)} places ({optimal}): [bold]{escape(str(out))}[/bold]",
        soft_wrap=True,
    )


def say_memory(needed: int) -> None:
    """Say how much memory a large attack needs, and warn where the machine has less."""
    free = free_memory()
    if needed > 2**30:
        console.print(f"This needs about {needed / 2**30:.1f} GB of memory.")
    if free is not None and needed > free:
        console.print(
            f"[bold]Only {free / 2**30:.1f} GB are free.[/bold] Attack a part of it with --from and --to, or coarser data.",
            highlight=False,
        )


def free_memory() -> int | None:
    """Bytes of memory that are free, where the system tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, StopIteration):
        return None


def recover_into(folder: RecoveryFolder, chosen: Attack, counts: Counts, progress: Any) -> Run:
    """Run an attack and write each day to a recovery folder as soon as it stands."""

    def after_day(done: int, total: int | None) -> None:
        if not chosen.revises:
            write_new_days(folder, run)
        progress(done, total)

    run = chosen.start(counts.locations, counts.calendar, people=counts.people, progress=after_day)
    checkpoint = folder.path / CHECKPOINT
    if chosen.revises and checkpoint.exists():
        run.restore(read_run(checkpoint))
    elif folder.stored is not None and folder.days:
        run.restore(_saved(folder, run, counts))
    try:
        if run.steps_done < counts.steps:
            run.feed(counts.part(slice(run.steps_done, counts.steps)))
    except KeyboardInterrupt:
        if chosen.revises:
            run.save(checkpoint)
        console.print(
            f"Stopped. {folder.days} days are in {escape(str(folder.path))}; go on with the same command and --resume.",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None
    write_new_days(folder, run)
    return run


def write_new_days(folder: RecoveryFolder, run: Run) -> None:
    """Write the finished days that the folder does not have yet."""
    found = run.recovery()
    for number, day in list(enumerate(found.trajectories.calendar.days()))[folder.days :]:
        folder.add(
            found.trajectories.part(day),
            step_costs=found.step_costs[day],
            link_cost=float(found.link_costs[number]),
            gap=found.gap,
            confidence=None if found.confidence is None else found.confidence[:, day],
        )


def _saved(folder: RecoveryFolder, run: Run, counts: Counts) -> SavedRun:
    stored = folder.stored
    if stored is None:
        raise RuntimeError("no recovery to go on with")
    if not np.array_equal(stored.trajectories.counts().values, counts.values[: stored.trajectories.steps]):
        raise InvalidData(f"{folder.path} cannot be resumed: its days do not add up to these counts.")

    def number(value: float | None) -> float:
        return np.nan if value is None else value

    arrays = {
        "cells": stored.trajectories.cells,
        "step_costs": np.array([number(cost) for day in stored.costs for cost in day["step_costs"]]),
        "link_costs": np.array([number(day["link_cost"]) for day in stored.costs]),
        "gaps": np.array([number(day["gap"]) for day in stored.costs]),
    }
    return SavedRun(stored.attack, stored.settings, run.locations, run.calendar, run.people, arrays)
