"""The map of places: how much of the time spent in each was recovered, with degrees, a scale and north."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rekindle.model import Locations
from rekindle.report.charts import WIDTH, key, svg, tag
from rekindle.report.words import percent

_MAP_HEIGHT = 360
_LEFT, _BELOW, _FOOT = 84, 24, 34
_ASKEW = 0.02
_KM_PER_DEGREE = 111.195


@dataclass(frozen=True)
class Degrees:
    """Where the degrees lie on the plane of a map: latitude and longitude at (0, 0), and their growth per km."""

    lat: float
    lng: float
    lat_per_km: float
    lng_per_km: float


@dataclass(frozen=True)
class Place:
    """One place of a map.

    Attributes
    ----------
    name
        As hovering or tapping shows it.
    xy_km
        Its centre.
    hours
        Person-hours that were spent there.
    share
        The share of them that was recovered; None where nobody was.
    """

    name: str
    xy_km: tuple[float, float]
    hours: float
    share: float | None


def fit_degrees(locations: Locations) -> Degrees | None:
    """Find the degrees of a plane; None where they are not known, or not parallel to its axes."""
    if locations.lat_lng is None:
        return None
    lat, lng = locations.lat_lng.T
    lng = (lng - lng[0] + 180.0) % 360.0 - 180.0 + lng[0]
    x, y = locations.xy_km.T
    narrow = max(math.cos(math.radians(float(lat.mean()))), 1e-6)
    found = []
    for along, degrees, usual in ((y, lat, 1 / _KM_PER_DEGREE), (x, lng, 1 / _KM_PER_DEGREE / narrow)):
        middle, spread = along.mean(), float(np.ptp(along))
        slope = float(np.polyfit(along - middle, degrees, 1)[0]) if spread > 1e-9 else usual
        start = float(degrees.mean() - slope * middle)
        off = np.abs(start + slope * along - degrees).max() / usual
        if slope <= 0 or off > _ASKEW * max(float(np.ptp(locations.xy_km, axis=0).max()), 1.0):
            return None
        found.append((start, slope))
    (lat0, lat_per_km), (lng0, lng_per_km) = found
    return Degrees(lat0, lng0, lat_per_km, lng_per_km)


def coordinates(lat: float, lng: float, decimals: int = 4) -> str:
    """Coordinates as a map writes them."""
    return f"{_degree(lat, 'NS', decimals)}, {_degree(lng, 'EW', decimals)}"


def map_of_places(title: str, places: Sequence[Place], side_km: float | None, degrees: Degrees | None) -> Markup:
    """Draw places by the person-time recovered there, or by its share: squares on a lattice, else dots.

    Parameters
    ----------
    title
        For those who cannot see it.
    places
        What is drawn.
    side_km
        Of the squares of a lattice; None for towers.
    degrees
        Where the degrees lie, where that is known.
    """
    xy_km = np.array([place.xy_km for place in places])
    low, high = xy_km.min(axis=0), xy_km.max(axis=0)
    pad = (side_km or max(float((high - low).max()), 1.0) / 20) / 2
    low, high = low - pad, high + pad
    left = _LEFT if degrees else 0
    scale = float(min((WIDTH - left) / (high[0] - low[0]), _MAP_HEIGHT / (high[1] - low[1])))
    wide, tall = ((high - low) * scale).tolist()
    left += (WIDTH - left - wide) / 2 if not degrees else 0
    breaks = _breaks([place.hours * place.share for place in places if place.share is not None])
    size = max((side_km or 0.0) * scale - 1, 1.0)
    drawn = [tag("rect", class_="frame", x=float(left), y=0.0, width=wide, height=tall)]
    for place in places:
        x, y = left + (place.xy_km[0] - low[0]) * scale, (high[1] - place.xy_km[1]) * scale
        css = _css(place, breaks)
        text = tag("title", _told(place))
        if side_km is None:
            drawn.append(
                tag("circle", text, class_=css, cx=float(x), cy=float(y), r=3.5 if place.share is None else 5.5)
            )
        else:
            box = {"x": float(x - size / 2), "y": float(y - size / 2), "width": size, "height": size}
            drawn.append(tag("rect", text, class_=css, **box))
    if degrees:
        drawn += _graticule(degrees, low, high, scale, left, tall)
    foot = tall + (_BELOW if degrees else 0)
    drawn += _scale_and_north(scale, wide, left, foot)
    nobody = [("nobody was here", "nobody")]
    edges = [f"{edge:,g}" for edge in breaks]
    hours = [
        f"under {edges[0]} h",
        *(f"{a}–{b} h" for a, b in itertools.pairwise(edges)),
        f"from {edges[-1]} h",
    ]
    by_time = key([(text, f"shade{at}") for at, text in enumerate(hours)] + nobody)
    by_share = key([(f"{at * 20}–{at * 20 + 20}%", f"shade{at}") for at in range(5)] + nobody)
    return (
        _choice("by-time", "Person-hours", chosen=True)
        + _choice("by-share", "Share")
        + tag("div", by_time, class_="for-time")
        + tag("div", by_share, class_="for-share")
        + svg(title, WIDTH, math.ceil(foot + _FOOT), *drawn, css="chart map")
        + tag("p", "Point at a place or tap it to see its name.", class_="readout", id="place", role="status")
    )


def _choice(name: str, text: str, *, chosen: bool = False) -> Markup:
    own = Markup('<input type="radio" name="colours" id="{}"{}>').format(name, Markup(" checked" if chosen else ""))
    return own + tag("label", text, for_=name)


def _told(place: Place) -> str:
    if place.share is None:
        return f"{place.name}: nobody was here"
    return f"{place.name}: {percent(place.share)} of {place.hours:,.3g} person-hours recovered"


def _css(place: Place, breaks: Sequence[float]) -> str:
    """Two shades, of which the page shows one: by recovered person-time, and by share."""
    if place.share is None:
        return "place nobody"
    time = sum(place.hours * place.share >= edge for edge in breaks)
    return f"place t{time} s{min(int(place.share * 5), 4)}"


def _breaks(hours: Sequence[float]) -> list[float]:
    """Four edges between five shades: round numbers, the highest at most half of the largest value."""
    most = max(hours, default=0.0) / 2 or 1.0
    found: list[float] = []
    for edge in _round_numbers(most):
        if len(found) == 4:
            break
        found.insert(0, edge)
    return found


def _round_numbers(most: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, downwards from a number."""
    power = math.floor(math.log10(most))
    while True:
        yield from (edge for factor in (5, 2, 1) if (edge := float(f"{factor}e{power}")) <= most)
        power -= 1


def _graticule(
    degrees: Degrees, low: NDArray[np.float64], high: NDArray[np.float64], scale: float, left: float, tall: float
) -> Iterator[Markup]:
    """Degrees along the left and the lower edge."""
    for at, (start, slope, signs) in enumerate(
        ((degrees.lng, degrees.lng_per_km, "EW"), (degrees.lat, degrees.lat_per_km, "NS"))
    ):
        first, last = start + slope * low[at], start + slope * high[at]
        # Labels of longitudes stand side by side and need more room.
        step = next(_round_numbers((last - first) / (2 if at == 0 else 2.5)))
        decimals = max(-math.floor(math.log10(step)), 0)
        for number in range(math.ceil(first / step), math.floor(last / step) + 1):
            text = _degree(number * step, signs, decimals)
            along = float((number * step - start) / slope - low[at]) * scale
            if at == 0:
                x = left + along
                yield tag("line", class_="tickmark", x1=x, x2=x, y1=tall, y2=tall + 4)
                yield tag("text", text, class_="tick", x=min(x, WIDTH - 34.0), y=tall + 19, text_anchor="middle")
            else:
                y = tall - along
                yield tag("line", class_="tickmark", x1=left - 4.0, x2=float(left), y1=y, y2=y)
                yield tag("text", text, class_="tick", x=left - 7.0, y=min(max(y + 4, 12.0), tall), text_anchor="end")


def _scale_and_north(scale: float, wide: float, left: float, foot: float) -> Iterator[Markup]:
    km = next(_round_numbers(wide / scale / 3))
    length, y = km * scale, foot + 12.0
    name = f"{km:g} km" if km >= 1 else f"{1000 * km:g} m"
    bar = f"M{left:.1f},{y - 4:.1f}v8M{left:.1f},{y:.1f}h{length:.1f}M{left + length:.1f},{y - 4:.1f}v8"
    yield tag("path", class_="scale", d=bar)
    yield tag("text", name, class_="tick", x=left + length + 8, y=y + 5)
    east = left + wide - 8
    yield tag("path", class_="north", d=f"M{east:.1f},{y - 8:.1f}l5,16l-5,-4l-5,4z")
    yield tag("text", "N", class_="tick", x=east - 10, y=y + 5, text_anchor="end")


def _degree(value: float, signs: str, decimals: int) -> str:
    value = (value + 180.0) % 360.0 - 180.0
    return f"{abs(value):.{decimals}f}° {signs[value < 0]}"
