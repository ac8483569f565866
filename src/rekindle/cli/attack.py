"""`rekindle attack`: recover trajectories from counts."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from rekindle.attacks import HabitsDetails
from rekindle.attacks.flows import counts_and_flows
from rekindle.attacks.folder import open_folder, recover_into
from rekindle.cli.console import note, print_json, say, showing_progress
from rekindle.cli.options import (
    CellSide,
    Effort,
    Format,
    LocationsFile,
    MemoryLimit,
    Priors,
    Published,
    Quiet,
    TableStep,
    Window,
)
from rekindle.cli.running import STOPPED
from rekindle.cli.shared import (
    announce,
    check_output,
    choose_release,
    make_attack,
    parse_time,
    read_input,
    read_prior,
)
from rekindle.errors import InvalidSetting
from rekindle.io import write_trajectories
from rekindle.io.safety.files import output
from rekindle.memory import check_memory, reading_bytes
from rekindle.model.calendar import format_step


def attack(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder, or a CSV or Parquet table of counts or flows.")],
    out: Annotated[
        Path, typer.Option(help="Folder for the recovery. Each day is written as soon as it is finished.")
    ],
    attack: Annotated[
        str,
        typer.Option(
            help="baseline (Xu et al. 2017), enhanced (D'Silva et al. 2024), habits (the strongest), or package:Class "
            "for your own."
        ),
    ] = "enhanced",
    resume: Annotated[bool, typer.Option("--resume", help="Continue what an earlier run left in OUT.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Shuffle the order of interchangeable people; several seeds show how ties matter."),
    ] = None,
    lookback_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Earlier days that each day is linked to. Default: the attack's own, 3 for enhanced, 1 for baseline.",
        ),
    ] = None,
    effort: Effort = None,
    prior: Priors = None,
    start: Annotated[
        datetime | None,
        typer.Option(
            "--from", parser=parse_time, metavar="TIME", help="Attack only steps from this time on, e.g. 2014-05-03."
        ),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option(
            "--to",
            parser=parse_time,
            metavar="TIME",
            help="Attack only steps before this time, e.g. 2014-05-10T00:00.",
        ),
    ] = None,
    release: Published = None,
    window: Window = None,
    locations: LocationsFile = None,
    step: TableStep = None,
    cell_km: CellSide = 1.0,
    memory_limit: MemoryLimit = None,
    csv: Annotated[
        Path | None, typer.Option(help="Also write the trajectories to this CSV file: person, datetime, location.")
    ] = None,
    geojson: Annotated[
        Path | None, typer.Option(help="Also write the trajectories to this .geojson file: one line per person.")
    ] = None,
    output_format: Format = "text",
    quiet: Quiet = False,
) -> None:
    """Recover everyone's trajectory from counts or flows, as an attacker would.

    A folder: rekindle attack demo/dataset --out recovery

    The paper's files: rekindle attack counts.csv --locations grid.csv --out recovery

    The attack does not look at the ground truth. To compare with it afterwards: rekindle evaluate OUT DATASET
    """
    settings: dict[str, Any] = {"seed": seed, "lookback_days": lookback_days, "effort": effort}
    chosen = make_attack(attack, {name: value for name, value in settings.items() if value is not None})
    for text in prior or ():
        chosen = chosen.knowing(read_prior(text))
    check_output(csv, (".csv",), overwrite=resume)
    check_output(geojson, (".geojson",), overwrite=resume)
    needed = reading_bytes(dataset, truth=False)
    check_memory(needed, memory_limit, what=f"Reading {dataset}", way_out="Give fewer days")
    data = read_input(dataset, locations, step, cell_km, truth=False)
    published = choose_release(data, release, window)
    if published[1] is not None and not chosen.takes_flows:
        raise InvalidSetting(f"The attack {attack!r} takes counts only; give it these with `release='counts'`.")
    counts, flows = counts_and_flows(*published)
    longer = [one for one in data.flows if flows is not None and one.window != flows.window]
    if flows is not None and longer:
        lengths = ", ".join(format_step(one.window) for one in longer)
        how = "are attacked with those over" if window is None else "are attacked, without those over"
        note(f"Flows over {format_step(flows.window)} {how} {lengths}.")
    if start or end:
        counts = counts.between(start, end)
        flows = flows if flows is None else flows.during(counts.calendar)
        longer = [part for one in longer if (part := one.within(counts.calendar)) is not None]
    together = [flows, *longer] if flows is not None and longer and window is None else flows
    check_memory(
        chosen.memory_bytes(counts, flows=True) if flows and chosen.takes_flows else chosen.memory_bytes(counts),
        memory_limit,
        what=f"{attack} on {counts.people:,} people, {counts.steps:,} steps and {len(counts.locations):,} locations",
        way_out="Attack fewer days with --from and --to, coarser locations or fewer people"
        + (", or use --attack enhanced" if chosen.revises else ""),
    )
    with ExitStack() as mine:
        for path in (out, csv, geojson):
            if path is not None:
                mine.enter_context(output(path, parents=path is out))
        folder = open_folder(out, chosen, counts, resume=resume)
        left = 1.0 if chosen.revises else 1 - folder.days / counts.calendar.number_of_days
        announce("The attack", left * chosen.work(counts), cpu_count() if chosen.in_parts else 1)
        try:
            with showing_progress("Days recovered") as progress:
                recovery = recover_into(folder, chosen, counts, flows=together, progress=progress)
        except KeyboardInterrupt:
            note(f"Stopped. {folder.days} days are in {out}. To resume, run the same command with --resume.")
            raise typer.Exit(STOPPED) from None
        except OSError:
            note(f"{folder.days} finished days are kept. Once this is fixed, run the same command with --resume.")
            raise
        found, gap = recovery.trajectories, getattr(recovery.details, "gap", None)
        for path in (csv, geojson):
            if path is not None:
                write_trajectories(path, found, overwrite=True)
    if output_format == "json":
        numbers = {
            "people": found.people,
            "steps": found.steps,
            "days": folder.days,
            "locations": len(counts.locations),
        }
        print_json({"attack": attack, "settings": chosen.settings(), **numbers, "gap": gap, "recovery": str(out)})
        return
    optimal = (
        "every step and link optimal" if gap == 0 else f"largest proven gap {gap:.2%}" if gap else "every count met"
    )
    say(
        f"{found.people} people, {found.steps} steps, {folder.days} days recovered "
        f"from {len(counts.locations)} locations ({optimal}): ",
        (str(out), "bold"),
    )
    if isinstance(recovery.details, HabitsDetails) and folder.days:
        say(_what_habits_did(recovery.details))


def _what_habits_did(details: HabitsDetails) -> str:
    """Say it in one line; every day has the same numbers."""
    answers, voters, each, of_group = (
        int(array[0]) for array in (details.answers, details.voters, details.exchanges, details.group_exchanges)
    )
    if not answers:
        return "Habits had nothing to repeat, so the enhanced attack answered."
    groups = f" and {of_group:,} for each that a group of answers became" if of_group else ""
    search = f"; {each:,} exchanges were tried for each answer{groups}" if each else ""
    return f"Habits made the result of {answers} answers, with {voters} more to say how sure it is{search}."
