"""The way from points to a dataset: select, align, sample, fill, locate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists
from rekindle.io import write_dataset
from rekindle.io.safety.files import new_folder
from rekindle.model import Calendar, Trajectories
from rekindle.model.calendar import DAY, format_step, parse_step
from rekindle.prepare import select
from rekindle.prepare.fill import Fill, check_fill, fill_steps
from rekindle.prepare.places import Grid, Places, Towers
from rekindle.sources.points import Engine, Points, collect, floor_divide

__all__ = ["Area", "Prepared", "check_output", "prepare_geolife", "prepare_points", "prepare_porto"]

_DAY_SECONDS = 86_400
_ALIGNED_START = datetime(2000, 1, 1)
"""Where people of different years are moved to, as in the published notebook."""


@dataclass(frozen=True)
class Area:
    """A circle on the map.

    Parameters
    ----------
    lat, lng
        Its centre, degrees.
    radius_degrees
        Its radius, in degrees of latitude and longitude alike.
    """

    lat: float
    lng: float
    radius_degrees: float

    def __post_init__(self) -> None:
        if not (abs(self.lat) <= 90 and abs(self.lng) <= 180 and self.radius_degrees > 0):
            raise InvalidSetting(
                f"The area is {self.lat}, {self.lng}, {self.radius_degrees}; give latitude, longitude and a radius "
                "in degrees above 0."
            )


BEIJING = Area(39.9042, 116.4074, 0.45)
"""The published notebook's Beijing."""


@dataclass(frozen=True)
class Prepared:
    """What a preparation gives.

    Attributes
    ----------
    truth
        Where each person was.
    observed
        (people, steps) bool: whether at least one raw point lies within the step; all other steps were filled.
    positions
        (people, steps, 2) float64, latitude and longitude in degrees before they became locations; None where the
        points carry no coordinates of their own.
    info
        For `dataset.json`: where the data came from, its licence, the settings, what was skipped, the coverage.
    """

    truth: Trajectories
    observed: NDArray[np.bool_]
    positions: NDArray[np.float64] | None
    info: Mapping[str, Any]

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the dataset folder: all or nothing."""
        check_output(path, overwrite=overwrite)
        with new_folder(path, overwrite=overwrite, private=True) as folder:
            write_dataset(folder, counts=self.truth.counts(), truth=self.truth, info=dict(self.info))


def check_output(path: str | Path, *, overwrite: bool) -> None:
    """Refuse early what could not be written in the end."""
    folder = Path(path)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "dataset.json").exists():
        raise InvalidFile(folder, "this folder holds other things than a dataset; it was left as it is.")
    if folder.exists() and not folder.is_dir():
        raise InvalidFile(folder, "this is a file, where a dataset's folder should go; it was left as it is.")
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise OutputExists(
            f"{folder} exists already; it was left as it is. Use `overwrite=True` to replace it.", "overwrite"
        )


def prepare_points(
    points: Points,
    *,
    step: str | timedelta = "10min",
    start: datetime | None = None,
    days: int | None = None,
    fill: Fill = "last",
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare any points, on the clock they were recorded.

    Parameters
    ----------
    points
        From one of the `rekindle.sources`.
    step
        The interval between steps. The first record within a step is the position at that step.
    start, days
        The time window: from a local clock time on, and so many days long. By default from the midnight before the
        first record until the last record.
    fill
        How steps without a record are filled: see `fill_steps`.
    places
        How positions become locations: by default a `Grid` of 1 km. Points that name their location keep it; then
        `places` must be the `Towers`.
    min_coverage
        Leave out people of whom a smaller share of the steps was really observed, from 0 to 1.
    engine
        Who does the work on raw points: ``"polars"`` or ``"spark"``.
    """
    step, seconds = _step(step)
    _check(fill, min_coverage, days)
    points = points.on(engine)
    frame, begin, end = _window(points, start, days)
    if begin is None or end is None:
        first, last = _extremes(frame)
        begin = first // _DAY_SECONDS * _DAY_SECONDS if begin is None else begin
        end = last + 1 if end is None else end
    steps = -((begin - end) // seconds)
    if begin % _DAY_SECONDS % seconds:
        raise InvalidSetting(f"The start {_clock(begin)} is not a step of {format_step(step)} counted from midnight.")
    calendar = Calendar(_clock(begin), step, steps)
    records = _sample(frame.with_columns(step=floor_divide(nw.col("time") - begin, seconds)), ["person"])
    settings = {"recipe": "points", "step": format_step(step)}
    return _assemble(
        collect(records),
        calendar,
        points,
        fill=fill,
        places=places or Grid(),
        min_coverage=min_coverage,
        settings=settings,
    )


def prepare_porto(
    points: Points,
    *,
    step: str | timedelta = "10min",
    days: int = 30,
    start: datetime | None = None,
    busy_only: bool = True,
    fill: Fill = "last",
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare taxi trips as in the paper's section "Dataset 2: Porto Taxi".

    Parameters
    ----------
    days
        The length of the period. Its last step is the midnight that ends it: 30 days of 10 minutes are 4,321 steps.
    start
        The local midnight that the period begins with; by default that of the densest period: the one in which most
        trips begin, the earliest of several.
    busy_only
        Keep only taxis that begin more trips in the period than the average taxi.
    points, step, fill, places, min_coverage, engine
        As in `prepare_points`; the places are by default a `Grid` of 2 km, cells of 4 km2.
    """
    step, seconds = _step(step)
    _check(fill, min_coverage, days)
    _require_trajectories(points)
    points = points.on(engine)
    frame, begin, _ = _window(points, start, None)
    frame = select.settle(frame)
    trips = frame.group_by("person", "trajectory").agg(time=nw.col("time").min())
    if begin is None:
        begin = _densest(trips, days)
    if begin % _DAY_SECONDS:
        raise InvalidSetting(f"The start is {_clock(begin)}; the period must begin at midnight.")
    end = begin + days * _DAY_SECONDS
    steps = (end - begin) // seconds + 1
    within = trips.filter((nw.col("time") >= begin) & (nw.col("time") < end))
    frame = frame.filter((nw.col("time") >= begin) & (nw.col("time") < begin + steps * seconds))
    if busy_only:
        frame = frame.join(select.above_average(within), on="person", how="semi")
    records = collect(_sample(frame.with_columns(step=floor_divide(nw.col("time") - begin, seconds)), ["person"]))
    if busy_only and not records.height:
        raise InvalidData(
            f"Nobody is left: no taxi begins more trips than the average taxi in the {days} days from {_clock(begin)} on. "
            "Keep all of them with `busy_only=False`, or change `days` or `start`.",
            "busy_only",
            "days",
            "start",
        )
    return _assemble(
        records,
        Calendar(_clock(begin), step, steps),
        points,
        fill=fill,
        places=places or Grid(cell_km=2.0),
        min_coverage=min_coverage,
        settings={"recipe": "porto", "step": format_step(step), "days": days, "busy_only": busy_only},
    )


def prepare_geolife(
    points: Points,
    *,
    step: str | timedelta = "2min",
    start: datetime | None = None,
    days: int | None = None,
    area: Area = BEIJING,
    min_trajectories: int = 2,
    months: int = 2,
    close_gaps_over: str | timedelta = "24h",
    merge_within: str | timedelta = "36h",
    merge_km: float = 7.0,
    merging: Literal["published", "consistent"] | None = None,
    min_days: float = 7.0,
    align: Literal["first-record", "day"] = "first-record",
    box_over: Literal["whole", "cut"] = "whole",
    fill: Fill = "last",
    places: Places | None = None,
    min_coverage: float = 0.0,
    engine: Engine = "polars",
) -> Prepared:
    """Prepare trajectories of different years as in the paper's section "Dataset 1: GeoLife".

    Parameters
    ----------
    area
        Points outside are dropped.
    min_trajectories
        People with fewer trajectories inside the area are dropped.
    months
        How many of each person's most active months are kept.
    close_gaps_over
        A longer gap between two consecutive trajectories is closed to within a day, by whole days.
    merge_within, merge_km
        Consecutive records belong to one trajectory where they are at most so far apart in time and in space.
    merging
        ``"published"`` moves and merges exactly as the published notebook, not always by whole days;
        ``"consistent"`` moves each trajectory along with those before it, by whole days, and lets no trajectory jump
        further than `merge_km`. By default as published, unless `align` is to keep the clock.
    min_days
        People whose longest trajectory is shorter are dropped.
    align
        ``"first-record"``: each person's first record becomes the common start, which loses the clock.
        ``"day"``: people are moved by whole days only, which keeps it.
    box_over
        The positions whose percentiles make the box: of the ``"whole"`` trajectories, as published, or after they
        are ``"cut"`` at the earliest end.
    points, step, start, days, fill, places, min_coverage, engine
        As in `prepare_points`; the time window is of the original times, before anything is moved.
    """
    step, seconds = _step(step)
    _check(fill, min_coverage, days)
    for name, value, least in (("months", months, 1), ("min_trajectories", min_trajectories, 1)):
        if value < least:
            raise InvalidSetting(f"{name} is {value}; it must be at least {least}.")
    if merging is None:
        merging = "consistent" if align == "day" else "published"
    for name, choice, choices in (
        ("merging", merging, ("published", "consistent")),
        ("align", align, ("first-record", "day")),
        ("box_over", box_over, ("whole", "cut")),
    ):
        if choice not in choices:
            raise InvalidSetting(f"{name} is {choice!r}; it must be one of {', '.join(choices)}.")
    if align == "day" and merging == "published":
        raise InvalidSetting(
            "align is 'day' and merging 'published', which moves trajectories by parts of a day and so loses the clock; "
            "use the merging 'consistent', or align by 'first-record'."
        )
    if min_days < 0 or merge_km < 0:
        raise InvalidSetting(f"min_days is {min_days} and merge_km {merge_km}; neither may be negative.")
    _require_trajectories(points)
    points = points.on(engine)
    day = DAY // step
    published = merging == "published"
    frame, _, _ = _window(points, start, days)
    frame = select.settle(select.inside_circle(frame, (area.lat, area.lng), area.radius_degrees))
    frame = select.several_trajectories(frame, min_trajectories)
    frame = select.active_months(frame, months)
    frame = frame.with_columns(step=floor_divide(nw.col("time"), seconds))
    frame = select.settle(_sample(frame, ["person", "trajectory"]))
    frame = select.move_closer(frame, day=day, gap=parse_step(close_gaps_over) // step, published=published)
    frame = select.merge_pieces(
        frame,
        gap=parse_step(merge_within) // step,
        distance_km=merge_km,
        centre_lat=area.lat,
        published=published,
    )
    frame = select.settle(frame)
    frame = select.longest_pieces(frame, at_least=int(np.ceil(min_days * day)))
    origin = nw.col("begin") if align == "first-record" else floor_divide(nw.col("begin"), day) * day
    frame = frame.with_columns(step=nw.col("step") - origin).drop("begin")
    frame = select.first_of_each(frame, ["person", "step"], ["trajectory"])
    records = collect(frame)
    if not records.height:
        raise InvalidData(
            f"Nobody is left: no one has {min_trajectories} trajectories in the area and a merged one of at least "
            f"{min_days} days. Widen `area`, raise `months` or lower `min_days`.",
            "area",
            "months",
            "min_days",
        )
    earliest_end = records.group_by("person").agg(pl.col("step").max())["step"].min()
    settings = {
        "recipe": "geolife",
        "step": format_step(step),
        "area": [area.lat, area.lng, area.radius_degrees],
        "min_trajectories": min_trajectories,
        "months": months,
        "close_gaps_over": format_step(parse_step(close_gaps_over)),
        "merge_within": format_step(parse_step(merge_within)),
        "merge_km": merge_km,
        "merging": merging,
        "min_days": min_days,
        "align": align,
        "box_over": box_over,
    }
    return _assemble(
        records,
        Calendar(_ALIGNED_START, step, int(earliest_end) + 1),  # type: ignore[arg-type]
        points,
        fill=fill,
        places=places or Grid(),
        min_coverage=min_coverage,
        box_over_whole=box_over == "whole",
        settings=settings,
    )


def _step(step: str | timedelta) -> tuple[timedelta, int]:
    step = Calendar(_ALIGNED_START, step).step  # refuses what does not divide a day
    return step, int(step.total_seconds())


def _check(fill: str, min_coverage: float, days: int | None) -> None:
    check_fill(fill)
    if not 0 <= min_coverage <= 1:
        raise InvalidSetting(f"The minimum coverage is {min_coverage}; it is a share, from 0 to 1.")
    if days is not None and days < 1:
        raise InvalidSetting(f"The number of days is {days}; it must be at least 1.")


def _require_trajectories(points: Points) -> None:
    missing = {"trajectory", "lat", "lng"} - set(points.frame.collect_schema().names())
    if missing:
        raise InvalidData(
            f"These points have no {', '.join(sorted(missing))}, which this recipe needs; see prepare_points."
        )


def _clock(second: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=second)


def _extremes(frame: nw.LazyFrame[Any]) -> tuple[int, int]:
    times = collect(frame.select(first=nw.col("time").min(), last=nw.col("time").max()))
    first, last = times.row(0)
    if first is None:
        raise InvalidData("There is no point at all; is the time window right?")
    return first, last


def _window(
    points: Points, start: datetime | None, days: int | None
) -> tuple[nw.LazyFrame[Any], int | None, int | None]:
    """Put the points on the local clock, and keep those in the window; give its begin and end in local seconds.

    The zone's offset at the start holds throughout, so that every day has 24 hours.
    """
    begin = None if start is None else round((start - datetime(1970, 1, 1)).total_seconds())
    if days is not None and begin is None:
        raise InvalidSetting("A window of some days needs a start; give both.")
    offset = 0
    if points.timezone is not None:
        try:
            zone = ZoneInfo(points.timezone)
        except (ZoneInfoNotFoundError, ValueError, IsADirectoryError):
            raise InvalidSetting(
                f"The timezone is {points.timezone!r}; give a name such as 'Europe/Lisbon' or 'UTC'."
            ) from None
        if start is not None:
            at = start.replace(tzinfo=zone)
        else:
            at = datetime.fromtimestamp(_extremes(points.frame)[0], UTC).astimezone(zone)
        offset = round(at.utcoffset().total_seconds())  # type: ignore[union-attr]
    frame = points.frame.with_columns(time=nw.col("time") + offset)
    if begin is None:
        return frame, None, None
    frame = frame.filter(nw.col("time") >= begin)
    if days is None:
        return frame, begin, None
    end = begin + days * _DAY_SECONDS
    return frame.filter(nw.col("time") < end), begin, end


def _densest(trips: nw.LazyFrame[Any], days: int) -> int:
    """The midnight, in local seconds, that begins the days with most trips."""
    daily = collect(
        trips.with_columns(day=floor_divide(nw.col("time"), _DAY_SECONDS)).group_by("day").agg(trips=nw.len())
    )
    if not daily.height:
        raise InvalidData("There is no trip at all; is the time window right?")
    day = daily["day"].to_numpy()
    counts = np.bincount(day - day.min(), weights=daily["trips"].to_numpy())
    sums = np.convolve(counts, np.ones(days))[days - 1 :]  # of the days from each day on
    return int(day.min() + np.argmax(sums[: max(1, len(counts) - days + 1)])) * _DAY_SECONDS


def _sample(frame: nw.LazyFrame[Any], keys: list[str]) -> nw.LazyFrame[Any]:
    """Keep the first record within each step; of records of the same second, the most southern, then western."""
    where = ["lat", "lng"] if "lat" in frame.collect_schema() else ["location"]
    frame = frame.select(*keys, "step", "time", *where)
    return select.first_of_each(frame, [*keys, "step"], ["time", *where]).drop("time")


def _assemble(
    records: pl.DataFrame,
    calendar: Calendar,
    points: Points,
    *,
    fill: Fill,
    places: Places,
    min_coverage: float,
    settings: dict[str, Any],
    box_over_whole: bool = False,
) -> Prepared:
    """From one record a person and step to trajectories; from here on, the same code runs for all engines."""
    steps = calendar.steps or 0
    records = records.sort("person", "step")
    within = records.filter(pl.col("step") < steps)
    coverage = within.group_by("person").agg(share=pl.len() / steps)
    kept = coverage.filter(pl.col("share") >= min_coverage)["person"]
    records = records.filter(pl.col("person").is_in(kept.to_list()))
    if not records.height:
        if not coverage.height:
            raise InvalidData(
                "Nobody is left after selection: no record lies in the time window (`start`, `days`).",
                "start",
                "days",
            )
        raise InvalidData(
            "Nobody is left after selection: the best observed person has records in "
            f"{coverage['share'].to_numpy().max():.1%} of the steps; `min_coverage` asks for {min_coverage:.1%}.",
            "min_coverage",
        )
    people = records["person"].unique(maintain_order=True).to_list()
    ends = np.flatnonzero(np.diff(records["person"].rle_id().to_numpy(), append=np.iinfo(np.int64).max)) + 1
    known_of = np.split(records["step"].to_numpy(), ends[:-1])
    observed = np.zeros((len(people), steps), dtype=bool)
    for person, known in enumerate(known_of):
        observed[person, known[known < steps]] = True
    if "location" in records.columns:
        truth = _from_names(records["location"], known_of, calendar, people, fill=fill, places=places)
        positions = None
    else:
        lat_lng = records.select("lat", "lng").to_numpy()
        positions = np.empty((len(people), steps, 2))
        extent = []
        for person, (known, own) in enumerate(zip(known_of, np.split(lat_lng, ends[:-1]), strict=True)):
            length = max(steps, int(known[-1]) + 1) if box_over_whole else steps
            before, after, share = fill_steps(known, length, fill)
            whole = own[before] * (1 - share[:, None]) + own[after] * share[:, None]
            positions[person] = whole[:steps]
            extent.append(whole if box_over_whole else positions[person])
        locations, cells = places.locate(positions, np.concatenate(extent))
        truth = Trajectories(cells, locations, calendar, people)
    shares = 1 - observed.mean(axis=1)
    info = {
        **points.info,
        "timezone": points.timezone,
        "preparation": settings | {"fill": fill, "min_coverage": min_coverage, "places": _describe(places)},
        "filled": {
            "overall": round(float(shares.mean()), 6),
            "per_person": {name: round(float(share), 6) for name, share in zip(people, shares, strict=True)},
        },
    }
    return Prepared(truth, observed, positions, info)


def _from_names(
    names: pl.Series,
    known_of: list[NDArray[np.int64]],
    calendar: Calendar,
    people: list[str],
    *,
    fill: Fill,
    places: Places,
) -> Trajectories:
    """Trajectories of points that name their tower."""
    if not isinstance(places, Towers):
        raise InvalidSetting(
            "These points name a location; give the towers, which say where it is, as `places`.", "places"
        )
    towers = places.locations
    if fill == "linear":
        raise InvalidSetting("The fill is 'linear', but there is no line between two names; use 'last' or 'nearest'.")
    own = towers.indices(names.to_list())
    cells = np.empty((len(people), calendar.steps or 0), dtype=np.int32)
    begin = 0
    for person, known in enumerate(known_of):
        before, after, share = fill_steps(known, cells.shape[1], fill)
        cells[person] = own[begin + np.where(share > 0, after, before)]
        begin += len(known)
    return Trajectories(cells, towers, calendar, people)


def _describe(places: Places) -> dict[str, Any]:
    if isinstance(places, Grid):
        return {"kind": "grid", "cell_km": places.cell_km, "box": list(places.box)}
    resolution = getattr(places, "resolution", None)
    return {"kind": "h3", "resolution": resolution} if resolution is not None else {"kind": "towers"}
