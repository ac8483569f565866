"""Tables that are read and written piece by piece: the same as at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import truths

import rekindle as rk
from rekindle.io import read_trajectories
from rekindle.io.recovery import RecoveryFolder, read_recovery
from rekindle.io.tables import table


@settings(deadline=None, max_examples=30)
@given(truths(away=True, max_steps=6), st.integers(1, 40))
def test_pieces_of_any_size_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, truth: rk.Trajectories, rows: int
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    rk.write_dataset(folder / "whole", counts=truth.counts(), truth=truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "ROWS_AT_ONCE", rows)
        rk.write_dataset(folder / "pieces", counts=truth.counts(), truth=truth)
        assert rk.read_dataset(folder / "whole").truth == truth
    assert rk.read_dataset(folder / "pieces").truth == truth
    assert pl.read_parquet(folder / "pieces/truth.parquet").equals(pl.read_parquet(folder / "whole/truth.parquet"))


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, rk.Trajectories]:
    """A file of six rows, which is read two rows at a time."""
    truth = rk.Trajectories([[0, 1], [1, 0], [1, 1]], rk.Locations([[0, 0], [1, 1]]), rk.Calendar("2024-01-01", "1h"))
    rk.write_trajectories(tmp_path / "a.parquet", truth)
    monkeypatch.setattr(table, "ROWS_AT_ONCE", 2)
    return tmp_path / "a.parquet", truth


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        (4, "location", "nowhere", "data row 5, column 'location'"),
        (3, "datetime", "2024-01-01 00:30:00", "data row 4, column 'datetime'"),
        (5, "person", None, "data row 6, column 'person'"),
        (4, "person", "0", "the person of row 5 is listed twice at 2024-01-01 00:00:00"),
        (5, "datetime", "2024-01-01 00:00:00", "the person of row 5 is listed twice at 2024-01-01 00:00:00"),
    ],
)
def test_a_bad_row_of_a_later_piece_is_named(rows, row, column, value, words) -> None:
    path, truth = rows
    content = pl.read_parquet(path).with_columns(pl.col("datetime", "location").cast(pl.String))
    values = content[column].to_list()
    values[row] = value
    content.with_columns(pl.Series(column, values)).write_parquet(path)
    with pytest.raises(rk.errors.InvalidFile, match=words):
        read_trajectories(path, truth.locations, truth.calendar)


def test_a_name_that_is_not_known_in_a_later_piece(rows) -> None:
    path, truth = rows
    with pytest.raises(rk.errors.InvalidFile, match="data row 5, column 'person': expected one of 2 known names"):
        read_trajectories(path, truth.locations, truth.calendar, people_ids=("1", "0"))


def test_a_recovery_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "ROWS_AT_ONCE", 5)
    truth = rk.SyntheticCity(people=7, days=2, step="6h").trajectories()
    sure = np.random.default_rng(0).random(truth.cells.shape, np.float32)
    folder = RecoveryFolder(
        tmp_path / "out", attack="a", settings={}, locations=truth.locations, calendar=truth.calendar, people=7
    )
    for day in range(2):
        steps = truth.calendar.day(day)
        folder.add(truth.part(steps), confidence=sure[:, steps])
    found = read_recovery(tmp_path / "out")
    assert np.array_equal(found.trajectories.cells, truth.cells)
    assert found.confidence is not None
    assert np.array_equal(found.confidence, sure)
