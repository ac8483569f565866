"""From one record a person and step to trajectories: fill, locate, and say what was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.io.dataset import DATASET, fill_dataset
from rekindle.io.safety.folders import Sensitive, mark_folder, new_folder
from rekindle.io.tables.table import write_table
from rekindle.model import AWAY, Calendar, Dataset, Locations, Trajectories
from rekindle.model.calendar import format_step, parse_step
from rekindle.prepare.fill import AUTO, Fill, choose_max_gap, counted_steps, fill_steps
from rekindle.prepare.places import Grid, Places, Towers
from rekindle.sources.points import Points

_FILLED = "filled.csv"


@dataclass(frozen=True)
class Prepared:
    """What a preparation gives.

    Attributes
    ----------
    truth
        Where each person was, and what of it was observed.
    positions
        (people, steps, 2) float64, latitude and longitude in degrees before they became locations, NaN for people who are
        away; None where the points carry no coordinates of their own.
    info
        For `dataset.json`: where the data came from, its licence, the settings, what was skipped, and under `points` the
        shares of all points (people x steps) that were observed, that were filled, and at which people are away.
    """

    truth: Trajectories
    positions: NDArray[np.float64] | None
    info: Mapping[str, Any]

    @property
    def observed(self) -> NDArray[np.bool_]:
        """(people, steps) bool: the steps with at least one raw point; at all others people are filled in, or away."""
        return self.truth.counted if self.truth.observed is None else self.truth.observed

    @property
    def filled(self) -> NDArray[np.float64]:
        """(people,) float64, the share of each person's steps that were filled, from 0 to 1."""
        return np.asarray((self.truth.counted & ~self.observed).mean(axis=1))

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
        with new_folder(path, DATASET, overwrite=overwrite, private=True) as folder:
            moves = (self.truth.flows(),) if flows else ()
            fill_dataset(folder, Dataset(self.truth.counts(), self.truth, dict(self.info), moves))
            away = 1 - self.truth.counted.mean(axis=1)
            shares = pl.DataFrame(
                {"person": self.truth.people_ids, "filled": self.filled.round(6), "away": away.round(6)}
            )
            write_table(folder / _FILLED, shares, private=True)
            mark_folder(folder, DATASET, {_FILLED: Sensitive("how often each person was observed", "truth")})
            if picture is not None:
                name, draw = picture
                draw(folder / name)
                mark_folder(folder, DATASET, {name: Sensitive("picture of the true positions", "truth")})


def assemble(
    records: pl.DataFrame,
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
    """From one record a person and step to trajectories; from here on, the same code runs for all engines."""
    steps = calendar.steps or 0
    records = records.sort("person", "step")
    within = records.filter(pl.col("step").is_between(0, steps - 1))
    coverage = within.group_by("person").agg(share=pl.len() / steps)
    kept = coverage.filter(pl.col("share") >= min_coverage)["person"]
    records = records.filter(pl.col("person").is_in(kept.to_list()))
    if not records.height:
        if not coverage.height:
            raise InvalidData("Nobody is left after selection: no record lies in the time window (`start`, `days`).")
        raise InvalidData(
            "Nobody is left after selection: the best observed person has records in "
            f"{coverage['share'].to_numpy().max():.1%} of the steps; `min_coverage` asks for {min_coverage:.1%}."
        )
    people = records["person"].unique(maintain_order=True).to_list()
    ends = np.flatnonzero(np.diff(records["person"].rle_id().to_numpy(), append=np.iinfo(np.int64).max)) + 1
    known_of = np.split(records["step"].to_numpy(), ends[:-1])
    if max_gap is not None:
        max_gap = choose_max_gap(known_of, calendar.step) if max_gap == AUTO else parse_step(max_gap)
    limit = None if max_gap is None else max_gap // calendar.step
    observed = np.zeros((len(people), steps), dtype=bool)
    counted = np.zeros((len(people), steps), dtype=bool)
    for person, known in enumerate(known_of):
        observed[person, known[(known >= 0) & (known < steps)]] = True
        counted[person] = counted_steps(known, steps, fill, limit)
    cells = np.full((len(people), steps), AWAY, dtype=np.int32)
    positions = None
    if "location" in records.columns:
        locations, named = _from_names(records["location"], known_of, steps, fill=fill, places=places)
        cells[counted] = named[counted]
    else:
        lat_lng = records.select("lat", "lng").to_numpy()
        positions = np.full((len(people), steps, 2), np.nan)
        extent = []
        for person, (known, own) in enumerate(zip(known_of, np.split(lat_lng, ends[:-1]), strict=True)):
            length = max(steps, int(known[-1]) + 1) if box_over_whole else steps
            before, after, share = fill_steps(known, length, fill)
            whole = own[before] * (1 - share[:, None]) + own[after] * share[:, None]
            positions[person, counted[person]] = whole[:steps][counted[person]]
            if box_over_whole:
                extent.append(whole[counted_steps(known, length, fill, limit)])
        within_reach = positions[counted]
        locations, cells[counted] = places.locate(
            within_reach, np.concatenate(extent) if box_over_whole else within_reach
        )
        positions[cells == AWAY] = np.nan
    there = cells != AWAY
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
    seen = there.any(axis=1)
    if not seen.all():
        if not seen.any():
            raise InvalidData("Nobody is ever inside the box: `outside` is 'away'. Check `bounds`.")
        info["dropped"] = info.get("dropped", {}) | {"people who are never inside the box": int((~seen).sum())}
        cells, there, observed = cells[seen], there[seen], observed[seen]
        people = [name for name, kept in zip(people, seen, strict=True) if kept]
        positions = None if positions is None else positions[seen]
    observed &= there
    info["points"] = {
        "observed": round(float(observed.mean()), 6),
        "filled": round(float((there & ~observed).mean()), 6),
        "away": round(float(1 - there.mean()), 6),
    }
    truth = Trajectories(cells, locations, calendar, people, None if np.array_equal(observed, there) else observed)
    return Prepared(truth, positions, info)


def _from_names(
    names: pl.Series, known_of: list[NDArray[np.int64]], steps: int, *, fill: Fill, places: Places
) -> tuple[Locations, NDArray[np.int32]]:
    """Locations and (people, steps) int32 indices into them, of points that name their tower."""
    if not isinstance(places, Towers):
        raise InvalidSetting("These points name a location; give the towers, which say where it is, as `places`.")
    if fill == "linear":
        raise InvalidSetting("`fill` is 'linear', but there is no line between two names; use 'last' or 'nearest'.")
    own = places.locations.indices(names.to_list())
    cells = np.empty((len(known_of), steps), dtype=np.int32)
    begin = 0
    for person, known in enumerate(known_of):
        before, after, share = fill_steps(known, steps, fill)
        cells[person] = own[begin + np.where(share > 0, after, before)]
        begin += len(known)
    return places.locations, cells


def _describe(places: Places) -> dict[str, Any]:
    if isinstance(places, Grid):
        return {"kind": "grid", "cell_km": places.cell_km, "box": list(places.box), "outside": places.outside}
    resolution = getattr(places, "resolution", None)
    return {"kind": "h3", "resolution": resolution} if resolution is not None else {"kind": "towers"}
