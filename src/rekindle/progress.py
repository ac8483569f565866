"""Progress: how long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

Progress = Callable[[int, int | None], None]
"""Called as ``progress(done, total)``; `total` is None where it is not known."""
