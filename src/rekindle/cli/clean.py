"""`rekindle clean`: remove what was derived from the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rekindle.cli.shared import console
from rekindle.io.safety.clean import find_traces, remove_trace


def clean(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Where to look; the folders below are looked at, too.")
    ],
    truth: Annotated[
        bool, typer.Option("--truth", help="Remove the truth of datasets, too. Counts and places stay.")
    ] = False,
    recoveries: Annotated[
        bool, typer.Option("--recoveries", help="Remove the paths that attacks rebuilt, too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
) -> None:
    """Remove what was derived from the truth: evaluations, finished cells of audits, reports, checkpoints, leftovers.

    Only what Rekindle wrote is touched; it is known by Rekindle's own descriptions beside it. Links are not followed. What
    is removed is unlinked as usual, so backups and snapshots of the disk may still hold it.
    """
    found = [trace for folder in folders for trace in find_traces(folder, truth=truth, recoveries=recoveries)]
    if not found:
        console.print("There is nothing to remove.")
        return
    for trace in found:
        console.print(f"{trace.path} ({trace.what})", highlight=False, markup=False, soft_wrap=True)
    if dry_run:
        return
    if not yes:
        typer.confirm(f"Remove these {len(found)}?", abort=True)
    for trace in found:
        remove_trace(trace)
    console.print(f"Removed {len(found)}.")
