"""The machine of the paper: which cost is whose, days side by side, costs of one's own, the first step of a day."""

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from tests.reference.plain import step_with_costs
from tests.small import line, random_truth

import rekindle as rk
from rekindle.assignment import steps
from rekindle.attacks import costs, day_by_day
from rekindle.errors import InvalidData, InvalidSetting


@pytest.fixture(scope="module")
def counts():
    return random_truth(np.random.default_rng(4), people=10, places=9, steps=48, step="1h").counts()


@dataclass(frozen=True)
class Squared:
    """Not a metric: long moves cost far more, and one place is worth a detour."""

    def __call__(self, previous, current, context):
        cost = context.locations.distances[current] ** 2
        cost[:, 0] -= 1.5 * (context.departs.hour >= 6)
        return cost + context.transitions[[0]].toarray()[0] * 1e-3


def test_any_move_cost_gets_an_exact_solution(counts):
    found = rk.DayByDay(first=rk.attacks.Stay(), night=Squared(), day=Squared()).recover(counts)
    assert found.trajectories.counts() == counts
    cells, distances = found.trajectories.cells, counts.locations.distances
    for step in range(1, 23):  # the first day: no transitions are known yet
        columns = np.repeat(np.arange(9), counts.values[step + 1])
        matrix = distances[cells[:, step]][:, columns] ** 2 - 1.5 * (step >= 6) * (columns == 0)
        least = matrix[linear_sum_assignment(matrix)].sum()
        assert found.details.step_costs[step + 1] == pytest.approx(least, abs=1e-9)


def test_a_built_in_cost_wrapped_as_any_other_costs_the_same(counts):
    def wrapped(previous, current, context):
        return rk.attacks.Popular()(previous, current, context)

    plain = rk.Enhanced(night=wrapped, day=wrapped).recover(counts)
    first_day = counts.calendar.day(0)
    fast = rk.Enhanced().recover(counts)
    assert plain.details.step_costs[:3] == pytest.approx(fast.details.step_costs[:3], abs=1e-9, nan_ok=True)
    assert plain.trajectories.part(first_day).counts() == counts.part(first_day)


def test_a_target_cost_with_a_price_of_its_own_is_asked_for_it(counts):
    class Dear(rk.attacks.Velocity):
        def __call__(self, previous, current, context):
            return 2 * super().__call__(previous, current, context)

    dear, plain = rk.Baseline(day=Dear()).recover(counts), rk.Baseline().recover(counts)
    assert dear.details.step_costs[7] == pytest.approx(2 * plain.details.step_costs[7])


def test_another_linking_cost(counts):
    def same_start(past, today, locations):
        return (past[:, :1] != today[:, 0]).astype(float)

    found = rk.Baseline(linking=same_start).recover(counts)
    cells = found.trajectories.cells
    assert found.details.link_costs[1] == (cells[:, 0] != cells[:, 24]).sum()


def test_costs_that_forbid_too_much_are_refused(counts):
    def nowhere(previous, current, context):
        return np.full((len(current), 9), np.inf)

    with pytest.raises(rk.errors.InvalidData, match="forbid"):
        rk.DayByDay(day=nowhere, night=nowhere).recover(counts)


def test_costs_of_a_wrong_shape_are_refused(counts):
    with pytest.raises(rk.errors.InvalidData, match="shape"):
        rk.DayByDay(day=lambda o, p, s: np.zeros((1, 1)), night=lambda o, p, s: np.zeros((1, 1))).recover(counts)
    with pytest.raises(rk.errors.InvalidData, match="linking cost"):
        rk.Baseline(linking=lambda past, today, places: np.full((10, 10), np.nan)).recover(counts)


@pytest.mark.parametrize(
    "settings",
    [{"lookback_days": 0}, {"lookback_days": 1.5}, {"seed": -1}, {"day": "velocity"}, {"day": rk.attacks.Stay}],
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(rk.errors.InvalidSetting, match=next(iter(settings))):
        rk.Enhanced(**settings)


def test_settings_are_keyword_only_and_typos_are_refused():
    with pytest.raises(TypeError):
        rk.Enhanced(3)
    with pytest.raises(TypeError):
        rk.Enhanced(lookback=3)


@pytest.mark.parametrize(
    ("attack", "people", "seconds"),
    # A week in steps of 30 minutes, as in docs/benchmarks.md.
    [
        (rk.Baseline(), 1_000, 0.94), (rk.Baseline(), 10_000, 20.5), (rk.Baseline(), 100_000, 89), (rk.Baseline(), 1_000_000, 312),
        (rk.Enhanced(), 1_000, 0.65), (rk.Enhanced(), 10_000, 10.9), (rk.Enhanced(), 100_000, 142), (rk.Enhanced(), 1_000_000, 1_231),
    ],
)  # fmt: skip
def test_the_forecast_of_time_is_near_what_was_measured(attack, people, seconds):
    calendar = rk.Calendar("2024-01-01", "30min", 336)
    counts = rk.Counts(np.full((336, 1), people), rk.Locations(np.zeros((1, 2))), calendar)
    assert 0.5 < attack.work(counts) / seconds < 2


def test_days_side_by_side_give_the_same_bytes():
    truth = random_truth(np.random.default_rng(6), people=30, places=16, steps=24 * 5, step="1h")
    one, two = (rk.Baseline(workers=workers).recover(truth.counts()) for workers in (1, 2))
    assert one.trajectories.cells.tobytes() == two.trajectories.cells.tobytes()
    assert one.details.step_costs.tobytes() == two.details.step_costs.tobytes()
    assert rk.Baseline(workers=1) == rk.Baseline(workers=2)


@pytest.fixture(scope="module")
def few():
    return random_truth(np.random.default_rng(4), people=6, places=5, steps=24, step="2h").counts()


def test_settings_are_by_keyword():
    for kind in (rk.Baseline, rk.Enhanced, rk.DayByDay):
        with pytest.raises(TypeError, match="positional"):
            kind(rk.attacks.Stay())
        with pytest.raises(AttributeError):
            kind().seed = 3
    assert rk.Baseline().settings()["lookback_days"] == 1
    assert rk.Enhanced().settings()["lookback_days"] == 3
    assert (rk.Baseline().night, rk.Baseline().day) == (rk.attacks.Stay(), rk.attacks.Velocity())


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_workers_out_of_range_are_refused(workers):
    with pytest.raises(InvalidSetting, match="`workers` is"):
        rk.Baseline(workers=workers)


@pytest.mark.parametrize(("people", "steps"), [(30, 20), (2, 3)])
def test_transitions_are_counted(people, steps):
    cells = np.random.default_rng(0).integers(0, 9, (people, steps)).astype(np.int32)
    plain = np.zeros((9, 9), int)
    for row in cells:
        for a, b in pairwise(row):
            plain[a, b] += 1
    found = day_by_day.count_transitions(cells, 9)
    assert found.dtype == np.int64
    assert np.array_equal(found.toarray(), plain)


def test_the_most_frequent_next_places():
    # The last number is stored, but is 0: that place was never seen to follow.
    data, rows, columns = [3, 3, 1, 2, 0], [0, 0, 1, 1, 2], [1, 2, 0, 2, 2]
    counted = sparse.csr_array((data, (rows, columns)), shape=(3, 3))
    indptr, indices = costs.popular_places(counted)
    assert indptr.tolist() == [0, 2, 3, 3]
    assert indices.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("start", "step", "kinds"),
    [
        ("2024-03-01 00:00", "2h", "fnnddddd"),  # departs at 0, 2 and 4, then at 6
        ("2024-03-01 05:00", "2h", "fddddddd"),
        ("2024-03-01 05:59", "30min", "fddddddd"),
        ("2024-03-01 06:00", "2h", "fddddddd"),
        ("2024-03-01 03:00", "1h", "fnnddddd"),
        ("2024-03-01 01:30", "4h", "fnddddddd"[:8]),
    ],
)
def test_which_cost_a_transition_has(few, start, step, kinds):
    def cost(previous, current, context):
        raise AssertionError

    first, night, day = (lambda *given, name=name: cost(*given) for name in "fnd")
    attack = rk.DayByDay(first=first, night=night, day=day)
    calendar = rk.Calendar(start, step)
    run = attack.start(few.locations, calendar, people=6)
    task = run._task(few.values[:9], 0)
    names = {id(first): "f", id(night): "n", id(day): "d"}
    assert "".join(names[id(each)] for each in task._costs(8)) == kinds
    assert task._costs(0) == []


def test_a_day_begins_without_a_step_before(few):
    seen = []

    def asked(previous, current, context):
        seen.append((context.departs, np.array_equal(previous, current)))
        return rk.attacks.Velocity()(previous, current, context)

    rk.DayByDay(first=asked, night=rk.attacks.Velocity(), day=rk.attacks.Velocity(), workers=1).recover(few)
    assert seen == [(day.calendar.start, True) for day in few.days()]


def test_a_gap_is_a_share_of_the_cost(few, monkeypatch):
    whole = steps.recover_day

    def with_gaps(*given, **named):
        found = whole(*given, **named)
        gaps = np.zeros(len(found.gaps))
        gaps[2] = 0.25 * max(found.costs[2], 1.0)
        gaps[3] = 1e-12
        return steps.DayResult(found.cells, found.costs, gaps)

    monkeypatch.setattr(day_by_day, "recover_day", with_gaps)
    assert rk.Baseline().recover(few).details.gap == pytest.approx(0.25)
    monkeypatch.setattr(day_by_day, "recover_day", whole)
    assert rk.Baseline().recover(few).details.gap == 0


def test_own_costs_are_solved_as_cheaply_as_by_the_plain_solver():
    rng = np.random.default_rng(1)
    table = rng.random((5, 5, 5))
    first = rng.integers(0, 5, 20).astype(np.int32)
    after = np.bincount(rng.integers(0, 5, 20), minlength=5)
    values = np.stack([np.bincount(first, minlength=5), after])
    kinds = np.array([steps.PRICED], np.uint8)
    solved = steps.recover_day(values, first, np.zeros((5, 2)), kinds, price=lambda step, o, p: table[o, p])
    _, least = step_with_costs(first, first, after, lambda o, p: table[o, p], np.arange(5))
    assert solved.costs[0] == pytest.approx(least, abs=1e-9)
    assert solved.gaps[0] == pytest.approx(0, abs=1e-9)
    assert np.array_equal(np.bincount(solved.cells[:, 1], minlength=5), after)
    assert table[first, first, solved.cells[:, 1]].sum() == pytest.approx(least)
    with pytest.raises(InvalidData, match="no `price` was given"):
        steps.recover_day(values, first, np.zeros((5, 2)), kinds)


@pytest.fixture(scope="module")
def week():
    rng = np.random.default_rng(4)
    return random_truth(rng, people=9, places=12, steps=70, step="2h", start="2024-03-01 04:00").counts()


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_only_later_midnights_miss_the_counts(kind, week):
    found = kind(first_step_counts="first_day").recover(week).trajectories.counts().values
    midnights = [day.start for day in week.calendar.days()]
    assert (found[midnights] == week.values[0]).all()
    others = np.setdiff1d(np.arange(week.steps), midnights)
    assert np.array_equal(found[others], week.values[others])
    assert (week.values[midnights] != week.values[0]).any(), "these week cannot tell the two apart"


def test_first_day_and_default_follow_the_text(week):
    text, code = rk.Enhanced().recover(week), rk.Enhanced(first_step_counts="first_day").recover(week)
    day = week.calendar.day(0)
    assert np.array_equal(text.trajectories.cells[:, day], code.trajectories.cells[:, day])
    assert rk.Enhanced() == rk.Enhanced(first_step_counts="each_day")
    assert text.trajectories.counts() == week


def test_a_day_is_walked_from_the_seeds():
    """Two towers: at the second midnight both people are in b, but the walk begins with one in each."""
    places = rk.Locations([[0, 0], [5, 0]], ["a", "b"])
    week = rk.Counts([[1, 1], [1, 1], [0, 2], [2, 0]], places, rk.Calendar("2024-01-01", "12h"))
    found = rk.Enhanced(first_step_counts="first_day").recover(week)
    assert sorted(found.trajectories.cells[:, 2:].tolist()) == [[0, 0], [1, 0]]
    assert found.details.step_costs[3] == 5.0


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_batches_and_a_saved_run_give_the_same(kind, week, tmp_path):
    attack = kind(first_step_counts="first_day", seed=1, workers=2)
    whole = attack.recover(week).trajectories
    run = attack.start(week.locations, week.calendar, people=week.people)
    days = list(week.days())
    for day in days[:2]:
        run.feed(day)
    run.save(tmp_path / "run.npz")
    resumed = rk.resume(tmp_path / "run.npz")
    assert resumed.attack.first_step_counts == "first_day"
    resumed.feed(week.part(slice(week.calendar.day(2).start, week.steps)))
    assert resumed.trajectories() == whole


def test_other_seedings_are_refused():
    with pytest.raises(
        rk.errors.InvalidSetting, match="`first_step_counts` is 'last_day'; choose one of each_day, first_day"
    ):
        rk.Enhanced(first_step_counts="last_day")


@pytest.mark.parametrize("kind", [rk.Baseline, rk.Enhanced])
def test_the_machine_begins_at_night(kind, week):
    late = rk.Counts(week.values, week.locations, rk.Calendar("2024-03-01 06:40", "40min"))
    with pytest.raises(
        rk.errors.InvalidData, match=r"begin at 2024-03-01 06:40.*Leave out the steps before the next midnight"
    ):
        kind().recover(late)
    assert kind().recover(late.between(start=datetime(2024, 3, 2))).trajectories.calendar.start.hour == 0
    for other in (rk.Habits(effort="low"), rk.Chance(), rk.Naive()):
        assert other.recover(late).trajectories.counts() == late


@dataclass(frozen=True)
class Steep:
    """A cost of one's own: long moves cost more than their distance."""

    def __call__(self, previous, current, context):
        return context.locations.distances[current] ** 1.5


@pytest.mark.parametrize(
    "attack", [rk.Baseline(), rk.Enhanced(), rk.Baseline(day=Steep()), rk.DayByDay(night=Steep())]
)
def test_what_is_found_does_not_depend_on_the_size_of_a_day(attack):
    """Hundreds who never leave a far place change nothing for the others: there is no other way for large days."""
    city = rk.SyntheticCity(people=40, days=1).trajectories()
    alone = attack.recover(city.counts()).trajectories.cells
    xy = np.vstack([city.locations.xy_km, [[500.0, 500.0]]])
    values = np.column_stack([city.counts().values, np.full(city.steps, 300)])
    crowded = attack.recover(rk.Counts(values, rk.Locations(xy), city.calendar)).trajectories.cells
    assert np.array_equal(crowded[:40], alone)
    assert (crowded[40:] == len(city.locations)).all()


def test_flows_and_a_cost_of_ones_own():
    """Prices by a function solve the same problems as targets do."""

    class Plain:
        remembers = False

        def __call__(self, previous, current, context):
            return rk.attacks.Velocity()(previous, current, context)

    rng = np.random.default_rng(3)
    for away in (0.0, 0.4):
        truth = random_truth(rng, people=15, places=6, steps=40, step="2h", stay=0.4, away=away, lattice=False)
        plain = rk.DayByDay(night=Plain(), day=Plain()).recover(flows=truth.flows())
        by_targets = rk.DayByDay(night=rk.attacks.Velocity(), day=rk.attacks.Velocity()).recover(flows=truth.flows())
        assert plain.trajectories.flows() == truth.flows()
        np.testing.assert_allclose(plain.details.step_costs, by_targets.details.step_costs, atol=1e-9)


def test_flows_link_people_across_midnight():
    """Two people who part each morning and meet each night, in a home that only habits tell apart."""
    left, right = [1, 0, 0, 1], [1, 2, 2, 1]
    truth = line(left * 3, right * 3, step="6h")
    found = rk.Enhanced().recover(flows=truth.flows()).trajectories
    assert rk.evaluate(found, truth).accuracy == 1


def test_flows_do_not_keep_people_mistaken_for_each_other():
    """Two people sleep in one place once, so that only what they did before tells who is who in the morning."""
    early, late = [0, 0, 1, 1, 0, 0], [2, 2, 1, 1, 2, 2]
    truth = line(early * 4, late * 4, step="4h")
    cells = truth.cells.copy()
    night = truth.calendar.steps_per_day * 2
    cells[:, night - 1 : night + 1] = 3
    truth = rk.Trajectories(cells, truth.locations, truth.calendar)
    for seed in range(5):
        found = rk.Baseline(seed=seed).recover(flows=truth.flows()).trajectories
        assert found.flows() == truth.flows()
        days = found.cells.reshape(2, 4, 6)[:, :, 1:5]  # without the night
        assert (days[:, 2:] == days[:, 1:2]).all()


@pytest.mark.parametrize("start", ["2024-03-04 00:00", "2024-03-04 04:00"])
def test_flows_and_the_time_of_day(start):
    """People are wanted where they were at the same time of the day before, also where the first day began later."""
    left, right = [1, 1, 0, 0, 1, 1], [1, 1, 2, 2, 1, 1]
    late = 0 if start.endswith("00:00") else 1
    whole = line((left * 4)[late:], (right * 4)[late:], step="4h")
    truth = rk.Trajectories(whole.cells, whole.locations, rk.Calendar(start, "4h", whole.steps))
    for seed in range(5):
        found = rk.Baseline(seed=seed).recover(flows=truth.flows()).trajectories
        assert rk.evaluate(found, truth).accuracy == 1


def test_flows_and_the_first_step_counts_of_the_published_code():
    truth = random_truth(np.random.default_rng(3), people=5, places=4, steps=24, step="2h")
    with pytest.raises(rk.errors.InvalidSetting, match="breaks the flows"):
        rk.Enhanced(first_step_counts="first_day").recover(flows=truth.flows())
