"""`rekindle reproduce`: the paper's tables and figures, from raw data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rekindle.cli.console import console, note, print_json, say, showing_progress, table
from rekindle.cli.options import Format, MemoryLimit, Overwrite, Quiet
from rekindle.evaluation import Spread
from rekindle.io.safety.files import read_json
from rekindle.memory import PROCESS, check_memory, points_bytes
from rekindle.reproduce import Effort, Reproduction, Sources
from rekindle.reproduce import reproduce as run_reproduction
from rekindle.sources.synthetic import SyntheticCity


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the numbers.")] = Path(
        "reproduction"
    ),
    geolife: Annotated[
        Path | None, typer.Option(help="GeoLife: the folder with the people's folders, or the original zip.")
    ] = None,
    porto: Annotated[
        Path | None,
        typer.Option(help="Porto Taxi: the original train.csv, also gzipped. A part of the year works too."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Folder with counts that were published with the paper (*aggregated*.csv, and *grid*.csv where there is "
            "one), at any depth. Default: the folder of --porto."
        ),
    ] = None,
    orders: Annotated[
        int,
        typer.Option(min=1, help="Row orders for each of the paper's attacks: ties move accuracy by several points."),
    ] = 5,
    habits: Annotated[
        Literal["none", "low", "normal"],
        typer.Option(help="Effort of the Habits attack; normal takes a minute or two for each dataset."),
    ] = "normal",
    quick: Annotated[
        bool, typer.Option("--quick", help="Try it out: two row orders, no Habits and a smaller synthetic city.")
    ] = False,
    memory_limit: MemoryLimit = None,
    overwrite: Overwrite = False,
    output_format: Format = "text",
    quiet: Quiet = False,
) -> None:
    """Compute the paper's tables and figures.

    The results are shown beside the paper's own numbers: GeoLife with 37, 38 and 43 users and Porto Taxi 3x3 and 7x7,
    from raw data, as closely as text and notebooks define them. Data that is not given is skipped, and the page says
    so; without any data, a synthetic city is used instead.

    Writes index.html and index.md, and in figures/ each figure as SVG and PNG with the data behind it as CSV. With real data,
    some of these files show real people's paths.
    """
    city = SyntheticCity(people=20, days=3, step="30min") if quick else SyntheticCity(people=40, days=7, step="10min")
    effort = Effort(
        orders=2 if quick else orders,
        habits="none" if quick else habits,
        habits_seeds=3 if habits == "low" else 1,
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
            tell=note,
        )
    if output_format == "json":
        print_json(read_json(found.page.with_name("reproduction.json")))
    else:
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
        say(f"Skipped. {text}")
    say((f"\nThe page, to open in a browser: {found.page}", "bold"))
