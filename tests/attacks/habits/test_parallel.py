"""Parts of the work on threads, and on processes: the same results, in order."""

import time

import joblib
import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks.habits import parallel, schedule
from rekindle.attacks.habits.parallel import in_parallel
from rekindle.attacks.habits.schedule import Answer


def twice(answer, late, stopped):
    time.sleep(late)
    return None if stopped() else Answer(2 * answer.tracks, answer.score)


def first(tracks, stopped):
    tracks[0] = 1  # which can be written to, wherever it came from
    return tracks[0]


def never():
    return False


def test_results_come_in_order_and_few_are_begun_ahead():
    begun = []

    def tasks():
        for number in range(12):
            begun.append(number)
            yield Answer(np.array([number]), 0.0), 0.01 * (number % 3)

    found = in_parallel(twice, tasks(), 2, never)
    assert next(found).tracks.tolist() == [0]
    assert len(begun) == 5
    assert [each.tracks[0] for each in found] == [2 * number for number in range(1, 12)]


def test_a_stop_reaches_what_is_under_way():
    found = in_parallel(twice, ((Answer(np.zeros(1), 0.0), 0.05) for _ in range(9)), 2, lambda: True)
    assert list(found) == [None] * 9
    found = in_parallel(twice, ((Answer(np.zeros(1), 0.0), 0.05) for _ in range(9)), 2, never)
    assert next(found) is not None
    found.close()
    assert list(found) == []


def test_arrays_that_cannot_be_written_to_are_copied():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    free = np.zeros(3)
    answer, tuples = parallel._own((Answer(fixed, 1.0), [free, (fixed,)]))
    assert answer.tracks.flags.writeable
    assert answer.score == 1.0
    assert tuples[0] is free
    assert tuples[1][0].flags.writeable
    assert parallel.do_part(first, (fixed,)) == 1
    assert not fixed[0]


@pytest.mark.slow
def test_the_same_bytes_on_processes(monkeypatch):
    counts = random_truth(np.random.default_rng(2), people=60, places=16, steps=96, step="1h", stay=0.8).counts()
    monkeypatch.setattr(schedule, "MOST_PEOPLE_AT_ONCE", 0)
    monkeypatch.setattr(schedule, "BLOCK_PEOPLE", 20)
    here = rk.Habits(effort="low", workers=1).recover(counts)
    with joblib.parallel_config(backend="loky"):
        there = rk.Habits(effort="low", workers=2).recover(counts)
    assert there.trajectories == here.trajectories
    assert np.array_equal(there.confidence, here.confidence)
