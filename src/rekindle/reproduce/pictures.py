"""The figures of the reproduction, each with the data behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rekindle.evaluation import Evaluation
from rekindle.io.tables.table import write_table
from rekindle.model import Trajectories
from rekindle.report import figures
from rekindle.report.figures.bars import Found
from rekindle.reproduce.measuring import FIRST_DAY, Measured

DRAWN = ("chance", "naive", "baseline", "enhanced", FIRST_DAY, "habits")
BARS: dict[str, tuple[str, Callable[..., Any], str]] = {
    "accuracies": ("accuracy", figures.draw_accuracies, "Points in the right location."),
    "levenshtein": (
        "levenshtein_accuracy",
        figures.draw_accuracies,
        "Levenshtein accuracy: like accuracy, but a stay that is shifted in time still counts.",
    ),
    "errors": (
        "mean_error_km",
        figures.draw_errors,
        "Distance of a recovered point to the true one. The paper draws the sum over all points, which is in the data "
        "too; per point, datasets of different sizes can be compared.",
    ),
}
"""What is drawn as bars: metric, figure and caption."""
METRICS = ("accuracy", "levenshtein_accuracy", "mean_error_km", "recovery_error_km")


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with the data behind it.

    Attributes
    ----------
    name
        Of its files, without an ending; it begins with the part of the page that it belongs to.
    caption
        What it shows, in a sentence or two.
    """

    name: str
    caption: str
    figure: Figure
    data: pl.DataFrame

    def write(self, folder: Path) -> None:
        """Write it as SVG and PNG, and its data as CSV."""
        for ending in ("svg", "png"):
            figures.save_figure(self.figure, folder / f"{self.name}.{ending}")
        write_table(folder / f"{self.name}.csv", self.data)


def draw_pictures(results: Sequence[Measured]) -> Iterator[Picture]:
    """Draw all that can be drawn."""
    known = [one for one in results if one.subject.truth is not None]
    if known:
        yield from _bars(known)
        yield from _more(known)
        for one in known:
            yield from _paths(one)
    yield _panels(
        "uniqueness",
        "Share of people whose set of k most frequent locations nobody else has: the truth, and what the attacks recovered. "
        "Published counts come without a truth.",
        results,
        _draw_uniqueness,
        _uniqueness_table(results),
    )
    for one in results:
        yield _grid(one)


def _bars(known: Sequence[Measured]) -> Iterator[Picture]:
    measured = {
        one.subject.name: {name: one.evaluations[name] for name in DRAWN if name in one.evaluations} for one in known
    }
    table = _long([(one.subject.name, name, found) for one in known for name, found in one.evaluations.items()])

    def expected(metric: str) -> dict[str, dict[str, float]]:
        return {one.subject.name: dict(getattr(one.subject.paper, metric)) for one in known if one.subject.paper}

    marks = "A bar is the mean over row orders, a dot is one of them, a diamond is what the paper reports."
    for name, (metric, draw, caption) in BARS.items():
        axes = draw(measured, metric=metric, expected=expected(metric))
        columns = ["dataset", "attack", "order", metric] + (["recovery_error_km"] if name == "errors" else [])
        yield Picture(name, f"{caption} {marks}", axes.figure, table.select(columns))


def _more(known: Sequence[Measured]) -> Iterator[Picture]:
    yield _panels(
        "enhancements",
        "Each enhancement switched on alone, from the baseline (dashed) to all together. Small dots are row orders.",
        known,
        lambda one, axes: figures.draw_enhancements(one.enhancements, axes=axes),
        _long([(one.subject.name, name, found) for one in known for name, found in one.enhancements.items()]).rename(
            {"attack": "variant"}
        ),
    )
    linked = [one for one in known if one.lookback]
    if linked:
        yield _panels(
            "lookback",
            "Accuracy of the enhanced attack by the days that a link looks back; the band goes from the least to the best of "
            "the row orders. The paper uses k = 3.",
            linked,
            lambda one, axes: figures.draw_lookback(one.lookback, axes=axes),
            _long(
                [(one.subject.name, str(days), found) for one in linked for days, found in one.lookback.items()]
            ).rename({"attack": "lookback_days"}),
        )
    sure = [one for one in known if one.confidence is not None]
    if sure:
        yield _panels(
            "confidence",
            "Whether Habits knows when it is right: accuracy by its own confidence. On the dashed line it is as sure as right.",
            sure,
            _draw_confidence,
            pl.concat(
                pl.DataFrame(
                    {
                        "dataset": one.subject.name,
                        "from": one.confidence.edges[:-1],
                        "to": one.confidence.edges[1:],
                        "share_of_points": one.confidence.share,
                        "confidence": one.confidence.confidence,
                        "accuracy": one.confidence.accuracy,
                    }
                )
                for one in sure
                if one.confidence is not None
            ),
        )


def _draw_confidence(one: Measured, axes: Axes) -> None:
    if one.confidence is not None:
        figures.draw_confidence(one.confidence, axes=axes)


def _draw_uniqueness(one: Measured, axes: Axes) -> None:
    names = [name for name in ("baseline", "enhanced", "habits") if name in one.recoveries]
    found: dict[str, Sequence[Found]] = {name: one.evaluations.get(name, one.recoveries[name]) for name in names}
    figures.draw_uniqueness(found, axes=axes)


def _uniqueness_table(results: Sequence[Measured]) -> pl.DataFrame:
    rows = [
        (one.subject.name, name, order, k, unique[k], distinct[k])
        for one in results
        for name, counted in one.sets.items()
        for order, (unique, distinct) in enumerate(counted)
        for k in unique
    ]
    return pl.DataFrame(rows, ["dataset", "who", "order", "k", "uniqueness", "distinct_sets"], orient="row")


def _panels(
    name: str,
    caption: str,
    results: Sequence[Measured],
    draw: Callable[[Measured, Axes], object],
    data: pl.DataFrame,
) -> Picture:
    """Draw one panel for each dataset, three in a row."""
    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    figure = figures.new_figure(4.6 * columns + 0.6, 3.5 * rows + 0.3)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for number, (axes, one) in enumerate(zip(panels, results, strict=False)):
        draw(one, axes)
        axes.set_title(one.subject.name, fontsize=11)
        legend = axes.get_legend()
        if legend is not None and number:
            legend.remove()
        elif legend is not None:
            handles, labels = axes.get_legend_handles_labels()
            legend.remove()
            figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    for axes in panels[len(results) :]:
        axes.remove()
    return Picture(name, caption, figure, data)


def _grid(one: Measured) -> Picture:
    subject = one.subject
    places, slug = subject.counts.locations, _slug(subject.name)
    if subject.positions is not None:
        axes = figures.draw_grid(places, positions=subject.positions)
        caption = f"{subject.name}: the cells with their centres (orange) over people's positions (blue)."
    else:
        axes = figures.draw_grid(places, counts=subject.counts)
        caption = f"{subject.name}: the cells, coloured by the mean number of people in them."
    columns = {"location": places.ids, "x_km": places.xy_km[:, 0], "y_km": places.xy_km[:, 1]}
    if places.lat_lng is not None:
        columns |= {"lat": places.lat_lng[:, 0], "lng": places.lat_lng[:, 1]}
    columns["mean_people"] = subject.counts.values.mean(axis=0)
    return Picture(f"grid-{slug}", caption, axes.figure, pl.DataFrame(columns))  # type: ignore[arg-type]


def _paths(one: Measured) -> Iterator[Picture]:
    """Two people for a day, as in the paper: one who was found well, and one in the middle, both of whom move."""
    truth = one.subject.truth
    if truth is None:
        return
    recoveries: dict[str, Trajectories] = {
        name: one.recoveries[name][0].trajectories
        for name in ("baseline", "enhanced", "habits")
        if name in one.recoveries
    }
    # The whole day on which most people move most.
    days = [day for day in truth.calendar.days() if day.stop - day.start == truth.calendar.steps_per_day]
    if not days:
        return
    moves = [np.count_nonzero(np.diff(truth.cells[:, day], axis=1), axis=1) for day in days]
    best = int(np.argmax([each.sum() for each in moves]))
    steps, number = days[best], list(truth.calendar.days()).index(days[best])
    rows = one.evaluations["enhanced"][0].per_person.matched
    right = (recoveries["enhanced"].cells[rows, steps] == truth.cells[:, steps]).mean(axis=1)
    movers = np.flatnonzero(moves[best] >= max(1, np.median(moves[best])))
    ranked = movers[np.argsort(-right[movers], kind="stable")]
    for which, person in (("well", int(ranked[0])), ("middling", int(ranked[len(ranked) // 2]))):
        figure = figures.draw_paths(truth, recoveries, person=person, day=number)
        how = "the one of whom the enhanced attack found most that day" if which == "well" else "one in the middle"
        yield Picture(
            f"paths-{_slug(one.subject.name)}-{which}",
            f"{one.subject.name}, day {number + 1}: of the people who move that day, {how}.",
            figure,
            _path_table(truth, recoveries, person, steps),
        )


def _path_table(truth: Trajectories, recoveries: dict[str, Trajectories], person: int, steps: slice) -> pl.DataFrame:
    from rekindle.evaluation.mapping import map_people

    paths = {"truth": truth.cells[person, steps]}
    for name, found in recoveries.items():
        row = int(map_people(found, truth).recovered[person])
        paths[name] = found.cells[row, steps]
    xy = truth.locations.xy_km
    return pl.concat(
        pl.DataFrame(
            {
                "datetime": truth.calendar.times()[steps].astype("datetime64[ms]"),
                "who": name,
                "x_km": xy[cells, 0],
                "y_km": xy[cells, 1],
            }
        )
        for name, cells in paths.items()
    )


def _long(rows: Sequence[tuple[str, str, Sequence[Evaluation]]]) -> pl.DataFrame:
    """One row for each dataset, attack and row order."""
    return pl.DataFrame(
        [
            (dataset, name, order, *(getattr(one, metric) for metric in METRICS))
            for dataset, name, found in rows
            for order, one in enumerate(found)
        ],
        ["dataset", "attack", "order", *METRICS],
        orient="row",
    )


def _slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())
