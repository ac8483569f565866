"""How many times faster than the published code, or than a plain vectorised version where that is not at hand.

    python -m benchmarks.speed                                        on the synthetic city
    python -m benchmarks.speed --published trajectory_recovery.py \
        --counts Porto_taxi_aggregated_3x3.csv:Porto_taxi_grid_3x3.csv --counts GeoLife_aggregated.csv

`--days` shortens every dataset; `--days 0` takes all of it. Both run in the same process, on the same counts, one after
the other. Ours: the wall clock, best of nine warm runs, so that nothing is compiled in it. Theirs: the seconds that the
processor worked for it, so that whatever else the machine does cannot flatter us. Exits with 1 below the floor.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import rekindle as rk
from benchmarks import plain

FLOOR = {"published": 300.0, "plain": 5.0}
ATTACKS = {"baseline": rk.Baseline(), "enhanced": rk.Enhanced()}


def seconds(work, clock=time.process_time):
    begin = clock()
    with contextlib.redirect_stderr(io.StringIO()):
        work()
    return clock() - begin


def best_of(work, times=9):
    return min(seconds(work, time.perf_counter) for _ in range(times))


def load(spec):
    path, _, grid = spec.partition(":")
    return Path(path).stem, rk.read_counts(path, grid or None)


def shortened(counts, days):
    return (
        counts
        if not days
        else counts.part(slice(0, counts.calendar.day(min(days, counts.calendar.number_of_days) - 1).stop))
    )


def published_work(module, counts, name):
    """The published class wants a frame, a list of centres and the sizes."""
    import pandas as pd

    frame = pd.DataFrame(np.asarray(counts.values))
    grid = [tuple(point) for point in counts.locations.xy_km]
    kind = module.TrajectoryRecoveryA if name == "baseline" else module.TrajectoryRecoveryB
    sizes = (counts.people, len(counts.locations), counts.steps, counts.calendar.steps_per_day)

    def work():
        attack = kind(frame, grid, *sizes)
        attack.run_algorithm() if name == "baseline" else attack.run_algorithm(lookback=3)

    return work


def deviation(counts, name):
    """Largest difference between the cost of a step and SciPy's on the people x people matrix, over all steps."""
    found = ATTACKS[name].recover(counts)
    cells, xy, places = found.trajectories.cells, counts.locations.xy_km, len(counts.locations)
    between = plain.distances(xy, xy)
    transitions = np.zeros((places, places), dtype=int)
    worst = 0.0
    for day in counts.calendar.days():
        popular = (transitions == transitions.max(axis=1, keepdims=True)) & (transitions > 0)
        near = np.where(popular[:, :, None], between[None], np.inf).min(axis=1)
        for step in range(day.start, day.stop - 1):
            stay = step == day.start or (name == "baseline" and counts.calendar.time(step).hour < 6)
            current = cells[:, step]
            point = xy[current] if stay else 2 * xy[current] - xy[cells[:, step - 1]]
            cost = plain.distances(point, xy)
            if name == "enhanced" and not stay:
                cost = np.minimum(cost, near[current])
            matrix = cost[:, np.repeat(np.arange(places), counts.values[step + 1])]
            least = matrix[linear_sum_assignment(matrix)].sum()
            own = cost[np.arange(len(cells)), cells[:, step + 1]].sum()
            worst = max(worst, abs(own - least), abs(found.details.step_costs[step + 1] - least))
        begin = max(0, day.start - 1)
        np.add.at(transitions, (cells[:, begin : day.stop - 1].ravel(), cells[:, begin + 1 : day.stop].ravel()), 1)
    return worst


def measure(datasets, module, days, check):
    rows = []
    for title, whole in datasets:
        counts = shortened(whole, days)
        for name, attack in ATTACKS.items():
            ours = best_of(lambda attack=attack, counts=counts: attack.recover(counts))
            if module:
                other, theirs = "published", seconds(published_work(module, counts, name))
            else:
                other = "plain"
                theirs = seconds(lambda counts=counts, name=name: plain.recover(counts, enhanced=name == "enhanced"))
            row = {
                "dataset": title, "attack": name, "people": counts.people, "steps": counts.steps,
                "places": len(counts.locations), "against": other, "theirs_s": theirs, "ours_s": ours,
                "ratio": theirs / ours, "floor": FLOOR[other],
            }  # fmt: skip
            if check:
                row["worst_step_deviation"] = deviation(counts, name)
            rows.append(row)
            print(
                f"{title:45} {name:9} {counts.people:4} x {counts.steps:5}  {other} {theirs:8.2f} s  ours {ours:7.4f} s  "
                f"{row['ratio']:7.0f} times" + (f"  deviation {row['worst_step_deviation']:.1e}" if check else ""),
                flush=True,
            )
    return rows


def write(rows, folder):
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.json").write_text(json.dumps(rows, indent=2))
    head = "| dataset | attack | people x steps x places | against | theirs | ours | times faster |\n|---|---|---|---|---|---|---|\n"
    lines = [
        f"| {r['dataset']} | {r['attack']} | {r['people']} x {r['steps']} x {r['places']} | {r['against']} "
        f"| {r['theirs_s']:.2f} s | {r['ours_s']:.4f} s | {r['ratio']:,.0f} |"
        for r in rows
    ]
    (folder / "speed.md").write_text(head + "\n".join(lines) + "\n")
    figure = Figure(figsize=(8, 0.5 * len(rows) + 1.4), layout="constrained")
    axes = figure.subplots()
    axes.barh([f"{r['dataset'][-28:]}, {r['attack']}" for r in rows], [r["ratio"] for r in rows], color="#0072B2")
    axes.axvline(rows[0]["floor"], color="#D55E00", ls="--", label=f"floor {rows[0]['floor']:.0f}")
    axes.set_xscale("log")
    axes.set_xlabel(f"times faster than the {rows[0]['against']} code")
    axes.invert_yaxis()
    axes.legend(frameon=False)
    figure.savefig(folder / "speed.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--published", type=Path, help="the published trajectory_recovery.py; it is only run, never stored"
    )
    parser.add_argument("--counts", action="append", default=[], help="counts file, or counts:grid; may be repeated")
    parser.add_argument("--days", type=int, default=2, help="days of each dataset to use; 0 for all")
    parser.add_argument("--check", action="store_true", help="compare the cost of every step with SciPy's")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    options = parser.parse_args()
    datasets = [load(spec) for spec in options.counts]
    if not datasets:
        truth = rk.SyntheticCity(people=200, days=7, step="10min", width_km=14, height_km=14).trajectories()
        datasets = [("synthetic city", truth.counts())]
    module = None
    if options.published:
        spec = importlib.util.spec_from_file_location("published", options.published)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    rows = measure(datasets, module, options.days, options.check)
    write(rows, options.out)
    below = [row for row in rows if row["ratio"] < row["floor"]]
    far = [row for row in rows if row.get("worst_step_deviation", 0) > 1e-9]
    for row in below:
        print(f"{row['dataset']}, {row['attack']}: {row['ratio']:.0f} times is below the floor of {row['floor']:.0f}")
    for row in far:
        print(f"{row['dataset']}, {row['attack']}: a step is {row['worst_step_deviation']:.1e} from the optimum")
    sys.exit(1 if below or far else 0)


if __name__ == "__main__":
    main()
