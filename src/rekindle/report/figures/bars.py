"""What attacks reached, as bars and lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from rekindle import checks
from rekindle.attacks import Recovery
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import Evaluation
from rekindle.evaluation.confidence import Confidence
from rekindle.evaluation.unique import uniqueness_by_k
from rekindle.model import Trajectories
from rekindle.report.colours import COLOURS, colours_of
from rekindle.report.figures.style import new_figure

Numbers: TypeAlias = Evaluation | float | Sequence[Evaluation | float]
"""What was measured once, or over several row orders."""

Found: TypeAlias = Trajectories | Recovery | Evaluation
"""What an attack found, compared with the truth or not."""

Results: TypeAlias = Mapping[str, Numbers] | Mapping[str, Mapping[str, Numbers]]
"""By the name of the attack; or by the name of the dataset, and then by that of the attack."""


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
    axes = _draw_bars(results, metric, label, expected, axes)
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
    return _draw_bars(results, metric, label, expected, axes)


def _draw_bars(
    results: Results, metric: str, label: Mapping[str, str], expected: Results | None, axes: Axes | None
) -> Axes:
    checks.choice("metric", metric, label)
    groups = _by_dataset(results)
    published = _by_dataset(expected) if expected else {}
    attacks = list(dict.fromkeys(name for group in groups.values() for name in group))
    _check_some(attacks)
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
    axes.set_ylabel(label[metric])
    axes.spines[["top", "right"]].set_visible(False)
    named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    named |= {"the paper": named.pop("the paper")} if "the paper" in named else {}
    axes.legend(
        list(named.values()),
        list(named),
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(named) if len(groups) > 2 else min(3, len(named)),
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
    _check_some(lines)
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
    return list(uniqueness_by_k(people).values())


def draw_lookback(accuracies: Mapping[int, Numbers], *, attack: str = "enhanced", axes: Axes | None = None) -> Axes:
    """Draw accuracy by the number of days that a link looks back: a line at the mean, a band from least to most.

    Parameters
    ----------
    accuracies
        By the number of days, an `Evaluation` or an accuracy, or several, one for each row order.
    attack
        Whose colour to use.
    """
    _check_some(accuracies)
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
    _check_some(results)
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


def _check_some(results: Collection[object]) -> None:
    if not results:
        raise InvalidSetting("There is nothing to draw; give at least one result.")


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
