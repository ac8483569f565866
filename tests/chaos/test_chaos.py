"""The short version of the harness: a dozen kills."""

import pytest
from tests.chaos.cases import CASES, make_data
from tests.chaos.harness import Chaos

pytestmark = pytest.mark.slow

SHORT = {"attack --attack enhanced": 4, "attack --attack habits": 2, "audit --workers 1": 3, "prepare --overwrite": 3}


@pytest.fixture(scope="module")
def chaos(tmp_path_factory):
    home = tmp_path_factory.mktemp("chaos")
    make_data(home)
    return Chaos(home, seed=0)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in SHORT], ids=lambda case: case.name)
def test_killed_and_started_again(chaos, case):
    kills = SHORT[case.name]
    for _ in range(5):  # a run may be done before the first kill
        chaos.until_done(case, most_kills=kills)
        tally = chaos.tallies[case.name]
        if tally.kills:
            break
    assert tally.runs == tally.same
    assert 1 <= tally.kills <= kills
    assert f"| {case.name} | {tally.kills} |" in chaos.table()
