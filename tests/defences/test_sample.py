"""What defences do, on numbers that can be checked by hand."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.defences import (
    Cap,
    Chain,
    Sample,
)

row = rk.Locations(np.column_stack([np.arange(6) + 0.5, np.full(6, 0.5)]))


def test_sample_draws_people_with_their_names():
    cells = np.repeat(np.arange(6)[:, None], 4, axis=1)
    truth = rk.Trajectories(cells, row, rk.Calendar("2024-03-01", "6h"), list("abcdef"))
    drawn = Sample(share=0.5, fixed_size=True, seed=3).coarsen(truth)
    assert drawn.people == 3
    assert [list("abcdef")[person] for person in drawn.cells[:, 0]] == list(drawn.people_ids)
    assert Sample(share=0.5).scale == 2.0
    assert Chain([Sample(share=0.5), Cap(at=3)]).scale == 2.0
    assert Sample(share=0.5, fixed_size=True, seed=3)(truth).values.sum() == 3 * 4


def test_sample_draws_each_person_for_themselves():
    truth = rk.Trajectories(np.zeros((2000, 1), int), row, rk.Calendar("2024-03-01", "6h"))
    sizes = [Sample(share=0.3, seed=seed).coarsen(truth).people for seed in range(60)]
    assert np.mean(sizes) == pytest.approx(600, abs=5 * np.sqrt(2000 * 0.21 / 60))
    assert np.std(sizes) == pytest.approx(np.sqrt(2000 * 0.21), rel=0.4)
    assert Sample(share=1.0).coarsen(truth).people == 2000


def test_sample_for_publication_cannot_be_drawn_again():
    assert Sample(share=0.5).for_publication().seed != Sample(share=0.5).for_publication().seed
    assert Chain([Sample(share=0.5), Cap(at=3)]).for_publication().defences[0].seed > 2**32
