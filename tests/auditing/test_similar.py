"""Without the truth: people like the recovered ones, and what may be expected."""

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing.forecast import works_of
from rekindle.auditing.similar import people_like


def test_every_day_is_one_of_the_same_person_shifted_by_a_step_at_most():
    truth = random_truth(np.random.default_rng(3), people=6, places=5, steps=84, step="2h", away=0.3)
    drawn = people_like(truth, 1)
    assert drawn is not None
    assert (drawn.people, drawn.calendar, drawn.locations) == (truth.people, truth.calendar, truth.locations)
    assert drawn != people_like(truth, 2)
    assert drawn == people_like(truth, 1)
    days = truth.cells.reshape(6, 7, 12)
    weekend = [truth.calendar.time(12 * day).weekday() >= 5 for day in range(7)]
    shifted = np.stack([days[:, :, np.clip(np.arange(12) + by, 0, 11)] for by in (-1, 0, 1)])
    for person, day in np.ndindex(6, 7):
        alike = shifted[:, person, [other == weekend[day] for other in weekend]]
        assert (alike == drawn.cells[person, 12 * day : 12 * day + 12]).all(axis=-1).any()


def test_short_days_are_the_ends_of_whole_ones():
    truth = random_truth(np.random.default_rng(3), people=4, places=5, steps=20, step="2h", start="2024-03-01 04:00")
    drawn = people_like(truth)
    assert drawn is None  # 10 steps of the first day, and 10 of the second
    longer = random_truth(np.random.default_rng(3), people=4, places=5, steps=24, step="2h", start="2024-03-01 04:00")
    drawn = people_like(longer)
    assert drawn is not None
    whole = longer.cells[:, 10:22]
    for person in range(4):
        ends = [whole[person, np.clip(np.arange(2, 12) + by, 0, 11)] for by in (-1, 0, 1)]
        assert any(np.array_equal(end, drawn.cells[person, :10]) for end in ends)


@pytest.fixture(scope="module")
def told():
    """What the audit below told: shares of its progress, and its forecast."""
    return {"shares": [], "forecasts": []}


@pytest.fixture(scope="module")
def found(told):
    counts = rk.SyntheticCity(people=16, days=3, step="2h", width_km=4, height_km=4).trajectories().counts()
    attacks = [rk.Enhanced(), rk.Habits(effort="low")]
    return rk.audit(
        counts,
        attacks=attacks,
        defences=[rk.Suppress(below=3)],
        seeds=2,
        workers=1,
        progress=lambda done, total: told["shares"].append(done / total),
        announce=told["forecasts"].append,
    )


def test_an_audit_without_the_truth_says_what_may_be_expected(found):
    expected = found.expected
    assert expected is not None
    assert expected.attack == "habits"
    assert 0 < expected.confidence < 1
    assert 0 < expected.small_numbers <= 1
    assert [one.label for one in expected.similar.releases] == ["As given", "Withhold below 3"]
    likely = expected.similar.given.strongest.accuracy.value
    assert expected.accuracy == tuple(sorted((expected.confidence, likely)))
    assert found.verdict.level == "unknown"
    assert found.to_json()["expected"]["accuracy"] == list(expected.accuracy)
    assert repr(expected).startswith("Expectation(habits, accuracy 0.")


def test_the_audit_of_those_people_is_in_the_forecast_and_in_the_progress(found, told):
    shares, (forecast,) = told["shares"], told["forecasts"]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    first = shares.index(0.5)
    assert max(shares[:first]) < 0.5 <= min(shares[first:])
    assert forecast.tasks == 2 * len(works_of(forecast.plan))


def test_the_page_marks_it_as_an_estimate(found, tmp_path):
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "This is an estimate, not a measurement." in page
    assert "Synthetic people modelled on the rebuilt ones" in page
    assert "By an estimate, " in page
    assert "of the published numbers above 0 are 1 or 2" in page
    assert "What each does to synthetic people modelled on the rebuilt ones is below, as an estimate." in page


def test_nothing_is_expected_of_protected_numbers_but_what_the_attack_says(found):
    counts = rk.SyntheticCity(people=16, days=2, step="4h", width_km=4, height_km=4).trajectories().counts()
    release = rk.GeometricNoise(epsilon=1.0, per="event", seed=1)(counts)
    audit = rk.audit(release, attacks=[rk.Enhanced()], defences=[], seeds=1, people=16, workers=1)
    assert audit.expected.similar is None
    assert audit.expected.accuracy == ()
    known = rk.audit(counts, truth=None, attacks=[rk.Enhanced()], defences=[], seeds=1, workers=1)
    assert len(known.expected.accuracy) == 1
