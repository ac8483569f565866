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

from rekindle.auditing.risk import Estimate
from rekindle.report.words import percent, plural

WIDTH = 480
"""Of every chart, so that its text is as large as that of all others."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 24, 14, 54  # half of "100%" in the type of phones fits to the right
_LETTER, _LINE, _RADIUS = 6.6, 15.0, 12.0
_LABEL, _TICK_GAP = 38, 44
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


def tag(kind: str, *inside: str, **attributes: Any) -> Markup:
    """An element; what it holds is escaped, unless it is markup already."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"), f"{value:.1f}" if isinstance(value, float) else value
        )
        for name, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(kind), written, Markup("").join(inside))


def svg(title: str, width: int, height: int, *inside: str, css: str = "chart") -> Markup:
    """A drawing with a name for those who cannot see it."""
    return tag("svg", *inside, class_=css, role="img", aria_label=title, viewBox=f"0 0 {width} {height}")


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Say which colour is which."""
    return tag("ul", *(tag("li", tag("span", class_=f"swatch {css}"), name) for name, css in entries), class_="key")


@dataclass(frozen=True)
class _Frame:
    """Where values are drawn."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int

    def across(self, value: float) -> float:
        return _LEFT + (value - self.x[0]) / ((self.x[1] - self.x[0]) or 1) * (WIDTH - _LEFT - _RIGHT)

    def down(self, value: float) -> float:
        return self.height - _BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (self.height - _TOP - _BOTTOM)

    def axes(
        self, xticks: Sequence[tuple[float, str]], yticks: Sequence[tuple[float, str]], xname: str, yname: str
    ) -> list[Markup]:
        found = []
        for value, text in yticks:
            at = self.down(value)
            found.append(tag("line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=at, y2=at))
            found.append(tag("text", text, class_="tick", x=_LEFT - 8, y=at + 4, text_anchor="end"))
        below = {"text_anchor": "middle", "class_": "tick"}
        found += [tag("text", text, x=self.across(at), y=self.height - _BOTTOM + 20, **below) for at, text in xticks]
        middle = (_TOP + self.height - _BOTTOM) / 2
        upwards = {"transform": f"rotate(-90 16 {middle:.0f})", "text_anchor": "middle", "class_": "tick"}
        found.append(tag("text", yname, x=16, y=middle, **upwards))
        return [*found, tag("text", xname, x=(_LEFT + WIDTH - _RIGHT) / 2, y=self.height - 6, **below)]


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
    yname: str,
    xticks: Sequence[tuple[float, str]],
    dots: bool = True,
) -> Markup:
    """Draw shares as lines, with a key above; a point alone is a ring, so that it hides no point of another line."""
    values = [y for line in found for _, y in line.points if y is not None]
    xs = [x for line in found for x, _ in line.points] + [x for x, _ in xticks]
    frame = _Frame((min(xs), max(xs)), (0.0, _ceiling(values)), 270)
    drawn = frame.axes(xticks, _percents(frame.y[1]), xname, yname)
    for line in found:
        points = [(frame.across(x), frame.down(max(y, 0.0))) for x, y in line.points if y is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        if len(points) == 1:
            drawn.append(tag("circle", class_=f"line {line.css}", cx=points[0][0], cy=points[0][1], r=6.5))
            continue
        drawn.append(tag("polyline", class_=f"line {line.css}", points=path))
        if dots:
            drawn += [tag("circle", class_=f"dot {line.css}", cx=x, cy=y, r=3.5) for x, y in points]
    alone = [sum(y is not None for _, y in line.points) == 1 for line in found]
    named = [(line.name, f"{line.css} ring" if ring else line.css) for line, ring in zip(found, alone, strict=True)]
    return key(named) + svg(title, WIDTH, 270, *drawn)


def histogram(title: str, values: Sequence[float], mark: float, *, xname: str, yname: str) -> Markup:
    """Draw how many people have which share, with a line for guessing; those above half in a colour of their own."""
    edges = np.linspace(0, 1, 21)
    heights = np.histogram(np.clip(values, 0, 1), edges)[0]
    top = max(int(heights.max()), 1)
    frame = _Frame((0.0, 1.0), (0.0, 1.12 * top), 270)
    between = next(n * 10**power for power in range(12) for n in (1, 2, 5) if 4 * n * 10**power >= top)
    counts = [(float(n), f"{n:,}") for n in range(0, top + 1, between)]
    drawn = frame.axes([(at / 4, f"{at / 4:.0%}") for at in range(5)], counts, xname, yname)
    width = frame.across(0.05) - frame.across(0.0) - 2
    for left, height in zip(edges[:-1].tolist(), heights.tolist(), strict=True):
        y = frame.down(height)
        text = tag("title", f"{plural(height, 'person', 'people')}: {left:.0%} to {left + 0.05:.0%}")
        box = {"x": frame.across(left) + 1, "y": y, "width": width, "height": frame.down(0) - y}
        drawn += [tag("rect", text, class_="fill exposed" if left >= 0.5 else "fill spared", **box)] if height else []
    at = frame.across(mark)
    drawn.append(tag("line", class_="mark", x1=at, x2=at, y1=_TOP, y2=frame.down(0)))
    drawn.append(tag("text", "guessing", class_="tick", x=at + 5, y=_TOP + 10))
    named = [("half or less recovered", "spared"), ("more than half recovered", "exposed")]
    return key(named) + svg(title, WIDTH, 270, *drawn)


def _use(error: float) -> float:
    """An axis that begins at 0 and has room for errors of 1% and of 10,000%."""
    return math.log1p(20 * max(error, 0.0))


@dataclass(frozen=True)
class _Box:
    """What text covers."""

    left: float
    top: float
    width: float
    height: float

    def shared(self, other: _Box) -> float:
        """The area that both cover."""
        wide = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        high = min(self.top + self.height, other.top + other.height) - max(self.top, other.top)
        return max(wide, 0.0) * max(high, 0.0)


def _labels(frame: _Frame, points: Sequence[Point], taken: Sequence[_Box]) -> tuple[list[Markup], list[Markup]]:
    """The name of each point beside it, where it covers least of the points and of other names, and lines to those afar."""
    at = [(frame.across(_use(point.error)), frame.down(max(point.advantage.value, frame.y[0]))) for point in points]
    covered = [*taken, *(_Box(x - _RADIUS, y - _RADIUS, 2 * _RADIUS, 2 * _RADIUS) for x, y in at)]
    leaders, names = [], []
    for point, (x, y) in zip(points, at, strict=True):
        name = point.name if len(point.name) <= _LABEL else point.name[: _LABEL - 1] + "…"
        wide = _LETTER * len(name)
        places = [
            _Box(left, y + step * _LINE - _LINE / 2, wide, _LINE)
            for step in (0, -1, 1, -2, 2, -3, 3, -4, 4, -5, 5)
            for left in (x + _RADIUS + 4, x - _RADIUS - 4 - wide, x - wide / 2)
            if left >= _LEFT and left + wide <= WIDTH - _RIGHT
            if _TOP - 4 <= y + step * _LINE - _LINE / 2 <= frame.height - _BOTTOM - _LINE
        ]
        if not places:
            continue
        best = min(places, key=lambda box: sum(box.shared(other) for other in covered))
        covered.append(best)
        if abs(best.top + _LINE / 2 - y) > _LINE:
            near = min(max(x, best.left), best.left + wide)
            leaders.append(tag("line", class_="leader", x1=x, x2=near, y1=y, y2=best.top + _LINE / 2))
        names.append(tag("text", name, class_="pointname", x=best.left, y=best.top + 11.5))
    return leaders, names


def privacy_and_use(
    title: str, points: Sequence[Point], levels: Sequence[tuple[float, str]], published: str = "counts"
) -> Markup:
    """Draw every release as a point: loss of use to the right, advantage upwards.

    Parameters
    ----------
    title
        For those who cannot see it.
    points
        The release as given has the number 0.
    levels
        Upper limits of the levels of the verdict, and their names.
    published
        What the error is of.
    """
    most = max(max(point.error for point in points), 0.5)
    last = next((tick for tick in _ERRORS if tick >= most), most)
    frame = _Frame((-0.2, _use(last) * 1.13), (-0.02, _ceiling([point.advantage.high for point in points])), 420)
    drawn: list[Markup] = []
    taken: list[_Box] = []
    below = frame.y[0]
    for number, (limit, name) in enumerate(levels):
        if below < frame.y[1]:
            top, height = frame.down(min(limit, frame.y[1])), frame.down(below) - frame.down(min(limit, frame.y[1]))
            wide = WIDTH - _LEFT - _RIGHT
            drawn.append(tag("rect", class_=f"band band{number}", x=_LEFT, y=top, width=wide, height=height))
            if height > 20:
                at = {"x": WIDTH - _RIGHT - 6, "y": top + 14, "text_anchor": "end"}
                drawn.append(tag("text", name, class_="bandname", **at))
                taken.append(_Box(WIDTH - _RIGHT - 6 - _LETTER * len(name), top, _LETTER * len(name), _LINE))
        below = limit
    xticks: list[tuple[float, str]] = []
    for tick in (tick for tick in _ERRORS if tick <= last):
        if not xticks or frame.across(_use(tick)) - frame.across(xticks[-1][0]) > _TICK_GAP:
            xticks.append((_use(tick), f"{tick:.0%}" if tick < 10 else f"{tick}x"))
    drawn += frame.axes(
        xticks, _percents(frame.y[1]), f"error of the published {published} →", "advantage over chance"
    )
    leaders, names = _labels(frame, points, taken)
    drawn += leaders
    for point in sorted(points, key=lambda point: -point.number):
        x, value = frame.across(_use(point.error)), point.advantage
        y, low, high = (frame.down(max(at, frame.y[0])) for at in (value.value, value.low, value.high))
        text = f"{percent(value.value)} ({percent(value.low)} to {percent(value.high)})"
        drawn.append(
            tag(
                "g",
                tag("title", f"{point.name}: {text}, error of {published} {point.error:.0%}"),
                tag("line", class_="whisker", x1=x, x2=x, y1=low, y2=high),
                tag("circle", cx=x, cy=y, r=_RADIUS),
                tag("text", str(point.number), class_="inside", x=x, y=y + 4.5, text_anchor="middle"),
                class_="release" if point.number else "release given",
            )
        )
    return svg(title, WIDTH, 420, *drawn, *names)
