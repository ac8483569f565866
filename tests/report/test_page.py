"""The report as a file: what it carries, how it shows names, how large it is."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.hostile import HOSTILE, hostile_audit, hostile_truth

import rekindle as rk
from rekindle.auditing import audit
from rekindle.report.page import _encode, build_page
from rekindle.report.words import advice, headline, percent, summary


class Reader(HTMLParser):
    """Collects elements, the text of scripts, and all text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.scripts, self.text, self.inside = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside and self.inside[-1] == "script":
            self.scripts.append(data)
        elif not self.inside or self.inside[-1] != "style":
            self.text.append(data)


def decode(text, steps):
    """What page.js does."""
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    cells = []
    while len(cells) < steps:
        token = numbers.pop(0)
        cells += [token // 2] * (numbers.pop(0) + 2 if token % 2 else 1)
    assert not numbers
    return cells


@pytest.fixture(scope="module", params=["truth", "no truth in it", "no truth known"])
def page(request):
    found = hostile_audit(request.param != "no truth known")
    return Reader(build_page(found, include_truth=request.param == "truth"))


def test_names_are_text(page):
    tags = {tag for tag, _ in page.elements}
    assert "img" not in tags
    assert len(page.scripts) == 2
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not any("hacked" in str(attributes.get("style")) for _, attributes in page.elements)
    data = json.loads(page.scripts[0])
    assert data["names"][: len(HOSTILE)] == list(HOSTILE)
    assert not set("<>&\u2028\u2029") & set(page.scripts[0])
    if hostile_audit().people and len(data["people"][0]) == 2:
        assert any(HOSTILE[0] in text for text in page.text)


def test_asks_nobody_for_anything(page):
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "form", "base"}
        assert "src" not in attributes
        assert all(value.startswith("#") for name, value in attributes.items() if name == "href")


def test_policy_allows_its_own_script_and_style_alone(page):
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(page.scripts[1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy


def test_every_figure_and_control_has_a_name(page):
    labelled = {"svg", "canvas"}
    for tag, attributes in page.elements:
        if tag in labelled and attributes.get("aria-hidden") != "true":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_the_truth_is_in_it_only_when_asked_for():
    found, truth = hostile_audit(), hostile_truth()
    without, with_truth = build_page(found), build_page(found, include_truth=True)
    for row in truth.cells:
        assert _encode(row) in with_truth
    recovered = {_encode(row) for row in found.recovered.cells}
    for row in truth.cells:
        if _encode(row) not in recovered:
            assert _encode(row) not in without
    assert "This report carries the truth." in with_truth
    assert "This report carries the truth." not in without
    data = json.loads(Reader(without).scripts[0])
    assert all(set(person) == {"recovered"} for person in data["people"])
    # The order of the paths says nothing of who they are.
    assert [decode(p["recovered"], truth.steps) for p in data["people"]] == found.recovered.cells.tolist()
    both = json.loads(Reader(with_truth).scripts[0])["people"]
    for person, risk in zip(both, found.people, strict=True):
        row = truth.people_ids.index(risk.person)
        assert decode(person["truth"], truth.steps) == truth.cells[row].tolist()
        assert decode(person["recovered"], truth.steps) == found.recovered.cells[found.matched[row]].tolist()


def test_without_the_truth_it_says_so():
    found = hostile_audit(False)
    text = " ".join(Reader(build_page(found, include_truth=True)).text)
    assert "Audited without the truth." in text
    assert "cannot be known" in text
    assert "homes found" not in text
    assert "cannot be said without the truth" in advice(found)[0]


def test_numbers_of_the_page_are_those_of_the_json():
    found = hostile_audit()
    text = " ".join(Reader(build_page(found)).text)
    assert headline(found) in text
    for sentence in summary(found):
        assert sentence in text
    best = found.to_json()["releases"][0]
    share = best["attacks"][best["strongest"]]["advantage"]
    assert percent(share["value"]) in text
    assert f"{percent(share['low'])} to {percent(share['high'])}" in text


@pytest.mark.parametrize(("people", "steps"), [(40, 5000), (200, 4300)])
def test_is_small_even_where_nobody_ever_stays(people, steps):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 900, (people, steps))
    small = hostile_audit()
    locations = rk.Locations([(x, y) for x in range(30) for y in range(30)])
    truth = rk.Trajectories(cells, locations, rk.Calendar("2024-01-01", "10min", steps))
    from dataclasses import replace

    people_risks = tuple(replace(small.people[0], person=str(row)) for row in range(people))
    best = replace(small.given.strongest, by_location=(0.5,) * 900)
    given = replace(small.given, attacks=small.given.attacks | {best.attack: best})
    large = replace(
        small, releases=(given, *small.releases[1:]), recovered=truth, truth=truth,
        matched=np.arange(people), people=people_risks,
    )  # fmt: skip
    for include in (False, True):
        assert len(build_page(large, include_truth=include).encode()) < 5e6


def test_encoding_is_lossless():
    rng = np.random.default_rng(0)
    for places in (1, 2, 64, 65, 70_000):
        cells = np.repeat(rng.integers(0, places, 60), rng.integers(1, 300, 60))
        assert decode(_encode(cells), len(cells)) == cells.tolist()


def test_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    found = hostile_audit()
    found.to_html(path, names=True)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(rk.OutputExists):
        found.to_html(path, overwrite=False)
    found.write_json(tmp_path / "audit.json", names=True)
    assert json.loads((tmp_path / "audit.json").read_text()) == json.loads(json.dumps(found.to_json()))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["audit.json", "report.html"]


def test_towers_in_place_of_cells():
    rng = np.random.default_rng(0)
    locations = rk.Locations(rng.uniform(0, 10, (12, 2)))
    truth = rk.Trajectories(rng.integers(0, 12, (6, 24)), locations, rk.Calendar("2024-01-01", "1h", 24))
    text = build_page(audit(truth, attacks=[rk.Enhanced()], defences=[], seeds=1, workers=1))
    assert '"side":null' in text
    assert re.search(r'<circle class="(shade\d|nobody)"', text)


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (0.001, "under 1%"), (-0.001, "0%"), (0.314, "31%"), (0.999, "over 99%"), (1, "100%")])  # fmt: skip
def test_percent(share, text):
    assert percent(share) == text
