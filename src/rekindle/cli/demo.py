"""`rekindle demo`: attack a synthetic city, score and explain it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape

from rekindle.attacks import ATTACKS, Recovery
from rekindle.cli.shared import console, label, make_attack, short, showing_progress, table
from rekindle.evaluation import METRICS, Evaluation, Spread, evaluate, yardsticks
from rekindle.io import write_dataset, write_trajectories
from rekindle.io.files import check_new_folder, write_json
from rekindle.sources.synthetic import SyntheticCity


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the dataset, the recovery, the numbers and the picture.")
    ] = Path("demo"),
    people: Annotated[int, typer.Option(min=2, help="People in the city.")] = 60,
    days: Annotated[int, typer.Option(min=1, help="Days of the release.")] = 7,
    seeds: Annotated[
        int, typer.Option(min=1, help="Row orders to average over: ties move accuracy by several points.")
    ] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another city.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier demo wrote.")] = False,
) -> None:
    """Make a synthetic city, publish its counts, attack them, and say what they gave away."""
    check_new_folder(out, overwrite=overwrite)
    city = SyntheticCity(people=people, days=days, step="10min", seed=seed)
    truth = city.trajectories()
    counts = truth.counts()
    console.print(
        f"\n[bold]1. The city.[/bold] {people} people live in {len(counts.locations)} cells of 1 km for {days} days. "
        f"\n[bold]2. The release.[/bold] Nobody's path is published, only how many people were in each cell every 10 minutes:"
        f"\n   {counts.steps} x {len(counts.locations)} numbers, "
        f"{(counts.values == 0).mean():.0%} of them 0 and {(counts.values == 1).mean():.0%} of them 1."
        "\n[bold]3. The attack.[/bold] Every path is rebuilt from these numbers alone."
    )
    write_dataset(
        out / "dataset",
        counts=counts,
        truth=truth,
        info={"source": "rekindle synthetic city", "seed": seed, "licence": "made up; no rights reserved"},
        overwrite=overwrite,
    )
    results: dict[str, list[Evaluation]] = {}
    last: dict[str, Recovery] = {}
    with showing_progress("Attacks") as progress:
        total, done = len(ATTACKS) * seeds, 0
        for name in ATTACKS:
            for order in range(seeds):
                last[name] = make_attack(name, {"seed": order}).recover(counts)
                results.setdefault(name, []).append(evaluate(last[name].trajectories, truth))
                done += 1
                progress(done, total)
        beside = yardsticks(truth, seeds=seeds)
    accuracy = {name: Spread.of([one.accuracy for one in found]) for name, found in results.items()}
    columns = [beside.chance, beside.naive]
    columns += [{m.name: Spread.of([m.value(one) for one in found]) for m in METRICS} for found in results.values()]
    rows = [[label(m), *(short(column[m.name]) for column in columns)] for m in METRICS]
    console.print(table(f"Mean ± spread over {seeds} row orders", ["", "chance", "naive", *results], rows))

    best = max(accuracy, key=lambda name: accuracy[name].mean)
    result = results[best][-1]
    exposed = int(np.argmax(result.per_person.accuracy))
    chance = beside.chance["accuracy"].mean
    share = (accuracy[best].mean - chance) / (1 - chance) if chance < 1 else 1.0
    top = result.per_person.accuracy
    console.print(
        f"\n[bold]4. What it means.[/bold] The {best} attack puts people in the right cell {accuracy[best].mean:.0%} of the time; "
        f"dealing them out at random, {chance:.0%}."
        f"\n   That is {share:.0%} of the way from guessing to knowing everything. "
        f"For {np.mean(top >= 0.5):.0%} of the people at least half of the time was found, "
        f"for the most exposed one {top[exposed]:.0%}."
        f"\n   {result.truth_uniqueness[2]:.0%} of the people are the only ones with their two most frequent cells, "
        "so a found path soon has a name."
    )
    from rekindle.report.figures import draw_person, save_figure  # matplotlib takes a second to load

    figure = draw_person(
        last[best].trajectories,
        truth,
        recovered=exposed,
        true=int(result.per_person.matched[exposed]),
        attack=best,
    )
    save_figure(figure, out / "recovered.png")
    write_trajectories(out / "recovered.csv", last[best].trajectories, overwrite=True)
    summary = {
        "people": people,
        "steps": counts.steps,
        "chance": vars(beside.chance["accuracy"]),
        "naive": vars(beside.naive["accuracy"]),
        "accuracy": {name: vars(spread) for name, spread in accuracy.items()},
    }
    write_json(out / "summary.json", summary)
    folder = escape(str(out))
    console.print(
        f"\n   picture of that person: [bold]{folder}/recovered.png[/bold]"
        f"\n   all recovered paths:    {folder}/recovered.csv\n   numbers:                {folder}/summary.json"
        f"\n   dataset, to play with:  {folder}/dataset, e.g. rekindle attack {folder}/dataset --out {folder}/recovery",
        soft_wrap=True,
    )
