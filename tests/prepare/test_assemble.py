"""From records to trajectories, and the dataset folder."""

import gc
import json
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.prepare.made import T, table
from tests.sources.raw import (
    some_points,
    write_geolife,
)

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists
from rekindle.io import read_dataset
from rekindle.io.safety.folders import read_mark
from rekindle.model import Locations
from rekindle.prepare import Grid, Towers, prepare_geolife, prepare_points
from rekindle.sources import points_from_frame, read_geolife


def test_long_gaps_are_left_open():
    rows = [("a", 0, 1.0, 1.0), ("a", 50, 3.0, 3.0), ("b", 10, 4.0, 4.0), ("b", 30, 2.0, 2.0)]
    points = points_from_frame(table(*rows))
    places = Grid(cell_km=50, box=(0, 100))
    found = prepare_points(points, step="10min", max_gap="20min", places=places)
    seen = [[1, 1, 1, None, None, 3], [None, 4, 4, 2, 2, 2]]
    assert np.array_equal(found.positions[:, :, 0], np.array(seen, float), equal_nan=True)
    assert found.truth.counted.tolist() == [[at is not None for at in row] for row in seen]
    assert found.observed.tolist() == [[True, *[False] * 4, True], [False, True, False, True, False, False]]
    assert found.truth.counts().totals.tolist() == [1, 2, 2, 1, 1, 2]
    assert found.truth.counts().people == 2
    assert found.info["points"] == {"observed": round(4 / 12, 6), "filled": round(5 / 12, 6), "away": 0.25}
    assert found.info["preparation"]["max_gap"] == "20min"
    assert found.filled.tolist() == [2 / 6, 3 / 6]
    nearest = prepare_points(points, step="10min", max_gap="20min", fill="nearest", places=places)
    assert nearest.truth.counted.tolist()[0] == [True, True, False, False, True, True]
    only = prepare_points(points, step="10min", max_gap=timedelta(0), places=places)
    assert only.truth.observed is None  # nothing was filled
    assert np.array_equal(only.observed, only.truth.counted)
    assert only.info["points"]["filled"] == 0
    for wrong in ("soon", "3", timedelta(hours=-1), 3):
        with pytest.raises(InvalidSetting, match="`max_gap` is"):
            prepare_points(points, max_gap=wrong)


def test_the_gap_is_chosen_by_the_data():
    regular = [("a", minute, 1.0, 1.0) for minute in range(0, 3_000, 90)]
    found = prepare_points(points_from_frame(table(*regular, ("a", 3_600, 2.0, 2.0))), step="10min")
    assert found.info["preparation"]["max_gap"] == "2h"  # 90 minutes, rounded up
    assert found.info["points"]["away"] > 0


def test_people_outside_the_box_may_be_away(tmp_path):
    rows = [("a", 0, 1.0, 1.0), ("a", 10, 1.0, 9.0), ("a", 20, 1.1, 1.1), ("b", 0, 1.0, 9.0), ("c", 20, 0.9, 0.9)]
    bounds = (0.9, 0.9, 1.1, 1.1)
    points = points_from_frame(table(*rows))
    found = prepare_points(points, step="10min", places=Grid(cell_km=50, bounds=bounds, outside="away"))
    assert found.truth.people_ids == ("a", "c")
    assert found.info["dropped"] == {"people who are never inside the box": 1}
    assert found.truth.counted.tolist() == [[True, False, True], [False, False, True]]
    assert found.truth.observed is None
    assert np.isnan(found.positions[0, 1]).all()
    assert found.info["preparation"]["places"]["outside"] == "away"
    found.write(tmp_path / "out")
    assert read_dataset(tmp_path / "out").truth == found.truth
    edge = prepare_points(points, step="10min", places=Grid(cell_km=50, bounds=bounds))
    assert edge.truth.people == 3
    assert edge.truth.counted[0].all()
    with pytest.raises(InvalidData, match=r"Nobody is ever inside.*`bounds`"):
        prepare_points(points, places=Grid(bounds=(50.0, 50.0, 51.0, 51.0), outside="away"))


def test_the_box_is_that_of_counted_positions():
    rows = [("a", 0, 1.0, 1.0), ("a", 10, 2.0, 2.0), ("a", 1_000, 1.0, 1.0)]
    points = points_from_frame(table(*rows))
    box = (0, 60)
    carried, left_open = (
        prepare_points(points, step="10min", max_gap=gap, places=Grid(box=box)) for gap in (None, "0min")
    )
    assert len(carried.truth.locations) > len(left_open.truth.locations)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2_000), st.floats(48, 49), st.floats(2, 3)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(["last", "nearest", "linear"]),
    st.sampled_from([None, "auto", "0min", "3h"]),
)
def test_counts_are_those_of_the_truth(rows, fill, max_gap):
    points = points_from_frame(table(*rows))
    found = prepare_points(points, step="30min", fill=fill, max_gap=max_gap, places=Grid(cell_km=20))
    counts = found.truth.counts()
    if max_gap is None:
        assert (counts.values.sum(axis=1) == len({row[0] for row in rows})).all()
    else:
        assert found.truth.counted.any(axis=1).all()
    for step in (0, counts.steps - 1):
        for place in range(len(counts.locations)):
            assert counts.values[step, place] == (found.truth.cells[:, step] == place).sum()
    assert found.observed.sum() == len({(row[0], row[1] // 30) for row in rows})


def files(folder):
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_preparing_twice_gives_the_same_bytes(tmp_path):
    raw = write_geolife(tmp_path / "raw")
    for out in ("one", "two"):
        prepare_geolife(read_geolife(raw), step="10min").write(tmp_path / out)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert set(files(tmp_path / "one")) == {
        "counts.parquet",
        "dataset.json",
        "filled.csv",
        "locations.parquet",
        "rekindle.json",
        "truth.parquet",
    }


def test_a_picture_is_written_with_the_folder_or_not_at_all(tmp_path):
    prepared = prepare_points(points_from_frame(some_points()))

    def interrupted(path):
        path.touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared.write(tmp_path / "out", picture=("grid.png", interrupted))
    assert list(tmp_path.iterdir()) == []
    prepared.write(tmp_path / "out", picture=("grid.png", lambda path: path.touch()))
    sensitive = {path.name for path, _ in read_mark(tmp_path / "out").sensitive_files(tmp_path / "out")}
    assert sensitive == {"filled.csv", "grid.png", "truth.parquet"}
    assert "p1" not in (tmp_path / "out" / "dataset.json").read_text()
    assert (tmp_path / "out" / "filled.csv").stat().st_mode & 0o077 == 0


def test_what_is_written_is_what_was_prepared(tmp_path):
    prepared = prepare_points(points_from_frame(some_points()))
    prepared.write(tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert dataset.truth == prepared.truth
    assert dataset.info == json.loads(json.dumps(dict(prepared.info)))


def test_nothing_is_overwritten_or_left_half_written(tmp_path, monkeypatch):
    prepared = prepare_points(points_from_frame(some_points()))
    out = tmp_path / "out"
    prepared.write(out)
    before = files(out)
    with pytest.raises(OutputExists, match="`overwrite=True`"):
        prepared.write(out)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.prepare.tables.write_table", interrupted)
    for target in (out, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            prepared.write(target, overwrite=True)
    assert files(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(InvalidFile, match=r"no rekindle\.json"):
        prepared.write(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_call_records_keep_their_towers():
    # Two towers on one mast: only the name tells them apart.
    towers = Locations.from_lat_lng(np.array([[1.0, 2.0], [1.0, 2.0], [1.5, 2.0]]), ["A", "B", "C"])
    frame = pl.DataFrame(
        {"person": ["x", "x", "y"], "time": [T, T + timedelta(minutes=40), T], "cell": ["B", "C", "A"]}
    )
    points = points_from_frame(frame, location="cell", towers=towers)
    found = prepare_points(points, step="10min", places=Towers(towers), fill="nearest", max_gap=None)
    assert found.truth.cells.tolist() == [[1, 1, 1, 2, 2], [0, 0, 0, 0, 0]]
    assert found.truth.locations == towers
    left_open = prepare_points(points, step="10min", places=Towers(towers), max_gap="20min")
    assert left_open.truth.cells.tolist() == [[1, 1, 1, -1, 2], [0, 0, 0, -1, -1]]
    with pytest.raises(InvalidSetting, match="no line between two names"):
        prepare_points(points, places=Towers(towers), fill="linear")
    with pytest.raises(InvalidSetting, match="`places`"):
        prepare_points(points)


def test_a_long_truth_is_written_in_parts(tmp_path, monkeypatch):
    """Many points in several parts of people, and more rows of truth than a file takes, are the same dataset."""
    points = points_from_frame(some_points())
    whole = prepare_points(points)
    whole.write(tmp_path / "one", flows=True)
    monkeypatch.setattr("rekindle.sources.engine._ROWS_A_PART", 1)
    monkeypatch.setattr("rekindle.prepare.tables.ROWS_A_FILE", 100)
    parts = prepare_points(points)
    assert len(parts.spells.frames) > 1
    assert parts.truth == whole.truth
    assert parts.info == whole.info
    parts.write(tmp_path / "two", flows=True)
    assert len(list((tmp_path / "two" / "truth").iterdir())) > whole.people
    assert (tmp_path / "two" / "truth").stat().st_mode & 0o077 == 0
    one, two = read_dataset(tmp_path / "one"), read_dataset(tmp_path / "two")
    assert (two.truth, two.counts, two.flows, two.info) == (one.truth, one.counts, one.flows, one.info)
    assert files(tmp_path / "one")["filled.csv"] == (tmp_path / "two" / "filled.csv").read_bytes()
    sensitive = read_mark(tmp_path / "two").sensitive_files(tmp_path / "two")
    assert {path.parent.name for path, _ in sensitive} == {"truth", "two"}


def test_nothing_stays_in_the_folder_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    prepared = prepare_points(points_from_frame(some_points()))
    prepared.write(tmp_path / "out")
    kept = [path for path in tmp_path.iterdir() if path.name != "out"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    del prepared
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
