"""A map to move about in: one page with its script inside, that asks no other computer for anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData, InvalidFile
from rekindle.frames import optional
from rekindle.io.safety.files import new_file
from rekindle.io.tables.trajectories import lng_lat, stretches
from rekindle.model import Counts, Locations, Trajectories
from rekindle.report.render import render

MOST_PEOPLE = 200
"""How many paths a page shows: more can neither be told apart nor drawn fast."""

_WIDTH, _HEIGHT = 700, 450
"""Pixels that everything should fit into at first."""

_GREY = [128, 128, 128, 150]
_PEOPLE = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
"""Okabe and Ito's colours; people beyond them get the same again."""

_STYLE = (
    "html,body{height:100%;max-width:none;margin:0;padding:0}#map{position:fixed;inset:0}"
    "#note{position:fixed;left:1em;bottom:0;pointer-events:none}"
)
_START = """
createDeck({
  container: document.getElementById("map"),
  jsonInput: JSON.parse(document.getElementById("layers").textContent),
  tooltip: {text: "{text}"},
});
"""


@dataclass(frozen=True)
class Map:
    """A page with a map; a notebook shows it.

    Attributes
    ----------
    title
        What it shows.
    html
        The page: several megabytes, since the script that draws is part of it.
    private
        Whether it shows single people.
    """

    title: str
    html: str
    private: bool

    def __repr__(self) -> str:
        return f"Map({self.title})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self.title)}" width="100%" height="500" style="border:0" sandbox="allow-scripts" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page; where it shows single people, to a file that only its owner may read.

        Parameters
        ----------
        path
            The file, with a name that ends in ``.html``.
        overwrite
            Replace a file that is there.
        """
        path = Path(path)
        if path.suffix != ".html":
            raise InvalidFile(path, f"the name ends in {path.suffix!r}; use .html.")
        with new_file(path, overwrite=overwrite, private=self.private) as temporary:
            Path(temporary).write_text(self.html, encoding="utf-8")


def explore(data: Counts | Trajectories) -> Map:
    """Show counts or paths on a map to zoom and move about in; point at something for its name.

    There is no background map: the tiles of one come from a server, which would learn where the people are. For the same
    reason the script that draws (deck.gl, from the extra ``maps``) is part of the page, which is forbidden to make requests.

    Parameters
    ----------
    data
        Counts: a circle for each location, its area the mean number of people. Trajectories: a line for each person, of at most
        200 people, without the time that they are away; a circle where they stay.
    """
    if not isinstance(data, (Counts, Trajectories)):
        raise InvalidData(f"A {type(data).__name__} has no map; give counts or trajectories.")
    points = lng_lat(data.locations)
    if isinstance(data, Counts):
        title = f"Mean counts of {data.people:,} people in {len(data.locations):,} locations"
        layers = [_circles(data, points)]
    else:
        if data.people > MOST_PEOPLE:
            raise InvalidData(
                f"There are {data.people:,} people; a map shows the paths of at most {MOST_PEOPLE}. Choose some of them first."
            )
        title = f"Paths of {data.people:,} {'person' if data.people == 1 else 'people'}"
        layers = [_dots(data.locations, points), *_lines(data, points)]
    known = data.locations.lat_lng is not None
    page = render(
        "map.html.jinja",
        images={},
        colours=_STYLE,
        script=_bundle() + _START,
        title=title,
        note="" if known else "Latitudes and longitudes are not known; the plane is shown around 0, 0.",
        layers={
            "initialViewState": _view(points),
            "views": [{"@@type": "MapView", "controller": True}],
            "layers": layers,
        },
    )
    return Map(title, page, private=isinstance(data, Trajectories))


def _bundle() -> str:
    """The script of deck.gl that pydeck brings with it."""
    folder = Path(optional("pydeck", extra="maps").__file__).parent
    return (
        (folder / "nbextension" / "static" / "index.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    )


def _circles(counts: Counts, points: NDArray[np.float64]) -> dict[str, Any]:
    mean, most = counts.values.mean(axis=0), counts.values.max(axis=0)
    size = np.sqrt(mean / mean.max())
    return _layer(
        "ScatterplotLayer",
        [
            {
                "at": point,
                "size": 1.5 + 25 * float(size[place]),
                "text": f"{name}: {mean[place]:.1f} people on average, at most {most[place]}",
            }
            for place, (name, point) in enumerate(zip(counts.locations.ids, points.tolist(), strict=True))
        ],
        getPosition="@@=at",
        getRadius="@@=size",
        radiusUnits="pixels",
        getFillColor=[*_PEOPLE[0], 150],
    )


def _dots(locations: Locations, points: NDArray[np.float64]) -> dict[str, Any]:
    return _layer(
        "ScatterplotLayer",
        [{"at": point, "text": name} for name, point in zip(locations.ids, points.tolist(), strict=True)],
        getPosition="@@=at",
        getRadius=2.5,
        radiusUnits="pixels",
        getFillColor=_GREY,
    )


def _lines(people: Trajectories, points: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The paths, and a circle for people who stay in one place, of whom a path would show nothing."""
    paths, stays = [], []
    for number, (name, cells) in enumerate(zip(people.people_ids, people.cells, strict=True)):
        shown = {"colour": _PEOPLE[number % len(_PEOPLE)], "text": name}
        for arrivals, _ in stretches(cells):
            passed = points[cells[arrivals]].tolist()
            if len(passed) > 1:
                paths.append({"path": passed, **shown})
            else:
                stays.append({"at": passed[0], **shown})
    lines: dict[str, Any] = {"getPath": "@@=path", "getColor": "@@=colour", "getWidth": 3, "widthUnits": "pixels"}
    circles: dict[str, Any] = {
        "getPosition": "@@=at",
        "getFillColor": "@@=colour",
        "getRadius": 6,
        "radiusUnits": "pixels",
    }
    return [
        _layer("PathLayer", paths, capRounded=True, jointRounded=True, opacity=0.5, **lines),
        _layer("ScatterplotLayer", stays, name="stays", opacity=0.5, **circles),
    ]


def _layer(kind: str, data: list[dict[str, Any]], *, name: str | None = None, **settings: Any) -> dict[str, Any]:
    return {"@@type": kind, "id": name or kind, "data": data, "pickable": True, **settings}


def _view(points: NDArray[np.float64]) -> dict[str, float]:
    """The middle of the points, and the zoom at which all of them are seen (512 pixels show the world at zoom 0)."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    wide, tall = np.maximum(high - low, 1e-3)
    tall /= max(math.cos(math.radians(middle[1])), 0.01)
    zoom = min(math.log2(_WIDTH * 360 / 512 / wide), math.log2(_HEIGHT * 360 / 512 / tall))
    return {"longitude": float(middle[0]), "latitude": float(middle[1]), "zoom": min(max(zoom, 0.0), 18.0)}
