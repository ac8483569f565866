"""What an attacker may know besides the release: other people's traces, people's past, some of the people themselves.

Each kind is an object that an attack is handed: ``attack.recover(counts, prior=KnownPast(...))``. Who is attacked must not
be in the traces of the first kind: the person who measures must see to that.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from abc import ABC
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.attacks.base import Attack, Recovery, Run
from rekindle.attacks.flows import Windows
from rekindle.attacks.moves import CountedMoves, MoveModel
from rekindle.attacks.saving import SavedRun, read_run, write_run
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.model import Calendar, Counts, Locations, Trajectories
from rekindle.progress import Progress


@dataclass(frozen=True, eq=False, repr=False)
class Prior(ABC):
    """What an attacker knows besides the release.

    Parameters
    ----------
    trajectories
        True paths, over the locations and with the step of the release.

    Attributes
    ----------
    named
        Whether it gives names to recovered people. Such a recovery is scored by them: ``evaluate(..., mapping="names")``.
    about
        What is known, in words.
    """

    named: ClassVar[bool] = False
    about: ClassVar[str]

    trajectories: Trajectories

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.trajectories.people} people, {self.trajectories.steps} steps, {self.digest})"

    @cached_property
    def learnt(self) -> MoveModel:
        """How people move, learnt from the paths when it is first asked for."""
        return CountedMoves.learn(self.trajectories)

    @cached_property
    def digest(self) -> str:
        """Eight characters that stand for the data, so that a run is not resumed with others."""
        known = self.trajectories
        text = f"{known.people_ids} {known.calendar} {known.locations.xy_km.tobytes()!r}"
        return hashlib.sha256(text.encode() + np.ascontiguousarray(known.cells, np.int64).tobytes()).hexdigest()[:8]

    def given_to(self, attack: Attack) -> Attack:
        """The attack by someone who knows this; refused where it cannot use it."""
        if not isinstance(self, attack.priors):
            raise InvalidSetting(f"{type(attack).__name__} cannot use {type(self).__name__}.")
        if getattr(attack, "prior", None) is not None:
            raise InvalidSetting(f"{type(attack).__name__} knows something already, and can use only one.")
        return dataclasses.replace(attack, prior=self)  # type: ignore[type-var]

    def names(self, people: int) -> tuple[str, ...] | None:
        """A name for each of so many recovered people; None where the prior gives none."""
        return None

    def check(self, locations: Locations, calendar: Calendar, people: int) -> None:
        """Refuse to be used with a release of other locations or another step, or of too few people."""
        known = self.trajectories
        if known.locations != locations:
            raise InvalidData(
                f"The paths of {type(self).__name__} have other locations than the release; prepare both in the same way.",
            )
        if known.calendar.step != calendar.step:
            raise InvalidData(
                f"The paths of {type(self).__name__} have steps of {known.calendar.step}, the release of "
                f"{calendar.step}; prepare both in the same way.",
            )


@dataclass(frozen=True, eq=False, repr=False)
class OtherTraces(Prior):
    """Traces of other people in the same city, such as a sample that was bought: a model of moves and stays.

    Parameters
    ----------
    trajectories
        Paths of people who are not attacked, over the locations and with the step of the release, of any days.
    model
        "counted": moves and stays by the hour, counted, with few counts shrunk towards those of a wider class.
        "neural": a small recurrent network, which takes minutes to train and needs the extra ``learned``.
    seed
        Of the training of the neural model. The same seed gives the same bytes on the same machine.
    """

    about: ClassVar[str] = "traces of other people"

    model: Literal["counted", "neural"] = "counted"
    seed: int = 0

    def __post_init__(self) -> None:
        checks.choice("model", self.model, ("counted", "neural"))
        checks.whole("seed", self.seed)

    def __repr__(self) -> str:
        seed = f", seed {self.seed}" if self.model == "neural" else ""
        return f"{super().__repr__()[:-1]}, {self.model}{seed})"

    @cached_property
    def learnt(self) -> MoveModel:
        """The model, learnt when it is first asked for."""
        if self.model == "counted":
            return CountedMoves.learn(self.trajectories)
        from rekindle.attacks.neural import NeuralMoves  # needs an extra

        return NeuralMoves.learn(self.trajectories, seed=self.seed)


@dataclass(frozen=True, eq=False, repr=False)
class KnownPast(Prior):
    """Earlier days of the same people, such as last month's leak: everyone's habits, but not who they are today.

    The recovered people have the names of those whose past is known, in their order; anyone else who is counted comes after
    them. A recovery is right where the person of that name was: ``evaluate(..., mapping="names")``.

    Parameters
    ----------
    trajectories
        Paths of people of the release on earlier days, over its locations and with its step; not more people than it has.
    """

    named: ClassVar[bool] = True
    about: ClassVar[str] = "people's past"

    def names(self, people: int) -> tuple[str, ...]:
        """The names of those whose past is known, and then of the others."""
        return _names(self.trajectories.people_ids, people)

    def check(self, locations: Locations, calendar: Calendar, people: int) -> None:
        """Refuse to be used with a release of other locations, another step or fewer people, or with days that are not past."""
        super().check(locations, calendar, people)
        if self.trajectories.people > people:
            raise InvalidData(
                f"The past of {self.trajectories.people} people is known, but the release has {people}; leave out those "
                "who are not in it."
            )
        end = self.trajectories.calendar.time(self.trajectories.steps)
        if end > calendar.start:
            raise InvalidData(
                f"The known past ends at {end}, but the release begins at {calendar.start}; give earlier days.",
            )


@dataclass(frozen=True, eq=False, repr=False)
class KnownPeople(Prior):
    """Some of the people of the release themselves, such as the operator's own staff: their paths are taken out first.

    Every attack can use it. The recovered people begin with those who are known, by their names. They are to be left out
    of the score: ``evaluate(..., leave_out=prior.trajectories.people_ids)``.

    Parameters
    ----------
    trajectories
        Their true paths over the days of the release, or longer; they are counted in the release.
    """

    about: ClassVar[str] = "some of the people"

    def given_to(self, attack: Attack) -> Attack:
        """The attack on what is left without these people."""
        if isinstance(attack, KnowingPeople):
            raise InvalidSetting("Some people are known already; give all of them at once.")
        return KnowingPeople(attack, self)


def check_prior(attack: Attack, prior: object) -> None:
    """Refuse a setting `prior` of an attack that it cannot use."""
    if prior is not None and not isinstance(prior, attack.priors):
        kinds = " or ".join(kind.__name__ for kind in attack.priors)
        raise InvalidSetting(f"`prior` is {prior!r}; {type(attack).__name__} can use {kinds}.")


PRIORS: dict[str, type[Prior]] = {
    "other-traces": OtherTraces,
    "known-past": KnownPast,
    "known-people": KnownPeople,
}
"""The kinds of prior knowledge, by their names at the command line."""


def _names(known: tuple[str, ...], people: int) -> tuple[str, ...]:
    """The known names, and "unknown 1", ... for the others."""
    taken = set(known)
    more: list[str] = []
    number = 0
    while len(known) + len(more) < people:
        number += 1
        if f"unknown {number}" not in taken:
            more.append(f"unknown {number}")
    return known + tuple(more)


@dataclass(frozen=True)
class KnowingPeople(Attack):
    """An attack by someone who knows some of the people: they are taken out of the counts, and the others recovered.

    Parameters
    ----------
    attack
        The attack on the others.
    prior
        Those who are known.
    """

    attack: Attack
    prior: KnownPeople

    @property
    def revises(self) -> bool:  # type: ignore[override]
        """Whether a later day may change what was said of an earlier one."""
        return self.attack.revises

    @property
    def in_parts(self) -> bool:  # type: ignore[override]
        """Whether the attack on the others is done in parts."""
        return self.attack.in_parts

    def knowing(self, prior: Prior) -> Attack:
        """The same by someone who knows more of the others too."""
        if isinstance(prior, KnownPeople):
            return prior.given_to(self)
        return KnowingPeople(self.attack.knowing(prior), self.prior)

    def names(self, people: int) -> tuple[str, ...]:
        """The names of those who are known, and then of the others."""
        known = self.prior.trajectories.people_ids
        return _names(known + (self.attack.names(people - len(known)) or ()), people)

    @property
    def named(self) -> bool:
        """Whether the attack on the others says who is who."""
        return self.attack.named

    @property
    def known_people(self) -> tuple[str, ...]:
        """Names of the people who are known."""
        return self.prior.trajectories.people_ids

    def settings(self) -> dict[str, Any]:
        """The settings of the attack on the others, and who is known."""
        return {"attack": type(self.attack).__name__, **self.attack.settings(), "known_people": repr(self.prior)}

    def memory_bytes(self, counts: Counts, *, flows: bool = False) -> int:
        """About how much memory `recover` needs: that of the attack on all people."""
        return self.attack.memory_bytes(counts, flows=flows)

    def work(self, counts: Counts) -> float:
        """About how many seconds `recover` takes on one ordinary core: as long as the attack on all people."""
        return self.attack.work(counts)

    def why_not(self, counts: Counts) -> str | None:
        """Why counts of this size are beyond the attack; None where they are not."""
        return self.attack.why_not(counts)

    def _begin(self, locations: Locations, calendar: Calendar, people: int, progress: Progress | None) -> Run:
        return KnowingPeopleRun(self, locations, calendar, people, progress)


class KnowingPeopleRun(Run):
    """A run of the attack on the others, with the known people put before them."""

    attack: KnowingPeople

    def __init__(
        self,
        attack: KnowingPeople,
        locations: Locations,
        calendar: Calendar,
        people: int,
        progress: Progress | None,
    ) -> None:
        super().__init__(attack, locations, calendar, people, progress)
        known = attack.prior.trajectories
        if known.people >= people:
            raise InvalidData(
                f"{known.people} people are known, and there are {people} in all; nobody is left to recover."
            )
        self._known = known.people
        self._others = attack.attack.start(locations, calendar, people=people - self._known, progress=progress)

    @property
    def days_done(self) -> int:
        """How many days are finished."""
        return self._others.days_done

    @property
    def steps_done(self) -> int:
        """How many steps the finished days have."""
        return self._others.steps_done

    def stop(self) -> None:
        """Ask `feed` to end soon, from any thread."""
        super().stop()
        self._others.stop()

    def _take(self, counts: Counts, windows: Windows | None = None) -> None:
        self._others.feed(self._without_known(counts))
        self.people = self._known + self._others.people

    def _without_known(self, counts: Counts) -> Counts:
        """The counts of the others."""
        known = self.attack.prior.trajectories.during(counts.calendar)
        values = counts.values - known.counts().values
        if values.min(initial=0) < 0:
            step, place = np.argwhere(values < 0)[0]
            raise InvalidData(
                f"The release counts {counts.values[step, place]} people in location {counts.locations.ids[place]!r} at "
                f"{counts.calendar.time(int(step))}, but more of those who are known are there; they must be people of the release."
            )
        # Where it is only learnt later how many there are, those who are known may be away, and so in no total.
        others = max(counts.people - known.people, int(values.sum(axis=1).max()))
        return Counts(values, counts.locations, counts.calendar, others)

    def recovery(self) -> Recovery:
        """All that is known of the whole days so far."""
        return self._with_known(self._others.recovery())

    def day(self, number: int) -> Recovery:
        """What is known of one finished day alone."""
        return self._with_known(self._others.day(number))

    def _with_known(self, others: Recovery) -> Recovery:
        found = others.trajectories
        cells = np.vstack([self._cells(found.calendar), found.cells]).astype(np.int32)
        sure = others.confidence
        if sure is not None:
            sure = np.vstack([np.ones((self._known, found.steps), np.float32), sure])
        return Recovery(self._trajectories(cells, found.calendar), self.attack, sure, others.details)

    def _cells(self, calendar: Calendar) -> NDArray[np.integer]:
        known = self.attack.prior.trajectories
        return known.during(calendar).cells if calendar.steps else known.cells[:, :0]

    def save(self, path: str | Path) -> None:
        """Write the state to a file: that of the run on the others, with the known people put back."""
        with tempfile.TemporaryDirectory() as folder:
            self._others.save(Path(folder) / "others.npz")
            saved = read_run(Path(folder) / "others.npz")
        write_run(
            path,
            dataclasses.replace(
                saved,
                attack=type(self.attack).__name__,
                settings=self.attack.settings(),
                people=self.people,
                arrays=self._exchanged(saved.arrays, back=True),
            ),
        )

    def restore(self, saved: SavedRun) -> None:
        """Take what `save` wrote."""
        others = dataclasses.replace(
            saved, people=self.people - self._known, arrays=self._exchanged(saved.arrays, back=False)
        )
        self._others.restore(others)

    def _exchanged(self, arrays: dict[str, NDArray[Any]], *, back: bool) -> dict[str, NDArray[Any]]:
        """What runs save, with the known people (`back`) or without: a recovery folder compares it with the release."""
        arrays = dict(arrays)
        if "cells" in arrays:
            cells = arrays["cells"]
            known = self._cells(self.calendar.closed_at(cells.shape[1]))
            arrays["cells"] = np.vstack([known, cells]) if back else cells[self._known :]
        if len(arrays.get("counts", ())):
            calendar = self.calendar.closed_at(len(arrays["counts"]))
            known_counts = self.attack.prior.trajectories.during(calendar).counts().values
            arrays["counts"] = arrays["counts"] + (known_counts if back else -known_counts)
        return arrays
