"""Corners of the attacks that the other tests leave out."""

import json
import zipfile
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from tests.reference.plain import step_with_costs
from tests.small import random_truth

import rekindle as rk
from rekindle.assignment import steps
from rekindle.attacks import costs, day_by_day
from rekindle.attacks.linking import InformationGain, link
from rekindle.attacks.saving import SavedRun, read_run, write_run
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(4), people=6, places=5, steps=24, step="2h").counts()


@dataclass(frozen=True)
class Own(rk.Baseline):
    """An attack that no file can name."""


def test_an_attack_of_your_own_must_be_given_to_resume(counts, tmp_path):
    run = Own().start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    with pytest.raises(InvalidSetting, match="'Own'; give it as `attack`"):
        rk.resume(tmp_path / "run.npz")
    again = rk.resume(tmp_path / "run.npz", attack=Own())
    assert again.trajectories() == run.trajectories()
    with pytest.raises(InvalidSetting, match="not by Baseline"):
        rk.resume(tmp_path / "run.npz", attack=rk.Baseline())


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.pop("gaps"),
        lambda arrays: arrays.update(link_costs=arrays["link_costs"][:1]),
        lambda arrays: arrays.update(cells=arrays["cells"] + 100),
    ],
    ids=["missing", "short", "elsewhere"],
)
def test_a_run_with_damaged_days_is_refused(counts, tmp_path, damage):
    run = rk.Baseline().start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    saved = read_run(tmp_path / "run.npz")
    damage(saved.arrays)
    write_run(tmp_path / "run.npz", saved)
    with pytest.raises((InvalidFile, InvalidData)):
        rk.resume(tmp_path / "run.npz")


def test_a_saved_run_keeps_all_there_is_of_places_and_holds_no_code(counts, tmp_path):
    places = rk.Locations.from_lat_lng(np.array([[1.0, 2.0], [1.5, 2.0]]), ["A", "B"])
    run = SavedRun("Baseline", {"seed": 3}, places, counts.calendar, 4, {"cells": np.arange(3)})
    write_run(tmp_path / "run.npz", run)
    read = read_run(tmp_path / "run.npz")
    assert np.array_equal(read.locations.lat_lng, places.lat_lng)
    assert read.locations == places
    assert (read.attack, read.settings, read.people) == ("Baseline", {"seed": 3}, 4)
    assert read.calendar == counts.calendar
    assert list(read.arrays) == ["cells"]
    evil = SavedRun("Baseline", {}, places, counts.calendar, 4, {"cells": np.array([object()])})
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        write_run(tmp_path / "evil.npz", evil)
    assert not (tmp_path / "evil.npz").exists()


def test_another_format_is_refused(counts, tmp_path):
    path = tmp_path / "run.npz"
    write_run(path, SavedRun("Baseline", {}, counts.locations, counts.calendar, 4, {}))
    with np.load(path) as stored:
        arrays = dict(stored)
    head = json.loads(str(arrays["head"]))
    assert head["format"] == "rekindle run 1"
    arrays["head"] = np.array(json.dumps(head | {"format": "rekindle run 2"}))
    np.savez(path, **arrays)
    with pytest.raises(InvalidFile, match="its format is 'rekindle run 2', not 'rekindle run 1'"):
        read_run(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note.txt", "no arrays")
    with pytest.raises(InvalidFile, match="not a saved run"):
        read_run(path)
    with pytest.raises(InvalidFile, match="does not exist"):
        read_run(tmp_path / "nothing.npz")


def test_settings_are_by_keyword():
    for kind in (rk.Baseline, rk.Enhanced, rk.DayByDay):
        with pytest.raises(TypeError, match="positional"):
            kind(rk.attacks.Stay())
        with pytest.raises(AttributeError):
            kind().seed = 3
    assert rk.Baseline().settings()["lookback_days"] == 1
    assert rk.Enhanced().settings()["lookback_days"] == 3
    assert (rk.Baseline().night, rk.Baseline().day) == (rk.attacks.Stay(), rk.attacks.Velocity())


def test_an_attack_without_settings_has_none():
    class Bare(rk.Attack):
        def start(self, locations, calendar, *, people, progress=None):
            return rk.Baseline().start(locations, calendar, people=people, progress=progress)

    assert Bare().settings() == {}


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_workers_out_of_range_are_refused(workers):
    with pytest.raises(InvalidSetting, match="`workers` is"):
        rk.Baseline(workers=workers)


def test_a_run_needs_people_and_one_feed_at_a_time(counts):
    with pytest.raises(InvalidSetting, match="`people` is 0"):
        rk.Baseline().start(counts.locations, counts.calendar, people=0)
    assert rk.Baseline().start(counts.locations, counts.calendar, people=1).people == 1
    refused = []

    def feed_again(done, total):
        with pytest.raises(InvalidSetting, match="being fed already"):
            run.feed(counts)
        refused.append((done, total))

    run = rk.Baseline().start(counts.locations, counts.calendar, people=counts.people, progress=feed_again)
    run.feed(counts)
    assert refused == [(1, 2), (2, 2)]


def test_steps_of_another_length_are_refused(counts):
    run = rk.Baseline().start(counts.locations, rk.Calendar(counts.calendar.start, "1h"), people=counts.people)
    with pytest.raises(InvalidData, match=r"steps of 2:00:00, the run of 1:00:00"):
        run.feed(counts)


def test_memory_grows_with_the_people(counts):
    small = rk.Baseline().memory_bytes(counts)
    twice = rk.Baseline().memory_bytes(rk.Counts(counts.values * 2, counts.locations, counts.calendar))
    assert small >= 300 * 2**20
    assert twice > small


@pytest.mark.parametrize(("people", "steps"), [(30, 20), (2, 3)])
def test_transitions_are_counted(people, steps):
    cells = np.random.default_rng(0).integers(0, 9, (people, steps)).astype(np.int32)
    plain = np.zeros((9, 9), int)
    for row in cells:
        for a, b in pairwise(row):
            plain[a, b] += 1
    found = day_by_day.count_transitions(cells, 9)
    assert found.dtype == np.int64
    assert np.array_equal(found.toarray(), plain)


def test_the_most_frequent_next_places():
    # The last number is stored, but is 0: that place was never seen to follow.
    data, rows, columns = [3, 3, 1, 2, 0], [0, 0, 1, 1, 2], [1, 2, 0, 2, 2]
    counted = sparse.csr_array((data, (rows, columns)), shape=(3, 3))
    indptr, indices = costs.popular_places(counted)
    assert indptr.tolist() == [0, 2, 3, 3]
    assert indices.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("start", "step", "kinds"),
    [
        ("2024-03-01 00:00", "2h", "fnnddddd"),  # departs at 0, 2 and 4, then at 6
        ("2024-03-01 05:00", "2h", "fddddddd"),
        ("2024-03-01 05:59", "30min", "fddddddd"),
        ("2024-03-01 06:00", "2h", "fddddddd"),
        ("2024-03-01 03:00", "1h", "fnnddddd"),
        ("2024-03-01 01:30", "4h", "fnddddddd"[:8]),
    ],
)
def test_which_cost_a_transition_has(counts, start, step, kinds):
    def cost(previous, current, context):
        raise AssertionError

    first, night, day = (lambda *given, name=name: cost(*given) for name in "fnd")
    attack = rk.DayByDay(first=first, night=night, day=day)
    calendar = rk.Calendar(start, step)
    run = attack.start(counts.locations, calendar, people=6)
    task = run._task(counts.values[:9], 0)
    names = {id(first): "f", id(night): "n", id(day): "d"}
    assert "".join(names[id(each)] for each in task._costs(8)) == kinds
    assert task._costs(0) == []


def test_a_day_begins_without_a_step_before(counts):
    seen = []

    def asked(previous, current, context):
        seen.append((context.departs, np.array_equal(previous, current)))
        return rk.attacks.Velocity()(previous, current, context)

    rk.DayByDay(first=asked, night=rk.attacks.Velocity(), day=rk.attacks.Velocity(), workers=1).recover(counts)
    assert seen == [(day.calendar.start, True) for day in counts.days()]


def test_a_gap_is_a_share_of_the_cost(counts, monkeypatch):
    whole = steps.recover_day

    def with_gaps(*given, **named):
        found = whole(*given, **named)
        gaps = np.zeros(len(found.gaps))
        gaps[2] = 0.25 * max(found.costs[2], 1.0)
        gaps[3] = 1e-12
        return steps.DayResult(found.cells, found.costs, gaps)

    monkeypatch.setattr(day_by_day, "recover_day", with_gaps)
    assert rk.Baseline().recover(counts).details.gap == pytest.approx(0.25)
    monkeypatch.setattr(day_by_day, "recover_day", whole)
    assert rk.Baseline().recover(counts).details.gap == 0


def test_own_costs_are_solved_as_cheaply_as_by_the_plain_solver():
    rng = np.random.default_rng(1)
    table = rng.random((5, 5, 5))
    first = rng.integers(0, 5, 20).astype(np.int32)
    after = np.bincount(rng.integers(0, 5, 20), minlength=5)
    values = np.stack([np.bincount(first, minlength=5), after])
    kinds = np.array([steps.PRICED], np.uint8)
    solved = steps.recover_day(values, first, np.zeros((5, 2)), kinds, price=lambda step, o, p: table[o, p])
    _, least = step_with_costs(first, first, after, lambda o, p: table[o, p], np.arange(5))
    assert solved.costs[0] == pytest.approx(least, abs=1e-9)
    assert solved.gaps[0] == pytest.approx(0, abs=1e-9)
    assert np.array_equal(np.bincount(solved.cells[:, 1], minlength=5), after)
    assert table[first, first, solved.cells[:, 1]].sum() == pytest.approx(least)
    with pytest.raises(InvalidData, match="no `price` was given"):
        steps.recover_day(values, first, np.zeros((5, 2)), kinds)


def test_information_gain_by_hand():
    past, today = np.array([[0, 0, 1, 1], [2, 2, 2, 2]], np.int32), np.array([[0, 1], [2, 3]], np.int32)
    found = InformationGain()(past, today, 4)
    # Alike in shares: 0 bits. Nothing shared: the entropy of four steps of one day and two of the other.
    apart = -(4 / 6) * np.log2(4 / 6) - (2 / 6) * np.log2(2 / 6)
    both = -(5 / 6) * np.log2(5 / 6) - (1 / 6) * np.log2(1 / 6) - 2 / 6 * 1.0
    assert found == pytest.approx(np.array([[0.0, apart], [apart, both]]), abs=1e-12)
    linked = link(InformationGain(), [past], today, 4)
    assert linked.order.tolist() == [0, 1]
    assert linked.cost == pytest.approx(both)


def test_a_link_takes_the_best_of_the_days_looked_back_on():
    alike, other = np.array([[0, 0], [1, 1]], np.int32), np.array([[2, 2], [3, 3]], np.int32)
    found = link(InformationGain(), [other, alike], alike[::-1].copy(), 4)
    assert found.order.tolist() == [1, 0]
    assert found.cost == 0
    with pytest.raises(InvalidData, match="linking cost gave a matrix"):
        link(lambda past, today, locations: np.zeros((1, 2)), [alike], alike, 4)
    with pytest.raises(InvalidData, match="without NaN"):
        link(lambda past, today, locations: np.full((2, 2), np.nan), [alike], alike, 4)
