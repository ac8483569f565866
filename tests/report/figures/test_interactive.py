"""Maps to move about in: what is in the page, and what is kept out of it."""

import json
import re
import stat
import sys

import numpy as np
import pytest
from tests.small import line

import rekindle as rk
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting
from rekindle.report.figures import explore

pytest.importorskip("pydeck", reason="the extra 'maps' is not installed")

PEOPLE = line([0, 0, 1, -1, -1, 2], [3, 3, 3, 3, 3, 3])


def layers(page):
    found = re.search(r'<script type="application/json" id="layers">(.*?)</script>', page, re.S)
    return json.loads(found[1])["layers"]


def test_paths_have_gaps_where_people_are_away():
    found = explore(PEOPLE)
    dots, lines, stays = layers(found.html)
    assert [one["text"] for one in dots["data"]] == list("01234")
    at = [one["at"] for one in dots["data"]]
    assert [(one["text"], one["path"]) for one in lines["data"]] == [("0", [at[0], at[1]])]
    assert [(one["text"], one["at"]) for one in stays["data"]] == [("0", at[2]), ("1", at[3])]
    assert found.private


def test_counts_are_circles():
    (circles,) = layers(explore(PEOPLE.counts()).html)
    assert [one["text"] for one in circles["data"]][3] == "3: 1.0 people on average, at most 1"
    sizes = [one["size"] for one in circles["data"]]
    assert max(sizes) == sizes[3]
    assert sizes[4] == 1.5


def test_no_address_is_asked_and_none_may_be():
    page = explore(PEOPLE.counts()).html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src" not in policy
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert "http://" not in outside
    assert "https://" not in outside


def test_names_from_the_data_stay_text():
    evil = "</script><script>alert(1)</script>"
    places = rk.Locations([[0.0, 0.0], [1.0, 0.0]], [evil, "b"])
    people = rk.Trajectories([[0, 1]], places, rk.Calendar("2024-03-01", "1h"), [evil])
    page = explore(people).html
    assert evil not in page
    assert layers(page)[1]["data"][0]["text"] == evil
    assert 'srcdoc="&lt;!doctype html&gt;' in explore(people)._repr_html_()


def test_files(tmp_path):
    explore(PEOPLE).save(tmp_path / "people.html")
    assert stat.S_IMODE((tmp_path / "people.html").stat().st_mode) == 0o600
    explore(PEOPLE.counts()).save(tmp_path / "counts.html")
    assert (tmp_path / "counts.html").read_text(encoding="utf-8") == explore(PEOPLE.counts()).html
    with pytest.raises(InvalidFile, match=r"use \.html"):
        explore(PEOPLE).save(tmp_path / "people.png")


def test_what_cannot_be_shown(monkeypatch):
    with pytest.raises(InvalidData, match="at most 200"):
        explore(line(*np.zeros((201, 1), int)))
    with pytest.raises(InvalidData, match="Calendar has no map"):
        explore(PEOPLE.calendar)
    monkeypatch.setitem(sys.modules, "pydeck", None)
    with pytest.raises(InvalidSetting, match=r"rekindle-mobility\[maps\]"):
        explore(PEOPLE)
