"""An audit in plain words."""

from __future__ import annotations

from rekindle.auditing.results import Audit, ReleaseRisk
from rekindle.auditing.risk import Estimate
from rekindle.evaluation import KNOWN_POINTS

__all__ = ["advice", "headline", "percent", "summary", "within"]

_FOUR = 4


def percent(share: float) -> str:
    """A share as a whole percentage, without calling a little nothing."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 < share < 1:
        return "over 99%"
    return f"{share:.0%}".replace("-0%", "0%")


def within(value: Estimate) -> str:
    """A share with its interval."""
    return f"{percent(value.value)} (95% interval {percent(value.low)} to {percent(value.high)})"


def headline(audit: Audit) -> str:
    """The verdict as one sentence."""
    return {
        "no better than guessing": "The attacks do no better than guessing.",
        "low": "Little of people's lives can be read out of this release.",
        "moderate": "A part of people's lives can be read out of this release.",
        "high": "Much of people's lives can be read out of this release.",
        "cannot tell": "How much of people's lives can be read out of this release cannot be told from so few numbers.",
        "very high": "Most of people's lives can be read out of this release.",
        "unknown": "Paths can be rebuilt from this release; how right they are cannot be known here.",
    }[audit.verdict.level]


def summary(audit: Audit) -> list[str]:
    """What the release as given gives away, in sentences."""
    given = audit.given
    best = given.strongest
    if best.accuracy is None or best.advantage is None:
        return _summary_without_truth(audit)
    chance, naive = given.attacks["chance"], given.attacks["naive"]
    beside = f"guessing reaches {_value(chance.accuracy)}"
    if best.attack != "naive":
        beside += f", and just leaving people where they are {_value(naive.accuracy)}"
    found = [
        f"From the published numbers alone, the {best.attack} attack puts people in the right place "
        f"{within(best.accuracy)} of the time; {beside}. "
        f"That is {within(best.advantage)} advantage over chance."
    ]
    if best.home is not None:
        work = "" if best.work is None else f", and where {percent(best.work.value)} spend their working hours"
        found.append(f"It finds where {percent(best.home.value)} of the people spend their nights{work}.")
    at = KNOWN_POINTS.index(_FOUR)
    if len(best.reidentified) > at:
        known, top = best.reidentified[at], given.attacks["perfect"].reidentified[at]
        found.append(
            f"Someone who knows where a person was at {_FOUR} random moments finds the right rebuilt path, and only that "
            f"one, {percent(known.value)} of the time; in the true data it would be {percent(top.value)}, "
            f"by guessing {_value(chance.reidentified[at])}."
        )
    half = sum(person.accuracy > 0.5 for person in audit.people)
    found.append(
        f"For {half} of {len(audit.people)} people more than half of their time was rebuilt; "
        f"for the most exposed one, {percent(audit.people[0].accuracy)}."
    )
    return found


def _value(found: Estimate | None) -> str:
    return "an unknown share" if found is None else percent(found.value)


def _summary_without_truth(audit: Audit) -> list[str]:
    best = audit.given.strongest
    found = [
        f"{round(best.people)} paths were rebuilt with the {best.attack} attack. Of these, "
        f"{percent(best.uniqueness[1])} are the only ones with their two most frequent places."
    ]
    alike = {one.one: one.share for one in audit.agreements if one.one == one.other}
    if best.attack in alike:
        found.append(
            f"Repeated with another order of rows, the attack agrees with itself in {percent(alike[best.attack])} of the "
            f"points; two random guesses agree in {percent(alike['chance'])}."
        )
    others = [one for one in audit.agreements if best.attack in (one.one, one.other) and one.one != one.other]
    for one in others:
        other = one.one if one.other == best.attack else one.other
        if other not in ("chance", "naive"):
            found.append(f"It agrees with the {other} attack in {percent(one.share)} of the points.")
    return found


def advice(audit: Audit) -> list[str]:
    """What the defences that were tried would do, in sentences."""
    tried = [one for one in audit.releases[1:] if one.strongest.advantage is not None]
    if not tried:
        return [
            "No defence was tried."
            if audit.truth is not None
            else "What a defence would help cannot be said without the truth."
        ]
    found = []
    enough = [one for one in tried if _share(one).high < 0.10]
    if enough:
        best = min(enough, key=_loss)
        found.append(
            f"The most useful release that brings the risk down to low is “{best.label}” "
            f"({percent(_share(best).value)} of the way left; the published counts are off by {percent(_loss(best))})."
        )
    else:
        best = min(tried, key=lambda one: _share(one).value)
        found.append(
            f"None of the {len(tried)} defences tried brings the risk down to low. The best of them, “{best.label}”, leaves "
            f"{within(_share(best))} of the way; the published counts are then off by {percent(_loss(best))}."
        )
    before = audit.given.strongest.advantage
    useless = [f"“{one.label}”" for one in tried if before is not None and _share(one).high >= before.low]
    if useless:
        found.append(f"No clear help against rebuilding paths: {', '.join(useless)}.")
    return found


def _share(one: ReleaseRisk) -> Estimate:
    return one.strongest.advantage or Estimate(1.0, 1.0, 1.0)


def _loss(one: ReleaseRisk) -> float:
    return (one.utility or {}).get("count_error", 0.0)
