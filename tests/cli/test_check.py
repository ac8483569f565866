"""`rekindle check`: findings, exit codes, JSON, and settings in pyproject.toml."""

import json

import numpy as np
import polars as pl
import pytest
from tests.cli.calling import call
from tests.small import divide, random_truth

import rekindle as rk

TABLE = {
    "datetime": ["2024-03-04 00:00", "2024-03-04 00:00", "2024-03-04 00:00"] * 2,
    "location": ["A", "B", "Total"] * 2,
    "count": ["40", "*", "47", "44", "90", "134"],
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(TABLE)
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) > 2).then(pl.lit("2024-03-04 01:00")).otherwise("datetime").alias("datetime")
    )
    frame.write_csv(tmp_path / "published.csv")
    return "published.csv"


def test_a_finding_fails_the_pipeline(table):
    shown = call("check", table)
    assert shown.code == 3
    assert "published.csv, row 2: error withheld-numbers" in shown.out
    assert "the first is 7" in shown.out
    assert call("check", table, "--quiet").out == ""


def test_what_is_ignored_does_not(table, tmp_path):
    assert "nothing found" in call("check", table, "--ignore", "withheld-numbers").out
    (tmp_path / "pyproject.toml").write_text('[tool.rekindle.check]\nignore = ["withheld-numbers"]\n')
    assert "nothing found" in call("check", table).out


def test_as_json(table):
    found = json.loads(call("check", table, "--format", "json").out)
    assert [one["rule"] for one in found["findings"]] == ["withheld-numbers"]
    assert found["findings"][0]["rows"] == [2]
    assert "small-numbers" in found["rules"]


def test_a_dataset_folder_in_parts(tmp_path):
    truth = random_truth(np.random.default_rng(3), people=5, places=6, steps=24, step="1h")
    rk.write_dataset(tmp_path / "data", counts=truth.counts(), truth=truth, flows=truth.flows())
    found = {"data": json.loads(call("check", tmp_path / "data", "--format", "json").out)["findings"]}
    for name in ("counts", "flows", "truth"):
        divide(tmp_path / "data", name, shuffled=False)
    shown = call("check", tmp_path / "data", "--format", "json")
    assert shown.code == 3
    found["parts"] = json.loads(shown.out)["findings"]
    assert {one["table"] for one in found["parts"]} == {"counts", "flows"}
    assert [one | {"table": f"{one['table']}.parquet"} for one in found["parts"]] == found["data"]
    alone = json.loads(call("check", tmp_path / "data" / "counts", "--format", "json").out)["findings"]
    assert {one["table"] for one in alone} == {"counts"}
    assert "2 tables checked" in call("check", tmp_path / "data").out


def test_wrong_settings_are_named(table, tmp_path):
    assert "--ignore" in call("check", table, "--ignore", "nothing").err
    (tmp_path / "pyproject.toml").write_text("[tool.rekindle.check]\nnarow = 3\n")
    assert "unknown key 'narow'" in call("check", table).err
