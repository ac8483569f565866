"""A dataset on another list of locations."""

import numpy as np
import pytest
from tests.model.nouns import AWAY_TRUTH, LOCATIONS

import rekindle as rk


def test_a_dataset_on_a_longer_list_of_locations():
    few = rk.Locations([[1, 0], [0, 0]], ["b", "a"])
    truth = rk.Trajectories([[0, 1], [1, 1]], few, rk.Calendar("2024-03-01", "1h"))
    found = rk.Dataset(truth.counts(), truth).with_locations(
        rk.Locations([[0, 0], [1, 0], [2, 0]], list("abc"), public=True)
    )
    assert found.counts.values.tolist() == [[1, 1, 0], [2, 0, 0]]
    assert found.truth.cells.tolist() == [[1, 0], [0, 0]]
    assert found.locations.public
    with pytest.raises(rk.errors.InvalidData, match="'b' is unknown"):
        rk.Dataset(truth.counts()).with_locations(rk.Locations([[0, 0]], ["a"]))


def test_a_dataset_on_other_locations_keeps_who_is_away():
    public = rk.Locations([[9.0, 9.0], *LOCATIONS.xy_km], ["x", *LOCATIONS.ids])
    moved = rk.Dataset(AWAY_TRUTH.counts(), AWAY_TRUTH).with_locations(public)
    assert moved.people == 3
    assert moved.truth is not None
    assert moved.truth.cells.tolist() == [[1, -1, 2], [-1] * 3, [2, -1, -1]]
    assert np.array_equal(moved.truth.observed, AWAY_TRUTH.observed)
