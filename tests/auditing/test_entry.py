"""The audit as a whole, on small cities."""

import dataclasses
import json
import time
from itertools import pairwise

import numpy as np
import pytest
from tests.small import random_truth

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.auditing import audit, entry, workers
from rekindle.defences import (
    PRESETS,
    CoarserSpace,
    CoarserTime,
    GeometricNoise,
    NothingLeft,
    Round,
    Sample,
    Suppress,
)
from rekindle.model import Release


@pytest.fixture(scope="module")
def truth():
    return rk.SyntheticCity(people=24, days=2, step="1h", width_km=5, height_km=5).trajectories()


def small_audit(data, **settings):
    """One process: the tests run side by side themselves."""
    return audit(data, **({"attacks": [rk.Enhanced()], "defences": [], "seeds": 2, "workers": 1} | settings))


def numbers(found):
    return json.dumps(found.to_json(), allow_nan=False, sort_keys=True)


@dataclasses.dataclass(frozen=True)
class Own(rk.Attack):
    """Somebody's own attack, without a seed."""

    shift: int = 0

    def start(self, locations, calendar, *, people, progress=None):
        return rk.Baseline().start(locations, calendar, people=people, progress=progress)


@dataclasses.dataclass(frozen=True)
class Sure(rk.Attack):
    """An attack that knows everything."""

    truth: rk.Trajectories = None

    def start(self, locations, calendar, *, people, progress=None):
        raise NotImplementedError

    def recover(self, counts, *, progress=None):
        found = rk.Trajectories(self.truth.cells[::-1], counts.locations, counts.calendar)
        return dataclasses.replace(rk.Baseline().recover(counts), trajectories=found)

    def settings(self):
        return {}


def test_states_the_risk_beside_chance_and_perfect(truth):
    found = small_audit(truth, attacks=[rk.Baseline(), rk.Enhanced()], seeds=3)
    risks = found.given.attacks
    assert list(risks) == ["chance", "naive", "frozen", "baseline", "enhanced", "perfect"]
    best = found.given.strongest
    assert best.accuracy.low < best.accuracy.value < best.accuracy.high
    assert best.accuracy.value == pytest.approx(np.mean(best.by_order))
    assert len(best.by_order) == 3
    chance = risks["chance"]
    assert chance.advantage.value == 0
    assert best.advantage.value == pytest.approx(
        (best.accuracy.value - chance.accuracy.value) / (1 - chance.accuracy.value)
    )
    assert risks["perfect"].accuracy.value == risks["perfect"].advantage.value == risks["perfect"].home.value == 1
    assert risks["perfect"].error_km == 0
    for points in range(5):
        assert chance.reidentified[points].value <= risks["enhanced"].reidentified[points].value
        assert risks["enhanced"].reidentified[points].value <= risks["perfect"].reidentified[points].value
    assert len(best.by_hour) == 24
    assert len(best.by_location) == len(truth.locations)
    assert list(found.growth) == ["chance", best.attack]
    for name, grown in found.growth.items():
        assert [one.days for one in grown] == [1, 2]
        assert grown[-1].accuracy == pytest.approx(risks[name].by_order[0])
    assert [person.accuracy for person in found.people] == sorted((p.accuracy for p in found.people), reverse=True)
    assert {person.person for person in found.people} == set(truth.people_ids)
    assert found.unknown == ()


def test_one_recovery_is_the_attack_s_own(truth):
    found = small_audit(truth, seeds=1)
    recovered = rk.Enhanced(seed=0).recover(truth.counts()).trajectories
    accuracy = rk.evaluate(recovered, truth).accuracy
    assert found.given.attacks["enhanced"].accuracy.value == pytest.approx(accuracy)


def test_the_recovery_that_is_shown_is_the_strongest_s(truth):
    found = small_audit(truth, attacks=[Sure(truth=truth)], seeds=1)
    assert found.given.strongest.attack == "Sure"
    assert np.array_equal(found.recovered.cells, truth.cells[::-1])
    assert found.matched.tolist() == list(range(truth.people))[::-1]


@pytest.mark.slow
def test_same_numbers_with_any_workers_and_from_the_cache(truth, tmp_path):
    settings = {"defences": [Suppress(below=2), GeometricNoise(epsilon=1, per="event")]}
    alone = small_audit(truth, **settings)
    cached = small_audit(truth, cache=tmp_path / "tasks", workers=2, **settings)
    again = small_audit(truth, cache=tmp_path / "tasks", **settings)
    assert numbers(alone) == numbers(cached) == numbers(again)
    assert np.array_equal(alone.recovered.cells, again.recovered.cells)


def test_more_of_the_same_does_only_what_is_new(truth, tmp_path):
    small_audit(truth, cache=tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    more = small_audit(truth, cache=tmp_path, seeds=3, defences=[Round(to=2)])
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert before.items() < after.items()
    assert numbers(more) == numbers(small_audit(truth, seeds=3, defences=[Round(to=2)]))


def test_other_settings_are_other_tasks(truth, tmp_path):
    for attack in (rk.Enhanced(), rk.Enhanced(lookback_days=1), Own(), Own(shift=1)):
        count = len(list(tmp_path.iterdir()))
        small_audit(truth, attacks=[attack], cache=tmp_path, seeds=1)
        assert len(list(tmp_path.iterdir())) > count


def test_progress_goes_from_nothing_to_everything(truth):
    calls = []
    small_audit(truth, defences=[Round(to=2)], progress=lambda done, total: calls.append((done, total)))
    done = [one for one, _ in calls]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == calls[-1][1]
    shares = [one / total for one, total in calls[:-1]]
    assert max(shares) > 0.7  # what was expected is about what there is to do


def test_the_forecast_counts_the_tasks(truth, tmp_path):
    told = []
    defences = [Suppress(below=2), GeometricNoise(epsilon=1, per="event"), CoarserSpace(km=2)]
    small_audit(truth, defences=defences, membership="none", cache=tmp_path, announce=told.append)
    done = len(list(tmp_path.glob("*.npz")))
    (ahead,) = told
    assert ahead.tasks == pytest.approx(done, rel=0.25)
    assert ahead.seconds > 0
    assert ahead.memory_bytes > 2**20
    assert (ahead.cores, ahead.plan.seeds, ahead.chosen) == (1, 2, frozenset({"thorough"}))
    assert ahead.omitted == ()
    assert {"seeds=1", "defences=[]"} <= dict(ahead.faster).keys()


def test_what_is_known_so_far_is_told_and_says_what_is_missing(truth, monkeypatch):
    monkeypatch.setattr(entry, "_SHOW_SECONDS", 0)
    monkeypatch.setattr(entry, "_SHOW_SHARE", 1)
    told = []
    found = small_audit(truth, attacks=[rk.Baseline(), rk.Enhanced()], defences=[Round(to=2)], so_far=told.append)
    first, last = told[0], told[-1]
    assert list(first.given.attacks) == ["chance", "naive", "frozen", "perfect"]
    assert len(first.releases) == 1
    assert first.unfinished[0].startswith("This audit is not finished: ")
    assert "As given: not finished are chance (1 of 2), naive (1 of 2)" in first.unfinished[1]
    assert "enhanced (0 of 2), baseline (0 of 2)" in first.unfinished[1]
    assert first.unfinished[2] == "Round to 2: not tried yet."
    second = next(one for one in told if "enhanced" in one.given.attacks)
    assert "baseline" not in second.given.attacks  # the strongest comes first
    assert [one.label for one in last.releases] == ["As given", "Round to 2"]
    for one in told:  # a defence is not shown before every attack was tried on it
        assert all({"enhanced", "baseline"} <= release.attacks.keys() for release in one.releases[1:])
    assert found.unfinished == ()
    for one in (first, second, last):
        json.dumps(one.to_json(), allow_nan=False)


def test_a_time_budget_ends_with_what_is_finished(truth, tmp_path):
    class Clock:
        now = 0.0

        def monotonic(self):
            self.now += 0.1
            return self.now

        def __getattr__(self, name):
            return getattr(time, name)

    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for module in (entry, workers):
            patch.setattr(module, "time", clock)
        found = small_audit(truth, defences=[Round(to=2)], time_budget="6s", cache=tmp_path, seeds=None)
        assert found.unfinished
        assert found.given.attacks["chance"].accuracy is not None
        with pytest.raises(rk.errors.Stopped, match="time was up before"):
            small_audit(truth, time_budget="1s", seeds=50)
    stored = json.loads((tmp_path / "choice.json").read_text())
    (tmp_path / "choice.json").write_text(json.dumps(stored | {"choice": 2}))
    whole = small_audit(truth, defences=[Round(to=2)], time_budget="10h", cache=tmp_path, seeds=None)
    assert whole.unfinished == ()
    assert whole.settings["row_orders"] == 1  # what was chosen is kept, though there is more time now


@pytest.mark.parametrize("wrong", ["soon", "0min", "-3s", 5])
def test_refuses_odd_time_budgets(truth, wrong):
    with pytest.raises(rk.errors.InvalidSetting, match="time_budget"):
        small_audit(truth, time_budget=wrong)


def test_without_the_truth_it_says_what_cannot_be_known(truth):
    found = small_audit(truth.counts(), attacks=[rk.Baseline(), rk.Enhanced()], defences=[Round(to=2)])
    assert found.verdict.level == "unknown"
    assert any("Without the truth" in sentence for sentence in found.unknown)
    assert found.people == ()
    assert "perfect" not in found.given.attacks
    best = found.given.strongest
    assert best.accuracy is None
    assert best.advantage is None
    assert len(best.uniqueness) == 5
    shares = {(one.one, one.other): one.share for one in found.agreements}
    assert shares["enhanced", "enhanced"] > shares["chance", "chance"]
    assert 0 < shares["baseline", "enhanced"] < 1
    assert found.releases[1].utility["count_error"] > 0
    with pytest.raises(rk.errors.InvalidSetting, match="truth"):
        found.exceeds(0.3)
    numbers(found)


def test_a_released_file_alone(truth):
    release = Suppress(below=2)(truth.counts())
    found = small_audit(release)
    assert found.verdict.level == "unknown"
    assert found.given.utility is None
    assert found.given.withheld > 0
    assert found.settings["done"]
    known = small_audit(release, truth=truth)
    assert known.given.strongest.accuracy is not None
    assert known.given.utility["count_error"] > 0


def test_scores_are_over_the_true_people_whatever_was_guessed(truth):
    with pytest.raises(rk.errors.InvalidData, match="`people` is 12, but the counts"):
        small_audit(truth, people=12, seeds=1)
    right, more = (small_audit(truth, people=people, seeds=1) for people in (None, 48))
    assert [one.given.attacks["enhanced"].people for one in (right, more)] == [24, 48]
    for one in (right, more):
        assert len(one.people) == 24
        assert one.given.strongest.accuracy.value == pytest.approx(
            np.mean([person.accuracy for person in one.people])
        )


def test_a_sample_is_judged_by_those_who_were_drawn(truth):
    given, sampled = small_audit(truth, defences=[Sample(share=0.25, fixed_size=True)]).releases
    assert given.included == 1
    assert sampled.included == 0.25
    assert sampled.people == 6
    assert sampled.attacks["perfect"].accuracy.value == sampled.attacks["perfect"].advantage.value == 1
    # Fewer people are easier to tell apart: those who were drawn are no safer.
    assert sampled.strongest.accuracy.value > given.strongest.accuracy.low
    assert sampled.strongest.exposed.half.of <= 12


def test_coarse_releases_are_scored_alike(truth):
    found = small_audit(truth, defences=[CoarserSpace(km=2.5), CoarserTime(step="4h")])
    given, space, time = found.releases
    # Knowing the right large cell is not knowing the right place.
    assert space.attacks["perfect"].accuracy.value == 1
    assert space.attacks["perfect"].error_km > 0.3
    assert time.attacks["perfect"].accuracy.value == 1
    assert time.attacks["perfect"].error_km > 0
    assert space.attacks["chance"].accuracy.value > given.attacks["chance"].accuracy.value
    assert len(space.strongest.by_location) < len(truth.locations)
    assert sum(share is not None for share in time.strongest.by_hour) == 6


SWEEPS = {
    "noise": [GeometricNoise(epsilon=epsilon, per="event") for epsilon in (1.0, 0.1, 0.01)],
    "threshold": [Suppress(below=below) for below in (2, 4, 8)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_exposure_and_use_fall_together(name):
    """With growing noise and growing thresholds the strongest attack falls towards chance."""
    truth = rk.SyntheticCity(people=40, days=4, step="20min", seed=3).trajectories()
    releases = small_audit(
        truth, attacks=[rk.Habits(effort="low")], defences=SWEEPS[name], membership="none"
    ).releases
    risks = [release.strongest.advantage for release in releases]
    for milder, stronger in pairwise(risks):
        assert stronger.value <= milder.high
    errors = [release.utility["count_error"] for release in releases]
    assert errors == sorted(errors)
    assert errors[0] == 0
    assert risks[0].value > 0.6
    assert risks[-1].value < min(0.4, risks[0].value / 2)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_under_every_attack(preset):
    # Large cells, so that no preset leaves nothing.
    truth = rk.SyntheticCity(people=120, days=1, step="4h", width_km=2, height_km=2).trajectories()
    attacks = [kind() for kind in ATTACKS.values()]
    found = small_audit(truth, attacks=attacks, defences=[PRESETS[preset]], seeds=1)
    assert found.left_out == {}
    for name in ATTACKS:
        assert 0 <= found.releases[1].attacks[name].accuracy.value <= 1
    assert preset in PRESETS[preset].label


def test_a_defence_that_would_leave_nothing_is_set_aside(truth):
    found = small_audit(truth, defences=[Suppress(below=1000), Round(to=2)])
    assert [one.label for one in found.releases] == ["As given", "Round to 2"]
    assert "withhold all" in found.left_out["Withhold below 1000"]
    with pytest.raises(NothingLeft):
        Suppress(below=1000)(truth.counts())


def test_limit(truth):
    found = small_audit(truth)
    high = found.given.strongest.advantage.high
    assert found.exceeds(high - 1e-6)
    assert not found.exceeds(high)
    with pytest.raises(rk.errors.InvalidSetting, match="0 to 1"):
        found.exceeds(1.5)


def test_one_person_in_one_place():
    truth = rk.Trajectories([[0, 0]], rk.Locations([[0, 0]]), rk.Calendar("2024-01-01", "12h", 2))
    found = small_audit(truth)
    assert found.given.strongest.advantage.value == 0
    assert found.verdict.level == "no better than guessing"
    numbers(found)


def test_without_nights_and_working_hours():
    truth = random_truth(np.random.default_rng(0), people=5, places=4, steps=3, step="24h", start="2024-03-01 06:00")
    found = small_audit(truth)
    assert found.given.strongest.home is None
    assert found.people[0].home is None
    numbers(found)


def test_bad_input(truth):
    counts = truth.counts()
    with pytest.raises(rk.errors.InvalidSetting, match="at least one"):
        small_audit(truth, attacks=[])
    with pytest.raises(rk.errors.InvalidSetting, match="not an attack"):
        small_audit(truth, attacks=["enhanced"])
    with pytest.raises(rk.errors.InvalidSetting, match="not a defence"):
        small_audit(truth, defences=["suppress"])
    with pytest.raises(rk.errors.InvalidSetting, match="twice"):
        small_audit(truth, defences=[Round(to=2), Round(to=2)])
    with pytest.raises(rk.errors.InvalidData, match="needs the people"):
        small_audit(counts, defences=[Sample(share=0.5)])
    with pytest.raises(rk.errors.InvalidData, match="needs the people"):
        small_audit(Release.of(counts), truth=truth, defences=[Sample(share=0.5)])
    with pytest.raises(rk.errors.InvalidSetting, match="seeds"):
        small_audit(truth, seeds=0)
    with pytest.raises(rk.errors.InvalidData, match="cannot be audited"):
        small_audit(truth.cells)
    others = random_truth(np.random.default_rng(0), people=24, places=25, steps=truth.steps)
    with pytest.raises(rk.errors.InvalidData, match="truth"):
        small_audit(counts, truth=others)
    with pytest.raises(rk.errors.InvalidData, match="other locations or times"):
        small_audit(Release.of(counts), truth=others)


def test_two_attacks_of_a_kind_have_two_names(truth):
    found = small_audit(truth, attacks=[rk.Enhanced(), rk.Enhanced(lookback_days=1), Own()], seeds=1)
    assert list(found.given.attacks)[3:6] == ["enhanced", "enhanced 2", "Own"]


def test_a_frame_of_points_in_one_call():
    pl = pytest.importorskip("polars")
    places = {"ann": 48.85, "bob": 48.90}
    frame = pl.DataFrame(
        [(who, f"2024-03-04 {hour:02}:30", lat, 2.35) for who, lat in places.items() for hour in range(24)],
        schema=["uid", "datetime", "lat", "lng"],
        orient="row",
    )
    found = small_audit(frame, step="2h", cell_km=2)
    assert found.truth.people_ids == ("ann", "bob")
    assert found.truth.calendar.to_json() == {"start": "2024-03-04 00:00:00", "step": "2h", "steps": 12}
    assert found.truth.locations.distances.max() == pytest.approx(4.0)  # 5.5 km in cells of 2 km
    with pytest.raises(rk.errors.InvalidSetting, match="`step` is for a data frame"):
        small_audit(found.truth, step="2h")


def test_another_seed_is_another_audit_of_the_same_kind(truth):
    noise = GeometricNoise(epsilon=1.0, per="event")
    one, other = (small_audit(truth, defences=[noise], seed=seed, membership="none") for seed in (0, 7))
    assert one.settings["seed"] == 0
    assert other.settings["seed"] == 7
    for at in (0, 1):
        assert one.releases[at].attacks["enhanced"].by_order != other.releases[at].attacks["enhanced"].by_order
    assert one.releases[1].utility != other.releases[1].utility
    # The row orders follow each other: the second of one audit is the first of the next.
    after = small_audit(truth, defences=[noise], seed=1, seeds=1, membership="none")
    assert after.given.attacks["enhanced"].by_order[0] == one.given.attacks["enhanced"].by_order[1]
