"""`rekindle defend`: protect counts and write a release for publication."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from rekindle.cli.console import console, print_json, say, table
from rekindle.cli.options import (
    CellSide,
    Format,
    LocationsFile,
    Overwrite,
    PublicLocations,
    Quiet,
    ReleaseOf,
    TableStep,
    Window,
)
from rekindle.cli.shared import choose_release, read_input
from rekindle.defences import (
    PRESETS,
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    LaplaceNoise,
    Noise,
    Round,
    Sample,
    Suppress,
    budgets,
    parse_defence,
)
from rekindle.defences.noise import Neighbours, Unit
from rekindle.errors import InvalidData, InvalidSetting, OutputExists
from rekindle.evaluation import UTILITIES, utility
from rekindle.io import read_locations, write_locations, write_release
from rekindle.io.safety.files import output
from rekindle.model import Calendar, Counts, Flows, Release

NOISES: dict[str, type[Noise]] = {"laplace": LaplaceNoise, "geometric": GeometricNoise}


def defend(
    dataset: Annotated[Path, typer.Argument(help="A dataset folder, or a CSV or Parquet table of counts or flows.")],
    out: Annotated[Path, typer.Option(help="The file to publish: .csv or .parquet.")],
    preset: Annotated[
        str | None, typer.Option(help=f"Defences that a publisher is known to use: {', '.join(PRESETS)}.")
    ] = None,
    defence: Annotated[
        str | None,
        typer.Option(
            help="Defences in your own order, such as 'laplace:epsilon=1,per=person-day + suppress:below=10'."
        ),
    ] = None,
    sample: Annotated[
        float | None, typer.Option(help="Count only this share of the people; needs the ground truth.")
    ] = None,
    merge_km: Annotated[
        float | None, typer.Option(help="Merge locations into grid cells of this side, in km.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Publish only the first step of each interval of this length, e.g. 1h.")
    ] = None,
    cap_at: Annotated[float | None, typer.Option(help="Cap numbers at this value.")] = None,
    noise: Annotated[Literal["laplace", "geometric"] | None, typer.Option(help="Add noise; with --epsilon.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget of the noise.")] = None,
    per: Annotated[
        Unit, typer.Option(help="What the budget covers: a step, a day or all of a person.")
    ] = "person-day",
    neighbours: Annotated[
        Neighbours, typer.Option(help="What the noise hides: whether a record is in the data, or where it was.")
    ] = "add-remove",
    suppress_below: Annotated[float | None, typer.Option(help="Withhold numbers below this.")] = None,
    keep_zeros: Annotated[bool, typer.Option("--keep-zeros", help="Do not withhold zeros.")] = False,
    round_to: Annotated[float | None, typer.Option(help="Round to multiples of this.")] = None,
    published: ReleaseOf = None,
    window: Window = None,
    public_locations: PublicLocations = False,
    locations: LocationsFile = None,
    step: TableStep = None,
    cell_km: CellSide = 1.0,
    form: Annotated[
        Literal["long", "wide"], typer.Option(help="A row for each number, or a column for each location.")
    ] = "long",
    overwrite: Overwrite = False,
    output_format: Format = "text",
    quiet: Quiet = False,
) -> None:
    """Protect counts and write a release for publication.

    The options apply in the order in which they are listed here. Noise is drawn with OpenDP from the system's randomness,
    without a seed: every run gives different numbers, and publishing two of them spends the budget twice.
    """
    chosen: list[Defence] = []
    if sample is not None:
        chosen.append(Sample(share=sample))
    if merge_km is not None:
        chosen.append(CoarserSpace(km=merge_km))
    if every is not None:
        chosen.append(CoarserTime(step=every))
    if cap_at is not None:
        chosen.append(Cap(at=cap_at))
    if (noise is None) != (epsilon is None):
        raise InvalidSetting("`noise` and `epsilon` belong together; give both or neither.")
    if noise is not None and epsilon is not None:
        chosen.append(NOISES[noise](epsilon=epsilon, per=per, neighbours=neighbours))
    if suppress_below is not None:
        chosen.append(Suppress(below=suppress_below, zeros=not keep_zeros))
    if round_to is not None:
        chosen.append(Round(to=round_to))
    if (preset is not None) + (defence is not None) + bool(chosen) != 1:
        raise InvalidSetting("Give either --preset, or --defence, or options such as --suppress-below 10.")
    if preset is not None:
        if preset not in PRESETS:
            raise InvalidSetting(f"There is no preset {preset!r}; choose {', '.join(PRESETS)}.")
        chosen = [PRESETS[preset]]
    if defence is not None:
        chosen = [parse_defence(defence)]
    places = out.with_name(f"{out.stem}.locations.csv")
    for path in (out, places):
        if path.exists() and not overwrite:
            raise OutputExists(
                f"{path} exists already; it was left as it is. Choose another name, or set `overwrite=True`."
            )
    data = read_input(dataset, locations, step, cell_km)
    if public_locations:
        listed = data.locations if locations is None else read_locations(locations)
        data = data.with_locations(listed.declare_public())
    chain = Chain(chosen).for_publication()
    if chain.needs_people and data.truth is None:
        raise InvalidData(f"{dataset} has no ground truth, and a sample of the people needs the people themselves.")
    of_flows = window is not None or (not dataset.is_dir() and bool(data.flows))
    _, flows = choose_release(data, published or ("flows" if of_flows else "counts"), window)
    true: Counts | Flows = data.counts if flows is None else flows
    with output(out):
        if isinstance(true, Counts):
            release = chain(data.truth if chain.needs_people and data.truth is not None else true)
        elif data.truth is not None:
            release = chain.of_flows(data.truth, true.window, stayers=true.stayers, all_pairs=chain.adds_noise)
        else:
            release = chain(Release.of(true, all_pairs=chain.adds_noise))
        write_release(out, release, form=form, overwrite=overwrite)
        write_locations(places, release.locations, overwrite=overwrite)
    left, steps = utility(true, release, scale=chain.scale), data.calendar
    if isinstance(true, Flows):
        steps = true.calendar.part(slice(0, true.steps - 1))
    if output_format == "json":
        print_json(
            {
                "defences": [asdict(one) for one in release.defences],
                "budgets": [asdict(one) for one in budgets(chain, steps)],
                "utility": {one.name: one.value(left) for one in UTILITIES},
                "release": str(out),
                "locations": str(places),
            }
        )
        return
    if preset is not None:
        console.print(f"Source: {PRESETS[preset].source}\n{PRESETS[preset].note}")
    console.print(f"Applied to the {'counts' if release.pairs is None else 'flows'}: {release.describe()}")
    show_budgets(chain, steps)
    rows = [[f"{m.meaning} ({m.unit}, {m.direction} is better)", f"{m.value(left):.3f}"] for m in UTILITIES]
    console.print(table("What a reader loses", ["", "release"], rows))
    say(f"The release: {out}, its locations: {places}")


def show_budgets(chain: Chain, calendar: Calendar) -> None:
    """Print what the noise spends, for each unit."""
    spent = budgets(chain, calendar)
    for one in spent:
        console.print(one.describe())
    if spent:
        console.print(
            "The noise was drawn with OpenDP from the system's randomness, without a seed. "
            "Every further release of the same people spends its own budget on top."
        )
    else:
        console.print("No noise was added: this release has no privacy budget and no proof of privacy.")
