"""The datasets of the paper, as closely as its text and notebooks define them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile
from rekindle.io import read_counts
from rekindle.model import Counts, Locations, Trajectories
from rekindle.prepare import Extent, Grid, Located, Prepared, prepare_geolife, prepare_porto
from rekindle.reproduce.paper import PAPER, PaperResult
from rekindle.sources import read_geolife, read_porto
from rekindle.sources.engine import collect
from rekindle.sources.synthetic import SyntheticCity

PUBLISHED_RADIUS_KM = 6317.0
"""The published notebook's radius of the earth; the mean radius is 6371 km."""

GEOLIFE = {
    "GeoLife 37": ("2min", 2, (5.0, 95.0)),
    "GeoLife 38": ("1min", 3, (1.0, 99.0)),
    "GeoLife 43": ("1min", 5, (5.0, 95.0)),
}
"""Step, months and box, as far as file names and the notebook record them."""

PORTO = {"Porto 3x3": (3, 4699.0, -716.0), "Porto 7x7": (7, 4694.5, -718.5)}
"""Cells a side and the lowest corner of the published grids, km on the published plane."""

PORTO_START, PORTO_DAYS = datetime(2014, 5, 1), 30


@dataclass(frozen=True)
class Subject:
    """A dataset to attack.

    Attributes
    ----------
    name
        The paper's name for it, or one like it.
    counts, truth
        The release, and the people behind it; None where they are not published.
    paper
        What the paper reports on it; None where it does not know it.
    positions
        (people, steps, 2) float64, latitude and longitude in degrees, for the picture of the grid; None if not known.
    notes
        In what it differs from the paper's, in sentences.
    """

    name: str
    counts: Counts
    truth: Trajectories | None = None
    paper: PaperResult | None = None
    positions: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PortoGrid:
    """The published grid of Porto: grid cells on the plane of the published notebook.

    The notebook takes x = R cos(lat) cos(lng) and y = R cos(lat) sin(lng) as km. That is the view from above the pole, which
    shortens distances to the north by a third in Porto: a cell of "4 km2" covers about 2 km x 3 km, 6 km2.

    Parameters
    ----------
    side
        Cells in a row.
    low_x, low_y
        The lowest corner, km on that plane.
    cell_km
        Side of a cell on that plane.
    """

    side: int
    low_x: float
    low_y: float
    cell_km: float = 2.0

    def fit(self, extent: Extent) -> Located:
        """See `rekindle.prepare.Places`: positions outside are moved onto the edge."""
        return Located(self.locations, self._cells)

    def _cells(self, lat_lng: NDArray[np.float64]) -> NDArray[np.int64]:
        lat, lng = np.radians(lat_lng[..., 0]), np.radians(lat_lng[..., 1])
        x, y = PUBLISHED_RADIUS_KM * np.cos(lat) * np.cos(lng), PUBLISHED_RADIUS_KM * np.cos(lat) * np.sin(lng)
        row, column = (
            np.clip((along - low) // self.cell_km, 0, self.side - 1).astype(np.int64)
            for along, low in ((x, self.low_x), (y, self.low_y))
        )
        return np.asarray(row * self.side + column)

    @property
    def locations(self) -> Locations:
        """The centres, as the published grid files have them; in degrees too."""
        rows, columns = (index.ravel() for index in np.indices((self.side, self.side)))
        x, y = (low + (index + 0.5) * self.cell_km for low, index in ((self.low_x, rows), (self.low_y, columns)))
        lat_lng = np.degrees([np.arccos(np.hypot(x, y) / PUBLISHED_RADIUS_KM), np.arctan2(y, x)]).T
        names = [f"({i}, {j})" for i, j in zip(rows, columns, strict=True)]
        return Locations(np.stack([y, x], axis=1), names, lat_lng)


@dataclass(frozen=True)
class Sources:
    """What there is to reproduce the paper from; whatever is None is skipped and named.

    Parameters
    ----------
    geolife
        The folder or zip of GeoLife.
    porto
        The train.csv of Porto Taxi.
    published
        A folder with aggregates that were published with the paper, such as a copy of its repository.
    city
        The synthetic city that stands in where there is no data at all.
    """

    geolife: Path | None = None
    porto: Path | None = None
    published: Path | None = None
    city: SyntheticCity = field(default_factory=lambda: SyntheticCity(people=40, days=7, step="10min"))

    def check(self) -> None:
        """Refuse what is not there, before the work begins."""
        for path, what in ((self.geolife, "GeoLife"), (self.porto, "Porto Taxi"), (self.published, "aggregates")):
            if path is not None and not path.exists():
                raise InvalidFile(path, f"this does not exist; it was given as the {what} data.")
        if self.published is not None and not list(_aggregates(self.published)):
            raise InvalidFile(self.published, "there is no aggregate here: no csv file with 'aggreg' in its name.")

    @property
    def aggregates(self) -> list[Path]:
        """Published aggregates: those in the folder given, and those that lie beside the Porto file."""
        beside = None if self.porto is None else self.porto if self.porto.is_dir() else self.porto.parent
        found: dict[str, Path] = {}
        for folder in (self.published, beside):
            for path in () if folder is None else _aggregates(folder):
                found.setdefault(_published_name(path), path)
        return [
            found[name] for name in [*(name for name in PAPER if name in found), *sorted(found.keys() - PAPER.keys())]
        ]

    @property
    def skipped(self) -> list[str]:
        """What is left out, in sentences."""
        absent = []
        if self.geolife is None:
            absent.append("GeoLife 37, 38 and 43: the raw data of GeoLife was not given.")
        if self.porto is None:
            absent.append("Porto 3x3 and 7x7: the train.csv of Porto Taxi was not given.")
        if not self.aggregates:
            absent.append("The published aggregates were not given.")
        else:
            names = {_published_name(path) for path in self.aggregates}
            absent += [
                f"The published aggregate of {name} is not among those given." for name in PAPER if name not in names
            ]
        return absent

    def loaders(self) -> Iterator[tuple[str, Callable[[], Subject]]]:
        """The name of each subject, and the function that prepares it."""
        if self.geolife is not None:
            yield from ((name, partial(_geolife, name, self.geolife)) for name in GEOLIFE)
        if self.porto is not None:
            yield from ((name, partial(_porto, name, self.porto)) for name in PORTO)
        for path in self.aggregates:
            yield f"{_published_name(path)}, published counts", partial(_published, path)
        if self.geolife is None and self.porto is None and not self.aggregates:
            yield "Synthetic city", partial(_synthetic, self.city)


def _synthetic(city: SyntheticCity) -> Subject:
    truth = city.trajectories()
    return Subject("Synthetic city", truth.counts(), truth)


def _geolife(name: str, source: Path) -> Subject:
    step, months, box = GEOLIFE[name]
    places = Grid(cell_km=1.0, box=box)
    return _prepared(
        name, prepare_geolife(read_geolife(source), step=step, months=months, fill="nearest", places=places)
    )


def _porto(name: str, source: Path) -> Subject:
    points, places = read_porto(source, timezone="UTC"), PortoGrid(*PORTO[name])
    span = collect(points.frame.select("time"))["time"]
    if not len(span):
        raise InvalidFile(source, "there are no trips in it.")
    epoch = datetime(1970, 1, 1)
    first, last = (epoch + timedelta(seconds=int(bound)) for bound in (span.min(), span.max()))  # type: ignore[arg-type]
    if first <= PORTO_START and last >= PORTO_START + timedelta(days=PORTO_DAYS):
        found = prepare_porto(points, start=PORTO_START, days=PORTO_DAYS, fill="nearest", places=places)
        return _prepared(name, found)
    days = max(1, int((last - first) / timedelta(days=1)))
    found = prepare_porto(points, days=min(days, PORTO_DAYS), fill="nearest", places=places)
    length = "one day" if days == 1 else f"{days} days"
    note = (
        f"The file given has trips from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC only, so this is {length} "
        f"instead of the paper's {PORTO_DAYS} from {PORTO_START:%Y-%m-%d} on: its numbers cannot be compared with the "
        "paper's." + (" There is no day before to link to or to learn from." if days == 1 else "")
    )
    return _prepared(name, found, (note,), comparable=False)


def _prepared(name: str, found: Prepared, notes: tuple[str, ...] = (), *, comparable: bool = True) -> Subject:
    paper = PAPER[name] if comparable else None
    if paper is not None and found.truth.people != paper.people:
        notes += (f"It has {found.truth.people} people where the paper has {paper.people}.",)
    return Subject(name, found.truth.counts(), found.truth, paper, found.positions, notes)


def _aggregates(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.csv")):
        if re.search("aggreg", path.name, re.IGNORECASE):
            yield path


def _published_name(path: Path) -> str:
    """The paper's name for a published file, by its own name."""
    text = path.stem.lower()
    for name in PAPER:
        source, size = name.lower().split()
        if source in text and re.search(rf"(?<!\d){size}(?!\d)", text):
            return name
    return path.stem


def _published(path: Path) -> Subject:
    """Read a published aggregate with its grid; without, its grid cells have sides of 1 km and are placed by their names."""
    grid = path.with_name(re.sub("aggreg[a-z]*", "grid", path.name, flags=re.IGNORECASE))
    counts = read_counts(path, grid if grid.exists() else None)
    name = _published_name(path)
    paper = PAPER.get(name)
    if paper is not None and (counts.people, counts.steps) != (paper.people, paper.steps):
        raise InvalidData(
            f"{path} has {counts.people} people and {counts.steps} steps; the paper's {name} has {paper.people} and "
            f"{paper.steps}."
        )
    return Subject(f"{name}, published counts", counts, None, paper)
