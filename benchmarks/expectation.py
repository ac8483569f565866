"""What an audit without the truth expects, beside what is true: on any datasets with a truth.

python -m benchmarks.expectation DATASET [DATASET ...] [--effort low]

The attack is Habits. Printed are its accuracy, the mean of its own confidence, and its accuracy on people drawn like those it
recovered.
"""

import argparse
from pathlib import Path

import rekindle as rk
from rekindle.auditing.similar import people_like


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("datasets", nargs="+", type=Path, metavar="DATASET")
    options.add_argument("--effort", default="low")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    attack = rk.Habits(effort=given.effort, seed=given.seed)
    print("| | actual | confidence | people drawn like the rebuilt ones |\n|---|---|---|---|")
    for folder in given.datasets:
        truth = rk.read_dataset(folder).truth
        found = attack.recover(truth.counts())
        actual = rk.evaluate(found.trajectories, truth).accuracy
        sure = found.confidence[found.trajectories.counted].mean()
        people = people_like(found.trajectories, given.seed)
        likely = rk.evaluate(attack.recover(people.counts()).trajectories, people).accuracy
        print(f"| {folder.name} | {actual:.3f} | {sure:.3f} | {likely:.3f} |", flush=True)


if __name__ == "__main__":
    main()
