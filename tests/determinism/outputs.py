"""Write what the commands write, for a small dataset: ``python -m tests.determinism.outputs OUT THREADS``.

Run twice, with other numbers of threads and another PYTHONHASHSEED, the files must be the same to the byte.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def write_outputs(out: Path) -> None:
    """Prepare points, attack the dataset with every attack, and audit it."""
    from tests.sources.raw import some_points

    from rekindle.attacks import ATTACKS, day_by_day, linking
    from rekindle.cli import main

    def rekindle(*arguments: object) -> None:
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            if end.code:
                raise

    out.mkdir()
    points = out / "points.csv"
    some_points(people=9, rows=150).write_csv(points)
    rekindle("prepare", "points", points, out / "dataset", "--step", "2h", "--cell-km", 2)
    settings = "--attack enhanced --attack habits --effort low --defence laplace:epsilon=1,per=event --seeds 2"
    rekindle("audit", out / "dataset", "--out", out / "audit", *settings.split())
    # So that days, gains and links are spread over threads although they are small.
    day_by_day.LARGE_DAY = linking.CHUNK = 2
    for name in ATTACKS:
        effort = ["--effort", "low"] if "effort" in ATTACKS[name]().settings() else []
        rekindle("attack", out / "dataset", "--attack", name, "--seed", 3, *effort, "--out", out / name)


if __name__ == "__main__":
    number = int(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])
    write_outputs(Path(sys.argv[1]))
