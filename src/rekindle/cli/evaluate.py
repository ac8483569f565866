"""`rekindle evaluate`: compare a recovery with the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from rekindle.attacks.base import heading
from rekindle.auditing.work import evaluating
from rekindle.cli.console import console, print_json, say, showing_progress, table
from rekindle.cli.formats import Case, print_cases
from rekindle.cli.options import GateFormat, Mapping, MemoryLimit, Overwrite, Quiet
from rekindle.cli.shared import announce, check_output, label, read_input, short
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
            evaluation_bytes(size.people, size.steps, size.locations),
            memory_limit,
            what=f"Comparing {size.people:,} people at {size.steps:,} steps with the truth",
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
    method, orders = mapping or ("names" if found.named else "optimal"), (1,) if data.flows else ()
    with output(target):
        if method != "names":  # by which nobody is searched for
            sized = data.counts.part(slice(truth.steps))
            announce("The comparison", evaluating(sized, references=seeds * (2 + len(orders))))
        with showing_progress("Matching people") as progress:
            result = compare(
                found.trajectories, truth, mapping=method, leave_out=found.known_people, progress=progress
            )
            others = truth.without(found.known_people)
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
    show(heading(found.attack, found.settings), result, beside, sure, known=len(found.known_people))
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


def show(
    name: str,
    result: Evaluation,
    beside: ReferenceScores | None,
    sure: Confidence | None = None,
    *,
    known: int = 0,
) -> None:
    """Print the tables, and how it was scored where so many people were known or paths have names."""
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
    if result.mapping.method == "names":
        console.print(
            "Scored by name: each path is compared with the person it names. Chance and naive guess the names too."
        )
    if known:
        who = "The one person who was" if known == 1 else f"The {known:,} people who were"
        console.print(f"{who} known {'is' if known == 1 else 'are'} left out of the score.")
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
