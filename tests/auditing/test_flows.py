"""Audits of flows: the strongest of several repairs, of flows or of presence alone; windows; what is not used or tested is said."""

import dataclasses

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing import audit
from rekindle.auditing.forecast import works_of
from rekindle.auditing.plan import Plan, attempts_of
from rekindle.auditing.stages import PRESENCE, windows_compared
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
    for one in found.windows:
        if (one.window, one.published, one.label) == ("4h", "flows", "As given"):
            people = TRUTH.during(TRUTH.flows("4h").calendar)
            recovery = rk.Enhanced(seed=0).recover(flows=people.flows())
            assert one.accuracy == pytest.approx(rk.evaluate(recovery.trajectories, people).accuracy)


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


def test_what_is_not_used_or_tested_is_said():
    flows = (TRUTH.flows(), TRUTH.flows("4h"))
    data = rk.Dataset(TRUTH.counts(), TRUTH, flows=flows)
    found = audit(data, defences=[], thorough=False, **SETTINGS)
    assert any("also publishes flows over 4h" in sentence for sentence in found.omitted)
    assert "flows" in found.given.membership["exact"]
    assert not audit(data, release="counts", defences=[], thorough=False, **SETTINGS).omitted
    with pytest.raises(rk.errors.InvalidData, match="release of flows"):
        rk.infer_membership(rk.Release.of(flows[0]), TRUTH)
    with pytest.raises(rk.errors.InvalidData, match="cannot be recommended"):
        rk.recommend(flows[0], truth=TRUTH)
