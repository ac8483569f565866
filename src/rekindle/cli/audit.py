"""`rekindle audit`: who is exposed by a release, and what would protect them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing import AUDIT, TASKS, Audit, Estimate, Forecast, ReleaseRisk, begin_output
from rekindle.auditing import audit as run_audit
from rekindle.cli.console import console, note, print_json, say, showing_progress, table
from rekindle.cli.formats import Case, print_cases
from rekindle.cli.options import (
    Absent,
    CellSide,
    Cluster,
    Effort,
    GateFormat,
    KnownPeople,
    LocationsFile,
    MemoryLimit,
    Priors,
    Published,
    Quiet,
    Resume,
    Seed,
    Seeds,
    TableStep,
    TimeBudget,
    Window,
    Workers,
)
from rekindle.cli.running import STOPPED, in_flags
from rekindle.cli.shared import command_line, make_attack, no_setting, read_prior, read_truth, takes
from rekindle.defences import PRESETS, format_defence, parse_defence
from rekindle.errors import InvalidSetting
from rekindle.io import read_dataset, read_published
from rekindle.io.safety.files import output, read_json
from rekindle.io.safety.folders import Sensitive, check_new_folder, mark_folder
from rekindle.memory import check_memory, free_memory, parse_size, reading_bytes, size
from rekindle.model import Counts, Dataset, Flows, Release
from rekindle.progress import duration
from rekindle.report import words

FAILED_GATE = 3
"""Exit code where the release is above a limit of --fail-above or --fail-if-exposed."""

LONG_SECONDS = 120
"""An audit that takes longer than that is told what would be faster."""

NUMBERS, REPORT = "audit.json", "report.html"
SENSITIVE = {
    REPORT: Sensitive("report of an audit with the truth"),
    NUMBERS: Sensitive("how exposed each person is"),
}


Attacks = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        help=f"{', '.join(ATTACKS)}, or package:Class for your own; may be repeated. Default: all built-in attacks that "
        "the size of the data allows.",
    ),
]


def audit(
    context: typer.Context,
    dataset: Annotated[
        Path, typer.Argument(help="A dataset folder, a table of counts, or a published table (CSV or Parquet).")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for report.html, audit.json and finished tasks. Run the same command again to resume."
        ),
    ],
    attack: Attacks = None,
    prior: Priors = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            help="A defence to try, such as 'suppress:below=10 + round:to=5', or a preset "
            f"({', '.join(PRESETS)}); may be repeated. Default: up to eight that suit the data, fewer for many people. Use "
            "'none' to try no defence."
        ),
    ] = None,
    release: Published = None,
    window: Window = None,
    effort: Effort = None,
    seeds: Seeds = None,
    seed: Seed = 0,
    truth: Annotated[
        Path | None, typer.Option(help="Dataset folder with the ground truth behind a published table.")
    ] = None,
    people: KnownPeople = None,
    sample_people: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Audit only N people of a dataset folder, drawn at random, as if there were no others. Needs the ground truth.",
        ),
    ] = None,
    first_days: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Audit only the first N days of a dataset folder.")
    ] = None,
    membership: Annotated[
        Literal["none", "exact", "full"],
        typer.Option(
            help="Test who is in the data at all: for someone who knows everyone else (exact), or also by classifiers, which "
            "takes minutes (full; needs the extra membership)."
        ),
    ] = "exact",
    thorough: Annotated[
        bool | None,
        typer.Option(
            "--thorough/--brief",
            help="Also try the second best repair, an attacker who has to guess the number of people, and the first days alone. "
            "Default: by the size of the data.",
            show_default=False,
        ),
    ] = None,
    time_budget: TimeBudget = None,
    include_truth: Annotated[
        bool, typer.Option("--include-truth", help="Put the true trajectories into the report. They are sensitive.")
    ] = False,
    names: Annotated[bool, typer.Option("--names", help="Show people's real IDs instead of ranks.")] = False,
    resume: Resume = True,
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
    output_format: GateFormat = "text",
    quiet: Quiet = False,
) -> None:
    """Find out how much a release exposes people, and what would protect them.

    Runs attacks, beside chance and a naive attack, on the release and on what each defence would make of it.
    First prints how long that will take, what is left out, and the command that repeats the choice. Writes a report,
    which grows during the audit, and the same numbers as JSON. If interrupted, run it again to resume.
    """
    way_out = "Audit fewer days (--first-days), fewer people (--sample-people) or coarser locations"
    needed = reading_bytes(dataset, people=sample_people, days=first_days)
    check_memory(needed, memory_limit, what=f"Reading {dataset}", way_out=way_out)
    data: Dataset | Counts | Flows | Release
    how_read = None
    if dataset.is_dir():
        try:
            data = read_dataset(dataset, people=sample_people, days=first_days, seed=seed)
        except InvalidSetting as error:  # `people` has another meaning here
            text = str(error).replace("`people`", "`sample_people`").replace("`days`", "`first_days`")
            raise InvalidSetting(text) from None
        how_read = _part(data, sample_people, first_days)
    elif sample_people is not None or first_days is not None:
        only = "sample_people" if sample_people is not None else "first_days"
        raise InvalidSetting(f"`{only}` works only on a dataset folder; {dataset} is a table.")
    else:
        published = read_published(dataset, locations, read_as=read_as, absent=absent, step=step, cell_km=cell_km)
        data, how_read = published.data, in_flags(published.note, context)
    if how_read is not None:
        note(how_read)
    people_behind = None if truth is None else read_truth(truth)
    gate = "fail_above" if fail_above is not None else "fail_if_exposed" if fail_if_exposed is not None else None
    if gate is not None and people_behind is None and not (isinstance(data, Dataset) and data.truth):
        raise InvalidSetting(
            f"`{gate}` needs the ground truth, without which nobody knows how much of a recovery is right. "
            "Give a dataset folder with truth.parquet, or `truth`."
        )
    check_new_folder(out, AUDIT, overwrite=True)
    attacks = make_attacks(attack, effort)
    priors = [read_prior(text) for text in prior or ()]
    defences = None if defence is None else [parse_defence(text) for text in defence if text.strip() != "none"]

    def announce(ahead: Forecast) -> None:
        if cluster is None:
            lighter = _ways_out(ahead, memory_limit, context) or way_out
            check_memory(ahead.memory_bytes, memory_limit, what="The audit", way_out=lighter)
        _announce(ahead, context, time_budget)
        begin_output(out, resume=resume)

    def write(found: Audit) -> None:
        found = replace(found, omitted=tuple(in_flags(sentence, context) for sentence in found.omitted))
        if found.truth is not None:
            mark_folder(out, AUDIT, SENSITIVE)
        found.write_json(out / NUMBERS, names=names)
        found.to_html(out / REPORT, include_truth=include_truth, names=names)

    with output(out, parents=True):
        if out.is_dir():
            begin_output(out, resume=resume)
        with resumable("Audit", context, REPORT) as usual:
            found = run_audit(
                data,
                truth=people_behind,
                release=release,
                window=window,
                attacks=attacks,
                priors=priors,
                defences=defences,
                membership=membership,
                thorough=thorough,
                note=how_read,
                announce=announce,
                so_far=write,
                **usual,
            )
            write(found)
    gates = _gates(found, fail_above, fail_if_exposed, exposed_above)
    if output_format == "json":
        print_json(read_json(out / NUMBERS))
    elif output_format == "text":
        show(found)
        say("\nReport:  ", (str(out / REPORT), "bold"), f"\nNumbers: {out / NUMBERS}")
    else:
        told = [Case(name="warning", what=sentence, level="warning") for sentence in found.warnings]
        verdict = Case(name="verdict", what=f"{words.headline(found)} ({found.verdict.level})")
        print_cases(output_format, "audit", [*gates, verdict, *told])
    for gate_case in (failed := [one for one in gates if one.failed]):
        note(f"Failed. {gate_case.what}")
    if failed:
        raise typer.Exit(FAILED_GATE)


def _part(data: Dataset, sample: int | None, first_days: int | None) -> str | None:
    """Say which part of a dataset is audited; None for all of it."""
    parts = []
    if sample is not None:
        parts.append(f"{sample:,} of {data.info['drawn_from']:,} people, drawn at random, as if there were no others")
    if first_days is not None:
        parts.append("the first day" if first_days == 1 else f"the first {first_days} days")
    if not parts:
        return None
    told = f"Only a part is audited: {', and '.join(parts)}."
    if sample is not None:
        told += " An audit of the whole release may find more, or less."
    return told if first_days is None else told + " More days may expose more."


def _gates(found: Audit, fail_above: float | None, fail_if_exposed: int | None, exposed_above: float) -> list[Case]:
    """One case for each limit that was set."""
    gates = []
    best = found.given.strongest
    if fail_above is not None and best.advantage is not None:
        above = found.exceeds(fail_above)
        what = f"The upper limit of the advantage over chance is {best.advantage.high:.3f} ({best.attack})"
        what += f", above {fail_above:g}." if above else f"; the limit is {fail_above:g}."
        gates.append(Case(name="fail-above", what=what, failed=above))
    if fail_if_exposed is not None:
        above = found.exposes(more_than=fail_if_exposed, above=exposed_above)
        what = f"{'More' if above else 'No more'} than {fail_if_exposed} people have more than {exposed_above:.0%} of their time "
        gates.append(Case(name="fail-if-exposed", what=what + "recovered, clearly above chance.", failed=above))
    if gates and found.unfinished:
        gates.append(Case(name="finished", what="An audit that is not finished shows no limit to hold.", failed=True))
    return gates


def _announce(ahead: Forecast, context: typer.Context, time_budget: str | None) -> None:
    """Say what is going to be done, what that takes, and what would be faster."""
    cores = "one core" if ahead.cores == 1 else f"{ahead.cores} cores"
    memory = f", and about {size(ahead.memory_bytes)} of memory" if ahead.memory_bytes else ""
    note(f"About {ahead.tasks} tasks, {duration(ahead.seconds)} on {cores}{memory}.")
    if ahead.omitted:
        why = "by the size of the data" if time_budget is None else f"for {time_budget} on this machine"
        note(f"Chosen {why}. To repeat exactly this: {_explicit(ahead, context)}")
        for sentence in ahead.omitted:
            note(f"- {in_flags(sentence, context)}")
    if ahead.seconds > LONG_SECONDS and ahead.faster:
        ways = [f"{in_flags(f'`{way}`', context)} (about {duration(seconds)})" for way, seconds in ahead.faster]
        note(f"Faster: {', '.join(ways)}.")


def _explicit(ahead: Forecast, context: typer.Context) -> str:
    """The command that repeats what was chosen."""
    typed = list(context.obj or ["rekindle", "audit"])
    for at, word in enumerate(typed):
        if word.startswith("--time-budget"):
            del typed[at : at + (1 if "=" in word else 2)]
            break
    plan, chosen = ahead.plan, ahead.chosen
    if "attacks" in chosen:
        typed += [word for name in plan.attacks for word in ("--attack", name)]
        settings = [one.settings() for one in plan.attacks.values()]
        typed += [
            word
            for effort in {str(one["effort"]) for one in settings if "effort" in one}
            for word in ("--effort", effort)
        ]
    if "seeds" in chosen:
        typed += ["--seeds", str(plan.seeds)]
    if "defences" in chosen:
        defences = [format_defence(one) for one in plan.defences] or ["none"]
        typed += [word for one in defences for word in ("--defence", one)]
    if "thorough" in chosen:
        typed.append("--thorough" if plan.thorough else "--brief")
    return shlex.join(typed)


def _ways_out(ahead: Forecast, limit: str | None, context: typer.Context) -> str | None:
    """What would fit into the memory that there is; None where nothing would."""
    allowed = min(size for size, _ in free_memory()) if limit is None else parse_size(limit)
    fits = [in_flags(f"`{way}`", context) for way, needed in ahead.lighter if needed <= allowed]
    return f"Use {fits[0]}" if fits else None


def show(found: Audit) -> None:
    """Print the answer, and every release in a row."""
    say(("\n" + words.headline(found), "bold"), f" ({found.verdict.level})")
    say((words.decision(found), "bold"))
    for sentence in found.unfinished:
        console.print(f"! {sentence}")
    for sentence in [*words.summary(found), *words.advice(found), *found.unknown, *found.warnings]:
        console.print(f"- {sentence}")
    head = ["release", "strongest", "advantage", "if guessed", "exposed", "error"]
    rows = [[one.label, *_cells(found, one)] for one in found.releases]
    console.print(table("What each release gives away, and what it costs", head, rows))
    console.print(
        "Advantage: over chance, with its limits. If guessed: where the attacker has to guess the number of people. Error: how "
        f"far the published {'counts' if found.published == 'counts' else 'flows between locations'} are off, as a share."
    )
    for sentence in words.informed(found):
        console.print(f"- {sentence}")
    for name, reason in found.left_out.items():
        console.print(f"Not tried: {name}. {reason}")


def _cells(found: Audit, one: ReleaseRisk) -> list[str]:
    best = one.strongest
    exposed = "–" if one.exposed is None else f"{one.exposed.half.people:,} of {one.exposed.half.of:,}"
    return [
        best.attack,
        "unknown" if best.advantage is None else _limits(best.advantage),
        "–" if one.guessed is None else f"{one.guessed.advantage.value:.2f}",
        exposed,
        "–" if one.utility is None else f"{found.loss(one):.2f}",
    ]


def _limits(value: Estimate) -> str:
    return f"{value.value:.2f} ({value.low:.2f}–{value.high:.2f})"


def make_attacks(names: Sequence[str] | None, effort: str | None) -> list[Attack] | None:
    """Build attacks; effort is for those that have the setting, at least one. None where neither was asked for."""
    if names is None and effort is None:
        return None
    names = names or list(ATTACKS)
    plain = [make_attack(name, {}) for name in names]
    if effort is None:
        return plain
    able = [takes(type(one), "effort") for one in plain]
    if not any(able):
        raise no_setting("effort", f"{' and '.join(names)} {'does' if len(names) == 1 else 'do'} not have")
    return [
        make_attack(name, {"effort": effort}) if has else one
        for name, one, has in zip(names, plain, able, strict=True)
    ]


@contextmanager
def resumable(what: str, context: typer.Context, report: str) -> Iterator[dict[str, Any]]:
    """Show how far work on a dataset is, and what is kept of it if it ends before its end; gives the settings of all such work."""
    typed, tasks = context.params, context.params["out"] / TASKS
    usual = {name: typed[name] for name in ("seeds", "seed", "people", "time_budget", "workers", "cluster")}
    usual |= {"name": typed["dataset"].resolve().name, "command": command_line(context.obj), "cache": tasks}
    shown = typed["out"] / report
    earlier = shown.stat().st_mtime_ns if shown.is_file() else None  # of an audit that may have been another
    try:
        with showing_progress(what, share=True) as progress:
            yield usual | {"progress": progress}
    except KeyboardInterrupt:
        new = shown.is_file() and shown.stat().st_mtime_ns != earlier
        so_far = f" What they show so far is in {shown}." if new else ""
        note(f"Stopped. Finished tasks are in {tasks}.{so_far} Run the same command again to resume.")
        raise typer.Exit(STOPPED) from None
    except OSError:
        note("Finished tasks are kept. Once this is fixed, run the same command again to resume.")
        raise
