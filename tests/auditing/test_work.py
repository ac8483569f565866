"""Cells are done once, kept, and the same wherever they are done."""

import os
import signal

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing.tasks import Result
from rekindle.auditing.work import Store, Task, digest, run, workers_of
from rekindle.model import Release

CALLS = []


def work(number, note="x"):
    CALLS.append(number)
    return Result({"number": number, "part": number / 3}, {"array": np.arange(number)})


def task(number):
    return Task(("test", number), work, (number,))


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def here(tasks):
    with workers_of(1, None) as workers:
        yield from workers(tasks)


def test_store_gives_back_what_it_got(tmp_path):
    store = Store(tmp_path / "cells")
    assert store.get(task(3)) is None
    store.put(task(3), work(3))
    found = store.get(task(3))
    assert found.numbers == {"number": 3, "part": 1.0}
    assert found.arrays["array"].tolist() == [0, 1, 2]
    assert store.get(task(4)) is None
    assert [path.suffix for path in (tmp_path / "cells").iterdir()] == [".npz"]


def test_a_damaged_file_is_as_good_as_none(tmp_path):
    store = Store(tmp_path)
    store.put(task(3), work(3))
    path = next(tmp_path.iterdir())
    whole = path.read_bytes()
    for damaged in (b"", b"no zip", whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(damaged)
        assert store.get(task(3)) is None
    path.write_bytes(whole)
    assert store.get(task(3)) is not None


def test_a_pickle_in_the_store_is_not_opened(tmp_path):
    store = Store(tmp_path)
    np.savez(tmp_path / f"{task(3).key}.npz", numbers=np.array([{"a": 1}], dtype=object))
    assert store.get(task(3)) is None


def test_store_is_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(rk.errors.InvalidData, match="folder"):
        Store(tmp_path / "file")


def test_everything_is_done_once(tmp_path):
    ticks = []
    tasks = [task(1), task(2), task(1)]
    found = run(tasks, store=Store(tmp_path), workers=here, finished=lambda: ticks.append(1))
    assert [one.numbers["number"] for one in found] == [1, 2, 1]
    assert sorted(CALLS) == [1, 2]
    assert len(ticks) == 3
    again = run([*tasks, task(5)], store=Store(tmp_path), workers=here, finished=lambda: ticks.append(1))
    assert sorted(CALLS) == [1, 2, 5]
    assert len(ticks) == 7
    assert [one.numbers for one in again[:3]] == [one.numbers for one in found]


def test_without_a_folder_nothing_is_kept():
    run([task(1)], store=Store(None), workers=here)
    run([task(1)], store=Store(None), workers=here)
    assert CALLS == [1, 1]


def test_keys_tell_tasks_apart():
    assert task(1).key == task(1).key
    assert task(1).key != task(2).key
    assert task(1).key != Task(("test", 1), here, (1,)).key


def test_digest_sees_every_part():
    truth = random_truth(np.random.default_rng(0), people=4, places=4, steps=12)
    counts = truth.counts()
    release = Release.of(counts)
    moved = rk.Locations(counts.locations.xy_km + 1, counts.locations.ids)
    renamed = rk.Locations(counts.locations.xy_km, ["a", "b", "c", "d"])
    named = rk.Trajectories(truth.cells, truth.locations, truth.calendar, "abcd")
    later = rk.Calendar("2024-03-02", "2h", 12)
    changed = counts.values.copy()
    changed[0] = changed[0][::-1]
    all_of_them = [
        truth,
        counts,
        release,
        named,
        rk.Counts(counts.values, moved, counts.calendar),
        rk.Counts(counts.values, renamed, counts.calendar),
        rk.Counts(counts.values, counts.locations, later),
        rk.Counts(changed, counts.locations, counts.calendar),
        Release(release.values, release.locations, release.calendar, ["done"]),
        None,
    ]
    assert len({digest(one) for one in all_of_them}) == len(all_of_them)
    assert digest(counts) == digest(truth.counts())


def test_processes_give_the_same():
    with workers_of(2, None) as workers:
        found = dict(workers([task(number) for number in range(5)]))
    assert {at: one.numbers["number"] for at, one in found.items()} == {n: n for n in range(5)}


def die_once(number, flag):
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Result({"number": number})


def always_die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")  # of a process that ends without a word
def test_a_process_that_dies_costs_nothing(tmp_path):
    tasks = [Task((number,), die_once, (number, tmp_path / "flag")) for number in range(5)]
    ticks = []
    with workers_of(2, None) as workers:
        found = run(tasks, store=Store(tmp_path / "cells"), workers=workers, finished=lambda: ticks.append(1))
    assert (tmp_path / "flag").exists()
    assert [one.numbers["number"] for one in found] == list(range(5))
    assert len(ticks) == 5


@pytest.mark.filterwarnings("ignore")
def test_processes_that_keep_dying_are_given_up():
    with workers_of(2, None) as workers, pytest.raises(rk.errors.Stopped, match="keep dying"):
        run([Task((n,), always_die, (n,)) for n in range(3)], store=Store(None), workers=workers)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_refuses_odd_numbers_of_workers(wrong):
    with pytest.raises(rk.errors.InvalidSetting, match="workers"), workers_of(wrong, None):
        pass
