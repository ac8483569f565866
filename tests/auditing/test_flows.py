"""Audits of flows: the strongest of several repairs, of flows or of presence alone; windows; what is not used or tested is said."""

import dataclasses

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing import audit
from rekindle.auditing.forecast import works_of
from rekindle.auditing.plan import Plan, attempts_of
from rekindle.auditing.stages import PRESENCE, TOGETHER, windows_compared
from rekindle.repairing import FLOW_REPAIRS

TRUTH = random_truth(np.random.default_rng(5), people=10, places=5, steps=36, step="2h", start="2024-03-01 04:00")
SETTINGS = {"attacks": [rk.Enhanced()], "seeds": 1, "workers": 1}


@pytest.fixture(scope="module")
def found():
    return audit(TRUTH, release="flows", defences=[rk.Suppress(below=2)], thorough=True, **SETTINGS)


def test_the_strongest_of_several_repairs_counts(found):
    given, withheld = found.releases
    assert given.repairs is None
    assert given.attacks["enhanced"].repair in ("as published", PRESENCE)
    compared = withheld.repairs
    assert set(compared.accuracy) == {*FLOW_REPAIRS, PRESENCE}
    assert len(compared.kept) == 2
    release = rk.Suppress(below=2).of_flows(TRUTH)
    for name, way in FLOW_REPAIRS.items():
        recovery = rk.Enhanced(seed=0).recover(flows=way(release, TRUTH.people, None))
        assert compared.accuracy[name] == pytest.approx(rk.evaluate(recovery.trajectories, TRUTH).accuracy)
    assert withheld.attacks["enhanced"].repair in compared.kept


def test_at_random_along_flows_is_of_flows_whatever_is_attacked(found):
    for release in found.releases:
        assert release.attacks["mixed"].repair != PRESENCE
        assert release.attacks["mixed"].accuracy.value > release.attacks["chance"].accuracy.value


def test_counts_and_flows_are_compared_by_window(found):
    windows = {one.window for one in found.windows}
    assert windows == {"2h", "4h", "8h"}
    assert {(one.published, one.label) for one in found.windows} == {
        (kind, label) for kind in ("counts", "flows") for label in ("As given", "Withhold below 2")
    }
    people = TRUTH.during(TRUTH.flows("4h").calendar)

    def finds(counts=None, flows=None):
        return rk.evaluate(rk.Enhanced(seed=0).recover(counts, flows=flows).trajectories, people).accuracy

    reached = {one.label: one.accuracy for one in found.windows if (one.window, one.published) == ("4h", "flows")}
    assert reached["As given"] == pytest.approx(max(finds(flows=people.flows()), finds(people.counts())))
    repaired = rk.repair_flows(rk.Suppress(below=2)(people.flows()), people.people)
    assert reached["Withhold below 2"] == pytest.approx(max(finds(flows=repaired), finds(repaired.counts())))


def test_the_forecast_knows_of_windows_and_repairs():
    plan = Plan(
        given=TRUTH.flows(),
        truth=TRUTH,
        attempts=attempts_of([rk.Enhanced()], TRUTH, flows=True),
        defences=[rk.Suppress(below=2)],
        required=True,
        seeds=1,
        people=None,
        thorough=True,
    )
    windows = list(windows_compared(plan))
    assert len(windows) == 6  # three lengths, as they are and with numbers withheld
    done = []
    audit(
        TRUTH,
        release="flows",
        defences=plan.defences,
        thorough=True,
        membership="none",
        progress=lambda now, total: done.append(total),
        **SETTINGS,
    )
    # The work that turns out to be there is about what was expected, in milliseconds.
    assert sum(works_of(plan)) == pytest.approx(done[-1] / 1000, rel=0.35)
    brief = dataclasses.replace(plan, thorough=False)
    assert not list(windows_compared(brief))
    assert len(works_of(brief)) < len(works_of(plan)) - 2 * len(windows)


def test_several_windows_are_attacked_together_and_the_shortest_alone():
    longer = TRUTH.flows("4h"), TRUTH.flows("8h")
    data = rk.Dataset(TRUTH.counts(), TRUTH, flows=(longer[1], TRUTH.flows(), longer[0]))
    defences = [rk.Suppress(below=2), rk.CoarserTime(step="4h")]
    found = audit(data, release="flows", defences=defences, thorough=True, **SETTINGS)
    assert any("Flows over 4h and 8h are published too" in sentence for sentence in found.settings["assumed"])
    assert not found.omitted
    given, withheld, coarse = found.releases
    together = rk.Enhanced(seed=0).recover(flows=(TRUTH.flows(), *longer))
    accuracy = rk.evaluate(together.trajectories, TRUTH).accuracy
    assert given.attacks["enhanced"].accuracy.value >= accuracy - 1e-9
    compared = {(one.window, one.published, one.label): one.accuracy for one in found.windows}
    # Who has all windows may use the shortest alone.
    alone = compared["2h", "flows", "As given"]
    assert compared["2h", f"flows, {TOGETHER}", "As given"] == pytest.approx(max(accuracy, alone))
    assert compared["2h", f"flows, {TOGETHER}", withheld.label] >= compared["2h", "flows", withheld.label]
    assert compared["8h", "flows", "As given"] > 0
    # Each window is repaired by itself; who thins out the steps leaves only what is longer still.
    assert set(withheld.repairs.accuracy) == {TOGETHER, *FLOW_REPAIRS, PRESENCE}
    release = [rk.Suppress(below=2).of_flows(TRUTH, window) for window in ("2h", "4h", "8h")]
    first = next(iter(FLOW_REPAIRS.values()))
    repaired = rk.Enhanced(seed=0).recover(flows=[first(one, TRUTH.people, None) for one in release])
    assert repaired.trajectories.flows() == first(release[0], TRUTH.people, None)
    found_in_it = rk.evaluate(repaired.trajectories, TRUTH).accuracy
    assert withheld.repairs.accuracy[TOGETHER] == pytest.approx(found_in_it)
    assert coarse.attacks["enhanced"].repair in (TOGETHER, "as published", PRESENCE)
    (told,) = [sentence for sentence in found.warnings if "Tried without some of the longer windows" in sentence]
    assert coarse.label in told
    assert withheld.label not in told
    assert {one.days for one in found.growth["chance"]} == {
        one.days for one in found.growth[found.given.strongest.attack]
    }


def test_without_the_truth_all_windows_are_used():
    data = rk.Dataset(TRUTH.counts(), flows=(TRUTH.flows(), TRUTH.flows("4h")))
    found = audit(data, defences=[], thorough=False, **SETTINGS)
    assert found.given.attacks["enhanced"].repair == TOGETHER
    together = rk.Enhanced(seed=0).recover(flows=data.flows).trajectories
    assert np.array_equal(found.recovered.cells, together.cells)


def test_what_is_not_used_or_tested_is_said():
    flows = (TRUTH.flows(), TRUTH.flows("4h"))
    data = rk.Dataset(TRUTH.counts(), TRUTH, flows=flows)
    found = audit(data, window="2h", defences=[], thorough=False, **SETTINGS)
    assert any("also publishes flows over 4h" in sentence for sentence in found.omitted)
    assert found.given.membership["exact"].auc == 1  # every number is exact
    assert not audit(data, release="counts", defences=[], thorough=False, **SETTINGS).omitted
