"""`rekindle clean`: remove what was derived from the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rekindle.cli.console import console, note, say
from rekindle.cli.options import Quiet
from rekindle.io.safety.clean import find_traces, find_unmarked, remove_trace


def clean(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folder to search, with all folders below it.")
    ],
    truth: Annotated[
        bool, typer.Option("--truth", help="Also remove the ground truth of datasets. Counts and locations stay.")
    ] = False,
    recoveries: Annotated[
        bool, typer.Option("--recoveries", help="Also remove the trajectories that attacks recovered.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    quiet: Quiet = False,
) -> None:
    """Remove what was derived from the ground truth.

    That is: evaluations, finished tasks of audits, reports, checkpoints, and what interrupted runs left behind. Only what
    Rekindle wrote is touched; it is listed in the rekindle.json of each output folder. Links are not followed. Files are
    deleted, not overwritten, and backups and disk snapshots may still hold them.
    """
    found = [trace for folder in folders for trace in find_traces(folder, truth=truth, recoveries=recoveries)]
    for folder in [one for top in folders for one in find_unmarked(top)]:
        note(
            f"{folder} was left as it is: it has no rekindle.json that says what is sensitive in it. Was it written by Rekindle 0.1?"
        )
    if not found:
        console.print("There is nothing to remove.")
        return
    for trace in found:
        say(f"{trace.path} ({trace.what})")
    if dry_run:
        return
    if not yes:
        typer.confirm(f"Remove {len(found)} items?", abort=True)
    for trace in found:
        remove_trace(trace)
    console.print(f"Removed {len(found)} items.")
