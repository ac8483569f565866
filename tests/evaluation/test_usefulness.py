"""What is left of a release's use, against cases computed by hand."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from tests.small import line, random_truth

import rekindle as rk
from rekindle.defences import Chain, CoarserSpace, CoarserTime, LaplaceNoise, Round, Sample, Suppress
from rekindle.evaluation import UTILITIES, Utility, implied_flows, utility
from rekindle.evaluation.usefulness import _mean_ranks, read_at
from rekindle.model import Release

row = rk.Locations(np.column_stack([np.arange(4) + 0.5, np.full(4, 0.5)]))


@pytest.fixture(scope="module")
def truth():
    return random_truth(np.random.default_rng(2), people=50, places=16, steps=60, step="2h", stay=0.8)


def test_nothing_lost(truth):
    counts = truth.counts()
    for same in (counts, Release.of(counts)):
        left = utility(counts, same)
        for metric in UTILITIES:
            assert metric.value(left) == (1.0 if metric.direction == "higher" else 0.0)


def test_every_number_is_registered_with_its_direction():
    assert [metric.name for metric in UTILITIES] == [field.name for field in dataclasses.fields(Utility)]
    assert {metric.direction for metric in UTILITIES} == {"higher", "lower"}


def test_by_hand():
    calendar = rk.Calendar("2024-03-01", "30min")
    counts = rk.Counts([[4, 0, 0, 0], [2, 2, 0, 0], [0, 2, 1, 1], [0, 0, 2, 2]], row, calendar)
    release = Release([[4, 0, 0, 0], [np.nan, 2, 0, 0], [0, 2, 1, 1], [0, 0, 5, 2]], row, calendar)
    left = utility(counts, release)
    assert left.count_error == 5 / 16
    assert left.location_total_error == (2 + 3) / 16
    assert left.hour_total_error == (2 + 3) / 16
    assert left.profile_error == (2 + 3) / 16
    assert left.withheld == 1 / 16
    totals = [[6, 4, 3, 3], [4, 4, 6, 3]]
    assert left.busiest_rank_correlation == pytest.approx(stats.spearmanr(*totals).statistic)


def test_errors_withheld_numbers_and_scale_by_hand():
    truth = line([0, 0, 1, 1], [0, 0, 0, 1], [4, 4, 4, 4])
    counts = truth.counts()
    same = utility(counts, counts)
    assert same.to_json() == {metric.name: metric.value(same) for metric in UTILITIES}
    assert same.count_error == same.flow_error == same.withheld == 0
    assert same.busiest_rank_correlation == 1
    values = counts.values.astype(float)
    values[0, 4] = np.nan
    values[2, 0] = 3.0
    found = utility(counts, Release(values, counts.locations, counts.calendar))
    assert found.count_error == pytest.approx(3 / 12)
    assert found.location_total_error == pytest.approx(3 / 12)
    assert found.hour_total_error == pytest.approx(3 / 12)
    assert found.profile_error == pytest.approx(3 / 12)
    assert found.withheld == pytest.approx(1 / 20)
    twice = utility(counts, Release(counts.values * 2.0, counts.locations, counts.calendar))
    assert twice.count_error == 1
    halved = utility(counts, Release(counts.values * 2.0, counts.locations, counts.calendar), scale=0.5)
    assert halved.count_error == 0


def test_totals_that_vary():
    counts = line([0, 0, -1, -1], [-1, 1, 1, -1]).counts()
    assert counts.totals.tolist() == [1, 2, 1, 0]
    for metric in UTILITIES:
        assert metric.value(utility(counts, counts)) == (metric.direction == "higher")
    # Four people-steps; one number is withheld.
    values = counts.values.astype(float)
    values[1, 0] = np.nan
    found = utility(counts, Release(values, counts.locations, counts.calendar))
    assert (found.count_error, found.location_total_error, found.hour_total_error) == (0.25, 0.25, 0.25)
    # One comes to 1 from nowhere, and those who go leave for nowhere.
    assert not implied_flows(counts.values.astype(float)).any()


def test_implied_flows_by_hand():
    flows = implied_flows(np.array([[4.0, 0, 0, 0], [2, 2, 0, 0], [0, 2, 1, 1]]))
    assert flows.tolist() == [[0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    # Two of the four who come are from nowhere.
    assert implied_flows(np.array([[2.0, 0, 0], [0, 2, 2]])).tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    # One leaves and arrives nowhere.
    values = np.array([[4.0, 0.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-2.0, 2.0, 3.0]])
    assert implied_flows(values).tolist() == [[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    # Negative numbers are nobody.
    assert implied_flows(np.array([[2.0, -5], [0, 2]])).tolist() == [[0, 2], [0, 0]]


def test_flows_add_up_to_those_who_must_move(truth):
    values = truth.counts().values.astype(float)
    moving = np.abs(np.diff(values, axis=0)).sum() / 2
    flows = implied_flows(values)
    assert flows.sum() == pytest.approx(moving)
    assert not flows.diagonal().any()


def test_a_coarser_release_is_read_in_detail():
    counts = rk.Counts([[3, 1, 0, 2], [0, 4, 2, 0]], row, rk.Calendar("2024-03-01", "1h"))
    coarse = Chain([CoarserSpace(km=2), CoarserTime(step="2h")])(counts)
    assert read_at(coarse, row, counts.calendar).tolist() == [[2, 2, 1, 1], [2, 2, 1, 1]]
    left = utility(counts, coarse)
    assert left.count_error == (1 + 1 + 1 + 1 + 2 + 2 + 1 + 1) / 12
    assert left.hour_total_error == 0


def test_a_sample_is_scaled(truth):
    sample = Sample(share=0.5, fixed_size=True)
    release = sample(truth)
    assert utility(truth.counts(), release, scale=sample.scale).hour_total_error == 0
    assert utility(truth.counts(), release).hour_total_error == 0.5


@pytest.mark.parametrize(
    "stronger",
    [
        [LaplaceNoise(epsilon=epsilon, per="event", seed=0) for epsilon in (10, 3, 1, 0.3, 0.1)],
        [Suppress(below=below) for below in (1, 2, 3, 4, 5)],
        [CoarserTime(step=step) for step in ("2h", "4h", "12h")],
    ],
    ids=["noise", "suppression", "time"],
)
def test_stronger_defences_lose_more(truth, stronger):
    errors = [utility(truth.counts(), defence(truth)).count_error for defence in stronger]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_a_release_of_a_part_of_the_time_loses_the_rest():
    counts = rk.Counts([[1, 0, 0, 0]] * 4, row, rk.Calendar("2024-03-01", "1h"))
    assert utility(counts, counts.part(slice(0, 3))).count_error == 0.25
    with pytest.raises(rk.errors.InvalidData, match="shares no time"):
        utility(counts, rk.Counts([[1, 0, 0, 0]], row, rk.Calendar("2025-03-01", "1h")))


def test_places_without_an_order():
    even = rk.Counts([[1, 1, 1, 1]], row, rk.Calendar("2024-03-01", "1h"))
    assert utility(even, even).busiest_rank_correlation == 1.0
    assert utility(even, rk.Counts([[4, 0, 0, 0]], row, even.calendar)).busiest_rank_correlation == 0.0


def test_refuses(truth):
    counts = truth.counts()
    with pytest.raises(rk.errors.InvalidSetting, match="`scale` is 0"):
        utility(counts, counts, scale=0)
    finer = rk.Counts([[1, 0, 0, 0]], row, rk.Calendar("2024-03-01", "1h"))
    with pytest.raises(rk.errors.InvalidData, match="has 16 locations, the counts 4"):
        utility(finer, counts)


def test_is_deterministic_and_leaves_its_input(truth):
    counts, release = truth.counts(), Round(to=2)(truth)
    before = release.values.copy()
    assert utility(counts, release) == utility(counts, release)
    assert np.array_equal(release.values, before)


def test_a_coarse_release_is_read_at_the_detail_of_the_counts():
    fine = rk.Locations([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0]])
    coarse = rk.Locations([[0.5, 0.0], [10.0, 0.0]])
    release = Release(np.array([[4.0, 1.0], [2.0, np.nan]]), coarse, rk.Calendar("2024-03-01", "2h"))
    read = read_at(release, fine, rk.Calendar("2024-03-01", "1h", 6))
    assert read.tolist() == [[2, 2, 1], [2, 2, 1], [1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_ranks_are_those_of_scipy():
    for values in (np.array([3.0, 1.0, 3.0, 2.0]), np.random.default_rng(0).integers(0, 6, 20).astype(float)):
        assert np.array_equal(_mean_ranks(values), stats.rankdata(values))


# Flows


def test_flows_as_they_are_lose_nothing():
    truth = random_truth(np.random.default_rng(2), people=30, places=9, steps=30, away=0.2)
    flows = truth.flows()
    found = utility(flows, flows)
    assert found.count_error == found.flow_error == found.profile_error == found.withheld == 0
    assert found.busiest_rank_correlation == 1
    moving = truth.flows(stayers=False)
    assert utility(moving, moving).count_error == 0


def test_withheld_and_merged_flows_are_lost():
    truth = line([0, 1, 2, 2], [0, 1, 1, 1], [0, 3, 3, 3])
    flows = truth.flows()
    small = utility(flows, rk.Suppress(below=2)(flows))
    assert small.flow_error == pytest.approx(2 / 4)  # of four moves, two together are published
    assert small.count_error == pytest.approx(7 / 9)
    assert small.withheld == rk.Suppress(below=2)(flows).withheld.mean() > 0.5
    merged = utility(flows, rk.CoarserSpace(km=2.0)(flows))
    assert 0 < merged.flow_error <= 2
    with pytest.raises(rk.errors.InvalidData, match="release of counts"):
        utility(flows, truth.counts())
