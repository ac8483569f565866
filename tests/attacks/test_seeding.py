"""The published code's first_step_counts, for comparison: every day begins with the counts of the very first step."""

from datetime import datetime

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(4)
    return random_truth(rng, people=9, places=12, steps=70, step="2h", start="2024-03-01 04:00").counts()


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_only_later_midnights_miss_the_counts(kind, counts):
    found = kind(first_step_counts="first_day").recover(counts).trajectories.counts().values
    midnights = [day.start for day in counts.calendar.days()]
    assert (found[midnights] == counts.values[0]).all()
    others = np.setdiff1d(np.arange(counts.steps), midnights)
    assert np.array_equal(found[others], counts.values[others])
    assert (counts.values[midnights] != counts.values[0]).any(), "these counts cannot tell the two apart"


def test_first_day_and_default_follow_the_text(counts):
    text, code = rk.Enhanced().recover(counts), rk.Enhanced(first_step_counts="first_day").recover(counts)
    day = counts.calendar.day(0)
    assert np.array_equal(text.trajectories.cells[:, day], code.trajectories.cells[:, day])
    assert rk.Enhanced() == rk.Enhanced(first_step_counts="each_day")
    assert text.trajectories.counts() == counts


def test_a_day_is_walked_from_the_seeds():
    """Two towers: at the second midnight both people are in b, but the walk begins with one in each."""
    places = rk.Locations([[0, 0], [5, 0]], ["a", "b"])
    counts = rk.Counts([[1, 1], [1, 1], [0, 2], [2, 0]], places, rk.Calendar("2024-01-01", "12h"))
    found = rk.Enhanced(first_step_counts="first_day").recover(counts)
    assert sorted(found.trajectories.cells[:, 2:].tolist()) == [[0, 0], [1, 0]]
    assert found.details.step_costs[3] == 5.0


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_batches_and_a_saved_run_give_the_same(kind, counts, tmp_path):
    attack = kind(first_step_counts="first_day", seed=1, workers=2)
    whole = attack.recover(counts).trajectories
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    days = list(counts.days())
    for day in days[:2]:
        run.feed(day)
    run.save(tmp_path / "run.npz")
    resumed = rk.resume(tmp_path / "run.npz")
    assert resumed.attack.first_step_counts == "first_day"
    resumed.feed(counts.part(slice(counts.calendar.day(2).start, counts.steps)))
    assert resumed.trajectories() == whole


def test_other_seedings_are_refused():
    with pytest.raises(
        rk.errors.InvalidSetting, match="`first_step_counts` is 'last_day'; choose one of each_day, first_day"
    ):
        rk.Enhanced(first_step_counts="last_day")


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_the_machine_begins_at_night(kind, counts):
    late = rk.Counts(counts.values, counts.locations, rk.Calendar("2024-03-01 06:40", "40min"))
    with pytest.raises(
        rk.errors.InvalidData, match=r"begin at 2024-03-01 06:40.*Leave out the steps before the next midnight"
    ):
        kind().recover(late)
    assert kind().recover(late.between(start=datetime(2024, 3, 2))).trajectories.calendar.start.hour == 0
    for other in (rk.Habits(effort="low"), rk.Chance(), rk.Naive()):
        assert other.recover(late).trajectories.counts() == late
