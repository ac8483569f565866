"""Grids are told from other locations, also where their centres are not quite in line."""

import numpy as np
import pytest

from rekindle.report.lattice import lattice_sides

GRID = np.array([(2.0 * x, 3.0 * y) for x in range(5) for y in range(4)])


def test_a_grid_with_gaps_and_rounding():
    noisy = np.delete(GRID, [3, 7, 8], axis=0) + np.random.default_rng(0).normal(0, 1e-4, (17, 2))
    assert lattice_sides(GRID) == (2.0, 3.0)
    assert lattice_sides(noisy) == pytest.approx((2.0, 3.0), abs=1e-3)


@pytest.mark.parametrize("centres", [GRID[:1], GRID[:4], GRID * [1, 0], GRID[:9] + np.random.default_rng(1).uniform(0, 1, (9, 2))])  # fmt: skip
def test_no_grid(centres):
    assert lattice_sides(centres) is None
