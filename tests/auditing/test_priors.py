"""An audit with attackers who know more than the release: rows of their own, and no part of the verdict."""

import html

import numpy as np
import pytest

import rekindle as rk
from rekindle.auditing.gather import _attacked
from rekindle.auditing.tasks import attack_counts
from rekindle.errors import InvalidSetting
from rekindle.report import words
from rekindle.report.page import build_page

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
    with pytest.raises(InvalidSetting, match=r"is not prior knowledge, such as rekindle\.KnownPast"):
        rk.audit(TODAY, priors=[PAST], defences=[], workers=1)


def test_the_annex_says_what_was_tried(found):
    informed, plain = ({one.heading: one for one in audit.evidence} for audit in found)
    knowledge = informed["Attacker's knowledge"]
    assert (
        "Also tried, each alone and with no weight in the verdict: knowledge of people's past and"
        in knowledge.finding
    )
    assert knowledge.finding.endswith("Not tried: knowledge of traces of other people or maps.")
    assert knowledge.numbers["also_tried"] == ["known-past", "known-people"]
    nothing = plain["Attacker's knowledge"].finding
    assert "Also tried" not in nothing
    assert nothing.endswith("knowledge of traces of other people, people's past, some of the people or maps.")
    for part in (informed, plain):
        assert part["Attack modelling"].numbers["attacks"] == ["baseline", "enhanced"]
        assert part["Attack modelling"].numbers["references"] == ["chance", "naive", "frozen"]
        assert "2 attacks were carried out" in part["Adversarial testing"].finding
    assert "2 attacks by someone who knows more" in informed["Adversarial testing"].finding


def test_it_is_said_how_they_are_scored(found):
    informed, plain = found
    past, people = words.informed(informed)
    assert "“enhanced, known past”" in past
    assert "scored by name" in past
    assert "puts the others in the right place" in people
    assert "left out of the score" in people
    assert words.informed(plain) == []
    shown = html.unescape(build_page(informed))
    for sentence in (past, people):
        assert sentence in shown
    assert "Attackers who know more" not in build_page(plain)


def test_chance_beside_them_is_of_the_same_people(found):
    risks = found[0].given.attacks
    chance = risks["chance"].accuracy.value
    assert risks["chance"].chance == pytest.approx(chance)
    guesses = [rk.Chance(seed=seed).recover(TODAY.counts()).trajectories for seed in range(40)]
    by_name = [
        rk.evaluate(rk.Trajectories(one.cells, one.locations, one.calendar, TODAY.people_ids), TODAY, mapping="names")
        for one in guesses
    ]
    assert risks["enhanced, known past"].chance == pytest.approx(np.mean([one.accuracy for one in by_name]), abs=0.01)
    assert risks["enhanced, known past"].chance < chance
    others = risks["enhanced, known people"]
    assert others.chance != pytest.approx(chance)
    assert others.advantage.value == pytest.approx((others.accuracy.value - others.chance) / (1 - others.chance))


def test_without_the_truth_nobody_knows_what_they_find():
    found = rk.audit(
        TODAY.counts(), attacks=[rk.Enhanced()], priors=[rk.KnownPast(PAST)], defences=[], seeds=1, workers=1
    )
    (said,) = words.informed(found)
    assert "nobody knows how much of that is right" in said
    assert said in html.unescape(build_page(found))


def traces_warning(traces, truth=TODAY):
    found = rk.audit(
        truth,
        attacks=[rk.Enhanced()],
        priors=[rk.OtherTraces(traces)],
        defences=[],
        seeds=1,
        workers=1,
        thorough=False,
    )
    return [one for one in found.warnings if "traces" in one]


def test_traces_of_the_people_themselves_are_warned_of():
    strangers = rk.SyntheticCity(people=9, days=4, step="1h", width_km=5, height_km=5, seed=3).trajectories()
    moving = sum(len(set(row)) > 1 for row in TODAY.cells.tolist())
    (said,) = traces_warning(TODAY)
    assert (
        f"Of the 24 traces that “enhanced, other traces” learns from, {moving} are of people who are attacked" in said
    )
    assert f"at all {TODAY.steps} common steps" in said
    (longer,) = traces_warning(CITY)  # four days, of which two are released
    assert longer == said
    for others in (strangers, PAST):  # of other people, or of other days
        assert not traces_warning(others)


def test_only_those_who_move_are_recognised():
    def of(rows, start="2024-01-01"):
        places = rk.Locations([[float(x), 0.0] for x in range(3)])
        return rk.Trajectories(rows, places, rk.Calendar(start, "1h"))

    a, b, still, gone = [0, 1, 2, 1], [2, 2, 0, -1], [1, 1, -1, 1], [-1] * 4
    truth = of([a, b, still, gone])
    assert _attacked(truth, truth) == (2, 4)
    assert _attacked(of([b, [0, 1, 2, 0]]), truth) == (1, 4)
    # Only the last three steps of the truth are those of the traces.
    assert _attacked(of([[*a[1:], 0], [*a[1:], 2], [*still[1:], 1]], "2024-01-01 01:00"), truth) == (2, 3)
    assert _attacked(of([a], "2024-01-01 00:30"), truth) == (0, 0)
    assert _attacked(of([a], "2024-01-03"), truth) == (0, 0)


@pytest.mark.parametrize(
    "alone", [{"attacks": rk.Enhanced()}, {"defences": rk.Suppress(below=3)}, {"priors": rk.KnownPast(PAST)}]
)
def test_one_alone_is_given_in_a_list(alone):
    with pytest.raises(InvalidSetting, match=f"`{next(iter(alone))}` is .*; give a list"):
        rk.audit(TODAY, **alone)
