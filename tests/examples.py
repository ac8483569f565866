"""How many examples the properties are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings


def limit_examples(items: Iterable[pytest.Item], fewer: Callable[[int], int], **others: Any) -> None:
    """Let each property be tried on fewer examples than its settings say; with other settings too.

    Parameters
    ----------
    items
        The tests, of which some are properties.
    fewer
        From the number of examples in the settings of a property to that on which it is tried.
    others
        Settings of all properties.
    """
    functions = {function for item in items if (function := getattr(item, "function", None)) is not None}
    for function in functions:  # once each, however many parameters it has
        given = getattr(function, "_hypothesis_internal_use_settings", None)
        if given is not None:
            limited = settings(given, max_examples=fewer(given.max_examples), **others)
            function._hypothesis_internal_use_settings = limited
