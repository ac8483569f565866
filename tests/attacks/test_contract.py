"""What every attack must fulfil, in more depth than `rekindle.testing`. An attack that is added to `ATTACKS` is tested here."""

import threading
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.attacks import ATTACKS, REFERENCES
from rekindle.testing import check_attack

KINDS = ATTACKS | REFERENCES
QUICK = {name: partial(kind, effort="low") if "effort" in kind().settings() else kind for name, kind in KINDS.items()}
every_attack = pytest.mark.parametrize("kind", QUICK.values(), ids=QUICK.keys())


@pytest.fixture(scope="module")
def counts():
    truth = random_truth(np.random.default_rng(1), people=12, places=9, steps=70, step="2h", start="2024-03-01 04:00")
    return truth.counts()


@pytest.fixture(scope="module")
def recovered(counts):
    """What an attack recovers of the counts, once for all tests that compare with it."""
    return cache(lambda kind, **seed: kind(**seed).recover(counts))


def same_details(one, other):
    pairs = zip(one.details.arrays().items(), other.details.arrays().items(), strict=True)
    return all(a == b and np.array_equal(x, y, equal_nan=True) for (a, x), (b, y) in pairs)


flow_attacks = [pytest.param(kind, id=name) for name, kind in QUICK.items() if KINDS[name].takes_flows]
every_flow_attack = pytest.mark.parametrize("kind", flow_attacks)


def feed_in_batches(attack, counts, batches, flows=None):
    """Feed some days at a time."""
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    days = list(counts.calendar.days())
    begin = 0
    for size in batches:
        part = days[begin : begin + size]
        if part:
            run.feed(counts.part(slice(part[0].start, part[-1].stop)), flows=flows)
        begin += size
    if begin < len(days):
        run.feed(counts.part(slice(days[begin].start, counts.steps)), flows=flows)
    return run


@every_attack
def test_passes_the_shipped_suite(kind):
    check_attack(kind(seed=4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for name, kind in KINDS.items() if kind is not QUICK[name]])
def test_passes_the_shipped_suite_with_its_usual_effort(kind):
    check_attack(kind(seed=4))


@every_attack
def test_meets_the_counts_exactly(kind, counts, recovered):
    assert recovered(kind).trajectories.counts() == counts


@every_attack
def test_is_deterministic(kind, counts, recovered):
    first, second = recovered(kind, seed=3), kind(seed=3).recover(counts)
    assert np.array_equal(first.trajectories.cells, second.trajectories.cells)
    assert same_details(first, second)


@every_attack
def test_seeds_change_ties(kind, recovered):
    found = {recovered(kind, seed=seed).trajectories.cells.tobytes() for seed in range(4)}
    assert len(found) > 1


@every_attack
def test_leaves_its_input_unchanged(kind, counts):
    before = counts.values.copy()
    kind().recover(counts)
    assert np.array_equal(counts.values, before)


@every_attack
@settings(max_examples=25, deadline=None)
@given(truth=truths(away=True), batches=st.lists(st.integers(1, 4), max_size=6), seed=st.sampled_from([None, 7]))
def test_any_batches_give_the_same(kind, truth, batches, seed):
    attack = kind() if seed is None else kind(seed=seed)
    whole = attack.recover(truth.counts())
    online = feed_in_batches(attack, truth.counts(), batches).recovery()
    assert np.array_equal(online.trajectories.cells, whole.trajectories.cells)
    assert same_details(online, whole)
    assert whole.trajectories.counts() == truth.counts()


@every_flow_attack
@settings(max_examples=25, deadline=None)
@given(
    truth=truths(away=True),
    stayers=st.booleans(),
    batches=st.lists(st.integers(1, 4), max_size=6),
    seed=st.sampled_from([None, 7]),
)
def test_flows_are_kept_in_any_batches(kind, truth, stayers, batches, seed):
    attack = kind() if seed is None else kind(seed=seed)
    flows = truth.flows(stayers=stayers)
    whole = attack.recover(truth.counts(), flows=flows)
    assert whole.trajectories.flows() == truth.flows()
    online = feed_in_batches(attack, truth.counts(), batches, flows).recovery()
    assert online.trajectories == whole.trajectories
    assert same_details(online, whole)


@every_flow_attack
def test_flows_need_no_counts(kind, counts, recovered):
    flows = recovered(kind).trajectories.flows()
    found = kind(seed=3).recover(flows=flows)
    assert found.trajectories == kind(seed=3).recover(counts, flows=flows).trajectories
    run = kind(seed=3).start(counts.locations, counts.calendar, people=counts.people)
    for windows in flows.days():
        run.feed(flows=windows)
    assert run.trajectories() == found.trajectories


@every_flow_attack
@settings(max_examples=25, deadline=None)
@given(truth=truths(away=True).filter(lambda truth: truth.steps > 1))
def test_flows_without_stayers_alone_are_of_the_fewest_people(kind, truth):
    flows = truth.flows(stayers=False)
    if not len(flows.step):
        return
    found = kind().recover(flows=flows).trajectories
    assert found.people >= flows.people
    assert np.array_equal(found.flows(stayers=False).to_frame(), flows.to_frame())
    assert (found.counts().values <= truth.counts().values).all()


@every_flow_attack
def test_flows_that_do_not_come_next_are_refused(kind, counts, recovered):
    flows = recovered(kind).trajectories.flows()
    days = list(counts.days())
    run = kind().start(counts.locations, counts.calendar, people=counts.people)
    run.feed(days[0], flows=flows)
    with pytest.raises(rk.errors.InvalidData, match="fed with flows"):
        run.feed(days[1])
    with pytest.raises(rk.errors.InvalidData, match="next window of this run begins at 2024-03-01 22:00:00"):
        run.feed(days[1], flows=flows.part(slice(10, 22)))
    with pytest.raises(rk.errors.InvalidData, match="cover the same days"):
        run.feed(days[1], flows=flows.part(slice(9, 20)))
    with pytest.raises(rk.errors.InvalidData, match="without stayers"):
        run.feed(flows=flows.without_stayers())
    with pytest.raises(rk.errors.InvalidData, match="nothing to take"):
        run.feed()
    other = rk.Counts(np.roll(days[1].values, 1, axis=1), counts.locations, days[1].calendar)
    with pytest.raises(rk.errors.InvalidData, match="do not fit the counts"):
        run.feed(other, flows=flows)
    plain = kind().start(counts.locations, counts.calendar, people=counts.people)
    plain.feed(days[0])
    with pytest.raises(rk.errors.InvalidData, match="without flows"):
        plain.feed(days[1], flows=flows)
    with pytest.raises(rk.errors.InvalidData, match="same steps"):
        kind().recover(counts, flows=flows.part(slice(0, 20)))
    with pytest.raises(rk.errors.InvalidData, match="nothing to attack"):
        kind().recover()


@every_attack
@settings(max_examples=10, deadline=None)
@given(truth=truths(away=True), more=st.integers(1, 5))
def test_people_who_turn_up_later_were_away_before(kind, truth, more):
    days = [
        rk.Counts(day.values, day.locations, day.calendar, max(1, day.totals.max())) for day in truth.counts().days()
    ]
    run = kind().start(truth.locations, truth.calendar, people=1)
    for day in days[:-1]:
        run.feed(day)
    run.feed(rk.Counts(days[-1].values, truth.locations, days[-1].calendar, truth.people + more))
    counts = truth.counts()
    known = kind().recover(rk.Counts(counts.values, truth.locations, truth.calendar, truth.people + more))
    assert run.recovery().trajectories == known.trajectories


@every_attack
def test_calendar_without_end(kind, counts, recovered):
    run = kind().start(counts.locations, rk.Calendar(counts.calendar.start, "2h"), people=counts.people)
    for day in counts.days():
        run.feed(day)
    assert np.array_equal(run.trajectories().cells, recovered(kind).trajectories.cells)


@every_attack
def test_saved_and_resumed_equals_one_that_never_stopped(kind, counts, recovered, tmp_path):
    days = list(counts.days())
    run = kind(seed=2).start(counts.locations, counts.calendar, people=counts.people)
    for day in days[:3]:
        run.feed(day)
    run.save(tmp_path / "run.npz")
    resumed = rk.resume(tmp_path / "run.npz")
    assert resumed.attack == kind(seed=2)
    for day in days[3:]:
        resumed.feed(day)
    whole = recovered(kind, seed=2)
    assert np.array_equal(resumed.trajectories().cells, whole.trajectories.cells)
    assert same_details(resumed.recovery(), whole)


@every_attack
def test_reading_along_from_another_thread(kind):
    truth = random_truth(np.random.default_rng(2), people=30, places=16, steps=12 * 12, step="2h")
    counts = truth.counts()
    run = kind().start(counts.locations, counts.calendar, people=counts.people)
    assert run.trajectories().steps == 0
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(run.trajectories())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run.feed(counts)
    done.set()
    watcher.join()
    final = run.trajectories().cells
    assert final.shape == truth.cells.shape
    for snapshot in seen:
        assert snapshot.steps % 12 == 0
        if not kind().revises:
            assert np.array_equal(snapshot.cells, final[:, : snapshot.steps])


@every_attack
def test_stop_from_another_thread_keeps_whole_days(kind):
    truth = random_truth(np.random.default_rng(3), people=30, places=16, steps=12 * 20, step="2h")
    counts = truth.counts()
    run = kind().start(
        counts.locations, counts.calendar, people=counts.people, progress=lambda done, total: done == 3 and run.stop()
    )
    run.feed(counts)
    assert run.stopped
    kept = run.trajectories()
    assert kept.steps == (counts.steps if kind().revises else 36)
    assert kept.counts() == counts.part(slice(0, kept.steps))
    with pytest.raises(rk.errors.Stopped, match="resume"):
        run.feed(counts)


@every_attack
def test_ctrl_c_keeps_whole_days_and_the_rest_can_be_fed_again(kind, counts, recovered):
    if kind().revises:
        pytest.skip("computes when asked, not when fed")

    def interrupt(done, total):
        if done == 2 and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt

    interrupted = []
    run = kind().start(counts.locations, counts.calendar, people=counts.people, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.feed(counts)
    assert run.days_done == 2
    run.feed(counts.part(slice(run.steps_done, counts.steps)))
    assert np.array_equal(run.trajectories().cells, recovered(kind).trajectories.cells)


@every_attack
def test_progress_is_told_every_day(kind, counts):
    told = []
    kind().recover(counts, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted({done for done, _ in told})


@every_attack
def test_feed_refuses_what_does_not_come_next(kind, counts):
    days = list(counts.days())
    run = kind().start(counts.locations, counts.calendar, people=counts.people)
    with pytest.raises(rk.errors.InvalidData, match="next step of this run is 2024-03-01 04:00:00"):
        run.feed(days[1])
    run.feed(days[0])
    with pytest.raises(rk.errors.InvalidData, match="next step"):
        run.feed(days[0])
    elsewhere = rk.Counts(days[1].values, rk.Locations(counts.locations.xy_km + 1), days[1].calendar)
    with pytest.raises(rk.errors.InvalidData, match="other locations"):
        run.feed(elsewhere)


@every_attack
def test_nothing_follows_a_short_day(kind, counts):
    calendar = rk.Calendar(counts.calendar.start, "2h")
    run = kind().start(counts.locations, calendar, people=counts.people)
    run.feed(counts.part(slice(0, 12)))  # the first day has 10 steps
    with pytest.raises(rk.errors.InvalidData, match="not whole"):
        run.feed(counts.part(slice(10, 22)))


@every_attack
def test_the_run_ends_where_its_calendar_ends(kind, counts):
    run = kind().start(counts.locations, counts.calendar.closed_at(22), people=counts.people)
    run.feed(counts.part(slice(0, 22)))
    with pytest.raises(rk.errors.InvalidData, match="too many"):
        run.feed(counts.part(slice(22, 34)))


@every_attack
def test_knows_nothing_but_places(kind, counts, recovered):
    """Names and the true position on earth do not matter: only counts, distances and times do."""
    other = rk.Locations(counts.locations.xy_km, [f"place {i}" for i in range(len(counts.locations))])
    renamed = rk.Counts(counts.values, other, counts.calendar)
    assert np.array_equal(kind().recover(renamed).trajectories.cells, recovered(kind).trajectories.cells)
