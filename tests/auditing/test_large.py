"""A large task is done in parts by all workers, beside small ones: without deadlock, within the cores, and once."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekindle as rk
from rekindle.attacks import Attack
from rekindle.attacks.habits import schedule
from rekindle.attacks.habits.parallel import in_parallel
from rekindle.auditing import audit, workers
from rekindle.auditing.clock import processor_time
from rekindle.auditing.large import Large
from rekindle.auditing.store import Store
from rekindle.auditing.tasks import Result, Task
from rekindle.auditing.workers import OutOfTime, Runner, Workers, workers_of

WORK = 100.0


@dataclass(frozen=True)
class InParts(Attack):
    """An attack of so many stages of parts."""

    in_parts: ClassVar[bool] = True
    stages: tuple[int, ...] = (5, 3)

    def settings(self):
        return {"stages": self.stages}


def never():
    return False


def square(meter, number, stopped):
    with meter:
        return number**2, os.getpid()


def spread(attack, meter, number, told):
    found = []
    for at, parts in enumerate(attack.stages):
        with meter:
            time.sleep(0.001)
        found += in_parallel(partial(square, meter), ((number + one,) for one in range(parts)), 1, never)
        told((at + 1) / len(attack.stages))
    squares, processes = zip(*found, strict=True) if found else ((), ())
    return Result({"squares": list(squares), "elsewhere": sorted({*processes} - {os.getpid()})})


def small(meter, number):
    with meter:
        return Result({"number": number})


class Meter:
    """Counts how many are at work at once in this process, a little while each; elsewhere it counts nothing."""

    def __init__(self, seconds=0.001):
        self.now = self.most = 0
        self.lock, self.seconds = threading.Lock(), seconds

    def __getstate__(self):
        return {"seconds": self.seconds}

    def __setstate__(self, state):
        self.__init__(**state)

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)

    def __exit__(self, *_):
        with self.lock:
            self.now -= 1

    def __repr__(self):
        return "meter"


class Threads(Workers):
    """Threads as workers, so that what runs at once can be counted."""

    def __init__(self, count):
        self.cores = self.count = count
        self._pool = ThreadPoolExecutor(count)
        self.forgotten = 0

    def prepare(self):
        pass

    def submit(self, task, told):
        return self._pool.submit(task.do, told)

    def forget(self):
        self.forgotten += 1


def large(meter, number=0, stages=(5, 3), work=WORK):
    return Task(spread, (InParts(stages), meter, number), work, reports=True)


def expected(stages, number=0):
    return [(number + one) ** 2 for parts in stages for one in range(parts)]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 5),
    st.lists(st.lists(st.integers(0, 6), max_size=3), max_size=4),
    st.lists(st.floats(0.1, 200.0), max_size=8),
    st.randoms(use_true_random=False),
)
def test_tasks_of_any_size_are_done_within_the_cores(count, stages, others, random):
    meter, found, calls = Meter(), {}, []
    tasks = {
        ("large", at): large(meter, at, tuple(parts), random.choice((20, 200))) for at, parts in enumerate(stages)
    }
    tasks |= {("small", at): Task(small, (meter, at), work) for at, work in enumerate(others)}
    names = list(tasks)
    random.shuffle(names)
    where = Threads(count)
    Runner(Store(None), where, lambda done, total: calls.append((done, total))).run(
        ({name: tasks[name] for name in names}, found)
    )
    assert list(found) == names
    for (kind, at), one in found.items():
        wanted = {"number": at} if kind == "small" else {"squares": expected(stages[at], at), "elsewhere": []}
        assert one.numbers == wanted
    assert meter.most <= count
    assert sorted(done for done, _ in calls) == [done for done, _ in calls]
    if calls:
        assert calls[-1][0] == calls[-1][1]


def test_a_large_task_leaves_one_core_to_itself():
    meter = Meter(0.05)
    tasks = {"large": large(meter, stages=(1, 1, 1))} | {at: Task(small, (meter, at), 1.0) for at in range(12)}
    Runner(Store(None), Threads(3)).run((tasks, {}))
    assert meter.most == 3


def test_the_parts_go_to_processes_and_what_is_stored_is_not_done_again(tmp_path):
    tasks = {0: Task(small, (Meter(), 1), 1.0), 1: large(Meter(0.05)), 2: Task(small, (Meter(), 2), 1.0)}
    found = {}
    with workers_of(2, None) as where:
        Runner(Store(tmp_path), where).run((tasks, found))
    assert found[1].numbers["squares"] == expected((5, 3))
    assert len(found[1].numbers["elsewhere"]) == 2
    again = {}
    Runner(Store(tmp_path), None).run((tasks, again))
    assert again[1].numbers == found[1].numbers


def test_small_or_equal_tasks_are_not_spread():
    for works in ([5.0], [WORK] * 4):
        where, found = Threads(2), {}
        Runner(Store(None), where).run(({at: large(Meter(), at, work=one) for at, one in enumerate(works)}, found))
        # Of equal ones only the last is, when it is all that is left.
        assert where.forgotten <= 1
        assert len(works) > 1 or not where.forgotten


def die_once(meter, flag, number, stopped):
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def spread_and_die(attack, flag):
    return Result({"found": list(in_parallel(partial(die_once, None, flag), ((n,) for n in range(6)), 1, never))})


@pytest.mark.filterwarnings("ignore")  # of a process that ends without a word
def test_a_process_that_dies_costs_nothing(tmp_path):
    found = {}
    with workers_of(2, None) as where:
        Runner(Store(None), where).run(({0: Task(spread_and_die, (InParts(), tmp_path / "flag"), WORK)}, found))
    assert (tmp_path / "flag").exists()
    assert found[0].numbers == {"found": list(range(6))}


def fail(number, stopped):
    raise rk.errors.Stopped("no more")


def spread_and_fail(attack):
    try:
        return Result({"found": list(in_parallel(fail, ((1,) for _ in range(3)), 1, never))})
    except rk.errors.Stopped:
        return Result({"found": "half of it"})


def test_a_part_that_fails_is_the_end_whatever_the_attack_makes_of_it():
    with pytest.raises(rk.errors.Stopped, match="no more"):
        Runner(Store(None), Threads(2)).run(({0: Task(spread_and_fail, (InParts(),), WORK)}, {}))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutOfTime])
def test_an_interruption_ends_the_attack_too(error):
    before, told = threading.active_count(), []

    def progress(done, total):
        told.append(done)
        if done:
            raise error

    where = Threads(2)
    with pytest.raises(error):
        Runner(Store(None), where, progress).run(({0: large(Meter(0.1), stages=(1,) * 100)}, {}))
    where._pool.shutdown(wait=True)
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.02)
    assert threading.active_count() <= before


def spin(number, stopped):
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass


def spread_and_time(attack):
    begin = processor_time()
    list(in_parallel(spin, ((one,) for one in range(4)), 1, never))
    return Result({"seconds": processor_time() - begin})


def test_the_processor_time_of_parts_elsewhere_counts(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    found = {}
    with workers_of(2, None) as where:
        Runner(Store(None), where).run(({0: Task(spread_and_time, (InParts(),), WORK)}, found))
    assert found[0].numbers["seconds"] >= 0.4


@pytest.mark.slow
def test_an_audit_has_the_same_bytes_where_habits_is_spread(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setattr(schedule, "MOST_PEOPLE_AT_ONCE", 0)  # in blocks, as many people are
    monkeypatch.setattr(schedule, "BLOCK_PEOPLE", 10)
    monkeypatch.setattr(workers, "_LARGE", 0.0)
    monkeypatch.setattr(rk.Habits, "work", lambda self, counts: WORK)
    truth = rk.SyntheticCity(people=40, days=3, step="30min").trajectories()
    spread_over = []
    monkeypatch.setattr(workers, "Large", lambda *given: spread_over.append(1) or Large(*given))

    def numbers(count):
        found = audit(truth, attacks=[rk.Habits(effort="low")], defences=[], seeds=1, thorough=False, workers=count)
        return json.dumps(found.to_json(), sort_keys=True)

    here = numbers(1)
    assert not spread_over
    assert numbers(2) == here
    assert spread_over
