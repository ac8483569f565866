"""Each figure says what it was given, in the same colours, and without pyplot."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import rekindle as rk
from rekindle.evaluation.confidence import assess_confidence

figures = rk.figures


@pytest.fixture(scope="module")
def truth():
    return rk.SyntheticCity(people=12, days=2, step="1h", width_km=4, height_km=3).trajectories()


@pytest.fixture(scope="module")
def recoveries(truth):
    attacks = {"baseline": rk.Baseline, "enhanced": rk.Enhanced}
    return {name: [kind(seed=seed).recover(truth.counts()) for seed in range(2)] for name, kind in attacks.items()}


@pytest.fixture(scope="module")
def evaluations(truth, recoveries):
    return {name: [rk.evaluate(one.trajectories, truth) for one in found] for name, found in recoveries.items()}


def bars(axes):
    return [(to_hex(bar.get_facecolor()).upper(), bar.get_height()) for bar in axes.patches]


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_importing_the_package_loads_no_matplotlib():
    code = "import sys, rekindle as rk; print('matplotlib' in sys.modules, 'matplotlib' in sys.modules or rk.figures.COLOURS['habits'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", figures.COLOURS["habits"]]


def test_no_figure_needs_pyplot(truth):
    code = (
        "import sys, rekindle as rk\n"
        "t = rk.SyntheticCity(people=4, days=1, step='6h').trajectories()\n"
        "rk.figures.draw_grid(t.locations, counts=t.counts(), step=1)\n"
        "rk.figures.draw_paths(t, {'mine': t})\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_colours_are_the_same_everywhere_and_apart():
    known = figures.colours_of(["mine", "habits", "yours", "baseline"])
    assert known["habits"] == figures.COLOURS["habits"] == figures.colours_of(["habits"])["habits"]
    assert len(set(known.values())) == 4
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)


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
    with pytest.raises(rk.InvalidSetting, match="no step 48"):
        figures.draw_grid(truth.locations, counts=counts, step=48)


def test_towers_are_dots(truth):
    towers = rk.Locations([[0, 0], [1, 0.3], [2.2, 5]])
    axes = figures.draw_grid(towers, counts=rk.Counts([[1, 2, 0]], towers, rk.Calendar("2024-01-01", "1h")), step=0)
    (dots,) = [one for one in axes.collections if isinstance(one, PathCollection)]
    assert np.array_equal(dots.get_offsets(), towers.xy_km)
    assert np.array_equal(dots.get_array(), [1, 2, 0])
    with pytest.raises(rk.InvalidData, match="other locations"):
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
    with pytest.raises(rk.InvalidSetting, match=match):
        figures.draw_paths(truth, {"mine": truth}, **wrong)
    with pytest.raises(rk.InvalidSetting, match="no recovery"):
        figures.draw_paths(truth, {})


def test_a_person_beside_the_truth(truth):
    figure = figures.draw_person(truth, truth, recovered=2, true=2, attack="habits")
    assert figure.axes[1].get_title() == "rebuilt from counts (100% right)"
    with pytest.raises(rk.InvalidSetting, match="no day 9"):
        figures.draw_person(truth, truth, recovered=2, true=2, day=9)


def test_accuracies_of_one_dataset(evaluations):
    axes = figures.draw_accuracies(evaluations)
    assert bars(axes) == [
        (figures.COLOURS[name], pytest.approx(np.mean([one.accuracy for one in found])))
        for name, found in evaluations.items()
    ]
    assert labels(axes) == ["baseline", "enhanced"]
    levenshtein = figures.draw_accuracies({"baseline": evaluations["baseline"][0]}, metric="levenshtein_accuracy")
    assert bars(levenshtein)[0][1] == evaluations["baseline"][0].levenshtein_accuracy


def test_accuracies_of_several_datasets_beside_published_ones(evaluations):
    axes = figures.draw_accuracies(
        {"one": evaluations, "two": {"mine": [0.25, 0.75]}}, expected={"one": {"baseline": 0.38}}
    )
    assert [text.get_text() for text in axes.get_xticklabels()] == ["one", "two"]
    assert bars(axes)[-1][1] == 0.5
    assert labels(axes) == ["baseline", "enhanced", "mine", "the paper"]
    assert any(0.38 in dots.get_offsets()[:, 1] for dots in axes.collections)


@pytest.mark.parametrize("metric", ["mean_error_km", "recovery_error_km"])
def test_errors_are_in_km(evaluations, metric):
    axes = figures.draw_errors(evaluations, metric=metric)
    assert "km" in axes.get_ylabel()
    assert bars(axes)[1][1] == pytest.approx(np.mean([getattr(one, metric) for one in evaluations["enhanced"]]))


def test_uniqueness_of_truth_and_attacks(truth, evaluations, recoveries):
    drawn = lines(figures.draw_uniqueness(evaluations))
    assert list(drawn) == ["truth", "baseline", "enhanced"]
    assert list(drawn["truth"].get_ydata()) == list(evaluations["baseline"][0].truth_uniqueness.values())
    without_truth = lines(figures.draw_uniqueness({"enhanced": recoveries["enhanced"][0], "mine": truth}))
    assert list(without_truth) == ["enhanced", "mine"]
    assert list(without_truth["enhanced"].get_ydata()) == list(evaluations["enhanced"][0].uniqueness.values())


def test_lookback_goes_up_in_days(evaluations):
    axes = figures.draw_lookback({3: [0.4, 0.6], 1: evaluations["enhanced"][0]})
    (line,) = axes.get_lines()
    assert list(line.get_xdata()) == [1, 3]
    assert list(line.get_ydata()) == [evaluations["enhanced"][0].accuracy, 0.5]


def test_enhancements_start_from_the_first(evaluations):
    axes = figures.draw_enhancements({"baseline": evaluations["baseline"], "+ lookback": [0.2, 0.4]})
    assert [text.get_text() for text in axes.get_yticklabels()] == ["baseline", "+ lookback"]
    mean = np.mean([one.accuracy for one in evaluations["baseline"]])
    assert axes.get_lines()[0].get_xdata() == pytest.approx([mean, mean])


def test_confidence_against_accuracy(truth):
    sure = np.full(truth.cells.shape, 0.95)
    sure[:, ::2] = 0.35
    axes = figures.draw_confidence(assess_confidence(truth, sure, truth))
    assert list(lines(axes)["habits"].get_xdata()) == pytest.approx([0.35, 0.95])
    assert [height for _, height in bars(axes)] == pytest.approx([0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0.5])


def test_costs_with_the_chosen_ones_marked():
    axes = figures.draw_costs(
        [[1.5, np.inf], [0.25, 3]], people=["Ann", "Bob"], places=["home", "work"], chosen=[0, 1]
    )
    assert [text.get_text() for text in axes.texts] == ["1.5", "∞", "0.25", "3"]
    assert [text.get_weight() for text in axes.texts] == ["bold", "normal", "normal", "bold"]
    assert len(axes.patches) == 2
    assert "4.5 km" in axes.get_title()
    with pytest.raises(rk.InvalidData, match="chosen"):
        figures.draw_costs([[1.0, 2.0]], chosen=[2])
    with pytest.raises(rk.InvalidData, match="rows x columns"):
        figures.draw_costs([1.0, 2.0])


@pytest.mark.parametrize(
    "draw",
    [
        figures.draw_accuracies,
        figures.draw_errors,
        figures.draw_uniqueness,
        figures.draw_lookback,
        figures.draw_enhancements,
    ],
)
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(rk.InvalidSetting, match="nothing to draw"):
        draw({})


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
    with pytest.raises(rk.InvalidSetting, match=r"\.png, \.svg or \.pdf"):
        figures.save_figure(figures.draw_grid(truth.locations), tmp_path / "a.jpg")
