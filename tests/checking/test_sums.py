"""Limits of withheld numbers: they hold the truth, and are as narrow as enumeration finds them."""

from itertools import product

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.checking.sums import Entries, limits_of_withheld
from rekindle.checking.table import Table

NAMES = "ABC"


def table_of(values, withheld, below):
    """A 2 x 3 table with both margins and the grand total, some of its inner numbers withheld."""
    rows = []
    for i, origin in enumerate("xy"):
        rows += [(origin, NAMES[j], None if withheld[i, j] else float(values[i, j])) for j in range(3)]
        rows.append((origin, None, float(values[i].sum())))
    rows += [(None, NAMES[j], float(values[:, j].sum())) for j in range(3)]
    rows.append((None, None, float(values.sum())))
    origin, destination, value = zip(*rows, strict=True)
    frame = pl.DataFrame(
        {
            "row": range(1, len(rows) + 1),
            "time": pl.Series([None] * len(rows), dtype=pl.Datetime("us")),
            "origin": origin,
            "destination": destination,
            "value": pl.Series(value, dtype=pl.Float64),
            "most": pl.Series([None if one is not None else below for one in value], dtype=pl.Float64),
        }
    )
    return Table("table", frame, ("origin", "destination"))


def enumerated(values, withheld, most):
    """The least and the largest value of each withheld number over all tables with the same margins."""
    at = np.argwhere(withheld)
    fitting = []
    for guess in product(range(most + 1), repeat=len(at)):
        table = values.copy()
        table[tuple(at.T)] = guess
        if (table.sum(0) == values.sum(0)).all() and (table.sum(1) == values.sum(1)).all():
            fitting.append(guess)
    return np.min(fitting, axis=0), np.max(fitting, axis=0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
)
def test_limits_equal_enumeration(numbers, hidden):
    values, withheld = np.reshape(numbers, (2, 3)), np.reshape(hidden, (2, 3))
    entries = Entries.of([table_of(values, withheld, 4.0)], [1.0])
    found = limits_of_withheld(entries)
    assert found.consistent
    assert found.open == 0
    row = entries.frame.filter(pl.col("value").is_null()).sort("entry")
    order = row["row"].to_numpy().argsort()
    low, high = enumerated(values, withheld, 4)
    np.testing.assert_array_equal(found.low[order], low)
    np.testing.assert_array_equal(found.high[order], high)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6).filter(any),
    st.sampled_from([3, 5, 10]),
)
def test_limits_hold_the_truth_behind_rounded_numbers(numbers, hidden, base):
    values, withheld = np.reshape(numbers, (2, 3)), np.reshape(hidden, (2, 3))
    table = table_of(values, withheld, None)
    rounded = table.frame.with_columns((pl.col("value") / base).round() * base)
    entries = Entries.of([Table("table", rounded, table.keys)], [float(base)])
    found = limits_of_withheld(entries)
    assert found.consistent
    row = entries.frame.filter(pl.col("value").is_null()).sort("entry")
    truth = values[withheld][row["row"].to_numpy().argsort().argsort()]
    assert (found.low <= truth).all()
    assert (truth <= found.high).all()
