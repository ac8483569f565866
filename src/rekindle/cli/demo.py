"""`rekindle demo`: audit a synthetic city, and explain what its counts gave away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text

from rekindle.attacks import Baseline, Enhanced, Habits
from rekindle.auditing import Audit
from rekindle.auditing import audit as run_audit
from rekindle.cli.audit import show
from rekindle.cli.console import console, say, showing_progress, table
from rekindle.cli.options import Overwrite, Quiet, WithFlows
from rekindle.cli.shared import command_line
from rekindle.defences import CoarserSpace, GeometricNoise, Suppress
from rekindle.io import write_dataset, write_trajectories
from rekindle.io.safety.files import output
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder
from rekindle.model import Dataset
from rekindle.sources.synthetic import SyntheticCity

ATTACKS = (Baseline(), Enhanced(), Habits(effort="low"))
DEFENCES = (Suppress(below=3), GeometricNoise(epsilon=1.0, per="event"), CoarserSpace(km=3.0))

REPORT = "report.html"
SENSITIVE = {
    REPORT: Sensitive("report of an audit with the truth"),
    "recovered.png": Sensitive("picture of a true path"),
    "audit.json": Sensitive("how exposed each person is"),
    "recovered.csv": Sensitive("recovered trajectories", "recovery"),
}


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the dataset, the report, the numbers and a picture.")] = Path(
        "demo"
    ),
    people: Annotated[int, typer.Option(min=2, help="People in the city.")] = 60,
    days: Annotated[int, typer.Option(min=1, help="Days of the release.")] = 7,
    seeds: Annotated[
        int, typer.Option(min=1, help="Row orders to average over: ties move accuracy by several points.")
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another city.")] = 0,
    flows: WithFlows = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Audit a synthetic city and explain what its counts give away."""
    overwrite = overwrite or not (out / REPORT).exists()  # a demo that was interrupted begins again
    check_new_folder(out, "demo", overwrite=overwrite)
    truth = SyntheticCity(people=people, days=days, step="10min", seed=seed).trajectories()
    counts = truth.counts()
    values = counts.values
    parts = (
        ("1. The city.", f"{people} people live in {len(counts.locations)} grid cells of 1 km for {days} days."),
        (
            "2. The release.",
            "Nobody's trajectory is published, only how many people were in each cell every 10 minutes:\n"
            f"   {counts.steps} x {len(counts.locations)} numbers, "
            f"{(values == 0).mean():.0%} of them 0 and {(values == 1).mean():.0%} of them 1.",
        ),
        (
            "3. The attacks.",
            "Every trajectory is recovered from these numbers alone, as they are and after some defences.",
        ),
    )
    console.print()
    for title, text in parts:
        console.print(Text.assemble((title, "bold"), " ", text))
    with output(out, parents=True):
        dataset = Dataset(
            counts, truth, {"source": "rekindle synthetic city", "seed": seed, "licence": "none needed"}
        )
        out.mkdir(exist_ok=True)
        mark_folder(out, "demo", SENSITIVE)
        moves = [truth.flows()] if flows else []
        write_dataset(
            out / "dataset", counts=counts, truth=truth, flows=moves, info=dataset.info, overwrite=overwrite
        )
        with showing_progress("Attacks") as progress:
            found = run_audit(
                dataset,
                attacks=ATTACKS,
                defences=DEFENCES,
                seeds=seeds,
                name=f"synthetic city {seed}",
                command=command_line(context.obj),
                progress=progress,
            )
        show_attacks(found, seeds)
        say(("\n4. What it means.", "bold"))
        show(found)
        draw_most_exposed(found, out / "recovered.png")
        write_trajectories(out / "recovered.csv", found.recovered, overwrite=True)
        found.write_json(out / "audit.json")
        found.to_html(out / REPORT, include_truth=True)  # nobody's truth: the city is made up
    say(
        f"\n   numbers:                {out}/audit.json\n   all recovered paths:    {out}/recovered.csv"
        f"\n   one of them:            {out}/recovered.png"
        f"\n   dataset, to try:        {out}/dataset, e.g. rekindle attack {out}/dataset --out {out}/recovery\n\n   ",
        (f"The report, to open in a browser: {out / REPORT}", "bold"),
    )


def show_attacks(found: Audit, seeds: int) -> None:
    """Print what each attack reached on the release as it is."""
    rows = []
    for name, risk in found.given.attacks.items():
        if risk.accuracy is not None and risk.error_km is not None and name != "perfect":
            limits = f"{risk.accuracy.value:.3f} ({risk.accuracy.low:.3f}–{risk.accuracy.high:.3f})"
            rows.append([name, limits, f"{risk.error_km:.2f}"])
    title = f"Mean over {seeds} row orders, with 95% limits"
    console.print(table(title, ["", "accuracy", "mean error (km)"], rows))


def draw_most_exposed(found: Audit, path: Path) -> None:
    """Draw a person whose time at home and time elsewhere were both recovered well."""
    from rekindle.report.figures import draw_person, save_figure  # matplotlib takes a second to load

    if found.truth is None or found.matched is None:
        raise RuntimeError("a demo has its truth")
    right = found.recovered.cells[found.matched] == found.truth.cells
    home = np.array([cells == np.bincount(cells).argmax() for cells in found.truth.cells])
    score = [
        min(hit[at].mean(), hit[~at].mean() if (~at).mean() > 0.2 else 0.0)
        for hit, at in zip(right, home, strict=True)
    ]
    person = int(np.argmax(score))
    attack = found.given.strongest.attack
    figure = draw_person(
        found.recovered, found.truth, recovered=int(found.matched[person]), true=person, attack=attack
    )
    save_figure(figure, path)
