"""`rekindle audit`: who is exposed by a release, and what would protect them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from joblib import cpu_count
from rich.markup import escape

from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing import Audit
from rekindle.auditing import audit as run_audit
from rekindle.cli.memory import MemoryLimit, audit_bytes, check_memory, reading_bytes
from rekindle.cli.shared import STOPPED, console, errors, make_attack, showing_progress, table
from rekindle.defences import PRESETS, parse_defence
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.io import read_dataset, read_published
from rekindle.io.safety.files import output, remove_leftovers
from rekindle.model import Counts, Dataset, Release, Trajectories
from rekindle.report import words

ABOVE_LIMIT = 3
"""Exit code where the release is above the limit of --fail-above."""

CELLS, NUMBERS, REPORT = "cells", "audit.json", "report.html"


def audit(
    dataset: Annotated[
        Path, typer.Argument(help="A dataset folder, a table of counts, or a published table (csv or parquet).")
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for report.html, audit.json and finished cells. The same again goes on there."),
    ],
    attack: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(ATTACKS)}, or package:Class; may be repeated. Default: all of ours."),
    ] = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            help="What to try, such as 'suppress:below=10 + round:to=5' or a preset "
            f"({', '.join(PRESETS)}); may be repeated. Default: eight that suit the data. 'none': none."
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(help="For attacks that have one: low (a first look, for many defences), normal or high."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Row orders, each with its own draw of random defences.")] = 3,
    truth: Annotated[
        Path | None, typer.Option(help="Dataset folder with the people behind a published table.")
    ] = None,
    people: Annotated[
        int | None, typer.Option(min=1, help="How many people are counted, if an attacker would know it.")
    ] = None,
    include_truth: Annotated[
        bool, typer.Option("--include-truth", help="Put the true paths into the report. They are sensitive.")
    ] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Call people as in the truth, not 1, 2, ... by how exposed they are.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume/--no-resume", help="Use the cells that an earlier run left in OUT, or do all anew."),
    ] = True,
    fail_above: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Exit with 3 if the strongest attack has a larger advantage over chance than this, "
            "by the upper limit. Needs the truth.",
        ),
    ] = None,
    memory_limit: MemoryLimit = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: one for each core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to use instead, e.g. tcp://10.0.0.1:8786.")
    ] = None,
    locations: Annotated[
        Path | None, typer.Option(help="File of locations, where DATASET is a table and not a folder.")
    ] = None,
    step: Annotated[str | None, typer.Option(help="Interval of such a table, e.g. 10min.")] = None,
    cell_km: Annotated[
        float, typer.Option(min=0.001, help="Side of a cell, where a table names its places '(row, column)'.")
    ] = 1.0,
    read_as: Annotated[
        str, typer.Option(help="Whether a table is exact (counts) or protected (release). Default: by its numbers.")
    ] = "auto",
    absent: Annotated[
        str, typer.Option(help="What a missing row of a published table means: withheld or zero.")
    ] = "withheld",
) -> None:
    """Say how much of people's lives can be read out of a release, who is worst off, and what would help.

    Tries every attack on the release and on what every defence would make of it, beside chance and a naive attack, and
    writes a page to read and the same numbers as JSON. Stopped half-way, the same command goes on where it was.
    """
    way_out = "Audit fewer days, fewer people or coarser places, with fewer --workers, or without --attack habits"
    tables = [dataset / "truth.parquet", dataset / "counts.parquet"] if dataset.is_dir() else [dataset]
    check_memory(reading_bytes(*tables), memory_limit, what=f"Reading {dataset}", way_out=way_out)
    data: Dataset | Counts | Release
    if dataset.is_dir():
        data = read_dataset(dataset)
    else:
        published = read_published(
            dataset,
            locations,
            read_as=read_as,  # type: ignore[arg-type]
            absent=absent,  # type: ignore[arg-type]
            step=step,
            cell_km=cell_km,
        )
        data = published.data
        console.print(published.note, highlight=False, markup=False)
    people_behind = None if truth is None else _truth(truth)
    if fail_above is not None and people_behind is None and not (isinstance(data, Dataset) and data.truth):
        raise InvalidSetting(
            "--fail-above needs the truth: without it nobody knows how much of a recovery is right. "
            "Give a dataset folder with truth.parquet, or --truth."
        )
    if out.exists() and not out.is_dir():
        raise InvalidFile(out, "the audit needs a folder, but this is a file.")
    if out.is_dir() and any(out.iterdir()) and not (out / CELLS).is_dir():
        raise InvalidFile(out, "this folder holds other things than an audit; it was left as it is.")
    attacks = [_make(name, effort) for name in attack or ATTACKS]
    defences = None if defence is None else [parse_defence(text) for text in defence if text.strip() != "none"]
    if cluster is None:
        known = people_behind is not None or (isinstance(data, Dataset) and data.truth is not None)
        counts = data.counts if isinstance(data, Dataset) else data
        needed = audit_bytes(counts, attacks, seeds=seeds, workers=workers or cpu_count(), truth=known, people=people)
        check_memory(needed, memory_limit, what="The audit", way_out=way_out)
    with output(out, parents=True):
        _begin(out, resume=resume)
        try:
            with showing_progress("Cells") as progress:
                found = run_audit(
                    data,
                    truth=people_behind,
                    attacks=attacks,
                    defences=defences,
                    seeds=seeds,
                    people=people,
                    workers=workers,
                    cluster=cluster,
                    cache=out / CELLS,
                    progress=progress,
                )
            found.write_json(out / NUMBERS, names=names or include_truth)
            found.to_html(out / REPORT, include_truth=include_truth, names=names)
        except KeyboardInterrupt:
            console.print(
                f"Stopped. The finished cells are in {escape(str(out / CELLS))}; the same command goes on from there.",
                soft_wrap=True,
            )
            raise typer.Exit(STOPPED) from None
        except OSError:
            errors.print(
                "The finished cells are kept. When that is mended, the same command goes on from there.",
                soft_wrap=True,
            )
            raise
    show(found)
    console.print(f"\nReport:  [bold]{out / REPORT}[/bold]\nNumbers: {out / NUMBERS}")
    if fail_above is not None and found.exceeds(fail_above):
        share = found.given.strongest.advantage
        console.print(
            f"[bold red]Above the limit:[/bold red] the upper limit {share.high if share else 1:.3f} is larger than {fail_above:g}."
        )
        raise typer.Exit(ABOVE_LIMIT)


def _begin(out: Path, *, resume: bool) -> None:
    """Make the folder of an audit, for its owner alone: its cells are made from the truth."""
    out.mkdir(mode=0o700, exist_ok=True)
    (out / CELLS).mkdir(mode=0o700, exist_ok=True)
    remove_leftovers(out / CELLS)
    if not resume:
        for cell in (out / CELLS).glob("*.npz"):
            cell.unlink()


def show(found: Audit) -> None:
    """Print the answer, and every release in a row."""
    console.print(f"\n[bold]{words.headline(found)}[/bold] ({found.verdict.level})")
    for sentence in [*words.summary(found), *words.advice(found), *found.unknown]:
        console.print(f"- {sentence}", highlight=False, markup=False)
    rows = []
    for one in found.releases:
        best, use = one.strongest, one.utility
        share = (
            "unknown"
            if best.advantage is None
            else f"{best.advantage.value:.2f} ({best.advantage.low:.2f}–{best.advantage.high:.2f})"
        )
        accuracy = "unknown" if best.accuracy is None else f"{best.accuracy.value:.2f}"
        rows.append([one.label, best.attack, accuracy, share, "–" if use is None else f"{use['count_error']:.2f}"])
    head = ["release", "strongest", "accuracy", "advantage over chance", "error of counts"]
    console.print(table("What each release gives away, and what it costs", head, rows))
    for name, reason in found.left_out.items():
        console.print(f"Not tried: {name}. {reason}", highlight=False, markup=False)


def _make(name: str, effort: str | None) -> Attack:
    """Build an attack; effort is for those that have the setting."""
    plain = make_attack(name, {})
    return plain if effort is None or "effort" not in plain.settings() else make_attack(name, {"effort": effort})


def _truth(path: Path) -> Trajectories:
    truth = read_dataset(path).truth
    if truth is None:
        raise InvalidData(f"{path} holds no truth: there is no truth.parquet in it.")
    return truth
