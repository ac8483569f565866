"""Few people and many are attacked in two ways: both, on the same cities at the size where one follows the other.

    python -m benchmarks.switch                    three cities of 800 people, low effort: some minutes
    python -m benchmarks.switch --people 500       at another size

Exits with 1 where the mean accuracies differ by more than a hundredth.
"""

import argparse
import sys
import time

import numpy as np

LIMIT = 0.01
PER_KM2 = 20


def measure(truth, effort, most_at_once):
    """Accuracy and processor seconds of one way."""
    import rekindle as rk
    from rekindle.attacks.habits import attack, schedule

    kept = schedule.MOST_PEOPLE_AT_ONCE
    for module in (attack, schedule):
        module.MOST_PEOPLE_AT_ONCE = most_at_once
    try:
        begin = time.process_time()
        found = rk.Habits(effort=effort, workers=1).recover(truth.counts())
        spent = time.process_time() - begin
    finally:
        for module in (attack, schedule):
            module.MOST_PEOPLE_AT_ONCE = kept
    return rk.evaluate(found.trajectories, truth).accuracy, spent


def main():
    import rekindle as rk

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=800)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--effort", choices=["low", "normal", "high"], default="low")
    options = parser.parse_args()
    side = (options.people / PER_KM2) ** 0.5
    # Compiled before it is measured, both ways.
    small = rk.SyntheticCity(people=30, days=2, step="1h").trajectories()
    for most in (0, 10**9):
        measure(small, "low", most)
    rows = []
    for seed in range(options.seeds):
        truth = rk.SyntheticCity(
            people=options.people, days=7, step="30min", width_km=side, height_km=side, seed=seed
        ).trajectories()
        (few, few_s), (many, many_s) = (measure(truth, options.effort, most) for most in (10**9, 0))
        rows.append((many - few, many_s / few_s))
        print(
            f"city {seed}: {options.people} people at once {few:.3f} ({few_s:.0f} s), in blocks {many:.3f} ({many_s:.0f} s), "
            f"difference {many - few:+.4f}, {many_s / few_s:.2f} times as long",
            flush=True,
        )
    difference, ratio = np.mean(rows, axis=0)
    spread = np.std(rows, axis=0, ddof=1)[0] if len(rows) > 1 else 0.0
    print(f"mean difference {difference:+.4f} (spread {spread:.4f}), {ratio:.2f} times as long")
    sys.exit(1 if abs(difference) > LIMIT else 0)


if __name__ == "__main__":
    main()
