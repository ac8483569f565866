"""From one record a person and step to trajectories: fill, locate, and say what was done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.io.dataset import DATASET, fill_dataset
from rekindle.io.safety.folders import Sensitive, mark_folder, new_folder
from rekindle.io.tables.table import write_table
from rekindle.model import Calendar, Dataset, Trajectories
from rekindle.prepare.fill import Fill, fill_steps
from rekindle.prepare.places import Grid, Places, Towers
from rekindle.sources.points import Points

__all__ = ["Prepared", "assemble"]

_FILLED = "filled.csv"


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

    @property
    def filled(self) -> NDArray[np.float64]:
        """(people,) float64, the share of each person's steps that were filled, from 0 to 1."""
        return np.asarray(1 - self.observed.mean(axis=1))

    def write(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        picture: tuple[str, Callable[[Path], None]] | None = None,
    ) -> None:
        """Write the dataset folder, all or nothing.

        Parameters
        ----------
        path
            The folder.
        overwrite
            Replace a dataset that is there.
        picture
            The name of a picture of the true positions, and what draws it into a file.
        """
        with new_folder(path, DATASET, overwrite=overwrite, private=True) as folder:
            fill_dataset(folder, Dataset(self.truth.counts(), self.truth, dict(self.info)))
            shares = pl.DataFrame({"person": self.truth.people_ids, "filled": self.filled.round(6)})
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
    info = {
        **points.info,
        "timezone": points.timezone,
        "preparation": settings | {"fill": fill, "min_coverage": min_coverage, "places": _describe(places)},
        "filled": round(float(1 - observed.mean()), 6),
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
        raise InvalidSetting(
            "`fill` is 'linear', but there is no line between two names; use 'last' or 'nearest'.", "fill"
        )
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
