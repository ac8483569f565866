"""The annex "Evidence": what an audit measured, under the headings by which anonymisation is reviewed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from rekindle.attacks import PRIORS
from rekindle.auditing.risk import Estimate

if TYPE_CHECKING:
    from rekindle.auditing.results import Audit

WP216 = "Article 29 Working Party, Opinion on Anonymisation Techniques (WP 216)"
ISO27559 = "ISO/IEC 27559, privacy enhancing data de-identification framework"
NIST226 = "NIST SP 800-226, evaluating differential privacy guarantees"
MEANS = "Means reasonably likely to be used; motivated intruder"

_FOUR = 4
_UNKNOWN = "Not measured: without the truth nobody can say how much of a recovery is right."


@dataclass(frozen=True)
class Evidence:
    """What was measured for one heading.

    Attributes
    ----------
    heading
        What reviewers ask for.
    source
        The document, or the idea, that the heading comes from.
    finding
        What was measured, in sentences.
    numbers
        The same in plain values; shares from 0 to 1. None: not measured.
    """

    heading: str
    source: str
    finding: str
    numbers: dict[str, Any] = field(default_factory=dict)


def gather_evidence(audit: Audit) -> tuple[Evidence, ...]:
    """Put what an audit measured on the release as given under the headings."""
    parts = (_identification(audit), _risks(audit), _differential_privacy(audit), _means(audit))
    return tuple(one for part in parts for one in part)


def _identification(audit: Audit) -> Iterator[Evidence]:
    given, best = audit.given, audit.given.strongest
    chance = given.attacks["chance"]
    unique = best.uniqueness[1]
    numbers: dict[str, Any] = {"unique_by_2_locations": unique}
    finding = f"{_percent(unique)} of the rebuilt paths are the only ones with their two most frequent places."
    if (found := given.exposed) is not None:
        numbers |= {"people": found.half.of, "exposed": found.half.people, "almost_wholly": found.almost_all.people}
        finding = (
            f"Of {found.half.of} people, {found.half.people} have more than half of their time recovered clearly above "
            f"guessing, {found.almost_all.people} more than 90%. {finding}"
        )
    yield Evidence("Singling out", WP216, finding if found else f"{finding} {_UNKNOWN}", numbers)

    if best.accuracy is None:
        yield Evidence("Linkability", WP216, _UNKNOWN)
        yield Evidence("Inference", WP216, _UNKNOWN)
        return
    linked, guess, most = (_at_four(one.reidentified) for one in (best, chance, given.attacks["perfect"]))
    days = audit.recovered.calendar.number_of_days
    finding = "Too few points to link anyone by four of them."
    if linked is not None:
        finding = (
            f"Someone who knows {_FOUR} points of a person from elsewhere finds the right rebuilt path, and only it, for "
            f"{_percent(linked)} of the people (guessing {_percent(guess)}, in the true data {_percent(most)})."
        )
    yield Evidence(
        "Linkability",
        WP216,
        f"{finding} A person's points of {days} {'day' if days == 1 else 'days'} are linked to one path; a path that joins "
        "different people counts for one of them at most.",
        {"reidentified_from_4_points": linked, "by_chance": guess, "in_the_true_data": most, "days": days},
    )
    learnt, guessed = (one.learnt.get(_FOUR) if one.learnt else None for one in (best, chance))
    sentences = []
    if learnt is not None:
        sentences.append(
            f"From {_FOUR} known points, {_percent(learnt)} of a person's other time is learnt (guessing {_percent(guessed)})."
        )
    for what, value, random in (("home", best.home, chance.home), ("workplace", best.work, chance.work)):
        if value is not None:
            sentences.append(f"The {what} of {_percent(value)} of the people is found (guessing {_percent(random)}).")
    tested = given.membership.get("exact")
    auc = None if tested is None or isinstance(tested, str) else tested.auc
    if auc is not None:
        sentences.append(
            f"Whether a person is in the data can be told with an AUC of {auc:.2f} by someone who knows everyone else."
        )
    yield Evidence(
        "Inference",
        WP216,
        " ".join(sentences) or "Nothing that can be inferred was measured.",
        {
            "learnt_from_4_points": _value(learnt),
            "homes": _value(best.home),
            "workplaces": _value(best.work),
            "membership_auc": auc,
        },
    )


def _risks(audit: Audit) -> Iterator[Evidence]:
    given, best = audit.given, audit.given.strongest
    attacks = [name for name, its in audit.settings["attacks"].items() if not {"prior", "known_people"} & set(its)]
    informed = [name for name, risk in given.attacks.items() if risk.knows]
    references = [name for name in given.attacks if name not in (*attacks, *informed, "perfect")]
    known = "knows" if given.people_known else "guesses"
    yield Evidence(
        "Attack modelling",
        ISO27559,
        f"The attacker has the release, its places and its times, {known} how many people are counted, and rebuilds everyone's "
        f"path with {_listed(attacks)}. The attacks are compared with {_listed(references)}.",
        {"attacks": attacks, "references": references, "people_known": given.people_known},
    )
    if best.accuracy is None or best.advantage is None or given.exposed is None:
        yield Evidence("Maximum risk", ISO27559, _UNKNOWN)
        yield Evidence("Average risk", ISO27559, _UNKNOWN)
    else:
        most, chance = given.exposed.most, given.attacks["chance"].accuracy
        yield Evidence(
            "Maximum risk",
            ISO27559,
            f"Of the most exposed person, {_percent(most)} of the time was recovered; of 99% of the people, at most "
            f"{_percent(given.exposed.percentile_99)}.",
            {"most_exposed": most, "percentile_99": given.exposed.percentile_99},
        )
        yield Evidence(
            "Average risk",
            ISO27559,
            f"People are put in the right place {_percent(best.accuracy)} of the time (guessing {_percent(chance)}). The "
            f"advantage over chance is {_percent(best.advantage)}, with a 95% interval from {_percent(best.advantage.low)} to "
            f"{_percent(best.advantage.high)}.",
            {
                "accuracy": asdict(best.accuracy),
                "advantage": asdict(best.advantage),
                "chance": _value(chance),
            },
        )
    orders = audit.settings["row_orders"]
    releases = len(audit.releases)
    yield Evidence(
        "Adversarial testing",
        ISO27559,
        f"{_number(len(attacks), 'attack was', 'attacks were')} carried out on {_number(releases, 'release', 'releases')} (as "
        f"given, and {_number(releases - 1, 'defence', 'defences')}), with {_number(orders, 'row order', 'row orders')} each. "
        f"The strongest on the release as given is {best.attack}; the level of the verdict is “{audit.verdict.level}”."
        + f" There, {_number(len(informed), 'attack', 'attacks')} by someone who knows more stood beside."
        * bool(informed),
        {"releases": releases, "row_orders": orders, "strongest": best.attack, "level": audit.verdict.level},
    )


def _differential_privacy(audit: Audit) -> Iterator[Evidence]:
    """Epsilon, and what it is about: only where noise was drawn and tested is there anything to say."""
    claims, sentences = {}, []
    for one in audit.releases:
        tested = one.membership.get("exact")
        if tested is None or isinstance(tested, str) or tested.claimed_per_event is None:
            continue
        per_event, per_person = tested.claimed_per_event, tested.claimed_per_person
        claims[one.label] = {"epsilon_per_event": per_event, "epsilon_per_person": per_person}
        person = "" if per_person is None else f", {per_person:,.3g} for all that one person adds"
        sentences.append(f"“{one.label}”: epsilon {per_event:g} for one event{person}.")
    none = "No release that was tested has noise, so no epsilon bounds what is told of a person."
    yield Evidence(
        "Unit of privacy",
        NIST226,
        "An event is one person at one step. " + " ".join(sentences) if sentences else none,
        {"claims": claims},
    )
    steps, truth = audit.recovered.steps, audit.truth
    counted = np.full(1, steps) if truth is None else (truth.cells >= 0).sum(axis=1)
    most, mean = int(counted.max()), float(counted.mean())
    usual = "" if truth is None else f" ({mean:,.0f} on average)"
    yield Evidence(
        "Contribution per person",
        NIST226,
        f"A person adds 1 to one number at each of at most {most:,} steps{usual} of {steps:,}; no contribution was limited for "
        "the release as given.",
        {"most": most, "mean": None if truth is None else mean, "steps": steps},
    )


def _means(audit: Audit) -> Iterator[Evidence]:
    given, best = audit.given, audit.given.strongest
    known = "is taken as known" if given.people_known else "must be guessed"
    tried = list(dict.fromkeys(risk.knows for risk in given.attacks.values() if risk.knows))
    others = [*(prior.about for knows, prior in PRIORS.items() if knows not in tried), "maps"]
    also = f"Also tried, each alone and with no weight in the verdict: knowledge of {_listed([PRIORS[one].about for one in tried])}. "
    yield Evidence(
        "Attacker's knowledge",
        MEANS,
        f"The published numbers, the places and the times; the number of people {known}. For linking and inference, a few points "
        f"of one person. The attacks are public, free software. {also * bool(tried)}Not tried: knowledge of "
        f"{_listed(others, 'or')}.",
        {"people_known": given.people_known, "also_tried": tried},
    )
    steps, places = audit.recovered.steps, len(audit.recovered.locations)
    cost = "was not measured" if best.seconds is None else f"was {_time(best.seconds)}"
    yield Evidence(
        "Cost",
        MEANS,
        f"The processor time of one recovery with {best.attack} {cost}, for {_number(round(best.people), 'person', 'people')}, "
        f"{steps:,} steps and {places:,} places.",
        {"attack": best.attack, "processor_seconds": best.seconds},
    )
    made, review = audit.identity.made, _review(audit.identity.made)
    yield Evidence(
        "Date and review",
        MEANS,
        "It is not known when the audit was made."
        if made is None
        else f"Audited on {made[:10]}. Review by {review}, or as soon as more is published: attacks get better, and more "
        "becomes known about people.",
        {"made": made, "review_by": review},
    )


def _review(made: str | None) -> str | None:
    """A year later."""
    if made is None:
        return None
    day = datetime.fromisoformat(made).date()
    return day.replace(year=day.year + 1, day=min(day.day, 28) if day.month == 2 else day.day).isoformat()


def _at_four(reidentified: tuple[Estimate, ...]) -> float | None:
    """Of 1, 2, 4, ... known points."""
    return reidentified[2].value if len(reidentified) > 2 else None


def _value(found: Estimate | None) -> float | None:
    return None if found is None else found.value


def _percent(share: float | Estimate | None) -> str:
    value = share.value if isinstance(share, Estimate) else share
    return "an unknown share" if value is None else f"{100 * value:.1f}".removesuffix(".0") + "%"


def _number(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _listed(names: list[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return "under 0.1 seconds"
    if seconds < 90:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
