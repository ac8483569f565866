"""The verdict: a level, by the mean and by people, and the rule that it follows."""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.auditing.risk import Estimate

__all__ = ["CANNOT_TELL", "LEVELS", "RULE", "Verdict", "by_mean", "by_people", "judge"]

LEVELS = ((0.02, "no better than guessing"), (0.10, "low"), (0.30, "moderate"), (0.60, "high"), (1.01, "very high"))
"""From the lowest to the highest, each with the advantage that it lies below."""

CANNOT_TELL, UNKNOWN = "cannot tell", "unknown"

_NAMES = [name for _, name in LEVELS]
_FROM_PEOPLE = ((0.10, "very high"), (0.01, "high"), (0.0, "moderate"))
"""The share of people exposed from which each level holds; moderate holds where anyone is exposed."""

RULE = (
    "Judged by the attacks on the release as given, the references included, in two ways; the higher level holds. By "
    "the mean: the advantage over chance of the strongest attack, (accuracy - chance) / (1 - chance), with its "
    "limits. The level is that of the upper limit: no better than guessing below 2%, low below 10%, moderate below "
    "30%, high below 60%, very high from there on. Where the lower limit lies two or more levels below, the audit "
    "cannot tell. By people, for the attack that exposes most of them: a person is exposed where, as a mean over the "
    "row orders, more than half of their time was recovered and the attack clearly beats that person's own chance "
    "score: by more than 10 percentage points, and by more than three standard deviations of a chance score over the "
    "steps, sqrt(chance (1 - chance) / steps). Moderate where anyone is exposed, high from 1% of the people, very "
    "high from 10%. Where the mean cannot tell, the level by people holds only if it is at least that of the upper "
    "limit. These limits are Rekindle's own, not a law's."
)


@dataclass(frozen=True)
class Verdict:
    """The answer in a word, and how it was reached.

    Attributes
    ----------
    level
        One of `LEVELS`, "cannot tell", or "unknown" without the truth.
    by_mean
        The level by the advantage of the strongest attack, or "cannot tell"; None without the truth.
    by_people
        The level by the people who are exposed; None where nobody is, or without the truth.
    rule
        How the level follows from the numbers.
    """

    level: str
    by_mean: str | None = None
    by_people: str | None = None
    rule: str = field(default=RULE, repr=False)


def judge(advantage: Estimate | None, exposed: int = 0, people: int = 1) -> Verdict:
    """Judge a release.

    Parameters
    ----------
    advantage
        That of the strongest attack; None where the truth is not known.
    exposed, people
        How many people are exposed, and how many there are.
    """
    if advantage is None:
        return Verdict(
            UNKNOWN, rule="Without the truth nobody can say how much of a recovery is right, so there is no verdict."
        )
    mean, persons = by_mean(advantage), by_people(exposed, people)
    if persons is not None and _NAMES.index(persons) >= _rank(advantage.high):
        return Verdict(persons, mean, persons)
    return Verdict(mean, mean, persons)


def by_mean(advantage: Estimate) -> str:
    """The level of the upper limit; "cannot tell" where the limits lie two or more levels apart."""
    low, high = _rank(advantage.low), _rank(advantage.high)
    return CANNOT_TELL if high - low > 1 else _NAMES[high]


def by_people(exposed: int, people: int) -> str | None:
    """The level by the people who are exposed; None where nobody is."""
    return next(level for least, level in _FROM_PEOPLE if exposed >= least * people) if exposed else None


def _rank(advantage: float) -> int:
    return sum(advantage >= below for below, _ in LEVELS)
