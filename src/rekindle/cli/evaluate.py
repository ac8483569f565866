"""`rekindle evaluate`: compare a recovery with the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.markup import escape

from rekindle.cli.memory import MemoryLimit, check_memory, described_size, evaluation_bytes
from rekindle.cli.shared import check_output, console, label, short, showing_progress, table
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import METRICS, Evaluation, ReferenceScores, evaluate, reference_scores
from rekindle.evaluation.confidence import Confidence, assess_confidence
from rekindle.io import read_dataset, read_recovery
from rekindle.io.safety.files import output, write_json
from rekindle.model import Trajectories


def evaluate_command(
    recovery: Annotated[Path, typer.Argument(help="What `rekindle attack` wrote.")],
    dataset: Annotated[Path, typer.Argument(help="The dataset folder, with its truth.")],
    json: Annotated[
        Path | None, typer.Option(help="Where to write the numbers. Default: evaluation.json in RECOVERY.")
    ] = None,
    mapping: Annotated[
        str,
        typer.Option(
            help="How recovered people are matched with true ones: optimal (least total error) or greedy (Xu et al.)."
        ),
    ] = "optimal",
    seeds: Annotated[
        int,
        typer.Option(min=0, help="Over how many seeds chance and the naive attack are measured; 0 leaves them out."),
    ] = 5,
    memory_limit: MemoryLimit = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the JSON file if it is there.")] = False,
) -> None:
    """Say how much of the truth a recovery found, beside chance and a naive attack.

    Prints a table and writes the same numbers as JSON. A recovery of a part of the release is compared with that part.
    """
    if mapping not in ("optimal", "greedy"):
        raise InvalidSetting(f"--mapping is {mapping!r}; choose optimal or greedy.")
    method: Literal["optimal", "greedy"] = "greedy" if mapping == "greedy" else "optimal"
    check_output(json, (".json",), overwrite=overwrite)
    size = described_size(dataset)
    if size is not None:
        check_memory(
            evaluation_bytes(*size),
            memory_limit,
            what=f"Comparing {size[0]:,} people at {size[1]:,} steps with the truth",
            way_out="Compare fewer days, or fewer people",
        )
    found = read_recovery(recovery)
    truth = read_dataset(dataset).truth
    if truth is None:
        raise InvalidData(f"{dataset} has no truth.parquet, so there is nothing to compare with.")
    truth = same_steps(truth, found.trajectories)
    target = json or recovery / "evaluation.json"
    with output(target):
        with showing_progress("Matching people") as progress:
            result = evaluate(found.trajectories, truth, mapping=method, progress=progress)
            beside = reference_scores(truth, seeds=seeds, mapping=method) if seeds else None
            sure = None
            if found.confidence is not None:
                sure = assess_confidence(found.trajectories, found.confidence, truth, mapping=method)
        show(found.attack, result, beside, sure)
        write_json(target, to_json(found.attack, found.settings, result, beside, sure), private=True)
    console.print(f"The same numbers as JSON: [bold]{escape(str(target))}[/bold]", soft_wrap=True)


def same_steps(truth: Trajectories, recovered: Trajectories) -> Trajectories:
    """The part of the truth that a recovery is about."""
    if not recovered.steps:
        raise InvalidData("The recovery has no finished day yet.")
    offset, rest = divmod(recovered.calendar.start - truth.calendar.start, truth.calendar.step)
    if rest or offset < 0 or offset + recovered.steps > truth.steps:
        raise InvalidData(
            f"The recovery begins at {recovered.calendar.start} and has {recovered.steps} steps; "
            f"the truth begins at {truth.calendar.start} and has {truth.steps}."
        )
    return truth.part(slice(offset, offset + recovered.steps))


def show(name: str, result: Evaluation, beside: ReferenceScores | None, sure: Confidence | None = None) -> None:
    """Print the tables."""
    head = ["", name] + (["naive", "chance"] if beside else [])
    rows = []
    for metric in METRICS:
        row = [label(metric), short(metric.value(result))]
        if beside:
            row += [short(beside.naive[metric.name]), short(beside.chance[metric.name])]
        rows.append(row)
    console.print(table("How much was recovered", head, rows))
    rows = [
        [f"{k} places", f"{result.truth_uniqueness[k]:.3f}", f"{result.uniqueness[k]:.3f}"] for k in result.uniqueness
    ]
    console.print(table("People told apart by their most frequent places", ["", "truth", name], rows))
    if sure is not None:
        claims = sure.claims
        rows = [
            ["points", f"{claims.points:.1%}", _right(claims.points_right)],
            ["people", f"{claims.people:.1%}", _right(claims.people_right)],
        ]
        title = f"What {name} claims with {claims.level:.0%} confidence"
        console.print(table(title, ["", "claimed", "points of them that are right"], rows))
    if result.mapping_gap:
        console.print(f"The matching of people is proven to within {result.mapping_gap:.2%} of the least error.")


def _right(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.1%}"


def to_json(
    attack: str,
    settings: dict[str, Any],
    result: Evaluation,
    beside: ReferenceScores | None,
    sure: Confidence | None = None,
) -> dict[str, Any]:
    """The numbers of an evaluation in plain values."""
    values: dict[str, Any] = {"attack": attack, "settings": settings, "result": result.to_json()}
    people = result.per_person
    values["per_person"] = {
        "matched_truth": people.matched.tolist(),
        "accuracy": people.accuracy.tolist(),
        "mean_error_km": people.error_km.tolist(),
        "levenshtein_accuracy": people.levenshtein_accuracy.tolist(),
    }
    if sure is not None:
        values["confidence"] = sure.to_json()
    if beside:
        for name, spreads in (("chance", beside.chance), ("naive", beside.naive)):
            values[name] = {metric: vars(spread) for metric, spread in spreads.items()}
    return values
