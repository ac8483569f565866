"""Maps show the locations and the people they were given."""

import numpy as np
import pytest
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.figure import Figure

import rekindle as rk

figures = rk.figures


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_grid_has_a_square_for_each_place(truth):
    axes = figures.draw_grid(truth.locations)
    (squares,) = [one for one in axes.collections if isinstance(one, PatchCollection)]
    assert len(squares.get_paths()) == len(truth.locations) == 12
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("km to the east", "km to the north")


@pytest.mark.parametrize("step", [None, 7])
def test_grid_is_coloured_by_the_counts(truth, step):
    counts = truth.counts()
    axes = figures.draw_grid(truth.locations, counts=counts, step=step)
    expected = counts.values.mean(axis=0) if step is None else counts.values[step]
    assert np.array_equal(axes.collections[0].get_array(), expected)
    with pytest.raises(rk.errors.InvalidSetting, match="no step 48"):
        figures.draw_grid(truth.locations, counts=counts, step=48)


def test_towers_are_dots(truth):
    towers = rk.Locations([[0, 0], [1, 0.3], [2.2, 5]])
    axes = figures.draw_grid(towers, counts=rk.Counts([[1, 2, 0]], towers, rk.Calendar("2024-01-01", "1h")), step=0)
    (dots,) = [one for one in axes.collections if isinstance(one, PathCollection)]
    assert np.array_equal(dots.get_offsets(), towers.xy_km)
    assert np.array_equal(dots.get_array(), [1, 2, 0])
    with pytest.raises(rk.errors.InvalidData, match="other locations"):
        figures.draw_grid(towers, counts=truth.counts())


def test_positions_are_drawn_on_a_map_and_within_the_grid():
    lat_lng = [[lat, lng] for lat in (41.0, 41.1) for lng in (-8.6, -8.5, -8.4)]
    places = rk.Locations.from_lat_lng(lat_lng)
    axes = figures.draw_grid(places, positions=np.array([[[41.0, -8.5], [50.0, -8.5]]]))
    dots = axes.collections[0].get_offsets()
    assert np.asarray(dots).tolist() == [pytest.approx([-8.5, 41.0]), pytest.approx([-8.5, 41.15])]
    assert "degrees" in axes.get_xlabel()


def test_paths_are_those_of_the_matched_person(truth):
    shuffled = rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar)
    figure = figures.draw_paths(truth, {"habits": shuffled, "mine": truth}, person=3, day=1)
    assert isinstance(figure, Figure)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["true path", "habits (100% right)", "mine (100% right)"]
    over_time = lines(figure.axes[3])
    assert over_time["habits"].get_color() == figures.COLOURS["habits"]
    assert np.array_equal(over_time["habits"].get_ydata(), over_time["true"].get_ydata())
    assert len(over_time["true"].get_ydata()) == 24


@pytest.mark.parametrize(("wrong", "match"), [({"person": 12}, "person 12"), ({"day": 2}, "day 2")])
def test_paths_refuse_what_is_not_there(truth, wrong, match):
    with pytest.raises(rk.errors.InvalidSetting, match=match):
        figures.draw_paths(truth, {"mine": truth}, **wrong)
    with pytest.raises(rk.errors.InvalidSetting, match="`recoveries` is empty"):
        figures.draw_paths(truth, {})


def test_a_person_beside_the_truth(truth):
    figure = figures.draw_person(truth, truth, recovered=2, true=2, attack="habits")
    assert figure.axes[1].get_title() == "rebuilt from counts (100% right)"
    with pytest.raises(rk.errors.InvalidSetting, match="no day 9"):
        figures.draw_person(truth, truth, recovered=2, true=2, day=9)
