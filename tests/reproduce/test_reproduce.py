"""The folder of the reproduction, on a small city."""

import json
import re

import polars as pl
import pytest

import rekindle as rk
from rekindle.reproduce import Effort, Sources, reproduce
from rekindle.reproduce.measuring import FIRST_DAY

pytestmark = pytest.mark.slow  # many figures are drawn

CITY = rk.SyntheticCity(people=8, days=4, step="2h", width_km=4, height_km=4)
QUICK = Effort(orders=2, habits="low", habits_seeds=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    told, moves = [], []
    out = tmp_path_factory.mktemp("made") / "out"
    found = reproduce(out, Sources(city=CITY), effort=QUICK, progress=lambda *at: moves.append(at), tell=told.append)
    return out, found, told, moves


def test_every_figure_has_svg_png_and_data(made):
    out, *_ = made
    names = {path.stem for path in (out / "figures").iterdir()}
    assert {"accuracies", "levenshtein", "errors", "uniqueness", "enhancements", "lookback", "confidence"} < names
    assert {"grid-synthetic-city", "paths-synthetic-city-well", "paths-synthetic-city-middling"} < names
    for name in names:
        assert (out / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"figures/{name}.svg").read_text()
        assert pl.read_csv(out / f"figures/{name}.csv").height > 1
    assert len(list((out / "figures").iterdir())) == 3 * len(names)


def test_the_data_is_what_was_measured(made):
    out, found, *_ = made
    (one,) = found.results
    table = pl.read_csv(out / "figures/accuracies.csv")
    rows = table.filter(pl.col("attack") == "enhanced").sort("order")["accuracy"].to_list()
    assert rows == [each.accuracy for each in one.evaluations["enhanced"]]
    first = rk.Enhanced(seed=0).recover(one.subject.counts).trajectories
    assert rows[0] == rk.evaluate(first, one.subject.truth).accuracy
    lookback = pl.read_csv(out / "figures/lookback.csv")
    assert sorted(lookback["lookback_days"].unique()) == list(range(1, 11))
    uniqueness = pl.read_csv(out / "figures/uniqueness.csv")
    assert set(uniqueness["who"]) == {"truth", "baseline", "enhanced", FIRST_DAY, "habits"}
    errors = pl.read_csv(out / "figures/errors.csv")
    points = one.subject.truth.cells.size
    assert (errors["recovery_error_km"] - errors["mean_error_km"] * points).abs().max() < 1e-6


def test_the_page_asks_nobody_and_says_what_is_missing(made):
    out, *_ = made
    page, text = (out / "index.html").read_text(), (out / "index.md").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!data:image/png;base64,)""", page)
    assert "<script" not in page
    for words in ("raw data of GeoLife was not given", "Levenshtein accuracies", "Each enhancement alone"):
        assert words in page
        assert words in text
    links = re.findall(r"\]\((figures/[^)]+)\)", text)
    assert len(links) == page.count("<img ")
    assert all((out / link).exists() for link in links)


def test_numbers_as_json(made):
    out, found, *_ = made
    numbers = json.loads((out / "reproduction.json").read_text())
    found_there = numbers["datasets"]["Synthetic city"]["evaluations"]["enhanced"]
    assert [one["accuracy"] for one in found_there] == [
        one.accuracy for one in found.results[0].evaluations["enhanced"]
    ]
    assert numbers["effort"] == {"orders": 2, "habits": "low", "habits_seeds": 1}


def test_progress_goes_up_to_the_end(made):
    *_, told, moves = made
    assert moves == [(at, moves[0][1]) for at in range(1, moves[0][1] + 1)]
    assert told[0] == "Synthetic city: preparing"


def test_the_same_again_gives_the_same_bytes(made, tmp_path):
    out, *_ = made
    reproduce(tmp_path / "again", Sources(city=CITY), effort=QUICK)
    for path in sorted(out.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(out)).read_bytes(), path.name


def test_ctrl_c_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.reproduce.measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "out", Sources(city=CITY), effort=QUICK)
    assert [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == []


def test_other_folders_are_left_alone(made, tmp_path):
    out, *_ = made
    with pytest.raises(rk.errors.OutputExists):
        reproduce(out, Sources(city=CITY))
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(rk.errors.InvalidFile, match=r"no rekindle\.json"):
        reproduce(tmp_path, Sources(city=CITY), overwrite=True)
    assert (tmp_path / "diary.txt").read_text() == "mine"
