"""What flows give away beside counts, by the length of their windows.

python -m benchmarks.flows city city-away DATASET ... [--window step 1h 2h 4h 8h 24h] [--seeds 3]
    [--effort normal] [--row flows:] [--out FILE]

The truth is looked at when windows begin and end, and nowhere else; counts are those of the same moments, and so are scores.
Each seed changes the order of the people, the order of the locations and the search. Accuracy is the share of right points
under the matching of least total error, mean (lowest to highest) over the seeds. The row "flows of every step, at these moments"
says what an attacker with the finest flows knows of the same moments; the row "and of all longer windows" what one knows who has
the flows of this window and of all longer ones together.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import rekindle as rk
from benchmarks.accuracy import in_another_order
from rekindle.attacks.windows import follow_longer
from rekindle.evaluation.confidence import assess_confidence

CITIES = {
    "city": rk.SyntheticCity(people=60, days=7, step="10min"),
    "city-away": rk.SyntheticCity(
        people=60,
        days=7,
        step="10min",
        share_phones_off_at_night=0.4,
        share_visitors=0.1,
        share_commuters_from_outside=0.1,
    ),
}
WINDOWS = ["step", "1h", "2h", "4h", "8h", "24h"]


def seen_at(people: rk.Trajectories, window: str) -> rk.Trajectories:
    """People when windows begin and end."""
    if window == "step":
        return people
    calendar = people.flows(window).calendar
    every = calendar.step // people.calendar.step
    return rk.Trajectories(people.cells[:, ::every], people.locations, calendar)


def mixed(flows: rk.Flows) -> tuple[float, float]:
    """How often a day a person is where some leave for one place and others for another; and how many they are then."""
    place = flows.step.astype(np.int64) * (len(flows.locations) + 1) + flows.origin + 1
    _, which = np.unique(place, return_inverse=True)
    ways, people = np.bincount(which), np.bincount(which, flows.count)
    open_ = ways > 1
    days = (flows.steps - 1) / flows.calendar.steps_per_day
    return people[open_].sum() / flows.people / days, people[open_].mean() if open_.any() else 1.0


def measure(name: str, truth: rk.Trajectories, windows: list[str], seed: int, effort: str, only: str = ""):
    """Yield one row after the other: set, window, seed, row, accuracy, seconds; of attacks, those whose row contains `only`."""
    finest = None
    found_in: dict[str, rk.Trajectories] = {}
    truth = in_another_order(truth, seed)
    for window in windows:
        people = seen_at(truth, window)
        if people.steps < 3:
            continue
        counts, flows = people.counts(), people.flows()
        habits = rk.Habits(effort=effort, seed=seed, workers=1)
        attacks = {
            "counts: chance": (rk.Chance(seed=seed), None),
            "counts: Enhanced": (rk.Enhanced(seed=seed), None),
            "counts: Habits": (habits, None),
            "flows: at random": (rk.Chance(seed=seed), flows),
            "flows: Baseline": (rk.Baseline(seed=seed), flows),
            "flows: Enhanced": (rk.Enhanced(seed=seed), flows),
            "flows: Habits": (habits, flows),
        }
        often, together = mixed(flows)
        moved = people.cells[:, 1:] != people.cells[:, :-1]
        shown = np.abs(np.diff(counts.values.astype(np.int64), axis=0)).sum() / 2
        for row, value in (
            ("mixed a day", often),
            ("people mixed", together),
            ("moves shown by counts", shown / max(1, moved.sum())),
        ):
            yield name, window, seed, row, float(value), 0.0
        for row, (attack, given) in attacks.items():
            if only not in row:
                continue
            begin = time.process_time()
            recovery = attack.recover(counts, flows=given)
            seconds = time.process_time() - begin
            found = recovery.trajectories
            if found.counts() != counts or (given is not None and found.flows() != given):
                raise RuntimeError(f"{row} does not keep what was published")
            result = rk.evaluate(found, people)
            yield name, window, seed, row, result.accuracy, seconds
            if row == "flows: Habits":
                found_in[window] = found
                if window == windows[0]:
                    finest = found
                elif finest is not None:
                    then = rk.evaluate(seen_at(finest, window), people)
                    yield name, window, seed, "flows of every step, at these moments", then.accuracy, 0.0
            if recovery.confidence is not None:
                sure = assess_confidence(found, recovery.confidence, people, mapping=result.mapping)
                yield name, window, seed, f"{row}: confidence", float(recovery.confidence[found.counted].mean()), 0.0
                yield name, window, seed, f"{row}: calibration error", sure.calibration_error, 0.0
                yield name, window, seed, f"{row}: claimed at 90%", sure.claims.points, 0.0
                yield name, window, seed, f"{row}: of which right", sure.claims.points_right, 0.0
    together = None
    for window, found in reversed(found_in.items()):
        if together is not None:
            together = follow_longer(found, together)
            score = rk.evaluate(together, seen_at(truth, window)).accuracy
            yield name, window, seed, "flows of this and of all longer windows: Habits", score, 0.0
        together = found if together is None else together


def show(rows: list) -> None:
    """Print one table for each set: rows are attacks, columns windows."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for name, window, _, row, value, seconds in rows:
        values[name, row, window].append(value)
        times[name, row, window].append(seconds)
    for name in dict.fromkeys(key[0] for key in values):
        windows = list(dict.fromkeys(key[2] for key in values if key[0] == name))
        print(f"\n{name}\n\n| | {' | '.join(windows)} |\n|---|{'---|' * len(windows)}")
        for row in dict.fromkeys(key[1] for key in values if key[0] == name):
            cells = []
            for window in windows:
                found = values.get((name, row, window), [])
                spread = f" ({min(found):.3f}-{max(found):.3f})" if len(found) > 1 else ""
                seconds = np.mean(times[name, row, window]) if found else 0.0
                took = f" {seconds:.1f} s" if seconds >= 0.1 else ""
                cells.append(f"{np.mean(found):.3f}{spread}{took}" if found else "")
            print(f"| {row} | {' | '.join(cells)} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "datasets", nargs="+", metavar="DATASET", help=f"a folder with a truth, or {', '.join(CITIES)}"
    )
    options.add_argument("--window", nargs="+", default=WINDOWS, help="the first is the finest")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--effort", default="normal", help="of Habits")
    options.add_argument("--row", default="", help="only attacks whose row contains this, such as 'counts: Habits'")
    options.add_argument("--out", type=Path, help="add every number to this file, and leave out what is there")
    given = options.parse_args()
    rows = []
    if given.out and given.out.exists():
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
    done = {(row[0], row[2]) for row in rows}
    for name in given.datasets:
        truth = CITIES[name].trajectories() if name in CITIES else rk.read_dataset(name).truth
        if truth is None:
            raise SystemExit(f"{name} has no truth to compare with.")
        for seed in range(given.seeds):
            if (Path(name).name, seed) in done:
                continue
            found = []
            for row in measure(Path(name).name, truth, given.window, seed, given.effort, given.row):
                print(*row, flush=True)
                found.append(row)
            rows += found
            if given.out:
                with given.out.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found)
    show(rows)


if __name__ == "__main__":
    main()
