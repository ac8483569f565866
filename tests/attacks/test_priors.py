"""Attackers who know more than the release: what each kind of knowledge is worth, and who can use it."""

from datetime import datetime
from itertools import pairwise

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import LearntMoves, open_folder, recover_into
from rekindle.attacks.moves import CountedMoves, Today
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.testing import _small_truth, check_attack


def some(truth, rows):
    """Some of the people."""
    seen = None if truth.observed is None else truth.observed[rows]
    return rk.Trajectories(
        truth.cells[rows], truth.locations, truth.calendar, np.array(truth.people_ids)[rows].tolist(), seen
    )


def last_days(truth, days):
    """The days before, and the last ones."""
    cut = truth.steps - days * truth.calendar.steps_per_day
    return truth.part(slice(0, cut)), truth.part(slice(cut, truth.steps))


@pytest.fixture(scope="module")
def city():
    return rk.SyntheticCity(people=60, days=7, step="30min", seed=3).trajectories()


def small(away):
    """A few people over two weeks: the week before, and the one that is attacked, with names."""
    truth = _small_truth(away=away)
    cells = np.roll(truth.cells, 5, axis=1)
    early = rk.Calendar("2024-02-01 04:00", "2h", truth.steps)
    return rk.Trajectories(cells[:3], truth.locations, early, ["ann", "bob", "eve"]), truth


@pytest.mark.parametrize("away", [False, True], ids=["always counted", "away at times"])
@pytest.mark.parametrize(
    "attack",
    [rk.Baseline(seed=4), rk.Enhanced(seed=4), rk.Habits(effort="low", seed=4, workers=1)],
    ids=["baseline", "enhanced", "habits"],
)
@pytest.mark.parametrize("kind", [rk.OtherTraces, rk.KnownPast])
def test_an_attack_that_knows_more_passes_the_suite(attack, kind, away):
    known, truth = small(away)
    check_attack(attack.knowing(kind(known)), truth.counts())


@pytest.mark.parametrize(
    "attack",
    [rk.Chance(), rk.Enhanced(seed=1), rk.Habits(effort="low", workers=1)],
    ids=["chance", "enhanced", "habits"],
)
def test_every_attack_can_know_people(attack):
    _, truth = small(away=True)
    known = some(truth, [3, 5])
    check_attack(attack.knowing(rk.KnownPeople(known)), truth.counts())
    found = attack.recover(truth.counts(), prior=rk.KnownPeople(known))
    assert found.trajectories.people_ids[:2] == ("3", "5")
    assert np.array_equal(found.trajectories.cells[:2], known.cells)
    others = attack.recover(some(truth, [0, 1, 2, 4, 6, 7, 8, 9, 10, 11]).counts()).trajectories
    assert np.array_equal(found.trajectories.cells[2:], others.cells)
    if found.confidence is not None:
        assert (found.confidence[:2] == 1).all()


def test_recover_start_and_knowing_are_the_same(city):
    past, today = last_days(city, 2)
    prior = rk.KnownPast(past)
    counts = today.counts()
    one = rk.Enhanced(seed=1).recover(counts, prior=prior).trajectories
    run = rk.Enhanced(seed=1).start(counts.locations, counts.calendar, people=counts.people, prior=prior)
    run.feed(counts)
    assert run.trajectories() == one == rk.Enhanced(seed=1).knowing(prior).recover(counts).trajectories


def test_other_peoples_traces_help(city):
    """Half of the city is known; the other half is attacked."""
    gains = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(city.people)
        attacked, others = some(city, order[:30]), some(city, order[30:])
        counts = attacked.counts()
        plain = rk.evaluate(rk.Enhanced(seed=seed).recover(counts).trajectories, attacked).accuracy
        found = rk.Enhanced(seed=seed).recover(counts, prior=rk.OtherTraces(others))
        gains.append(rk.evaluate(found.trajectories, attacked).accuracy - plain)
        assert found.trajectories.people_ids == rk.Enhanced().recover(counts).trajectories.people_ids
    assert np.mean(gains) > 0.03


def test_a_known_past_names_people(city):
    past, today = last_days(city, 2)
    found = rk.Enhanced(seed=0).recover(today.counts(), prior=rk.KnownPast(past)).trajectories
    assert found.people_ids == city.people_ids
    by_name = rk.evaluate(found, today, mapping="names")
    chance = rk.reference_scores(today, seeds=3, mapping="names").chance["accuracy"].mean
    assert by_name.accuracy == pytest.approx((found.cells == today.cells).mean())
    assert by_name.accuracy > 0.4 > 3 * chance
    assert by_name.accuracy <= rk.evaluate(found, today).accuracy + 0.02


def test_habits_recognises_people_by_their_past(city):
    past, today = last_days(city, 2)
    attack = rk.Habits(effort="low", workers=1)
    found = attack.recover(today.counts(), prior=rk.KnownPast(past))
    assert found.trajectories.people_ids == city.people_ids
    assert found.confidence is None
    weaker = rk.Enhanced(seed=0).recover(today.counts(), prior=rk.KnownPast(past)).trajectories
    by_name, by_the_weaker = (
        rk.evaluate(each, today, mapping="names").accuracy for each in (found.trajectories, weaker)
    )
    assert by_name > by_the_weaker + 0.05


def test_habits_takes_other_traces_into_what_is_usual(city):
    attacked, others = some(city, np.arange(30)), some(city, np.arange(30, 60))
    counts = attacked.counts()
    plain = rk.Habits(effort="low", workers=1).recover(counts)
    found = rk.Habits(effort="low", workers=1).recover(counts, prior=rk.OtherTraces(others))
    assert not np.array_equal(found.trajectories.cells, plain.trajectories.cells)
    assert found.confidence is not None
    assert (
        rk.evaluate(found.trajectories, attacked).accuracy > rk.evaluate(plain.trajectories, attacked).accuracy - 0.05
    )


def test_habits_of_one_short_day_names_people_too():
    """Where nothing can be tracked, the enhanced attack answers, by what it knows."""
    cells = np.random.default_rng(0).integers(0, 9, (30, 48))
    xy = np.array([(at % 3, at // 3) for at in range(9)], float)
    truth = rk.Trajectories(cells, rk.Locations(xy), rk.Calendar("2024-03-01", "1h", 48))
    past, today = last_days(truth, 1)
    found = rk.Habits(effort="low", workers=1).recover(today.counts(), prior=rk.KnownPast(past))
    same = rk.Enhanced(seed=0).recover(today.counts(), prior=rk.KnownPast(past))
    assert found.trajectories == same.trajectories
    assert found.confidence is None


def test_more_of_the_past_helps():
    past, today = last_days(rk.SyntheticCity(people=60, days=9, step="30min", seed=3).trajectories(), 2)
    accuracy = []
    for days in (1, 7):
        known = last_days(past, days)[1]
        runs = [rk.Enhanced(seed=seed).recover(today.counts(), prior=rk.KnownPast(known)) for seed in range(3)]
        accuracy.append(np.mean([rk.evaluate(run.trajectories, today, mapping="names").accuracy for run in runs]))
    assert accuracy[1] > accuracy[0] + 0.03


def test_people_without_a_past_come_last(city):
    past, today = last_days(city, 2)
    found = rk.Enhanced().recover(today.counts(), prior=rk.KnownPast(some(past, [7, 2]))).trajectories
    assert found.people_ids[:3] == ("7", "2", "unknown 1")
    assert len(set(found.people_ids)) == 60


def test_known_people_are_left_out_of_the_score(city):
    known = some(city, np.arange(20))
    found = rk.Enhanced().recover(city.counts(), prior=rk.KnownPeople(known)).trajectories
    everyone = rk.evaluate(found, city).accuracy
    others = rk.evaluate(found, city, leave_out=known.people_ids)
    assert len(others.per_person.accuracy) == 40
    assert others.accuracy < everyone - 0.1
    with pytest.raises(InvalidData, match="Nobody is left"):
        rk.evaluate(found, city, leave_out=city.people_ids)


def test_knowledge_can_be_combined(city):
    past, today = last_days(city, 2)
    known = some(today, [0, 1])
    attack = rk.Enhanced().knowing(rk.KnownPeople(known)).knowing(rk.KnownPast(some(past, [5, 9])))
    found = attack.recover(today.counts()).trajectories
    assert found.people_ids[:5] == ("0", "1", "5", "9", "unknown 1")
    assert found.counts() == today.counts()


def test_who_cannot_use_a_prior_says_so(city):
    past, today = last_days(city, 2)
    for prior in (rk.KnownPast(past), rk.OtherTraces(past)):
        with pytest.raises(InvalidSetting, match=f"Chance cannot use {type(prior).__name__}"):
            rk.Chance().recover(today.counts(), prior=prior)
    with pytest.raises(InvalidSetting, match="knows something already"):
        rk.Enhanced().knowing(rk.KnownPast(past)).knowing(rk.OtherTraces(past))
    people = rk.KnownPeople(some(today, [0]))
    with pytest.raises(InvalidSetting, match="all of them at once"):
        rk.Enhanced().knowing(people).knowing(people)


def test_what_does_not_fit_is_refused(city):
    past, today = last_days(city, 2)
    counts = today.counts()
    hourly = rk.Trajectories(past.cells[:, ::2], past.locations, rk.Calendar(past.calendar.start, "1h"))
    with pytest.raises(InvalidData, match="steps of 1:00:00"):
        rk.Enhanced().recover(counts, prior=rk.OtherTraces(hourly))
    moved = rk.Trajectories(past.cells, rk.Locations(past.locations.xy_km + 1), past.calendar)
    with pytest.raises(InvalidData, match="other locations"):
        rk.Enhanced().recover(counts, prior=rk.KnownPast(moved))
    with pytest.raises(InvalidData, match="give earlier days"):
        rk.Enhanced().recover(counts, prior=rk.KnownPast(city))
    with pytest.raises(InvalidData, match="leave out those"):
        rk.Enhanced().recover(some(today, [1, 2]).counts(), prior=rk.KnownPast(past))
    with pytest.raises(InvalidData, match="nobody is left"):
        rk.Enhanced().recover(counts, prior=rk.KnownPeople(today))
    with pytest.raises(InvalidSetting, match="give one object such as"):
        rk.Enhanced().recover(counts, prior=[rk.KnownPast(past)])
    with pytest.raises(InvalidData, match=r"true paths begin at .* do not cover"):
        rk.Enhanced().recover(counts, prior=rk.KnownPeople(some(past, [0, 1])))
    with pytest.raises(InvalidSetting, match="model"):
        rk.OtherTraces(past, model="guessed")
    with pytest.raises(InvalidData, match=r"in location '.*' at 20.*must be people of the release"):
        rk.Enhanced().recover(some(today, np.arange(30)).counts(), prior=rk.KnownPeople(some(today, [40, 41])))


def test_a_recovery_is_resumed_with_the_same_knowledge_only(city, tmp_path):
    past, today = last_days(city, 2)
    counts = today.counts()
    attack = rk.Enhanced().knowing(rk.KnownPeople(some(today, [0, 1])))
    folder = open_folder(tmp_path / "out", attack, counts)
    found = recover_into(folder, attack, counts).trajectories
    again = open_folder(tmp_path / "out", attack, counts, resume=True)
    assert recover_into(again, attack, counts).trajectories == found
    other = rk.Enhanced().knowing(rk.KnownPeople(some(today, [0, 2])))
    with pytest.raises(InvalidData, match="cannot be resumed"):
        open_folder(tmp_path / "out", other, counts, resume=True)
    run = rk.Enhanced().knowing(rk.KnownPast(past)).start(counts.locations, counts.calendar, people=60)
    run.save(tmp_path / "run.npz")
    with pytest.raises(InvalidSetting, match="give `attack`"):
        rk.resume(tmp_path / "run.npz")


def test_an_interrupted_run_of_habits_goes_on_with_known_people(tmp_path):
    _, truth = small(away=False)
    counts = truth.counts()
    attack = rk.Habits(effort="low", workers=1).knowing(rk.KnownPeople(some(truth, [3, 5])))
    first = counts.calendar.day(0).stop
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts.part(slice(0, first)))
    open_folder(tmp_path / "out", attack, counts)
    run.save(tmp_path / "out" / "checkpoint.npz")
    folder = open_folder(tmp_path / "out", attack, counts, resume=True)
    assert recover_into(folder, attack, counts).trajectories == attack.recover(counts).trajectories


# The counted model


@pytest.fixture(scope="module")
def commuters():
    """Two locations 5 km apart and one between them: everyone leaves home at 08:00 for work, and work at 17:00 for home."""
    hours = np.arange(24 * 4) % 24
    day = np.where((hours >= 8) & (hours < 17), 2, 0)
    cells = np.tile(day, (10, 1))
    cells[5:] = np.where(day == 2, 0, 2)  # half of them live at the other end
    return rk.Trajectories(cells, rk.Locations([(0, 0), (2, 0), (5, 0)]), rk.Calendar("2024-01-01", "1h", 96))


def test_counts_become_chances(commuters):
    model = CountedMoves.learn(commuters)
    for hour in (3, 7, 16):
        log = model.next_location(Today(commuters.cells[:, : hour + 1]), datetime(2024, 5, 1, hour))
        assert np.exp(log).sum(axis=1) == pytest.approx(1.0)
    at_seven = np.exp(model.next_location(Today(commuters.cells[:, :8]), datetime(2024, 5, 1, 7)))
    at_three = np.exp(model.next_location(Today(commuters.cells[:, :4]), datetime(2024, 5, 1, 3)))
    assert at_seven[0, 2] > 0.5 > 0.1 > at_three[0, 2]
    assert at_seven[0, 2] > 5 * at_seven[0, 1]
    # Ten people leave this location four times each, and that counts for fewer than forty moves.
    assert model.moves().toarray()[0] == pytest.approx([0, 0, 10 * np.log2(5)])
    assert model.stays().sum() == 80


def test_places_that_nobody_was_seen_in_are_possible(commuters):
    model = CountedMoves.learn(commuters)
    log = model.next_location(Today(np.array([[1]], np.int32)), datetime(2024, 5, 1, 12))
    assert np.exp(log).sum() == pytest.approx(1.0)
    assert (np.exp(log) > 1e-4).all()


def test_stays_and_what_was_before():
    today = Today(np.array([[4, 4, 4], [1, 2, 2], [3, 3, 1], [5, -1, 5]], np.int32))
    lasted, before = today.stay()
    assert lasted.tolist() == [3, 2, 1, 1]
    assert before.tolist() == [-1, 1, 3, -1]


def test_a_learnt_cost_works_without_the_day_before(commuters):
    cost = LearntMoves(CountedMoves.learn(commuters))
    context = rk.attacks.MoveContext(commuters.locations, datetime(2024, 5, 1, 7), None)
    here = np.array([0, 2], np.int32)
    assert cost(here, here, context).shape == (2, 3)
    assert cost.away > 0


def test_traces_of_people_who_come_and_go():
    truth = random_truth(np.random.default_rng(5), people=9, places=6, steps=60, step="2h", away=0.3)
    model = CountedMoves.learn(truth)
    assert np.isfinite(model.leave).all()
    moves = {
        (int(a), int(b))
        for day in truth.calendar.days()
        for row in truth.cells[:, day]
        for a, b in pairwise(row)
        if a != b and a >= 0 and b >= 0
    }
    assert set(zip(*map(np.ndarray.tolist, model.total.nonzero()), strict=True)) == moves
