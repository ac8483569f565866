"""Tasks are done once, and give the same wherever they are done."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing import audit
from rekindle.auditing.store import Store
from rekindle.auditing.tasks import Result, Task
from rekindle.auditing.workers import OutOfTime, Runner, workers_of
from rekindle.defences import GeometricNoise, Round, Suppress

CALLS = []


def work(number, note="x"):
    CALLS.append(number)
    return Result({"number": number, "part": number / 3}, {"array": np.arange(number)})


def task(number):
    return Task(work, (number,))


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def run(tasks, store=None, workers=1, **settings):
    """Run tasks, and give their results and the runner."""
    found = {}
    with workers_of(workers, None) as where:
        runner = Runner(store or Store(None), where, **settings)
        runner.run((tasks, found))
    return found, runner


def test_everything_is_done_once(tmp_path):
    calls = []
    tasks = {"a": task(1), "b": task(2), "c": task(1)}
    found, runner = run(tasks, Store(tmp_path), progress=lambda done, total: calls.append((done, total)))
    assert {name: one.numbers["number"] for name, one in found.items()} == {"a": 1, "b": 2, "c": 1}
    assert sorted(CALLS) == [1, 2]
    assert list(dict.fromkeys(calls)) == [(0, 2000), (1000, 2000), (2000, 2000)]
    assert (runner.done, runner.tasks) == (2, 2)
    again, runner = run(tasks | {"d": task(5)}, Store(tmp_path))
    assert sorted(CALLS) == [1, 2, 5]
    assert {name: again[name].numbers for name in found} == {name: one.numbers for name, one in found.items()}


def test_without_a_folder_nothing_is_kept():
    for _ in range(2):
        run({1: task(1)})
    assert CALLS == [1, 1]


def test_processes_give_the_same():
    found, _ = run({number: task(number) for number in range(5)}, workers=2)
    assert {at: one.numbers["number"] for at, one in found.items()} == {n: n for n in range(5)}


def slow_first(number):
    time.sleep(0.5 if number == 0 else 0.0)
    return Result({"number": number})


def test_results_are_in_the_order_in_which_they_were_asked_for():
    found, _ = run({number: Task(slow_first, (number,)) for number in range(4)}, workers=2)
    assert list(found) == [0, 1, 2, 3]


def test_the_first_batches_come_first_and_each_has_its_results():
    one, other = {}, {}
    with workers_of(1, None) as where:
        runner = Runner(Store(None), where)
        runner.run(({"a": task(1), "b": task(2)}, one), ({"a": task(3), "b": task(1)}, other))
        assert CALLS == [1, 2, 3]
        runner.run(({"c": task(3)}, one))
    assert CALLS == [1, 2, 3]
    assert {name: found.numbers["number"] for name, found in one.items()} == {"a": 1, "b": 2, "c": 3}
    assert {name: found.numbers["number"] for name, found in other.items()} == {"a": 3, "b": 1}


def test_results_are_there_as_soon_as_their_task_is_done():
    found, seen = {}, []
    tasks = {at: task(at) for at in range(3)}
    with workers_of(1, None) as where:
        Runner(Store(None), where, finished=lambda: seen.append(sorted(found))).run((tasks, found))
    assert seen == [[0], [0, 1], [0, 1, 2]]


def in_parts(number, told):
    for part in range(1, 4):
        told(part / 4)
    return Result({"number": number})


def test_progress_is_weighted_by_work_and_told_within_a_task():
    calls = []
    tasks = {
        "short": Task(in_parts, (1,), work=1.0, reports=True),
        "long": Task(in_parts, (2,), work=8.0, reports=True),
    }
    run(tasks, expected=[10.0], progress=lambda done, total: calls.append((done, total)))
    assert {total for _, total in calls} == {10_000}
    assert list(dict.fromkeys(done for done, _ in calls)) == [0, 250, 500, 750, 1000, 3000, 5000, 7000, 9000]


def in_slow_parts(number, told):
    told(0.5)
    time.sleep(2.5)
    return Result({"number": number})


def test_processes_tell_how_far_they_are():
    calls = []
    run(
        {number: Task(in_slow_parts, (number,), work=2.0, reports=True) for number in range(2)},
        workers=2,
        progress=lambda done, total: calls.append(done),
    )
    assert 2000 in calls
    assert calls[-1] == 4000


@pytest.mark.parametrize("workers", [1, 2])
def test_when_the_time_is_up_what_is_finished_stays(workers):
    found = {}
    tasks = {"quick": Task(in_parts, (1,), reports=True), "slow": Task(endless, (1,), reports=True)}
    begin = time.monotonic()
    with pytest.raises(OutOfTime), workers_of(workers, None) as where:
        Runner(Store(None), where, until=begin + 8).run((tasks, found))
    assert list(found) == ["quick"]
    assert time.monotonic() - begin < 30


def endless(number, told):
    for _ in range(600):
        time.sleep(0.1)
        told(0.1)


def die_once(number, flag):
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Result({"number": number})


def always_die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore")  # of a process that ends without a word
def test_a_process_that_dies_costs_nothing(tmp_path):
    tasks = {number: Task(die_once, (number, tmp_path / "flag")) for number in range(5)}
    found, runner = run(tasks, Store(tmp_path / "tasks"), workers=2)
    assert (tmp_path / "flag").exists()
    assert {number: one.numbers["number"] for number, one in found.items()} == {number: number for number in range(5)}
    assert runner.done == 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_processes_that_keep_dying_are_given_up():
    with pytest.raises(rk.errors.Stopped, match="keep dying"):
        run({n: Task(always_die, (n,)) for n in range(3)}, workers=2)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_refuses_odd_numbers_of_workers(wrong):
    with pytest.raises(rk.errors.InvalidSetting, match="workers"), workers_of(wrong, None):
        pass


SCRIPT = """
import sys
from tests.auditing.test_workers import city, settings
from rekindle.auditing import audit

if __name__ == "__main__":
    audit(city(), cache=sys.argv[1], workers=2, **settings())
"""


def city():
    return rk.SyntheticCity(people=40, days=3, step="30min").trajectories()


def settings():
    return {
        "attacks": [rk.Baseline(), rk.Enhanced()],
        "defences": [Suppress(below=2), Round(to=2), GeometricNoise(epsilon=2, per="event")],
        "seeds": 2,
    }


@pytest.mark.slow
def test_an_audit_that_is_killed_resumes(tmp_path):
    tasks = tmp_path / "tasks"
    command = [sys.executable, "-c", SCRIPT, str(tasks)]
    process = subprocess.Popen(command, start_new_session=True, cwd=Path(__file__).parents[2])
    try:
        for _ in range(2400):
            done = len(list(tasks.glob("[!.]*.npz"))) if tasks.exists() else 0
            if done >= 12 or process.poll() is not None:
                break
            time.sleep(0.05)
        assert process.poll() is None, "the audit ended before it could be killed"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in tasks.glob("[!.]*.npz")}
    assert len(finished) >= 12

    def again(**more):
        return json.dumps(audit(city(), workers=1, **settings(), **more).to_json(), sort_keys=True)

    resumed = again(cache=tasks)
    assert resumed == again()
    after = {path.name: path.stat().st_mtime_ns for path in tasks.glob("[!.]*.npz")}
    assert finished.items() < after.items()
