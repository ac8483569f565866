"""Habits as it goes about many people, on a few: lists instead of all pairs, blocks instead of everybody."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reference.oracle import segment_cost
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.attacks import alignment
from rekindle.attacks.habits import Habits, attack, blocks, doubt, relink, schedule, track
from rekindle.attacks.habits.problem import Problem, count
from rekindle.evaluation.confidence import assess_confidence
from rekindle.testing import check_attack

quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def as_many(monkeypatch):
    """Treat any number of people as many."""
    for module in (schedule, attack):
        monkeypatch.setattr(module, "MOST_PEOPLE_AT_ONCE", 0)
    for module in (track, relink, alignment):
        monkeypatch.setattr(module, "DENSE_UP_TO", 0)
    monkeypatch.setattr(schedule, "BLOCK_PEOPLE", 3)


def problem_of(truth):
    counts = truth.counts()
    return Problem.of(counts.values, counts.locations, counts.calendar, counts.people)


def same(one, other):
    return one.trajectories == other.trajectories and np.array_equal(one.confidence, other.confidence)


def test_passes_the_shipped_suite_with_people_who_come_and_go(as_many):
    truth = random_truth(np.random.default_rng(1), people=8, places=6, steps=36, away=0.3)
    check_attack(Habits(effort="low", seed=4), truth.counts(), truth.flows())


@pytest.mark.slow
def test_passes_the_shipped_suite(as_many):
    check_attack(Habits(effort="low", seed=4))


@quick
@given(truth=truths(away=True, max_people=12), seed=st.integers(0, 3))
def test_counts_are_exact_and_the_result_is_that_of_any_number_of_workers(as_many, truth, seed):
    counts = truth.counts()
    found = Habits(effort="low", seed=seed, workers=1).recover(counts)
    assert found.trajectories.counts() == counts
    assert found.trajectories.people == counts.people
    assert 0 <= found.confidence.min() <= found.confidence.max() <= 1
    assert same(Habits(effort="low", seed=seed, workers=3).recover(counts), found)


@quick
@given(
    truth=truths(away=True, max_people=25, max_places=9), seed=st.integers(0, 9), noise=st.sampled_from([0.05, 1.0])
)
def test_tracks_by_lists_have_the_counts(truth, seed, noise):
    made = problem_of(truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(track, "DENSE_UP_TO", 0)
        found = track.track(made, seed, noise=noise)
    assert np.array_equal(count(found, made.counts.shape[1]), made.counts)


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("nearest", [64, 256])
def test_movers_are_matched_by_lists_nearly_as_well_as_by_all_prices(away, nearest):
    random = np.random.default_rng(1)
    for _ in range(5):
        places, leaving = 200, 80
        xy = random.uniform(0, 20, (places, 2))
        gap = np.hypot(*(xy[:, None] - xy).T)
        near = np.argsort(gap, axis=1)[:, :nearest].astype(np.int32)
        change = np.zeros(places + away, np.int64)
        change[:leaving] = -random.integers(1, 4, leaving)
        gone = 5 if away else 0
        change[leaving:places] = np.bincount(
            random.integers(0, places - leaving, -change.sum() - gone), minlength=places - leaving
        )
        row_place = np.concatenate([np.repeat(np.arange(leaving), 4 - change[:leaving]), np.full(30 * away, places)])
        size, first_away = len(row_place), len(row_place) - 30 * away
        arrivals = np.repeat(np.arange(places), np.maximum(change[:places], 0))
        step = (np.arange(size), random.normal(1, 1, size), row_place, first_away, arrivals)
        before = random.integers(0, places, size).astype(np.int32)
        seen = random.integers(-1, places, size)
        rest = (xy, before, seen, (track.GO_AWAY, track.RETURN))

        def total(goals, step=step, rest=rest, places=places, first_away=first_away):
            price = 0.0
            for row, goal in enumerate(goals):
                if goal < places and goal != step[2][row]:
                    price += track._price(row, goal, step, *rest)
                elif goal == places and row < first_away:
                    price += track.GO_AWAY + step[1][row]
            return price

        best = track._match(step, change, *rest)
        listed = track._match_lists(step, change, xy, near, *rest[1:])
        for goals in (best, listed):
            there = np.bincount(goals, minlength=places + away) - np.bincount(row_place, minlength=places + away)
            assert np.array_equal(there[:places], change[:places])
        assert total(listed) <= 1.25 * total(best)
        assert total(listed) >= total(best) - 1e-9


@quick
@given(truth=truths(away=True, max_people=9, max_steps=60), cuts=st.sampled_from([1, 2, 4]))
def test_a_segment_costs_the_divergence_from_a_persons_other_time(truth, cuts):
    made = problem_of(truth)
    tracks = track.track(made, 0)
    of_tick = made.starts[:-1] // max(1, made.steps_per_day // cuts)
    ends = np.concatenate([[0], np.flatnonzero(np.diff(of_tick)) + 1, [len(of_tick)]])
    if len(ends) < 3:
        return
    weight = np.ones(made.counts.shape[1])
    if made.away >= 0:
        weight[made.away] = relink.AWAY_WEIGHT
    spans = list(itertools.pairwise(ends))
    parts = [relink._Segments.of(tracks, made.lengths, weight, *span) for span in spans]
    people = len(tracks)
    links = relink._Links(parts, np.tile(np.arange(people), (len(parts), 1)), made.xy, quick=False)
    for part, (begin, end) in enumerate(spans):
        costs = relink._Divergences(links, part)
        inside = np.zeros(made.ticks, bool)
        inside[begin:end] = True
        plain = [
            [
                segment_cost(
                    tracks[person, ~inside],
                    tracks[other, inside],
                    (made.lengths[~inside], made.lengths[inside]),
                    weight,
                )
                for other in range(people)
            ]
            for person in range(people)
        ]
        found = costs.between(np.arange(people), parts[part].kind)
        np.testing.assert_allclose(found, plain, atol=1e-9)
        np.testing.assert_allclose(costs.of(parts[part].kind), np.diag(plain), atol=1e-9)
        for few in (None, 0, 1, 2):
            links.limits = tuple(1 if at == few else limit for at, limit in enumerate(relink.LIMITS))
            listed = relink._Divergences(links, part).scan(np.arange(people), np.zeros(costs.kinds), 0.0)
            for person in range(people):
                there = listed.columns[person] >= 0
                by_kind = dict(zip(listed.columns[person][there].tolist(), listed.costs[person][there], strict=True))
                for kind, cost in by_kind.items():
                    exact = plain[person][int(np.argmax(parts[part].kind == kind))]
                    # Who is lost in a crowd counts as somebody who shares no place.
                    assert cost == pytest.approx(exact, abs=1e-9) or (few is not None and cost == 1.0 > exact)
                if few is None:
                    assert min(by_kind.values()) == pytest.approx(min(plain[person]), abs=1e-9)


def test_links_by_lists_are_nearly_as_good_as_by_all_pairs(monkeypatch):
    truth = rk.SyntheticCity(people=80, days=5, step="1h", width_km=4, height_km=4).trajectories()
    made = problem_of(truth)
    tracks = track.track(made, 0)

    def accuracy(limit, *, quick=False):
        monkeypatch.setattr(relink, "DENSE_UP_TO", limit)
        linked = relink.relink(made, tracks, 0, segments_per_day=2, rounds=5, quick=quick)
        assert np.array_equal(count(linked, made.counts.shape[1]), made.counts)
        return rk.evaluate(rk.Trajectories(made.expand(linked), truth.locations, truth.calendar), truth).accuracy

    everyone, listed = accuracy(10**6), accuracy(0)
    assert listed == pytest.approx(everyone, abs=0.05)
    assert accuracy(0, quick=True) == pytest.approx(everyone, abs=0.05)
    assert listed > accuracy_of_tracks(made, tracks, truth) + 0.03


def test_who_repeats_themselves_is_alike_on_even_and_odd_days():
    truth = random_truth(np.random.default_rng(5), people=7, places=5, steps=60, step="2h")
    made = problem_of(truth)
    tracks = track.track(made, 0)
    odd = made.starts[:-1] // made.steps_per_day % 2 == 1
    halves = made.lengths[~odd], made.lengths[odd]
    plain = [1 - segment_cost(person[~odd], person[odd], halves, np.ones(5)) for person in tracks]
    assert doubt.repeated(made, tracks) == pytest.approx(np.mean(plain))
    assert doubt.repeated(made, np.zeros_like(tracks)) == pytest.approx(1.0)
    day = problem_of(rk.Trajectories(truth.cells[:, :12], truth.locations, truth.calendar.closed_at(12)))
    assert doubt.repeated(day, track.track(day, 0)) == 0.0


def test_many_are_surer_where_they_repeat_themselves():
    def sure(repeated, together=16.0, people=1000, days=7.0, of_flows=False):
        gains = doubt.Gains(days, 0.0, 0.0, doubt.Crowd(people, together, repeated), of_flows)
        return float(doubt.calibrate(np.full((1, 1), 0.97), np.full((1, 1), 0.7), np.ones(1, np.int64), gains)[0, 0])

    assert sure(0.98) > sure(0.97) > sure(0.96)
    assert sure(0.98) > sure(0.98, together=47.0)
    assert sure(0.98, people=5000) > sure(0.98)
    assert sure(0.98, days=3.0) > sure(0.98)
    # Voters from flows agree less for a reason that says nothing of the result.
    assert sure(0.98, of_flows=True) > sure(0.98)
    # Nothing is concluded from what lies beyond what was seen.
    assert sure(1.0, people=100_000) == sure(0.9999, people=1_000_000)
    assert sure(0.0) == sure(0.5) < 0.5


def accuracy_of_tracks(made, tracks, truth):
    return rk.evaluate(rk.Trajectories(made.expand(tracks), truth.locations, truth.calendar), truth).accuracy


def test_blocks_are_problems_of_people_who_share_places():
    truth = rk.SyntheticCity(people=60, days=2, step="1h", share_phones_off_at_night=0.5).trajectories()
    made = problem_of(truth)
    tracks = track.track(made, 0)
    model = schedule.HabitModel.learn(made, [tracks])
    for rank in range(2):
        groups = blocks.group(made, tracks, 20, rank)
        assert [len(rows) for rows in groups] == [20, 20, 20]
        assert sorted(np.concatenate(groups)) == list(range(60))
    total = np.zeros_like(made.counts)
    for rows in groups:
        block = blocks.Block.of(made, model, [tracks[rows], tracks[rows[::-1]]])
        block.problem.check(block.answers[0])
        assert np.array_equal(block.back(block.answers[1]), tracks[rows[::-1]])
        assert np.array_equal(block.model.moves, model.moves[np.ix_(block.used, block.used)])
        assert block.problem.away == block.model.away
        total[:, block.used] += block.problem.counts
    assert np.array_equal(total, made.counts)
    alone = blocks.Block.of(made, model, [tracks[:1]])
    assert alone.problem.people == 1


def test_neighbours_along_the_curve_are_neighbours():
    truth = random_truth(np.random.default_rng(0), people=64, places=64, steps=3)
    cells = np.tile(np.arange(64)[:, None], (1, 3))
    made = problem_of(rk.Trajectories(cells, truth.locations, truth.calendar))
    order = np.argsort(blocks._curve(made))
    assert np.hypot(*np.diff(made.xy[order], axis=0).T).tolist() == [1.0] * 63


@pytest.mark.slow
@pytest.mark.parametrize("routine", [True, False])
def test_confidence_of_many_people_is_calibrated_with_and_without_routine(routine):
    """Cities that the constants were not fitted on."""
    without = {} if routine else {"share_without_routine": 1, "share_night_workers": 0, "share_without_work": 0}
    truth = rk.SyntheticCity(people=850, days=7, seed=11, width_km=6.5, height_km=6.5, **without).trajectories()
    found = Habits(effort="low").recover(truth.counts())
    assert found.details.block_people[0] == schedule.BLOCK_PEOPLE
    result = rk.evaluate(found.trajectories, truth)
    sure = assess_confidence(found.trajectories, found.confidence, truth, mapping=result.mapping)
    assert sure.calibration_error < 0.1
    assert result.accuracy > 0.7 if routine else sure.claims.points < 0.01


def test_after_a_stop_many_people_get_the_best_answer(as_many):
    counts = random_truth(np.random.default_rng(2), people=8, places=6, steps=24, step="2h").counts()
    asked = []

    def stop(done, total):
        asked.append(done)
        run.stop()

    run = Habits(effort="normal", workers=1).start(
        counts.locations, counts.calendar, people=counts.people, progress=stop
    )
    run.feed(counts)
    assert asked
    assert run.trajectories().counts() == counts
    assert run.recovery().details.voters[0] < schedule.EFFORTS["normal"].many_voters


@quick
@given(truth=truths(away=True, max_people=12), seed=st.integers(0, 3))
def test_flows_are_exact_and_the_result_is_that_of_any_number_of_workers(as_many, truth, seed):
    counts, flows = truth.counts(), truth.flows()
    found = Habits(effort="low", seed=seed, workers=1).recover(counts, flows=flows)
    assert found.trajectories.flows() == flows
    assert 0 <= found.confidence.min() <= found.confidence.max() <= 1
    assert same(Habits(effort="low", seed=seed, workers=3).recover(counts, flows=flows), found)


def test_after_a_stop_and_from_a_file_flows_are_exact(as_many, tmp_path):
    truth = random_truth(np.random.default_rng(2), people=8, places=6, steps=24, step="2h")
    counts, flows = truth.counts(), truth.flows()
    run = Habits(effort="low", workers=1).start(
        counts.locations, counts.calendar, people=counts.people, progress=lambda *_: run.stop()
    )
    run.feed(counts, flows=flows)
    assert run.trajectories().flows() == flows
    run.save(tmp_path / "run.npz")
    again = rk.resume(tmp_path / "run.npz")
    assert again.recovery().details.voters[0] == schedule.EFFORTS["low"].many_voters
    assert same(again.recovery(), Habits(effort="low").recover(counts, flows=flows))


def test_many_people_need_memory_and_time_for_each(monkeypatch):
    def counts(people):
        values = np.zeros((48, 100), np.int32)
        values[:] = people // 100
        values[::2] = np.roll(values[::2], 1) + np.resize([1, -1], 100)
        return rk.Counts(values, rk.Locations([[x, 0.0] for x in range(100)]), rk.Calendar("2024-01-01", "30min"))

    tried = Habits(workers=2)
    assert all(tried.why_not(counts(people)) is None for people in (1_000, 100_000, 1_000_000))
    many, more = counts(20_000), counts(40_000)
    assert tried.memory_bytes(more) < 2.1 * tried.memory_bytes(many)
    assert tried.work(more) < 2.4 * tried.work(many)
    assert tried.work(many) < dataclasses.replace(tried, effort="high").work(many)
    for size in (200, 20_000):
        assert tried.memory_bytes(counts(size)) < tried.memory_bytes(counts(size), flows=True)
