"""Draw the pictures of the page on Habits from a synthetic city.

python docs/concepts/habits_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rekindle as rk
from rekindle.attacks.habits import Habits
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.relink import relink
from rekindle.attacks.habits.rng import generator
from rekindle.attacks.habits.search import HabitModel, SwapSearch
from rekindle.attacks.habits.track import track
from rekindle.evaluation import assess_confidence

IMAGES = Path(__file__).parent.parent / "images"
BLUE, ORANGE, GREY = "#3465a4", "#f57900", "#888a85"


def save(figure: plt.Figure, name: str) -> None:
    figure.tight_layout()
    figure.savefig(IMAGES / f"habits-{name}.svg", metadata={"Date": None})
    plt.close(figure)


def last_in(truth: rk.Trajectories) -> None:
    """How often the person who leaves is the one who came last, beside what a random draw would give."""
    rank, drawn = np.zeros(6), np.zeros(6)
    arrived = np.zeros(truth.people, int)
    for step in range(1, truth.steps):
        before, now = truth.cells[:, step - 1], truth.cells[:, step]
        for person in np.flatnonzero(before != now):
            crowd = np.flatnonzero(before == before[person])
            if 2 <= len(crowd) <= 6:
                place = np.flatnonzero(crowd[np.argsort(-arrived[crowd], kind="stable")] == person)[0]
                rank[place] += 1
                drawn[: len(crowd)] += 1 / len(crowd)
        arrived[before != now] = step
    figure, axes = plt.subplots(figsize=(5, 2.6))
    at = np.arange(6)
    axes.bar(at - 0.2, rank / rank.sum(), 0.4, color=BLUE, label="who leaves")
    axes.bar(at + 0.2, drawn / drawn.sum(), 0.4, color=GREY, label="anyone at random")
    axes.set_xticks(at, ["last", "2nd last", "3rd", "4th", "5th", "6th"])
    axes.set(xlabel="order of arrival, of those in the location", ylabel="share of departures")
    axes.legend(frameon=False)
    save(figure, "last-in")


def exchange() -> None:
    """Two people meet; after the meeting each may be either."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.4), sharey=True)
    one, other = np.array([0, 0, 1, 2, 2, 3, 4, 4]), np.array([4, 4, 3, 2, 2, 1, 0, 0])
    for axes, swapped, title in ((left, False, "they pass each other"), (right, True, "they turn back")):
        first = np.concatenate([one[:4], (other if swapped else one)[4:]])
        second = np.concatenate([other[:4], (one if swapped else other)[4:]])
        axes.plot(first - 0.06, color=BLUE, lw=2.5)
        axes.plot(second + 0.06, color=ORANGE, lw=2.5)
        axes.axvspan(3, 4, color=GREY, alpha=0.2)
        axes.set(title=title, xlabel="time")
        axes.set_xticks([])
    left.set_ylabel("location")
    left.set_yticks(range(5))
    save(figure, "exchange")


def parts(truth: rk.Trajectories) -> None:
    """What each part adds, and whether confidence means anything."""
    counts = truth.counts()
    problem = Problem.of(counts.values, counts.locations, counts.calendar)

    def accuracy(tracks: np.ndarray) -> float:
        found = rk.Trajectories(problem.expand(tracks), counts.locations, counts.calendar)
        return rk.evaluate(found, truth).accuracy

    tracks = track(problem, 0)
    linked = relink(problem, tracks, 0)
    search = SwapSearch(problem, HabitModel.learn(problem, [tracks]), linked, generator(0))
    search.run(100 * truth.people)
    found = Habits().recover(counts)
    bars = {
        "baseline": rk.evaluate(rk.Baseline().recover(counts).trajectories, truth).accuracy,
        "enhanced": rk.evaluate(rk.Enhanced().recover(counts).trajectories, truth).accuracy,
        "track": accuracy(tracks),
        "+ re-link": accuracy(linked),
        "+ search": accuracy(search.tracks),
        "+ consensus,\npolish": rk.evaluate(found.trajectories, truth).accuracy,
    }
    sure = assess_confidence(found.trajectories, found.confidence, truth)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=[1.6, 1])
    left.bar(list(bars), list(bars.values()), color=[GREY, GREY, *[BLUE] * 4])
    left.set(ylabel="accuracy", ylim=(0, 1))
    left.tick_params(axis="x", labelrotation=30)
    right.plot([0, 1], [0, 1], color=GREY, lw=1)
    right.scatter(sure.confidence, sure.accuracy, s=10 + 400 * sure.share, color=BLUE)
    right.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.05), ylim=(0, 1.05))
    save(figure, "parts")


def main() -> None:
    plt.switch_backend("svg")
    plt.rcParams["svg.hashsalt"] = "rekindle"  # the same picture gives the same file
    IMAGES.mkdir(exist_ok=True)
    last_in(rk.SyntheticCity(people=100, days=7, step="10min").trajectories())
    exchange()
    parts(rk.SyntheticCity(people=60, days=14, step="30min", cell_km=0.5).trajectories())


if __name__ == "__main__":
    main()
