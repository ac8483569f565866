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
from rekindle.auditing.store import Store, Task
from rekindle.auditing.tasks import Result
from rekindle.auditing.workers import Runner, workers_of
from rekindle.defences import GeometricNoise, Round, Suppress

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


def test_everything_is_done_once(tmp_path):
    calls = []
    runner = Runner(Store(tmp_path), here, lambda done, total: calls.append((done, total)))
    tasks = {"a": task(1), "b": task(2), "c": task(1)}
    found = runner.run(tasks)
    assert {name: one.numbers["number"] for name, one in found.items()} == {"a": 1, "b": 2, "c": 1}
    assert sorted(CALLS) == [1, 2]
    assert calls == [(0, 2), (1, 2), (2, 2)]
    assert runner.run({"x": task(2)})["x"] is found["b"]
    assert sorted(CALLS) == [1, 2]
    again = Runner(Store(tmp_path), here).run(tasks | {"d": task(5)})
    assert sorted(CALLS) == [1, 2, 5]
    assert {name: again[name].numbers for name in found} == {name: one.numbers for name, one in found.items()}


def test_without_a_folder_nothing_is_kept():
    for _ in range(2):
        Runner(Store(None), here).run({1: task(1)})
    assert CALLS == [1, 1]


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
    tasks = {number: Task((number,), die_once, (number, tmp_path / "flag")) for number in range(5)}
    calls = []
    with workers_of(2, None) as workers:
        runner = Runner(Store(tmp_path / "tasks"), workers, lambda done, total: calls.append((done, total)))
        found = runner.run(tasks)
    assert (tmp_path / "flag").exists()
    assert {number: one.numbers["number"] for number, one in found.items()} == {number: number for number in range(5)}
    assert calls == [(done, 5) for done in range(6)]


@pytest.mark.filterwarnings("ignore")
def test_processes_that_keep_dying_are_given_up():
    with workers_of(2, None) as workers, pytest.raises(rk.errors.Stopped, match="keep dying"):
        Runner(Store(None), workers).run({n: Task((n,), always_die, (n,)) for n in range(3)})


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
