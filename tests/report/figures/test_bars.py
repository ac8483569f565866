"""Bars and lines show the numbers they were given, in the colours of the attacks."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import rekindle as rk
from rekindle.evaluation.confidence import assess_confidence

figures = rk.figures


def bars(axes):
    return [(to_hex(bar.get_facecolor()).upper(), bar.get_height()) for bar in axes.patches]


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


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
    with pytest.raises(rk.errors.InvalidData, match="chosen"):
        figures.draw_costs([[1.0, 2.0]], chosen=[2])
    with pytest.raises(rk.errors.InvalidData, match="rows x columns"):
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
    with pytest.raises(rk.errors.InvalidSetting, match="nothing to draw"):
        draw({})
