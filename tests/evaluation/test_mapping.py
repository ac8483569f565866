from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import mapping, mapping_kernel
from rekindle.evaluation.mapping import Mapping, map_people
from rekindle.evaluation.mapping_kernel import Errors, _block_sums, _Bounded, _group
from rekindle.model import Calendar, Locations, Trajectories


def trajectories(cells: NDArray[np.integer], xy: NDArray[np.float64]) -> Trajectories:
    return Trajectories(cells, Locations(xy), Calendar("2024-01-01", "30min"))


def plain_errors(recovered: Trajectories, truth: Trajectories) -> NDArray[np.float64]:
    here, there = recovered.xy_km(), truth.xy_km()
    return np.array([[np.hypot(*(a - b).T).sum() for b in there] for a in here])


def check(found: Mapping, recovered: Trajectories, truth: Trajectories) -> None:
    errors = plain_errors(recovered, truth)
    best = errors[linear_sum_assignment(errors)].sum()
    taken = found.matched[found.matched >= 0]
    assert found.matched.dtype == np.int64
    assert len(taken) == min(errors.shape)
    assert len(set(taken.tolist())) == len(taken)
    total = errors[found.matched >= 0, taken].sum()
    assert found.total_error_km == pytest.approx(total, abs=1e-9)
    assert best <= total + 1e-9
    assert found.gap is not None
    assert total * (1 - found.gap) <= best + 1e-9
    # The same from the other side.
    assert found.true_people == truth.people
    for person, row in enumerate(found.recovered):
        assert found.matched[row] == person if row >= 0 else person not in taken


@st.composite
def pairs(draw: st.DrawFn, *, equal: bool) -> tuple[Trajectories, Trajectories]:
    """Few places on a small lattice, so that there are many ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    places, steps = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    xy = rng.integers(0, 4, (places, 2)).astype(float)
    people = draw(st.integers(1, 14))
    others = people if equal else draw(st.integers(1, 14))
    return tuple(trajectories(rng.integers(0, places, (size, steps)), xy) for size in (people, others))  # type: ignore[return-value]


@settings(deadline=None, max_examples=80)
@given(pairs(equal=False))
def test_few_people_are_mapped_exactly(pair: tuple[Trajectories, Trajectories]) -> None:
    found = map_people(*pair)
    check(found, *pair)
    errors = plain_errors(*pair)
    assert found.gap == 0
    assert found.total_error_km == pytest.approx(errors[linear_sum_assignment(errors)].sum(), abs=1e-9)


@settings(deadline=None, max_examples=80)
@given(pairs(equal=True), st.sampled_from([1e-1, 1e-3]))
def test_many_people_are_mapped_within_the_gap(pair: tuple[Trajectories, Trajectories], gap: float) -> None:
    found = map_people(*pair, dense_up_to=0, gap=gap)
    check(found, *pair)
    assert found.gap <= gap * 1.1 or found.total_error_km < 1e-3


def test_hundreds_of_people_with_and_without_a_matrix() -> None:
    rng = np.random.default_rng(2)
    xy = rng.random((80, 2)) * 30
    homes, works = rng.integers(0, 80, (2, 150, 1))
    hours = np.arange(40) % 20
    cells = np.where((hours > 6) & (hours < 14), works, homes)
    noisy = np.where(rng.random(cells.shape) < 0.2, rng.integers(0, 80, cells.shape), cells)[rng.permutation(150)]
    recovered, truth = trajectories(noisy, xy), trajectories(cells, xy)
    exact, sparse = map_people(recovered, truth), map_people(recovered, truth, dense_up_to=0, gap=1e-4)
    assert exact.gap == 0
    assert sparse.gap <= 1.5e-4
    assert sparse.total_error_km == pytest.approx(exact.total_error_km, rel=1.5e-4)
    check(sparse, recovered, truth)
    again = map_people(recovered, truth, dense_up_to=0, gap=1e-4)
    np.testing.assert_array_equal(sparse.matched, again.matched)


@settings(deadline=None, max_examples=20)
@given(pairs(equal=False))
def test_the_kernels_give_the_plain_errors(pair: tuple[Trajectories, Trajectories]) -> None:
    errors = Errors(*pair)
    np.testing.assert_allclose(errors.of_rows(slice(None)), plain_errors(*pair), atol=1e-9)
    assert errors.typical() > 0


def test_a_sample_guesses_the_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping_kernel, "SAMPLE", 20)
    rng = np.random.default_rng(3)
    xy = rng.random((30, 2)) * 30
    recovered, truth = (trajectories(rng.integers(0, 30, (100, 10)), xy) for _ in range(2))
    found = map_people(recovered, truth, dense_up_to=0, gap=1e-3)
    check(found, recovered, truth)
    assert found.gap <= 1.1e-3


def test_similar_people_come_together() -> None:
    points = np.random.default_rng(0).random((3, 1000)).astype(np.float32)
    order = mapping_kernel._similar_together(points)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    leaf = points[:, order[: mapping_kernel.LEAF]]
    assert np.prod(leaf.max(axis=1) - leaf.min(axis=1)) < 0.25


@pytest.mark.parametrize("dense_up_to", [0, 100])
def test_a_permutation_is_undone(dense_up_to: int) -> None:
    rng = np.random.default_rng(9)
    cells = rng.integers(0, 20, (60, 12))
    order = rng.permutation(60)
    xy = rng.random((20, 2)) * 10
    found = map_people(trajectories(cells[order], xy), trajectories(cells, xy), dense_up_to=dense_up_to)
    np.testing.assert_array_equal(found.matched, order)
    assert found.total_error_km == 0
    assert found.gap == 0


@settings(deadline=None, max_examples=40)
@given(pairs(equal=False))
def test_greedy_takes_the_most_similar_who_is_free(pair: tuple[Trajectories, Trajectories]) -> None:
    found = map_people(*pair, method="greedy")
    assert (found.gap, found.method) == (None, "greedy")
    check(dataclasses.replace(found, gap=1.0), *pair)
    free = set(range(pair[1].people))
    for errors, chosen in zip(plain_errors(*pair), found.matched, strict=True):
        if not free:
            assert chosen == -1
            continue
        assert errors[chosen] <= min(errors[list(free)]) + 1e-9
        free.remove(int(chosen))


def test_progress_counts_people() -> None:
    rng = np.random.default_rng(1)
    recovered, truth = (trajectories(rng.integers(0, 9, (50, 6)), rng.random((9, 2))) for _ in range(2))
    truth = trajectories(truth.cells, recovered.locations.xy_km)
    for method in ("optimal", "greedy"):
        told: list[tuple[int, int | None]] = []
        map_people(recovered, truth, method=method, dense_up_to=0, progress=lambda *at, told=told: told.append(at))
        assert told
        assert all(0 <= done <= 50 and total == 50 for done, total in told)


def test_wrong_input_is_refused() -> None:
    xy = np.array([[0.0, 0.0], [1.0, 0.0]])
    two, three = trajectories(np.zeros((2, 4), int), xy), trajectories(np.zeros((3, 4), int), xy)
    with pytest.raises(InvalidData, match="different locations"):
        map_people(two, trajectories(np.zeros((2, 4), int), xy + 1))
    with pytest.raises(InvalidData, match="4 steps, the true ones 5"):
        map_people(two, trajectories(np.zeros((2, 5), int), xy))
    with pytest.raises(InvalidSetting, match="'best'"):
        map_people(two, three, method="best")  # type: ignore[arg-type]


def test_very_many_people_of_unequal_number_are_matched_greedily() -> None:
    xy = np.array([[0.0, 0.0], [1.0, 0.0]])
    two, three = trajectories(np.zeros((2, 4), int), xy), trajectories(np.zeros((3, 4), int), xy)
    assert map_people(two, three).method == "optimal"
    assert map_people(two, three, dense_up_to=2).method == "greedy"
    assert map_people(three, three, dense_up_to=2).method == "optimal"


def test_the_size_of_the_data_does_not_decide_how_errors_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of a few people over a few steps are bit for bit those that the same people have among many."""
    rng = np.random.default_rng(6)
    xy = rng.random((40, 2)) * 30
    here, there = rng.integers(0, 40, (2, 300, 50))
    many = Errors(trajectories(here, xy), trajectories(there, xy)).of_rows(slice(None))
    few = Errors(trajectories(here[:7], xy), trajectories(there[:5], xy)).of_rows(slice(None))
    assert np.array_equal(many[:7, :5], few)
    monkeypatch.setattr(mapping_kernel, "ROWS_AT_ONCE", 3)
    assert np.array_equal(Errors(trajectories(here, xy), trajectories(there, xy)).of_rows(slice(None)), many)


def test_progress_of_the_greedy_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "ROWS_AT_ONCE", 2)
    told: list[tuple[int, int | None]] = []
    truth = trajectories(np.arange(5)[:, None], np.arange(10.0).reshape(5, 2))
    found = map_people(truth, truth, method="greedy", progress=lambda *at: told.append(at))
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert found.matched.tolist() == [0, 1, 2, 3, 4]


def test_a_mapping_stays_as_it_is() -> None:
    truth = trajectories(np.zeros((2, 4), int), np.zeros((1, 2)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        map_people(truth, truth).gap = 1.0  # type: ignore[misc]


no_jit = pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="looks into kernels: set NUMBA_DISABLE_JIT=1")


@no_jit
@pytest.mark.parametrize("listed", [3, 64])
def test_a_scan_of_errors_lists_the_best(monkeypatch: pytest.MonkeyPatch, listed: int) -> None:
    monkeypatch.setattr(mapping_kernel, "LISTED", listed)
    monkeypatch.setattr(mapping_kernel, "LEAF", 8)
    monkeypatch.setattr(mapping_kernel, "BLOCKS", 3)
    rng = np.random.default_rng(4)
    xy = rng.random((12, 2)) * 20
    homes = rng.integers(0, 12, (30, 1))
    here, there = (
        Trajectories(
            np.where(rng.random((30, 7)) < 0.4, rng.integers(0, 12, (30, 7)), homes),
            Locations(xy),
            Calendar("2024-01-01", "1h"),
        )
        for _ in range(2)
    )
    errors = Errors(here, there)
    _, rows = _group(errors.xy, here.cells)
    _, columns = _group(errors.xy, there.cells)
    assert sorted(rows) == sorted(columns) == list(range(30))
    bounded = _Bounded(errors, rows, columns)
    true = errors.between(rows, columns)
    plain = np.array([[np.hypot(*(a - b).T).sum() for b in there.xy_km()] for a in here.xy_km()])
    assert true == pytest.approx(plain[np.ix_(rows, columns)])
    for prices in (np.zeros(30), rng.random(30) * 9):
        some = rng.permutation(30)
        found = bounded.scan(some, prices, 0.0)
        values = true[some] + prices
        for at in range(30):
            kept = found.columns[at][found.columns[at] >= 0]
            assert len(set(kept.tolist())) == len(kept) == min(listed, 30)
            # In single precision, and never above the true costs.
            assert (found.costs[at][: len(kept)] <= true[some[at], kept]).all()
            assert found.costs[at][: len(kept)] == pytest.approx(true[some[at], kept], rel=1e-4)
            left = np.setdiff1d(np.arange(30), kept)
            assert found.bound[at] == np.inf if not len(left) else found.bound[at] <= values[at, left].min()
            assert found.bound[at] >= values[at, kept].max() * (1 - 1e-4)


def test_sums_over_blocks_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping_kernel, "BLOCKS", 2)
    xy = np.array([[0.0, 1.0], [2.0, 3.0]])
    found = _block_sums(xy, np.array([[0, 0, 1, 1], [1, 0, 0, 1]]))
    assert found.tolist() == [[[0.0, 2.0], [4.0, 2.0]], [[2.0, 4.0], [6.0, 4.0]]]


@no_jit
def test_people_alike_are_matched_as_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping_kernel, "LEAF", 2)
    xy = np.arange(10.0).reshape(5, 2)
    cells = np.array([[0, 1, 2], [3, 3, 3], [0, 1, 2], [4, 4, 4], [1, 1, 1], [3, 3, 3]])
    truth = trajectories(cells, xy)
    order = [3, 0, 5, 4, 2, 1]
    found = map_people(truth, trajectories(cells[order], xy), dense_up_to=0)
    assert truth.cells[order][found.matched].tolist() == truth.cells.tolist()
    # Among people who are alike, the order is kept.
    assert found.matched.tolist() == [1, 2, 4, 0, 3, 5]
