"""Every step is as cheap as SciPy's assignment of the full people x people matrix."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rekindle.assignment import steps as steps_module
from rekindle.assignment.steps import EXTRAPOLATE, POPULAR, DayResult, recover_day
from rekindle.assignment.transport import transport
from rekindle.errors import InvalidData, Stopped

LAYOUTS = ("lattice", "tenths", "towers", "line", "twins", "point")


def centres(rng: np.random.Generator, layout: str, locations: int) -> Any:
    side = int(np.ceil(np.sqrt(locations)))
    cells = np.stack(np.divmod(np.arange(locations), side), axis=1).astype(float)
    if layout == "lattice":
        return cells * 2.0
    if layout == "tenths":
        return cells * 0.1 + 0.3  # 2p - o lands beside a place by a rounding error
    if layout == "line":
        return np.stack([np.arange(locations) * 1.0, np.zeros(locations)], axis=1)
    if layout == "twins":
        return cells[rng.integers(0, locations, locations)]
    if layout == "point":
        return np.full((locations, 2), 3.7)
    return rng.uniform(-5.0, 5.0, (locations, 2))


def random_day(seed: int, people: int, locations: int, steps: int, layout: str, moving: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    xy = centres(rng, layout, locations)
    walk = np.empty((steps, people), dtype=np.int64)
    walk[0] = rng.integers(0, max(1, rng.integers(1, locations + 1)), people)
    for step in range(1, steps):
        move = rng.random(people) < moving
        walk[step] = np.where(move, rng.integers(0, locations, people), walk[step - 1])
    counts = np.stack([np.bincount(row, minlength=locations) for row in walk])
    sizes = rng.choice([0, 1, 1, 2, 3], locations)
    rows = [
        np.sort(rng.choice(locations, min(size, locations), replace=False))
        if rng.random() < 0.6
        else np.array([place])
        for place, size in enumerate(sizes)
    ]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return {
        "counts": counts,
        "first": walk[0].astype(np.int32),
        "xy_km": xy,
        "kinds": rng.choice(np.array([0, EXTRAPOLATE, POPULAR, EXTRAPOLATE | POPULAR], np.uint8), steps - 1),
        "popular": (indptr, np.concatenate(rows).astype(np.int64)),
    }


def move_costs(day: dict[str, Any], cells: Any, step: int) -> Any:
    """Cost of every person going to every place, written as in the paper."""
    xy, kind, (indptr, indices) = day["xy_km"], day["kinds"][step], day["popular"]
    costs = np.empty((len(cells), len(xy)))
    for person, now in enumerate(cells[:, step]):
        targets = [xy[now]]
        if kind & EXTRAPOLATE and step > 0:
            targets = [xy[now] + (xy[now] - xy[cells[person, step - 1]])]
        if kind & POPULAR:
            targets += [xy[h] for h in indices[indptr[now] : indptr[now + 1]]]
        costs[person] = np.min([np.hypot(*(xy - target).T) for target in targets], axis=0)
    return costs


def check_optimal(day: dict[str, Any], result: DayResult) -> None:
    counts = day["counts"]
    steps, locations = counts.shape
    assert result.cells.dtype == np.int32
    for step in range(steps):
        assert (np.bincount(result.cells[:, step], minlength=locations) == counts[step]).all()
    for step in range(steps - 1):
        costs = move_costs(day, result.cells, step)
        matrix = costs[:, np.repeat(np.arange(locations), counts[step + 1])]
        least = matrix[linear_sum_assignment(matrix)].sum()
        paid = costs[np.arange(len(costs)), result.cells[:, step + 1]].sum()
        assert abs(paid - least) < 1e-9
        assert abs(result.costs[step] - least) < 1e-9
        assert 0 <= result.gaps[step] < 1e-9


days = st.builds(
    random_day,
    seed=st.integers(0, 2**32),
    people=st.integers(1, 40),
    locations=st.integers(1, 20),
    steps=st.integers(1, 6),
    layout=st.sampled_from(LAYOUTS),
    moving=st.sampled_from([0.05, 0.3, 1.0]),
)


@settings(max_examples=300, deadline=None)
@given(day=days)
def test_every_step_is_optimal_and_meets_the_counts(day: dict[str, Any]) -> None:
    check_optimal(day, recover_day(**day))


@settings(max_examples=100, deadline=None)
@given(day=days)
def test_costs_computed_on_sight_give_the_same_bytes(day: dict[str, Any]) -> None:
    usual = recover_day(**day)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_module, "TABLE_CELLS", 0)
        patch.setattr(steps_module, "CELLS_BETWEEN_STOPS", 1)
        large = recover_day(**day)
    assert usual.cells.tobytes() == large.cells.tobytes()
    assert usual.costs.tobytes() == large.costs.tobytes()


@settings(max_examples=100, deadline=None)
@given(day=days)
def test_without_cancellation_the_costs_are_the_same(day: dict[str, Any]) -> None:
    result = recover_day(**day)
    for step, kept in enumerate(result.costs):
        costs = move_costs(day, result.cells, step)
        solved = transport(costs, np.ones(len(costs), int), day["counts"][step + 1])
        assert abs(solved.cost - kept) < 1e-9


@settings(max_examples=150, deadline=None)
@given(day=days)
def test_cancelling_is_optimal_whatever_the_others_aim_at(day: dict[str, Any]) -> None:
    """The claim itself, with SciPy alone: rows with one target take free columns there, and nothing is lost."""
    if len(day["counts"]) < 2:
        return
    day["kinds"][:] = POPULAR
    cells = day["first"][:, None]
    costs = move_costs(day, cells, 0)
    columns = np.repeat(np.arange(len(day["xy_km"])), day["counts"][1])
    matrix = costs[:, columns]
    least = matrix[linear_sum_assignment(matrix)].sum()
    indptr, indices = day["popular"]
    free = np.ones(len(columns), bool)
    rest = []
    for person, now in enumerate(cells[:, 0]):
        here = np.flatnonzero(free & (columns == now))
        if len(here) and set(indices[indptr[now] : indptr[now + 1]]) <= {now}:
            free[here[0]] = False
        else:
            rest.append(person)
    small = matrix[np.ix_(rest, np.flatnonzero(free))]
    assert abs(small[linear_sum_assignment(small)].sum() - least) < 1e-9


@settings(max_examples=150, deadline=None)
@given(day=days)
def test_a_group_is_dealt_its_places_in_order(day: dict[str, Any]) -> None:
    result = recover_day(**day)
    xy, (indptr, indices) = day["xy_km"], day["popular"]
    for step, kind in enumerate(day["kinds"]):
        last: dict[Any, int] = {}
        for person in range(len(result.cells)):
            now = result.cells[person, step]
            past = result.cells[person, step - 1] if step else now
            q = xy[now] + (xy[now] - xy[past]) if kind & EXTRAPOLATE and past != now else xy[now]
            at = np.flatnonzero(np.abs(xy - q).max(axis=1) < 1e-11) if past != now and kind & EXTRAPOLATE else [now]
            targets = {("point", *np.round(q, 9))} if not len(at) else {("place", at[0])}
            if kind & POPULAR:
                targets |= {("place", h) for h in indices[indptr[now] : indptr[now + 1]]}
            group = frozenset(targets)
            place = result.cells[person, step + 1]
            assert last.get(group, -1) <= place
            last[group] = place


def test_larger_steps_are_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, layout in enumerate(("lattice", "towers", "twins", "tenths")):
        day = random_day(seed, people=600, locations=200, steps=3, layout=layout, moving=0.8)
        day["kinds"][:] = EXTRAPOLATE | POPULAR
        monkeypatch.setattr(steps_module, "TABLE_CELLS", 1 << 20)
        result = recover_day(**day)
        check_optimal(day, result)
        monkeypatch.setattr(steps_module, "TABLE_CELLS", 0)
        assert recover_day(**day).cells.tobytes() == result.cells.tobytes()


def test_same_input_same_bytes_and_input_unchanged() -> None:
    day = random_day(5, people=60, locations=25, steps=10, layout="lattice", moving=0.5)
    before = [day["counts"].copy(), day["first"].copy(), day["xy_km"].copy(), day["kinds"].copy()]
    one, two = recover_day(**day), recover_day(**day)
    assert one.cells.tobytes() == two.cells.tobytes()
    after = [day["counts"], day["first"], day["xy_km"], day["kinds"]]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
    narrow = day | {"counts": np.asfortranarray(day["counts"].astype(np.int32))}
    assert recover_day(**narrow).cells.tobytes() == one.cells.tobytes()


def test_nobody_moves_when_counts_stand_still() -> None:
    day = random_day(1, people=30, locations=9, steps=5, layout="lattice", moving=0.0)
    day["kinds"][:] = EXTRAPOLATE
    result = recover_day(**day)
    assert (result.cells == day["first"][:, None]).all()
    assert not result.costs.any()
    assert not result.gaps.any()


def test_a_walk_goes_straight_on() -> None:
    # Two walkers meet on a line: whoever keeps the direction pays nothing.
    xy = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    truth = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]])
    counts = np.stack([np.bincount(column, minlength=5) for column in truth.T])
    result = recover_day(counts, truth[:, 0].astype(np.int32), xy, np.array([0, 1, 1, 1], np.uint8))
    assert (result.cells == truth).all()
    assert result.costs.tolist() == [2.0, 0.0, 0.0, 0.0]


def test_stop_ends_the_work() -> None:
    day = random_day(2, people=30, locations=9, steps=5, layout="lattice", moving=0.5)
    with pytest.raises(Stopped):
        recover_day(**day, stop=lambda: True)
    assert recover_day(**day, stop=lambda: False).cells.shape == (30, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": np.zeros((0, 9), int)}, "at least one step"),
        ({"xy_km": np.zeros((3, 2))}, "Centres"),
        ({"kinds": np.zeros(7, np.uint8)}, "kinds for 7"),
        ({"first": np.zeros(30, np.int32)}, "first step"),
        ({"first": np.full(30, 9, np.int32)}, "0 to 8"),
        ({"first": np.zeros(29, np.int32)}, "29 people"),
        ({"popular": (np.zeros(3, int), np.zeros(0, int))}, "Row pointers"),
        ({"popular": (np.arange(10), np.full(9, 9))}, "Popular locations"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    day = random_day(2, people=30, locations=9, steps=5, layout="lattice", moving=0.5)
    with pytest.raises(InvalidData, match=message):
        recover_day(**(day | change))


def test_negative_counts_are_refused() -> None:
    counts = np.array([[1, 1], [3, -1]])
    with pytest.raises(InvalidData, match="below 0"):
        recover_day(counts, np.array([0, 1], np.int32), np.zeros((2, 2)), np.zeros(1, np.uint8))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), groups=st.integers(1, 12), places=st.integers(1, 12), ties=st.booleans())
def test_transport_is_optimal_for_any_costs(seed: int, groups: int, places: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    supply = rng.integers(0, 5, groups)
    demand = np.bincount(rng.integers(0, places, supply.sum()), minlength=places)
    cost = rng.integers(-3, 4, (groups, places)) * 1.0 if ties else rng.normal(size=(groups, places)) * 10.0
    cost[rng.random(cost.shape) < 0.15] = np.inf
    rows, columns = np.repeat(np.arange(groups), supply), np.repeat(np.arange(places), demand)
    matrix = cost[np.ix_(rows, columns)]
    try:
        least = matrix[linear_sum_assignment(matrix)].sum()
    except ValueError:
        with pytest.raises(InvalidData, match="forbidden"):
            transport(cost, supply, demand)
        return
    solved = transport(cost, supply, demand)
    assert abs(solved.cost - least) < 1e-9
    assert solved.gap < 1e-9
    assert (np.bincount(solved.groups, solved.people, minlength=groups) == supply).all()
    assert (np.bincount(solved.places, solved.people, minlength=places) == demand).all()


def test_transport_of_larger_problems() -> None:
    rng = np.random.default_rng(3)
    cost = rng.random((300, 200))
    supply = np.full(300, 2)
    demand = np.full(200, 3)
    solved = transport(cost, supply, demand)
    matrix = np.repeat(np.repeat(cost, 2, axis=0), 3, axis=1)
    assert abs(solved.cost - matrix[linear_sum_assignment(matrix)].sum()) < 1e-9
    again = transport(cost, supply, demand)
    assert solved.people.tobytes() == again.people.tobytes()


@pytest.mark.parametrize(
    ("cost", "supply", "demand", "message"),
    [
        ([[np.nan, 1.0]], [2], [1, 1], "nan"),
        ([[-np.inf, 1.0]], [2], [1, 1], "inf"),
        ([[1.0, 1.0]], [3], [1, 1], "room for 2"),
        ([[1.0, 1.0]], [0.5], [1, 1], "whole number"),
        ([[1.0, 1.0]], [[2]], [1, 1], "one-dimensional"),
        ([[1.0]], [2], [1, 1], "shape"),
    ],
)
def test_transport_refuses_bad_input(cost: Any, supply: Any, demand: Any, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        transport(cost, supply, demand)


def test_transport_of_nobody() -> None:
    solved = transport(np.ones((2, 2)), [0, 0], [0, 0])
    assert (solved.cost, solved.gap, len(solved.people)) == (0.0, 0.0, 0)


@pytest.mark.slow
def test_works_without_the_compiler() -> None:
    code = """
        import warnings; warnings.simplefilter("error")
        import numpy as np
        from rekindle.assignment.steps import recover_day
        rng = np.random.default_rng(0)
        walk = rng.integers(0, 9, (4, 20))
        counts = np.stack([np.bincount(row, minlength=9) for row in walk])
        xy = np.stack(np.divmod(np.arange(9), 3), axis=1) * 2.0
        popular = np.arange(10), np.roll(np.arange(9), 1)
        day = recover_day(counts, walk[0].astype(np.int32), xy, np.array([0, 1, 3], np.uint8), popular)
        print(day.cells.tolist(), day.costs.tolist())
    """
    outputs = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=os.environ | {"NUMBA_DISABLE_JIT": off},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for off in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0]
