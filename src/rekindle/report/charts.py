"""Charts of the page as inline SVG: no script, colours of the page (light or dark), readable in print and on a phone.

`rekindle.report.figures` draws the figures that people save as files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rekindle.auditing.risk import Estimate
from rekindle.report.words import percent, plural

__all__ = ["Line", "Point", "histogram", "lines", "map_of_places", "privacy_and_use"]

_WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 26, 14, 48
_ERRORS = (0, 0.1, 0.3, 1, 5, 20, 100)


@dataclass(frozen=True)
class Line:
    """One line of a chart: its name, the class that gives it a colour, and its points (None: not known)."""

    name: str
    css: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Point:
    """One release in the chart of privacy and use."""

    number: int
    name: str
    error: float
    advantage: Estimate


def _tag(kind: str, *inside: str, **attributes: Any) -> Markup:
    """An element; what it holds is escaped, unless it is markup already."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"), f"{value:.1f}" if isinstance(value, float) else value
        )
        for name, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(kind), written, Markup("").join(inside))


def _svg(title: str, width: int, height: int, *inside: str, css: str = "chart") -> Markup:
    return _tag("svg", *inside, class_=css, role="img", aria_label=title, viewBox=f"0 0 {width} {height}")


def _key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Say which colour is which."""
    return _tag(
        "ul", *(_tag("li", _tag("span", class_=f"swatch {css}"), name) for name, css in entries), class_="key"
    )


@dataclass(frozen=True)
class _Frame:
    """Where values are drawn."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int

    def across(self, value: float) -> float:
        return _LEFT + (value - self.x[0]) / ((self.x[1] - self.x[0]) or 1) * (_WIDTH - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        return self.height - _BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - _TOP - _BOTTOM)

    def axes(
        self, xticks: Sequence[tuple[float, str]], yticks: Sequence[tuple[float, str]], xname: str
    ) -> list[Markup]:
        found = []
        for value, text in yticks:
            at = self.down(value)
            found.append(_tag("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=at, y2=at))
            found.append(_tag("text", text, class_="tick", x=_LEFT - 8, y=at + 4, text_anchor="end"))
        below = {"text_anchor": "middle", "class_": "tick"}
        found += [_tag("text", text, x=self.across(at), y=self.height - _BOTTOM + 20, **below) for at, text in xticks]
        return [*found, _tag("text", xname, x=(_LEFT + _WIDTH - _RIGHT) / 2, y=self.height - 4, **below)]


def _percents(top: float) -> list[tuple[float, str]]:
    step = 0.25 if top > 0.5 else 0.1 if top > 0.2 else 0.05
    return [(at * step, f"{at * step:.0%}") for at in range(round(top / step) + 1)]


def _ceiling(values: Sequence[float]) -> float:
    """The top of an axis of shares."""
    most = max(values, default=1.0)
    return next((top for top in (0.1, 0.2, 0.3, 0.5, 0.75) if most <= top), 1.0)


def lines(
    title: str, found: Sequence[Line], *, xname: str, xticks: Sequence[tuple[float, str]], dots: bool = True
) -> Markup:
    """Draw shares as lines, with a key above."""
    values = [y for line in found for _, y in line.points if y is not None]
    xs = [x for line in found for x, _ in line.points] + [x for x, _ in xticks]
    frame = _Frame((min(xs), max(xs)), (0.0, _ceiling(values)), 270)
    drawn = frame.axes(xticks, _percents(frame.y[1]), xname)
    for line in found:
        points = [(frame.across(x), frame.down(max(y, 0.0))) for x, y in line.points if y is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        drawn.append(_tag("polyline", class_=f"line {line.css}", points=path))
        if dots or len(points) == 1:
            drawn += [_tag("circle", class_=f"dot {line.css}", cx=x, cy=y, r=3.5) for x, y in points]
    return _key([(line.name, line.css) for line in found]) + _svg(title, _WIDTH, 270, *drawn)


def histogram(title: str, values: Sequence[float], mark: float, css: str, *, xname: str) -> Markup:
    """Draw how many people have which share, with a line for guessing."""
    edges = np.linspace(0, 1, 21)
    heights = np.histogram(np.clip(values, 0, 1), edges)[0]
    top = max(int(heights.max()), 1)
    frame = _Frame((0.0, 1.0), (0.0, 1.12 * top), 240)
    counts = [(float(n), str(n)) for n in range(0, top + 1, max(1, math.ceil(top / 4)))]
    drawn = frame.axes([(at / 4, f"{at / 4:.0%}") for at in range(5)], counts, xname)
    width = frame.across(0.05) - frame.across(0.0) - 2
    for left, height in zip(edges[:-1].tolist(), heights.tolist(), strict=True):
        y = frame.down(height)
        text = _tag("title", f"{plural(height, 'person', 'people')}: {left:.0%} to {left + 0.05:.0%}")
        box = {"x": frame.across(left) + 1, "y": y, "width": width, "height": frame.down(0) - y}
        drawn += [_tag("rect", text, class_=f"fill {css}", **box)] if height else []
    at = frame.across(mark)
    drawn.append(_tag("line", class_="mark", x1=at, x2=at, y1=_TOP, y2=frame.down(0)))
    drawn.append(_tag("text", "guessing", class_="tick", x=at + 5, y=_TOP + 10))
    return _svg(title, _WIDTH, 240, *drawn)


def _use(error: float) -> float:
    """An axis that begins at 0 and has room for errors of 1% and of 10,000%."""
    return math.log1p(20 * max(error, 0.0))


def privacy_and_use(title: str, points: Sequence[Point], levels: Sequence[tuple[float, str]]) -> Markup:
    """Draw every release as a point: loss of use to the right, advantage upwards.

    Parameters
    ----------
    title
        For those who cannot see it.
    points
        The release as given has the number 0.
    levels
        Upper limits of the levels of the verdict, and their names.
    """
    most = max(max(point.error for point in points), 0.5)
    last = next((tick for tick in _ERRORS if tick >= most), most)
    frame = _Frame((-0.2, _use(last) * 1.13), (-0.02, _ceiling([point.advantage.high for point in points])), 380)
    drawn: list[Markup] = []
    below = frame.y[0]
    for number, (limit, name) in enumerate(levels):
        if below < frame.y[1]:
            top, height = frame.down(min(limit, frame.y[1])), frame.down(below) - frame.down(min(limit, frame.y[1]))
            wide = _WIDTH - _LEFT - _RIGHT
            drawn.append(_tag("rect", class_=f"band band{number}", x=_LEFT, y=top, width=wide, height=height))
            if height > 20:
                at = {"x": _WIDTH - _RIGHT - 6, "y": top + 14, "text_anchor": "end"}
                drawn.append(_tag("text", name, class_="bandname", **at))
        below = limit
    xticks = [(_use(tick), f"{tick:.0%}" if tick < 10 else f"{tick}x") for tick in _ERRORS if tick <= last]
    drawn += frame.axes(xticks, _percents(frame.y[1]), "error of the published counts →")
    for point in sorted(points, key=lambda point: -point.number):
        x, value = frame.across(_use(point.error)), point.advantage
        y, low, high = (frame.down(max(at, frame.y[0])) for at in (value.value, value.low, value.high))
        text = f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})"
        drawn.append(
            _tag(
                "g",
                _tag("title", f"{point.name}: {text}, error of counts {point.error:.0%}"),
                _tag("line", class_="whisker", x1=x, x2=x, y1=low, y2=high),
                _tag("circle", cx=x, cy=y, r=12),
                _tag("text", str(point.number), class_="inside", x=x, y=y + 4.5, text_anchor="middle"),
                class_="release" if point.number else "release given",
            )
        )
    return _svg(title, _WIDTH, 380, *drawn)


def map_of_places(
    title: str,
    xy_km: NDArray[np.float64],
    shares: Sequence[float | None],
    names: Sequence[str],
    side_km: float | None,
) -> Markup:
    """Draw the share recovered of the time spent in each place: squares on a lattice, else dots."""
    low, high = xy_km.min(axis=0), xy_km.max(axis=0)
    pad = (side_km or max(float((high - low).max()), 1.0) / 20) / 2
    span = np.maximum(high - low, 1e-9) + 2 * pad
    scale = float(min(_WIDTH / span[0], 420 / span[1]))
    size = max((side_km or 0.0) * scale - 1, 1.0)
    drawn = []
    for (x, y), share, name in zip(xy_km.tolist(), shares, names, strict=True):
        left, top = float(x - low[0] + pad) * scale, float(high[1] - y + pad) * scale
        css = "nobody" if share is None else f"shade{min(int(share * 5), 4)}"
        text = _tag("title", f"{name}: " + ("nobody was here" if share is None else f"{percent(share)} recovered"))
        if side_km is None:
            drawn.append(_tag("circle", text, class_=css, cx=left, cy=top, r=5))
        else:
            box = {"x": left - size / 2, "y": top - size / 2, "width": size, "height": size}
            drawn.append(_tag("rect", text, class_=css, **box))
    keys = [(f"{at * 20}–{at * 20 + 20}%", f"shade{at}") for at in range(5)] + [("nobody was here", "nobody")]
    width, height = (math.ceil(side) for side in span * scale)
    return _key(keys) + _svg(title, width, height, *drawn, css="chart map")
