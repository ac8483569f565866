"""`rekindle evaluate`: compare a recovery with the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from rekindle.cli.console import console, print_json, say, showing_progress, table
from rekindle.cli.formats import Case, print_cases
from rekindle.cli.options import GateFormat, Mapping, MemoryLimit, Overwrite, Quiet
from rekindle.cli.shared import check_output, label, read_input, short
from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.evaluation import Evaluation, Metric, PerPerson, ReferenceScores, Spread, reference_scores
from rekindle.evaluation import evaluate as compare
from rekindle.evaluation.confidence import Confidence, assess_confidence
from rekindle.io import read_recovery
from rekindle.io.recovery import EVALUATION
from rekindle.io.safety.files import output, write_json
from rekindle.memory import check_memory, described_size, evaluation_bytes


def evaluate(
    recovery: Annotated[Path, typer.Argument(help="The folder that `rekindle attack` wrote.")],
    dataset: Annotated[Path, typer.Argument(help="The dataset folder, with its ground truth.")],
    json: Annotated[
        Path | None, typer.Option(help="Where to write the numbers. Default: evaluation.json in RECOVERY.")
    ] = None,
    mapping: Mapping = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=0, help="Number of seeds over which chance and the naive attack are measured; 0 omits them."
        ),
    ] = 5,
    memory_limit: MemoryLimit = None,
    overwrite: Overwrite = False,
    output_format: GateFormat = "text",
    quiet: Quiet = False,
) -> None:
    """Compare a recovery with the ground truth.

    Prints how much was recovered, beside chance and a naive attack, and writes the same numbers as JSON. A recovery of a part
    of the release is compared with that part.
    """
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
    if not found.trajectories.steps:
        raise InvalidFile(recovery, "the recovery has no finished day yet.")
    if mapping == "names" and not found.named:
        raise InvalidSetting(
            "`mapping` is 'names', but this recovery does not say who is who; use 'optimal' or 'greedy'."
        )
    data = read_input(dataset)
    if data.truth is None:
        raise InvalidFile(dataset, "there is no truth.parquet in it, so there is nothing to compare with.")
    truth = data.truth.during(found.trajectories.calendar)
    target = json or recovery / EVALUATION
    with output(target):
        with showing_progress("Matching people") as progress:
            method = mapping or ("names" if found.named else "optimal")
            result = compare(
                found.trajectories, truth, mapping=method, leave_out=found.known_people, progress=progress
            )
            others, orders = truth.without(found.known_people), (1,) if data.flows else ()
            beside = reference_scores(others, seeds=seeds, mapping=method, orders=orders) if seeds else None
            sure = None
            if found.confidence is not None and not found.known_people:
                sure = assess_confidence(found.trajectories, found.confidence, truth, mapping=result.mapping)
        numbers = to_json(found.attack, found.settings, result, beside, sure)
        write_json(target, numbers, private=True)
    if output_format == "json":
        print_json(numbers)
        return
    if output_format != "text":
        print_cases(output_format, "evaluate", _cases(result, beside))
        return
    show(found.attack, result, beside, sure)
    say("The same numbers as JSON: ", (str(target), "bold"))


def _cases(result: Evaluation, beside: ReferenceScores | None) -> list[Case]:
    """One for each metric; none of them fails."""
    cases = []
    for metric in _said(result):
        other = ""
        if beside:
            others = reversed(beside.by_name.items())
            other = f" ({', '.join(f'{name} {short(scores[metric.name])}' for name, scores in others)})"
        cases.append(Case(name=metric.name, what=f"{short(result.scores[metric.name])}{other}: {metric.meaning}."))
    return cases


def _said(result: Evaluation) -> list[Metric[PerPerson]]:
    """The metrics that say something: not how much was missed where nothing was."""
    return [one for one in result.known if one.name != "missed" or result.missed]


def show(name: str, result: Evaluation, beside: ReferenceScores | None, sure: Confidence | None = None) -> None:
    """Print the tables."""
    others: dict[str, dict[str, Spread]] = dict(reversed(beside.by_name.items())) if beside else {}
    head = ["", name, *others]
    rows = []
    for metric in _said(result):
        beside_it = (short(scores[metric.name]) for scores in others.values())
        rows.append([label(metric), short(result.scores[metric.name]), *beside_it])
    console.print(table("How much was recovered", head, rows))
    rows = [
        [f"{k} location{'s' if k > 1 else ''}", f"{result.truth_uniqueness[k]:.3f}", f"{result.uniqueness[k]:.3f}"]
        for k in result.uniqueness
    ]
    console.print(table("People told apart by their most frequent locations", ["", "truth", name], rows))
    if sure is not None:
        claims = sure.claims
        rows = [
            ["points", f"{claims.points:.1%}", _right(claims.points_right)],
            ["people", f"{claims.people:.1%}", _right(claims.people_right)],
        ]
        title = f"What {name} claims with {claims.level:.0%} confidence"
        console.print(table(title, ["", "claimed", "points of them that are right"], rows))
    if result.mapping.gap:
        console.print(f"The matching of people is proven to within {result.mapping.gap:.2%} of the least error.")


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
    scores = ("accuracy", "precision", "accuracy_observed", "error_km", "missed", "levenshtein_accuracy")
    values["per_person"] = {"matched_recovered": people.matched.tolist()} | {
        name.replace("error_km", "mean_error_km"): _plain(getattr(people, name)) for name in scores
    }
    if sure is not None:
        values["confidence"] = sure.to_json()
    if beside:
        for name, spreads in beside.by_name.items():
            values[name] = {
                metric: None if np.isnan(spread.mean) else vars(spread) for metric, spread in spreads.items()
            }
    return values


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    """None where a number is not known."""
    return [None if np.isnan(value) else value for value in values.tolist()]
