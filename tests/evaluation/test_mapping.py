from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import mapping_kernel
from rekindle.evaluation.mapping import Mapping, map_people
from rekindle.evaluation.mapping_kernel import Errors
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
    assert total * (1 - found.gap) <= best + 1e-9


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
    check(Mapping(found.matched, found.total_error_km, 1.0), *pair)
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
    with pytest.raises(InvalidData, match="different places"):
        map_people(two, trajectories(np.zeros((2, 4), int), xy + 1))
    with pytest.raises(InvalidData, match="4 steps, the true ones 5"):
        map_people(two, trajectories(np.zeros((2, 5), int), xy))
    with pytest.raises(InvalidData, match="2 recovered and 3 true"):
        map_people(two, three, dense_up_to=1)
    with pytest.raises(InvalidSetting, match="'best'"):
        map_people(two, three, method="best")  # type: ignore[arg-type]
