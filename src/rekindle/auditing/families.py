"""Families of defences, each from its weakest setting to its strongest: what `recommend` searches."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import numpy as np

from rekindle.auditing.plan import is_of_flows
from rekindle.defences import (
    Chain,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    LaplaceNoise,
    Round,
    Sample,
    Suppress,
)
from rekindle.errors import InvalidSetting
from rekindle.model import Calendar, Counts, Flows, Locations, Release, Trajectories
from rekindle.model.calendar import parse_step

FAMILIES = (
    "suppress",
    "round",
    "geometric",
    "laplace",
    "coarser-time",
    "coarser-space",
    "sample",
    "coarser-time + suppress",
    "coarser-space + suppress",
    "coarser-space + geometric",
    "coarser-space + coarser-time",
)
"""The names of the families that are known here."""

_USUAL = tuple(name for name in FAMILIES if name != "laplace")
"""Those that are searched where nobody named any. Laplace noise has the same use and risk as geometric noise of its epsilon."""

_NUMBERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
_EPSILONS = (8.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
_STEPS = ("10min", "15min", "20min", "30min", "1h", "2h", "3h", "4h", "6h", "8h", "12h")
_SIDES = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50)
_SHARES = (0.8, 0.5, 0.3, 0.2, 0.1)
_GRID = 5
"""How many settings a grid has at most."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class Family:
    """Defences of one kind.

    Attributes
    ----------
    name
        What it is called; several families may share a name.
    defences
        From the weakest setting to the strongest.
    falls
        Whether the risk falls with the strength, so that the weakest setting that is safe is found by bisection. Otherwise
        the settings are tried one after the other, the least lossy first.
    """

    name: str
    defences: tuple[Defence, ...]
    falls: bool = True


def families_of(
    given: Counts | Flows | Release, truth: Trajectories, wanted: Iterable[str | Family] | None = None
) -> tuple[list[Family], dict[str, str]]:
    """Give the families that suit the data, and those left out by name with the reason.

    Noise is left out where it could not be published: it needs counts, public locations and OpenDP. Larger cells, longer steps and
    samples make no attack weaker by themselves (there is less to tell apart), so they are grids.

    Parameters
    ----------
    given, truth
        What is to be published, and the people.
    wanted
        Names from `FAMILIES`, or families of one's own. By default all names but "laplace".
    """
    asked = list(_USUAL if wanted is None else wanted)
    for one in asked:
        if not isinstance(one, Family) and one not in FAMILIES:
            raise InvalidSetting(f"`families` has {one!r:.80}; choose from {', '.join(FAMILIES)}, or give a Family.")
    own = [one for one in asked if isinstance(one, Family)]
    names = [one for one in asked if isinstance(one, str)]
    most = int(given.count.max(initial=0) if isinstance(given, Flows) else np.nanmax(given.values))
    singles: dict[str, tuple[Sequence[Defence], bool]] = {
        "suppress": ([Suppress(below=below) for below in _NUMBERS if below <= most], True),
        "round": ([Round(to=to) for to in _NUMBERS if to <= 2 * most], True),
        "geometric": ([GeometricNoise(epsilon=epsilon, per="event") for epsilon in _EPSILONS], True),
        "laplace": ([LaplaceNoise(epsilon=epsilon, per="event") for epsilon in _EPSILONS], True),
        "coarser-time": (_longer_steps(given.calendar), False),
        "coarser-space": (_larger_cells(given.locations), False),
        "sample": ([Sample(share=share) for share in _SHARES if share * truth.people >= 2], False),
    }
    found: list[Family] = []
    for name in names:
        first, _, second = name.partition(" + ")
        defences, falls = singles[second or first]
        if not second:
            found.append(Family(name, tuple(defences), falls))
            continue
        # A chain begins with one of the two weakest of a grid; of another grid after it, these two again are enough.
        then = defences if falls else defences[:2]
        found += [Family(name, tuple(Chain([one, other]) for other in then), falls) for one in singles[first][0][:2]]
    reasons = [(one, _why_not(one, given)) for one in [*found, *own] if one.defences]
    left_out = {one.name: reason for one, reason in reasons if reason is not None}
    return [one for one, reason in reasons if reason is None], left_out


def _why_not(family: Family, given: Counts | Flows | Release) -> str | None:
    noisy = any(one.adds_noise for one in family.defences)
    if noisy and is_of_flows(given):
        return (
            "noise on flows can only be published with a number for every pair of locations, most of which nobody ever went "
            "between, and attacks are not tried on that."
        )
    if isinstance(given, Release) and (noisy or any(one.needs_people for one in family.defences)):
        return "it needs the people or their counts themselves, not a release."
    if noisy and not given.locations.public:
        return (
            "noise can only be published on locations that were fixed without looking at the data: declare them with "
            "`public_locations` (in Python `locations.declare_public()`)."
        )
    if noisy and importlib.util.find_spec("opendp") is None:
        return "noise for publication is drawn with OpenDP: pip install 'rekindle-mobility[dp]'."
    return None


def _longer_steps(calendar: Calendar) -> list[Defence]:
    step, most = calendar.step, calendar.step * (calendar.steps or 1)
    fits = [text for text in _STEPS if step < parse_step(text) < most and parse_step(text) % step == timedelta(0)]
    return [CoarserTime(step=text) for text in _spread(fits, _GRID)]


def _larger_cells(locations: Locations) -> list[Defence]:
    cells: dict[int, CoarserSpace] = {}
    for times in _SIDES:
        try:
            defence = CoarserSpace.wider(times, locations)
            cells.setdefault(len(defence.merge(locations)[0]), defence)
        except InvalidSetting:  # it merges nothing, or everything
            continue
    return list(_spread(list(cells.values()), _GRID))


def _spread(values: Sequence[Value], number: int) -> list[Value]:
    """So many of the values, the first and the last among them."""
    if len(values) <= number:
        return list(values)
    return [values[round(at)] for at in np.linspace(0, len(values) - 1, number)]
