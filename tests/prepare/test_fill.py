"""Spells by hand, and against a plain loop over steps."""

from datetime import timedelta

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekindle.prepare.fill import choose_max_gap, spells, with_neighbours
from rekindle.sources.engine import Parts, collect


def records(*known_of):
    """Records at the square of their step, of one person or several."""
    rows = [(str(person), step, float(step**2)) for person, known in enumerate(known_of) for step in known]
    table = pl.LazyFrame(rows, schema={"person": pl.String, "step": pl.Int64, "lat": pl.Float64}, orient="row")
    return with_neighbours(nw.from_native(table.with_columns(lng=-pl.col("lat"))))


def filled(known, steps, fill, max_gap=None, whole=False):
    """The height at each step, None where the person is away; and the steps that have a record."""
    found = collect(spells(records(known), steps=steps, fill=fill, max_gap=max_gap, whole=whole))
    heights, seen = {}, set()
    for row in found.iter_rows(named=True):
        assert row["lng"] == -row["lat"]
        for step in range(row["begin"], row["end"]):
            assert step not in heights
            heights[step] = row["lat"]
        if row["at"] is not None and row["begin"] <= row["at"] < row["end"]:
            seen.add(row["at"])
    return heights, seen


def test_by_hand():
    known = [1, 5, 6]
    assert list(filled(known, 8, "last")[0].values()) == [1, 1, 1, 1, 1, 25, 36, 36]
    # Step 3 is as near to step 1 as to step 5: the earlier record counts.
    assert list(filled(known, 8, "nearest")[0].values()) == [1, 1, 1, 1, 25, 25, 36, 36]
    heights, seen = filled(known, 8, "linear")
    assert [heights[step] for step in range(8)] == [1, 1, 7, 13, 19, 25, 36, 36]
    assert seen == {1, 5, 6}
    assert filled(known, 5, "last")[1] == {1}


def test_gaps_by_hand():
    known = [2, 3, 6, 12]

    def counted(fill, max_gap):
        heights, _ = filled(known, 18, fill, max_gap)
        return "".join("X" if step in heights else "." for step in range(18))

    assert counted("last", 3) == "..XXXXXXXX..XXXX.."
    assert counted("nearest", 3) == "..XXXXXX...XXX...."  # half of 3 steps is one step
    assert counted("nearest", 6) == "..XXXXXXXXXXXXXX.."  # the gap of 6 is filled wholly
    assert counted("nearest", 5) == "..XXXXXXX.XXXXX..."
    assert counted("linear", 3) == "..XXXXX.....X....."
    assert counted("linear", 6) == "..XXXXXXXXXXX....."
    for fill in ("last", "nearest", "linear"):
        assert counted(fill, 0) == "..XX..X.....X....."
        assert counted(fill, None) == "X" * 18


@settings(deadline=None, max_examples=150)
@given(
    st.sets(st.integers(-5, 30), min_size=1),
    st.integers(1, 40),
    st.sampled_from(["last", "nearest", "linear"]),
    st.none() | st.integers(0, 12),
    st.booleans(),
)
def test_against_a_plain_loop(known, steps, fill, max_gap, whole):
    """Records may lie before and after the steps, but not where positions are carried forever."""
    known = sorted(abs(at) for at in known) if max_gap is None else sorted(known)
    known = sorted(set(known))
    heights, seen = filled(known, steps, fill, max_gap, whole)
    end = max(steps, known[-1] + 1) if whole else steps
    assert all(0 <= step < end for step in heights)
    assert seen == {at for at in known if 0 <= at < end}
    for step in range(end):
        earlier, later = [at for at in known if at <= step], [at for at in known if at > step]
        since = step - earlier[-1] if earlier else np.inf
        until = later[0] - step if later else np.inf
        if max_gap is None:
            counted = True
        elif fill == "last":
            counted = since <= max_gap
        elif fill == "nearest":
            counted = bool(earlier) and min(since, until) <= max_gap / 2
        else:
            counted = bool(earlier) and (since == 0 or since + until <= max_gap)
        assert (step in heights) == counted
        if earlier and since + until <= (max_gap or 0):
            assert counted  # a gap that is short enough is filled wholly
        if not counted:
            continue
        if fill == "linear":
            expected = np.interp(step, known, np.square(known, dtype=float))
        else:
            nearest = fill == "nearest" and earlier and until < since
            expected = (later[0] if nearest or not earlier else earlier[-1]) ** 2
        assert heights[step] == pytest.approx(expected)


def choose(*known_of, minutes=10):
    return choose_max_gap(Parts((records(*known_of),)), timedelta(minutes=minutes)) / timedelta(hours=1)


def test_the_chosen_gap_suits_half_of_the_people():
    often = range(1_000)  # every ten minutes
    assert choose(often) == 1
    hourly = range(0, 1_000, 9)
    assert choose(hourly) == 2  # 90 minutes, rounded up
    assert choose(often, hourly, hourly) == 2
    assert choose(often, often, hourly, [0]) == 1  # one record has no interval
    # One in ten intervals lasts 8 hours; that is more than one in twenty.
    nights = np.cumsum(([1] * 9 + [48]) * 5).tolist()
    assert choose(nights) == 8
    assert choose(np.cumsum(([1] * 39 + [48]) * 5).tolist()) == 1
    assert choose([0, 1_000]) == 24
    assert choose([5]) == 1


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sets(st.integers(0, 400), min_size=1, max_size=50), min_size=1, max_size=6))
def test_the_chosen_gap_is_that_of_numpy(known_of):
    def percentile(values, percent):
        return int(np.percentile(values, percent, method="inverted_cdf"))

    longest = [percentile(np.diff(sorted(known)), 95) for known in known_of if len(known) > 1]
    steps = percentile(longest, 50) if longest else 0
    assert choose(*map(sorted, known_of), minutes=30) == min(max(np.ceil(steps / 2), 1), 24)
