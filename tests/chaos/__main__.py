"""`python -m tests.chaos`: the long version. Kills, resumes, compares, and prints a table."""

import argparse
import tempfile
import time

from tests.chaos.cases import CASES, make_data
from tests.chaos.harness import Chaos


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="At least so many over all commands.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="Only commands whose name contains this.")
    wanted = parser.parse_args()
    cases = [case for case in CASES if wanted.only in case.name]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        make_data(home)
        chaos = Chaos(home, wanted.seed)
        while sum(tally.kills for tally in chaos.tallies.values()) < wanted.kills:
            # The command with the fewest kills is next, so that all get about as many.
            case = min(cases, key=lambda one: chaos.tallies[one.name].kills if one.name in chaos.tallies else -1)
            chaos.until_done(case, most_kills=chaos.random.randint(2, 8))
            print(f"{time.monotonic() - began:6.0f} s  {case.name}: {chaos.tallies[case.name]}", flush=True)
    print(f"\nSeed {wanted.seed}, {time.monotonic() - began:.0f} s.\n\n{chaos.table()}")


if __name__ == "__main__":
    main()
