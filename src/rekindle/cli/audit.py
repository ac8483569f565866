"""`rekindle audit`: who is exposed by a release, and what would protect them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from joblib import cpu_count

from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing import AUDIT, Audit, Estimate, ReleaseRisk, begin_output
from rekindle.auditing import audit as run_audit
from rekindle.cli.console import console, note, print_json, say, showing_progress, table
from rekindle.cli.options import (
    Absent,
    CellSide,
    Cluster,
    Effort,
    Format,
    LocationsFile,
    MemoryLimit,
    Quiet,
    TableStep,
    Workers,
)
from rekindle.cli.running import STOPPED
from rekindle.cli.shared import make_attack, read_truth
from rekindle.defences import PRESETS, parse_defence
from rekindle.errors import InvalidSetting
from rekindle.io import read_dataset, read_published
from rekindle.io.safety.files import output, read_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder
from rekindle.memory import audit_bytes, check_memory, reading_bytes
from rekindle.model import Counts, Dataset, Release
from rekindle.report import words

FAILED_GATE = 3
"""Exit code where the release is above a limit of --fail-above or --fail-if-exposed."""

NUMBERS, REPORT = "audit.json", "report.html"
SENSITIVE = {
    REPORT: Sensitive("report of an audit with the truth"),
    NUMBERS: Sensitive("how exposed each person is"),
}


def audit(
    dataset: Annotated[
        Path, typer.Argument(help="A dataset folder, a table of counts, or a published table (csv or parquet).")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for report.html, audit.json and finished tasks. Run the same command again to resume."
        ),
    ],
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{', '.join(ATTACKS)}, or package:Class for your own; may be repeated. Default: all built-in attacks."
        ),
    ] = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            help="A defence to try, such as 'suppress:below=10 + round:to=5', or a preset "
            f"({', '.join(PRESETS)}); may be repeated. Default: eight that suit the data. Use 'none' to try no defence."
        ),
    ] = None,
    effort: Effort = None,
    seeds: Annotated[int, typer.Option(min=1, help="Row orders, each with its own draw of random defences.")] = 3,
    truth: Annotated[
        Path | None, typer.Option(help="Dataset folder with the ground truth behind a published table.")
    ] = None,
    people: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of people that the attacker takes to be counted. Default: the true number, which is normally "
            "public; without ground truth, a guess from the release. An attacker who has to guess is shown beside it.",
        ),
    ] = None,
    membership: Annotated[
        Literal["none", "exact", "full"],
        typer.Option(
            help="Test who is in the data at all: for someone who knows everyone else (exact), or also by classifiers, which "
            "takes minutes (full; needs the extra membership)."
        ),
    ] = "exact",
    include_truth: Annotated[
        bool, typer.Option("--include-truth", help="Put the true trajectories into the report. They are sensitive.")
    ] = False,
    names: Annotated[bool, typer.Option("--names", help="Show people's real IDs instead of ranks.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume", help="Use the finished tasks of an earlier run in OUT, or run all tasks again."
        ),
    ] = True,
    fail_above: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Exit with code 3 if the upper limit of the strongest attack's advantage over chance is above this. "
            "Needs the ground truth.",
        ),
    ] = None,
    fail_if_exposed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Exit with code 3 if the strongest attack exposes more than N people. Needs the ground truth.",
        ),
    ] = None,
    exposed_above: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Share of a person's time that must be recovered to count for --fail-if-exposed."
        ),
    ] = 0.5,
    memory_limit: MemoryLimit = None,
    workers: Workers = None,
    cluster: Cluster = None,
    locations: LocationsFile = None,
    step: TableStep = None,
    cell_km: CellSide = 1.0,
    read_as: Annotated[
        Literal["auto", "counts", "release"],
        typer.Option(help="Whether a table is exact (counts) or protected (release). auto: by its numbers."),
    ] = "auto",
    absent: Absent = "withheld",
    output_format: Format = "text",
    quiet: Quiet = False,
) -> None:
    """Find out how exposed people are by a release, and what would protect them.

    Tries every attack on the release and on what each defence would make of it, beside chance and a naive attack. Writes a
    report and the same numbers as JSON. If interrupted, run it again to resume.
    """
    way_out = "Audit fewer days, fewer people or coarser locations, with fewer --workers, or without --attack habits"
    tables = [dataset / "truth.parquet", dataset / "counts.parquet"] if dataset.is_dir() else [dataset]
    check_memory(reading_bytes(*tables), memory_limit, what=f"Reading {dataset}", way_out=way_out)
    data: Dataset | Counts | Release
    how_read = None
    if dataset.is_dir():
        data = read_dataset(dataset)
    else:
        published = read_published(dataset, locations, read_as=read_as, absent=absent, step=step, cell_km=cell_km)
        data, how_read = published.data, published.note
        note(how_read)
    people_behind = None if truth is None else read_truth(truth)
    gate = "fail_above" if fail_above is not None else "fail_if_exposed" if fail_if_exposed is not None else None
    if gate is not None and people_behind is None and not (isinstance(data, Dataset) and data.truth):
        raise InvalidSetting(
            f"`{gate}` needs the ground truth, without which nobody knows how much of a recovery is right. "
            "Give a dataset folder with truth.parquet, or `truth`.",
            gate,
            "truth",
        )
    check_new_folder(out, AUDIT, overwrite=True)
    attacks = [_make(name, effort) for name in attack or ATTACKS]
    defences = None if defence is None else [parse_defence(text) for text in defence if text.strip() != "none"]
    if cluster is None:
        known = people_behind is not None or (isinstance(data, Dataset) and data.truth is not None)
        counts = data.counts if isinstance(data, Dataset) else data
        needed = audit_bytes(counts, attacks, seeds=seeds, workers=workers or cpu_count(), truth=known, people=people)
        check_memory(needed, memory_limit, what="The audit", way_out=way_out)
    with output(out, parents=True):
        tasks = begin_output(out, resume=resume)
        try:
            with showing_progress("Tasks") as progress:
                found = run_audit(
                    data,
                    truth=people_behind,
                    attacks=attacks,
                    defences=defences,
                    seeds=seeds,
                    people=people,
                    membership=membership,
                    note=how_read,
                    workers=workers,
                    cluster=cluster,
                    cache=tasks,
                    progress=progress,
                )
            if found.truth is not None:
                mark_folder(out, AUDIT, SENSITIVE)
            found.write_json(out / NUMBERS, names=names)
            found.to_html(out / REPORT, include_truth=include_truth, names=names)
        except KeyboardInterrupt:
            note(f"Stopped. Finished tasks are in {tasks}. Run the same command again to resume.")
            raise typer.Exit(STOPPED) from None
        except OSError:
            note("Finished tasks are kept. Once this is fixed, run the same command again to resume.")
            raise
    if output_format == "json":
        print_json(read_json(out / NUMBERS))
    else:
        show(found)
        say("\nReport:  ", (str(out / REPORT), "bold"), f"\nNumbers: {out / NUMBERS}")
    failed = []
    if fail_above is not None and found.exceeds(fail_above):
        failed.append(f"The upper limit of the advantage over chance is above {fail_above:g}.")
    if fail_if_exposed is not None and found.exposes(more_than=fail_if_exposed, above=exposed_above):
        failed.append(f"More than {fail_if_exposed} people are exposed.")
    for reason in failed:
        note(f"Failed. {reason}")
    if failed:
        raise typer.Exit(FAILED_GATE)


def show(found: Audit) -> None:
    """Print the answer, and every release in a row."""
    say(("\n" + words.headline(found), "bold"), f" ({found.verdict.level})")
    for sentence in [*words.summary(found), *words.advice(found), *found.unknown, *found.warnings]:
        console.print(f"- {sentence}")
    head = ["release", "strongest", "advantage", "if guessed", "exposed", "error"]
    rows = [[one.label, *_cells(one)] for one in found.releases]
    console.print(table("What each release gives away, and what it costs", head, rows))
    console.print(
        "Advantage: over chance, with its limits. If guessed: where the attacker has to guess the number of people. Error: how "
        "far the published counts are off, as a share."
    )
    for name, reason in found.left_out.items():
        console.print(f"Not tried: {name}. {reason}")


def _cells(one: ReleaseRisk) -> list[str]:
    best = one.strongest
    exposed = "–" if one.exposed is None else f"{one.exposed.half.people:,} of {one.exposed.half.of:,}"
    return [
        best.attack,
        "unknown" if best.advantage is None else _limits(best.advantage),
        "–" if one.guessed is None else f"{one.guessed.advantage.value:.2f}",
        exposed,
        "–" if one.utility is None else f"{one.utility['count_error']:.2f}",
    ]


def _limits(value: Estimate) -> str:
    return f"{value.value:.2f} ({value.low:.2f}–{value.high:.2f})"


def _make(name: str, effort: str | None) -> Attack:
    """Build an attack; effort is for those that have the setting."""
    plain = make_attack(name, {})
    return plain if effort is None or "effort" not in plain.settings() else make_attack(name, {"effort": effort})
