"""The page of the reproduction, on a small city."""

import dataclasses
import json
import re

import numpy as np
import polars as pl
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.reproduce import PAPER, Effort, Sources, Subject, measure, reproduce
from rekindle.reproduce.measure import FIRST_DAY, check
from rekindle.reproduce.page import build_sections, to_html, to_markdown
from rekindle.reproduce.pictures import METRICS
from rekindle.reproduce.ties import recover_with_scipy

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
    with pytest.raises(rk.errors.InvalidFile, match="other things than a reproduction"):
        reproduce(tmp_path, Sources(city=CITY), overwrite=True)
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_each_enhancement_is_switched_on_alone():
    from rekindle.reproduce.measure import _alone

    start, all_on = rk.Baseline(seed=1).settings(), rk.Enhanced(seed=1).settings()
    changed = []
    for attack in _alone(1).values():
        changed += [name for name, value in attack.settings().items() if value != start[name]]
    assert changed == ["night", "day", "lookback_days"]
    assert {name for name in all_on if all_on[name] != start[name]} == set(changed)


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(3), people=9, places=9, steps=36).counts()


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced(), rk.Enhanced(first_step_counts="first_day")])
def test_consistency_of_the_attacks(attack, counts):
    found = check(attack.recover(counts), attack, counts)
    midnights = 0 if attack.first_step_counts == "each_day" else 2
    assert (found.missed, found.gap) == (midnights, 0)
    assert found.checked == found.optimal > 25


@pytest.mark.parametrize("attack", [rk.Baseline(), rk.Enhanced(), rk.Enhanced(first_step_counts="first_day")])
def test_scipys_ties_are_another_optimum(attack, counts):
    found = recover_with_scipy(attack, counts)
    recovery = dataclasses.replace(attack.recover(counts), trajectories=found)
    result = check(recovery, attack, counts)
    assert result.missed == (0 if attack.first_step_counts == "each_day" else 2)
    assert result.optimal == result.checked
    assert found != attack.recover(counts).trajectories


def test_an_inconsistent_recovery_is_noticed(counts):
    attack = rk.Baseline()
    found = attack.recover(counts)
    wrong = rk.Trajectories(np.roll(found.trajectories.cells, 1, axis=1), counts.locations, counts.calendar)
    assert check(dataclasses.replace(found, trajectories=wrong), attack, counts).missed > 0
    shuffled = found.trajectories.cells.copy()
    shuffled[:, 1::2] = shuffled[::-1, 1::2]  # meets the counts, but at a cost
    dear = rk.Trajectories(shuffled, counts.locations, counts.calendar)
    result = check(dataclasses.replace(found, trajectories=dear), attack, counts)
    assert result.missed == 0
    assert result.optimal < result.checked


def test_without_a_truth_there_is_no_accuracy(counts):
    done = []
    found = measure(Subject("Town, published counts", counts), QUICK, lambda: done.append(1))
    assert not found.evaluations
    assert len(done) == 9  # three attacks, two row orders and SciPy's
    sections = build_sections([found], [], [], QUICK)
    text = to_markdown("Title", sections)
    assert "come without the people behind them" in text
    assert "## Accuracies" not in text
    assert "## Consistency" in text


def test_our_numbers_stand_beside_the_papers():
    truth = CITY.trajectories()
    found = measure(
        Subject("GeoLife 37", truth.counts(), truth, PAPER["GeoLife 37"]), Effort(orders=2, habits="none")
    )
    sections = {
        section.title: section for section in build_sections([found], [], ["<b>Nothing</b> | at all."], QUICK)
    }
    table = sections["Accuracies"].tables[0]
    row = dict(zip(table.head[:4], table.rows[0][:4], strict=True))
    assert row["baseline"].startswith(f"{np.mean([one.accuracy for one in found.evaluations['baseline']]):.3f} ± ")
    assert table.rows[0][table.head.index("baseline") + 1] == "0.381"
    assert table.rows[0][table.head.index("enhanced") + 1] == "0.542"
    assert "0.381 in the paper, which is below our range." in sections["Accuracies"].points[0]
    assert any("36, 41 and 45" in text for text in sections["Why numbers differ from the paper's"].points)
    page = to_html("Title", list(sections.values()), None)
    assert "&lt;b&gt;Nothing&lt;/b&gt;" in page
    assert "\\| at all" in to_markdown("Title", list(sections.values()))


def test_paper_numbers_fit_each_other():
    """Levenshtein is slightly above accuracy, as the paper says; enhanced is above baseline; errors go the other way."""
    for name, paper in PAPER.items():
        for attack in ("baseline", "enhanced"):
            assert 0 < paper.levenshtein_accuracy[attack] - paper.accuracy[attack] < 0.04, name
            assert 1 < paper.mean_error_km[attack] < 4, name
        assert paper.accuracy["enhanced"] > paper.accuracy["baseline"]
        assert paper.mean_error_km["enhanced"] < paper.mean_error_km["baseline"]
        assert {len(values) for values in paper.distinct_sets.values()} == {5}
    assert "accuracy" in METRICS
