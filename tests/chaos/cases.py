"""The commands that are killed, on data so small that they take seconds."""

from pathlib import Path

from tests.chaos.harness import Case
from tests.sources.raw import some_points

import rekindle as rk


def make_data(home):
    """Write what the commands read."""
    truth = rk.SyntheticCity(people=25, days=8, step="1h", width_km=4, height_km=4).trajectories()
    rk.write_dataset(Path(home) / "city", counts=truth.counts(), truth=truth)
    some_points(people=5).write_csv(Path(home) / "points.csv")


def attack(name, *more):
    arguments = ("attack", "city", "--attack", name, "--out", "out", *more)
    return Case(f"attack --attack {name}", arguments, (*arguments, "--resume"))


def audit(workers):
    arguments = ("audit", "city", "--out", "out", "--attack", "enhanced", "--attack", "baseline", "--seeds", 2)
    arguments += ("--defence", "round:to=2", "--defence", "suppress:below=2", "--workers", workers)
    return Case(f"audit --workers {workers}", arguments, (*arguments, "--resume"))


REPRODUCE = ("reproduce", "--quick", "--out", "out")
PREPARE = ("prepare", "points", "points.csv", "out")

CASES = (
    attack("baseline"),
    attack("enhanced"),
    attack("habits", "--effort", "low", "--to", "2024-01-05"),
    audit(1),
    audit(2),
    Case("prepare", PREPARE, (*PREPARE, "--overwrite"), at_once=True),
    Case(
        "prepare --overwrite",
        (*PREPARE, "--overwrite"),
        (*PREPARE, "--overwrite"),
        old=(*PREPARE, "--step", "1h"),
        at_once=True,
    ),
    Case("reproduce --quick", REPRODUCE, (*REPRODUCE, "--overwrite"), at_once=True),
)
