"""A published table of which nobody said whether its numbers are exact: how it is read, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rekindle.checks import choice
from rekindle.errors import InvalidFile
from rekindle.io.tables.counts import Layout, clock, counts_of, usual_step
from rekindle.io.tables.flows import flows_in, of_window
from rekindle.io.tables.release import WITHHELD, doubts, published_numbers, release_of
from rekindle.model import Counts, Flows, Locations, Release
from rekindle.model.calendar import parse_step

READ_AS = ("auto", "counts", "release")


@dataclass(frozen=True, eq=False)
class Published:
    """What a published table holds.

    Attributes
    ----------
    data
        Counts or flows where the numbers are exact, otherwise a release.
    note
        How the table was read, and why, in a sentence; of flows also what in it may be a mistake.
    """

    data: Counts | Flows | Release
    note: str


def read_published(
    path: str | Path,
    locations: Locations | str | Path | None = None,
    *,
    read_as: Literal["auto", "counts", "release"] = "auto",
    absent: Literal["withheld", "zero"] = "withheld",
    withheld: Collection[str] = WITHHELD,
    step: str | timedelta | None = None,
    cell_km: float = 1.0,
) -> Published:
    """Read a published table as exact counts or as a release, and say which, and why.

    Decimals and negative, withheld or rounded numbers are signs of a release, and so are missing steps, and rows left out of a
    table without small numbers, if its steps do not add up to the same people; and flows by which people get lost between two
    windows. Any other table is exact, whatever its totals: people come and go.

    Parameters
    ----------
    path, locations, step, cell_km
        As in `read_counts`.
    absent, withheld
        As in `read_release`; for exact counts, an absent row means 0.
    read_as
        "auto" decides as above; "counts" and "release" decide for the caller.
    """
    choice("read_as", read_as, READ_AS)
    layout = Layout.read(path, locations, cell_km)
    name = layout.path.name
    if layout.renamed:
        name += f" (with {', '.join(f'{theirs!r} as {ours}' for ours, theirs in layout.renamed.items())})"
    numbers = published_numbers(layout, withheld)
    signs = _signs_of_a_release(layout, numbers, step) if read_as == "auto" else "as requested"
    if layout.flows and (read_as == "counts" or not signs):
        try:
            flows = flows_in(layout, step)
            return Published(flows, f"{name} was read as exact flows of {flows.people} people.")
        except InvalidFile as error:
            if read_as == "counts":
                raise
            signs = f"they are not exact flows of people. {error.problem.partition('. ')[0].removesuffix('.')}"
    if read_as == "release" or (read_as == "auto" and signs):
        release = release_of(layout, absent=absent, withheld=withheld, step=step)
        read = f"{name} was read as a release, whose numbers may be inexact: {signs}."
        return Published(release, " ".join([read, *_without_row(layout, release, absent, step), *doubts(release)]))
    data = counts_of(layout, step)
    totals = data.totals
    if totals.min() == totals.max():
        how_many = f"of {data.people} people at each step"
    else:
        how_many = (
            f"of {totals.min()} to {totals.max()} people; who is not counted at a step is taken to be away. If numbers were "
            "changed to protect people, set `read_as='release'`"
        )
    return Published(data, f"{name} was read as exact counts {how_many}.")


def _without_row(layout: Layout, release: Release, absent: str, step: str | timedelta | None) -> Iterator[str]:
    """How many numbers of a release the table has no row for, and what they are taken to be, in a sentence."""
    rows = layout.table.height
    if layout.flows:
        rows = int(of_window(layout.table, layout.path, None if step is None else parse_step(step))[0].sum())
    there = rows if layout.long else rows * len(layout.ids)
    if left := release.values.size - there:
        taken, other = ("0", "withheld") if absent == "zero" and layout.long else ("withheld", "zero")
        unless = f", unless you set `absent='{other}'`" if layout.long else ""
        yield f"{left:,} number{'s have' if left > 1 else ' has'} no row and {'are' if left > 1 else 'is'} taken to be {taken}{unless}."


def _signs_of_a_release(layout: Layout, numbers: NDArray[np.float64], step: str | timedelta | None) -> str:
    """What shows that numbers are not exact counts of the same people; nothing where all of them may be."""
    kinds = {
        "withheld": np.isnan(numbers),
        "negative": numbers < 0,
        "beyond 2^53": np.abs(numbers) > 2**53,
        "not whole": np.isfinite(numbers) & (numbers != np.floor(numbers)),
    }
    found = [
        f"{count} {'is' if count == 1 else 'are'} {what}" for what, where in kinds.items() if (count := where.sum())
    ]
    if found:
        return f"of {numbers.size} numbers {', '.join(found)}"
    if layout.flows:
        return ""
    times, at = np.unique(layout.when, return_inverse=True)
    if len(times) > 1:
        usual = np.timedelta64(usual_step(times) if step is None else parse_step(step))
        if len(gaps := np.flatnonzero(np.diff(times) > usual)):
            return f"after {clock(times[gaps[0]])} comes {clock(times[gaps[0] + 1])}, so that steps are missing"
    totals = np.bincount(at, weights=numbers.sum(axis=1))
    if totals.min() == totals.max():
        return ""
    differ = f"its steps add up to between {totals.min():.0f} and {totals.max():.0f} people"
    if (unit := int(np.gcd.reduce(numbers.astype(np.int64), axis=None))) > 1:
        return f"all numbers are multiples of {unit}, and {differ}"
    smallest = numbers[numbers > 0].min()
    if layout.long and smallest > 1 and len(numbers) < len(times) * len(layout.ids):
        return f"rows are left out, no number is between 0 and {smallest:.0f}, and {differ}"
    return ""
