"""The sentences of the report: both axes of the verdict, plurals and signs."""

import pytest
from tests.report.made import around, made, release, repaired

from rekindle.auditing.risk import Estimate
from rekindle.report.words import advice, headline, level, percent, plural, reasons, summary, within


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
        ((around(0.05), 8, 8, 300), "High risk", "Little on average, but 8 of 300 people are almost wholly exposed."),
        ((around(0.0, 0.01), 1, 1, 61), "High risk", "No better than guessing on average, but 1 of 61 people is almost wholly exposed."),
        ((around(0.2), 1, 0, 300), "Moderate risk", "Part of people's time can be recovered on average, and 1 of 300 people is exposed."),
        ((around(0.7), 40, 12, 60), "Very high risk", "Most of people's time can be recovered on average, and 40 of 60 people are exposed, 12 of them almost wholly."),
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


def test_advice_counts_defences():
    assert advice(made()) == ["No defence was tried."]
    assert (
        "The one defence tried does not clearly bring the risk down to low. It leaves"
        in advice(made(around(0.5), defended=[repaired()]))[0]
    )
    several = advice(made(around(0.5), defended=[repaired(), repaired(0.4)]))[0]
    assert (
        "None of the 2 defences tried clearly brings the risk down to low. The best of them, “noise”, leaves"
        in several
    )


def test_a_safe_release_needs_no_defence():
    assert "needs no defence" in advice(made(around(0.05), defended=[repaired()]))[0]


def test_advice_wants_nobody_exposed():
    exposing = release("coarser", around(0.05), 1, 1, 300)
    assert "“coarser”, nobody" not in advice(made(around(0.5), defended=[exposing]))[0]
    assert "does not clearly bring" in advice(made(around(0.5), defended=[exposing]))[0]
    safe = release("coarser", around(0.05))
    assert "brings the risk down to low is “coarser”" in advice(made(around(0.5), defended=[safe]))[0]


def test_a_sample_is_not_praised_for_those_it_leaves_out():
    sample = release("a sample of 10%", around(0.8), 6, 6, included=0.1)
    found = " ".join(advice(made(around(0.8), 6, 6, defended=[sample])))
    assert "does not clearly bring the risk down to low" in found
    assert "No clear help against recovering paths: “a sample of 10%” (for the 10% of people in it)." in found
