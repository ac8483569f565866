"""`rekindle prepare`: from raw points to a dataset. Its options are the settings of the library, in the library's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from rekindle.cli.console import console, note, showing_progress, table
from rekindle.cli.options import MemoryLimit, Overwrite, Quiet, WithFlows, described
from rekindle.cli.running import Command, unwrap
from rekindle.cli.shared import parse_time
from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.io import read_locations
from rekindle.io.dataset import DATASET
from rekindle.io.safety.files import output
from rekindle.io.safety.folders import check_new_folder
from rekindle.memory import check_memory, points_bytes
from rekindle.prepare import (
    BEIJING,
    Area,
    Grid,
    H3Cells,
    Places,
    Prepared,
    Towers,
    prepare_geolife,
    prepare_points,
    prepare_porto,
)
from rekindle.prepare.fill import check_max_gap
from rekindle.sources import Points, points_from_frame, read_cabspotting, read_geolife, read_points, read_porto
from rekindle.sources.engine import Engine

prepare = typer.Typer(
    name="prepare",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help=unwrap("""Turn raw points into a dataset.

    A dataset says where everyone was at every step, and how many people were in each location. OUT becomes a folder
    with counts, locations, the ground truth, dataset.json, and grid.png, a plot of the locations over the points. To
    attack it: rekindle attack OUT --out RECOVERY"""),
)

MOST_FILLED = 0.5
"""Share of the counted points above which the command warns."""

NO_OPTIONS = ("read", "recipe", "points", "places", "progress", "busy_only", "grid")
"""Parameters that are made of others."""


def command(
    read: Callable[..., Points], recipe: Callable[..., Prepared], **defaults: Any
) -> Callable[[Callable[..., dict[str, Any]]], None]:
    """Make a command of a reader and a recipe, some of whose settings have other defaults.

    The function that is decorated has the options that are no settings, and says which settings they make.
    """
    words = described(read, recipe, Grid, points_from_frame, prepare_points)

    def register(own: Callable[..., dict[str, Any]]) -> None:
        options: dict[str, Parameter] = {}
        for part in (write, own, places_of, recipe, read, Grid):
            hints = get_type_hints(part, include_extras=True)
            for one in signature(part).parameters.values():
                if one.name not in (*NO_OPTIONS, *options):
                    kind, default = _option(one.name, hints[one.name], words), defaults.get(one.name, one.default)
                    options[one.name] = Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

        def run(**values: Any) -> None:
            def of(part: Callable[..., Any]) -> dict[str, Any]:
                return {name: values[name] for name in signature(part).parameters if name in values}

            values |= {"places": places_of(**of(places_of) | of(Grid)), **own(**of(own))}
            values["max_gap"] = None if values["max_gap"] in (None, "none") else values["max_gap"]
            check_max_gap(values["max_gap"])  # wrong options are named before anything is read
            values["towers"] = values["places"].locations if isinstance(values["places"], Towers) else None
            if values.get("location") is not None and values["towers"] is None:
                raise InvalidSetting("`location` names towers; give the file that says where they are with `towers`.")
            write(**of(write), read=partial(read, **of(read)), recipe=partial(recipe, **of(recipe)))

        last = signature(write).parameters.keys() - {"source", "out"}
        run.__signature__ = Signature(sorted(options.values(), key=lambda one: one.name in last))  # type: ignore[attr-defined]
        run.__annotations__ = {name: one.annotation for name, one in options.items()}
        run.__doc__ = own.__doc__
        prepare.command(own.__name__, cls=Command)(run)

    return register


def _option(name: str, kind: Any, words: dict[str, str]) -> Any:
    """What the command line asks for in place of a setting; what has an option of its own keeps it."""
    if get_origin(kind) is Annotated:
        kind, option = get_args(kind)
    else:
        kinds = get_args(kind) or (kind,)
        option = typer.Option(
            *([f"--{name.replace('_', '-')}"] if kind is bool else []),
            min=1 if int in kinds else 0 if float in kinds else None,
            parser=parse_time if datetime in kinds else None,
            metavar="TIME" if datetime in kinds else "TIME|auto|none" if name == "max_gap" else None,
        )
        kind = (str | None if type(None) in kinds else str) if timedelta in kinds else kind
    option.help = option.help or words.get(name)
    return Annotated[kind, option]


def write(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Raw data to read.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the dataset.", show_default=False)],
    flows: WithFlows = False,
    memory_limit: MemoryLimit = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    engine: Engine = "polars",
    *,
    read: Callable[..., Points],
    recipe: Callable[[Points], Prepared],
) -> None:
    """Read and prepare the points, and write the dataset."""
    from rekindle.report.figures import draw_grid, save_figure  # matplotlib takes a second to load

    check_new_folder(out, DATASET, overwrite=overwrite)
    check_memory(
        points_bytes(source, engine),
        memory_limit,
        what=f"Preparing {source}",
        way_out="Prepare a part of the files, or a longer --step",
    )
    with output(out, parents=True):
        with showing_progress("Files read") as progress:
            found = read(progress=progress) if "progress" in signature(read).parameters else read()
        with showing_progress("Preparing"):
            prepared = recipe(found)
            grid = draw_grid(prepared.locations, positions=prepared.some_positions())
            prepared.write(out, overwrite=overwrite, flows=flows, picture=("grid.png", partial(save_figure, grid)))
    _show(prepared, out)


def places_of(
    box: Annotated[str, typer.Option(metavar="LOW,HIGH")] = "1,99.5",
    bounds: Annotated[str | None, typer.Option(metavar="S,W,N,E")] = None,
    towers: Annotated[
        Path | None,
        typer.Option(
            help="Use these towers instead of grid cells: a CSV or Parquet file with location, lat, lng, or other usual names "
            "such as cell_id, latitude, longitude. A position belongs to the nearest tower.",
        ),
    ] = None,
    tower_location: Annotated[str | None, typer.Option(help="Column of --towers that names the tower.")] = None,
    tower_lat: Annotated[str | None, typer.Option(help="Column of --towers with latitudes in degrees.")] = None,
    tower_lng: Annotated[str | None, typer.Option(help="Column of --towers with longitudes in degrees.")] = None,
    h3: Annotated[
        int | None,
        typer.Option(min=0, max=15, help="Use H3 cells of this resolution instead (needs the extra h3)."),
    ] = None,
    **grid: Any,
) -> Places:
    """How positions become locations."""
    if towers is not None and h3 is not None:
        raise InvalidSetting("`towers` and `h3` are two ways to make locations; give one of them.")
    if grid["outside"] == "away" and (towers is not None or h3 is not None):
        raise InvalidSetting("`outside` is 'away', but only a grid has an outside; leave out `towers` and `h3`.")
    if towers is not None:
        try:
            return Towers(read_locations(towers, location=tower_location, lat=tower_lat, lng=tower_lng))
        except InvalidFile as error:  # --lat and the like are columns of the points
            raise InvalidFile(towers, re.sub("`(location|lat|lng)`", r"`tower_\1`", error.problem)) from None
    if h3 is not None:
        return H3Cells(resolution=h3)
    corners: Any = None if bounds is None else _numbers("bounds", bounds, 4)
    percentiles: Any = _numbers("box", box, 2)
    return Grid(**grid | {"box": percentiles, "bounds": corners})


@command(read_geolife, prepare_geolife)
def geolife(
    area: Annotated[
        str,
        typer.Option(
            metavar="LAT,LNG,DEGREES", help="Circle outside of which points are dropped: centre and radius."
        ),
    ] = f"{BEIJING.lat},{BEIJING.lng},{BEIJING.radius_degrees}",
) -> dict[str, Any]:
    """GeoLife: SRC is its folder, or the original zip, which is read without unpacking.

    The paper's section "Dataset 1": people recorded in different years are treated as if they lived at the same time.
    """
    return {"area": Area(*_numbers("area", area, 3))}


@command(read_porto, prepare_porto, cell_km=2.0)
def porto(
    all_taxis: Annotated[
        bool, typer.Option("--all-taxis", help="Also keep taxis with no more trips in the period than average.")
    ] = False,
) -> dict[str, Any]:
    """Porto Taxi: SRC is the original train.csv, also gzipped. The paper's section "Dataset 2"."""
    return {"busy_only": not all_taxis}


@command(
    read_cabspotting,
    prepare_points,
    start=datetime(2008, 5, 18),
    days=10,
    cell_km=2.0,
    max_gap=None,
    min_coverage=0.7,
)
def cabspotting() -> dict[str, Any]:
    """Cabspotting: SRC is the folder with the files new_<cab>.txt of San Francisco's taxis."""
    return {}


@command(read_points, prepare_points)
def points() -> dict[str, Any]:
    """Any points: SRC is a CSV or Parquet file, a folder of them, or a glob in quotes.

    Rows may be in any order. A CSV file may be separated by commas, semicolons, tabs or bars. Columns named as in scikit-mobility, trackintel and movingpandas are recognised; name others with the options.
    """
    return {}


def _show(prepared: Prepared, out: Path) -> None:
    calendar, info = prepared.calendar, prepared.info
    points = info["points"]
    filled = points["filled"] / (1 - points["away"])
    rows = [
        ["people", f"{prepared.people:,}"],
        ["steps", f"{calendar.steps:,} of {info['preparation']['step']}"],
        ["from", f"{calendar.start}"],
        ["locations", f"{len(prepared.locations):,}"],
        ["longest gap filled (--max-gap)", info["preparation"]["max_gap"] or "any"],
        ["points observed", f"{points['observed']:.1%}"],
        ["points filled, not observed", f"{points['filled']:.1%}"],
        ["  best and worst person", f"{prepared.filled_least:.1%} and {prepared.filled_most:.1%}"],
        ["points away, not counted", f"{points['away']:.1%}"],
    ]
    rows += [["clock change", change] for change in info["preparation"].get("clock_changes", [])]
    rows += [[f"skipped: {kind}", f"{count:,}"] for kind, count in info.get("skipped", {}).items()]
    rows += [[f"dropped: {kind}", f"{count:,}"] for kind, count in info.get("dropped", {}).items()]
    console.print(table(f"Prepared: {out}", ["", ""], rows))
    if filled > MOST_FILLED:
        note(
            f"Warning: {filled:.0%} of the points that are counted were filled, not observed, so that an accuracy is partly an "
            "accuracy of the filling. Look at the scores of observed points, and leave long gaps open with "
            f"{'a shorter ' if info['preparation']['max_gap'] else ''}--max-gap, or use a longer --step or a higher "
            "--min-coverage."
        )
    elif filled:
        note(
            f"{filled:.0%} of the points that are counted were filled: most of what an attack is scored on was observed."
        )


def _numbers(setting: str, text: str, how_many: int) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != how_many:
        raise InvalidSetting(
            f"`{setting}` is {text!r}; write {how_many} numbers with commas between them, no spaces."
        )
    return values
