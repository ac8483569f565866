"""How settings are checked: one rule, one message.

Every message names the setting in backticks, and the error carries that name, so that the command line can write it as
the option that the user typed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np

from rekindle.errors import InvalidSetting


def whole(setting: str, value: Any, *, least: int = 0) -> int:
    """Check a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidSetting(f"`{setting}` is {value!r}; it must be a whole number of at least {least}.")
    return int(value)


def positive(setting: str, value: Any) -> float:
    """Check a finite number above 0."""
    if not _finite(value) or value <= 0:
        raise InvalidSetting(f"`{setting}` is {value!r}; it must be a number above 0.")
    return float(value)


def number(setting: str, value: Any, *, least: float = 0.0) -> float:
    """Check a finite number of at least `least`."""
    if not _finite(value) or value < least:
        raise InvalidSetting(f"`{setting}` is {value!r}; it must be a number of at least {least:g}.")
    return float(value)


def _finite(value: Any) -> bool:
    """Whether a value is a number that a float can hold; a whole number may be larger."""
    is_number: bool = isinstance(value, Real) and not isinstance(value, bool)
    largest: Any = sys.float_info.max
    return is_number and bool(-largest <= value <= largest)


def share(setting: str, value: Any) -> float:
    """Check a share between 0 and 1."""
    if not _finite(value) or not 0 <= value <= 1:
        raise InvalidSetting(f"`{setting}` is {value!r}; it must be a share from 0 to 1.")
    return float(value)


def seed(value: Any, setting: str = "seed") -> int | None:
    """Check a seed: None, or a whole number that is not negative."""
    return None if value is None else whole(setting, value)


def choice(setting: str, value: Any, choices: Collection[str]) -> str:
    """Check that a value is one of several."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidSetting(f"`{setting}` is {value!r}; choose one of {', '.join(choices)}.")
    return value
