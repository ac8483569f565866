"""What `recommend` found: every release that was tried, and the one that is recommended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import rekindle
from rekindle.auditing.results import MEASURES, Audit, Published, ReleaseRisk
from rekindle.auditing.risk import Estimate
from rekindle.defences import DEFENCES, Chain, Defence, format_defence
from rekindle.frames import Frame, Library, html_table, to_frame
from rekindle.io.safety.files import write_json
from rekindle.model import Release

AS_GIVEN = "as given"
"""The family of the release without a defence."""


@dataclass(frozen=True)
class Candidate:
    """One release that was tried.

    Attributes
    ----------
    family
        Of the defence.
    defence
        What was done; None for the data as given.
    label
        The same in a few words.
    loss
        Error of the counts, or of the flows between locations, as a share of all: a mean over the draws. 1 is what an empty
        release has.
    utility
        All measures of use, by name.
    advantage
        Over chance, of the attack or reference whose upper limit is highest.
    exposed, people
        How many people are exposed, in the worst draw or row order and as a mean over them, whichever is more; and how
        many were measured.
    attack
        Which attack it is whose upper limit is highest.
    meets
        Whether the limits hold: the upper limit of the advantage, and the number of people.
    confirmed
        Whether they hold with other draws and row orders too; None where that was not tried.
    """

    family: str
    defence: Defence | None
    label: str
    loss: float
    utility: dict[str, float] = field(repr=False)
    advantage: Estimate
    exposed: int
    people: int
    attack: str
    meets: bool
    confirmed: bool | None = None

    @property
    def text(self) -> str:
        """The defence in the form that `parse_defence` and the command line read; in Python's where one's own is in it."""
        if self.defence is None:
            return "none"
        known = all(type(one) in DEFENCES.values() for one in Chain([self.defence]).defences)
        return format_defence(self.defence) if known else self.defence.describe()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(replace(self, defence=None)) | {"defence": self.text}


def judge_release(
    risk: ReleaseRisk,
    family: str,
    defence: Defence | None,
    limits: Mapping[str, float],
    published: Published = "counts",
) -> Candidate:
    """Say whether a release meets the limits; where attacks, draws or row orders differ, the worst counts."""
    known = [(one, one.advantage, one.exposed.half) for one in risk.tried if one.advantage and one.exposed]
    worst, advantage, _ = max(known, key=lambda one: one[1].high)
    exposed = max(max(half.people, *half.by_order) for _, _, half in known)
    use = risk.utility or {}
    return Candidate(
        family=family,
        defence=defence,
        label=risk.label,
        loss=use[MEASURES[published]],
        utility=use,
        advantage=advantage,
        exposed=exposed,
        people=max(half.of for _, _, half in known),
        attack=worst.attack,
        meets=exposed <= limits["max_exposed"] and advantage.high <= limits["max_advantage"],
    )


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The least lossy release under limits, and what was tried to find it.

    Attributes
    ----------
    max_exposed, max_advantage, max_loss
        The limits.
    published
        What is to be published: "counts" or "flows".
    chosen
        What is recommended, with the numbers of the evidence; None where nothing meets the limits, or that is not known.
    release
        What to publish, drawn for publication: neither the draws of the search nor those of the evidence. None like `chosen`.
    evidence
        An audit of the data as given and of what is recommended, from draws and row orders other than those of the search;
        None where nothing was confirmed.
    tried
        Every release that was tried in the search, the least lossy first.
    left_out
        Families and defences that could not be tried, with the reason.
    notes
        What the reader must know, in sentences.
    finished
        Whether the search came to its end.
    settings
        What was asked for and how it was judged, in plain values.
    """

    max_exposed: int
    max_advantage: float
    max_loss: float
    published: Published
    chosen: Candidate | None
    release: Release | None
    evidence: Audit | None
    tried: tuple[Candidate, ...]
    left_out: dict[str, str]
    notes: tuple[str, ...]
    finished: bool
    settings: dict[str, Any]

    @property
    def frontier(self) -> tuple[Candidate, ...]:
        """Those that were tried of which no other is less lossy and as safe in both ways, the least lossy first."""
        found: list[Candidate] = []
        for one in self.tried:
            if all(one.advantage.high < other.advantage.high or one.exposed < other.exposed for other in found):
                found.append(one)
        return tuple(found)

    @property
    def measure(self) -> str:
        """The measure of use by which releases were compared, by its name."""
        return MEASURES[self.published]

    @property
    def limits(self) -> str:
        """The limits in a sentence's part."""
        people = {0: "nobody", 1: "at most one person"}.get(self.max_exposed, f"at most {self.max_exposed} people")
        return f"{people} exposed, and an advantage over chance of at most {self.max_advantage:g} at its upper limit"

    @property
    def answer(self) -> str:
        """The recommendation in a sentence."""
        if self.chosen is not None:
            one = self.chosen
            return (
                f"{one.label}: the error of the {self.published} is {one.loss:.0%}. With draws and row orders other than those of the search, "
                f"{one.exposed:,} of {one.people:,} people are exposed, and the upper limit of the advantage over chance is "
                f"{one.advantage.high:.2f}."
            )
        if not self.finished:
            return f"No release is confirmed yet with {self.limits}."
        said = f"Nothing that was tried meets the limits: {self.limits}, and an error of {self.published} below {self.max_loss:.0%}."
        # By share: a sample exposes fewer people because fewer are in it.
        least = min(self.tried, key=lambda one: (one.exposed / one.people, one.advantage.high))
        return (
            f"{said} The least risky is “{least.label}”: {least.exposed:,} of {least.people:,} people exposed, an upper limit of "
            f"{least.advantage.high:.2f}, and an error of {self.published} of {least.loss:.0%}."
        )

    def to_json(self) -> dict[str, Any]:
        """Everything in plain values; no person and no trajectory is among them."""
        return {
            "rekindle": rekindle.__version__,
            "answer": self.answer,
            "limits": {
                "max_exposed": self.max_exposed,
                "max_advantage": self.max_advantage,
                "max_loss": self.max_loss,
            },
            "release": self.published,
            "measure": self.measure,
            "chosen": None if self.chosen is None else self.chosen.to_json(),
            "done": [] if self.release is None else [asdict(one) for one in self.release.defences],
            "finished": self.finished,
            "frontier": [one.text for one in self.frontier],
            "tried": [one.to_json() for one in self.tried],
            "left_out": self.left_out,
            "notes": list(self.notes),
            "settings": self.settings,
        }

    def write_json(self, path: str | Path, **more: Any) -> None:
        """Write the numbers to a file, whole or not at all, and more plain values beside them."""
        write_json(Path(path), self.to_json() | more, private=True)

    def to_html(self, path: str | Path) -> None:
        """Write the frontier of risk and use as a page: one file that needs nothing else."""
        from rekindle.report.frontier import write_frontier  # the report knows this room, and not the other way round

        write_frontier(path, self)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each release that was tried: family, defence, loss, risk and limits, and all measures of use.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        best = {id(one) for one in self.frontier}
        rows = [
            {
                "family": one.family,
                "defence": one.text,
                "loss": one.loss,
                "advantage": one.advantage.value,
                "advantage_low": one.advantage.low,
                "advantage_high": one.advantage.high,
                "exposed": one.exposed,
                "attack": one.attack,
                "meets": one.meets,
                "confirmed": one.confirmed,
                "frontier": id(one) in best,
            }
            | {name: value for name, value in one.utility.items() if name != self.measure}
            for one in self.tried
        ]
        return to_frame(rows, library)

    def _repr_html_(self) -> str:
        """The answer, and the frontier in rows."""
        return html_table(self.answer, self.rows(self.frontier), self.head())

    def __repr__(self) -> str:
        chosen = "nothing meets the limits" if self.finished else "not confirmed"
        return (
            f"Recommendation({chosen if self.chosen is None else self.chosen.text}; {len(self.tried)} releases tried)"
        )

    def head(self) -> list[str]:
        """What the columns of `rows` are."""
        return [
            "release",
            f"error of {self.published}",
            "advantage over chance",
            "people exposed",
            "attack",
            "meets the limits",
        ]

    def rows(self, tried: Sequence[Candidate]) -> list[list[str]]:
        """Releases in rows, for people to read."""
        return [
            [
                one.label,
                f"{one.loss:.2f}",
                f"{one.advantage.value:.2f} ({one.advantage.low:.2f}–{one.advantage.high:.2f})",
                f"{one.exposed:,} of {one.people:,}",
                one.attack,
                {None: "yes" if one.meets else "no", True: "yes, confirmed", False: "not confirmed"}[one.confirmed],
            ]
            for one in tried
        ]
