"""Maps: the locations, and people's paths over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PatchCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rekindle.attacks import Recovery
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation.mapping import map_people
from rekindle.model import Counts, Locations, Trajectories
from rekindle.report.colours import COLOURS, colours_of
from rekindle.report.figures.style import mark_private, new_figure
from rekindle.report.lattice import lattice_sides

_MOST_POSITIONS = 50_000


def draw_grid(
    locations: Locations,
    *,
    counts: Counts | None = None,
    step: int | None = None,
    positions: NDArray[np.float64] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the locations: squares where they lie on a lattice, dots otherwise.

    Parameters
    ----------
    locations
        The locations.
    counts
        Colour each location by its number of people: the mean over all steps unless a `step` is given.
    step
        Number of the step to show.
    positions
        (..., 2) float64, latitude and longitude in degrees: people's positions, drawn below the centres, on a map in
        degrees. Those outside the area of the locations are drawn on its border, where the preparation moves them. At
        most 50,000, evenly picked.
    """
    if step is not None and (counts is None or not 0 <= step < counts.steps):
        raise InvalidSetting(
            f"There is no step {step}; the counts have {0 if counts is None else counts.steps} steps."
        )
    if counts is not None and counts.locations != locations:
        raise InvalidData("The counts have other locations than those to draw.")
    on_map = positions is not None and locations.lat_lng is not None
    centres = locations.lat_lng[:, ::-1] if on_map and locations.lat_lng is not None else locations.xy_km
    values = None if counts is None else counts.values.mean(axis=0) if step is None else counts.values[step]
    axes = axes or new_figure(6.4, 6).add_subplot()
    sides = lattice_sides(centres)
    x, y = centres.T
    shown: Collection
    if on_map and positions is not None:
        mark_private(cast(Figure, axes.figure))
        _scatter_positions(axes, positions, centres, sides)
    if sides is not None:
        shown = PatchCollection(
            [Rectangle((east - sides[0] / 2, north - sides[1] / 2), *sides) for east, north in centres],
            facecolor="none" if values is None else None,
            edgecolor="#888888" if values is None else "white",
            linewidth=0.5,
            cmap="Blues",
        )
        if values is not None:
            shown.set_array(values)
        axes.add_collection(shown)
        axes.autoscale_view()
    if values is None:
        axes.scatter(x, y, s=10, color="#D55E00", label="centre of a place", zorder=3)
    elif sides is None:
        shown = axes.scatter(x, y, c=values, cmap="Blues", edgecolor="#888888", linewidth=0.5, s=60)
    if values is not None:
        label, ticks = ("people, mean over time", None) if step is None else ("people", MaxNLocator(5, integer=True))
        cast(Figure, axes.figure).colorbar(shown, ax=axes, label=label, ticks=ticks, shrink=0.6)
    if on_map:
        axes.set(xlabel="longitude (degrees)", ylabel="latitude (degrees)")
        axes.set_aspect(1 / max(float(np.cos(np.radians(np.median(centres[:, 1])))), 0.01))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, markerscale=2)
    else:
        axes.set(xlabel="km to the east", ylabel="km to the north")
        axes.set_aspect("equal")
        title = f"{len(locations)} places"
        axes.set_title(
            title if step is None or counts is None else f"{title}, {counts.calendar.time(step)}", fontsize=11
        )
    return axes


def _scatter_positions(
    axes: Axes, positions: NDArray[np.float64], centres: NDArray[np.float64], sides: tuple[float, float] | None
) -> None:
    points = positions.reshape(-1, 2)[:, ::-1]
    points = points[:: max(1, -(-len(points) // _MOST_POSITIONS))]
    low, high = centres.min(axis=0), centres.max(axis=0)
    # Places that are no lattice reach about half as far beyond the outer ones as they lie apart.
    half = (high - low) / max(2 * (len(centres) ** 0.5 - 1), 1) if sides is None else np.array(sides) / 2
    points = np.clip(points, low - half, high + half)
    x, y = points.T
    axes.scatter(x, y, s=2, color="#0072B2", alpha=0.3, lw=0, label="position of a person", rasterized=True)


def draw_person(
    recovered_people: Trajectories,
    truth: Trajectories,
    *,
    recovered: int,
    true: int,
    day: int | None = None,
    attack: str = "enhanced",
) -> Figure:
    """Draw a recovered person beside the true one: on a map, and as distance from home over time.

    Parameters
    ----------
    recovered_people, truth
        Trajectories with the same locations and steps.
    recovered, true
        Row of the recovered person and of the true person it was matched with.
    day
        Number of the day to draw; the whole period by default.
    attack
        Whose colour to use.
    """
    steps = _steps_of(truth, day)
    colour = COLOURS.get(attack, COLOURS["enhanced"])
    paths = [("rebuilt", "rebuilt from counts", recovered_people.cells[recovered, steps], colour)]
    return _draw_beside(truth, true, steps, paths)


def draw_paths(
    truth: Trajectories,
    recoveries: Mapping[str, Trajectories | Recovery],
    *,
    person: int = 0,
    day: int | None = 0,
) -> Figure:
    """Draw the true path of a person beside what each attack recovered of it: on a map, and over time.

    Recovered people have no names. The one to show is chosen as in the evaluation, by the mapping with the least error.

    Parameters
    ----------
    truth
        The true trajectories.
    recoveries
        What each attack recovered, by its name.
    person
        Row of the true person.
    day
        Number of the day; None for the whole period.
    """
    if not recoveries:
        raise InvalidSetting("`recoveries` is empty; give at least one, by the name of its attack.")
    if not 0 <= person < truth.people:
        raise InvalidSetting(f"There is no person {person}; the truth has {truth.people} people, counted from 0.")
    steps = _steps_of(truth, day)
    colours = colours_of(recoveries)
    paths = []
    for name, found in recoveries.items():
        people = found.trajectories if isinstance(found, Recovery) else found
        row = int(map_people(people, truth).recovered[person])
        paths.append((name, name, people.cells[row, steps], colours[name]))
    return _draw_beside(truth, person, steps, paths)


def _steps_of(truth: Trajectories, day: int | None) -> slice:
    if day is not None and not 0 <= day < truth.calendar.number_of_days:
        raise InvalidSetting(f"There is no day {day}; the trajectories have {truth.calendar.number_of_days} days.")
    return slice(0, truth.steps) if day is None else truth.calendar.day(day)


def _draw_beside(
    truth: Trajectories, person: int, steps: slice, paths: Sequence[tuple[str, str, NDArray[np.integer], str]]
) -> Figure:
    """Draw maps side by side, the true one first, and all of them over time. A path has label, title, cells, colour."""
    theirs = truth.cells[person, steps]
    xy, times = truth.locations.xy_km, truth.calendar.times()[steps]
    figure = new_figure(max(9, 1.2 + 3.4 * (1 + len(paths))), 6.4)
    mark_private(figure)
    grid = figure.add_gridspec(2, 1 + len(paths), height_ratios=[2.1, 1])
    left = figure.add_subplot(grid[0, 0])
    _draw_map(left, xy, theirs, "true path", COLOURS["truth"])
    left.set_ylabel("km to the north")
    for column, (_, title, cells, colour) in enumerate(paths, 1):
        right = figure.add_subplot(grid[0, column], sharex=left, sharey=left)
        _draw_map(right, xy, cells, f"{title} ({(cells == theirs).mean():.0%} right)", colour)
    below = figure.add_subplot(grid[1, :])
    home = xy[np.bincount(theirs).argmax()]
    lines = [
        ("true", theirs, 2.6, COLOURS["truth"]),
        *((label, cells, 1.1, colour) for label, _, cells, colour in paths),
    ]
    for label, cells, width, colour in lines:
        away = np.hypot(*(xy[cells] - home).T)
        below.plot(times, away, drawstyle="steps-post", label=label, lw=width, color=colour)
    below.set_ylabel("km from the most\nfrequent place")
    below.set_xlabel("time")
    below.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=len(lines), borderaxespad=0.2)
    below.margins(x=0)
    below.spines[["top", "right"]].set_visible(False)
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    below.xaxis.set_major_locator(locator)
    below.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
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
