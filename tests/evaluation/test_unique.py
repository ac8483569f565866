"""Sets of most frequent locations, against hand-computed cases and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference import oracle
from tests.small import line, truths

import rekindle as rk
from rekindle.evaluation import count_sets, mapping, top_locations, unique, uniqueness_by_k


def test_uniqueness_is_not_the_ratio_of_distinct_sets():
    # Two people share their most frequent location: one in three is unique, though there are two distinct sets.
    people = line([0, 0, 1, 1], [0, 0, 0, 2], [3, 3, 3, 3])
    uniqueness, distinct = count_sets(people)
    assert (uniqueness[1], uniqueness[2]) == (pytest.approx(1 / 3), 1)
    assert distinct[1] == pytest.approx(2 / 3)


@settings(max_examples=60, deadline=None)
@given(truth=truths(away=True))
def test_against_plain_loops(truth):
    uniqueness, distinct = count_sets(truth, 6)
    assert uniqueness == uniqueness_by_k(truth, 6)
    assert list(uniqueness) == list(distinct) == [1, 2, 3, 4, 5, 6]
    for k, share in uniqueness.items():
        assert share == pytest.approx(oracle.uniqueness(truth.cells.tolist(), k))
        assert distinct[k] >= share


def test_people_who_are_away(monkeypatch):
    people = line([-1, 3, 3, 1], [-1, -1, -1, -1], [-1, 1, -1, 3])
    for block in (1 << 24, 1, 7):
        monkeypatch.setattr(mapping, "POINTS_AT_ONCE", block)
        assert top_locations(people, 3).tolist() == [[3, 1, -1], [-1, -1, -1], [1, 3, -1]]
    # Who is never counted is nobody whom one could tell apart.
    uniqueness, distinct = count_sets(people, 2)
    assert (uniqueness, distinct) == ({1: 1, 2: 0}, {1: 1, 2: 0.5})
    assert count_sets(line([-1, -1]), 1) == ({1: 0}, {1: 0})


def test_one_pass_for_all_k(monkeypatch):
    asked = []
    usual = unique.top_locations
    monkeypatch.setattr(unique, "top_locations", lambda people, k: asked.append(k) or usual(people, k))
    count_sets(line([0, 0, 1, 1], [0, 0, 0, 2]))
    assert asked == [5]


def test_top_locations_break_ties_by_their_order(monkeypatch):
    found = line([3, 3, 1, 1, 2], [0, 0, 0, 0, 4], [4, 0, 0, 0, 0])
    expected = [[1, 3, 2, -1, -1, -1], [0, 4, -1, -1, -1, -1], [0, 4, -1, -1, -1, -1]]
    for block in (1 << 24, 1, 7):
        monkeypatch.setattr(mapping, "POINTS_AT_ONCE", block)
        assert top_locations(found, 6).tolist() == expected
        assert top_locations(found, 1).tolist() == [[1], [0], [0]]
    assert top_locations(line([2, 2, 1, 1], [3, 0, 0, 1]), 3).tolist() == [[1, 2, -1], [0, 1, 3]]
    assert uniqueness_by_k(found, 2) == pytest.approx({1: 1 / 3, 2: 1 / 3})
    with pytest.raises(rk.errors.InvalidSetting, match="`k` is 0"):
        top_locations(found, 0)


def test_locations_beyond_the_visited_ones_do_not_count():
    assert np.array_equal(top_locations(line([2, 2, 1, 1]), 6), [[1, 2, -1, -1, -1, -1]])
