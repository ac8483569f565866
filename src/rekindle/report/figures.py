"""Figures for everyone: each takes the nouns and gives a matplotlib figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rekindle.errors import InvalidSetting
from rekindle.io.files import new_file
from rekindle.model import Trajectories

__all__ = ["COLOURS", "draw_person", "save_figure"]

COLOURS = {
    "truth": "#222222",
    "chance": "#999999",
    "naive": "#CC79A7",
    "baseline": "#E69F00",
    "enhanced": "#0072B2",
    "habits": "#009E73",
}
"""One colour for each attack everywhere, told apart by colour-blind people too (Okabe and Ito)."""


def draw_person(
    recovered_people: Trajectories,
    truth: Trajectories,
    *,
    recovered: int,
    true: int,
    day: int | None = None,
    attack: str = "enhanced",
) -> Figure:
    """Draw a recovered person beside the true one: the map of cells, and the distance from home over time.

    Parameters
    ----------
    recovered_people, truth
        Trajectories of the same places and steps.
    recovered, true
        Row of the recovered person and of the true person it was matched with.
    day
        Number of the day to draw; the whole period by default.
    attack
        Whose colour to use.
    """
    if day is not None and not 0 <= day < truth.calendar.number_of_days:
        raise InvalidSetting(f"There is no day {day}; the trajectories have {truth.calendar.number_of_days} days.")
    steps = slice(0, truth.steps) if day is None else truth.calendar.day(day)
    mine, theirs = recovered_people.cells[recovered, steps], truth.cells[true, steps]
    xy, times = truth.locations.xy_km, truth.calendar.times()[steps]
    colour = COLOURS.get(attack, COLOURS["enhanced"])
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=[2.1, 1])
    left = figure.add_subplot(grid[0, 0])
    right = figure.add_subplot(grid[0, 1], sharex=left, sharey=left)
    below = figure.add_subplot(grid[1, :])
    right_share = (mine == theirs).mean()
    _draw_map(left, xy, theirs, "true path", COLOURS["truth"])
    _draw_map(right, xy, mine, f"rebuilt from counts ({right_share:.0%} right)", colour)
    left.set_ylabel("km to the north")
    home = xy[np.bincount(theirs).argmax()]
    for cells, label, width, paint in ((theirs, "true", 2.6, COLOURS["truth"]), (mine, "rebuilt", 1.1, colour)):
        below.plot(times, np.hypot(*(xy[cells] - home).T), drawstyle="steps-post", label=label, lw=width, color=paint)
    below.set_ylabel("km from the most\nfrequent place")
    below.set_xlabel("time")
    below.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=2, borderaxespad=0.2)
    below.margins(x=0)
    below.spines[["top", "right"]].set_visible(False)
    below.xaxis.set_major_formatter(ConciseDateFormatter(below.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    return figure


def _draw_map(axes: Axes, xy: NDArray[np.float64], cells: NDArray[np.integer], title: str, colour: str) -> None:
    visits = np.bincount(cells, minlength=len(xy))
    axes.plot(*xy.T, ls="", marker=".", ms=3, color="#DDDDDD", zorder=0)
    axes.plot(*xy[cells].T, color=colour, lw=1.4, alpha=0.8)
    places = np.flatnonzero(visits)
    x, y = xy[places].T
    axes.scatter(x, y, s=15 + 260 * visits[places] / visits.max(), color=colour, alpha=0.45, lw=0)
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("km to the east")
    axes.set_aspect("equal")
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Figure, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of the name."""
    path = Path(path)
    # No dates or version in the file: the same figure gives the same bytes.
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    if path.suffix not in metadata:
        raise InvalidSetting(f"{path} ends in {path.suffix!r}; use .png, .svg or .pdf.")
    with new_file(path, overwrite=overwrite) as temporary:
        figure.savefig(temporary, dpi=130, format=path.suffix[1:], metadata=metadata[path.suffix])
