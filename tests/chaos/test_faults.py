"""Disks that are full, read-only or gone, two processes on one output, and impatient hands: all for real."""

import os
import re
import signal
import stat
import subprocess
import time

import pytest
from tests.chaos.harness import content, start

import rekindle as rk
from rekindle.cli import main
from rekindle.io import RecoveryFolder

pytestmark = pytest.mark.slow


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0


def mount(*arguments):
    """Mount something, or skip the test where that is not allowed."""
    if os.geteuid() or subprocess.run(["mount", *map(str, arguments)], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system takes root")


@pytest.fixture
def disk(tmp_path):
    """Where a small disk may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    yield folder
    while not subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False).returncode:
        pass


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """A dataset, and what an undisturbed attack writes."""
    home = tmp_path_factory.mktemp("city")
    truth = rk.SyntheticCity(people=60, days=12, step="20min", width_km=6, height_km=6).trajectories()
    rk.write_dataset(home / "city", counts=truth.counts(), truth=truth)
    assert run("attack", home / "city", "--out", home / "whole") == 0
    return home / "city", content(home / "whole")


def whole_days(folder):
    return rk.read_recovery(folder).trajectories.calendar.number_of_days


# Disks


def test_a_full_disk(city, disk, capsys):
    data, whole = city
    size = sum(map(len, whole.values()))
    mount("-t", "tmpfs", "-o", f"size={size // 2}", "none", disk)
    assert run("attack", data, "--out", disk / "out") == 2
    message = capsys.readouterr().err
    assert "No space left on device" in message
    assert "The disk is full: make room" in message
    assert "--resume" in message
    assert "Traceback" not in message
    days = whole_days(disk / "out")
    assert 1 <= days < 12
    assert not [name for name in content(disk) if "/." in name or name.startswith(".")]
    mount("-o", f"remount,size={20 * size}", disk)
    assert run("attack", data, "--out", disk / "out", "--resume") == 0
    assert content(disk / "out") == whole


@pytest.mark.parametrize("command", ["audit", "prepare", "evaluate", "defend"])
def test_a_full_disk_and_the_other_commands(city, disk, tmp_path, capsys, command):
    data, _ = city
    if command == "prepare":
        rows = (f"p{person},2024-01-0{day} {hour:02}:{minute:02}:00,48.{person:02}{minute:02},2.{hour:02}" for person in range(9) for day in (1, 2) for hour in range(24) for minute in range(0, 60, 10))  # fmt: skip
        (tmp_path / "points.csv").write_text("uid,datetime,lat,lng\n" + "\n".join(rows) + "\n")
    else:
        assert run("attack", data, "--out", tmp_path / "recovery", "--to", "2024-01-02") == 0
    mount("-t", "tmpfs", "-o", "size=8k", "none", disk)
    few = ("--attack", "baseline", "--defence", "none", "--seeds", 1, "--workers", 1)
    commands = {
        "audit": ("audit", data, "--out", disk / "out", *few),
        "prepare": ("prepare", "points", tmp_path / "points.csv", disk / "out"),
        "evaluate": ("evaluate", tmp_path / "recovery", data, "--seeds", 0, "--json", disk / "out.json"),
        "defend": ("defend", data, "--suppress-below", 2, "--out", disk / "out.csv"),
    }
    capsys.readouterr()
    assert run(*commands[command]) == 2
    assert "The disk is full: make room" in capsys.readouterr().err
    assert [name for name in content(disk) if name != "out/rekindle.json" and not name.startswith("out/tasks/")] == []
    assert not [name for name in content(disk) if "/." in name]
    mount("-o", "remount,size=50m", disk)
    assert run(*commands[command]) == 0


def test_a_read_only_folder(city, disk, tmp_path, capsys):
    data, _ = city
    mount("-t", "tmpfs", "-o", "ro", "none", disk)
    began = time.monotonic()
    for command in (
        ("attack", data, "--out", disk / "out"),
        ("audit", data, "--out", disk / "out"),
        ("defend", data, "--suppress-below", 2, "--out", disk / "out.csv"),
        ("demo", "--out", disk / "out"),
        ("reproduce", "--quick", "--out", disk / "out"),
    ):
        assert run(*command) == 2
        message = capsys.readouterr().err
        assert f"{disk / 'out'}" in message
        assert "it cannot be written (Read-only file system). Choose another folder" in message
    assert time.monotonic() - began < 20  # it is said before the work, not after


def test_an_unplugged_output(city, disk, tmp_path, capsys, monkeypatch):
    """The disk goes away between two days, and comes back."""
    data, whole = city
    (tmp_path / "usb").mkdir()
    mount("--bind", tmp_path / "usb", disk)
    add = RecoveryFolder.add

    def unplug(self, *arguments, **settings):
        if self.days == 3:
            subprocess.run(["umount", "-l", str(disk)], check=True)
        add(self, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(RecoveryFolder, "add", unplug)
        assert run("attack", data, "--out", disk / "out") == 2
    message = capsys.readouterr().err
    assert "Is its disk still connected?" in message
    assert "3 finished days are kept" in message
    assert list(disk.iterdir()) == []
    mount("--bind", tmp_path / "usb", disk)
    assert whole_days(disk / "out") == 3
    assert run("attack", data, "--out", disk / "out", "--resume") == 0
    assert content(disk / "out") == whole
    assert list(disk.glob(".*")) == []


# Processes


def wait_for(path, process):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_two_processes(city, tmp_path, capsys):
    data, whole = city
    process = start("attack", data, "--out", "out", cwd=tmp_path)
    try:
        wait_for(tmp_path / "out" / "recovery.json", process)
        process.send_signal(signal.SIGSTOP)
        for command in (
            ("attack", data, "--out", tmp_path / "out", "--resume"),
            ("attack", data, "--out", tmp_path / "out"),
            ("prepare", "points", data / "counts.parquet", tmp_path / "out", "--overwrite"),
        ):
            assert run(*command) == 2
            message = capsys.readouterr().err
            if command[0] == "attack":
                assert re.search(rf"is being written by process {process.pid} on .+, since 20\d\d", message)
                assert "Wait until it is done or stop it" in message
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    assert content(tmp_path / "out") == whole


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)], ids=["twice", "SIGTERM"])
def test_stopped_by_hand(city, tmp_path, signals):
    data, whole = city
    process = start("attack", data, "--out", "out", cwd=tmp_path)
    try:
        wait_for(tmp_path / "out" / "day-0001.parquet", process)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.01)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err
    assert "To resume, run the same command with --resume." in err
    assert 1 <= whole_days(tmp_path / "out") < 12
    assert not [name for name in content(tmp_path) if "/." in name or name.startswith(".")]
    assert run("attack", data, "--out", tmp_path / "out", "--resume") == 0
    assert content(tmp_path / "out") == whole


def test_what_carries_paths_is_for_its_owner_alone(city, tmp_path):
    data, _ = city
    mask = os.umask(0o022)
    try:
        csv = ("--csv", tmp_path / "paths.csv")
        assert run("attack", data, "--out", tmp_path / "out", "--to", "2024-01-02", *csv) == 0
        assert run("evaluate", tmp_path / "out", data, "--seeds", 0) == 0
        assert run("defend", data, "--suppress-below", 2, "--out", tmp_path / "release.csv") == 0
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (*tmp_path.iterdir(), *tmp_path.glob("out/*"))}
    assert {modes[name] for name in ("paths.csv", "day-0000.parquet", "recovery.json", "evaluation.json")} == {0o600}
    assert (modes["out"], modes["release.csv"]) == (0o700, 0o644)
