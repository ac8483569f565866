"""What is lost where a city is attacked region by region, or where only a sample of its people is.

    python -m benchmarks.partition                                    3,000 people, enhanced: some minutes
    python -m benchmarks.partition --people 10000 --attack habits     at another size, with another attack
    python -m benchmarks.partition --regions --samples 2500 1000      samples of the people alone

Regions are rectangles in which people spend the same time. The attacker of a region has the counts of its locations: people come
and go. Scores are over the same points each time, a person at a step:

- by region: a person is matched in each region anew, with the paths found there; the paths of the whole attack are cut likewise;
- joined: who leaves a region is matched with who enters another at the next step, the nearest, or whoever they were before.
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

PER_KM2 = 20
AGAIN_KM = 3.0
"""How much farther than the nearest somebody may be whom the same path was joined with before."""


def regions_of(truth, many):
    """The region of each location: columns of a map, cut across, such that people spend the same time in each."""
    spent = np.bincount(truth.cells.ravel(), minlength=len(truth.locations))
    x, y = truth.locations.xy_km.T
    columns = int(many**0.5)
    column = _cut(x, spent, columns)
    region = np.zeros(len(x), np.int64)
    for one in range(columns):
        its = column == one
        region[its] = one * (many // columns) + _cut(y[its], spent[its], many // columns)
    return region


def _cut(along, weights, parts):
    order = np.lexsort((np.arange(len(along)), along))
    before = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    found = np.empty(len(along), np.int64)
    found[order] = np.minimum((before * parts).astype(np.int64), parts - 1)
    return found


def within(cells, region, one):
    """Paths within a region alone, of those who ever are in it: row numbers, and location indices within it."""
    import rekindle as rk

    number = np.full(len(region), rk.AWAY)
    number[region == one] = np.arange((region == one).sum())
    own = number[cells].astype(np.int32)
    rows = np.flatnonzero((own != rk.AWAY).any(axis=1))
    return rows, own[rows]


def join(pieces, xy):
    """Join paths within regions to paths through all of them: (people, steps) location indices, and how often it was done."""
    cells = np.concatenate(pieces)
    here = cells >= 0
    person = np.full(len(cells), -1)
    person[here[:, 0]] = np.arange(here[:, 0].sum())
    found, crossings = np.empty((here[:, 0].sum(), cells.shape[1]), np.int32), 0
    for step in range(cells.shape[1]):
        if step:
            left = np.flatnonzero(here[:, step - 1] & ~here[:, step])
            came = np.flatnonzero(~here[:, step - 1] & here[:, step])
            km = np.linalg.norm(xy[cells[left, step - 1]][:, None] - xy[cells[came, step]], axis=2)
            one, other = linear_sum_assignment(km - AGAIN_KM * (person[left][:, None] == person[came]))
            person[came[other]] = person[left[one]]
            crossings += len(left)
        now = here[:, step]
        found[person[now], step] = cells[now, step]
    return found, crossings


def right(recovered, truth):
    """How many points of each true person are right: (people,)."""
    from rekindle.evaluation import map_people
    from rekindle.evaluation.mapping import right_points

    return right_points(recovered, truth, map_people(recovered, truth)).sum(axis=1)


def right_by_region(recovered, truth, region):
    """The same where paths are compared in each region apart; `recovered` are those within each, in its locations."""
    import rekindle as rk

    total = np.zeros(truth.people)
    for one in range(region.max() + 1):
        rows, cells = within(truth.cells, region, one)
        places = rk.Locations(truth.locations.xy_km[region == one])
        total[rows] += right(
            rk.Trajectories(recovered[one], places, truth.calendar), rk.Trajectories(cells, places, truth.calendar)
        )
    return total


def show(what, hits, truth, seconds=None, more=""):
    points = truth.counted.sum(axis=1)
    spent = "" if seconds is None else f", {sum(seconds):.1f} s of the processor, {max(seconds):.1f} s in the largest"
    print(
        f"{what}: accuracy {hits.sum() / points.sum():.3f}, more than half of {(hits > points / 2).mean():.3f} of the people"
        f"{spent}{more}",
        flush=True,
    )


def attacked(attack, counts):
    begin = time.process_time()
    found = attack.recover(counts).trajectories
    return found, time.process_time() - begin


def by_regions(attack, truth, whole, guess, many):
    """Attack the regions apart, beside the same regions of the whole attack and of chance."""
    import rekindle as rk

    counts, region = truth.counts(), regions_of(truth, many)
    places, pieces, spent = [np.flatnonzero(region == one) for one in range(many)], [], []
    for one, its in enumerate(places):
        people = len(within(truth.cells, region, one)[0])
        there = rk.Locations(truth.locations.xy_km[its])
        found, seconds = attacked(attack, rk.Counts(counts.values[:, its], there, counts.calendar, people))
        pieces.append(found.cells)
        spent.append(seconds)
    everywhere = [np.where(cells < 0, rk.AWAY, its[cells]) for cells, its in zip(pieces, places, strict=True)]
    cells, crossings = join(everywhere, truth.locations.xy_km)
    joined = rk.Trajectories(cells, truth.locations, truth.calendar)
    assert joined.counts() == counts
    really = (region[truth.cells[:, 1:]] != region[truth.cells[:, :-1]]).sum()
    print(
        f"{many} regions: everyone is in {sum(map(len, pieces)) / truth.people:.2f} of them; {really} crossings, {crossings} of them "
        f"seen; {2 * sum(cells.size for cells in pieces) / 1e6:.1f} MB of paths"
    )
    for what, of in (("chance", guess), ("whole", whole)):
        if of is not None:
            cut = [within(of.cells, region, one)[1] for one in range(many)]
            show(f"{what}, by region", right_by_region(cut, truth, region), truth)
    show("apart, by region", right_by_region(pieces, truth, region), truth, spent)
    show("apart, joined", right(joined, truth), truth)


def by_sample(attack, truth, hits, many, seed, chance):
    """Attack the counts of some people alone, beside what the whole attack found of them."""
    import rekindle as rk

    rows = np.sort(np.random.default_rng(seed).choice(truth.people, many, replace=False))
    some = rk.Trajectories(truth.cells[rows], truth.locations, truth.calendar)
    found, seconds = attacked(attack, some.counts())
    if chance is not None:
        show(f"sample of {many}, chance", right(chance.recover(some.counts()).trajectories, some), some)
    show(f"sample of {many}, within the whole", hits[rows], some)
    show(f"sample of {many}, alone", right(found, some), some, [seconds])


def main():
    import rekindle as rk
    from rekindle.attacks import REFERENCES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=3_000)
    parser.add_argument("--attack", choices=["enhanced", "habits"], default="enhanced")
    parser.add_argument("--regions", type=int, nargs="*", default=[2, 4, 9])
    parser.add_argument("--samples", type=int, nargs="*", default=[])
    parser.add_argument("--side-km", type=float, help="of the city; by default such that there are 20 people a km2")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--no-chance", action="store_true", help="leave chance out, which takes longest to be compared"
    )
    options = parser.parse_args()
    attack = rk.Habits(effort="low", workers=1) if options.attack == "habits" else rk.Enhanced(workers=1)
    chance = None if options.no_chance else REFERENCES["chance"]()
    side = options.side_km or (options.people / PER_KM2) ** 0.5
    truth = rk.SyntheticCity(
        people=options.people, days=options.days, step="30min", width_km=side, height_km=side, seed=options.seed
    ).trajectories()
    attack.recover(rk.SyntheticCity(people=900, days=2, share_visitors=0.3).trajectories().counts())  # compiles
    print(f"{options.attack}: {truth.people} people, {truth.steps} steps, {len(truth.locations)} locations")
    whole, seconds = attacked(attack, truth.counts())
    hits = right(whole, truth)
    show("whole", hits, truth, [seconds])
    guess = None if chance is None else chance.recover(truth.counts()).trajectories
    if guess is not None:
        show("chance", right(guess, truth), truth)
    for many in options.regions:
        by_regions(attack, truth, whole, guess, many)
    for many in options.samples:
        by_sample(attack, truth, hits, many, options.seed, chance)


if __name__ == "__main__":
    main()
