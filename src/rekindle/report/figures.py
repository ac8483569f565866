"""Figures for everyone: each function takes the nouns and gives a matplotlib Axes or Figure.

Nothing here touches pyplot, so that a figure neither opens a window nor changes one that is open. Where an `axes` can be
given, the figure is drawn into it; otherwise it gets a figure of its own, which is ``axes.figure``. The same attack has the
same colour everywhere: see `COLOURS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, PatchCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from rekindle.attacks import Recovery
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import Evaluation
from rekindle.evaluation.confidence import Confidence
from rekindle.evaluation.mapping import map_people
from rekindle.evaluation.unique import uniqueness
from rekindle.io.safety.files import new_file
from rekindle.model import Counts, Locations, Trajectories

__all__ = [
    "COLOURS",
    "colours_of",
    "draw_accuracies",
    "draw_confidence",
    "draw_costs",
    "draw_enhancements",
    "draw_errors",
    "draw_grid",
    "draw_lookback",
    "draw_paths",
    "draw_person",
    "draw_uniqueness",
    "new_figure",
    "save_figure",
]

COLOURS = {
    "truth": "#222222",
    "chance": "#999999",
    "naive": "#CC79A7",
    "baseline": "#E69F00",
    "enhanced": "#0072B2",
    "enhanced, first day": "#56B4E9",
    "habits": "#009E73",
}
"""One colour for each attack everywhere, told apart by colour-blind people too (Okabe and Ito)."""

_SPARE_COLOURS = ("#D55E00", "#F0E442", "#8B4513", "#5D3A9B")
_MOST_POSITIONS = 50_000

Numbers: TypeAlias = Evaluation | float | Sequence[Evaluation | float]
"""What was measured once, or over several row orders."""

Found: TypeAlias = Trajectories | Recovery | Evaluation
"""What an attack found, compared with the truth or not."""

Results: TypeAlias = Mapping[str, Numbers] | Mapping[str, Mapping[str, Numbers]]
"""By the name of the attack; or by the name of the dataset, and then by that of the attack."""


def colours_of(attacks: Iterable[str]) -> dict[str, str]:
    """Give each attack its colour; attacks of your own get the spare ones, in the order in which they are named."""
    names = list(attacks)
    others = [name for name in names if name not in COLOURS]
    return {
        name: COLOURS.get(name) or _SPARE_COLOURS[others.index(name) % len(_SPARE_COLOURS)]
        for name in dict.fromkeys(names)
    }


def new_figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """Make an empty figure that no other code knows of.

    Parameters
    ----------
    width, height
        Its size in inches.
    """
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def draw_grid(
    locations: Locations,
    *,
    counts: Counts | None = None,
    step: int | None = None,
    positions: NDArray[np.float64] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the places: squares where they lie on a lattice, dots otherwise.

    Parameters
    ----------
    locations
        The places.
    counts
        Colour each place by its people; by the mean over all steps unless a `step` is given.
    step
        Number of the step to show.
    positions
        (..., 2) float64, latitude and longitude in degrees: people's positions, drawn below the centres, on a map in
        degrees. Those further out than the places reach are drawn on the border, where the preparation moves them. At
        most 50,000 of them, evenly picked.
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
    sides = _lattice_sides(centres)
    x, y = centres.T
    shown: Collection
    if on_map and positions is not None:
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


def _lattice_sides(centres: NDArray[np.float64]) -> tuple[float, float] | None:
    """Width and height of the cells where the centres lie on a lattice of at least two lines each way."""
    sides = []
    for along in centres.T:
        lines = np.unique(along.round(9))
        if len(lines) < 2:
            return None
        gaps = np.diff(lines)
        side = gaps.min()
        if (np.abs(gaps / side - np.round(gaps / side)) > 1e-3).any():
            return None
        sides.append(float(side))
    return sides[0], sides[1]


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
    """Draw the true path of a person beside what each attack rebuilt of it: as a map, and over time.

    Recovered people have no names. Whom to show is decided as in the evaluation, by the matching with the least error.

    Parameters
    ----------
    truth
        The true trajectories.
    recoveries
        What each attack found, by its name.
    person
        Row of the true person.
    day
        Number of the day; None for the whole period.
    """
    if not recoveries:
        raise InvalidSetting("There is no recovery to draw; give at least one, by the name of its attack.")
    if not 0 <= person < truth.people:
        raise InvalidSetting(f"There is no person {person}; the truth has {truth.people} people, counted from 0.")
    steps = _steps_of(truth, day)
    colours = colours_of(recoveries)
    paths = []
    for name, found in recoveries.items():
        people = found.trajectories if isinstance(found, Recovery) else found
        row = int(np.flatnonzero(map_people(people, truth).matched == person)[0])
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


def draw_accuracies(
    results: Results,
    *,
    metric: Literal["accuracy", "levenshtein_accuracy"] = "accuracy",
    expected: Results | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the accuracy of each attack: a bar at the mean, a dot for each row order.

    Parameters
    ----------
    results
        For one dataset, what was measured by the name of the attack; for several, by the name of the dataset and then of
        the attack. Each is an `Evaluation` or a number, or several, one for each row order. Chance may be among them.
    metric
        Which number of an evaluation to draw.
    expected
        Numbers that others published, by the same names; drawn as diamonds.
    """
    label = {"accuracy": "points in the right place", "levenshtein_accuracy": "Levenshtein accuracy"}
    if metric not in label:
        raise InvalidSetting(f"metric is {metric!r}; it must be one of {', '.join(label)}.")
    axes = _draw_bars(results, metric, expected, axes)
    axes.set_ylabel(label[metric])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return axes


def draw_errors(
    results: Results,
    *,
    metric: Literal["mean_error_km", "recovery_error_km"] = "mean_error_km",
    expected: Results | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw the recovery error of each attack in km: for each point, or the sum over all points as in the paper.

    Parameters
    ----------
    results, expected
        As in `draw_accuracies`.
    metric
        Which number of an evaluation to draw.
    """
    label = {"mean_error_km": "distance to the truth (km, mean)", "recovery_error_km": "recovery error (km, sum)"}
    if metric not in label:
        raise InvalidSetting(f"metric is {metric!r}; it must be one of {', '.join(label)}.")
    axes = _draw_bars(results, metric, expected, axes)
    axes.set_ylabel(label[metric])
    return axes


def _draw_bars(results: Results, metric: str, expected: Results | None, axes: Axes | None) -> Axes:
    groups = _by_dataset(results)
    published = _by_dataset(expected) if expected else {}
    attacks = list(dict.fromkeys(name for group in groups.values() for name in group))
    if not attacks:
        raise InvalidSetting("There is nothing to draw; give at least one attack with what it reached.")
    colours, width = colours_of(attacks), 0.8 / len(attacks)
    axes = axes or new_figure(max(6.0, 1.6 + 0.42 * len(groups) * (len(attacks) + 1))).add_subplot()
    labelled: set[str] = set()

    def once(label: str) -> str:
        label = "_" + label if label in labelled else label
        labelled.add(label)
        return label

    for group, (dataset, measured) in enumerate(groups.items()):
        for at, name in enumerate(attacks):
            x = group + (at - (len(attacks) - 1) / 2) * width
            if name in measured:
                values = _values(measured[name], metric)
                axes.bar(x, values.mean(), width * 0.92, color=colours[name], label=once(name))
                if len(values) > 1:
                    spread = x + np.linspace(-0.25, 0.25, len(values)) * width
                    axes.scatter(spread, values, s=9, color="white", edgecolor="#222222", linewidth=0.6, zorder=3)
            if name in published.get(dataset, {}):
                theirs = _values(published[dataset][name], metric).mean()
                style = {"marker": "D", "s": 26, "color": "#222222", "edgecolor": "white", "zorder": 4}
                axes.scatter(x, theirs, label=once("the paper"), **style)  # type: ignore[arg-type]
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    last = sorted(range(len(labels)), key=lambda at: labels[at] == "the paper")
    axes.legend(
        [handles[at] for at in last],
        [labels[at] for at in last],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(labels) if len(groups) > 2 else min(3, len(labels)),
        frameon=False,
    )
    return axes


def draw_uniqueness(results: Mapping[str, Found | Sequence[Found]], *, axes: Axes | None = None) -> Axes:
    """Draw the share of people whose set of k most frequent places nobody else has, for k from 1 to 5.

    Parameters
    ----------
    results
        By the name of the attack, its evaluation, or its trajectories where there is no truth; or several, one for each row
        order. Evaluations know the truth, which is drawn beside; it may also be given by the name ``"truth"``.
    """
    lines: dict[str, NDArray[np.float64]] = {}
    for name, found in results.items():
        several = [found] if isinstance(found, Trajectories | Recovery | Evaluation) else list(found)
        for one in several:
            if isinstance(one, Evaluation) and "truth" not in results:
                lines["truth"] = np.array([list(one.truth_uniqueness.values())])
        lines[name] = np.array([_uniqueness(one) for one in several])
    if not lines:
        raise InvalidSetting("There is nothing to draw; give at least one attack with what it found.")
    axes = axes or new_figure(6.0).add_subplot()
    colours, ks = colours_of(lines), np.arange(1, 6)
    for marker, (name, values) in zip("osDv^<>P*X" * len(lines), lines.items(), strict=False):
        _draw_line(axes, ks, values.T, colours[name], name, marker)
    axes.set(xlabel="k most frequent places", ylabel="people with a set of their own", ylim=(0, 1.03), xticks=ks)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.legend(frameon=False)
    return axes


def _uniqueness(found: Found) -> list[float]:
    if isinstance(found, Evaluation):
        return [found.uniqueness[k] for k in range(1, 6)]
    people = found.trajectories if isinstance(found, Recovery) else found
    return [uniqueness(people, k) for k in range(1, 6)]


def draw_lookback(accuracies: Mapping[int, Numbers], *, attack: str = "enhanced", axes: Axes | None = None) -> Axes:
    """Draw accuracy by the number of days that a link looks back: a line at the mean, a band from least to most.

    Parameters
    ----------
    accuracies
        By the number of days, an `Evaluation` or an accuracy, or several, one for each row order.
    attack
        Whose colour to use.
    """
    if not accuracies:
        raise InvalidSetting("There is nothing to draw; give the accuracies of at least one lookback.")
    days = sorted(accuracies)
    axes = axes or new_figure(6.0).add_subplot()
    colour = COLOURS.get(attack, COLOURS["enhanced"])
    _draw_line(axes, np.array(days), [_values(accuracies[k], "accuracy") for k in days], colour, attack, "o")
    axes.set(xlabel="days that a link looks back (k)", ylabel="points in the right place", xticks=days)
    _in_percent(axes.yaxis)
    return axes


def _draw_line(
    axes: Axes,
    x: NDArray[np.integer],
    values: Sequence[NDArray[np.float64]] | NDArray[np.float64],
    colour: str,
    label: str,
    marker: str,
) -> None:
    axes.plot(x, [each.mean() for each in values], color=colour, marker=marker, ms=5, label=label)
    low, high = [each.min() for each in values], [each.max() for each in values]
    if low != high:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
    axes.spines[["top", "right"]].set_visible(False)


def _in_percent(axis: Axis) -> None:
    """Round percentages, with a decimal where they are close together."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0 if high - low > 0.04 else 1))


def draw_enhancements(results: Mapping[str, Numbers], *, axes: Axes | None = None) -> Axes:
    """Draw the accuracy of variants of an attack, one below the other; a line marks the first, which they start from.

    Parameters
    ----------
    results
        By the name of the variant, an `Evaluation` or an accuracy, or several, one for each row order.
    """
    if not results:
        raise InvalidSetting("There is nothing to draw; give at least one variant with what it reached.")
    axes = axes or new_figure(7.0, 1.4 + 0.42 * len(results)).add_subplot()
    start = _values(next(iter(results.values())), "accuracy").mean()
    axes.axvline(start, color="#999999", lw=1, ls="--", zorder=0)
    for row, (name, found) in enumerate(results.items()):
        values = _values(found, "accuracy")
        colour = COLOURS.get(name, "#5A6B7B")
        axes.plot([values.min(), values.max()], [row, row], color=colour, lw=5, alpha=0.3, solid_capstyle="round")
        axes.scatter(values, np.full(len(values), row), s=12, color=colour, alpha=0.7, lw=0)
        axes.scatter(values.mean(), row, s=55, color=colour, edgecolor="white", zorder=3)
    axes.set_yticks(range(len(results)), list(results))
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.set_xlabel("points in the right place")
    _in_percent(axes.xaxis)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_confidence(confidence: Confidence, *, attack: str = "habits", axes: Axes | None = None) -> Axes:
    """Draw whether an attack knows when it is right: accuracy by confidence, with the share of points in each bin.

    Parameters
    ----------
    confidence
        From `rekindle.evaluation.assess_confidence`.
    attack
        Whose colour to use.
    """
    axes = axes or new_figure(6.0, 4.6).add_subplot()
    colour = COLOURS.get(attack, COLOURS["habits"])
    edges = confidence.edges
    axes.bar(
        edges[:-1],
        confidence.share,
        np.diff(edges),
        align="edge",
        color="#DDDDDD",
        edgecolor="white",
        label="share of all points",
    )
    axes.plot([0, 1], [0, 1], color="#999999", lw=1, ls="--", label="as sure as right")
    filled = confidence.share > 0
    axes.plot(confidence.confidence[filled], confidence.accuracy[filled], color=colour, marker="o", label=attack)
    axes.set(xlabel="how sure the attack is of a point", ylabel="points in the right place", xlim=(0, 1), ylim=(0, 1))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return axes


def draw_costs(
    costs: ArrayLike,
    *,
    people: Sequence[str] | None = None,
    places: Sequence[str] | None = None,
    chosen: ArrayLike | None = None,
    unit: str = "km",
    axes: Axes | None = None,
) -> Axes:
    """Draw a small cost matrix with its numbers, and the assignment that was chosen.

    Parameters
    ----------
    costs
        (rows, columns) numbers: what it costs to continue a person with a column.
    people, places
        Names of the rows and of the columns. One place may stand in several columns, one for each person counted there.
    chosen
        (rows,) integers: the column that each row was given; -1 for none.
    unit
        Unit of the costs.
    """
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise InvalidData(
            f"Costs must be an array of rows x columns, at least one each; its shape is {matrix.shape}."
        )
    rows, columns = matrix.shape
    columns_of = np.full(rows, -1) if chosen is None else np.asarray(chosen)
    if columns_of.shape != (rows,) or columns_of.max() >= columns:
        raise InvalidData(
            f"chosen must be one column of {columns} for each of {rows} rows; it is {columns_of.tolist()}."
        )
    axes = axes or new_figure(max(3.6, 1.8 + 0.62 * columns), max(2.4, 1.2 + 0.45 * rows)).add_subplot()
    finite = np.isfinite(matrix)
    top = float(matrix[finite].max()) if finite.any() else 1.0
    # Light colours only, so that the numbers stay readable.
    axes.imshow(np.where(finite, matrix, np.nan), cmap="Greys", vmin=0, vmax=2.2 * top or 1.0, aspect="auto")
    for row in range(rows):
        for column in range(columns):
            hit = columns_of[row] == column
            text = f"{matrix[row, column]:.3g}" if finite[row, column] else "∞"
            axes.text(column, row, text, ha="center", va="center", fontsize=9, weight="bold" if hit else "normal")
            if hit:
                frame = {"fill": False, "edgecolor": COLOURS["enhanced"], "linewidth": 2.5}
                axes.add_patch(Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, **frame))  # type: ignore[arg-type]
    axes.set_xticks(range(columns), list(places) if places is not None else [str(at) for at in range(columns)])
    axes.set_yticks(range(rows), list(people) if people is not None else [f"person {at}" for at in range(rows)])
    if places is not None and max(map(len, places), default=0) > 6:
        axes.tick_params(axis="x", labelrotation=45)
    total = matrix[np.arange(rows), columns_of][columns_of >= 0].sum()
    axes.set_title(
        f"cost ({unit})" if chosen is None else f"cost ({unit}); chosen, in all {total:.3g} {unit}", fontsize=11
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def _by_dataset(results: Results) -> dict[str, Mapping[str, Numbers]]:
    """One dataset alone becomes a group without a name."""
    if any(isinstance(found, Mapping) for found in results.values()):
        return dict(cast(Mapping[str, Mapping[str, Numbers]], results))
    return {"": cast(Mapping[str, Numbers], results)}


def _values(found: Numbers, metric: str) -> NDArray[np.float64]:
    several = found if isinstance(found, Sequence) else [found]
    values = np.array([getattr(one, metric) if isinstance(one, Evaluation) else float(one) for one in several])
    if not len(values):
        raise InvalidSetting("An attack has no result to draw; give at least one, or leave the attack out.")
    return values


def save_figure(figure: Figure | Axes, path: str | Path, *, overwrite: bool = True) -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of the name.

    Parameters
    ----------
    figure
        What to write, or an Axes of it.
    path
        The file. The same figure gives the same bytes.
    overwrite
        Replace a file that is there.
    """
    path = Path(path)
    # No dates, versions or random names in the file: the same figure gives the same bytes.
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    if path.suffix not in metadata:
        raise InvalidSetting(f"{path} ends in {path.suffix!r}; use .png, .svg or .pdf.")
    whole = cast(Figure, figure.figure) if isinstance(figure, Axes) else figure
    with new_file(path, overwrite=overwrite) as temporary, matplotlib.rc_context({"svg.hashsalt": "rekindle"}):
        whole.savefig(temporary, dpi=130, format=path.suffix[1:], metadata=metadata[path.suffix])
