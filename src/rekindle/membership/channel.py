"""How a true number becomes a published one: noise, then rounding, withholding and capping; and how likely each outcome is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import rekindle.defences as all_defences
from rekindle.defences import Chain, Defence, GeometricNoise, Noise, NothingLeft
from rekindle.errors import InvalidSetting
from rekindle.model import AppliedDefence, Calendar, Locations, Release

_SLACK = 1e-9
# Half-open intervals are closed so far below their end, in people.
_OPEN = 1e-7


@dataclass(frozen=True)
class Channel:
    """What happens to each number on its own, once people have been counted.

    Attributes
    ----------
    noise
        The noise, or None.
    scale
        Its scale in people.
    before, after
        What is done to a number before the noise (a cap) and after it, in order.
    included
        The probability with which a person is counted at all.
    """

    noise: Noise | None
    scale: float
    before: tuple[Defence, ...]
    after: tuple[Defence, ...]
    included: float

    @classmethod
    def of(cls, defence: Defence, calendar: Calendar) -> Channel:
        """Take a defence apart; `calendar` is that of the release.

        A defence of which it is not known what it does to a number, or which draws a sample of fixed size, is refused:
        there is no exact test for it.
        """
        noise: Noise | None = None
        before: list[Defence] = []
        after: list[Defence] = []
        included = 1.0
        for one in Chain([defence]).defences:
            if isinstance(one, Noise):
                noise = one
            elif one.fixed_size:
                raise InvalidSetting(
                    f"There is no exact test for {one.label!r}: who else was drawn depends on whether the person was."
                )
            elif one.needs_people:
                included *= one.included
            elif noise is not None and not getattr(one, "zeros", True):
                raise InvalidSetting(f"There is no exact test for {one.label!r} after noise.")
            elif _works_on_numbers(one):
                (before if noise is None else after).append(one)
            elif not one.keeps_sensitivity:
                raise InvalidSetting(
                    f"There is no exact test for {one.label!r}: it does not say what it does to a single number."
                )
        if noise is None:
            before, after = [], before
        scale = noise.budget(calendar).scale if noise is not None else 0.0
        return cls(noise, scale, tuple(before), tuple(after), included)

    def publish(self, counts: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
        """Publish numbers (draws, numbers) float64; NaN where they are withheld."""
        values = _apply(self.before, counts)
        if self.noise is not None:
            values = values + self.noise.draw(random, self.scale, values.shape)
        return _apply(self.after, values)

    def draw(self, counts: NDArray[np.float64], draws: int, random: np.random.Generator) -> NDArray[np.float64]:
        """Publish the same numbers several times: (draws, numbers) float64."""
        return self.publish(np.repeat(counts[None, :], draws, axis=0), random)

    def log_likelihood(self, published: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of the probability (or the density) of published numbers, given the true ones.

        Parameters
        ----------
        published
            (..., numbers) float64, NaN where withheld.
        counts
            (numbers,) float64, what was counted.
        """
        counts = _apply(self.before, counts[None, :])[0]
        low, high = _preimage(self.after, published)
        if self.noise is None:
            return np.where((low <= counts) & (counts <= high), 0.0, -np.inf)
        if isinstance(self.noise, GeometricNoise):
            return _geometric(np.ceil(low) - counts, np.floor(high) - counts, self.scale)
        return _laplace(low - counts, high - counts, self.scale)


def rebuild_defence(applied: Iterable[AppliedDefence]) -> Defence:
    """Build the defence that a release states, to draw it again; one that is not built in is refused."""
    found = []
    for one in applied:
        kind = getattr(all_defences, one.name, None)
        if not (isinstance(kind, type) and issubclass(kind, Defence)):
            raise InvalidSetting(
                f"What {one.label or one.name!r} did to the numbers is not known; give the `defence` itself."
            )
        found.append(kind(**one.settings).seeded(0))
    return Chain(found)


def _works_on_numbers(defence: Defence) -> bool:
    return (defence.withholds_below, defence.rounds_to, defence.caps_at) != (None, None, None)


def _apply(defences: tuple[Defence, ...], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Do to numbers what defences do to each number on its own."""
    if not defences:
        return values
    locations = Locations(np.stack([np.arange(values.shape[1]), np.zeros(values.shape[1])], axis=1))
    release = Release(values, locations, Calendar("2000-01-01", "1s", len(values)))
    try:
        return Chain(defences)(release).values
    except NothingLeft:
        # All withheld, or all zero: numbers beside them that are never either show what becomes of each.
        apart = np.full((len(values), 1), 1e9)
        return _apply(defences, np.concatenate([values, apart], axis=1))[:, :-1]


def _preimage(
    defences: tuple[Defence, ...], published: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval of numbers that become each published one, limits included (halves aside): two (...,) float64."""
    low, high = published.copy(), published.copy()
    for one in reversed(defences):
        if one.withholds_below is not None:
            hidden, zeros = np.isnan(low), getattr(one, "zeros", True)
            # What is published lies at the threshold or above it, but for zeros that are not withheld.
            zero = ~hidden & (high < one.withholds_below) if not zeros else np.zeros_like(hidden)
            low = np.where(hidden, -np.inf if zeros else 1.0, np.maximum(low, one.withholds_below))
            high = np.where(hidden, one.withholds_below - _OPEN, high)
            low, high = np.where(zero, 0.0, low), np.where(zero, 0.0, high)
        if one.rounds_to is not None:
            # From half a base below the first multiple in the interval to half a base above the last, which is out.
            low = (np.ceil(low / one.rounds_to - _SLACK) - 0.5) * one.rounds_to
            high = (np.floor(high / one.rounds_to + _SLACK) + 0.5) * one.rounds_to - _OPEN
        if one.caps_at is not None:
            high = np.where(high >= one.caps_at, np.inf, high)
    return low, high


def _laplace(low: NDArray[np.float64], high: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Log of the probability of an interval, or of the density where it is a point."""
    point = low == high
    density = -np.abs(low) / scale - np.log(2 * scale)
    return np.where(point, density, _log_interval(low, high, scale))


def _log_interval(low: NDArray[np.float64], high: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Log of the probability of an interval under Laplace noise, exact in the tails."""
    # By symmetry the interval can be turned so that most of it lies above 0.
    turn = low + high < 0
    low, high = np.where(turn, -high, low), np.where(turn, -low, high)
    below = np.maximum(low, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.log(0.5) - below / scale + np.log1p(-np.exp(-(high - below) / scale))
        inner = 0.5 * -np.expm1(np.minimum(low, 0.0) / scale)
        return np.asarray(np.where(low < 0, np.logaddexp(tail, np.log(inner)), tail))


def _geometric(low: NDArray[np.float64], high: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Log of the probability of whole numbers from low to high under two-sided geometric noise; -inf where there is none."""
    if np.array_equal(low, high) and (most := np.abs(low).max(initial=0)) < low.size // 2:
        # Single numbers, few of them different: each is computed once. The noise is the same below 0 and above it.
        each = np.arange(most + 1.0)
        return np.asarray(_geometric_interval(each, each, scale)[np.abs(low).astype(np.int64)])
    return _geometric_interval(low, high, scale)


def _geometric_interval(low: NDArray[np.float64], high: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    ratio = np.exp(-1.0 / scale)
    empty = low > high
    turn = low + high < 0
    low, high = np.where(turn, -high, low), np.where(turn, -low, high)
    # P(k) = (1 - r) / (1 + r) r^|k|, so P(k >= m) = r^m / (1 + r) for m >= 1.
    first = np.maximum(low, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = -first / scale - np.log1p(ratio) + np.log1p(-np.exp(-(high + 1 - first) / scale))
        tail = np.where(high < first, -np.inf, tail)
        # 0 and what lies below it down to low.
        inner = (1 - ratio + ratio * -np.expm1(np.minimum(low, 0.0) / scale)) / (1 + ratio)
        result = np.where(low <= 0, np.logaddexp(tail, np.log(inner)), tail)
    return np.where(empty, -np.inf, result)
