"""Habits on problems so small that it runs without the compiler, too: settings, stops, files, votes."""

import dataclasses
import math

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits import Habits, schedule
from rekindle.attacks.habits.polish import HOURS, Profile, _dwells, fits, sweep_work
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.rng import generator, gumbel
from rekindle.attacks.habits.track import track
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(2), people=4, places=4, steps=12, step="4h").counts()


@pytest.fixture(scope="module")
def problem(counts):
    return Problem.of(counts.values, counts.locations, counts.calendar)


@pytest.fixture(scope="module")
def found(counts):
    return Habits(effort="low").recover(counts)


@pytest.fixture
def few_proposals(monkeypatch):
    """The same schedule with less work in it."""
    for name, effort in schedule.EFFORTS.items():
        monkeypatch.setitem(schedule.EFFORTS, name, dataclasses.replace(effort, proposals=3))


def run_of(counts, **settings):
    return Habits(**settings).start(counts.locations, counts.calendar, people=counts.people)


def test_counts_confidence_and_costs(counts, found):
    assert found.trajectories.counts() == counts
    assert found.confidence.shape == (4, 12)
    assert 0 <= found.confidence.min() <= found.confidence.max() <= 1


@pytest.mark.parametrize(("step", "powers"), [("30min", [1.0, 0.5**0.5, 0.5]), ("2min", [0.5, 0.5, 0.5])])
def test_whole_days_of_long_steps_are_linked_by_their_time_as_it_is(monkeypatch, step, powers):
    counts = random_truth(np.random.default_rng(2), people=4, places=4, steps=12, step=step).counts()
    problem = Problem.of(counts.values, counts.locations, counts.calendar)
    plan, tracks, used = schedule.Schedule.of(problem, "low", 0), track(problem, 0), []
    monkeypatch.setattr(schedule, "relink", lambda *_, power, **__: used.append(power))
    for cuts in schedule.CUTS:
        schedule._relink(problem, plan, tracks, 0, cuts, lambda: False)
    assert used == pytest.approx(powers)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"effort": "much"}, "`effort` is 'much'"),
        ({"seed": -1}, "`seed` is -1"),
        ({"seed": True}, "`seed` is True"),
        ({"seed": None}, "`seed` is None"),
        ({"workers": 0}, "`workers` is 0"),
        ({"workers": 1.5}, "`workers` is 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(InvalidSetting, match=words):
        Habits(**settings)
    assert Habits(seed=0, workers=1).settings() == {"effort": "normal", "seed": 0}


def test_groups_of_answers(counts, few_proposals):
    told = []
    whole = Habits(effort="normal", workers=2).recover(counts, progress=lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]
    assert whole.trajectories.counts() == counts
    alone = Habits(effort="normal", workers=1).recover(counts)
    assert np.array_equal(alone.trajectories.cells, whole.trajectories.cells)
    assert np.array_equal(alone.confidence, whole.confidence)


def test_many_people_are_not_searched_and_polished_in_blocks(counts, monkeypatch):
    monkeypatch.setattr(schedule, "MOST_PEOPLE_AT_ONCE", 3)
    made = schedule.Schedule.of(Problem.of(counts.values, counts.locations, counts.calendar), "normal", 0)
    assert (made.groups, made.answers, made.proposals) == (0, schedule.EFFORTS["normal"].many_answers, 0)
    assert made.block_people == schedule.BLOCK_PEOPLE
    found = Habits(effort="normal").recover(counts)
    assert found.trajectories.counts() == counts
    assert {name: set(array.tolist()) for name, array in found.details.arrays().items()} == {
        "answers": {float(made.answers)},
        "voters": {float(made.voters)},
        "exchanges": {0.0},
        "group_exchanges": {0.0},
        "block_people": {float(schedule.BLOCK_PEOPLE)},
    }


def test_the_recovery_says_what_was_done(counts, found):
    done = {name: array.tolist() for name, array in found.details.arrays().items()}
    proposals = schedule.EFFORTS["low"].proposals * counts.people
    assert done == {
        "answers": [4.0] * 2,
        "voters": [6.0] * 2,
        "exchanges": [proposals] * 2,
        "group_exchanges": [0.0] * 2,
        "block_people": [0.0] * 2,
    }
    run = run_of(counts, effort="low")
    run.feed(counts)
    assert run.day(1).details.arrays() == {name: [each[0]] for name, each in done.items()}


def test_the_plan_numbers_its_answers(problem):
    made = schedule.Schedule.of(problem, "normal", 0)
    assert (made.groups, made.members, made.answers) == (6, 4, 24)
    assert [made.group(number) for number in (23, 24, 29, 42)] == [[], [0, 1, 2, 3], [20, 21, 22, 23], []]
    assert [made.group(number) for number in (30, 41)] == [[24, 25, 26, 27], [29, 24, 25, 26]]
    assert made.by_level == [range(24), range(24, 30), range(30, 42)]
    assert made.stages == [range(24), range(24, 30), range(30, made.parts)]
    assert made.parts == 42 + made.voters
    assert made.proposals == 440 * problem.people
    assert (made.group_rounds, made.final_rounds, made.link_rounds) == (3, 4, 20)
    low = schedule.Schedule.of(problem, "low", 0)
    assert (low.groups, low.second_groups, low.answers) == (0, 0, 4)
    assert low.stages == [range(low.parts)]


def test_the_last_level_of_which_there_is_an_answer_becomes_the_result(problem):
    made = schedule.Schedule.of(problem, "normal", 0)
    answers = {number: schedule.Answer(np.empty((0, 0), np.int32), float(number)) for number in (3, 24, 26, 35, 60)}
    for gone, scores in ((60, [35]), (35, [24, 26]), (24, [26]), (26, [3]), (3, [])):
        del answers[gone]
        assert [answer.score for answer in made.last(answers)] == scores


def test_without_room_for_the_polish_answers_only_vote(counts, found, monkeypatch):
    from rekindle.attacks.habits import polish

    made = Problem.of(counts.values, counts.locations, counts.calendar)
    assert fits(made)
    assert sweep_work(made) > 0
    monkeypatch.setattr(polish, "MOST_STATES", 1)
    assert not fits(made)
    assert schedule.Schedule.of(made, "low", 0).final_rounds == 0
    assert Habits(effort="low").recover(counts).trajectories.counts() == counts


def test_days_are_fed_saved_and_resumed(counts, found, tmp_path):
    first, second = counts.days()
    run = run_of(counts, effort="low")
    run.save(tmp_path / "run.npz")
    run = rk.resume(tmp_path / "run.npz")
    assert (run.days_done, run.trajectories().steps) == (0, 0)
    run.feed(first)
    assert run.trajectories().counts() == first
    run.save(tmp_path / "run.npz")
    run = rk.resume(tmp_path / "run.npz")
    assert (run.days_done, run.steps_done) == (1, first.steps)
    run.feed(second)
    assert np.array_equal(run.trajectories().cells, found.trajectories.cells)
    run.save(tmp_path / "run.npz")
    again = rk.resume(tmp_path / "run.npz").recovery()
    assert np.array_equal(again.trajectories.cells, found.trajectories.cells)
    assert np.array_equal(again.confidence, found.confidence)


def test_a_damaged_run_is_refused(counts, tmp_path):
    from rekindle.attacks.saving import read_run, write_run

    run = run_of(counts, effort="low")
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    for change in (
        lambda saved: saved.arrays.update(counts=saved.arrays["counts"] * 2),
        lambda saved: saved.arrays.update(tracks=saved.arrays["tracks"] * 0),
        lambda saved: saved.arrays.update(tracks=saved.arrays["tracks"] - 1),
        lambda saved: saved.arrays.update(tracks=saved.arrays["tracks"][:, :1]),
        lambda saved: saved.arrays.pop("numbers"),
        lambda saved: saved.arrays.update(scores=saved.arrays["scores"][:1]),
    ):
        saved = read_run(tmp_path / "run.npz")
        change(saved)
        write_run(tmp_path / "bad.npz", saved)
        with pytest.raises((InvalidFile, InvalidData)):
            rk.resume(tmp_path / "bad.npz")


def test_a_stop_before_or_during_the_work_gives_whole_days(counts):
    run = run_of(counts, effort="low")
    first = next(counts.days())
    run.feed(first)
    run.stop()
    assert run.trajectories().counts() == first
    assert (run.recovery().confidence == np.float32(0.5)).all()
    asked = []

    def stop(done, total):
        asked.append(done)
        later.stop()

    later = Habits(effort="low", workers=1).start(
        counts.locations, counts.calendar, people=counts.people, progress=stop
    )
    later.feed(counts)
    assert asked[0] == 1
    assert later.trajectories().counts() == counts
    assert later.recovery() is later.recovery()


def test_a_stop_is_heeded_between_all_stages(problem):
    made = schedule.Schedule.of(problem, "low", 0)
    for after in range(3):
        left = iter([False] * after + [True] * 20)
        assert schedule.follow(problem, made, 0, lambda left=left: next(left)) is None
    answers = [schedule.follow(problem, made, number, lambda: False) for number in range(2)]
    assert schedule.gather(problem, made, answers, 4, lambda: True) is None
    tracks, sure = schedule.finish(problem, made, dict(enumerate(answers)), lambda: True)
    problem.check(tracks)
    assert 0 <= sure.min() <= sure.max() <= 1
    tracks, sure = schedule.finish(problem, made, {}, lambda: True)
    problem.check(tracks)
    assert (sure == np.float32(0.5)).all()


def test_gumbel_numbers_have_the_mean_of_their_kind():
    state = generator(5)
    drawn = np.array([gumbel(state) for _ in range(3000)])
    assert drawn.mean() == pytest.approx(np.euler_gamma, abs=0.06)
    assert drawn.var() == pytest.approx(math.pi**2 / 6, rel=0.1)


def test_one_segment_cannot_be_linked_anew(problem):
    tracks = track(problem, 0)
    long = dataclasses.replace(problem, steps_per_day=10_000)
    linked = relink(long, tracks, 0, segments_per_day=1)
    assert np.array_equal(linked, tracks)
    assert linked is not tracks
    assert np.array_equal(relink(problem, tracks, 0, rounds=0), tracks)


def test_a_profile_by_hand():
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    rows = np.array([[0, 0, 1, 0, 1, 1], [1, 1, 2, 2, 2, 0]])
    truth = rk.Trajectories(rows, places, rk.Calendar("2024-03-01", "4h"))
    made = Problem.of(truth.counts().values, places, truth.calendar)
    tracks = np.searchsorted(made.places, rows[:, made.starts[:-1]]).astype(np.int32)
    found = Profile.of(made, [tracks, tracks])
    assert found.hours.shape == (2, HOURS, 3)
    assert found.hours.sum(axis=1).tolist() == [[3.0, 3.0, 0.0], [1.0, 2.0, 3.0]]
    assert found.starts.tolist() == [0, 2, 4]
    assert list(zip(found.origin, found.goal, found.often, strict=True)) == [
        (0, 1, 2),
        (1, 0, 1),
        (1, 2, 1),
        (2, 0, 1),
    ]
    assert found.left.tolist() == [[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    stays, at = _dwells(tracks, made.starts)
    assert sorted(zip(stays.tolist(), at.tolist(), strict=True)) == [(1, 0), (1, 1), (3, 2)]
