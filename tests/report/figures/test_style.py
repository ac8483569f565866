"""Figures are written the same each time, without pyplot, and for their owner alone where they show the truth."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes

import rekindle as rk

figures = rk.figures


@pytest.mark.slow
def test_importing_the_package_loads_no_matplotlib_and_no_figure_needs_pyplot():
    code = (
        "import sys, rekindle as rk\n"
        "print('matplotlib' in sys.modules, rk.figures.COLOURS['habits'])\n"
        "t = rk.SyntheticCity(people=4, days=1, step='6h').trajectories()\n"
        "rk.figures.draw_grid(t.locations, counts=t.counts(), step=1)\n"
        "rk.figures.draw_paths(t, {'mine': t})\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", figures.COLOURS["habits"], "False"]


def test_colours_are_the_same_everywhere_and_apart():
    known = figures.colours_of(["mine", "habits", "yours", "baseline"])
    assert known["habits"] == figures.COLOURS["habits"] == figures.colours_of(["habits"])["habits"]
    assert len(set(known.values())) == 4
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)


def test_given_axes_are_used(truth, evaluations):
    figure = figures.new_figure()
    one, two = figure.subplots(1, 2)
    assert figures.draw_uniqueness(evaluations, axes=one) is one
    assert figures.draw_grid(truth.locations, axes=two) is two
    assert isinstance(one, Axes)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_figure_gives_the_same_bytes(truth, tmp_path, ending):
    for name in "ab":
        figures.save_figure(figures.draw_grid(truth.locations), tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert first == (tmp_path / f"b.{ending}").read_bytes()
    assert len(first) > 1000


def test_other_endings_are_refused(truth, tmp_path):
    with pytest.raises(rk.errors.InvalidSetting, match=r"\.png, \.svg or \.pdf"):
        figures.save_figure(figures.draw_grid(truth.locations), tmp_path / "a.jpg")


@pytest.mark.parametrize("kind", ["paths", "person", "positions", "accuracies"])
def test_only_the_owner_can_read_figures_of_the_truth(truth, tmp_path, kind):
    places = rk.Locations.from_lat_lng([[41.0, -8.6], [41.1, -8.5]])
    figure = {
        "paths": lambda: figures.draw_paths(truth, {"mine": truth}),
        "person": lambda: figures.draw_person(truth, truth, recovered=0, true=0),
        "positions": lambda: figures.draw_grid(places, positions=np.array([[[41.0, -8.5]]])),
        "accuracies": lambda: figures.draw_accuracies({"mine": 0.5}),
    }[kind]()
    mask = os.umask(0o022)
    try:
        figures.save_figure(figure, tmp_path / "a.png")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == (0o644 if kind == "accuracies" else 0o600)
