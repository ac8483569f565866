"""Charts as inline SVG: plain text that needs no script, follows the page's light or dark colours, and prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["Line", "Point", "bars", "histogram", "lines", "map_of_places", "privacy_and_use"]

_WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 26, 14, 48


@dataclass(frozen=True)
class Line:
    """One line of a chart: its name, the class that gives it a colour, and its points (None: not known)."""

    name: str
    css: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Point:
    """One release in the picture of privacy and use: shares, and the error of its counts."""

    number: int
    name: str
    error: float
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class _Frame:
    """Where values are drawn."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int
    width: int = _WIDTH

    def across(self, value: float) -> float:
        return _LEFT + (value - self.x[0]) / ((self.x[1] - self.x[0]) or 1) * (self.width - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        return self.height - _BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - _TOP - _BOTTOM)

    def axes(self, xticks: Sequence[tuple[float, str]], yticks: Sequence[tuple[float, str]], xname: str) -> str:
        parts = []
        for value, text in yticks:
            at = self.down(value)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{self.width - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape(text)}</text>'
            )
        for value, text in xticks:
            at = self.across(value)
            parts.append(
                f'<text class="tick" x="{at:.1f}" y="{self.height - _BOTTOM + 20}" text-anchor="middle">{escape(text)}</text>'
            )
        middle = (_LEFT + self.width - _RIGHT) / 2
        parts.append(
            f'<text class="axis" x="{middle:.0f}" y="{self.height - 4}" text-anchor="middle">{escape(xname)}</text>'
        )
        return "".join(parts)


def _svg(title: str, width: int, height: int, body: str) -> str:
    return (
        f'<svg class="chart" role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {height}" '
        f'preserveAspectRatio="xMidYMid meet">{body}</svg>'
    )


def _percents(top: float) -> list[tuple[float, str]]:
    step = 0.25 if top > 0.5 else 0.1 if top > 0.2 else 0.05
    return [(at * step, f"{at * step:.0%}") for at in range(round(top / step) + 1)]


def _ceiling(values: Sequence[float]) -> float:
    """The top of an axis of shares."""
    most = max(values, default=1.0)
    return next((top for top in (0.1, 0.2, 0.3, 0.5, 0.75) if most <= top), 1.0)


def lines(
    title: str,
    found: Sequence[Line],
    *,
    xname: str,
    xticks: Sequence[tuple[float, str]],
    dots: bool = False,
) -> str:
    """Draw shares as lines, with a key above."""
    values = [y for line in found for _, y in line.points if y is not None]
    xs = [x for line in found for x, _ in line.points]
    frame = _Frame((min(xs), max(xs)), (0.0, _ceiling(values)), 270)
    parts = [frame.axes(xticks, _percents(frame.y[1]), xname)]
    for line in found:
        points = [(frame.across(x), frame.down(y)) for x, y in line.points if y is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line {line.css}" points="{path}"/>')
        if dots or len(points) == 1:
            parts += [f'<circle class="dot {line.css}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points]
    return key([(line.name, line.css) for line in found]) + _svg(title, _WIDTH, 270, "".join(parts))


def key(entries: Sequence[tuple[str, str]]) -> str:
    """Say which colour is which."""
    items = "".join(f'<li><span class="swatch {css}"></span>{escape(name)}</li>' for name, css in entries)
    return f'<ul class="key">{items}</ul>'


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw shares as rows of bars: name, share, class. Plain elements, so that long names wrap on a phone."""
    items = "".join(
        f'<li><span class="barname">{escape(name)}</span><span class="track"><svg viewBox="0 0 100 10" '
        f'preserveAspectRatio="none" aria-hidden="true"><rect class="fill {css}" width="{100 * max(share, 0.004):.1f}" '
        f'height="10"/></svg></span><span class="barvalue">{share:.0%}</span></li>'
        for name, share, css in rows
    )
    return f'<ul class="bars" aria-label="{escape(title)}">{items}</ul>'


def histogram(title: str, values: Sequence[float], mark: float, css: str, *, xname: str) -> str:
    """Draw how many people have which share, with a line for guessing."""
    edges = np.linspace(0, 1, 21)
    heights = np.histogram(np.clip(values, 0, 1), edges)[0]
    top = max(int(heights.max()), 1)
    frame = _Frame((0.0, 1.0), (0.0, float(top)), 240)
    every = max(1, math.ceil(top / 4))
    parts = [
        frame.axes(
            [(at / 4, f"{at / 4:.0%}") for at in range(5)], [(n, str(n)) for n in range(0, top + 1, every)], xname
        )
    ]
    for left, height in zip(edges[:-1], heights, strict=True):
        if height:
            x, y = frame.across(float(left)) + 1, frame.down(float(height))
            width = frame.across(0.05) - frame.across(0.0) - 2
            parts.append(
                f'<rect class="fill {css}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{frame.down(0) - y:.1f}">'
                f"<title>{height} people: {left:.0%} to {left + 0.05:.0%}</title></rect>"
            )
    at = frame.across(mark)
    parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{frame.down(0):.1f}"/>')
    parts.append(f'<text class="tick" x="{at + 5:.1f}" y="{_TOP + 10}">guessing</text>')
    return _svg(title, _WIDTH, 240, "".join(parts))


def _use(error: float) -> float:
    """An axis that begins at 0 and has room for errors of 1% and of 10,000%."""
    return math.log1p(20 * max(error, 0.0))


def privacy_and_use(title: str, points: Sequence[Point], levels: Sequence[tuple[float, str]]) -> str:
    """Draw every release as a point: loss of use to the right, exposure upwards.

    Parameters
    ----------
    title
        For those who cannot see it.
    points
        The release as given has the number 0.
    levels
        Upper limits of the levels of the verdict, and their names.
    """
    ticks = [0, 0.1, 0.3, 1, 5, 20, 100]
    most = max(max(point.error for point in points), 0.5)
    last = next((tick for tick in ticks if tick >= most), most)
    frame = _Frame((-0.2, _use(last) * 1.13), (-0.02, _ceiling([point.high for point in points])), 380)
    parts = []
    below = 0.0
    for number, (limit, name) in enumerate(levels):
        if below < frame.y[1]:
            top, bottom = frame.down(min(limit, frame.y[1])), frame.down(below if number else frame.y[0])
            width = frame.width - _LEFT - _RIGHT
            parts.append(
                f'<rect class="band band{number}" x="{_LEFT}" y="{top:.1f}" width="{width}" height="{bottom - top:.1f}"/>'
            )
            parts.append(
                f'<text class="bandname" x="{frame.width - _RIGHT - 6}" y="{top + 14:.1f}" text-anchor="end">{escape(name)}</text>'
            )
        below = limit
    xticks = [(_use(tick), f"{tick:.0%}" if tick < 10 else f"{tick}x") for tick in ticks if tick <= last]
    parts.append(frame.axes(xticks, _percents(frame.y[1]), "error of the published counts →"))
    for point in sorted(points, key=lambda point: -point.number):
        x, y = frame.across(_use(point.error)), frame.down(max(point.share, frame.y[0]))
        low, high = frame.down(max(point.low, frame.y[0])), frame.down(point.high)
        parts.append(
            f'<g class="release{" given" if point.number == 0 else ""}">'
            f"<title>{escape(point.name)}: {point.share:.0%} ({point.low:.0%} to {point.high:.0%}), "
            f"error of counts {point.error:.0%}</title>"
            f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="12"/>'
            f'<text class="inside" x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle">{point.number}</text></g>'
        )
    return _svg(title, _WIDTH, 380, "".join(parts))


def map_of_places(
    title: str,
    xy_km: NDArray[np.float64],
    shares: Sequence[float | None],
    names: Sequence[str],
    side_km: float | None,
) -> str:
    """Draw the share found of the time spent in each place: squares on a lattice, else dots."""
    low, high = xy_km.min(axis=0), xy_km.max(axis=0)
    pad = (side_km or max(float((high - low).max()), 1.0) / 20) / 2
    span = np.maximum(high - low, 1e-9) + 2 * pad
    scale = min(_WIDTH / span[0], 420 / span[1])
    width, height = span * scale
    parts = []
    for (x, y), share, name in zip(xy_km, shares, names, strict=True):
        left, top = (x - low[0] + pad) * scale, (high[1] - y + pad) * scale
        css = "nobody" if share is None else f"shade{min(int(share * 5), 4)}"
        found = "nobody was here" if share is None else f"{share:.0%} found"
        text = f"<title>{escape(name)}: {found}</title>"
        if side_km is None:
            parts.append(f'<circle class="{css}" cx="{left:.1f}" cy="{top:.1f}" r="5">{text}</circle>')
        else:
            size = side_km * scale
            parts.append(
                f'<rect class="{css}" x="{left - size / 2 + 0.5:.1f}" y="{top - size / 2 + 0.5:.1f}" '
                f'width="{max(size - 1, 1):.1f}" height="{max(size - 1, 1):.1f}">{text}</rect>'
            )
    keys = [(f"{at * 20}–{at * 20 + 20}%", f"shade{at}") for at in range(5)] + [("nobody was here", "nobody")]
    return key(keys) + _svg(title, math.ceil(width), math.ceil(height), "".join(parts)).replace(
        'class="chart"', 'class="chart map"', 1
    )
