"""`rekindle prepare`: from raw points to a dataset."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import cached_property, partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from rekindle.cli.console import console, note, showing_progress, table
from rekindle.cli.options import MemoryLimit, Overwrite, Quiet
from rekindle.cli.running import Command, unwrap
from rekindle.cli.shared import parse_time
from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.io import read_locations
from rekindle.io.dataset import DATASET
from rekindle.io.safety.files import output
from rekindle.io.safety.folders import check_new_folder
from rekindle.memory import check_memory, points_bytes
from rekindle.model import Locations
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
from rekindle.prepare.fill import AUTO, Fill, check_max_gap
from rekindle.progress import Progress
from rekindle.sources import Points, read_cabspotting, read_geolife, read_points, read_porto
from rekindle.sources.points import Engine

prepare = typer.Typer(
    name="prepare",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help=unwrap("""Turn raw points into a dataset.

    A dataset says who was where at every step, and how many people that makes in each location. OUT becomes a folder with
    counts, locations, the ground truth, dataset.json, and grid.png, a plot of the locations over the points. To attack it:
    rekindle attack OUT --out RECOVERY"""),
)

Source = Annotated[str, typer.Argument(metavar="SRC", help="What to read.", show_default=False)]
Out = Annotated[Path, typer.Argument(metavar="OUT", help="The dataset's folder.", show_default=False)]
Step = Annotated[str, typer.Option(help="Interval between steps, e.g. 10min; it must divide 24 hours.")]
Start = Annotated[
    datetime | None,
    typer.Option(
        parser=parse_time, metavar="TIME", help="Use records from this local time on, e.g. 2014-05-01T04:00."
    ),
]
Days = Annotated[int | None, typer.Option(min=1, help="Number of days to use from --start on.")]
FillBy = Annotated[
    Fill,
    typer.Option(
        "--fill",
        help="Position in steps without a record: last (the last known, as in the paper's text), nearest (the record "
        "nearer in time, as in the published notebooks), linear (on the line between two records).",
    ),
]
MaxGap = Annotated[
    str,
    typer.Option(
        metavar="TIME|auto|none",
        help="Longest gap between two records to fill, e.g. 3h; for the rest of a longer gap, and before the first record, "
        "people are away: not counted. auto: by the intervals between records. none: carry a position forever, as in the "
        "paper.",
    ),
]
Outside = Annotated[
    Literal["edge", "away"],
    typer.Option(
        help="Positions outside the grid: moved onto its edge, as in the paper, or away: the person is not counted there."
    ),
]
CellKm = Annotated[float, typer.Option(help="Side of a grid cell in km.")]
Box = Annotated[
    str,
    typer.Option(
        metavar="LOW,HIGH",
        help="Percentiles of latitude and longitude at which the grid ends; see --outside.",
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        metavar="S,W,N,E",
        help="South, west, north and east of the grid in degrees, instead of --box: a list of locations that does not "
        "depend on the data.",
    ),
]
TowersFile = Annotated[
    Path | None,
    typer.Option(
        "--towers",
        help="Use these towers instead of grid cells: a csv or parquet file with location, lat, lng, or other usual names "
        "such as cell_id, latitude, longitude. A position belongs to the nearest tower.",
    ),
]
TowerLocation = Annotated[str | None, typer.Option(help="Column of --towers that names the tower.")]
TowerLat = Annotated[str | None, typer.Option(help="Column of --towers with latitudes in degrees.")]
TowerLng = Annotated[str | None, typer.Option(help="Column of --towers with longitudes in degrees.")]
H3 = Annotated[
    int | None,
    typer.Option("--h3", min=0, max=15, help="Use H3 cells of this resolution instead (needs the extra h3)."),
]
MinCoverage = Annotated[
    float,
    typer.Option(
        help="Leave out people of whom a smaller share of the steps was observed (at least one raw point within the "
        "step), from 0 to 1."
    ),
]
Timezone = Annotated[
    str,
    typer.Option(help="Zone of the local time. Steps are those of its clock on the wall, also after a clock change."),
]
EngineName = Annotated[
    Engine, typer.Option("--engine", help="Polars on this machine, or Spark (needs the extra spark).")
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Skip bad files and rows; dataset.json says how many, by kind."),
]


MOST_FILLED = 0.5
"""Share of the counted points above which the command warns."""


@dataclass(frozen=True)
class Shared:
    """What every recipe asks for."""

    source: Source
    out: Out
    step: Step = "10min"
    start: Start = None
    days: Days = None
    fill: FillBy = "last"
    max_gap: MaxGap = "none"
    cell_km: CellKm = 1.0
    box: Box = "1,99.5"
    bounds: Bounds = None
    outside: Outside = "edge"
    towers: TowersFile = None
    tower_location: TowerLocation = None
    tower_lat: TowerLat = None
    tower_lng: TowerLng = None
    h3: H3 = None
    min_coverage: MinCoverage = 0.0
    timezone: Timezone = "UTC"
    engine: EngineName = "polars"
    skip_bad: SkipBad = False
    memory_limit: MemoryLimit = None
    overwrite: Overwrite = False
    quiet: Quiet = False

    @cached_property
    def places(self) -> Places:
        """How positions become locations."""
        if self.towers is not None and self.h3 is not None:
            raise InvalidSetting(
                "`towers` and `h3` are two ways to make locations; give one of them.", "towers", "h3"
            )
        if self.outside == "away" and (self.towers is not None or self.h3 is not None):
            raise InvalidSetting(
                "`outside` is 'away', but only a grid has an outside; leave out `towers` and `h3`.",
                "outside",
                "towers",
                "h3",
            )
        if self.towers is not None:
            return Towers(self._read_towers(self.towers))
        if self.h3 is not None:
            return H3Cells(resolution=self.h3)
        low, high = _numbers("box", self.box, 2)
        bounds = None
        if self.bounds is not None:
            south, west, north, east = _numbers("bounds", self.bounds, 4)
            bounds = (south, west, north, east)
        return Grid(cell_km=self.cell_km, box=(low, high), bounds=bounds, outside=self.outside)

    def _read_towers(self, file: Path) -> Locations:
        try:
            return read_locations(file, location=self.tower_location, lat=self.tower_lat, lng=self.tower_lng)
        except InvalidFile as error:  # --lat and the like are columns of the points
            problem = re.sub("`(location|lat|lng)`", r"`tower_\1`", error.problem)
            raise InvalidFile(file, problem, *(f"tower_{name}" for name in error.settings)) from None

    @property
    def recipe(self) -> dict[str, Any]:
        """What every recipe takes."""
        same = {name: getattr(self, name) for name in ("step", "start", "days", "fill", "min_coverage", "engine")}
        return same | {"places": self.places, "max_gap": None if self.max_gap == "none" else self.max_gap}

    def run(self, read: Callable[[Progress], Points], prepare: Callable[[Points], Prepared]) -> None:
        """Read and prepare the points, and write the dataset."""
        from rekindle.report.figures import draw_grid, save_figure  # matplotlib takes a second to load

        _ = self.places  # wrong options are named before anything is read
        check_max_gap(self.recipe["max_gap"])
        check_new_folder(self.out, DATASET, overwrite=self.overwrite)
        check_memory(
            points_bytes(self.source),
            self.memory_limit,
            what=f"Preparing {self.source}",
            way_out="Prepare a part of the files, or a longer --step",
        )
        with output(self.out, parents=True):
            with showing_progress("Files read") as progress:
                found = read(progress)
            with showing_progress("Preparing"):
                prepared = prepare(found)
                positions = None if prepared.positions is None else prepared.positions[prepared.truth.counted]
                grid = draw_grid(prepared.truth.locations, positions=positions)
                prepared.write(self.out, overwrite=self.overwrite, picture=("grid.png", partial(save_figure, grid)))
        _show(prepared, self.out)


def command(**defaults: Any) -> Callable[[Callable[..., None]], None]:
    """Make a command of a recipe: the options of `Shared`, some with other defaults, and then its own."""

    def register(recipe: Callable[..., None]) -> None:
        hints = get_type_hints(Shared, include_extras=True) | get_type_hints(recipe, include_extras=True)
        common = {one.name: one.default for one in fields(Shared)} | defaults
        own = {one.name: one.default for one in signature(recipe).parameters.values() if one.name != "shared"}

        def run(**values: Any) -> None:
            kept = {name: values.pop(name) for name in common if name in values and name not in own}
            recipe(Shared(**kept, **{name: values[name] for name in common if name in own}), **values)

        parameters = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if default is MISSING else default,
                annotation=hints[name],
            )
            for name, default in ({"source": MISSING, "out": MISSING} | own | {**common, **own}).items()
        ]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = recipe.__doc__
        prepare.command(recipe.__name__, cls=Command)(run)

    return register


@command(step="2min", timezone="Asia/Shanghai")
def geolife(
    shared: Shared,
    months: Annotated[int, typer.Option(min=1, help="Number of most active months to keep for each person.")] = 2,
    area: Annotated[
        str,
        typer.Option(
            metavar="LAT,LNG,DEGREES", help="Circle outside of which points are dropped: centre and radius."
        ),
    ] = f"{BEIJING.lat},{BEIJING.lng},{BEIJING.radius_degrees}",
    min_trajectories: Annotated[int, typer.Option(min=1, help="Drop people with fewer trajectories.")] = 2,
    close_gaps_over: Annotated[
        str,
        typer.Option(help="Move a trajectory closer to the one before, by whole days, where the gap is longer."),
    ] = "24h",
    merge_within: Annotated[
        str, typer.Option(help="Merge consecutive trajectories at most this far apart in time...")
    ] = "36h",
    merge_km: Annotated[float, typer.Option(min=0, help="... and at most this many km apart.")] = 7.0,
    merging: Annotated[
        Literal["published", "consistent"] | None,
        typer.Option(
            help="published: move and merge exactly as the published notebook, not always by whole days. consistent: move "
            "each trajectory along with those before it, by whole days, and let none jump further than --merge-km. "
            "By default published, but consistent with --align day."
        ),
    ] = None,
    min_days: Annotated[
        float, typer.Option(min=0, help="Drop people whose longest merged trajectory is shorter.")
    ] = 7.0,
    align: Annotated[
        Literal["first-record", "day"],
        typer.Option(
            help="first-record: each person's first record becomes the common start; the clock is lost, and 'night' "
            "with it. day: move people by whole days only, and keep the clock."
        ),
    ] = "first-record",
    box_over: Annotated[
        Literal["whole", "cut"],
        typer.Option(help="Positions that --box looks at: whole trajectories (as published), or after the cut."),
    ] = "whole",
) -> None:
    """GeoLife: SRC is its folder, or the original zip, which is read without unpacking.

    The paper's section "Dataset 1": people of different years become one city that lives at the same time.
    """
    circle = Area(*_numbers("area", area, 3))
    shared.run(
        lambda progress: read_geolife(
            shared.source, timezone=shared.timezone, skip_bad=shared.skip_bad, progress=progress
        ),
        lambda points: prepare_geolife(
            points,
            **shared.recipe,
            area=circle,
            min_trajectories=min_trajectories,
            months=months,
            close_gaps_over=close_gaps_over,
            merge_within=merge_within,
            merge_km=merge_km,
            min_days=min_days,
            merging=merging,
            align=align,
            box_over=box_over,
        ),
    )


@command(cell_km=2.0, timezone="Europe/Lisbon")
def porto(
    shared: Shared,
    days: Annotated[int, typer.Option(min=1, help="Length of the period; a closing midnight is added to it.")] = 30,
    start: Annotated[
        datetime | None,
        typer.Option(
            parser=parse_time,
            metavar="TIME",
            help="Local midnight that the period begins with. Default: that of the densest period.",
        ),
    ] = None,
    all_taxis: Annotated[
        bool, typer.Option("--all-taxis", help="Also keep taxis with no more trips in the period than average.")
    ] = False,
    keep_missing: Annotated[
        bool, typer.Option("--keep-missing", help="Also keep trips that are marked as having missing points.")
    ] = False,
) -> None:
    """Porto Taxi: SRC is the original train.csv, also gzipped. The paper's section "Dataset 2"."""
    shared.run(
        lambda _: read_porto(
            shared.source, timezone=shared.timezone, keep_missing=keep_missing, skip_bad=shared.skip_bad
        ),
        lambda points: prepare_porto(points, **shared.recipe, busy_only=not all_taxis),
    )


@command(start=datetime(2008, 5, 18), days=10, cell_km=2.0, min_coverage=0.7, timezone="America/Los_Angeles")
def cabspotting(shared: Shared) -> None:
    """Cabspotting: SRC is the folder with the files new_<cab>.txt of San Francisco's taxis."""
    shared.run(
        lambda progress: read_cabspotting(
            shared.source, timezone=shared.timezone, skip_bad=shared.skip_bad, progress=progress
        ),
        lambda points: prepare_points(points, **shared.recipe),
    )


@command(max_gap=AUTO)
def points(
    shared: Shared,
    person: Annotated[str | None, typer.Option(help="Column that names the person.")] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Column of times: ISO text, timestamps, numbers since 1970 UTC; see --time-format."),
    ] = None,
    lat: Annotated[str | None, typer.Option(help="Column of latitudes in degrees.")] = None,
    lng: Annotated[str | None, typer.Option(help="Column of longitudes in degrees.")] = None,
    location: Annotated[
        str | None,
        typer.Option(help="Column that names a tower, for call records without coordinates; see --towers."),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="Zone of the local time, e.g. Europe/Oslo, where times are UTC, carry an offset, or are numbers. A column "
            "with a zone of its own keeps it."
        ),
    ] = None,
    utc: Annotated[
        bool, typer.Option("--utc", help="Times without a zone are UTC; otherwise they are local clock times.")
    ] = False,
    time_unit: Annotated[Literal["s", "ms", "us"], typer.Option(help="What numbers in the time column count.")] = "s",
    time_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="How times are written, if not in ISO form, e.g. '%d.%m.%Y %H:%M' (as in strptime).",
        ),
    ] = None,
) -> None:
    """Any points: SRC is a CSV or Parquet file, a folder of them, or a glob in quotes.

    Rows may be in any order. A CSV file may be separated by commas, semicolons, tabs or bars. Columns named as in scikit-mobility, trackintel and movingpandas are recognised; name others with the options.
    """
    towers = shared.places.locations if isinstance(shared.places, Towers) else None
    if location is not None and towers is None:
        raise InvalidSetting(
            "`location` names towers; give the file that says where they are with `towers`.", "location", "towers"
        )
    shared.run(
        lambda _: read_points(
            shared.source,
            person=person,
            time=time,
            lat=lat,
            lng=lng,
            location=location,
            towers=towers,
            timezone=timezone,
            utc=utc,
            time_unit=time_unit,
            time_format=time_format,
            skip_bad=shared.skip_bad,
            engine=shared.engine,
        ),
        lambda found: prepare_points(found, **shared.recipe),
    )


def _show(prepared: Prepared, out: Path) -> None:
    truth, info = prepared.truth, prepared.info
    points, shares = info["points"], prepared.filled
    filled = points["filled"] / (1 - points["away"])
    rows = [
        ["people", f"{truth.people:,}"],
        ["steps", f"{truth.steps:,} of {info['preparation']['step']}"],
        ["from", f"{truth.calendar.start}"],
        ["locations", f"{len(truth.locations):,}"],
        ["longest gap filled (--max-gap)", info["preparation"]["max_gap"] or "any"],
        ["points observed", f"{points['observed']:.1%}"],
        ["points filled, not observed", f"{points['filled']:.1%}"],
        ["  best and worst person", f"{shares.min():.1%} and {shares.max():.1%}"],
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
            f"`{setting}` is {text!r}; write {how_many} numbers with commas between them, no spaces.", setting
        )
    return values
