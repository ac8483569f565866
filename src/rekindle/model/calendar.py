"""Calendar: when the steps of a dataset are, and how they fall into days and nights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from rekindle.errors import InvalidData

DAY = timedelta(days=1)
NIGHT_END = timedelta(hours=6)
"""Night is from 00:00 to 06:00, as in the paper."""

_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def parse_step(step: str | timedelta) -> timedelta:
    """Read an interval such as ``"10min"``, ``"30s"`` or ``"1h"``."""
    if isinstance(step, timedelta):
        return step
    match = re.fullmatch(r"\s*(\d{1,9})\s*([a-z]+)\s*", step, re.ASCII) if isinstance(step, str) else None
    if match is None or match[2] not in _UNITS:
        raise InvalidData(f"The step is {step!r}; write a whole number and a unit, such as '10min', '30s' or '1h'.")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def format_step(step: timedelta) -> str:
    """Write an interval in the form that `parse_step` reads."""
    seconds = int(step.total_seconds())
    for unit in ("h", "min"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"


@dataclass(frozen=True, init=False)
class Calendar:
    """The times of a dataset: a start, a regular step and a number of steps.

    Times are local clock times without a zone; every day has 24 hours. A day is a calendar day: a dataset that
    begins at 03:20 has a shorter first day, and its last day may be short too.

    Parameters
    ----------
    start
        The time of the first step, as a `datetime` or in ISO form.
    step
        The interval between steps, which must divide 24 hours: a `timedelta`, or a text such as ``"10min"``.
    steps
        How many steps there are; None for a calendar without an end, for online use.
    """

    start: datetime
    step: timedelta
    steps: int | None

    def __init__(self, start: str | datetime, step: str | timedelta, steps: int | None = None) -> None:
        if isinstance(start, str):
            try:
                start = datetime.fromisoformat(start)
            except ValueError:
                raise InvalidData(
                    f"The start is {start!r}; write a date and time such as '2014-05-01 00:00'."
                ) from None
        if not isinstance(start, datetime):
            raise InvalidData(f"The start is {start!r}; it must be a datetime, or a text such as '2014-05-01 00:00'.")
        if start.tzinfo is not None:
            raise InvalidData(f"The start {start} has a time zone; give the local clock time without one.")
        if start.microsecond:
            raise InvalidData(f"The start {start} is not a whole second.")
        step = parse_step(step)
        if step <= timedelta(0) or DAY % step or step.microseconds:
            raise InvalidData(f"The step is {step} (h:min:s); it must be whole seconds and divide 24 hours evenly.")
        if steps is not None:
            if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
                raise InvalidData(f"The number of steps is {steps!r}; it must be a whole number, not negative.")
            steps = int(steps)
            try:
                start + step * steps
            except OverflowError:
                raise InvalidData(f"{steps} steps of {step} from {start} end after the year 9999.") from None
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "steps", steps)

    @property
    def steps_per_day(self) -> int:
        """Steps in a whole day."""
        return DAY // self.step

    @property
    def first_day_steps(self) -> int:
        """Steps from the start to the first midnight (of a calendar that is long enough)."""
        midnight = self.start.replace(hour=0, minute=0, second=0)
        return -((self.start - midnight - DAY) // self.step)

    @property
    def number_of_days(self) -> int:
        """Calendar days that the steps touch."""
        if not self._closed_steps:
            return 0
        return 1 + max(0, -((self.first_day_steps - self._closed_steps) // self.steps_per_day))

    @property
    def _closed_steps(self) -> int:
        if self.steps is None:
            raise InvalidData("This calendar has no end; set its number of steps with closed_at(steps).")
        return self.steps

    def closed_at(self, steps: int) -> Calendar:
        """Give the same calendar with that number of steps."""
        return Calendar(self.start, self.step, steps)

    def day(self, number: int) -> slice:
        """Steps of the day with that number, counted from 0."""
        if number < 0 or (self.steps is not None and number >= self.number_of_days):
            raise InvalidData(f"There is no day {number} in the calendar {self.to_json()}; days are counted from 0.")
        first = self.first_day_steps
        begin = 0 if number == 0 else first + (number - 1) * self.steps_per_day
        end = first + number * self.steps_per_day
        return slice(begin, end if self.steps is None else min(end, self.steps))

    def days(self) -> Iterator[slice]:
        """Steps of each calendar day, as slices."""
        return (self.day(number) for number in range(self.number_of_days))

    def nights(self) -> Iterator[slice]:
        """Steps of each day that lie before 06:00, as slices."""
        for day in self.days():
            yield slice(day.start, day.start + min(self.night_steps(day.start), day.stop - day.start))

    def night_steps(self, step: int) -> int:
        """How many steps, from that one on, lie before 06:00 of its day."""
        time = self.time(step)
        six = time.replace(hour=0, minute=0, second=0) + NIGHT_END
        return max(0, -((time - six) // self.step))

    def time(self, step: int) -> datetime:
        """Clock time of one step."""
        return self.start + step * self.step

    def times(self) -> NDArray[np.datetime64]:
        """Clock times of all steps.

        Returns
        -------
        (steps,) datetime64[s].
        """
        interval = np.timedelta64(int(self.step.total_seconds()), "s")
        return np.datetime64(self.start, "s") + interval * np.arange(self._closed_steps)

    def part(self, steps: slice) -> Calendar:
        """Give the calendar of a range of steps."""
        begin, end, _ = steps.indices(self._closed_steps)
        return Calendar(self.time(begin), self.step, end - begin)

    def to_json(self) -> dict[str, str | int | None]:
        """Give start, step and steps in plain values."""
        return {"start": self.start.isoformat(sep=" "), "step": format_step(self.step), "steps": self.steps}
