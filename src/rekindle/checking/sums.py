"""Which numbers are sums of which: what totals say about the numbers that were withheld.

Tables that are checked together are one set of entries. An entry is named by its time, the step of its table, and the values of the columns that
it is *not* a total over; so the number for a location in one file and the row "all ages" for that location in another
are the same entry. A set of columns is the level of an entry. An entry is the sum of the entries of the next finer level that
agree with it in all columns of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rekindle.checking.table import Table

MOST_IN_A_GROUP = 300
"""Unknown numbers of a group that hang together up to which linear programmes are solved."""
MOST_PROGRAMMES = 2_000
"""Linear programmes that are solved in all."""
MOST_ENTRIES = 5_000_000
"""Numbers of a table, absent ones included, up to which sums are looked at."""
MOST_COLUMNS = 62
"""Columns that tell numbers apart, up to which sums are looked at: a level is a bit for each of them."""
_ROUNDS = 50
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Entries:
    """The numbers of several tables, each entry once, with the equations between them.

    Attributes
    ----------
    frame
        One row a number: `entry`, `table`, `row` (null where the table has no row for it), `value`, `most`, and `half`,
        half of what the table was rounded to (0 where it was not).
    sums
        (terms, 3) int64, columns sum, total, part: the total of a sum equals all of its parts together. An entry may be the
        total of several sums, such as those over origins and over destinations.
    """

    frame: pl.DataFrame
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, tables: Sequence[Table], rounded_to: Sequence[float]) -> Entries | None:
        """Number the entries of tables, and find which are sums of which; None where the tables are too large for it."""
        columns = sorted({key for table in tables for key in table.keys})
        if len(columns) > MOST_COLUMNS:
            return None
        parts = []
        for at, (table, to) in enumerate(zip(tables, rounded_to, strict=True)):
            frame = _completed(table)
            if frame is None:
                return None
            half = to / 2 if to > 1 else 0.0
            own = (pl.lit(at).alias("table"), pl.lit(half).alias("half"), pl.lit(table.step).alias("step"))
            parts.append(frame.with_columns(*own))
        frame = pl.concat(parts, how="diagonal")
        names = ["time", "step", *columns]
        entries = frame.select(names).unique(maintain_order=True).with_row_index("entry")
        frame = frame.join(entries, on=names, nulls_equal=True, maintain_order="left")
        sums = [
            np.column_stack([one[:, 0] + at * entries.height, one]) for at, one in enumerate(_terms(entries, columns))
        ]
        terms = np.concatenate([np.empty((0, 3), np.int64), *sums]).astype(np.int64)
        terms[:, 0] = np.unique(terms[:, 0], return_inverse=True)[1]
        return cls(frame.select("entry", "table", "row", "value", "most", "half"), terms)


def _completed(table: Table) -> pl.DataFrame | None:
    """The numbers of a table, and those for which it has no row at some of its times; None where these are too many."""
    frame = table.frame.select("row", "time", *table.keys, "value", "most")
    names, when = (
        frame.select(table.keys).unique(maintain_order=True),
        frame.select("time").unique(maintain_order=True),
    )
    if names.height * when.height == frame.height or not table.keys:
        return frame
    if names.height * when.height > MOST_ENTRIES:
        return None
    return when.join(names, how="cross").join(
        frame, on=["time", *table.keys], how="left", nulls_equal=True, maintain_order="left"
    )


def _terms(entries: pl.DataFrame, columns: list[str]) -> Iterator[NDArray[np.int64]]:
    """Pairs of an entry and of one whose sum it is part of, for every pair of neighbouring levels."""
    if not columns:
        return
    level = entries.select(
        pl.sum_horizontal(pl.col(name).is_not_null().cast(pl.Int64) * (1 << at) for at, name in enumerate(columns))
    )
    levels = level.to_series().to_numpy()
    masks = sorted(set(levels.tolist()))
    for coarse in masks:
        finer = [fine for fine in masks if fine != coarse and fine & coarse == coarse]
        for fine in finer:
            if any(between != fine and between & fine == between for between in finer):
                continue
            shared = ["time", "step", *(name for at, name in enumerate(columns) if coarse >> at & 1)]
            parents = entries.filter(pl.Series(levels == coarse)).select(pl.col("entry").alias("parent"), *shared)
            children = entries.filter(pl.Series(levels == fine)).select(pl.col("entry").alias("child"), *shared)
            yield parents.join(children, on=shared, nulls_equal=True).select("parent", "child").to_numpy()


@dataclass(frozen=True, eq=False)
class Limits:
    """What can be said of the withheld entries.

    Attributes
    ----------
    entries
        (withheld,) int64.
    low, high
        (withheld,) float64: the least and the largest value that fits all sums; infinite where nothing bounds it.
    open
        How many were bounded by propagation alone, because their group is larger than is solved.
    consistent
        Whether the published numbers fit each other; where they do not, the sums say nothing.
    """

    entries: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    open: int
    consistent: bool


def limits_of_withheld(entries: Entries, below: float | None = None) -> Limits:
    """Bound every withheld entry by the sums that it is part of.

    Parameters
    ----------
    entries
        The entries and their sums.
    below
        What withheld numbers are known to lie below, where the publisher says so.
    """
    known = entries.frame.group_by("entry").agg(
        (pl.col("value") - pl.col("half")).max().alias("low"),
        (pl.col("value") + pl.col("half")).min().alias("high"),
        pl.col("most").min(),
    )
    count = int(known["entry"].max() or 0) + 1  # type: ignore[arg-type]
    low, high = np.zeros(count), np.full(count, np.inf)
    at = known["entry"].to_numpy()
    withheld = np.zeros(count, bool)
    withheld[at] = known["low"].is_null().to_numpy()
    low[at] = np.maximum(known["low"].fill_null(0.0).to_numpy(), 0.0)
    high[at] = known["high"].fill_null(known["most"]).fill_null(np.inf if below is None else below - 1).to_numpy()
    unknown = np.flatnonzero(withheld)
    if not len(unknown) or not len(entries.sums):
        return Limits(unknown, low[unknown], high[unknown], 0, True)
    number, total, part = entries.sums.T
    equations, first = np.unique(number, return_index=True)
    rows = np.concatenate([number, equations])
    columns = np.concatenate([part, total[first]])
    signs = np.concatenate([np.ones(len(number)), -np.ones(len(equations))])
    low, high = _propagate(rows, columns, signs, low, high)
    if (low > high + _SLACK).any():
        return Limits(unknown, low[unknown], high[unknown], 0, False)
    matrix = csr_array((signs, (rows, columns)), shape=(len(equations), count))
    left_open = _solve_groups(matrix, withheld, low, high)
    return Limits(unknown, np.ceil(low[unknown] - _SLACK), np.floor(high[unknown] + _SLACK), left_open, True)


def _propagate(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    signs: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tighten limits by each equation in turn, all at once, until nothing changes: every equation sums to 0."""
    low, high, equations = low.copy(), high.copy(), int(rows.max()) + 1
    for _ in range(_ROUNDS):
        least = np.where(signs > 0, low[columns], -high[columns])
        most = np.where(signs > 0, high[columns], -low[columns])
        # Infinite terms are counted apart: a sum of them less one of them is what the others leave.
        free_low, free_high = np.isinf(least), np.isinf(most)
        sum_low = np.bincount(rows, np.where(free_low, 0.0, least), equations)
        sum_high = np.bincount(rows, np.where(free_high, 0.0, most), equations)
        open_low, open_high = np.bincount(rows, free_low, equations), np.bincount(rows, free_high, equations)
        rest_low = sum_low[rows] - np.where(free_low, 0.0, least)
        rest_high = sum_high[rows] - np.where(free_high, 0.0, most)
        rest_low[open_low[rows] - free_low > 0] = -np.inf
        rest_high[open_high[rows] - free_high > 0] = np.inf
        upper = np.where(signs > 0, -rest_low, rest_high)
        lower = np.where(signs > 0, -rest_high, rest_low)
        new_low, new_high = low.copy(), high.copy()
        np.maximum.at(new_low, columns, lower)
        np.minimum.at(new_high, columns, upper)
        if np.allclose(new_low, low, atol=_SLACK) and np.array_equal(np.isinf(new_high), np.isinf(high)):
            finite = np.isfinite(high)
            if np.allclose(new_high[finite], high[finite], atol=_SLACK):
                break
        low, high = new_low, new_high
    return low, high


def _solve_groups(
    matrix: csr_array, withheld: NDArray[np.bool_], low: NDArray[np.float64], high: NDArray[np.float64]
) -> int:
    """Tighten the limits of entries that hang together by linear programmes, in place; how many were left as they are."""
    is_loose = withheld & (high - low > _SLACK)
    loose = np.flatnonzero(is_loose)
    if not len(loose):
        return 0
    part = matrix[:, loose].tocoo()
    equations = matrix.shape[0]
    links = csr_array((np.ones(part.nnz), (part.row, equations + part.col)), shape=(equations + len(loose),) * 2)
    group = connected_components(links, directed=False)[1]
    sums_of_group = np.bincount(group[np.unique(part.row)], minlength=group.max() + 1)
    group = group[equations:]
    # Of a group with a single sum propagation found the limits already.
    several = np.flatnonzero(sums_of_group[group] > 1)
    order = several[np.argsort(group[several], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []
    fixed = matrix @ np.where(is_loose, 0.0, (low + np.where(np.isinf(high), low, high)) / 2)
    width = abs(matrix) @ np.where(withheld, 0.0, (high - low) / 2)
    left_open = programmes = 0
    for members in sorted(groups, key=len):
        entries = loose[members]
        if len(entries) > MOST_IN_A_GROUP or programmes + 2 * len(entries) > MOST_PROGRAMMES:
            left_open += len(entries)
            continue
        programmes += 2 * len(entries)
        inside = matrix[:, entries]
        involved = np.flatnonzero(np.diff(inside.indptr))
        terms = inside[involved].toarray()
        bound = np.concatenate([width[involved] - fixed[involved], width[involved] + fixed[involved]]) + _SLACK
        box = np.column_stack([low[entries], high[entries]])
        for at, entry in enumerate(entries):
            aim = np.eye(len(entries))[at]
            for sign in (1.0, -1.0):
                solved = linprog(
                    sign * aim, A_ub=np.concatenate([terms, -terms]), b_ub=bound, bounds=box, method="highs"
                )
                if solved.status != 0:
                    continue
                if sign > 0:
                    low[entry] = max(low[entry], solved.fun)
                else:
                    high[entry] = min(high[entry], -solved.fun)
    return left_open
