"""What an audit does: which attacks are tried on which releases, under which row orders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from rekindle import checks
from rekindle.attacks import ATTACKS, Attack
from rekindle.auditing.defaults import default_defences
from rekindle.auditing.gather import gather
from rekindle.auditing.results import Audit
from rekindle.auditing.stages import Plan, carry_out
from rekindle.auditing.store import Store
from rekindle.auditing.tasks import PERFECT, REFERENCE_ATTEMPTS, Attempt
from rekindle.auditing.workers import Runner, workers_of
from rekindle.defences import Defence
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.membership.infer import METHODS, Method
from rekindle.model import Counts, Dataset, Release, Trajectories
from rekindle.model.dataset import check_truth
from rekindle.progress import Progress

__all__ = ["audit"]

MEMBERSHIP: dict[str, tuple[Method, ...]] = {"none": (), "exact": METHODS[:1], "full": METHODS}


def audit(
    data: Dataset | Counts | Release | Trajectories,
    *,
    truth: Trajectories | None = None,
    attacks: Iterable[Attack] | None = None,
    defences: Iterable[Defence] | None = None,
    seeds: int = 3,
    people: int | None = None,
    membership: Literal["none", "exact", "full"] = "exact",
    note: str | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Try attacks on a release and on what defences would make of it, and say who is exposed.

    Parameters
    ----------
    data
        What is to be published: a dataset (with its truth, or without), counts, a release of any kind, or the people.
    truth
        The people behind a release, in its locations and steps, where `data` does not hold them.
    attacks
        All attacks with their defaults, by default.
    defences
        What to try on the data. By default eight that suit it; an empty list tries none.
    seeds
        How many row orders, each with its own draw of every random defence.
    people
        How many people the attacker takes to be counted at every step. By default that is known where the truth is; where
        it is not, it is guessed from the release. What an attacker who has to guess reaches is shown beside it.
    membership
        Whether to test who is in the data at all: not; for someone who knows everyone else ("exact"); or also with the two
        classifiers ("full"), which take minutes and need scikit-learn (extra ``membership``). It needs the truth.
    note
        How the data was read, such as `Published.note`: shown in the report, and ``read_as`` of the settings.
    workers
        How many processes; by default one for each core. The numbers do not depend on it.
    cluster
        Address of the scheduler of a Dask cluster, to use instead of this machine's cores.
    cache
        A folder for finished tasks. An audit that was interrupted resumes from there, and one with more attacks, defences
        or seeds does only what is new. It holds recovered paths and each person's exposure: keep it as safe as the truth.
    progress
        Called with the number of tasks done and of all that are known so far.

    Examples
    --------
    >>> import rekindle as rk
    >>> truth = rk.SyntheticCity(people=20, days=1, step="1h", seed=1).trajectories()
    >>> found = rk.audit(truth, attacks=[rk.Enhanced()], defences=[rk.Suppress(below=3)], seeds=2, workers=1)
    >>> [release.label for release in found.releases]
    ['As given', 'Withhold below 3']
    """
    given, truth = _open(data, truth)
    plan = Plan(
        given=given,
        truth=truth,
        attempts=_attempts(attacks, truth),
        defences=_defences(defences, given, truth),
        required=defences is not None,
        seeds=checks.whole("seeds", seeds, least=1),
        people=None if people is None else checks.whole("people", people, least=1),
        membership=MEMBERSHIP[checks.choice("membership", membership, MEMBERSHIP)],
        note=note,
    )
    with workers_of(workers, cluster) as where:
        return gather(carry_out(plan, Runner(Store(cache), where, progress)))


def _open(
    data: Dataset | Counts | Release | Trajectories, truth: Trajectories | None
) -> tuple[Counts | Release, Trajectories | None]:
    given: Counts | Release
    if isinstance(data, Dataset):
        given, truth, known = data.counts, truth or data.truth, truth is None
    elif isinstance(data, Trajectories):
        given, truth, known = data.counts(), truth or data, truth is None
    elif isinstance(data, (Counts, Release)):
        given, known = data, False
    else:
        raise InvalidData(
            f"A {type(data).__name__} cannot be audited; give a dataset, counts, a release or trajectories."
        )
    if truth is not None and isinstance(given, Counts) and not known:
        check_truth(given, truth)
    if truth is not None and (truth.locations != given.locations or truth.calendar != given.calendar):
        raise InvalidData(
            "The truth has other locations or times than the release; give it in those of the release, "
            "or give the dataset and the defence that made the release."
        )
    return given, truth


def _attempts(attacks: Iterable[Attack] | None, truth: Trajectories | None) -> list[Attempt]:
    chosen = [kind() for kind in ATTACKS.values()] if attacks is None else list(attacks)
    if not chosen:
        raise InvalidSetting("There is no attack to audit with; give at least one, or None for all.", "attacks")
    names = {kind: name for name, kind in ATTACKS.items()}
    found = {one.name: one for one in REFERENCE_ATTEMPTS}
    for attack in chosen:
        if not isinstance(attack, Attack):
            raise InvalidSetting(
                f"{attack!r} is not an attack: it must be an object of a subclass of rekindle.Attack.", "attacks"
            )
        name = base = names.get(type(attack), type(attack).__name__)
        number = 1
        while name in found or name == PERFECT:
            number += 1
            name = f"{base} {number}"
        found[name] = Attempt(name, attack)
    if truth is not None:
        found[PERFECT] = Attempt(PERFECT)
    return list(found.values())


def _defences(
    defences: Iterable[Defence] | None, given: Counts | Release, truth: Trajectories | None
) -> list[Defence]:
    chosen: dict[str, Defence] = {}
    for defence in default_defences(given, truth) if defences is None else defences:
        if not isinstance(defence, Defence):
            raise InvalidSetting(
                f"{defence!r} is not a defence: it must be an object of a subclass of rekindle.Defence.", "defences"
            )
        if defence.describe() in chosen:
            raise InvalidSetting(f"The defence {defence.describe()} is listed twice.", "defences")
        chosen[defence.describe()] = defence
    return list(chosen.values())
