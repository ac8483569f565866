"""What is tried where nobody said."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing import audit
from rekindle.auditing.plan import default_defences
from rekindle.defences import CoarserSpace, GeometricNoise, Suppress


@pytest.fixture(scope="module")
def truth():
    return rk.SyntheticCity(people=24, days=2, step="1h", width_km=5, height_km=5).trajectories()


def small_audit(data, **settings):
    """One process: the tests run side by side themselves."""
    usual = {"attacks": [rk.Baseline()], "defences": None, "seeds": 1, "membership": "none", "workers": 1}
    return audit(data, **(usual | settings))


@pytest.mark.parametrize("sectors", [2, 3])
def test_default_defences_where_locations_coincide(truth, sectors):
    """Sectors of a mast lie at the same coordinates."""
    masts = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]), sectors, axis=0)
    cells = np.random.default_rng(0).integers(0, len(masts), (40, 24))
    people = rk.Trajectories(cells, rk.Locations(masts), rk.Calendar("2024-03-01", "1h"))
    chosen = default_defences(people.counts(), people)
    assert [one.km for one in chosen if isinstance(one, rk.CoarserSpace)] == [3.0]
    for one in chosen:
        release = one.seeded(0)(people if one.needs_people else people.counts())
        assert rk.repair(release, people.people).people == people.people
    same = rk.Trajectories(np.zeros((9, 24), int), rk.Locations(np.zeros((2, 2))), people.calendar)
    found = small_audit(same)
    assert "Cells of 3 km" in found.left_out


def test_default_defences(truth):
    chosen = default_defences(truth.counts(), truth)
    assert len(chosen) == 8
    assert len({one.label for one in chosen}) == 8
    assert not any(one.needs_people for one in default_defences(truth.counts(), None))
    found = small_audit(truth)
    assert len(found.releases) + len(found.left_out) == 9


def test_few_defences_are_of_different_kinds(truth):
    counts = truth.counts()
    kinds = [type(one) for one in default_defences(counts, None, 3)]
    assert kinds == [Suppress, GeometricNoise, CoarserSpace]
    assert default_defences(counts, None, 0) == []
