"""An audit with attackers who know more than the release: rows of their own, and no part of the verdict."""

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing.tasks import attack_counts
from rekindle.errors import InvalidSetting

CITY = rk.SyntheticCity(people=24, days=4, step="1h", width_km=5, height_km=5, seed=2).trajectories()
CUT = 2 * CITY.calendar.steps_per_day
PAST, TODAY = CITY.part(slice(0, CUT)), CITY.part(slice(CUT, CITY.steps))


def some(truth, rows):
    return rk.Trajectories(
        truth.cells[rows], truth.locations, truth.calendar, [truth.people_ids[row] for row in rows]
    )


@pytest.fixture(scope="module")
def priors():
    return [rk.KnownPast(PAST), rk.KnownPeople(some(TODAY, [0, 5, 7]))]


@pytest.fixture(scope="module")
def found(priors):
    settings = {
        "attacks": [rk.Baseline(), rk.Enhanced()],
        "defences": [rk.Suppress(below=3)],
        "seeds": 2,
        "workers": 1,
    }
    return rk.audit(TODAY, priors=priors, **settings), rk.audit(TODAY, **settings)


def test_each_is_a_row_of_the_release_as_given(found):
    informed, plain = found
    rows = {name: risk.knows for name, risk in informed.given.attacks.items() if risk.knows}
    assert rows == {"enhanced, known past": "known-past", "enhanced, known people": "known-people"}
    assert not any(risk.knows for risk in informed.releases[1].attacks.values())
    assert list(plain.given.attacks) == [name for name in informed.given.attacks if name not in rows]
    assert set(rows) <= set(informed.settings["attacks"])


def test_the_verdict_is_about_those_who_know_nothing(found):
    informed, plain = found
    assert informed.verdict == plain.verdict
    assert informed.given.strongest == plain.given.strongest
    assert informed.given.exposed == plain.given.exposed
    best = informed.given.attacks["enhanced, known past"].accuracy.value
    assert best > informed.given.attacks["chance"].accuracy.value


def test_a_known_past_is_scored_by_name(found):
    run = rk.Enhanced(seed=0).recover(TODAY.counts(), prior=rk.KnownPast(PAST)).trajectories
    by_name = rk.evaluate(run, TODAY, mapping="names").accuracy
    assert found[0].given.attacks["enhanced, known past"].by_order[0] == pytest.approx(by_name)


def test_known_people_are_left_out_of_the_score(priors):
    attack = rk.Enhanced().knowing(priors[1])
    result = attack_counts(TODAY.counts(), TODAY, TODAY, attack, 0, True)
    accuracy = result.arrays["accuracy"]
    assert np.flatnonzero(np.isnan(accuracy)).tolist() == [0, 5, 7]
    assert result.numbers["people"] == 21
    run = rk.Enhanced(seed=0).recover(TODAY.counts(), prior=priors[1]).trajectories
    expected = rk.evaluate(run, TODAY, leave_out=attack.known_people).accuracy
    assert np.nanmean(accuracy) == pytest.approx(expected)


def test_the_report_shows_them(found, tmp_path):
    found[0].to_html(tmp_path / "report.html")
    assert "known past" in (tmp_path / "report.html").read_text()
    assert found[0].to_json()["releases"][0]["attacks"]["enhanced, known past"]["knows"] == "known-past"


def test_what_cannot_be_used_is_refused(priors):
    with pytest.raises(InvalidSetting, match="No attack that is tried can use KnownPast"):
        rk.audit(TODAY, attacks=[rk.Naive()], priors=priors[:1], defences=[], workers=1)
    with pytest.raises(InvalidSetting, match="exact counts only"):
        rk.audit(rk.Round(to=5)(TODAY.counts()), attacks=[rk.Enhanced()], priors=priors[1:], defences=[], workers=1)
    with pytest.raises(InvalidSetting, match="is not prior knowledge"):
        rk.audit(TODAY, priors=[PAST], defences=[], workers=1)


@pytest.mark.parametrize(
    "alone", [{"attacks": rk.Enhanced()}, {"defences": rk.Suppress(below=3)}, {"priors": rk.KnownPast(PAST)}]
)
def test_one_alone_is_given_in_a_list(alone):
    with pytest.raises(InvalidSetting, match=f"`{next(iter(alone))}` is .*; give a list"):
        rk.audit(TODAY, **alone)
