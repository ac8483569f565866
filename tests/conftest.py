"""One clock and one machine for all tests: what audits write and choose is then the same whenever and wherever they run."""

import os

import pytest

os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")

TIMED = ("cli", "auditing", "tests")
"""Folders with tests of audits."""


@pytest.fixture(autouse=True, scope="module")
def ordinary_machine(request):
    """Take the machine for an ordinary one: to time it, as audits do before they begin, takes half a second each time."""
    if request.path.parent.name not in TIMED:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rekindle.auditing.entry.measure_slowness", lambda: 1.0)
        patch.setattr("rekindle.auditing.search.measure_slowness", lambda: 1.0)
        yield
