"""The annex says what was measured, under the headings that reviewers ask for, and promises nothing."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.report.made import around, made
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing import Identity

HEADINGS = [
    "Singling out", "Linkability", "Inference", "Attack modelling", "Maximum risk", "Average risk", "Adversarial testing",
    "Unit of privacy", "Contribution per person", "Attacker's knowledge", "Cost", "Date and review",
]  # fmt: skip


@pytest.fixture(scope="module")
def truth():
    return random_truth(np.random.default_rng(1), people=6, places=4, steps=24)


def audit(data):
    noise = rk.GeometricNoise(epsilon=0.5, per="event")
    return rk.audit(data, attacks=[rk.Baseline()], defences=[noise], seeds=1, workers=1, name="six people")


def by_heading(found):
    return {one.heading: one for one in found.evidence}


def test_every_heading_with_the_numbers_of_the_audit(truth):
    found = audit(truth)
    parts = by_heading(found)
    assert list(parts) == HEADINGS
    best = found.given.strongest
    assert parts["Average risk"].numbers["advantage"]["value"] == best.advantage.value
    assert parts["Maximum risk"].numbers["most_exposed"] == found.given.exposed.most
    assert parts["Singling out"].numbers["exposed"] == found.given.exposed.half.people
    assert parts["Linkability"].numbers["reidentified_from_4_points"] == best.reidentified[2].value
    assert parts["Inference"].numbers["learnt_from_4_points"] == best.learnt[4].value
    assert parts["Contribution per person"].numbers == {"most": 24, "mean": 24.0, "steps": 24}
    (claim,) = parts["Unit of privacy"].numbers["claims"].values()
    assert claim == {"epsilon_per_event": 0.5, "epsilon_per_person": 12.0}
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["evidence"][0]["heading"] == "Singling out"


def test_without_the_truth_it_says_what_was_not_measured(truth):
    parts = by_heading(audit(truth.counts()))
    assert list(parts) == HEADINGS
    for heading in ("Linkability", "Inference", "Maximum risk", "Average risk"):
        assert parts[heading].finding.startswith("Not measured")
        assert not parts[heading].numbers
    assert "two most frequent places" in parts["Singling out"].finding
    assert "no epsilon" in parts["Unit of privacy"].finding


@pytest.mark.parametrize("known", [True, False])
def test_nothing_is_promised_or_quoted(truth, known):
    text = json.dumps([vars(one) for one in audit(truth if known else truth.counts()).evidence]).lower()
    assert "complian" not in text
    assert not re.search(r"\b(article|clause|section|recital) \d", text.replace("article 29 working party", ""))


@pytest.mark.parametrize(("made_at", "review"), [("2026-11-17T08:00:00Z", "2027-11-17"), ("2024-02-29T08:00:00Z", "2025-02-28")])  # fmt: skip
def test_review_a_year_later(made_at, review):
    found = replace(made(around(0.3)), identity=Identity(made=made_at))
    assert by_heading(found)["Date and review"].numbers == {"made": made_at, "review_by": review}


def test_audits_can_be_told_apart(truth):
    one, same, counts = audit(truth), audit(truth), audit(truth.counts())
    other = audit(rk.Trajectories(truth.cells[::-1], truth.locations, truth.calendar))
    assert one.identity == same.identity
    assert one.identity.name == "six people"
    assert len({one.identity.digest, counts.identity.digest, other.identity.digest}) == 3
    assert one.to_json()["identity"]["version"] == rk.__version__


def test_a_dataset_may_name_itself(truth):
    data = rk.Dataset(truth.counts(), truth, {"source": "a survey"})
    found = rk.audit(data, attacks=[rk.Baseline()], defences=[], seeds=1, workers=1, membership="none")
    assert found.identity.name == "a survey"
