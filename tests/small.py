"""Small random datasets that the tests share."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

import rekindle as rk

STEPS = ("1h", "2h", "3h", "4h", "6h", "8h", "12h", "24h", "40min", "90min")
STARTS = ("2024-03-01 00:00", "2024-03-01 01:10", "2024-03-01 03:20", "2024-03-01 05:59", "2024-03-01 06:00")


def random_truth(rng, *, people, places, steps, step="2h", start=STARTS[0], lattice=True, stay=0.6, away=0.0):
    """People who mostly stay, on a lattice (many ties) or anywhere (towers)."""
    if lattice:
        side = int(np.ceil(np.sqrt(places)))
        xy = np.array([(i % side, i // side) for i in range(places)], float) + 0.5
    else:
        xy = rng.uniform(0, 10, (places, 2)).round(3)
    cells = np.empty((people, steps), int)
    cells[:, 0] = rng.integers(0, places, people)
    for t in range(1, steps):
        move = rng.random(people) > stay
        cells[:, t] = np.where(move, rng.integers(0, places, people), cells[:, t - 1])
    if away:
        # In spells, as phones are off; somebody is always counted at some step.
        gone = rng.random((people, steps)) < away / 2
        gone |= np.roll(gone, 1, axis=1)
        gone[0, 0] = False
        cells[gone] = rk.AWAY
    return rk.Trajectories(cells, rk.Locations(xy), rk.Calendar(start, step, steps))


def line(*rows, start="2024-03-01", step="1h", locations=5):
    """People on a line of locations, 1 km apart; 1 March 2024 is a Friday."""
    xy = [[float(x), 0.0] for x in range(locations)]
    return rk.Trajectories(np.array(rows), rk.Locations(xy), rk.Calendar(start, step))


def shuffled(truth, rng, people=None):
    """A guess with the counts of a truth: at each step, locations and being away change hands at random, at some steps.

    Or another number of people, who are then some of them, with others who stay where somebody once was.
    """
    cells = truth.cells.copy()
    for step in np.flatnonzero(rng.random(truth.steps) < rng.random()):
        cells[:, step] = rng.permutation(cells[:, step])
    cells = rng.permutation(cells)
    if people is not None:
        others = rng.choice(cells.ravel(), (people, 1))
        cells = np.concatenate([cells, np.broadcast_to(others, (people, truth.steps))])[-people:]
    return rk.Trajectories(cells, truth.locations, truth.calendar)


@st.composite
def truths(draw, max_people=7, max_places=7, max_steps=40, away=False):
    """Small datasets with partial first and last days, one person, one place, everyone in one place; people may be away."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_truth(
        rng,
        people=draw(st.integers(1, max_people)),
        places=draw(st.integers(1, max_places)),
        steps=draw(st.integers(1, max_steps)),
        step=draw(st.sampled_from(STEPS)),
        start=draw(st.sampled_from(STARTS)),
        lattice=draw(st.booleans()),
        stay=draw(st.sampled_from((0.0, 0.5, 0.9, 1.0))),
        away=draw(st.sampled_from((0.0, 0.3, 0.9))) if away else 0.0,
    )


def divide(folder, name, parts=3, *, shuffled=True):
    """Put a folder of files in the place of one file, with the rows in another order."""
    table = pl.read_parquet(folder / f"{name}.parquet")
    (folder / f"{name}.parquet").unlink()
    (folder / name).mkdir()
    rows = np.random.default_rng(0).permutation(table.height) if shuffled else np.arange(table.height)
    for number, some in enumerate(np.array_split(rows, parts)):
        table[some.tolist()].write_parquet(folder / name / f"part-{number}.parquet")
