"""How time and memory grow with people, steps and places, and where the time goes.

    python -m benchmarks.scale                     up to 10,000 people, two days: some minutes
    python -m benchmarks.scale --full              up to 100,000 people, a week, and the evaluation: an hour or two
    python -m benchmarks.scale --attack habits     Habits instead, at low effort, with its tracks as steps; --full takes long

Each measurement runs in a process of its own, so that its peak memory is its own. Exits with 1 where a growth exponent in
people, of the steps, is above its limit, or where people who come and go (a third is away at any time), or flows instead of
counts, take too much longer.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

LIMIT = 1.3
LIMIT_HABITS = 1.2
LIMIT_AWAY = 1.5
LIMIT_FLOWS = 1.0
LIMIT_FLOWS_HABITS = 2.0
SIDE_KM = 50


def a_third_away(truth):
    """The same people, each away for a third of every day, from an hour of their own on."""
    import rekindle as rk

    per_day = truth.calendar.steps_per_day
    begin = np.random.default_rng(1).integers(0, per_day, truth.people)
    away = (np.arange(truth.steps) - begin[:, None]) % per_day < per_day // 3
    return rk.Trajectories(np.where(away, rk.AWAY, truth.cells.astype(np.int32)), truth.locations, truth.calendar)


def measure(attack, people, days, side_km, step, evaluate, away=False, flows=False):
    """One measurement, in this process."""
    import rekindle as rk
    from rekindle.attacks import day_by_day
    from rekindle.attacks.habits import schedule

    spent = {"steps_s": 0.0, "links_s": 0.0}

    def timed(name, function):
        def work(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - begin

        return work

    few = 900 if attack == "habits" else 200  # more people take another way
    small = rk.SyntheticCity(people=few, days=2, step=step, width_km=side_km, height_km=side_km).trajectories()
    truth = rk.SyntheticCity(people=people, days=days, step=step, width_km=side_km, height_km=side_km).trajectories()
    truth = a_third_away(truth) if away else truth
    counts = truth.counts()
    windows = truth.flows() if flows else None
    kind = {"baseline": rk.Baseline, "enhanced": rk.Enhanced, "habits": partial(rk.Habits, effort="low")}[attack]
    small = a_third_away(small)
    kind(workers=1).recover(small.counts(), flows=small.flows() if flows else None)  # compiled before it is measured
    day_by_day.DayTask.recover = timed("steps_s", day_by_day.DayTask.recover)
    for name in ("link", "exchange_towards"):
        setattr(day_by_day, name, timed("links_s", getattr(day_by_day, name)))
    for name, of in (("track", "steps_s"), ("track_flows", "steps_s"), ("relink", "links_s")):
        setattr(schedule, name, timed(of, getattr(schedule, name)))
    begin, cpu = time.perf_counter(), time.process_time()
    found = kind(workers=1).recover(counts, flows=windows)
    row = {
        "flows": flows,
        "cpu_s": time.process_time() - cpu, "away": float(counts.away.mean() / people),
        "attack": attack, "people": people, "steps": counts.steps, "places": len(counts.locations), "days": days,
        "total_s": time.perf_counter() - begin, **spent, "gap": getattr(found.details, "gap", 0.0),
        "counts_met": found.trajectories.counts() == counts and (not flows or found.trajectories.flows() == windows),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip
    if evaluate:
        begin = time.perf_counter()
        result = rk.evaluate(found.trajectories, truth)
        row |= {
            "evaluation_s": time.perf_counter() - begin, "accuracy": result.accuracy, "mapping_gap": result.mapping.gap,
            "evaluation_peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }  # fmt: skip
    return row


def apart(**settings):
    command = [sys.executable, "-m", "benchmarks.scale", "--one", json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    row = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{row['attack']:9} {row['people']:7} people {row['steps']:4} steps {row['places']:5} places  "
        f"{row['total_s']:8.1f} s (steps {row['steps_s']:.1f}, links {row['links_s']:.1f})  {row['peak_gb']:.2f} GB  "
        f"gap {row['gap']:.2%}  {row['away']:.0%} away{', flows' * row['flows']}, {row['cpu_s']:.1f} CPU s"
        + (f"  evaluation {row['evaluation_s']:.1f} s, gap {row['mapping_gap']:.2%}, accuracy {row['accuracy']:.3f}" if "evaluation_s" in row else ""),
        flush=True,
    )  # fmt: skip
    return row


def exponent(rows, over, of):
    x, y = np.log([row[over] for row in rows]), np.log([max(row[of], 1e-6) for row in rows])
    return float(np.polyfit(x, y, 1)[0])


def write(rows, exponents, folder):
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scale.json").write_text(json.dumps({"rows": rows, "exponents": exponents}, indent=2))
    head = "| attack | people | steps | places | total | steps | links | peak memory | largest gap |\n|---|---|---|---|---|---|---|---|---|\n"
    lines = [
        f"| {r['attack']} | {r['people']:,} | {r['steps']} | {r['places']:,} | {r['total_s']:.1f} s | {r['steps_s']:.1f} s "
        f"| {r['links_s']:.1f} s | {r['peak_gb']:.2f} GB | {r['gap']:.2%} |"
        for r in rows
    ]
    (folder / "scale.md").write_text(head + "\n".join(lines) + "\n")
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for attack, colour in (("baseline", "#E69F00"), ("enhanced", "#0072B2"), ("habits", "#009E73")):
        mine = [r for r in rows if r["attack"] == attack and r["vary"] == "people"]
        people = [r["people"] for r in mine]
        left.loglog(people, [r["steps_s"] for r in mine], "o-", color=colour, label=f"{attack}, steps")
        left.loglog(people, [max(r["links_s"], 1e-3) for r in mine], "s--", color=colour, label=f"{attack}, links")
        right.loglog(people, [r["peak_gb"] for r in mine], "o-", color=colour, label=attack)
    left.set(xlabel="people", ylabel="seconds")
    right.set(xlabel="people", ylabel="peak memory, GB")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(folder / "scale.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="up to 100,000 people, a week, with evaluation")
    parser.add_argument(
        "--attack", action="append", choices=["baseline", "enhanced", "habits"], help="the first two by default"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(**json.loads(options.one))))
        return
    sizes = [1_000, 3_000, 10_000] + ([30_000, 100_000] if options.full else [])
    plain = {"days": 7 if options.full else 2, "side_km": SIDE_KM, "step": "30min", "evaluate": False}
    rows, exponents = [], {}
    for attack in options.attack or ("baseline", "enhanced"):
        grown = [
            apart(**plain | {"attack": attack, "people": people, "evaluate": options.full and people == sizes[-1]})
            | {"vary": "people"}
            for people in sizes
        ]
        steps = [
            apart(**plain | {"attack": attack, "people": 2_000, "step": step}) | {"vary": "steps"}
            for step in ("30min", "10min", "5min")
        ]
        places = [
            apart(**plain | {"attack": attack, "people": 2_000, "side_km": side}) | {"vary": "places"}
            for side in (20, 40, 80)
        ]
        # Of Habits, the largest size takes too long for three runs.
        large = sizes.index(10_000) if attack == "habits" else -1
        gone = apart(**plain | {"attack": attack, "people": sizes[large], "away": True}) | {"vary": "away"}
        rows += [*grown, *steps, *places, gone]
        exponents[attack] = {
            "steps over people": exponent(grown, "people", "steps_s"),
            "links over people": exponent(grown, "people", "links_s"),
            "steps over steps": exponent(steps, "steps", "steps_s"),
            "steps over places": exponent(places, "places", "steps_s"),
            "processor time over people": exponent(grown, "people", "cpu_s"),
            "processor time with a third away": gone["cpu_s"] / grown[large]["cpu_s"],
        }
        # A day with flows goes on from the one before, so that two days say little.
        week = plain | {"attack": attack, "people": sizes[large], "days": 7}
        counted = grown[large] if options.full else apart(**week) | {"vary": "week"}
        along = apart(**week | {"flows": True}) | {"vary": "flows"}
        rows += [along] if options.full else [counted, along]
        exponents[attack]["processor time with flows"] = along["cpu_s"] / counted["cpu_s"]
        print(attack, {name: round(value, 2) for name, value in exponents[attack].items()}, flush=True)
    write(rows, exponents, options.out)
    above = [name for name, found in exponents.items() if found["steps over people"] > LIMIT]
    for name in above:
        print(
            f"{name}: the time of the steps grows with people to the power {exponents[name]['steps over people']:.2f}, above {LIMIT}"
        )
    growth = exponents.get("habits", {}).get("processor time over people", 0.0)
    if growth > LIMIT_HABITS:
        print(f"habits: the processor time grows with people to the power {growth:.2f}, above {LIMIT_HABITS}")
        above.append("habits")
    slower = False
    for what, limit in (("with a third away", LIMIT_AWAY), ("with flows", LIMIT_FLOWS)):
        for name, found in exponents.items():
            ratio = found.get(f"processor time {what}", 0.0)
            most = LIMIT_FLOWS_HABITS if (name, what) == ("habits", "with flows") else limit
            if ratio > most:
                slower = True
                print(f"{name}: {what} it takes {ratio:.2f} times as long, more than {most}")
    sys.exit(1 if above or slower else 0)


if __name__ == "__main__":
    main()
