"""The report as a file: what it carries, how it shows names, how large it is."""

import base64
import hashlib
import json
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.hostile import HOSTILE, hostile_audit, hostile_truth
from tests.report.made import around, made, release, repaired

import rekindle as rk
from rekindle.auditing import Growth, Identity, audit
from rekindle.auditing.results import WindowRisk
from rekindle.auditing.risk import RULE
from rekindle.defences import Sample
from rekindle.report.page import _encode, build_page
from rekindle.report.words import headline, percent, summary


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
        cells += [token // 2 - 1] * (numbers.pop(0) + 2 if token % 2 else 1)
    assert not numbers
    return cells


@pytest.fixture(scope="module", params=["truth", "no truth in it", "no truth known"])
def page(request):
    found = hostile_audit(request.param != "no truth known")
    return Reader(build_page(found, include_truth=request.param == "truth", names=True))


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
    assert "This report contains the truth." in with_truth
    assert "This report contains the truth." not in without
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
    assert "nobody can say how much of the recovery is right" in text
    assert "homes found" not in text
    assert "Without ground truth we cannot say whether a defence helps." in text


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
        cells = np.repeat(rng.integers(-1, places, 60), rng.integers(1, 300, 60))
        assert decode(_encode(cells), len(cells)) == cells.tolist()


def test_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    found = hostile_audit()
    found.to_html(path, names=True)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(rk.errors.OutputExists):
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
    assert re.search(r'<circle class="place (t\d s\d|nobody)"', text)


@pytest.mark.parametrize("include_truth", [False, True])
@pytest.mark.parametrize("names", [False, True])
def test_names_people_only_when_asked_and_says_which(include_truth, names):
    found = made()
    ids = [f"Zoe-{at}" for at in range(8)]
    truth = rk.Trajectories(found.truth.cells, found.truth.locations, found.truth.calendar, ids)
    people = tuple(replace(one, person=name) for one, name in zip(found.people, ids, strict=True))
    page = build_page(replace(found, truth=truth, people=people), include_truth=include_truth, names=names)
    assert ("Zoe-3" in page) == names
    assert ("names nobody" in page) == (not names and not include_truth)
    assert ("This report names people." in page) == (names and not include_truth)
    assert ("with their real IDs" in page) == (names and include_truth)
    assert "does name people" not in page
    assert len(json.loads(Reader(page).scripts[0])["people"][0]) == 1 + include_truth


@pytest.mark.parametrize("settings", [{}, {"include_truth": True}, {"names": True}])
def test_only_the_owner_can_read_it(tmp_path, settings):
    mask = os.umask(0o022)
    try:
        made().to_html(tmp_path / "report.html", **settings)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


def shown(**more):
    return " ".join(" ".join(Reader(build_page(made(**more))).text).split())


def test_shows_both_axes_of_the_verdict_and_the_rule():
    text = shown(advantage=around(0.05), half=8, almost=8, of=300)
    assert (
        "Little on average, but 8 of 300 people are almost completely exposed. High risk Do not publish as it is."
        in text
    )
    assert text.index("8 of 300 people, more than half") < text.index("5% advantage over chance")
    assert "On average: low, by the upper limit of the advantage over chance, 7%." in text
    assert "By people: high" in text
    assert RULE in text
    assert "8 of 300 1% to 5% 8 in all 2 row orders" in text
    assert "99th percentile" in text


def test_shows_the_attackers_that_were_compared():
    text = shown(defended=[repaired()])
    assert "1. noise habits 30% 12% (11 people) frozen default 31%, frozen 35% -15 points" in text


def test_a_sample_is_shown_by_the_risk_of_those_drawn():
    text = shown(defended=[release("a sample of 10%", around(0.8), 6, 2, included=0.1)])
    assert "a sample of 10% 10% of people included 6 of 8 exposed 80%" in text
    assert "1. a sample of 10% 10% 80% 78% to 82% 6 of 8" in text
    assert "every risk" not in text


def test_shows_what_is_learnt_from_known_points_beside_uniqueness():
    text = shown()
    assert "Points known habits naive chance unique in the true data 1 10%" in text
    assert "16 50% 48% to 52%" in text


def test_shows_what_can_be_claimed():
    text = shown()
    assert "Attack people claimed almost completely of their points right habits 1 95%" in text
    assert "Precision by the share of points claimed" in build_page(made())


def test_shows_warnings():
    assert "Warning. The locations <b>leak</b>." in shown(warnings=("The locations <b>leak</b>.",))


def test_is_in_plain_words():
    text = shown(defended=[repaired()])
    for quaint in ("of the way", "dealt", "anew", "hoever", " -0%", " 1 people", " 1 defences"):
        assert quaint not in text


def test_membership_has_a_section_of_its_own():
    truth = rk.SyntheticCity(people=10, days=1, step="2h").trajectories()
    noise = rk.GeometricNoise(epsilon=0.5, per="event")
    found = rk.audit(truth, attacks=[rk.Baseline()], defences=[noise], seeds=1, workers=1)
    page = build_page(found)
    assert 'id="membership"' in page
    assert "0.5 per event, 6 per person" in page
    assert "no noise, no bound" in page
    untested = replace(found, releases=tuple(replace(one, membership={}) for one in found.releases))
    assert 'id="membership"' not in build_page(untested)


def test_says_what_was_audited_when_and_how():
    identity = Identity(
        "<b>city</b>", "2026-11-17T08:30:00Z", "0123456789abcdef" * 4, "rekindle audit 'a b'", "0.2.0"
    )
    text = shown(identity=identity)
    assert "<b>city</b> 8 people" in text
    assert "Made 2026-11-17 at 08:30:00 UTC by Rekindle 0.2.0; input 0123456789ab" in text
    assert "0123456789abcdef" * 4 in text
    assert "rekindle audit 'a b'" in text
    assert "Unnamed dataset" in shown()


@pytest.mark.parametrize("known", [True, False])
def test_has_an_annex_of_evidence(known):
    found = hostile_audit(known)
    text = " ".join(" ".join(Reader(build_page(found)).text).split())
    for one in found.evidence:
        assert f"{one.heading} {one.finding}" in text
    assert "complian" not in build_page(found).lower()


@pytest.mark.parametrize("include_truth", [False, True])
def test_no_real_id_is_anywhere_in_it_unless_asked_for(tmp_path, include_truth):
    """Not in the text, the replay, an attribute or the numbers: the whole of both files is searched."""
    city = hostile_truth()
    ids = [f"zoe+{at}@example.org" for at in range(city.people)]
    truth = rk.Trajectories(city.cells, city.locations, city.calendar, ids)
    found = audit(truth, attacks=[rk.Baseline()], defences=[Sample(share=0.5)], seeds=1, workers=1)
    for names in (False, True):
        found.to_html(tmp_path / "report.html", include_truth=include_truth, names=names)
        found.write_json(tmp_path / "audit.json", names=names)
        for file in ("report.html", "audit.json"):
            text = (tmp_path / file).read_text()
            assert ("zoe" in text, "example.org" in text) == (names, names), file


def test_places_have_coordinates_where_they_are_known():
    city = hostile_truth()
    degrees = np.c_[59.9 + city.locations.xy_km[:, 1] / 111.2, 10.7 + city.locations.xy_km[:, 0] / 55.8]
    truth = rk.Trajectories(city.cells, rk.Locations(city.locations.xy_km, None, degrees), city.calendar)
    page = build_page(audit(truth, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1))
    assert re.search(r"<title>\d+ \(59\.9\d+° N, 10\.7\d+° E\): ", page)
    assert "59.92° N</text>" in page
    data = json.loads(Reader(page).scripts[0])
    assert data["degrees"] == degrees.round(5).tolist()
    assert json.loads(Reader(build_page(hostile_audit())).scripts[0])["degrees"] is None


def test_says_why_accuracy_falls_with_more_days_where_it_does():
    falling = {"habits": (Growth(1, 0.5, 0.5, 0.2), Growth(2, 0.4, 0.6, 0.3))}
    assert "Why accuracy can fall with more days" in shown(growth=falling)
    assert "Why accuracy can fall" not in shown()


def test_people_who_are_away_can_be_shown():
    found = made()
    cells = found.recovered.cells.copy()
    cells[:, 3:9] = -1
    away = replace(found.recovered)
    object.__setattr__(away, "cells", cells)
    page = build_page(replace(found, recovered=away, truth=away), include_truth=True)
    data = json.loads(Reader(page).scripts[0])
    assert decode(data["people"][0]["truth"], away.steps)[2:10] == [cells[0, 2], *[-1] * 6, cells[0, 9]]
    hours = sum(float(n.replace(",", "")) for n in re.findall(r"of ([\d,.]+) person-hours", page))
    assert hours == pytest.approx((cells >= 0).sum())


def test_counts_against_flows_by_window_are_one_chart():
    windows = tuple(
        WindowRisk(window, kind, label, 0.3 + 0.1 * at)
        for at, window in enumerate(("1h", "4h"))
        for kind in ("counts", "flows")
        for label in ("As given", "Withhold below 3")
    )
    page = build_page(made(windows=windows))
    assert "Counts against flows" in page
    for said in ("counts, as given", "flows, withhold below 3", ">1h<", ">4h<"):
        assert said in page
    assert "Counts against flows" not in build_page(made())


def test_what_stands_beside_flows_has_its_words():
    """At random along the flows is one more bar; why membership was not tested is said."""
    given = release("as given", around(0.3))
    mixed = replace(given.attacks["chance"], attack="mixed")
    reason = "This is a release of flows; who is in it cannot be tested yet."
    given = replace(given, attacks=given.attacks | {"mixed": mixed}, membership={"exact": reason})
    text = " ".join(Reader(build_page(made(releases=(given,)))).text)
    assert "at random along flows" in text
    assert reason.rstrip(".") in text


def test_the_loss_of_flows_is_shown_for_flows():
    """A release that withholds all who move may count well who is where; its flows are lost all the same."""
    use = {"count_error": 0.25, "flow_error": 1.0, "profile_error": 0.2, "busiest_rank_correlation": 0.9}
    tried = replace(release("withheld", around(0.3)), utility=use)
    counts = made(around(0.5), defended=[tried])
    assert (counts.published, counts.loss(tried)) == ("counts", 0.25)
    for kind in ("flows", "both"):
        flows = replace(counts, settings=counts.settings | {"release": kind})
        assert (flows.published, flows.loss(tried)) == ("flows", 1.0)
        page = build_page(flows)
        text = " ".join(Reader(page).text)
        assert "and the flows between places are off by 100%" in text
        assert "flows off by 100%" in text
        assert "error of the published flows" in page
        assert "Privacy audit of a release of flows of people" in text
        assert "counts are off" not in text
