"""Draws the pictures of the site: ``python docs/pictures.py`` writes them to docs/images."""

from pathlib import Path

import numpy as np

import rekindle as rk

IMAGES = Path(__file__).parent / "images"


def draw_danger() -> None:
    """What is published, what is recovered from it, and the truth, for one of the people whom the counts expose most."""
    truth = rk.SyntheticCity(people=60, days=7, step="10min").trajectories()
    counts = truth.counts()
    recovered = rk.Habits(effort="low").recover(counts).trajectories
    result = rk.evaluate(recovered, truth)
    order = result.per_person.matched
    hit = recovered.cells[order] == truth.cells
    home = np.array([cells == np.bincount(cells).argmax() for cells in truth.cells])
    # Someone who gets about, and whose time at home and time away were found alike.
    scores = [min(h[at].mean(), h[~at].mean()) if at.mean() < 0.75 else 0 for h, at in zip(hit, home, strict=True)]
    true = int(np.argmax(scores))
    mine = int(order[true])
    figure = rk.figures.new_figure(11, 4.1)
    left, middle, right = figure.subplots(1, 3)
    noon = 144 + 72
    rk.figures.draw_grid(counts.locations, counts=counts, step=noon, axes=left)
    left.set_title("published: how many people are where\n(Tuesday noon; the same every 10 minutes)", fontsize=10)
    xy = truth.locations.xy_km
    for axes, cells, colour, words in (
        (middle, recovered.cells[mine], rk.figures.COLOURS["habits"], "recovered from nothing else:\nsomebody's week"),
        (right, truth.cells[true], rk.figures.COLOURS["truth"], "the truth: the same week"),
    ):
        visits = np.bincount(cells, minlength=len(xy))
        places = np.flatnonzero(visits)
        axes.plot(*xy.T, ls="", marker=".", ms=3, color="#DDDDDD", zorder=0)
        axes.plot(*xy[cells].T, color=colour, lw=1.4, alpha=0.8)
        axes.scatter(*xy[places].T, s=15 + 260 * visits[places] / visits.max(), color=colour, alpha=0.45, lw=0)
        axes.set(xlabel="km to the east", xlim=left.get_xlim(), ylim=left.get_ylim(), aspect="equal")
        axes.set_title(words, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    right.text(
        0.98, 0.02, f"{result.per_person.accuracy[true]:.1%} of the week found", transform=right.transAxes, ha="right"
    )
    rk.figures.save_figure(figure, IMAGES / "danger.svg")


if __name__ == "__main__":
    draw_danger()
