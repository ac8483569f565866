"""Is this person in the data at all? The attack on membership, and how well it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rekindle import checks
from rekindle.defences import Chain, Defence
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.membership.channel import Channel, rebuild_defence
from rekindle.membership.classifier import Groups, choose_numbers, score_releases
from rekindle.membership.epsilon import counted_epsilon, most_provable_epsilon
from rekindle.membership.exact import FALSE_POSITIVES, log_ratio, loss_at_half, rates_of, tell_apart
from rekindle.membership.traces import synthesise
from rekindle.model import AWAY, Counts, Flows, Release, Trajectories
from rekindle.progress import Progress

Method = Literal["exact", "knock-knock", "zero-knowledge"]
METHODS: tuple[Method, ...] = ("exact", "knock-knock", "zero-knowledge")
_MOST_NUMBERS = 1_000_000
_LEAST_DRAWS = 200
_SYNTHETIC = 5_000
_TESTS = 100
_KNOWN_PAIRS = " Between which locations anyone went is taken to be known."
_SAME_DRAWS = 10
"""Where nothing is random, every draw is the same."""


@dataclass(frozen=True)
class PersonMembership:
    """How well it can be told whether one person is in the data.

    Attributes
    ----------
    person
        The person's name.
    steps
        At how many steps the person is counted.
    auc
        Probability that a release with the person looks more like one than a release without; 0.5 is guessing.
    true_positives
        Share of releases with the person that are recognised, at the rates of false alarms in `FALSE_POSITIVES`.
    evidence
        Log likelihood ratio of "in" against "out" in the release at hand; None for a classifier.
    counted_epsilon
        Lower bound on epsilon by counting errors, with confidence 95%; None for a classifier.
    computed_epsilon
        Lower bound from the exact distribution of the noise; None for a classifier.
    """

    person: str
    steps: int
    auc: float
    true_positives: tuple[float, ...]
    evidence: float | None = None
    counted_epsilon: float | None = None
    computed_epsilon: float | None = None


@dataclass(frozen=True)
class Membership:
    """How well it can be told who is in the data.

    Attributes
    ----------
    method
        "exact": someone who knows everyone else; "knock-knock": someone with traces of other people; "zero-knowledge":
        someone with the release alone.
    people
        Those who were tested, the most recognisable first.
    group
        How many people are counted in a release.
    draws
        Releases with and without each person that the rates come from.
    provable_epsilon
        The largest epsilon that so many draws can prove by counting; None for a classifier.
    claimed_per_event, claimed_per_person
        What the noise promises, where there is any.
    note
        What was assumed, in sentences.
    """

    method: Method
    people: tuple[PersonMembership, ...]
    group: int
    draws: int
    provable_epsilon: float | None
    claimed_per_event: float | None
    claimed_per_person: float | None
    note: str

    @property
    def auc(self) -> float:
        """The mean over people."""
        return float(np.mean([person.auc for person in self.people]))

    @property
    def true_positives(self) -> tuple[float, ...]:
        """The means over people, at the rates of `FALSE_POSITIVES`."""
        return tuple(np.mean([person.true_positives for person in self.people], axis=0).tolist())

    @property
    def epsilon(self) -> float | None:
        """The largest lower bound on epsilon of any person, counted or computed; None for a classifier."""
        found = [
            max(person.counted_epsilon or 0.0, person.computed_epsilon)
            for person in self.people
            if person.computed_epsilon is not None
        ]
        return max(found) if found else None

    def describe(self) -> str:
        """The result in a sentence or two."""
        said = (
            f"Whether a person is in the data can be told with an AUC of {self.auc:.2f} (0.5 is guessing); at 1% false alarms "
            f"{self.true_positives[1]:.0%} of the releases with a person are recognised."
        )
        if self.epsilon is None:
            return said
        if self.claimed_per_event is None:
            return f"{said} There is no noise, so no epsilon bounds what is told."
        return (
            f"{said} Claimed: epsilon {self.claimed_per_event:.3g} per event; for all that one person adds to the release: "
            f"at least {self.epsilon:.3g}."
        )

    def to_json(self) -> dict[str, Any]:
        """Every number in plain values; infinite ones as None."""
        values = asdict(self) | {
            "auc": self.auc,
            "true_positives": list(self.true_positives),
            "epsilon": self.epsilon,
        }
        plain: dict[str, Any] = _plain(values | {"false_positives": list(FALSE_POSITIVES)})
        return plain

    def renamed(self, names: Mapping[str, str]) -> Membership:
        """The same with people under other names."""
        return replace(self, people=tuple(replace(one, person=names[one.person]) for one in self.people))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Membership:
        """Read what `to_json` gave."""

        def infinite(person: dict[str, Any]) -> dict[str, Any]:
            # The exact test has numbers here, so what JSON could not hold was infinite.
            whole = {
                name: person[name] if person[name] is not None else np.inf
                for name in ("evidence", "computed_epsilon")
            }
            return person | (whole if values["method"] == "exact" else {})

        people = tuple(
            PersonMembership(**infinite(person) | {"true_positives": tuple(person["true_positives"])})
            for person in values["people"]
        )
        own = {name: values[name] for name in cls.__dataclass_fields__ if name != "people"}
        return cls(people=people, **own)

    def __repr__(self) -> str:
        of = (
            f"people tested of {self.group}"
            if self.method == "exact"
            else f"people tested, in groups of {self.group}"
        )
        return f"Membership({self.method}, {len(self.people)} {of}, AUC {self.auc:.3f})"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def infer_membership(
    release: Release | Counts | Flows,
    truth: Trajectories,
    defence: Defence | None = None,
    *,
    method: Method = "exact",
    reference: Trajectories | None = None,
    known: float = 1.0,
    group: int | None = None,
    targets: int = 50,
    draws: int = 10_000,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Membership:
    """Measure how well it can be told whether a person is in the data.

    Parameters
    ----------
    release
        What is published, counts or flows.
    truth
        The people in it, at their original resolution.
    defence
        What was done to protect them. By default what the release states; releases with and without a person are drawn
        again with it, so a random release of which it is not known cannot be tested.
    method
        "exact": the likelihood ratio, for someone who knows everyone else. "knock-knock" and "zero-knowledge": a classifier
        trained on simulated releases, for someone who has traces of other people, or the release alone. These two need
        scikit-learn (extra ``membership``).
    reference
        For "knock-knock": traces of people who are not in `truth`, in the same locations and steps. By default half of the
        people of `truth`, and the others are tested.
    known
        For the classifiers: which share of the person's points the attacker knows.
    group
        For the classifiers: how many people are in each simulated release. By default half of those tested.
    targets
        How many people to test, drawn at random; all of them where there are fewer.
    draws
        For the exact test: releases with and without each person. Long releases get fewer, as the result says.
    seed
        Decides which people are drawn, and the noise.
    workers
        For the classifiers: number of processes.
    progress
        Called with the number of people tested and of all.

    References
    ----------
    A. Pyrgelis, C. Troncoso, E. De Cristofaro. Knock Knock, Who's There? Membership Inference on Aggregate Location Data.
    NDSS 2018.
    V. Guan, F. Guépin, A.-M. Cretu, Y.-A. de Montjoye. A Zero Auxiliary Knowledge Membership Inference Attack on Aggregate
    Location Data. PoPETs 2024.
    """
    checks.choice("method", method, METHODS)
    checks.whole("targets", targets, least=1)
    checks.whole("draws", draws, least=100)
    checks.share("known", checks.positive("known", known))
    checks.seed(seed)
    published = release if isinstance(release, Release) else Release.of(release)
    if published.pairs is not None:
        truth = truth.during(published.moments)
    chain = Chain([defence if defence is not None else rebuild_defence(published.defences)])
    _refuse_unexplained(published, truth, chain, defence)
    if method == "exact":
        people = (chain if defence is None else defence).seeded(seed).coarsen(truth)
        return exact_membership(published, people, chain, targets=targets, draws=draws, seed=seed, progress=progress)
    return _classified(published, truth, chain, method, reference, known, group, targets, seed, workers, progress)


def _refuse_unexplained(release: Release, truth: Trajectories, chain: Chain, given: Defence | None) -> None:
    """A release that is not what its defence makes of the truth cannot be drawn again."""
    if given is not None or chain.defences:
        return
    fits = release.locations == truth.locations and release.moments == truth.calendar
    if not fits or not np.array_equal(release.values, _numbers(release, truth)[0]):
        raise InvalidSetting(
            "The release is not the counts or flows of the truth, and does not say what was done to them: releases with and without "
            "a person cannot be drawn again. Give the `defence`."
        )


def exact_membership(
    release: Release,
    people: Trajectories,
    defence: Defence,
    *,
    targets: int = 50,
    draws: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Membership:
    """Test who is in the data, for someone who knows everyone else; see `infer_membership`.

    Parameters
    ----------
    release, defence
        What is published, and what was done to the counts.
    people
        The people who are in the release, at its resolution.
    targets, draws, seed, progress
        As in `infer_membership`.
    """
    channel = Channel.of(defence, release.calendar)
    counts, columns = _numbers(release, people)
    random = np.random.default_rng([seed, 1])
    order = random.permutation(people.people)
    # Of those who are never counted, a release says nothing at all.
    chosen = np.sort(order[(columns[order] >= 0).any(axis=1)][:targets])
    draws = max(min(draws, _MOST_NUMBERS // release.steps), _LEAST_DRAWS)
    if channel.noise is None and channel.included == 1:
        draws = _SAME_DRAWS
    found = []
    for done, person in enumerate(chosen):
        steps = np.flatnonzero(columns[person] >= 0)
        own = columns[person, steps]
        others = counts[steps, own] - 1
        inside, outside = tell_apart(channel, others, draws, random)
        evidence = log_ratio(channel, release.values[None, steps, own], others)[0]
        found.append(
            PersonMembership(
                people.people_ids[person],
                len(steps),
                *rates_of(inside, outside),
                float(evidence),
                counted_epsilon(inside, outside),
                loss_at_half(inside),
            )
        )
        if progress is not None:
            progress(done + 1, len(chosen))
    budget = channel.noise.budget(release.calendar, Chain([defence]).defences) if channel.noise is not None else None
    note = "The attacker knows where everyone else was, and how the numbers were protected."
    if release.pairs is not None:
        note += _KNOWN_PAIRS
    if channel.included < 1:
        note += " Who else was drawn for the sample is known too."
    return Membership(
        "exact",
        _ranked(found),
        people.people,
        draws,
        most_provable_epsilon(draws),
        None if budget is None else budget.spent("event"),
        None if budget is None else budget.spent("person"),
        note,
    )


def _numbers(release: Release, people: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The true numbers of a release, and the column of the number that each person is in: (people, rows), -1 for none."""
    columns = _columns(release, people)
    rows = np.broadcast_to(np.arange(columns.shape[1]), columns.shape)
    numbers = np.zeros((columns.shape[1], release.values.shape[1]))
    np.add.at(numbers, (rows[columns >= 0], columns[columns >= 0]), 1)
    return numbers, columns


def _columns(release: Release, people: Trajectories) -> NDArray[np.int64]:
    """In which column of a release each person is counted, at each step or in each window: (people, rows), -1 for none."""
    if people.locations != release.locations or people.calendar != release.moments:
        raise InvalidData(
            "The truth, at the resolution of the defence, has other locations or steps than the release."
        )
    cells = people.cells.astype(np.int64)
    if release.pairs is None:
        return np.where(cells == AWAY, -1, cells)
    base = len(people.locations) + 1
    listed = (release.pairs[:, 0] + 1) * base + release.pairs[:, 1] + 1
    gone = (cells[:, :-1] + 1) * base + cells[:, 1:] + 1
    order = np.argsort(listed)
    at = order[np.searchsorted(listed, gone, sorter=order) % len(listed)]
    return np.where(listed[at] == gone, at, -1)


def _classified(
    release: Release,
    truth: Trajectories,
    chain: Chain,
    method: Method,
    reference: Trajectories | None,
    known: float,
    group: int | None,
    targets: int,
    seed: int,
    workers: int,
    progress: Progress | None,
) -> Membership:
    if any(one.needs_people for one in chain.defences):
        raise InvalidSetting(f"The classifiers do not draw samples of people: {chain.describe()}.")
    people = chain.coarsen(truth)
    random = np.random.default_rng([seed, 2])
    order = random.permutation(people.people)
    traces = _traces(release, people)
    counted = np.diff(traces.indptr)
    order = order[counted[order] > 0]
    tested = order
    if method == "knock-knock" and reference is None:
        half = len(order) // 2
        tested, pool = order[half:], traces[order[:half]]
        known_people = "The attacker has the traces of half of the people, who are not in the releases."
    elif method == "knock-knock" and reference is not None:
        if release.pairs is not None:
            reference = reference.during(release.moments)
        pool = _traces(release, chain.coarsen(reference))
        known_people = f"The attacker has the traces of {reference.people} other people."
    else:
        pool, known_people = traces[:0], "The attacker has the release alone."
    size = group if group is not None else max(len(tested) // 2, 2)
    if not 2 <= size < len(tested):
        raise InvalidSetting(
            f"`group` is {size}; it must be at least 2, and less than the {len(tested)} people whom groups are drawn from."
        )
    channel = Channel.of(chain, release.calendar)
    if method == "zero-knowledge":
        pool = synthesise(release, size, channel, number=_SYNTHETIC, random=random)
    train = Groups(pool, min(size, pool.shape[0]), channel)
    test = Groups(traces[tested], size, channel)
    busy = np.nan_to_num(release.values).ravel()
    number = min(targets, len(tested))
    jobs = (delayed(_classify)(train, test, at, known, busy, [seed, 3, at]) for at in range(number))
    found = []
    for at, (inside, outside) in enumerate(Parallel(n_jobs=workers, return_as="generator")(jobs)):
        name, steps = people.people_ids[tested[at]], int(counted[tested[at]])
        found.append(PersonMembership(name, steps, *rates_of(inside, outside)))
        if progress is not None:
            progress(at + 1, number)
    note = f"{known_people} {known:.0%} of the person's points are known. Groups of {size} people."
    note += _KNOWN_PAIRS if release.pairs is not None else ""
    return Membership(method, _ranked(found), size, _TESTS, None, None, None, note)


def _classify(
    train: Groups, test: Groups, person: int, known: float, busy: NDArray[np.float64], seed: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of releases with the person, and of others without: twice (releases,) float64."""
    random = np.random.default_rng(seed)
    own = test.traces[[person]].indices.astype(np.int64)
    kept = np.sort(random.permutation(own)[: max(round(known * len(own)), 1)])
    numbers = choose_numbers(kept, busy)
    train, test = train.looking_at(numbers), test.looking_at(numbers)
    others = test.others(_TESTS, random, without=person)
    with_person = test.publish(others[::2] + test.traces[[person]].toarray(), random)
    without = test.publish(others[1::2] + test.anyone(_TESTS // 2, random, without=person), random)
    known_row = np.isin(numbers, kept).astype(np.float64)
    scores, _ = score_releases(train, known_row, np.concatenate([with_person, without]), random)
    return scores[: len(with_person)], scores[len(with_person) :]


def _traces(release: Release, people: Trajectories) -> csr_array:
    """In which numbers of a release each person is counted: (people, rows x columns of the release) sparse."""
    columns = _columns(release, people)
    rows, steps = np.nonzero(columns >= 0)
    numbers = steps * release.values.shape[1] + columns[rows, steps]
    return csr_array((np.ones(len(rows)), (rows, numbers)), shape=(people.people, release.values.size))


def _ranked(found: list[PersonMembership]) -> tuple[PersonMembership, ...]:
    return tuple(sorted(found, key=lambda one: (-one.auc, -(one.evidence or 0.0), one.person)))
