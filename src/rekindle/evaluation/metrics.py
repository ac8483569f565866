"""What a metric is: one function that gives a number, registered with its unit and direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Source = TypeVar("Source")


@dataclass(frozen=True)
class Metric(Generic[Source]):
    """A number with its unit, its direction and its meaning.

    Attributes
    ----------
    name, unit
        What it is called and measured in.
    direction
        Whether more was recovered (`METRICS`), or more use is left (`UTILITIES`), where it is "higher" or "lower".
    meaning
        What it says, in a few words.
    value
        Computes it: from the `PerPerson` of an evaluation, or from a `Utility`.
    """

    name: str
    unit: str
    direction: Literal["higher", "lower"]
    meaning: str
    value: Callable[[Source], float]
