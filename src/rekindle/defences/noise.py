"""Noise with a privacy budget, and what the budget means for an event, a day and a person."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rekindle import checks
from rekindle.defences.base import Chain, Defence
from rekindle.errors import InvalidData, InvalidSetting
from rekindle.frames import optional
from rekindle.model import AppliedDefence, Calendar, Release

Unit = Literal["event", "person-day", "person"]
Neighbours = Literal["add-remove", "substitute"]

SENSITIVITY: dict[str, int] = {"add-remove": 1, "substitute": 2}


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a release spends: epsilon of pure differential privacy, for each unit that may be protected.

    Everyone is counted once at a step, or not at all. An event is one person at one step, or of flows in one window; a
    person-day is all events of a person within 24 hours; a person is all of theirs. By sequential composition epsilon adds up over the events, and all
    steps are taken as events: a person who is away at some of them spends less.

    Attributes
    ----------
    per_event
        Epsilon of one event, without a sample.
    steps_per_day, steps
        Events of a person in 24 hours, and in the whole release.
    neighbours
        What two neighbouring datasets differ by, at each step of the unit: "add-remove", the record is there or not
        (one number changes by 1), or "substitute", it lies in another location (two numbers change by 1).
    share
        The share of the people who were drawn before, each for themselves (Poisson sampling).
    displaces
        Whether the people were drawn with a fixed size, so that adding one can displace another.
    """

    per_event: float
    steps_per_day: int
    steps: int
    neighbours: Neighbours
    share: float = 1.0
    displaces: bool = False

    @property
    def sensitivity(self) -> int:
        """How far the numbers of a step differ between neighbouring datasets, summed over locations."""
        return 2 if self.displaces else SENSITIVITY[self.neighbours]

    @property
    def per_person_day(self) -> float:
        """Epsilon of all events of a person within 24 hours, without a sample."""
        return self.per_event * self.steps_per_day

    @property
    def per_person(self) -> float:
        """Epsilon of all events of a person, without a sample."""
        return self.per_event * self.steps

    @property
    def scale(self) -> float:
        """Scale of the noise on each number, in people: sensitivity of a step over epsilon of an event."""
        return self.sensitivity / self.per_event

    def spent(self, unit: Unit) -> float:
        """Epsilon of a unit, amplified by the Poisson sample before the noise.

        A person who may not be in the sample hides behind that: ln(1 + share (e^epsilon - 1)) for a person who is added
        or removed. An event or a day hides less well. The other events of the same person are in the release if and
        only if that one is, and may give away that the person was drawn; the sample helps only as far as they do not.
        """
        events = {"event": 1, "person-day": self.steps_per_day, "person": self.steps}[unit]
        if self.share == 1.0:
            return self.per_event * events
        one = self.per_event / self.sensitivity
        out, drawn = math.log1p(-self.share), math.log(self.share)
        with_it = np.logaddexp(out, drawn + one * self.steps)
        without = np.logaddexp(out, drawn + one * (self.steps - self.sensitivity * events))
        return float(with_it - without)

    def describe(self) -> str:
        """The conversion, as text of a few lines."""
        other: Neighbours = "substitute" if self.neighbours == "add-remove" else "add-remove"
        factor = SENSITIVITY[other] / SENSITIVITY[self.neighbours]
        lines = [
            f"epsilon per event (one person, one step):  {self.per_event:.6g}",
            f"epsilon per person-day:  {self.per_event:.6g} x {self.steps_per_day} steps = {self.per_person_day:.6g}",
            f"epsilon per person:      {self.per_event:.6g} x {self.steps} steps = {self.per_person:.6g}",
        ]
        if self.share < 1.0:
            spent = {unit: f"{self.spent(unit):.6g} per {unit}" for unit in get_args(Unit)}
            lines.append(f"with the sample of {self.share:.6g} before it: {', '.join(spent.values())}")
        changes = f"neighbours: {self.neighbours} (a step changes the numbers by {self.sensitivity}"
        if self.displaces:
            lines.append(f"{changes}: in a sample of fixed size one person can displace another)")
        else:
            lines.append(f"{changes}); without a sample, for {other} multiply by {factor:g}")
        return "\n".join([*lines, f"noise on each number: scale {self.scale:.6g} people"])


def budgets(defence: Defence, calendar: Calendar) -> list[Budget]:
    """Give what each noise of a defence spends.

    Parameters
    ----------
    defence
        Any defence; a chain may hold several noises, or none.
    calendar
        The steps and days of the data, before the defence.
    """
    found: list[Budget] = []
    before: list[Defence] = []
    for one in defence.defences if isinstance(defence, Chain) else [defence]:
        if isinstance(one, Noise):
            found.append(one.budget(calendar, before))
        calendar = one.calendar(calendar)
        before.append(one)
    return found


@dataclass(frozen=True, kw_only=True)
class Noise(Defence):
    """Add noise to every number, zeros included: base of `LaplaceNoise` and `GeometricNoise`.

    Parameters
    ----------
    epsilon
        The privacy budget.
    per
        What it is for: "event", "person-day" or "person". `budget` converts it.
    neighbours
        See `Budget`.
    seed
        A whole number draws the noise with NumPy, the same for the same seed: for simulation only, because anyone who
        knows the seed can take the noise away, and the last bits of its decimals tell what it was added to. None draws it with OpenDP (extra ``dp``) from the system's
        randomness: for publication.
    """

    adds_noise: ClassVar[bool] = True
    kind: ClassVar[str]
    epsilon: float
    per: Unit
    neighbours: Neighbours = "add-remove"
    seed: int | None = None

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.choice("per", self.per, get_args(Unit))
        checks.choice("neighbours", self.neighbours, SENSITIVITY)
        checks.seed(self.seed)

    @property
    def label(self) -> str:
        """See `Defence`."""
        return f"{self.kind} noise, epsilon {self.epsilon:g} per {self.per}"

    @property
    def simulated(self) -> bool:  # type: ignore[override]
        """See `AppliedDefence`."""
        return self.seed is not None

    def budget(self, calendar: Calendar, before: Iterable[Defence | AppliedDefence] = ()) -> Budget:
        """Convert the budget for data with that calendar, which must have an end, to which `before` was done."""
        if calendar.steps is None:
            raise InvalidData("This calendar has no end, so the budget of a person is unknown; give it its steps.")
        day = min(calendar.steps_per_day, calendar.steps)
        events = {"event": 1, "person-day": day, "person": calendar.steps}[self.per]
        sampled = [one for one in before if one.included < 1.0]
        displaces = any(one.fixed_size for one in sampled)
        return Budget(
            per_event=self.epsilon / events,
            steps_per_day=day,
            steps=calendar.steps,
            neighbours=self.neighbours,
            share=1.0 if displaces else math.prod(one.included for one in sampled),
            displaces=displaces and self.neighbours == "add-remove",
        )

    def _change(self, release: Release) -> Release:
        values = release.values
        spoilt = [one for one in release.defences if not one.keeps_sensitivity]
        if spoilt or np.isnan(values).any() or (values != np.floor(values)).any():
            what = f"after {spoilt[0].describe()}" if spoilt else "to numbers that are withheld or not whole"
            raise InvalidSetting(
                f"{self.describe()} cannot be added {what}: its budget would not be what it says. Sampling, coarser space "
                "or time and a cap may come before noise; suppressing and rounding come after it and spend nothing."
            )
        budget = self.budget(release.calendar, release.defences)
        if self.seed is None:
            if not release.locations.public:
                raise InvalidSetting(
                    "Noise for publication needs `public_locations`. A list of locations that was made from the data "
                    "(visited cells, a box at percentiles of the points) says by itself where somebody was, whatever the "
                    "noise on its numbers. Use a list that was fixed without the data, such as all towers or a grid over "
                    "given bounds, and declare it public: `locations.declare_public()`."
                )
            if release.pairs is not None and not release.has_all_pairs:
                raise InvalidSetting(
                    "Noise for publication needs a number for every pair of locations: which pairs anyone went between says "
                    "by itself where somebody was. Publish `Release.of(flows, all_pairs=True)`."
                )
            noisy = self._with_opendp(values.astype(np.int64), budget)
        else:
            noisy = values + self.draw(np.random.default_rng(self.seed), budget.scale, values.shape)
        return release.with_values(noisy)

    @abstractmethod
    def draw(self, rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Draw noise of a scale in people."""

    @abstractmethod
    def _with_opendp(self, values: NDArray[np.int64], budget: Budget) -> NDArray[np.float64]:
        """Add noise with OpenDP."""

    def for_publication(self) -> Noise:
        """Draw the noise with OpenDP, without a seed."""
        return dataclasses.replace(self, seed=None)


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(Noise):
    """Laplace noise, which gives decimals. The parameters are those of `Noise`."""

    kind: ClassVar[str] = "Laplace"

    def draw(self, rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return rng.laplace(0.0, scale, shape)

    def _with_opendp(self, values: NDArray[np.int64], budget: Budget) -> NDArray[np.float64]:
        return _opendp(values.astype(np.float64), budget)


@dataclass(frozen=True, kw_only=True)
class GeometricNoise(Noise):
    """Two-sided geometric (discrete Laplace) noise, which gives whole numbers. The parameters are those of `Noise`."""

    kind: ClassVar[str] = "Geometric"

    def draw(self, rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        # The difference of two geometric variables has P(k) proportional to exp(-|k| / scale).
        success = -np.expm1(-1.0 / scale)
        return (rng.geometric(success, shape) - rng.geometric(success, shape)).astype(np.float64)

    def _with_opendp(self, values: NDArray[np.int64], budget: Budget) -> NDArray[np.float64]:
        return _opendp(values, budget)


def _opendp(values: NDArray[np.int64] | NDArray[np.float64], budget: Budget) -> NDArray[np.float64]:
    """Add Laplace noise to floats, or its discrete kind to whole numbers, with OpenDP."""
    dp = optional("opendp.prelude", extra="dp", what="Noise for publication, not simulated with a seed,")
    dp.enable_features("contrib")
    whole = np.issubdtype(values.dtype, np.integer)
    kind = dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False)
    mechanism = dp.m.make_laplace(
        dp.vector_domain(kind), dp.l1_distance(T=int if whole else float), scale=budget.scale
    )
    spent: float = mechanism.map(budget.sensitivity if whole else float(budget.sensitivity))
    if spent > budget.per_event * (1 + 1e-6):
        raise InvalidSetting(f"OpenDP would spend epsilon {spent} an event, more than {budget.per_event}.")
    return np.asarray(mechanism(values.ravel().tolist()), dtype=np.float64).reshape(values.shape)
