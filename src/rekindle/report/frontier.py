"""The page of a recommendation: the frontier of risk and use."""

from __future__ import annotations

from pathlib import Path

from rekindle.auditing.recommendation import Recommendation
from rekindle.auditing.risk import LEVELS
from rekindle.io.safety.files import new_file
from rekindle.report import charts
from rekindle.report.render import Table, render


def write_frontier(path: str | Path, found: Recommendation) -> None:
    """Write what was tried to one file, whole or not at all, for its owner alone."""
    with new_file(path, overwrite=True, private=True) as temporary:
        temporary.write_text(_page(found), encoding="utf-8")


def _page(found: Recommendation) -> str:
    # As given, which loses nothing, is number 0 of the chart and of the table.
    shown = sorted(found.frontier, key=lambda one: one.defence is not None)
    rows = [[f"{at}. {label}", *others] for at, (label, *others) in enumerate(found.rows(shown))]
    none = "Nothing meets the limits" if found.finished else "Nothing is confirmed yet"
    points = [charts.Point(at, one.label, one.loss, one.advantage) for at, one in enumerate(shown)]
    return render(
        "recommend.html.jinja",
        title="The least lossy release",
        name=found.settings["name"],
        command=found.settings["command"],
        headline=none if found.chosen is None else found.chosen.label,
        answer=found.answer,
        notes=[*found.notes, *(f"Not tried: {name}: {reason}" for name, reason in found.left_out.items())],
        chart=charts.privacy_and_use("The frontier of risk and utility", points, LEVELS, found.published)
        if points
        else "",
        published=found.published,
        frontier=Table("The frontier", found.head(), rows),
        tried=Table("Everything that was tried", found.head(), found.rows(found.tried)),
    )
