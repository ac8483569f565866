"""Branch coverage of `model`, `assignment`, `attacks`, `evaluation` and `io`: ``python -m tests.proof.coverage [--floor 95]``.

Numba is switched off, since the bodies of compiled kernels are invisible to coverage. It prints the share of lines and branches
that the tests of these rooms reach, by room, and fails where a room is below the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("model", "assignment", "attacks", "evaluation", "io")


def measure(folder: Path, missing: bool) -> dict[str, dict[str, int]]:
    """Run the tests of the rooms, and add up what they reach: for each room, the counts of coverage's summaries."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "COVERAGE_FILE": str(folder / "data")}
    tests = [*(f"tests/{room}" for room in ROOMS), "tests/hostile", "tests/cli/test_clean.py"]
    run = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        "-m",
        "pytest",
        "-p",
        "tests.proof.quick",
        "-p",
        "no:cacheprovider",
    ]
    subprocess.run([*run, *tests], cwd=ROOT, env=environment, check=True)
    report = [sys.executable, "-m", "coverage"]
    if missing:
        subprocess.run([*report, "report", "-m", "--skip-covered"], cwd=ROOT, env=environment, check=True)
    subprocess.run([*report, "json", "-q", "-o", folder / "found.json"], cwd=ROOT, env=environment, check=True)
    rooms: dict[str, dict[str, int]] = {room: {} for room in ROOMS}
    for name, file in json.loads((folder / "found.json").read_text())["files"].items():
        room = Path(name).parts[2]
        for key, value in file["summary"].items():
            if isinstance(value, int):
                rooms[room][key] = rooms[room].get(key, 0) + value
    return rooms


def share(summary: dict[str, int]) -> float:
    """Lines and branches reached, in percent of all: coverage's own figure with branches."""
    reached = summary["covered_lines"] + summary["covered_branches"]
    return 100 * reached / (summary["num_statements"] + summary["num_branches"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--floor", type=float, default=95.0, help="least percentage of lines and branches in each room"
    )
    parser.add_argument("--missing", action="store_true", help="list what is not reached")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rooms = measure(Path(folder), chosen.missing)
    print(f"{'room':12} lines        branches     together")
    for room, found in rooms.items():
        lines = f"{found['covered_lines']}/{found['num_statements']}"
        branches = f"{found['covered_branches']}/{found['num_branches']}"
        print(f"{room:12} {lines:12} {branches:12} {share(found):.1f}%")
    low = [room for room, found in rooms.items() if share(found) < chosen.floor]
    if low:
        raise SystemExit(f"Below {chosen.floor}%: {', '.join(low)}.")


if __name__ == "__main__":
    main()
