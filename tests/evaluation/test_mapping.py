from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from tests.reference import oracle
from tests.small import line, truths

from rekindle.errors import InvalidData, InvalidSetting
from rekindle.evaluation import mapping, mapping_kernel
from rekindle.evaluation.mapping import Mapping, map_people
from rekindle.evaluation.mapping_kernel import Errors, _Bounded, _group, _mean_distance, _merge, _Sums
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


@settings(deadline=None, max_examples=25)
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


def test_a_part_of_the_units_has_as_many_of_each_group_as_all_have() -> None:
    units = np.array([1, 500, 2, 0, 97])
    groups, many = mapping_kernel._part(units, 60)
    assert many.sum() == 60
    taken = np.zeros(5)
    taken[groups] = many
    np.testing.assert_allclose(taken, units / 10, atol=1)


def test_similar_people_come_together() -> None:
    points = np.random.default_rng(0).random((3, 1000)).astype(np.float32)
    # Two coordinates, and the price.
    order = mapping_kernel._similar_together(points[:2, None], points[2].astype(np.float64))
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


def test_names_of_nobody_are_no_answer() -> None:
    unnamed = line([0, 1], [1, 0])
    truth, other = (
        Trajectories(unnamed.cells, unnamed.locations, unnamed.calendar, names)
        for names in (("ann", "bob"), ("bob", "unknown 1"))
    )
    assert map_people(other, truth, method="names").matched.tolist() == [1, -1]
    with pytest.raises(InvalidData, match=r"the first recovered is '0', the first true 'ann'.*'optimal'"):
        map_people(unnamed, truth, method="names")


def test_wrong_input_is_refused() -> None:
    xy = np.array([[0.0, 0.0], [1.0, 0.0]])
    two, three = trajectories(np.zeros((2, 4), int), xy), trajectories(np.zeros((3, 4), int), xy)
    with pytest.raises(InvalidData, match="different locations"):
        map_people(two, trajectories(np.zeros((2, 4), int), xy + 1))
    with pytest.raises(InvalidData, match="4 steps, the true ones 5"):
        map_people(two, trajectories(np.zeros((2, 5), int), xy))
    with pytest.raises(InvalidSetting, match="'best'"):
        map_people(two, three, method="best")  # type: ignore[arg-type]


@settings(deadline=None, max_examples=80)
@given(pairs(equal=False))
def test_very_many_people_of_unequal_number_are_mapped_within_the_gap(
    pair: tuple[Trajectories, Trajectories],
) -> None:
    found = map_people(*pair, dense_up_to=0, gap=1e-3)
    assert found.method == "optimal"
    check(found, *pair)
    assert found.total_error_km == pytest.approx(map_people(*pair).total_error_km, rel=1e-2, abs=1e-3)


def test_only_those_who_are_left_over_cost_anything() -> None:
    # Prices have to rise as far as that, in steps that are a part of a typical error.
    xy = np.full((2, 2), 3.0)
    rng = np.random.default_rng(0)
    nine, five = (trajectories(rng.integers(0, 2, (people, 4)), xy) for people in (9, 5))
    for pair in ((nine, five), (five, nine)):
        found = map_people(*pair, dense_up_to=0)
        check(found, *pair)
        assert found.total_error_km == 0.0


@settings(deadline=None, max_examples=120)
@given(truths(away=True, max_steps=20), st.integers(0, 99), st.integers(1, 9), st.sampled_from([0, 3000]))
def test_people_who_are_away_against_plain_loops(truth: Trajectories, seed: int, people: int, dense: int) -> None:
    rng = np.random.default_rng(seed)
    # Somebody may be like a true person, and somebody always away.
    cells = rng.integers(-1, len(truth.locations), (people, truth.steps))
    cells[rng.integers(people)] = truth.cells[rng.integers(truth.people)]
    cells[rng.integers(people)] = -1
    recovered = Trajectories(cells, truth.locations, truth.calendar)
    found = map_people(recovered, truth, dense_up_to=dense, gap=1e-3)
    mine, theirs, xy = cells.tolist(), truth.cells.tolist(), truth.locations.xy_km.tolist()
    price = oracle.price_of_away(theirs, xy)
    assert found.away_km == pytest.approx(price)
    pairs = [(row, at) for row, at in enumerate(found.matched) if at >= 0]
    assert len(pairs) == len({at for _, at in pairs}) == min(people, truth.people)
    total = sum(oracle.trajectory_error(mine[row], theirs[at], xy, price) for row, at in pairs)
    assert found.total_error_km == pytest.approx(total, abs=1e-9)
    # People who are left over are as if matched with somebody who is always away.
    left = sum(len(oracle.counted(mine[row])) for row, at in enumerate(found.matched) if at < 0)
    left += sum(len(oracle.counted(theirs[at])) for at, row in enumerate(found.recovered) if row < 0)
    least = oracle.least_mapping_error(mine, theirs, xy) - price * left
    assert least <= total + 1e-9
    assert found.gap is not None
    assert total * (1 - found.gap) <= least + 1e-9
    if dense:
        assert (found.gap, total) == (0, pytest.approx(least, abs=1e-9))
    else:
        assert total - least <= 1e-3 * (total + price * left) + 1e-3


@pytest.mark.parametrize("dense_up_to", [0, 100])
def test_being_away_costs_as_much_as_a_random_guess(dense_up_to: int) -> None:
    # Four points, at 0, 2, 2 and 4: of all pairs 6/16 are in the same location, 8/16 2 km apart and 2/16 4 km.
    truth = line([0, 2, -1], [-1, 2, 4])
    found = map_people(line([2, 2, -1], [-1, -1, 4]), truth, dense_up_to=dense_up_to)
    assert found.away_km == 1.5
    assert found.matched.tolist() == [0, 1]
    assert found.total_error_km == pytest.approx(2 + 1.5)
    # Two of three steps at which both are counted, in the right location, outweigh one at which only one is.
    assert map_people(line([0, 2, 4], [-1, -1, 4]), truth, dense_up_to=dense_up_to).matched.tolist() == [0, 1]
    # People who are never counted change nothing, on either side.
    empty = [-1, -1, -1]
    for recovered, people in (
        (line([2, 2, -1], empty, [-1, -1, 4]), truth),
        (line([2, 2, -1], [-1, -1, 4]), line([0, 2, -1], [-1, 2, 4], empty)),
    ):
        other = map_people(recovered, people, dense_up_to=dense_up_to)
        assert other.total_error_km == pytest.approx(found.total_error_km)
        assert other.recovered.tolist()[:2] == ([0, 2] if recovered.people == 3 else [0, 1])


def test_who_is_left_over_is_who_is_counted_least() -> None:
    truth = line([0, 0, 0, 0])
    recovered = line([1, -1, -1, -1], [1, 1, 0, 0])
    for dense_up_to in (0, 100):
        assert map_people(recovered, truth, dense_up_to=dense_up_to).matched.tolist() == [-1, 0]
        assert map_people(truth, recovered, dense_up_to=dense_up_to).matched.tolist() == [1]


def test_in_one_location_people_are_matched_by_when_they_are_counted() -> None:
    truth = line([0, 0, -1, -1], [-1, -1, 0, 0], locations=1)
    found = map_people(line([-1, -1, -1, 0], [0, -1, -1, -1], locations=1), truth)
    assert (found.matched.tolist(), found.away_km, found.total_error_km) == ([1, 0], 1.0, 2.0)


def test_nobody_is_priced_where_nobody_is_away() -> None:
    truth = line([0, 1], [2, 3])
    assert map_people(truth, truth).away_km == 0
    errors = Errors(truth, truth)
    assert errors.nearby is errors.xy


@settings(deadline=None, max_examples=60)
@given(truths(away=True))
def test_points_nearby_are_never_further_apart_than_the_price_of_a_step(truth: Trajectories) -> None:
    errors = Errors(truth, truth, padded=False)
    if not errors.price:
        return
    xy, nearby = errors.xy[:-1], errors.nearby
    apart = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    close = np.hypot(*(nearby[:, None] - nearby[None]).transpose(2, 0, 1))
    assert (close[:-1, :-1] <= apart + 1e-12).all()
    assert (close[-1] <= errors.price + 1e-12).all()
    assert apart.max() < errors.limit < np.hypot(*(xy - errors.xy[-1]).T).min()


def test_hundreds_of_people_who_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping_kernel, "SAMPLE", 20)
    rng = np.random.default_rng(5)
    xy = rng.random((60, 2)) * 30
    homes, works = rng.integers(0, 60, (2, 120, 1))
    hours = np.arange(48) % 24
    cells = np.where((hours > 6) & (hours < 14), works, homes)
    cells[rng.random(cells.shape) < 0.3] = -1
    noisy = np.where(rng.random(cells.shape) < 0.2, rng.integers(-1, 60, cells.shape), cells)[rng.permutation(120)]
    truth = trajectories(cells, xy)
    for recovered in (trajectories(noisy, xy), trajectories(noisy[:100], xy)):
        exact = map_people(recovered, truth)
        sparse = map_people(recovered, truth, dense_up_to=0, gap=1e-4)
        assert sparse.gap is not None
        assert sparse.gap <= 3e-4
        assert sparse.total_error_km == pytest.approx(exact.total_error_km, rel=3e-4)


def test_the_mean_distance_of_two_points() -> None:
    assert _mean_distance(np.array([0.0, 3.0]), np.array([0.0, 4.0]), np.array([0.25, 0.75])) == 2 * 5 * 3 / 16


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
@pytest.mark.parametrize("away", [0.0, 0.3])
def test_a_scan_of_errors_lists_the_best(monkeypatch: pytest.MonkeyPatch, listed: int, away: float) -> None:
    monkeypatch.setattr(mapping_kernel, "LISTED", listed)
    monkeypatch.setattr(mapping_kernel, "LEAF", 8)
    monkeypatch.setattr(mapping_kernel, "SUMS", 3)
    monkeypatch.setattr(mapping_kernel, "FEW", 2)
    rng = np.random.default_rng(4)
    xy = rng.random((12, 2)) * 20
    homes = rng.integers(0, 12, (30, 1))
    cells = [np.where(rng.random((30, 7)) < 0.4, rng.integers(0, 12, (30, 7)), homes) for _ in range(2)]
    for each in cells:
        each[rng.random((30, 7)) < away] = -1
    here, there = (Trajectories(each, Locations(xy), Calendar("2024-01-01", "1h")) for each in cells)
    errors = Errors(here, there)
    sums = _Sums(errors)
    _, rows = _group(sums, here.cells)
    _, columns = _group(sums, there.cells)
    assert sorted(rows) == sorted(columns) == list(range(30))
    guess = rng.random(30) * 9
    true = errors.between(rows, columns)
    price = oracle.price_of_away(there.cells.tolist(), xy)
    plain = np.array([[oracle.trajectory_error(a, b, xy, price) for b in there.cells] for a in here.cells])
    assert true == pytest.approx(plain[np.ix_(rows, columns)])
    for prices, known in ((np.zeros(30), None), (guess, guess), (guess, np.zeros(30))):
        some = rng.permutation(30)
        found = _Bounded(errors, sums, rows, columns, known).scan(some, prices, 0.0)
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


@settings(deadline=None, max_examples=40)
@given(truths(away=True, max_steps=20), st.integers(0, 99))
def test_sums_over_groups_of_steps_are_never_further_apart(truth: Trajectories, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(-1, len(truth.locations), (5, truth.steps))
    errors = Errors(Trajectories(cells, truth.locations, truth.calendar), truth)
    with pytest.MonkeyPatch.context() as patch:
        for name, most in (("BLOCKS", 8), ("SUMS", 4), ("FEW", 2)):
            patch.setattr(mapping_kernel, name, most)
        sums = _Sums(errors)
    here, there = sums.of(cells, np.arange(5)), sums.of(truth.cells, np.arange(truth.people))
    many = np.hypot(*np.moveaxis(here[0][:, None] - there[0][None], 2, 0)).sum(axis=2)
    few = np.hypot(*(here[1][:, :, :, None] - there[1][:, :, None])).sum(axis=0)
    apart = errors.of_rows(slice(None))
    assert (few <= many + 1e-3).all()
    assert (many <= apart + 1e-3).all()


def test_steps_are_put_together_at_which_people_are_apart_in_the_same_direction() -> None:
    east, north = [3.0, 0.0], [0.0, 4.0]
    apart = np.array([[east, north, east, north, east], [north, east, north, east, north]]).transpose(2, 0, 1)
    assert _merge(apart, 2).tolist() == [0, 1, 0, 1, 0]
    assert _merge(apart, 9).tolist() == [0, 1, 2, 3, 4]
    assert _merge(apart, 1).tolist() == [0, 0, 0, 0, 0]


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


@settings(deadline=None, max_examples=40)
@given(truths(away=True, max_steps=20), st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0]))
def test_what_was_guessed_is_proven(truth: Trajectories, seed: int, missed: float) -> None:
    """However bad the guesses: the least value of every row is found in the end."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(-1, len(truth.locations), (9, truth.steps))
    errors = Errors(Trajectories(cells, truth.locations, truth.calendar), truth)
    rows, columns, prices = np.arange(9), np.arange(truth.people), rng.random(truth.people) * 9
    with pytest.MonkeyPatch.context() as patch:
        for name, most in (("BLOCKS", 8), ("SUMS", 4), ("FEW", 2), ("LEAF", 2), ("LISTED", 2), ("MISSED", missed)):
            patch.setattr(mapping_kernel, name, most)
        bounded = _Bounded(errors, _Sums(errors), rows, columns, prices)
        bounded.guess(prices)
        guessed = bounded.scan(rows, prices, 0.0)
        values = np.append(prices, 0.0)[guessed.columns] + guessed.costs
        proven = bounded.prove(prices, values.min(axis=1))
    true = (errors.of_rows(slice(None)) + prices).min(axis=1)
    assert (proven <= values.min(axis=1)).all()
    assert (proven <= true).all()
    assert proven == pytest.approx(true, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("missed", [0.2, 0.9])
@pytest.mark.parametrize("away", [0.0, 0.2])
def test_a_gap_is_proven_whatever_was_guessed(monkeypatch: pytest.MonkeyPatch, missed: float, away: float) -> None:
    for name, value in (("SAMPLE", 20), ("LISTED", 4), ("MISSED", missed), ("LEAF", 8)):
        monkeypatch.setattr(mapping_kernel, name, value)
    rng = np.random.default_rng(5)
    xy = rng.random((30, 2)) * 20
    homes = rng.integers(0, 30, (300, 1))
    cells = [np.where(rng.random((300, 24)) < 0.5, rng.integers(0, 30, (300, 24)), homes) for _ in range(2)]
    for each in cells:
        each[rng.random(each.shape) < away] = -1
    recovered, truth = (trajectories(each, xy) for each in cells)
    errors = Errors(recovered, truth).of_rows(slice(None))
    least = errors[linear_sum_assignment(errors)].sum()
    for gap in (0.02, 0.003):
        found = map_people(recovered, truth, dense_up_to=0, gap=gap)
        assert sorted(found.matched.tolist()) == list(range(300))
        assert found.total_error_km == pytest.approx(errors[np.arange(300), found.matched].sum())
        assert found.gap is not None
        assert found.total_error_km * (1 - found.gap) <= least + 1e-6
        assert found.gap <= gap


def test_only_what_is_optimal_is_called_so() -> None:
    matched = np.array([1, 0, -1])
    assert repr(Mapping(matched, 2, 1.0)) == "Mapping(optimal, 2 of 2 people matched)"
    assert repr(Mapping(matched, 2, 1.0, 0.0008)) == "Mapping(within 0.0008 of optimal, 2 of 2 people matched)"
    assert repr(Mapping(matched, 2, 1.0, None)) == "Mapping(gap unknown, 2 of 2 people matched)"
    assert repr(Mapping(matched, 2, 1.0, None, "names")) == "Mapping(names, 2 of 2 people matched)"
