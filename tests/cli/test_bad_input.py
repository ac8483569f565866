"""Whatever is wrong with what a command is given: one message, exit code 2, and nothing is written."""

import re
import shutil

import numpy as np
import pytest
from tests.cli.calling import call, plain
from tests.small import random_truth

import rekindle as rk

TRUTH = random_truth(np.random.default_rng(5), people=6, places=4, steps=36, step="2h", start="2024-03-01 04:00")
COUNTS = TRUTH.counts()
HEAD = '"datetime","(0, 0)","(0, 1)"\n'
FILES = {
    "empty.csv": "",
    "seven.csv": HEAD + "2014-05-01 07:00:00,2,1\n2014-05-01 07:10:00,2,1\n",
    "wide.csv": HEAD + "2014-05-01 00:00:00,2,1\n2014-05-01 00:10:00,1,2\n",
    "broken.py": "class Mine(\n",
    "own.py": "import rekindle as rk\nclass Counting(rk.Baseline):\n    takes_flows = False\n"
    "class Asking(rk.Attack):\n    def __init__(self, must): ...\n",
    "thesis.json": "years of work",
    "thesis/a.tex": "years of work",
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Datasets, a recovery, and files of all kinds."""
    folder = tmp_path_factory.mktemp("given")
    rk.write_dataset(folder / "data", counts=COUNTS, truth=TRUTH)
    rk.write_dataset(folder / "blind", counts=COUNTS)
    rk.write_dataset(folder / "moving", counts=COUNTS, flows=TRUTH.flows())
    other = rk.Trajectories(TRUTH.cells, TRUTH.locations, rk.Calendar("2031-01-01", "2h"))
    rk.write_dataset(folder / "other", counts=other.counts(), truth=other)
    assert call("attack", folder / "data", "--out", folder / "found").code == 0
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def work(given, tmp_path, monkeypatch):
    shutil.copytree(given, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "work"


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("attack", "no", "--out", "out"), ["no", "does not exist"]),
        (("attack", "no.csv", "--out", "out"), ["no.csv", "does not exist"]),
        (("attack", "empty.csv", "--out", "out"), ["empty.csv", "empty"]),
        (("attack", "seven.csv", "--out", "out"), ["07:00", "06:00"]),
        (("attack", "wide.csv", "--locations", "no.csv", "--out", "out"), ["no.csv", "does not exist"]),
        (("attack", "wide.csv", "--step", "soon", "--out", "out"), ["'soon'"]),
        (("attack", "data", "--attack", "magic", "--out", "out"), ["'magic'", "baseline, enhanced"]),
        (("attack", "data", "--attack", "json:JSONDecoder", "--out", "out"), ["json:JSONDecoder", "rekindle.Attack"]),
        (("attack", "data", "--attack", "nothing:Here", "--out", "out"), ["nothing:Here", "cannot be loaded"]),
        (("attack", "data", "--attack", "json:Nothing", "--out", "out"), ["cannot be loaded", "Nothing"]),
        (("attack", "data", "--attack", ":", "--out", "out"), ["cannot be loaded"]),
        (("attack", "data", "--attack", "broken:Mine", "--out", "out"), ["cannot be loaded", "SyntaxError"]),
        (("attack", "data", "--attack", "rekindle:Attack", "--out", "out"), ["rekindle:Attack"]),
        (("attack", "data", "--from", "soon", "--out", "out"), ["--from", "'soon'"]),
        (("attack", "data", "--from", "2025-01-01", "--out", "out"), ["2025-01-01", "2024-03-04 02:00:00"]),
        (("attack", "data", "--from", "2024-03-02T08:00", "--out", "out"), ["08:00", "06:00"]),
        (("attack", "data", "--from", "2024-03-02T00:00Z", "--out", "out"), ["time zone"]),
        (("attack", "data", "--out", "thesis"), ["thesis", "left as it is"]),
        (("attack", "data", "--out", "wide.csv"), ["wide.csv", "is a file"]),
        (("attack", "data", "--out", "wide.csv/out"), ["wide.csv/out", "cannot be written"]),
        (("attack", "data", "--out", "thesis", "--resume"), ["thesis", "rekindle.json", "left as it is"]),
        (("attack", "data", "--out", "out", "--csv", "wide.csv"), ["wide.csv", "left as it is"]),
        (("attack", "data", "--out", "out", "--csv", "people.xlsx"), ["people.xlsx", ".csv"]),
        (("attack", "data", "--out", "out", "--geojson", "no/people.geojson"), ["no/people.geojson", "folder"]),
        (("attack", "data"), ["--out"]),
        (("attack", "data", "--out", "out", "--seed", "x"), ["--seed"]),
        (("evaluate", "no", "data"), ["no", "does not exist"]),
        (("evaluate", "thesis", "data"), ["recovery.json", "does not exist"]),
        (("evaluate", "data", "data"), ["recovery.json", "does not exist"]),
        (("evaluate", "found", "no"), ["no", "does not exist"]),
        (("evaluate", "found", "blind"), ["blind", "truth"]),
        (("evaluate", "found", "other"), ["2031-01-01"]),
        (("evaluate", "found", "data", "--mapping", "best"), ["'best'", "optimal"]),
        (("evaluate", "found", "data", "--json", "thesis.json"), ["thesis.json", "left as it is"]),
        (("demo", "--out", "thesis"), ["thesis", "rekindle.json", "left as it is"]),
        (("demo", "--out", "wide.csv", "--overwrite"), ["wide.csv"]),
        (("attack", "data", "--out", "out", "--effort", "hgih"), ["--effort", "hgih"]),
        (("audit", "data", "--out", "out", "--effort", "hgih", "--attack", "baseline"), ["--effort", "hgih"]),
        (
            ("attack", "data", "--out", "out", "--attack", "enhanced", "--effort", "low"),
            ["--effort is a setting of habits, which the attack 'enhanced' does not have"],
        ),
        (
            ("attack", "data", "--out", "out", "--attack", "habits", "--lookback-days", "2"),
            ["--lookback-days is a setting of baseline and enhanced, which the attack 'habits' does not have"],
        ),
        (
            ("audit", "data", "--out", "out", "--attack", "enhanced", "--attack", "baseline", "--effort", "low"),
            ["--effort is a setting of habits, which enhanced and baseline do not have"],
        ),
        (
            ("recommend", "data", "--out", "out", "--attack", "baseline", "--effort", "low"),
            ["--effort is a setting of habits, which baseline does not have"],
        ),
        (("attack", "data", "--out", "out", "--attack", "own:Asking"), ["needs 'must'", "a default"]),
        (
            ("attack", "moving", "--out", "out", "--attack", "own:Counting"),
            ["takes counts only", "--release counts"],
        ),
        (("audit", "data", "--out", "out", "--absent", "sometimes"), ["--absent", "sometimes"]),
        (("audit", "data", "--out", "out", "--read-as", "poem"), ["--read-as", "poem"]),
        (("audit", "data", "--out", "out", "--format", "xml"), ["--format", "xml"]),
        (("audit", "blind", "--out", "out", "--fail-above", "0.3"), ["--fail-above needs", "--truth"]),
        (("audit", "blind", "--out", "out", "--fail-if-exposed", "0"), ["--fail-if-exposed needs", "--truth"]),
        (("audit", "data", "--out", "out", "--memory-limit", "much"), ["--memory-limit is 'much'"]),
        (("defend", "data", "--out", "r.csv", "--round-to", "5", "--per", "week"), ["--per", "week"]),
        (("defend", "data", "--out", "r.csv", "--suppress-below", "-1"), ["--suppress-below is -1"]),
        (("defend", "data", "--out", "r.csv", "--round-to", "0"), ["--round-to is 0"]),
        (("defend", "data", "--out", "r.csv", "--defence", "suppress:below=-1"), ["below is -1"]),
        (("prepare", "points", "empty.csv", "out", "--fill", "spline"), ["--fill", "spline"]),
        (("prepare", "porto", "empty.csv", "out", "--engine", "abacus"), ["--engine", "abacus"]),
        (("prepare", "geolife", "thesis", "out", "--merging", "sometimes"), ["--merging", "sometimes"]),
        (("prepare", "geolife", "thesis", "out", "--align", "week"), ["--align", "week"]),
        (("reproduce", "--out", "out", "--habits", "much"), ["--habits", "much"]),
        (("dance",), ["dance"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input(work, arguments, words):
    before = content(work)
    found = call(*arguments)
    assert found.code == 2
    message = plain(found.err)
    for word in words:
        assert word in message
    assert "Traceback" not in message
    assert "`" not in message
    assert len(re.findall(r"\.(\s|$)", message)) <= 2 or "Usage" in message
    assert found.out == ""
    assert content(work) == before
