"""What would not fit into memory is refused before it starts."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.small import divide, random_truth

import rekindle as rk
from rekindle.cli import main
from rekindle.memory import (
    PROCESS,
    comparing_bytes,
    described_size,
    evaluation_bytes,
    free_memory,
    parse_size,
    points_bytes,
    reading_bytes,
)

GROUP = Path("/sys/fs/cgroup/memory/rekindle-test")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A million people in two places: a small file that takes gigabytes to attack."""
    home = tmp_path_factory.mktemp("crowd")
    values = np.full((24, 2), 500_000)
    counts = rk.Counts(values, rk.Locations(np.array([[0.0, 0.0], [1.0, 0.0]])), rk.Calendar("2024-01-01", "1h"))
    rk.write_dataset(home / "data", counts=counts)
    return home


def start(home, *arguments, **settings):
    command = [sys.executable, "-m", "rekindle", *map(str, arguments)]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, **settings)


def test_under_the_limit_of_the_shell(crowd):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))

    found = start(crowd, "attack", "data", "--out", "out", preexec_fn=limit)
    assert found.returncode == 2, found
    assert "enhanced on 1,000,000 people, 24 steps and 2 locations needs about 3." in found.stderr
    assert "the limit of the shell (ulimit -v) leaves" in found.stderr
    assert "Attack fewer days with --from and --to" in found.stderr
    assert not (crowd / "out").exists()


@pytest.mark.slow
def test_under_the_limit_of_a_control_group(crowd):
    try:
        GROUP.mkdir()
        (GROUP / "memory.limit_in_bytes").write_text(str(2 * 2**30))
    except OSError:
        pytest.skip("a control group of version 1 takes root")
    try:
        join = lambda: (GROUP / "cgroup.procs").write_text(str(os.getpid()))  # noqa: E731
        found = start(crowd, "attack", "data", "--out", "out", preexec_fn=join)
    finally:
        GROUP.rmdir()
    assert found.returncode == 2, found
    assert "but the control group leaves" in found.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("attack", "data", "--out", "out"), "Reading data needs about"),
        (("evaluate", "data", "data"), "Comparing 1,000,000 people at 24 steps with the truth needs about"),
        (("audit", "data", "--out", "out"), "Reading data needs about"),
        (("prepare", "points", "data/counts.parquet", "out"), "Preparing data/counts.parquet needs about"),
    ],
)
def test_a_limit_of_ones_own(crowd, monkeypatch, capsys, command, words):
    monkeypatch.chdir(crowd)
    with pytest.raises(SystemExit) as stop:
        main([*command, "--memory-limit", "10MB"])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert words in message
    assert "but --memory-limit allows 10 MB." in message
    assert not (crowd / "out").exists()


def test_a_dataset_in_parts_needs_as_much(tmp_path, monkeypatch, capsys):
    truth = random_truth(np.random.default_rng(3), people=20, places=6, steps=96, step="1h")
    data = tmp_path / "data"
    rk.write_dataset(data, counts=truth.counts(), truth=truth, flows=truth.flows())
    settings = [{}, {"truth": False}, {"people": 5}, {"days": 2}, {"people": 5, "days": 2}, {"days": 9}]
    needs = [reading_bytes(data, **one) for one in settings]
    size = described_size(data)
    for name in ("counts", "flows", "truth", "locations"):
        divide(data, name)
    assert [reading_bytes(data, **one) for one in settings] == needs
    assert described_size(data) == size == (20, 96, 6, 4)
    whole, counts, few, short, both, longer = needs
    assert whole == longer > counts > PROCESS
    assert whole > short > both
    assert whole > few > both > PROCESS
    monkeypatch.chdir(tmp_path)
    for command in ("attack", "audit", "recommend"):
        with pytest.raises(SystemExit):
            main([command, "data", "--out", "out", "--memory-limit", f"{PROCESS // 2**10 + 1}k"])
        assert "Reading data needs about" in capsys.readouterr().err


def test_sizes():
    assert [parse_size(text) for text in ("4GB", "1.5 g", "500MB", "2GiB", "10k", "7")] == [
        4 * 2**30, 3 * 2**29, 500 * 2**20, 2 * 2**30, 10 * 2**10, 7,
    ]  # fmt: skip
    for text in ("much", "0", "-1GB", "4XB", ""):
        with pytest.raises(rk.errors.InvalidSetting, match="`memory_limit` is"):
            parse_size(text)


def test_the_machine_says_what_is_free():
    free = {whose: size for size, whose in free_memory()}
    assert free["the machine has free"] > 2**20


def test_more_data_need_more(tmp_path):
    assert evaluation_bytes(2_000, 1_000, 100) > evaluation_bytes(1_000, 1_000, 100) > evaluation_bytes(10, 10, 10)
    # Beyond a size, people cost as much as their points, and not all pairs of them.
    assert comparing_bytes(200_000, 100) < 2 * comparing_bytes(100_000, 100)
    (tmp_path / "a.csv").write_bytes(b"x" * 1_000_000)
    assert points_bytes(str(tmp_path / "*.csv")) == points_bytes(str(tmp_path)) > points_bytes(str(tmp_path / "no"))
    assert points_bytes(str(tmp_path), "spark") == points_bytes(
        str(tmp_path / "no"), "spark"
    )  # its workers have them
    counts = rk.SyntheticCity(people=20, days=2, step="1h").trajectories().counts()
    needs = [rk.Habits(effort=effort, workers=1).memory_bytes(counts) for effort in ("low", "normal", "high")]
    assert needs == sorted(needs)
    assert needs[0] < needs[-1]
