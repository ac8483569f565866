"""`rekindle reproduce`: the paper's tables and figures, from raw data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from rekindle.cli.memory import PROCESS, MemoryLimit, check_memory, points_bytes
from rekindle.cli.shared import console, errors, showing_progress, table
from rekindle.evaluation import Spread
from rekindle.reproduce import Effort, Reproduction, Sources
from rekindle.reproduce import reproduce as run_reproduction
from rekindle.sources.synthetic import SyntheticCity


class HabitsEffort(StrEnum):
    """How hard Habits tries."""

    none = "none"
    low = "low"
    normal = "normal"


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the numbers.")] = Path(
        "reproduction"
    ),
    geolife: Annotated[
        Path | None, typer.Option(help="GeoLife: the folder with the people's folders, or the original zip.")
    ] = None,
    porto: Annotated[
        Path | None,
        typer.Option(
            help="Porto Taxi: the original train.csv, also gzipped. With less than the year, what there is."
        ),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with counts that were published with the paper (*aggregated*.csv, and *grid*.csv where there is "
            "one), at any depth. Without, the folder of --porto is searched."
        ),
    ] = None,
    orders: Annotated[
        int,
        typer.Option(min=1, help="Row orders for each of the paper's attacks: ties move accuracy by several points."),
    ] = 5,
    habits: Annotated[
        HabitsEffort, typer.Option(help="Effort of the Habits attack; normal takes a minute or two for each dataset.")
    ] = HabitsEffort.normal,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two row orders, no Habits and a smaller synthetic city: to see it work.")
    ] = False,
    memory_limit: MemoryLimit = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier reproduction.")] = False,
) -> None:
    """Compute the paper's tables and figures anew, beside the paper's own numbers.

    From raw data: GeoLife with 37, 38 and 43 users and Porto Taxi 3x3 and 7x7, as closely as text and notebooks define them.
    Whatever is not given is skipped and named; without any data, a synthetic city stands in, so that everyone can see it work.

    Writes index.html and index.md, and in figures/ each figure as SVG and PNG with the data behind it as CSV. With real data,
    some of these files show real people's paths.
    """
    city = SyntheticCity(people=20, days=3, step="30min") if quick else SyntheticCity(people=40, days=7, step="10min")
    effort = Effort(
        orders=2 if quick else orders,
        habits="none" if quick else habits.value,
        habits_seeds=3 if habits is HabitsEffort.low else 1,
    )
    raw = (points_bytes(str(source)) for source in (geolife, porto) if source is not None)
    check_memory(
        max(raw, default=0) + PROCESS * 3 // 2,
        memory_limit,
        what="The reproduction",
        way_out="Leave out --geolife or --porto",
    )
    with showing_progress("Attacks") as progress:
        found = run_reproduction(
            out,
            Sources(geolife, porto, published, city),
            effort=effort,
            overwrite=overwrite,
            progress=progress,
            tell=lambda text: errors.print(escape(text), highlight=False, soft_wrap=True),
        )
    show(found)


def show(found: Reproduction) -> None:
    """Print the accuracies beside the paper's."""
    rows = []
    for one in found.results:
        if not one.evaluations:
            continue
        row = [one.subject.name]
        for name in ("chance", "baseline", "enhanced", "habits"):
            several = one.evaluations.get(name)
            text = "–" if several is None else str(Spread.of([each.accuracy for each in several]))
            if one.subject.paper is not None and name in one.subject.paper.accuracy:
                text += f" ({one.subject.paper.accuracy[name]:.3f})"
            row.append(text)
        rows.append(row)
    if rows:
        console.print(
            table("Accuracy (in brackets: the paper's)", ["", "chance", "baseline", "enhanced", "habits"], rows)
        )
    for text in found.skipped:
        console.print(f"Skipped. {escape(text)}", highlight=False, soft_wrap=True)
    console.print(f"\n[bold]The page, to open in a browser: {escape(str(found.page))}[/bold]", soft_wrap=True)
