"""What an audit found: small frozen nouns, from one attack on one release up to the whole audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import rekindle
from rekindle import checks
from rekindle.auditing.evidence import Evidence, gather_evidence
from rekindle.auditing.risk import Estimate, Verdict
from rekindle.errors import InvalidSetting
from rekindle.frames import Frame, Library, html_table, to_frame
from rekindle.io.safety.files import write_json
from rekindle.membership import Membership
from rekindle.model import Trajectories

Published = Literal["counts", "flows"]

MEASURES: dict[Published, str] = {"counts": "count_error", "flows": "flow_error"}
"""The measure of `rekindle.evaluation.Utility` that says how lossy a release of each kind is."""

HALF, ALMOST_ALL = 0.5, 0.9
"""The shares of a person's time above which exposed people are counted."""


@dataclass(frozen=True)
class Exposed:
    """How many people have more than a share of their time recovered, clearly above their own chance score.

    Attributes
    ----------
    above
        The share of a person's time.
    people, of
        How many are exposed, by the mean over the row orders, and how many people were measured.
    share
        The first as a share of the second, with limits; None where no limits hold.
    by_order
        How many are exposed under each row order.
    in_every_order
        How many are exposed under every row order that they were measured under.
    by_chance
        Of how many people chance alone recovers that much, as a mean over the row orders.
    """

    above: float
    people: int
    of: int
    share: Estimate | None
    by_order: tuple[int, ...]
    in_every_order: int
    by_chance: float


@dataclass(frozen=True)
class ExposedPeople:
    """What an attack recovers of single people, where the mean would hide them.

    Attributes
    ----------
    half, almost_all
        People with more than half, and more than 90%, of their time recovered.
    most
        The accuracy of the most exposed person, as a mean over the row orders.
    percentile_99
        The accuracy that 99% of the people lie below.
    clear
        The accuracies of those people of whom the attack clearly finds more than chance, the highest first.
    """

    half: Exposed
    almost_all: Exposed
    most: float
    percentile_99: float
    clear: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return (
            f"ExposedPeople({self.half.people} of {self.half.of}, {self.almost_all.people} of them almost completely)"
        )


@dataclass(frozen=True)
class Precision:
    """What an attack that states its confidence can claim, the surest points first.

    Attributes
    ----------
    claimed
        Shares of all points that are claimed.
    precision
        The share of the claimed points that are right; None where there is none.
    people
        How many people can be claimed almost completely, as a mean over the row orders.
    people_right
        The share of the points of these people that are right; None where there is nobody.
    """

    claimed: tuple[float, ...]
    precision: tuple[float | None, ...]
    people: float
    people_right: float | None


@dataclass(frozen=True)
class AttackRisk:
    """What one attack gets out of one release, of the people who are in it. All but the first fields need the truth.

    Attributes
    ----------
    attack
        Its name; "chance", "naive", "frozen", with flows "mixed", and "perfect" stand beside the attacks.
    people
        How many people it recovered.
    uniqueness
        By k = 1..5: share of recovered people whose set of k most frequent locations nobody else has.
    repair
        How the release was turned back into counts: of those tried, the way with which this attack finds most.
    accuracy
        Share of points in the right location. People without a match score 0.
    by_order
        The accuracy under each row order.
    accuracy_observed
        The accuracy at the points that were recorded rather than filled in; None where the truth does not say.
    point_precision
        Share of all recovered points that are right.
    advantage
        (accuracy - chance) / (1 - chance).
    exposed
        How many people are exposed, and how far.
    error_km
        Mean distance of a point to where the person really was, at the original resolution, over people with a match.
    home, work
        Share of people whose most frequent location at night, or in working hours, was found; None without such steps.
    reidentified
        By the number of points that someone knows: how often they find the right person, and only them.
    learnt
        By the number of points that someone knows: the share that they learn of the person's other points.
    confidence, claimed
        The mean of the attack's own confidence, and the share of the points that it claims with a confidence of at least
        0.9; None for an attack without one. They need no truth.
    precision
        What it can claim; None for an attack without a confidence.
    by_hour
        Share of points in the right location at each hour of the day, None where the release has none.
    by_location
        For each location of the release, the share found of the time spent there; None where nobody was.
    seconds
        Processor time that one recovery took, as a mean over the row orders; None where that is not known.
    knows
        What the attacker knows besides the release: "other-traces", "known-past" (scored by name) or "known-people" (who are left
        out of the score). None for one who knows nothing. Those who know more are tried on the release as given, and
        count neither for the strongest attack nor for the verdict.
    chance
        The accuracy of chance, over the same people; by name where the attack is scored by name.
    """

    attack: str
    people: float
    uniqueness: tuple[float, ...]
    repair: str | None = None
    accuracy: Estimate | None = None
    by_order: tuple[float, ...] = ()
    accuracy_observed: Estimate | None = None
    point_precision: float | None = None
    advantage: Estimate | None = None
    exposed: ExposedPeople | None = None
    error_km: float | None = None
    home: Estimate | None = None
    work: Estimate | None = None
    reidentified: tuple[Estimate, ...] = ()
    learnt: dict[int, Estimate] | None = None
    confidence: float | None = None
    claimed: float | None = None
    precision: Precision | None = None
    by_hour: tuple[float | None, ...] = ()
    by_location: tuple[float | None, ...] = ()
    seconds: float | None = None
    knows: str | None = None
    chance: float | None = None

    def __repr__(self) -> str:
        found = "" if self.accuracy is None else f", accuracy {self.accuracy.value:.3f}"
        return f"AttackRisk({self.attack}, {self.people:g} people{found})"


@dataclass(frozen=True)
class Repairs:
    """Ways to turn a release back into counts, compared with one attack under the first row order; the best two are kept.

    Attributes
    ----------
    attack
        The attack that they were compared with.
    accuracy
        By the name of the repair.
    kept
        The best two, the best first. Counts in which nothing ever moves are left to the reference "frozen".
    true_counts
        The accuracy of the same attack on the true counts of the people in the release.
    """

    attack: str
    accuracy: dict[str, float]
    kept: tuple[str, ...]
    true_counts: float

    @property
    def gap(self) -> float:
        """How far the best repair is from the true counts, in accuracy."""
        return self.true_counts - max(self.accuracy.values())


@dataclass(frozen=True)
class GuessedPeople:
    """The weaker attacker, who has to guess how many people there are.

    Attributes
    ----------
    people
        The guess, as a mean over the seeds.
    attack
        The attack, the strongest with the number known.
    accuracy, advantage
        What it reaches.
    """

    people: float
    attack: str
    accuracy: Estimate
    advantage: Estimate


@dataclass(frozen=True)
class ReleaseRisk:
    """What the attacks get out of one release, of the people who are in it.

    Attributes
    ----------
    name
        The defence with its settings, or "as given".
    label
        The same in a few words.
    withheld
        Share of the numbers that are withheld.
    people
        How many people the attacker takes to be in the release, as a mean over the seeds.
    utility
        How much use is left, by the name of the metric: a mean over the seeds; None where that is not known.
    attacks
        By name, "chance", "naive", "frozen" and "perfect" included.
    included
        Share of the people who are in the release: below 1 for a sample. Every risk is that of those who are.
    people_known
        Whether the attacker knows how many people are in the release.
    guessed
        What is reached where that number must be guessed; None where the guess is right, or without the truth.
    repairs
        The repairs that were compared; None where the numbers are exact and whole, or without the truth.
    membership
        By method: whether it can be told who is in the release, or the reason why that could not be tested.
    """

    name: str
    label: str
    withheld: float
    people: float
    utility: dict[str, float] | None
    attacks: dict[str, AttackRisk]
    included: float = 1.0
    people_known: bool = True
    guessed: GuessedPeople | None = None
    repairs: Repairs | None = None
    membership: dict[str, Membership | str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ReleaseRisk({self.label}: {self.strongest!r}, {len(self.attacks)} attacks and references)"

    @property
    def tried(self) -> list[AttackRisk]:
        """The attacks of those who know nothing else, and the references but for chance and the perfect recovery."""
        beside = ("chance", "perfect")
        return [risk for name, risk in self.attacks.items() if name not in beside and risk.knows is None]

    @property
    def strongest(self) -> AttackRisk:
        """The attack or reference with the highest accuracy; without the truth, the last that was asked for."""
        known = [risk for risk in self.tried if risk.accuracy is not None]
        return max(known, key=lambda risk: risk.accuracy.value if risk.accuracy else 0.0) if known else self.tried[-1]

    @property
    def exposing(self) -> AttackRisk | None:
        """The attack or reference that exposes most people, the strongest of equals; None without the truth."""
        found = [
            (risk.exposed.half.people, risk) for risk in (self.strongest, *self.tried) if risk.exposed is not None
        ]
        return max(found, key=lambda one: one[0])[1] if found else None

    @property
    def exposed(self) -> ExposedPeople | None:
        """How many people are exposed by the attack that exposes most; None without the truth."""
        return None if self.exposing is None else self.exposing.exposed


@dataclass(frozen=True)
class PersonRisk:
    """How exposed one true person is to the strongest attack, as a mean over the row orders.

    Attributes
    ----------
    person
        The name.
    accuracy, chance
        Share of steps in the right location, and that of chance.
    home, work
        In which share of the row orders they were found; None where the calendar has no such steps.
    clearly
        Whether the attack clearly beats this person's own chance score; see `RULE`.
    orders
        Under how many row orders the person is exposed: more than half of their time, and clearly above chance.
    """

    person: str
    accuracy: float
    chance: float
    home: float | None
    work: float | None
    clearly: bool = False
    orders: int = 0


@dataclass(frozen=True)
class Growth:
    """What is found when only the first days of the release as given are published, under the first row order.

    Attributes
    ----------
    days
        How many.
    accuracy, home
        As in `AttackRisk`.
    reidentified
        How often someone who knows four points finds the right person, and only them.
    """

    days: int
    accuracy: float
    home: float | None
    reidentified: float


@dataclass(frozen=True)
class WindowRisk:
    """What the strongest attack finds at the ends of windows of a length, under the first row order.

    Attributes
    ----------
    window
        How long a window is, such as "2h".
    published
        "counts" or "flows", of windows of that length; "flows, all windows" where longer ones are published too.
    label
        What was done to them.
    accuracy
        As in `AttackRisk`, at the moments when windows begin and end. Of flows that of the reading that finds most: all windows, the shortest alone, or the
        counts that they add up to.
    """

    window: str
    published: str
    label: str
    accuracy: float


@dataclass(frozen=True)
class Agreement:
    """In which share of the points recoveries of the release as given agree, after their people were matched.

    Attributes
    ----------
    one, other
        The attacks; the same one twice, where its row orders are compared.
    share
        The mean over the pairs of recoveries.
    pairs
        How many pairs were compared.
    """

    one: str
    other: str
    share: float
    pairs: int


@dataclass(frozen=True)
class Identity:
    """What tells one audit from another.

    Attributes
    ----------
    name
        What the dataset is called; None where nobody said so.
    made
        When the audit was finished, in UTC: the time that `SOURCE_DATE_EPOCH` gives where that is set.
    digest
        SHA-256 of what was read: numbers, locations, times, and the truth where it is known.
    command
        The command that was typed; None for an audit from Python.
    version
        Of Rekindle.
    """

    name: str | None = None
    made: str | None = None
    digest: str | None = None
    command: str | None = None
    version: str = rekindle.__version__


@dataclass(frozen=True, eq=False)
class Expectation:
    """What may be expected of the strongest attack where nobody knows the truth: estimates, not measurements.

    Attributes
    ----------
    attack
        Its name.
    small_numbers
        The share of the published numbers above 0 that are 1 or 2; None where numbers are not exact.
    confidence, claimed
        As in `AttackRisk`: how sure the attack is on average, and how much it claims. None where it does not say.
    similar
        The same audit of people drawn like the recovered ones, whose true paths are known; see `people_like`. None where
        the numbers are not exact, or there is no whole day.
    """

    attack: str
    small_numbers: float | None
    confidence: float | None
    claimed: float | None
    similar: Audit | None

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.2f}" for value in self.accuracy)
        return f"Expectation({self.attack}, accuracy {shown or 'unknown'})"

    @property
    def accuracy(self) -> tuple[float, ...]:
        """Between which accuracies the attack's may lie: two numbers, the lower first, one, or none."""
        found = None if self.similar is None else self.similar.given.strongest.accuracy
        return tuple(
            sorted(one for one in (self.confidence, None if found is None else found.value) if one is not None)
        )

    def to_json(self) -> dict[str, Any]:
        """In plain values."""
        plain = {name: getattr(self, name) for name in ("attack", "small_numbers", "confidence", "claimed")}
        similar = [
            {
                "release": one.label,
                "accuracy": None if one.strongest.accuracy is None else asdict(one.strongest.accuracy),
                "exposed": None if one.strongest.exposed is None else one.strongest.exposed.half.people,
            }
            for one in (() if self.similar is None else self.similar.releases)
        ]
        return plain | {"accuracy": list(self.accuracy), "similar_people": similar}


@dataclass(frozen=True, eq=False)
class Audit:
    """What a release gives away, and what would help.

    Attributes
    ----------
    verdict
        In a word, with its rule.
    releases
        The release as given first, then one for each defence.
    people
        How exposed each person is, the most exposed first; empty without the truth.
    growth
        By attack: how exposure grows with the number of days that are published.
    agreements
        Between row orders of an attack, and between attacks.
    left_out
        Defences that cannot be applied to this dataset, with the reason.
    settings
        What was asked for, in plain values.
    recovered
        The people whom the strongest attack recovered from the release as given, with the first row order.
    truth
        The true people, where they are known.
    matched
        (true people,) int64: the recovered person of each true person; -1 for none. None without the truth.
    warnings
        What the reader must know before trusting a number, in sentences.
    identity
        What tells this audit from another.
    omitted
        What the plan left out because of the size of the data or for want of time, and how to get it, in sentences.
    windows
        Of flows: what is found in counts and in flows at the ends of longer windows, protected alike.
    unfinished
        What was planned and is not done, in sentences; empty where all is.
    expected
        Without the truth: what may be expected of the strongest attack, as an estimate.
    gap
        The largest `Mapping.gap` of all matchings of people: 0 where all are optimal, as up to 3,000 people.
    """

    verdict: Verdict
    releases: tuple[ReleaseRisk, ...]
    people: tuple[PersonRisk, ...]
    growth: dict[str, tuple[Growth, ...]]
    agreements: tuple[Agreement, ...]
    left_out: dict[str, str]
    settings: dict[str, Any]
    recovered: Trajectories
    truth: Trajectories | None
    matched: NDArray[np.int64] | None
    warnings: tuple[str, ...] = ()
    identity: Identity = Identity()
    omitted: tuple[str, ...] = ()
    windows: tuple[WindowRisk, ...] = ()
    unfinished: tuple[str, ...] = ()
    expected: Expectation | None = None
    gap: float = 0.0

    @property
    def given(self) -> ReleaseRisk:
        """The release as given."""
        return self.releases[0]

    @property
    def published(self) -> Published:
        """What is published: "counts", or "flows", be it with their counts."""
        return "counts" if self.settings["release"] == "counts" else "flows"

    def loss(self, one: ReleaseRisk) -> float:
        """How far the published counts, or flows between locations, of one of the releases are off, as a share of all."""
        return (one.utility or {}).get(MEASURES[self.published], 0.0)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was measured, under the headings by which anonymisation is reviewed."""
        return gather_evidence(self)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What cannot be known, in sentences."""
        if self.truth is not None:
            return ()
        return (
            "Without the truth nobody can say how much of the recovery is right: there is no accuracy and no error in km, "
            "and nobody can be found in it.",
            "Nor can anyone say whose path a recovered path is, or whether it belongs to a real person at all.",
            "Two recoveries that agree may be wrong alike. Where they disagree, at least one of them is wrong.",
        )

    def exceeds(self, limit: float) -> bool:
        """Whether the upper limit of the advantage over chance is above a limit.

        For the strongest attack on the release as given. It needs the truth.
        """
        limit = checks.share("limit", limit)
        advantage = self.given.strongest.advantage
        if advantage is None:
            raise _needs_truth()
        return advantage.high > limit

    def exposes(self, *, more_than: int = 0, above: float = HALF) -> bool:
        """Whether any attack on the release as given exposes more than so many people. It needs the truth.

        Parameters
        ----------
        more_than
            How many people.
        above
            The share of a person's time above which the person counts, if the attack also clearly beats that person's
            own chance score.
        """
        more_than, above = checks.whole("more_than", more_than), checks.share("above", above)
        if self.truth is None:
            raise _needs_truth()
        found = [risk.exposed for risk in self.given.tried if risk.exposed is not None]
        return any(sum(share > above for share in one.clear) > more_than for one in found)

    def to_json(self) -> dict[str, Any]:
        """Every number of the audit in plain values; no trajectory is among them.

        By location only for the release as given, in the order of `locations`.
        """

        def plain(risk: AttackRisk, given: bool) -> dict[str, Any]:
            values = {name: value for name, value in asdict(risk).items() if given or name != "by_location"}
            (values["exposed"] or {}).pop("clear", None)
            return values

        return {
            "rekindle": rekindle.__version__,
            "identity": asdict(self.identity),
            "verdict": asdict(self.verdict),
            "strongest": self.given.strongest.attack,
            "gap": self.gap,
            "warnings": list(self.warnings),
            "omitted": list(self.omitted),
            "unfinished": list(self.unfinished),
            "expected": None if self.expected is None else self.expected.to_json(),
            "unknown": list(self.unknown),
            "settings": self.settings,
            "releases": [
                asdict(replace(one, attacks={}, membership={}))
                | {
                    "membership": {
                        method: {"reason": tested} if isinstance(tested, str) else tested.to_json()
                        for method, tested in one.membership.items()
                    },
                    "strongest": one.strongest.attack,
                    "attacks": {name: plain(risk, one is self.given) for name, risk in one.attacks.items()},
                }
                for one in self.releases
            ],
            "left_out": self.left_out,
            "locations": list(self.recovered.locations.ids),
            "people": [asdict(person) for person in self.people],
            "windows": [asdict(one) for one in self.windows],
            "growth": {name: [asdict(one) for one in steps] for name, steps in self.growth.items()},
            "agreements": [asdict(one) for one in self.agreements],
            "evidence": [asdict(one) for one in self.evidence],
        }

    def unnamed(self) -> Audit:
        """The same with people called 1, 2, ... by how exposed they are, not as in the truth."""
        ranks = {person.person: str(rank) for rank, person in enumerate(self.people, 1)}
        people = tuple(replace(person, person=ranks[person.person]) for person in self.people)
        truth = self.truth
        if truth is not None:
            # Those who are never counted have no exposure, and come last.
            ids = tuple(ranks.setdefault(name, str(len(ranks) + 1)) for name in truth.people_ids)
            truth = Trajectories(truth.cells, truth.locations, truth.calendar, ids)
        releases = tuple(
            replace(
                one,
                membership={
                    method: tested if isinstance(tested, str) else tested.renamed(ranks)
                    for method, tested in one.membership.items()
                },
            )
            for one in self.releases
        )
        return replace(self, people=people, truth=truth, releases=releases)

    def write_json(self, path: str | Path, *, names: bool = False) -> None:
        """Write the numbers to a file, whole or not at all; people have their names only if that is asked for."""
        write_json(Path(path), (self if names else self.unnamed()).to_json(), private=True)

    def to_html(
        self, path: str | Path, *, include_truth: bool = False, names: bool = False, overwrite: bool = True
    ) -> None:
        """Write the report: one file that needs nothing else.

        Parameters
        ----------
        path
            Where to.
        include_truth
            Include the true paths, and say which recovered path is whose. Anyone who has the file then has the truth.
        names
            Show people's real IDs instead of their ranks by exposure.
        overwrite
            Whether a file that is there may be replaced.

        Notes
        -----
        Only the owner can read a new file; one that is replaced keeps its permissions.
        """
        from rekindle.report.page import write_page  # the one line here that knows the report

        write_page(path, self, include_truth=include_truth, names=names, overwrite=overwrite)

    def to_frame(self, library: Library = "polars") -> Frame:
        """One row for each release and attack: release, attack, repair, and its numbers with their limits.

        ``accuracy``, ``advantage``, ``home`` and ``work`` have their limits in ``_low`` and ``_high``; ``exposed`` is the number
        of people with more than half of their time recovered, clearly above chance. What is not known is null. The people
        are in `people`, which `polars.DataFrame` takes as it is.

        Parameters
        ----------
        library
            "polars" or "pandas".
        """
        rows = []
        for one in self.releases:
            for name, risk in one.attacks.items():
                row: dict[str, Any] = {"release": one.label, "attack": name, "repair": risk.repair}
                for measure in ("accuracy", "advantage", "home", "work"):
                    value: Estimate | None = getattr(risk, measure)
                    for end, part in (("", "value"), ("_low", "low"), ("_high", "high")):
                        row[measure + end] = None if value is None else getattr(value, part)
                row["exposed"] = None if risk.exposed is None else risk.exposed.half.people
                row["error_km"] = risk.error_km
                rows.append(row)
        return to_frame(rows, library)

    def _repr_html_(self) -> str:
        """The verdict, and every release in a row."""
        rows = []
        for one in self.releases:
            best, people = one.strongest, one.exposed
            found = best.advantage
            rows.append(
                (
                    one.label,
                    best.attack,
                    "unknown" if found is None else f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})",
                    "unknown" if people is None else f"{people.half.people:,} of {people.half.of:,}",
                )
            )
        head = ("release", "strongest", "advantage over chance", "people exposed")
        return html_table(f"Audit: {self.verdict.level}", rows, head)

    def __repr__(self) -> str:
        best = self.given.strongest
        found = "" if best.advantage is None else f" with an advantage of {best.advantage.value:.2f}"
        releases = f"{len(self.releases)} release{'' if len(self.releases) == 1 else 's'}"
        return f"Audit({self.verdict.level}: {best.attack}{found}; {releases})"


def _needs_truth() -> InvalidSetting:
    return InvalidSetting(
        "Whether a release is above a limit cannot be said without the truth; give data that has it."
    )
