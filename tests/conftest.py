"""One clock and one machine for all tests: what audits write and choose is then the same whenever and wherever they run."""

import os

import pytest
from hypothesis import settings
from tests.examples import limit_examples

os.environ.setdefault("SOURCE_DATE_EPOCH", "1700000000")

settings.register_profile("long")


def pytest_collection_modifyitems(config, items):
    """Try properties on a fifth of their examples, from 3 to 10; `make test-all` asks for all: `--hypothesis-profile long`."""
    chosen = config.pluginmanager.has_plugin("tests.proof.quick")
    if config.getoption("--hypothesis-profile") != "long" and not chosen:
        limit_examples(items, lambda examples: min(examples, 10, max(3, examples // 5)))


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
