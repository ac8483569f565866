"""An audit in plain words."""

from __future__ import annotations

import math

from rekindle.attacks import PRIORS
from rekindle.auditing.results import Audit, Expectation, ExposedPeople, ReleaseRisk
from rekindle.auditing.risk import CANNOT_TELL, Estimate, by_mean, judge
from rekindle.model import AWAY

_FOUR = 4
_PUBLISHED = {"counts": "counts", "flows": "flows between places"}
_HELP = ("Enough to bring the risk down to low", "Helps, but not enough", "No clear help")

_SCORED = {
    "known-past": " Such an attack says who is who, so it is scored by name: each path is compared with the person it names. "
    "Guessing is scored by name, too.",
    "known-people": " Those who are known are left out of the score, and of that of guessing.",
}

_ALONE = {
    "no better than guessing": "The attacks do no better than guessing, and nobody is exposed.",
    "low": "Little can be recovered from this release, and nobody is exposed.",
    "moderate": "Part of people's time can be recovered from this release, though nobody is exposed.",
    "high": "Much of people's time can be recovered from this release.",
    "very high": "Most of people's time can be recovered from this release.",
    "cannot tell": "This audit cannot tell how much can be recovered: the limits lie too far apart.",
    "unknown": "Paths can be rebuilt from this release; without the truth, nobody can say how right they are.",
}
_BESIDE = {
    "no better than guessing": "No better than guessing on average, but",
    "low": "Little on average, but",
    "moderate": "Part of people's time can be recovered on average, and",
    "high": "Much of people's time can be recovered on average, and",
    "very high": "Most of people's time can be recovered on average, and",
    "cannot tell": "How much on average cannot be told, but",
}


def percent(share: float) -> str:
    """A share as a whole percentage, without calling a little nothing."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 < share < 1:
        return "over 99%"
    return f"{round(100 * share)}%"


def error(relative: float) -> str:
    """How far counts or flows are off: as a percentage, or how many times their size."""
    return percent(relative) if relative < 10 else f"{relative:.0f} times"


def at_most(share: float) -> str:
    """A bound as a percentage, rounded up."""
    return f"{math.ceil(10_000 * share) / 10_000:.2%}"


def within(value: Estimate) -> str:
    """A share with its interval."""
    return f"{percent(value.value)} (95% interval {percent(value.low)} to {percent(value.high)})"


def named(attack: str) -> str:
    """An attack in a sentence."""
    others = {"frozen": "the naive attack on frozen counts", "mixed": "a random choice along the flows"}
    return others.get(attack, f"the {attack} attack")


def plural(number: int, one: str, several: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else several}"


def exposed(found: ExposedPeople) -> str:
    """Who is exposed, as the end of a sentence."""
    half, almost = found.half, found.almost_all
    people = f"{half.people:,} of {plural(half.of, 'person', 'people')}"
    are = "is" if half.people == 1 else "are"
    if almost.people == half.people:
        return f"{people} {are} almost completely exposed"
    return f"{people} {are} exposed" + (f", {almost.people:,} of them almost completely" if almost.people else "")


def headline(audit: Audit) -> str:
    """The verdict as one sentence: on average, and for single people."""
    found, mean = audit.given.exposed, audit.verdict.by_mean
    if found is None or mean is None or not found.half.people:
        return _ALONE[audit.verdict.level]
    return f"{_BESIDE[mean]} {exposed(found)}."


def level(audit: Audit) -> str:
    """The level as a label."""
    name = audit.verdict.level
    if name in ("low", "moderate", "high", "very high"):
        return f"{name} risk".capitalize()
    return {"unknown": "Risk unknown"}.get(name, name.capitalize())


def reasons(audit: Audit) -> list[str]:
    """How the level was reached: by the mean, and by people."""
    advantage, worst, verdict = audit.given.strongest.advantage, audit.given.exposing, audit.verdict
    found = None if worst is None else worst.exposed
    if advantage is None or verdict.by_mean is None:
        return []
    if verdict.by_mean == "cannot tell":
        low, high = (by_mean(Estimate(at, at, at)) for at in (advantage.low, advantage.high))
        mean = (
            f"On average, cannot tell: the advantage over chance may be as small as {percent(advantage.low)} ({low}) or as "
            f"large as {percent(advantage.high)} ({high}). More people, days or row orders would narrow this; until then, "
            f"count on {high}."
        )
    else:
        mean = f"On average: {verdict.by_mean}, by the upper limit of the advantage over chance, {percent(advantage.high)}."
    if found is None:
        return [mean]
    if verdict.by_people is None:
        return [mean, "By people: nobody is exposed."]
    return [mean, f"By people: {verdict.by_people}, because {exposed(found)}."]


def summary(audit: Audit) -> list[str]:
    """What the release as given gives away, in sentences."""
    given = audit.given
    best = given.strongest
    if best.accuracy is None or best.advantage is None:
        return _summary_without_truth(audit)
    chance = given.attacks["chance"]
    beside = f"guessing reaches {_value(chance.accuracy)}"
    if best.attack != "naive":
        beside += f", and simply leaving people where they are {_value(given.attacks['naive'].accuracy)}"
    found = [
        f"From the published numbers alone, {named(best.attack)} puts people in the right place "
        f"{within(best.accuracy)} of the time; {beside}. Its advantage over chance is {within(best.advantage)}, where 0% is "
        "guessing and 100% is knowing everything."
    ]
    if best.point_precision is not None and audit.truth is not None and (audit.truth.cells == AWAY).any():
        found.append(
            f"People come and go: that is of the time at which they are counted. Of all the points that it rebuilds, "
            f"{percent(best.point_precision)} are right."
        )
    if best.accuracy_observed is not None:
        found.append(
            f"{percent(audit.settings['observed'])} of the true points were recorded, the others filled in. At recorded points "
            f"it is right {within(best.accuracy_observed)} of the time; guessing reaches "
            f"{_value(chance.accuracy_observed)}."
        )
    if given.included < 1:
        found.append(
            f"The release holds {percent(given.included)} of the people; every risk here is the risk of those people."
        )
    if best.home is not None:
        work = "" if best.work is None else f", and where {percent(best.work.value)} spend their working hours"
        found.append(f"It finds where {percent(best.home.value)} of the people spend their nights{work}.")
    if best.learnt and _FOUR in best.learnt:
        guess = (chance.learnt or {}).get(_FOUR)
        found.append(
            f"Someone who knows where a person was at {_FOUR} random moments, and picks the rebuilt path that fits best, is "
            f"right about {percent(best.learnt[_FOUR].value)} of the person's other time; by guessing, {_value(guess)}."
        )
    if given.exposed is not None:
        found += _people(given.exposed)
    tested = given.membership.get("exact")
    if tested is not None and not isinstance(tested, str):
        found.append(
            f"Someone who knows everyone else can tell whether a person is in the data with an AUC of {tested.auc:.2f}; 0.5 "
            "is guessing, 1 is certainty."
        )
    return found


def _people(found: ExposedPeople) -> list[str]:
    half, almost = found.half, found.almost_all
    orders = len(half.by_order)
    guessed = [_number(one.by_chance) for one in (half, almost)]
    sentences = [
        f"More than half of their time was recovered, clearly above guessing, for {half.people:,} of "
        f"{plural(half.of, 'person', 'people')}, more than 90% for {almost.people:,}."
        if half.people
        else f"For none of the {half.of:,} people was more than half of their time recovered clearly above guessing."
    ]
    sentences[0] += f" Guessing alone would do so for {' and '.join(dict.fromkeys(guessed))}."
    if half.people and orders > 1:
        sentences.append(
            f"Under every one of the {orders} row orders, {plural(half.in_every_order, 'person is', 'people are')} exposed."
        )
    sentences.append(
        f"Of the most exposed person, {percent(found.most)} of the time was recovered; the 99th percentile is "
        f"{percent(found.percentile_99)}."
    )
    return sentences


def _number(mean: float) -> str:
    return f"{mean:.1f}".removesuffix(".0") if mean else "nobody"


def _value(found: Estimate | None) -> str:
    return "an unknown share" if found is None else percent(found.value)


def _summary_without_truth(audit: Audit) -> list[str]:
    best = audit.given.strongest
    found = [
        f"{plural(round(best.people), 'path was', 'paths were')} rebuilt with {named(best.attack)}. "
        f"{percent(best.uniqueness[1])} of them are the only ones with their two most frequent places."
    ]
    alike = {one.one: one.share for one in audit.agreements if one.one == one.other}
    if best.attack in alike:
        found.append(
            f"Repeated with another row order, the attack agrees with itself at {percent(alike[best.attack])} of the "
            f"points; two random guesses agree at {percent(alike['chance'])}."
        )
    for one in audit.agreements:
        other = one.one if one.other == best.attack else one.other
        if best.attack in (one.one, one.other) and other not in (best.attack, "chance", "naive", "frozen", "mixed"):
            found.append(f"It agrees with {named(other)} at {percent(one.share)} of the points.")
    return found


def matching(audit: Audit) -> str:
    """How rebuilt people were matched with true ones, in a sentence."""
    found = "Rebuilt people have no names, so they are matched with the true people in the way that has the least total distance"
    if not audit.gap:
        return f"{found}."
    return f"{found}, or nearly so: among so many people the least is not known, but it is proven to be at most {at_most(audit.gap)} less."


def informed(audit: Audit) -> list[str]:
    """What attackers find who know more than the release, and how they are scored, in sentences."""
    found = []
    for name, risk in audit.given.attacks.items():
        if risk.knows is None:
            continue
        who = f"Someone who knows {PRIORS[risk.knows].about} (“{name}”)"
        if risk.accuracy is None or risk.chance is None:
            found.append(f"{who} was tried too. Without the truth, nobody knows how much of that is right.")
            continue
        people = "the others" if risk.knows == "known-people" else "people"
        found.append(
            f"{who} puts {people} in the right place {within(risk.accuracy)} of the time; guessing reaches "
            f"{percent(risk.chance)}.{_SCORED.get(risk.knows, '')}"
        )
    return found


def expected_accuracy(expected: Expectation | None) -> str:
    """Between which accuracies the strongest attack may lie, in a sentence; nothing where nobody can say."""
    if expected is None or not expected.accuracy:
        return ""
    low, high = expected.accuracy[0], expected.accuracy[-1]
    between = f"about {percent(low)}" if high - low < 0.005 else f"from {percent(low)} to {percent(high)}"
    return f"By an estimate, {between} of the points that {named(expected.attack)} rebuilds may be right."


def expectation(expected: Expectation) -> list[str]:
    """What the estimate is made of, in sentences."""
    found = []
    if expected.small_numbers is not None:
        found.append(f"{percent(expected.small_numbers)} of the published numbers above 0 are 1 or 2.")
    if expected.confidence is not None and expected.claimed is not None:
        found.append(
            f"On average {named(expected.attack)} is {percent(expected.confidence)} sure of a point, and it claims "
            f"{percent(expected.claimed)} of the points with a confidence of at least 90%."
        )
    similar = None if expected.similar is None else expected.similar.given
    if similar is not None and similar.strongest.accuracy is not None:
        guess = similar.attacks["chance"].accuracy
        found.append(
            f"For synthetic people modelled on the rebuilt ones (same places, similar totals and hours), whose true paths are known, it "
            f"finds {percent(similar.strongest.accuracy.value)} of the points, where guessing finds {_value(guess)}. Rebuilt "
            "people are more regular than real ones, so this is more than it would find for the real people."
        )
    return found


def decision(audit: Audit) -> str:
    """What follows for publication: not as it is, with which defence, or what cannot be said."""
    if audit.truth is None:
        said = (
            "Whether to publish it cannot be decided: without the truth nobody knows how much of a recovery is right."
        )
        return f"{said} {expected_accuracy(audit.expected)}".strip()
    if _is_low(audit.given):
        return "These attacks give no reason not to publish it as it is."
    no = "Do not publish as it is" + (
        ": a high risk cannot be ruled out." if audit.verdict.level == CANNOT_TELL else "."
    )
    tried = _tried(audit)
    if not tried:
        return f"{no} No defence was tried."
    enough = [one for one in tried if _is_low(one)]
    best = min(enough, key=audit.loss) if enough else min(tried, key=lambda one: _advantage(one).value)
    left = _left(audit, best)
    if enough:
        return f"{no} Publish with {_name(best)}: {left}."
    if len(tried) == 1:
        return f"{no} The one defence tried is not enough: with {_name(best)}, {left}."
    return f"{no} None of the {len(tried)} defences tried is enough: even with {_name(best)}, {left}."


def advice(audit: Audit) -> list[str]:
    """What each of the defences that were tried would do, in sentences."""
    tried = sorted(_tried(audit), key=audit.loss)
    if not tried:
        if audit.truth is not None:
            return [
                "No defence was tried, so it is open whether one would be enough: rekindle recommend searches for one."
            ]
        estimated = audit.expected is not None and audit.expected.similar is not None and len(audit.releases) > 1
        beside = (
            " What each does to synthetic people modelled on the rebuilt ones is below, as an estimate." * estimated
        )
        return [f"Without ground truth we cannot say whether a defence helps.{beside}"]
    if _is_low(audit.given):
        costs = "; ".join(f"{_name(one)}, {error(audit.loss(one))}" for one in tried)
        return [
            f"No defence is needed against these attacks. How far each would put the published {_PUBLISHED[audit.published]} off: "
            f"{costs}."
        ]
    groups: dict[str, list[str]] = {}
    for one in tried:
        groups.setdefault(_help(one, audit.given), []).append(f"{_name(one)}: {_shortly(audit, one)}")
    return [f"{group}. {'; '.join(groups[group])}." for group in _HELP if group in groups]


def _help(one: ReleaseRisk, given: ReleaseRisk) -> str:
    """How far a defence helps: enough, clearly or not, on average or for those who are exposed."""
    if _is_low(one):
        return _HELP[0]
    before, after = (None if found is None else found.half.share for found in (given.exposed, one.exposed))
    fewer = before is not None and after is not None and after.high < before.low
    return _HELP[1] if fewer or _advantage(one).high < _advantage(given).low else _HELP[2]


def _tried(audit: Audit) -> list[ReleaseRisk]:
    return [one for one in audit.releases[1:] if one.strongest.advantage is not None]


def _left(audit: Audit, one: ReleaseRisk) -> str:
    """What a defence leaves, and what it costs."""
    found = one.exposed
    people = "nobody is exposed" if found is None or not found.half.people else exposed(found)
    return (
        f"an advantage over chance of {percent(_advantage(one).value)} remains, {people}, and the "
        f"{_PUBLISHED[audit.published]} are off by {error(audit.loss(one))}"
    )


def _shortly(audit: Audit, one: ReleaseRisk) -> str:
    found = one.exposed
    people = (
        "nobody exposed"
        if found is None or not found.half.people
        else f"{found.half.people:,} of {found.half.of:,} exposed"
    )
    return f"advantage {percent(_advantage(one).value)}, {people}, {audit.published} off by {error(audit.loss(one))}"


def _name(one: ReleaseRisk) -> str:
    """A release, and who is in it where that is not everyone: a sample protects those who are left out, nobody else."""
    part = "" if one.included >= 1 else f" (for the {percent(one.included)} of people in it)"
    return f"“{one.label}”{part}"


def _is_low(one: ReleaseRisk) -> bool:
    found = one.exposed
    people = (0, 1) if found is None else (found.half.people, found.half.of)
    return judge(one.strongest.advantage, *people).level in ("no better than guessing", "low")


def _advantage(one: ReleaseRisk) -> Estimate:
    return one.strongest.advantage or Estimate(1.0, 1.0, 1.0)
