"""`python -m tests.chaos.memory`: the peak memory of real processes beside what the commands estimated before."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
from tests.chaos.harness import ENVIRONMENT

import rekindle as rk

MB = 2**20
OUT = "out"


PEAK = """
import atexit, re, sys
def tell():
    with open("/proc/self/status") as status, open(sys.argv[1], "w") as file:
        file.write(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])
atexit.register(tell)
from rekindle.cli import main
main(sys.argv[2:])
"""


def peak_of(*arguments, cwd):
    """Run a command to its end, and give the largest resident memory of its process, in bytes.

    The process tells it itself: what the system says of a child counts the memory of its parent.
    """
    with tempfile.NamedTemporaryFile("r") as told:
        command = [sys.executable, "-c", PEAK, told.name, *map(str, arguments)]
        found = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found
        return 1024 * int(told.read())


def estimate_of(*arguments, cwd):
    """What the command says it needs when it is allowed almost nothing, then as much as it said, until it would start."""
    largest, limit = 0.0, MB
    while True:
        command = [sys.executable, "-m", "rekindle", *map(str, arguments), "--memory-limit", str(limit)]
        found = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return largest
        told = re.search(r"needs about ([\d.]+) (MB|GB)", found.stderr)
        assert told, found
        largest = float(told[1]) * (MB if told[2] == "MB" else 2**30)
        if not found.stderr.startswith("Error: Reading"):
            return largest
        limit = int(largest * 1.01) + MB


def write_city(path, people, days, step, km):
    if not path.exists():
        truth = rk.SyntheticCity(people=people, days=days, step=step, width_km=km, height_km=km).trajectories()
        rk.write_dataset(path, counts=truth.counts(), truth=truth)


def write_points(path, people, rows):
    if not path.exists():
        size = people * rows
        pl.select(
            uid=pl.int_range(size) // rows,
            datetime=pl.datetime(2020, 3, 2)
            + pl.duration(seconds=(pl.int_range(size) % rows) * (7 * 86_400 // rows)),
            lat=48.85 + (pl.int_range(size) * 7919 % 1000) / 10_000,
            lng=2.35 + (pl.int_range(size) * 104_729 % 1000) / 10_000,
        ).write_csv(path)


CITIES = ((50, 2, "1h", 10), (1_000, 3, "10min", 20), (3_000, 7, "10min", 30), (10_000, 3, "10min", 40))
POINTS = ((20, 500), (1_000, 500), (2_000, 2_000))


def measured(home, big):
    """Every command at several sizes: its name, the size, the estimate and the peak."""
    for people, days, step, km in CITIES[: None if big else -1]:
        name = f"city{people}"
        write_city(home / name, people, days, step, km)
        size = f"{people:,} people, {days} days of {step}, {km * km:,} locations"
        for attack in ("baseline", "enhanced", "habits"):
            if attack == "habits" and people > 1_000:
                continue
            command = ("attack", name, "--attack", attack, "--out", OUT)
            yield f"attack --attack {attack}", size, command + (("--effort", "low") if attack == "habits" else ())
            if attack == "enhanced":
                yield "evaluate", size, ("evaluate", OUT, name, "--seeds", 1)
        if people <= 1_000:
            command = ("audit", name, "--out", OUT, "--attack", "enhanced", "--seeds", 1)
            yield "audit --workers 1", size, (*command, "--defence", "round:to=2", "--workers", 1)
    for people, rows in POINTS:
        write_points(home / f"points{people}.csv", people, rows)
        size = f"{people * rows:,} points of {people:,} people, 7 days of 10min"
        yield "prepare", size, ("prepare", "points", f"points{people}.csv", OUT)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--big", action="store_true", help="10,000 people, too.")
    parser.add_argument("--home", type=Path, help="Keep the data there.")
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as fresh:
        home = wanted.home or Path(fresh)
        print("| command | data | estimate, MB | peak, MB | estimate / peak |\n|---|---|---:|---:|---:|")
        for name, size, command in measured(home, wanted.big):
            if wanted.only not in name:
                continue
            if name != "evaluate":
                shutil.rmtree(home / OUT, ignore_errors=True)
            estimate = estimate_of(*command, cwd=home)
            if name != "evaluate":
                shutil.rmtree(home / OUT, ignore_errors=True)
            peak = peak_of(*command, cwd=home)
            print(f"| {name} | {size} | {estimate / MB:.0f} | {peak / MB:.0f} | {estimate / peak:.2f} |", flush=True)


if __name__ == "__main__":
    main()
