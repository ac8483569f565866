"""What the tool gives away itself: nothing by the network, no names of people unless asked, no files elsewhere."""

import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from tests.small import random_truth
from tests.sources.raw import some_points

import rekindle as rk
from rekindle.cli import main

NAMES = tuple(f"Zoe-{number}-of-Elsewhere" for number in range(6))
PEOPLE = random_truth(np.random.default_rng(5), people=6, places=4, steps=24, step="2h")
TRUTH = rk.Trajectories(PEOPLE.cells, PEOPLE.locations, PEOPLE.calendar, NAMES)

COMMANDS = (
    ("attack", "data", "--out", "recovery"),
    ("evaluate", "recovery", "data", "--seeds", "1"),
    ("audit", "data", "--out", "audit", "--attack", "baseline", "--defence", "round:to=2", "--seeds", "1", "--workers", "1"),
    ("defend", "data", "--suppress-below", "2", "--out", "release.csv"),
    ("prepare", "points", "points.csv", "prepared"),
    ("clean", ".", "--dry-run"),
)  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """All commands, run in one process in which every way to the network fails and is written down."""
    home = tmp_path_factory.mktemp("work")
    rk.write_dataset(home / "data", counts=TRUTH.counts(), truth=TRUTH)
    some_points().write_csv(home / "points.csv")
    (home / "guard").mkdir()
    (home / "guard" / "sitecustomize.py").write_text(GUARD)
    (home / "tmp").mkdir()
    script = (
        "import json, sys\nfrom rekindle.cli import main\nfor command in json.loads(sys.argv[1]):\n"
        "    try:\n        main(command)\n    except SystemExit as stop:\n        assert not stop.code, (command, stop.code)\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, json.dumps(COMMANDS)]
    found = subprocess.run(
        command,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(home / "guard"), *sys.path]),
            "TMPDIR": str(home / "tmp"),
            "COLUMNS": "200",
        },
    )
    assert found.returncode == 0, found.stderr
    return home, found


GUARD = """
import os, socket, sys

def guard(event, arguments):
    known = event in ("socket.connect", "socket.sendto", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname")
    if event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6) or known:
        with open(os.path.join(os.path.dirname(__file__), "tried"), "a") as file:
            file.write(f"{event} {arguments[1:]}\\\\n")
        raise OSError("the network is cut off")

sys.addaudithook(guard)
"""


def test_no_network(work):
    home, _ = work
    assert (home / "recovery" / "recovery.json").exists()
    assert not (home / "guard" / "tried").exists(), (home / "guard" / "tried").read_text()


def test_the_guard_can_see(work):
    home, _ = work
    script = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home / "guard"), *sys.path])}
    found = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert "the network is cut off" in found.stderr
    (home / "guard" / "tried").unlink()


@pytest.mark.slow
def test_without_any_network_device(work, tmp_path):
    """In a network namespace of its own there is not even a loopback."""
    home, _ = work
    command = ["unshare", "-n", sys.executable, "-m", "rekindle", "attack", str(home / "data"), "--out", str(tmp_path / "out")]  # fmt: skip
    try:
        subprocess.run(["unshare", "-n", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a network namespace takes root")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_nothing_is_left_in_the_systems_temporary_folder(work):
    home, _ = work
    assert list((home / "tmp").iterdir()) == []


def test_nobody_is_named(work):
    """Not in what is printed, and not in what attack, evaluate, audit and defend write."""
    home, found = work
    assert "Zoe" not in found.stdout + found.stderr
    written = [path for name in ("recovery", "audit", "release.csv", "release.locations.csv") for path in (home / name, *(home / name).rglob("*"))]  # fmt: skip
    checked = 0
    for path in written:
        if path.is_file():
            checked += 1
            assert b"Zoe" not in path.read_bytes(), path
    assert checked > 10


def test_people_are_named_when_asked(work, capsys):
    home, _ = work
    for options, named in (([], False), (["--names"], True), (["--include-truth"], False)):
        command = ["audit", str(home / "data"), "--out", str(home / "audit"), *COMMANDS[2][4:], *options]
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert not stop.value.code
        page, numbers = ((home / "audit" / name).read_text() for name in ("report.html", "audit.json"))
        assert ("Zoe-1" in page, "Zoe-1" in numbers) == (named, named)
        people = [person["person"] for person in json.loads(numbers)["people"]]
        assert sorted(people) == (sorted(NAMES) if named else list("123456"))
    assert "Zoe" not in capsys.readouterr().out


def test_errors_do_not_name_people(tmp_path, capsys):
    rk.write_dataset(tmp_path / "data", counts=TRUTH.counts(), truth=TRUTH)
    table = pl.read_parquet(tmp_path / "data" / "truth.parquet")
    twice = pl.concat([table, table[-1:]])
    for broken, problem in ((table[:-1], "the truth has 0"), (twice, "the person of row 121")):
        broken.write_parquet(tmp_path / "data" / "truth.parquet")
        with pytest.raises(SystemExit):
            main(["audit", str(tmp_path / "data"), "--out", str(tmp_path / "out")])
        message = capsys.readouterr().err
        assert problem in message
        assert "Zoe" not in message
