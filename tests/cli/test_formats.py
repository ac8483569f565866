"""`--format junit` and `--format github` of the commands that a pipeline runs."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.cli.calling import call
from tests.small import random_truth

import rekindle as rk
from rekindle.cli.formats import Case, print_cases, print_failure

HOSTILE = "100%,\r\n::error::mine \x00\x1b[31m</failure>\ud800"


def printed(capsys, form, *cases):
    print_cases(form, "check", cases)
    return capsys.readouterr().out


@pytest.mark.parametrize("place", ["name", "what", "where", "file"])
def test_text_from_the_data_stays_text(capsys, place):
    value = Path(HOSTILE) if place == "file" else HOSTILE
    case = Case(**{"name": "rule", "what": "found", "failed": True} | {place: value})
    root = ElementTree.fromstring(printed(capsys, "junit", case))
    assert [one.tag for one in root.iter()] == ["testsuites", "testsuite", "testcase", "failure"]
    shown = printed(capsys, "github", case)
    assert shown.count("\n") == 1
    assert shown.startswith("::error ")
    assert "100%25" in shown
    if place in ("file", "name"):
        assert "%2C%0D%0A%3A%3Aerror%3A%3Amine" in shown


def test_every_case_is_a_test_case(capsys):
    cases = [
        Case(name="passed"),
        Case(name="told", what="a number"),
        Case(name="shut", what="first\nsecond", failed=True),
    ]
    suite = ElementTree.fromstring(printed(capsys, "junit", *cases))[0]
    assert suite.attrib == {"name": "rekindle check", "tests": "3", "failures": "1", "errors": "0"}
    assert [[part.tag for part in case] for case in suite] == [[], ["system-out"], ["failure"]]
    assert suite[2][0].attrib["message"] == "first"
    assert suite[2][0].text == "first\nsecond"
    assert printed(capsys, "github", *cases).splitlines() == [
        "::notice title=rekindle check%3A told::a number",
        "::error title=rekindle check%3A shut::first%0Asecond",
    ]


def test_work_that_could_not_be_done_is_no_failure(capsys):
    print_failure("junit", "audit", "There is no such file.")
    suite = ElementTree.fromstring(capsys.readouterr().out)[0]
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "1")
    assert suite[0][0].tag == "error"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["datetime,location,count", "2024-03-04 00:00,A,40", "2024-03-04 00:00,B,*", "2024-03-04 00:00,Total,47"]
    rows += ["2024-03-04 01:00,A,44", "2024-03-04 01:00,B,90", "2024-03-04 01:00,Total,134"]
    Path("out").mkdir()
    Path("out/published.csv").write_text("\n".join(rows))
    return "out/published.csv"


def test_check(table):
    found = call("check", table, "--format", "github", "--quiet")
    assert found.code == 3
    (line,) = found.out.splitlines()
    assert line.startswith(
        "::error file=out/published.csv,line=3,title=rekindle check%3A withheld-numbers::published.csv, row 2: "
    )
    found = call("check", table, "--format", "junit")
    assert found.code == 3
    suite = ElementTree.fromstring(found.out)[0]
    assert int(suite.attrib["tests"]) == 12
    assert [case.attrib["name"] for case in suite if len(case)] == ["withheld-numbers (published.csv, row 2)"]
    assert not call("check", table, "--format", "github", "--ignore", "withheld-numbers").out


def test_an_error_is_told_too(table):
    found = call("check", "nowhere.csv", "--format", "github")
    assert found.code == 2
    assert found.out.startswith("::error title=rekindle check%3A error::")
    assert "nowhere.csv" in found.err
    assert ElementTree.fromstring(call("check", "nowhere.csv", "--format", "junit").out)[0].attrib["errors"] == "1"
    assert not call("check", "nowhere.csv", "--format", "json").out


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats") / "data"
    truth = random_truth(np.random.default_rng(3), people=6, places=4, steps=24, step="2h", start="2024-03-01 00:00")
    rk.write_dataset(folder, counts=truth.counts(), truth=truth)
    return folder


def audited(dataset, out, *more):
    quick = ["--attack", "enhanced", "--defence", "none", "--seeds", "1", "--workers", "1", "--membership", "none"]
    return call("audit", dataset, "--out", out, *quick, *more)


def test_audit(dataset, tmp_path):
    gates = ["--fail-above", "0", "--fail-if-exposed", "6"]
    found = audited(dataset, tmp_path / "out", *gates, "--format", "junit")
    assert found.code == 3
    suite = ElementTree.fromstring(found.out)[0]
    told = {case.attrib["name"]: case[0] for case in suite}
    assert told["fail-above"].tag == "failure"
    assert "above 0." in told["fail-above"].text
    assert told["fail-if-exposed"].tag == "system-out"
    assert told["verdict"].text.endswith(")")
    again = audited(dataset, tmp_path / "out", "--fail-above", "1", "--format", "github")
    assert again.code == 0
    assert again.out.startswith("::notice title=rekindle audit%3A fail-above::The upper limit of the advantage")


def test_evaluate(dataset, tmp_path):
    assert call("attack", dataset, "--attack", "baseline", "--out", tmp_path / "found", "--quiet").code == 0
    shown = call("evaluate", tmp_path / "found", dataset, "--seeds", "1", "--format", "github").out
    assert shown.startswith("::notice title=rekindle evaluate%3A accuracy::0.")
    assert "chance 0." in shown
    suite = ElementTree.fromstring(
        call("evaluate", tmp_path / "found", dataset, "--seeds", "0", "--format", "junit").out
    )[0]
    assert [case.attrib["name"] for case in suite][:2] == ["accuracy", "precision"]
    assert suite.attrib["failures"] == "0"
