import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekindle as rk
from rekindle.model import AppliedDefence, Release

places = rk.Locations([[0.5, 0.5], [1.5, 0.5]], ["a", "b"])
rounded = AppliedDefence(name="Round", settings={"to": 5}, label="Round to 5", rounds_to=5)
calendar = rk.Calendar("2024-03-01", "1h")


def test_keeps_what_is_published():
    release = Release([[1.5, np.nan], [-2, 0]], places, calendar, [rounded])
    assert release.values.dtype == np.float64
    assert release.steps == release.calendar.steps == 2
    assert release.withheld.tolist() == [[False, True], [False, False]]
    assert release.defences == (rounded,)
    assert "25% withheld, Round(to=5)" in repr(release)


def test_cannot_be_written_to():
    release = Release([[1.0, 2.0]], places, calendar)
    with pytest.raises(ValueError, match="read-only"):
        release.values[0, 0] = 3


def test_equal_also_where_withheld():
    one = Release([[1.0, np.nan]], places, calendar)
    assert one == Release([[1.0, np.nan]], places, calendar)
    assert one != Release([[np.nan, 1.0]], places, calendar)
    assert one != Release([[1.0, np.nan]], places, calendar, [rounded])


def test_of_counts():
    counts = rk.Counts([[1, 2], [3, 0]], places, calendar)
    release = Release.of(counts)
    assert release.values.tolist() == [[1, 2], [3, 0]]
    assert release.defences == ()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([1.0, 2.0], "steps x locations"),
        ([[1.0]], "1 columns for 2 locations"),
        ([[np.inf, 0.0]], "in location 'a' is inf"),
        ([[np.nan, np.nan]], "All 2 numbers are withheld"),
        ([["x", "y"]], "must be numbers"),
        ([[True, False]], "must be numbers"),
        ([[1j, 0]], "must be numbers"),
    ],
)
def test_refuses(values, problem):
    with pytest.raises(rk.errors.InvalidData, match=problem):
        Release(values, places, calendar)


def test_refuses_another_number_of_steps():
    with pytest.raises(rk.errors.InvalidData, match="1 rows, but the calendar has 5"):
        Release([[1.0, 2.0]], places, calendar.closed_at(5))


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("Round", "object with a name"),
        ({"label": "x"}, "object with a name"),
        ({"name": "Round", "exact": 1}, "'exact' of the defence 'Round' is 1"),
        ({"name": "Round", "rounds_to": 0}, "'rounds_to' of the defence 'Round' is 0"),
        ({"name": "Round", "included": None}, "'included'"),
        ({"name": "Round", "caps_at": True}, "'caps_at'"),
        ({"name": "Round", "settings": []}, "'settings'"),
    ],
)
def test_refuses_what_is_no_defence(entry, problem):
    with pytest.raises(rk.errors.InvalidData, match=problem):
        AppliedDefence.from_json(entry)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(entry=st.dictionaries(st.sampled_from([*rounded.to_json(), "more"]), anything))
def test_any_json_is_a_defence_or_refused(entry):
    try:
        found = AppliedDefence.from_json(entry)
    except rk.errors.InvalidData:
        return
    assert AppliedDefence.from_json(found.to_json()) == found
    assert found.describe()


def test_reads_what_a_later_version_states():
    assert AppliedDefence.from_json(rounded.to_json() | {"later": 1}) == rounded


@pytest.mark.parametrize(
    ("name", "value"), [("included", 1.5), ("included", 0), ("rounds_to", 10**400), ("exact", 3)]
)
def test_a_stated_defence_that_cannot_be(name, value):
    with pytest.raises(rk.errors.InvalidData, match=name):
        AppliedDefence.from_json({"name": "Sample", name: value})


# Flows


def test_pairs_are_checked():
    places, calendar = rk.Locations([[0, 0], [1, 1]]), rk.Calendar("2024-03-01", "1h")
    good = [[0, 1], [rk.AWAY, 0]]
    release = Release([[1.0, 2.0]], places, calendar, pairs=good)
    assert repr(release).startswith("Release(flows between 2 pairs, 1 steps")
    assert release != Release([[1.0, 2.0]], places, calendar)
    assert release.to_frame().rows()[1][1:] == (None, "0", 2.0)
    assert release.with_values([[3.0, 4.0]]).pairs.tolist() == good
    for pairs, words in [
        ([[0, 2], [0, 0]], "none of 2 locations"),
        ([[rk.AWAY, rk.AWAY], [0, 0]], "none of 2"),
        ([[0, 1], [0, 1]], "two columns"),
        ([[0, 1]], "2 columns for 1 pairs"),
        ([0, 1], "shape"),
        ([[0.0, 1.0], [1.0, 0.0]], "whole numbers"),
    ]:
        with pytest.raises(rk.errors.InvalidData, match=words):
            Release([[1.0, 2.0]], places, calendar, pairs=pairs)
    with pytest.raises(rk.errors.InvalidData, match="from nowhere to '0' is inf"):
        Release([[1.0, np.inf]], places, calendar, pairs=good)
