"""Datasets in parts, and parts of datasets: some of the people, some of the days."""

import os

import numpy as np
import polars as pl
import pytest
from tests.small import divide, random_truth

import rekindle as rk
from rekindle.io.dataset import published_in


@pytest.fixture
def truth():
    """Five people over a short first day and two whole ones; Dan is away on the last."""
    truth = random_truth(np.random.default_rng(3), people=5, places=6, steps=62, step="1h")
    cells = truth.cells.copy()
    cells[3, -24:] = rk.AWAY
    observed = (np.arange(62) % 3 == 0) & (cells != rk.AWAY)
    names = ["Eve", "Ann", "Cay", "Dan", "Ben"]
    return rk.Trajectories(cells, truth.locations, rk.Calendar("2024-03-01 10:00", "1h", 62), names, observed)


@pytest.fixture
def folder(tmp_path, truth):
    flows = (truth.flows(), truth.flows("2h", stayers=False))
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth, flows=flows)
    return tmp_path / "data"


def ordered(truth):
    rows = np.argsort(truth.people_ids)
    names = [truth.people_ids[row] for row in rows]
    return rk.Trajectories(truth.cells[rows], truth.locations, truth.calendar, names, truth.observed[rows])


def test_a_folder_of_parts_is_a_table(folder, truth):
    whole = rk.read_dataset(folder)
    assert published_in(folder) == [folder / "counts.parquet", folder / "flows.parquet"]
    for name in ("truth", "counts", "flows"):
        divide(folder, name)
    divide(folder, "locations", parts=1, shuffled=False)
    assert published_in(folder) == [folder / "counts", folder / "flows"]
    assert published_in(folder / "counts") == [folder / "counts"]
    data = rk.read_dataset(folder)
    assert data.truth == ordered(truth)  # the order of the parts says nothing
    assert (data.counts, data.flows, data.info) == (whole.counts, whole.flows, whole.info)
    assert rk.read_dataset(folder, truth=False).truth is None
    with pytest.raises(rk.errors.InvalidFile, match="this is a folder"):
        rk.read_counts(folder)  # whose tables are no parts of one


@pytest.mark.parametrize("parts", [False, True])
def test_part_of_the_days(folder, truth, parts):
    if parts:
        for name in ("truth", "counts", "flows"):
            divide(folder, name)
        truth = ordered(truth)
    for days, steps in ((2, slice(0, 38)), (slice(1, 2), slice(14, 38)), (slice(2, None), slice(38, 62))):
        data = rk.read_dataset(folder, days=days)
        expected = truth.part(steps)
        assert data.truth == expected
        assert data.counts == expected.counts()
        assert data.people == 5
        assert data.flows == (expected.flows(), expected.flows("2h", stayers=False))
    assert rk.read_dataset(folder, days=2, truth=False).counts == truth.part(slice(0, 38)).counts()
    for wrong in (0, slice(3, 5)):
        with pytest.raises(rk.errors.InvalidSetting, match="`days` is"):
            rk.read_dataset(folder, days=wrong)


@pytest.mark.parametrize("parts", [False, True])
def test_part_of_the_people(folder, truth, parts):
    if parts:
        divide(folder, "truth")
        truth = ordered(truth)
    data = rk.read_dataset(folder, people=["Ben", "Dan"])
    assert data.truth == truth.without({"Eve", "Ann", "Cay"})
    assert data.counts == data.truth.counts()
    assert data.flows == (data.truth.flows(), data.truth.flows("2h", stayers=False))
    assert data.info["drawn_from"] == 5
    last = rk.read_dataset(folder, people=["Ben", "Dan"], days=slice(2, 3))
    assert last.truth == data.truth.part(slice(38, 62))  # Dan, who is away all day, is one of them
    drawn = [rk.read_dataset(folder, people=3, seed=seed).truth for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert len({one.people_ids for one in drawn}) > 1
    assert all(one == truth.without(set(truth.people_ids) - set(one.people_ids)) for one in drawn)
    with pytest.raises(rk.errors.InvalidSetting, match="the dataset has 5 people"):
        rk.read_dataset(folder, people=6)
    with pytest.raises(rk.errors.InvalidSetting, match="names 1 who"):
        rk.read_dataset(folder, people=["Ann", "Zoe"])
    with pytest.raises(rk.errors.InvalidSetting, match="there is no truth"):
        rk.read_dataset(folder, people=2, truth=False)


def test_parts_that_do_not_belong_together(folder, tmp_path):
    divide(folder, "counts")
    part = folder / "counts" / "part-1.parquet"
    good = pl.read_parquet(part)
    good.drop("count").write_parquet(part)
    with pytest.raises(rk.errors.InvalidFile, match="counts: it cannot be read as parts of one table"):
        rk.read_dataset(folder)
    good.write_parquet(part)
    os.rename(folder / "counts", tmp_path / "elsewhere")
    (folder / "counts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(rk.errors.InvalidFile, match="leads out of its folder"):
        rk.read_dataset(folder)
