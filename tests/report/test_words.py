"""The sentences of the report: both axes of the verdict, plurals and signs."""

from dataclasses import replace

import pytest
from tests.report.made import around, made, release, repaired

from rekindle.auditing.risk import Estimate
from rekindle.model import AWAY, Trajectories
from rekindle.report.words import (
    advice,
    decision,
    error,
    headline,
    level,
    matching,
    percent,
    plural,
    reasons,
    summary,
    within,
)


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (0.001, "under 1%"), (-0.001, "0%"), (0.314, "31%"), (-0.1, "-10%"), (0.999, "over 99%"), (1, "100%")])  # fmt: skip
def test_percent(share, text):
    assert percent(share) == text


def test_an_interval_has_no_negative_zero():
    assert within(Estimate(0.0, -0.004, 0.0)) == "0% (95% interval 0% to 0%)"


def test_plural():
    assert [plural(number, "person", "people") for number in (0, 1, 2)] == ["0 people", "1 person", "2 people"]


@pytest.mark.parametrize(
    ("numbers", "label", "text"),
    [
        ((around(0.0, 0.01), 0, 0, 60), "No better than guessing", "The attacks do no better than guessing, and nobody is exposed."),
        ((around(0.05), 0, 0, 60), "Low risk", "Little can be recovered from this release, and nobody is exposed."),
        ((around(0.05), 8, 8, 300), "High risk", "Little on average, but 8 of 300 people are almost completely exposed."),
        ((around(0.0, 0.01), 1, 1, 61), "High risk", "No better than guessing on average, but 1 of 61 people is almost completely exposed."),
        ((around(0.2), 1, 0, 300), "Moderate risk", "Part of people's time can be recovered on average, and 1 of 300 people is exposed."),
        ((around(0.7), 40, 12, 60), "Very high risk", "Most of people's time can be recovered on average, and 40 of 60 people are exposed, 12 of them almost completely."),
        ((around(0.3, 0.25), 0, 0, 5), "Cannot tell", "This audit cannot tell how much can be recovered: the limits lie too far apart."),
    ],
)  # fmt: skip
def test_headline_says_both_axes(numbers, label, text):
    found = made(*numbers)
    assert (level(found), headline(found)) == (label, text)


def test_cannot_tell_is_explained():
    mean, people = reasons(made(Estimate(0.25, -0.13, 0.85)))
    assert "as small as -13% (no better than guessing) or as large as 85% (very high)" in mean
    assert "until then, count on very high" in mean
    assert people == "By people: nobody is exposed."


def test_summary_gives_chance_beside_the_exposed():
    text = " ".join(summary(made(around(0.3), 3, 1, 8)))
    assert (
        "More than half of their time was recovered, clearly above guessing, for 3 of 8 people, more than 90% for 1."
        in text
    )
    assert "Guessing alone would do so for nobody." in text
    assert "Under every one of the 2 row orders, 3 people are exposed." in text
    assert "is right about 30% of the person's other time" in text


def test_nobody_exposed_is_said_in_words():
    assert "For none of the 8 people was more than half of their time recovered" in " ".join(summary(made()))


def test_the_decision_stands_in_words():
    assert decision(made(around(0.05))) == "These attacks give no reason not to publish it as it is."
    assert decision(made(around(0.5))) == "Do not publish as it is. No defence was tried."
    one = decision(made(around(0.5), defended=[repaired()]))
    assert one.startswith(
        "Do not publish as it is. The one defence tried is not enough: with “noise”, an advantage over chance of 30%"
    )
    several = decision(made(around(0.5), defended=[repaired(0.4), repaired()]))
    assert "None of the 2 defences tried is enough: even with “noise”, an advantage over chance of 30%" in several
    assert decision(made(Estimate(0.25, -0.13, 0.85))).startswith(
        "Do not publish as it is: a high risk cannot be ruled out."
    )
    assert decision(made(truth=None)).startswith("Whether to publish it cannot be decided")


def test_the_decision_wants_nobody_exposed():
    exposing, safe = release("coarser", around(0.05), 1, 1, 300), release("safe", around(0.05))
    assert "is not enough" in decision(made(around(0.5), defended=[exposing]))
    assert decision(made(around(0.5), defended=[exposing, safe])) == (
        "Do not publish as it is. Publish with “safe”: an advantage over chance of 5% remains, nobody is exposed, and the "
        "counts are off by 25%."
    )


def test_advice_names_every_defence_that_was_tried():
    assert advice(made()) == [
        "No defence was tried, so it is open whether one would be enough: rekindle recommend searches for one."
    ]
    tried = [release("safe", around(0.05)), release("some", around(0.2)), release("none", around(0.5), 8, 8)]
    enough, some, none = advice(made(around(0.5), 8, 8, defended=tried))
    assert enough.startswith(
        "Enough to bring the risk down to low. “safe”: advantage 5%, nobody exposed, counts off by 25%."
    )
    assert some.startswith("Helps, but not enough. “some”: ")
    assert none.startswith("No clear help. “none”: advantage 50%, 8 of 8 exposed, ")
    needless = advice(made(around(0.05), defended=tried))
    assert needless == [
        "No defence is needed against these attacks. How far each would put the published counts off: “safe”, 25%; "
        "“some”, 25%; “none”, 25%."
    ]


def test_fewer_exposed_people_are_a_help():
    fewer = release("fewer", around(0.5), 2, 1)
    assert advice(made(around(0.5), 8, 8, defended=[fewer]))[0].startswith("Helps, but not enough. “fewer”")


def test_a_few_exposed_people_less_are_no_clear_help():
    few = release("few", around(0.5), 1835, 454, of=2000)
    found = made(around(0.5), 1847, 435, 2000, defended=[few])
    assert advice(found) == ["No clear help. “few”: advantage 50%, 1,835 of 2,000 exposed, counts off by 25%."]


def test_a_sample_is_not_praised_for_those_it_leaves_out():
    sample = release("a sample of 10%", around(0.8), 8, 6, included=0.1)
    found = made(around(0.8), 6, 6, defended=[sample])
    assert "not enough: with “a sample of 10%” (for the 10% of people in it), an advantage" in decision(found)
    assert advice(found)[0].startswith("No clear help. “a sample of 10%” (for the 10% of people in it): ")


def test_large_errors_are_readable():
    assert [error(0.3), error(9.9), error(30.36)] == ["30%", "990%", "30 times"]


@pytest.mark.parametrize("away", [False, True])
def test_people_come_and_go_only_where_the_truth_says_so(away):
    """A repair may leave people out at a step; that does not make them leave."""
    found = made(around(0.3))
    sure = replace(found.given.attacks["habits"], point_precision=0.5)
    cells = found.truth.cells.copy()
    cells[0, 3] = AWAY if away else cells[0, 3]
    truth = Trajectories(cells, found.truth.locations, found.truth.calendar)
    given = replace(found.given, attacks=found.given.attacks | {"habits": sure})
    settings = found.settings | {"totals": [7, 8]}
    told = " ".join(summary(replace(found, releases=(given,), truth=truth, settings=settings)))
    assert ("People come and go" in told) == away


def test_the_matching_of_many_people_is_not_called_the_best():
    assert matching(made()).endswith("the least total distance.")
    said = matching(made(gap=0.00079))
    assert "or nearly so" in said
    assert said.endswith("at most 0.08% less.")
    assert "at most 0.01%" in matching(made(gap=1e-7))
