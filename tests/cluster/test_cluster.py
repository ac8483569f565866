"""An audit, and a large attack, on a Dask cluster: a real scheduler and two worker processes, of which one dies."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest

import rekindle as rk
from rekindle.attacks.habits import schedule
from rekindle.auditing import audit, workers
from rekindle.defences import Round

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # warnings of the parts that Dask is made of


def start(log, *arguments, **settings):
    with open(log, "w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments], stdout=file, stderr=file, cwd=log.parent, **settings
        )


def kill(process):
    if process.poll() is None:
        process.kill()
    process.wait()


class Cluster:
    """A scheduler and worker processes without nannies, so that a dead worker stays dead."""

    def __init__(self, folder, workers):
        log = folder / "scheduler.log"
        scheduler = "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard"
        self.processes = [start(log, *scheduler)]
        self.address = None
        end = time.monotonic() + 60
        while self.address is None and time.monotonic() < end:
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
            self.address = found and found[1]
            time.sleep(0.1)
        assert self.address, log.read_text()
        for number in range(workers):
            self.processes.append(
                start(
                    folder / f"worker{number}.log",
                    "distributed.cli.dask_worker",
                    self.address,
                    "--no-nanny",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--local-directory",
                    str(folder),
                    env=os.environ | {"NUMBA_NUM_THREADS": "1"},
                )
            )

    def close(self):
        for process in reversed(self.processes):
            kill(process)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # so that the same audit has the same bytes
    found = Cluster(tmp_path, 2)
    from distributed import Client

    with Client(found.address, set_as_default=False, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
    yield found
    found.close()


def city():
    return rk.SyntheticCity(people=40, days=3, step="30min").trajectories()


def numbers(**settings):
    found = audit(city(), attacks=[rk.Baseline(), rk.Enhanced()], defences=[Round(to=2)], seeds=2, **settings)
    return json.dumps(found.to_json(), sort_keys=True)


def test_same_numbers_though_a_worker_dies(cluster, tmp_path):
    calls = []

    def progress(done, total):
        calls.append((done, total))
        if done > total / 5 and cluster.processes[-1].poll() is None:
            os.kill(cluster.processes[-1].pid, signal.SIGKILL)

    found = numbers(cluster=cluster.address, cache=tmp_path / "tasks", progress=progress)
    assert cluster.processes[-1].wait(timeout=10) == -signal.SIGKILL
    done, totals = zip(*calls, strict=True)
    # Nothing is lost and nothing counts twice.
    assert sorted(done) == list(done)
    assert done[-1] == totals[-1]
    assert found == numbers(workers=1)


def test_the_parts_of_one_attack_though_a_worker_dies(cluster, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(schedule, "MOST_PEOPLE_AT_ONCE", 0)  # in blocks, as many people are
    monkeypatch.setattr(schedule, "BLOCK_PEOPLE", 10)
    counts = city().counts()
    here = rk.Habits(effort="low", workers=1).recover(counts)

    def progress(done, total):
        if cluster.processes[-1].poll() is None:
            os.kill(cluster.processes[-1].pid, signal.SIGKILL)

    with Client(cluster.address, timeout=60), joblib.parallel_config(backend="dask"):
        there = rk.Habits(effort="low", workers=2).recover(counts, progress=progress)
    assert cluster.processes[-1].wait(timeout=10) == -signal.SIGKILL
    assert there.trajectories == here.trajectories
    assert np.array_equal(there.confidence, here.confidence)


def test_a_large_task_of_an_audit_though_a_worker_dies(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "MOST_PEOPLE_AT_ONCE", 0)  # in blocks, as many people are
    monkeypatch.setattr(schedule, "BLOCK_PEOPLE", 10)
    monkeypatch.setattr(rk.Habits, "work", lambda self, counts: 100.0)  # nearly all of the work
    spread, handed, pid = [], [], cluster.processes[-1].pid

    class Watched(workers.Large):
        def __init__(self, *given):
            spread.append(self)
            super().__init__(*given)

        def hand_over(self, job, found):
            if not handed:
                os.kill(pid, signal.SIGKILL)
            handed.append(job)
            super().hand_over(job, found)

    monkeypatch.setattr(workers, "Large", Watched)
    one = {"attacks": [rk.Habits(effort="low")], "defences": [], "seeds": 1, "thorough": False, "membership": "none"}

    def numbers(**settings):
        return json.dumps(audit(city(), **one, **settings).to_json(), sort_keys=True)

    there = numbers(cluster=cluster.address, cache=tmp_path / "tasks")
    assert cluster.processes[-1].wait(timeout=10) == -signal.SIGKILL
    parts = len(handed)
    assert len(spread) == 1
    assert parts == 6 + 4  # answers and voters, blocks
    assert there == numbers(cluster=cluster.address, cache=tmp_path / "tasks")
    assert len(handed) == parts
    assert there == numbers(workers=1)


def test_a_cluster_that_is_not_there(monkeypatch):
    monkeypatch.setattr(workers, "_REACH_SECONDS", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"tcp://127.0.0.1:{port}", "nonsense://x"):
        with pytest.raises(rk.errors.InvalidSetting, match="cannot be reached"):
            numbers(cluster=address)


def test_a_cluster_without_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_REACH_SECONDS", 3)
    found = Cluster(tmp_path, 0)
    try:
        time.sleep(0.2)
        with pytest.raises(rk.errors.InvalidSetting, match="has no workers"):
            numbers(cluster=found.address)
    finally:
        found.close()
