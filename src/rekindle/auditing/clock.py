"""When an audit was made and how much processor time its attacks took: the only numbers that differ when it is repeated."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime

FIXED = "SOURCE_DATE_EPOCH"
"""The environment variable of reproducible builds, seconds since 1970: an audit was then made at that time, and says nothing of
processor time, so that the same input and command write the same bytes."""


ELSEWHERE: ContextVar[Callable[[], float]] = ContextVar("ELSEWHERE", default=lambda: 0.0)
"""Says how many seconds of other processes the parts of what runs here have taken."""


def now() -> str:
    """The time in UTC, to the second, as ISO 8601 writes it."""
    fixed = os.environ.get(FIXED, "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def processor_time() -> float | None:
    """Seconds of processor time that this process, and parts of the task elsewhere, have used; None where the clock is `FIXED`."""
    return None if os.environ.get(FIXED) else time.process_time() + ELSEWHERE.get()()
