"""`rekindle recommend`: the least lossy release under limits of risk."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rekindle.auditing import AUDIT, FAMILIES, Candidate, Forecast, Recommendation, begin_output
from rekindle.auditing import recommend as run_recommend
from rekindle.cli.audit import FAILED_GATE, NUMBERS, REPORT, SENSITIVE, Attacks, make_attacks, resumable
from rekindle.cli.console import console, note, print_json, say, table
from rekindle.cli.defend import show_budgets
from rekindle.cli.options import (
    Cluster,
    Effort,
    Format,
    KnownPeople,
    MemoryLimit,
    Overwrite,
    PublicLocations,
    Quiet,
    ReleaseOf,
    Resume,
    Seed,
    Seeds,
    TimeBudget,
    Window,
    Workers,
)
from rekindle.cli.running import in_flags
from rekindle.defences import Chain
from rekindle.errors import InvalidFile, InvalidSetting, OutputExists
from rekindle.evaluation import UTILITIES
from rekindle.io import read_dataset, read_locations, write_locations, write_release
from rekindle.io.safety.files import output, read_json
from rekindle.io.safety.folders import check_new_folder, mark_folder
from rekindle.memory import check_memory, reading_bytes, size
from rekindle.progress import duration

RELEASE, PLACES = "release.csv", "release.locations.csv"
CHOICE, FRONTIER = "recommend.json", "recommend.html"


def recommend(
    context: typer.Context,
    dataset: Annotated[Path, typer.Argument(help="A dataset folder with its ground truth.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the release, its evidence, the frontier and finished tasks. Run the same command again to resume."
        ),
    ],
    max_exposed: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="How many people may be exposed, by any attack, clearly above chance."),
    ] = 0,
    max_advantage: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="What the upper limit of every attack's advantage over chance may be."),
    ] = 0.1,
    max_loss: Annotated[
        float,
        typer.Option(
            min=0.001, help="The error of the counts or flows must be below this; an empty release has an error of 1."
        ),
    ] = 1.0,
    published: ReleaseOf = None,
    window: Window = None,
    family: Annotated[
        list[str] | None,
        typer.Option(help=f"What to search: {', '.join(FAMILIES)}; may be repeated. Default: all but laplace."),
    ] = None,
    attack: Attacks = None,
    effort: Effort = None,
    seeds: Seeds = None,
    seed: Seed = 0,
    people: KnownPeople = None,
    time_budget: TimeBudget = None,
    public_locations: PublicLocations = False,
    locations: Annotated[
        Path | None, typer.Option(help="File of the public locations, with --public-locations.")
    ] = None,
    resume: Resume = True,
    overwrite: Overwrite = False,
    memory_limit: MemoryLimit = None,
    workers: Workers = None,
    cluster: Cluster = None,
    output_format: Format = "text",
    quiet: Quiet = False,
) -> None:
    """Find the least lossy release within limits of risk, and write it.

    Searches families of defences, judged by the strongest attacks, at low effort unless you set another. The best
    release is audited again with other draws and row orders; that audit is the evidence. Noise is drawn afresh for the
    release, as by rekindle defend. Exits with code 3 if nothing meets the limits; then no release is written. Choosing
    epsilon by looking at the ground truth is outside the proof of differential privacy.
    """
    way_out = "Use fewer days, fewer people or coarser locations"
    check_memory(reading_bytes(dataset), memory_limit, what=f"Reading {dataset}", way_out=way_out)
    data = read_dataset(dataset)
    if data.truth is None:
        raise InvalidFile(dataset, "there is no truth.parquet in it, so nobody knows what a release gives away.")
    if locations is not None and not public_locations:
        raise InvalidSetting(
            "`locations` must be a list fixed without looking at the data; declare that with `public_locations`."
        )
    if public_locations:
        listed = data.locations if locations is None else read_locations(locations)
        data = data.with_locations(listed.declare_public())
    attacks = make_attacks(attack, effort)
    check_new_folder(out, AUDIT, overwrite=True)
    results = [out / name for name in (RELEASE, f"{RELEASE}.defences.json", PLACES, NUMBERS, REPORT)]
    if results[0].exists() and not overwrite:
        raise OutputExists(
            f"{results[0]} exists already; it was left as it is. Publishing another draw of the same people gives away more. "
            "Choose another folder, or set `overwrite=True`."
        )

    def announce(ahead: Forecast) -> None:
        if cluster is None:
            check_memory(ahead.memory_bytes, memory_limit, what="The search", way_out=way_out)
        cores = "one core" if ahead.cores == 1 else f"{ahead.cores} cores"
        judges = " and ".join(type(one).__name__ for one in ahead.plan.attacks.values())
        note(
            f"The search takes up to about {duration(ahead.seconds)} on {cores} and {size(ahead.memory_bytes)} of memory, "
            f"judged by {judges}; then the best release is audited."
        )
        begin_output(out, resume=resume)
        for path in results:
            path.unlink(missing_ok=True)

    def write(found: Recommendation) -> None:
        mark_folder(out, AUDIT, SENSITIVE)
        commands = {} if found.chosen is None else _commands(found, dataset, context)
        found.write_json(out / CHOICE, commands=commands)
        found.to_html(out / FRONTIER)

    with output(out, parents=True):
        with resumable("Search", context, FRONTIER) as usual:
            found = run_recommend(
                data,
                max_exposed=max_exposed,
                max_advantage=max_advantage,
                max_loss=max_loss,
                release=published,
                window=window,
                families=family,
                attacks=attacks,
                announce=announce,
                so_far=write,
                **usual,
            )
        write(found)
        if found.evidence is not None and found.release is not None:
            found.evidence.write_json(out / NUMBERS)
            found.evidence.to_html(out / REPORT)
            write_locations(out / PLACES, found.release.locations)
            write_release(out / RELEASE, found.release)
    if output_format == "json":
        print_json(read_json(out / CHOICE))
    else:
        _show(found, context)
        say("\nFrontier: ", str(out / FRONTIER), f"\nNumbers:  {out / CHOICE}")
        if found.chosen is not None:
            if found.chosen.defence is not None:
                show_budgets(Chain([found.chosen.defence]), data.calendar)
            say("Release:  ", (str(out / RELEASE), "bold"), f", its locations: {out / PLACES}")
            say(f"Evidence: {out / REPORT}, {out / NUMBERS}")
            say("Only the release and its locations are for publication.")
            for what, line in _commands(found, dataset, context).items():
                say(f"To repeat the {what}: {line}")
    if found.chosen is None:
        note("Failed. No release was written.")
        raise typer.Exit(FAILED_GATE)


def _show(found: Recommendation, context: typer.Context) -> None:
    """Print the answer, and the frontier in rows."""
    say(("\n" + found.answer, "bold"))
    for sentence in found.notes:
        console.print(f"! {sentence}")
    for name, reason in found.left_out.items():
        if name in FAMILIES:
            console.print(f"Not tried: {name}: {in_flags(reason, context)}")
    console.print(
        table("The frontier of risk and utility, as the search saw it", found.head(), found.rows(found.frontier))
    )
    if found.chosen is not None:
        console.print(table("What a reader loses", ["", "release"], _use(found.chosen, found.measure)))


def _use(chosen: Candidate, measure: str) -> list[list[str]]:
    rows = []
    for metric in UTILITIES:
        chosen_by = ", by which releases were compared" if metric.name == measure else ""
        meaning = f"{metric.meaning} ({metric.unit}, {metric.direction} is better{chosen_by})"
        rows.append([meaning, f"{chosen.utility[metric.name]:.3f}"])
    return rows


def _commands(found: Recommendation, dataset: Path, context: typer.Context) -> dict[str, str]:
    """The commands that make such a release again, and its evidence."""
    if found.chosen is None or found.evidence is None:
        return {}
    typed, settings = context.params, found.evidence.settings
    which = ["--release", found.published]
    which += ["--window", found.settings["window"]] if found.settings["window"] is not None else []
    release = ["rekindle", "defend", str(dataset), *which, "--defence", found.chosen.text]
    if typed["public_locations"]:
        release.append("--public-locations")
    if typed["locations"] is not None:
        release += ["--locations", str(typed["locations"])]
    evidence = [
        "rekindle",
        "audit",
        str(dataset),
        *which,
        "--defence",
        found.chosen.text,
        "--seed",
        str(settings["seed"]),
    ]
    evidence += [word for name in typed["attack"] or settings["attacks"] for word in ("--attack", name)]
    efforts = {one["effort"] for one in settings["attacks"].values() if "effort" in one}
    evidence += [word for effort in efforts for word in ("--effort", effort)]
    evidence += ["--seeds", str(settings["row_orders"]), "--thorough" if settings["thorough"] else "--brief"]
    if typed["people"] is not None:
        evidence += ["--people", str(typed["people"])]
    return {
        "choice": shlex.join(context.obj or ()),
        "release": shlex.join([*release, "--out", RELEASE]),
        "evidence": shlex.join([*evidence, "--out", "evidence"]),
    }
