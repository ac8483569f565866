"""From records to spells in locations, wherever they are kept: fill, locate, count, and say what was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.io.dataset import DATASET, describe
from rekindle.io.safety.files import write_json
from rekindle.io.safety.folders import Sensitive, mark_folder, new_folder
from rekindle.io.tables.locations import write_locations
from rekindle.model import AWAY, Calendar, Locations, Trajectories
from rekindle.model.calendar import format_step, parse_step
from rekindle.prepare import tables
from rekindle.prepare.fill import AUTO, Fill, choose_max_gap, spells
from rekindle.prepare.places import Extent, Grid, Located, Places, Towers
from rekindle.sources.engine import Frame, Parts, beside, collect, with_computed
from rekindle.sources.points import Points


@dataclass(frozen=True)
class Prepared:
    """What a preparation gives: a table of spells, which `write` turns into a dataset folder without holding it in memory.

    Attributes
    ----------
    spells
        One row for each stretch of steps that a person was in one location: `person`, `begin`, `end` (the step after the last),
        `location` (its index), `at` (the step of the record behind it, null for none), and `lat`, `lng` where the points have them.
    people
        How many people there are.
    locations, calendar
        Where and when people are counted.
    filled_least, filled_most
        The smallest and the largest share of a person's steps that were filled, from 0 to 1.
    info
        For `dataset.json`: where the data came from, its licence, the settings, what was skipped, and under `points` the
        shares of all points (people x steps) that were observed, that were filled, and at which people are away.
    """

    spells: Parts
    people: int
    locations: Locations
    calendar: Calendar
    filled_least: float
    filled_most: float
    info: Mapping[str, Any]

    @cached_property
    def _rows(self) -> pl.DataFrame:
        """All spells, in order."""
        return collect(self.spells.frame).sort("person", "begin")

    @cached_property
    def _index(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each step of each spell: its place in an array of people x steps, and its row."""
        steps, rows = self.calendar.steps or 0, self._rows
        begin, length = rows["begin"].to_numpy(), (rows["end"] - rows["begin"]).to_numpy()
        first = (rows["person"].rle_id().to_numpy().astype(np.int64) * steps + begin) - (length.cumsum() - length)
        row = np.repeat(np.arange(len(rows)), length)
        return np.arange(length.sum()) + first[row], row

    @cached_property
    def truth(self) -> Trajectories:
        """Where each person was, and what of it was observed."""
        shape = (self.people, self.calendar.steps or 0)
        at, row = self._index
        cells = np.full(shape, AWAY, np.int32)
        cells.flat[at] = self._rows["location"].to_numpy()[row]
        names = self._rows["person"].unique(maintain_order=True)
        return Trajectories(
            cells, self.locations, self.calendar, names, self.observed if self.filled_most > 0 else None
        )

    @cached_property
    def positions(self) -> NDArray[np.float64] | None:
        """(people, steps, 2) float64, latitude and longitude in degrees before they became locations, NaN where away.

        None where the points carry no coordinates of their own.
        """
        if "lat" not in self._rows.columns:
            return None
        at, row = self._index
        found = np.full((self.people * (self.calendar.steps or 0), 2), np.nan)
        found[at] = self._rows.select("lat", "lng").to_numpy()[row]
        return found.reshape(self.people, -1, 2)

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """(people, steps) bool: the steps with at least one raw point; at all others people are filled in, or away."""
        steps, rows = self.calendar.steps or 0, self._rows
        person, at = rows["person"].rle_id().to_numpy(), rows["at"].fill_null(-1).to_numpy()
        seen = (at >= rows["begin"].to_numpy()) & (at < rows["end"].to_numpy())
        found = np.zeros((self.people, steps), bool)
        found[person[seen], at[seen]] = True
        return found

    @property
    def filled(self) -> NDArray[np.float64]:
        """(people,) float64, the share of each person's steps that were filled, from 0 to 1."""
        return np.asarray((self.truth.counted & ~self.observed).mean(axis=1))

    def some_positions(self, most: int = 50_000) -> NDArray[np.float64] | None:
        """(positions, 2) float64, latitude and longitude of about so many spells, wherever they are kept; None as above."""
        frame = self.spells.frame
        if "lat" not in frame.collect_schema().names():
            return None
        every = -(-collect(frame.select(nw.len())).item() // most)
        number = (nw.col("lat") * 1e6).floor().cast(nw.Int64) + nw.col("begin")
        return collect(frame.filter(number % every == 0).select("lat", "lng")).sort("lat", "lng").to_numpy()

    def write(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        flows: bool = False,
        picture: tuple[str, Callable[[Path], None]] | None = None,
    ) -> None:
        """Write the dataset folder, all or nothing.

        Parameters
        ----------
        path
            The folder.
        overwrite
            Replace a dataset that is there.
        flows
            Whether to write the flows between steps too.
        picture
            The name of a picture of the true positions, and what draws it into a file.
        """
        calendar = self.calendar
        about = describe(self.people, self.locations, calendar, [(calendar, True)] if flows else [])
        with new_folder(path, DATASET, overwrite=overwrite, private=True) as folder:
            write_locations(folder / "locations.parquet", self.locations)
            write_json(folder / "dataset.json", about | dict(self.info))
            out = tables.Writer(folder, self.locations, calendar)
            out.write("counts", tables.counts_of(self.spells, calendar))
            if flows:
                out.write("flows", tables.flows_of(self.spells, calendar), ("origin", "destination"))
            out.write_truth(self.spells, filled=self.filled_most > 0)
            out.write_shares(self.spells)
            if picture is not None:
                name, draw = picture
                draw(folder / name)
                mark_folder(folder, DATASET, {name: Sensitive("picture of the true positions", "truth")})


def assemble(
    records: Parts,
    calendar: Calendar,
    points: Points,
    *,
    fill: Fill,
    places: Places,
    min_coverage: float,
    max_gap: str | timedelta | None,
    settings: dict[str, Any],
    box_over_whole: bool = False,
) -> Prepared:
    """From records of a person and step, as `with_neighbours` gives them, to spells in locations."""
    steps = calendar.steps or 0
    named = "location" in records.frame.collect_schema().names()
    if named and not isinstance(places, Towers):
        raise InvalidSetting("These points name a location; give the towers, which say where it is, as `places`.")
    if named and fill == "linear":
        raise InvalidSetting("`fill` is 'linear', but there is no line between two names; use 'last' or 'nearest'.")
    kept = records.lazily(partial(_observed_people, steps=steps, min_coverage=min_coverage))
    if max_gap is not None:
        max_gap = choose_max_gap(kept, calendar.step) if max_gap == AUTO else parse_step(max_gap)
    limit = None if max_gap is None else max_gap // calendar.step
    found = kept.map(partial(spells, steps=steps, fill=fill, max_gap=limit, whole=box_over_whole))
    before = _total(found)
    if not before["people"]:
        raise _nobody(records, steps, min_coverage)
    if named and isinstance(places, Towers):
        locations, located = places.locations, _from_names(found, places.locations)
    else:
        fitted = places.fit(Extent(found.frame, steps))
        locations, located = fitted.locations, found.map(partial(_locate, fitted=fitted, steps=steps))
    total = _total(located)
    info = {
        **points.info,
        "timezone": points.timezone,
        "preparation": settings
        | {
            "fill": fill,
            "max_gap": None if max_gap is None else format_step(max_gap),
            "min_coverage": min_coverage,
            "places": _describe(places),
        },
    }
    people = total["people"]
    if people < before["people"]:
        if not people:
            raise InvalidData("Nobody is ever inside the box: `outside` is 'away'. Check `bounds`.")
        never = {"people who are never inside the box": before["people"] - people}
        info["dropped"] = info.get("dropped", {}) | never
    counted, observed = total["counted"] / (people * steps), total["observed"] / (people * steps)
    info["points"] = {
        "observed": round(observed, 6),
        "filled": round((total["counted"] - total["observed"]) / (people * steps), 6),
        "away": round(1 - counted, 6),
    }
    return Prepared(located, people, locations, calendar, total["least"] / steps, total["most"] / steps, info)


def _observed_people(records: Frame, *, steps: int, min_coverage: float) -> Frame:
    """Keep the records of people who have some within the steps, and at the share of them that is asked for."""
    within = (nw.col("step") >= 0) & (nw.col("step") < steps)
    observed = nw.when(within).then(nw.lit(1)).otherwise(nw.lit(0)).sum().over("person")
    enough = (nw.col("_observed") > 0) & (nw.col("_observed") / steps >= min_coverage)
    return records.with_columns(_observed=observed).filter(enough).drop("_observed")


def _nobody(records: Parts, steps: int, min_coverage: float) -> InvalidData:
    within = (nw.col("step") >= 0) & (nw.col("step") < steps)
    best = records.gather(
        lambda part: part.filter(within).group_by("person").agg(n=nw.len()).select(nw.col("n").max())
    )
    most = max(best["n"].drop_nulls(), default=0)
    if not most:
        return InvalidData("Nobody is left after selection: no record lies in the time window (`start`, `days`).")
    return InvalidData(
        f"Nobody is left after selection: the best observed person has records in {most / steps:.1%} of the steps; "
        f"`min_coverage` asks for {min_coverage:.1%}."
    )


def _total(spells: Parts) -> dict[str, int]:
    """How many people there are, their steps and observed steps, and the fewest and most filled steps of a person."""

    def total(part: Frame) -> Frame:
        filled = nw.col("counted") - nw.col("observed")
        return tables.shares_of(part).select(
            nw.col("counted", "observed").sum(), people=nw.len().cast(nw.Int64), least=filled.min(), most=filled.max()
        )

    parts = spells.gather(total)
    sums = parts.select(pl.col("counted", "observed", "people").sum(), pl.col("least").min(), pl.col("most").max())
    return sums.row(0, named=True)


def _locate(spells: Frame, *, fitted: Located, steps: int) -> Frame:
    """Put the spells within the steps into their locations; those outside of all go away."""
    spells = spells.filter(nw.col("begin") < steps).with_columns(end=nw.min_horizontal("end", nw.lit(steps)))
    return with_computed(spells, "location", ["lat", "lng"], fitted.index, nw.Int64).filter(
        nw.col("location") != AWAY
    )


def _from_names(spells: Parts, locations: Locations) -> Parts:
    """Put the spells of points that name their tower into the towers."""
    names = (
        pl.DataFrame({"location": locations.ids}).with_row_index("index").with_columns(pl.col("index").cast(pl.Int64))
    )
    found = spells.map(lambda part: part.join(beside(part, names), on="location", how="left"))
    unknown = found.gather(lambda part: part.filter(nw.col("index").is_null()).select("location").head(1))
    locations.indices(unknown["location"].to_list())  # refuses them
    return found.map(lambda part: part.drop("location").rename({"index": "location"}))


def _describe(places: Places) -> dict[str, Any]:
    if isinstance(places, Grid):
        return {"kind": "grid", "cell_km": places.cell_km, "box": list(places.box), "outside": places.outside}
    resolution = getattr(places, "resolution", None)
    return {"kind": "h3", "resolution": resolution} if resolution is not None else {"kind": "towers"}
