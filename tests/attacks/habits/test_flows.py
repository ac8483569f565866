"""Habits along flows: every part keeps them, and is the best that can be where that can be worked out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.wishes import likely_places
from tests.small import line, random_truth, truths

import rekindle as rk
from rekindle.attacks.flows import Windows
from rekindle.attacks.habits import flow_polish, wishes
from rekindle.attacks.habits.flow_polish import polish_flows, project_votes
from rekindle.attacks.habits.flows import track_flows
from rekindle.attacks.habits.problem import Problem
from rekindle.attacks.habits.rng import generator
from rekindle.attacks.habits.search import HabitModel, SwapSearch
from rekindle.attacks.habits.wishes import follow_wishes
from rekindle.evaluation.confidence import assess_confidence


def problem_of(truth):
    counts = truth.counts()
    windows = Windows.of(truth.flows())
    return Problem.of(counts.values, counts.locations, counts.calendar, counts.people, windows)


def tracks_of(truth, problem):
    """The truth in places and ticks."""
    place = np.full(len(truth.locations) + 1, -1)
    place[problem.places] = np.arange(len(problem.places))
    return place[truth.cells[:, problem.starts[:-1]]].astype(np.int32)


@pytest.fixture(scope="module", params=[0.0, 0.3], ids=["constant", "come and go"])
def truth(request):
    rng = np.random.default_rng(5)
    return random_truth(rng, people=10, places=9, steps=96, step="1h", stay=0.8, away=request.param)


@pytest.fixture(scope="module")
def problem(truth):
    return problem_of(truth)


def test_a_tick_ends_when_anybody_moves():
    """Two people who exchange their places change no count."""
    truth = line([0, 0, 1, 1], [1, 1, 0, 0])
    assert problem_of(truth).starts.tolist() == [0, 2, 4]
    counts = truth.counts()
    assert Problem.of(counts.values, counts.locations, counts.calendar).starts.tolist() == [0, 4]


@settings(max_examples=50, deadline=None)
@given(truth=truths(away=True))
def test_the_truth_has_its_flows(truth):
    problem = problem_of(truth)
    tracks = tracks_of(truth, problem)
    problem.check(tracks)
    assert np.array_equal(problem.expand(tracks), truth.cells)


def test_tracks_of_other_flows_are_refused():
    problem = problem_of(line([0, 1, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1]))
    problem.check(np.array([[0, 1, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1]]))
    with pytest.raises(rk.errors.InvalidData, match="flows"):
        problem.check(np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 1]]))


@settings(max_examples=100, deadline=None)
@given(truth=truths(away=True), backwards=st.booleans(), noise=st.sampled_from([0.05, 1.0]), seed=st.integers(0, 9))
def test_tracks_have_the_flows(truth, backwards, noise, seed):
    problem = problem_of(truth)
    problem.check(track_flows(problem, seed, backwards=backwards, noise=noise))


def test_the_last_to_arrive_leaves_first_and_goes_on():
    """A resident at home, and somebody who passes through."""
    resident, passer = [1] * 6, [0, 0, 1, 2, 2, 2]
    problem = problem_of(line(resident, passer))
    for backwards in (False, True):
        found = {tuple(row) for row in problem.expand(track_flows(problem, 0, backwards=backwards)).tolist()}
        assert found == {tuple(resident), tuple(passer)}


@settings(max_examples=50, deadline=None)
@given(truth=truths(away=True, max_people=12), seed=st.integers(0, 9))
def test_people_are_followed_to_where_they_are_wanted(truth, seed):
    """Whatever that is, along the flows."""
    problem = problem_of(truth)
    own = tracks_of(truth, problem)
    random = np.array([np.random.default_rng(seed).permutation(row) for row in own.T]).T
    problem.check(follow_wishes(problem, [random, own]))
    problem.check(follow_wishes(problem, [own]))


@settings(max_examples=15, deadline=None)
@given(truth=truths(away=True, max_people=6), seed=st.integers(0, 9))
def test_wishes_are_weighed_as_by_plain_loops(truth, seed):
    problem = problem_of(truth)
    rng = np.random.default_rng(seed)
    own = tracks_of(truth, problem)
    asked = [own, np.array([rng.permutation(row) for row in own.T]).T]
    kept = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wishes, "exchange_towards", lambda tracks, *_, likely: kept.update(likely=likely) or tracks)
        wishes.follow_wishes(problem, asked)
    found, rank = kept["likely"]
    people, places = rank.shape
    chance = np.zeros((problem.ticks, people, places))
    bins = np.minimum(problem.clock * wishes.BINS / 24, wishes.BINS - 1).astype(int)
    for person in range(people):
        time = np.zeros((wishes.BINS, places))
        for tick in range(problem.ticks):
            for wish in asked:
                time[bins[tick], wish[person, tick]] += problem.lengths[tick]
        for tick in range(problem.ticks):
            now = time[bins[tick]]
            usual = np.log(0.6 * now / max(now.sum(), 1) + 0.39 * time.sum(axis=0) / time.sum() + 1e-4)
            worth = wishes.USUAL * usual
            for wish in asked:
                worth[wish[person, tick]] += wishes.EAGER / 2
            worth *= problem.lengths[tick] / problem.steps_per_day
            can = rank[person] >= 0
            chance[tick, person, can] = np.exp(np.maximum(worth[can] - worth[can].max(), wishes.LEAST))
    flows = problem.flows
    listed = np.stack([flows.origin, flows.goal, flows.number], axis=1)
    by_tick = [listed[flows.offsets[t] : flows.offsets[t + 1]].tolist() for t in range(problem.ticks)]
    expected = likely_places(by_tick, chance, wishes.SWEEPS, wishes.SCALINGS)
    for person in range(people):
        can = np.flatnonzero(rank[person] >= 0)
        assert np.allclose(found[person][:, rank[person, can]], expected[:, person, can], atol=2e-3)


@settings(max_examples=20, deadline=None)
@given(truth=truths(away=True, max_people=5), seed=st.integers(0, 9))
def test_everyone_takes_the_likeliest_way_that_is_left(truth, seed):
    problem = problem_of(truth)
    flows, (ticks, places), people = problem.flows, problem.counts.shape, problem.people
    rng = np.random.default_rng(seed)
    likely = wishes.Likely(
        rng.random((people, ticks, places), np.float32), np.tile(np.arange(places, dtype=np.int8), (people, 1))
    )
    own = likely.rank.astype(np.int64)
    order = rng.permutation(people)
    listed = (flows.offsets, flows.origin, flows.goal, flows.number)
    found = wishes._route(order, problem.counts[0].copy(), *listed, own, likely, problem.lengths)
    problem.check(found)
    worth = np.log(likely.chance / wishes.UNLIKELY) * problem.lengths[:, None]
    for turn, person in enumerate(order):
        rest = found[order[turn:]]  # what is left are the ways of those who come later
        best = {place: worth[person, 0, place] for place in rest[:, 0]}
        for tick in range(1, ticks):
            ways = set(zip(rest[:, tick - 1], rest[:, tick], strict=True))
            best = {
                goal: worth[person, tick, goal] + max(best[a] for a, b in ways if b == goal) for goal in rest[:, tick]
            }
        assert worth[person, np.arange(ticks), found[person]].sum() == pytest.approx(max(best.values()), rel=1e-5)


def test_wishes_that_can_be_are_met():
    truth = rk.SyntheticCity(people=80, days=3, step="1h", width_km=4, height_km=4).trajectories()
    problem = problem_of(truth)
    own = tracks_of(truth, problem)
    assert (follow_wishes(problem, [own]) == own).mean() > 0.99
    rng = np.random.default_rng(1)
    wrong = own.copy()
    for tick in range(problem.ticks):
        some = rng.permutation(80)[:16]  # who is taken for one another at this tick
        wrong[some, tick] = own[np.roll(some, 1), tick]
    found = follow_wishes(problem, [wrong])
    problem.check(found)
    assert (found == own).mean() > (wrong == own).mean() + 0.05


def test_crowds_are_sent_together():
    """More people and destinations than are priced alone: flows are kept, and who returns mostly returns to the same place."""
    rng = np.random.default_rng(2)
    home = rng.integers(0, 9, 400)
    cells = np.repeat(home[:, None], 24, axis=1)
    cells[:, 8:12] = np.where(rng.random((400, 1)) < 0.9, rk.AWAY, cells[:, 8:12])
    cells[:, 16:20] = rng.integers(0, 9, (400, 1))
    places = rk.Locations([[x % 3, x // 3] for x in range(9)])
    truth = rk.Trajectories(cells, places, rk.Calendar("2024-03-01", "1h"))
    problem = problem_of(truth)
    for backwards in (False, True):
        found = track_flows(problem, 0, backwards=backwards)
        problem.check(found)
        expanded = problem.expand(found)
        assert (expanded[:, 7] == expanded[:, 12]).mean() > 0.95
    own = tracks_of(truth, problem)
    found = follow_wishes(problem, [own])
    problem.check(found)
    assert (found == own).mean() > 0.9


def test_search_keeps_the_flows(truth, problem):
    tracks = track_flows(problem, 3)
    model = HabitModel.learn(problem, [tracks])
    chain = SwapSearch(problem, model, tracks, generator(1))
    before = chain.score
    assert chain.run(300) > 0
    problem.check(chain.tracks)
    assert chain.score > before
    again = SwapSearch(problem, model, chain.tracks, generator(1))
    assert again.score == pytest.approx(chain.score)


def test_polish_and_votes_keep_the_flows(problem):
    answers = [track_flows(problem, seed) for seed in range(3)]
    model = HabitModel.learn(problem, answers)
    for tracks, sure in (
        polish_flows(problem, problem.flows, model, answers, rounds=2),
        project_votes(problem, answers),
    ):
        problem.check(tracks)
        assert tracks.dtype == np.int32
        assert sure.shape == tracks.shape
        assert ((sure >= 0) & (sure <= 1 + 1e-6)).all()


def test_votes_of_one_mind_are_the_answer(problem):
    answer = track_flows(problem, 3)
    tracks, sure = project_votes(problem, [answer, answer])
    assert np.array_equal(tracks, answer)
    assert (sure == 1).all()


def test_weights_are_scaled_until_everyone_is_expected_where_the_flows_are(problem, monkeypatch):
    """The marginals of all chains add up to the counts, more closely the more sweeps there are."""
    seen = []
    kept = flow_polish.expect

    def spy(marginal, *others):
        kept(marginal, *others)
        seen.append(marginal.sum(axis=1))

    monkeypatch.setattr(flow_polish, "expect", spy)
    answers = [track_flows(problem, seed) for seed in range(2)]
    polish_flows(problem, problem.flows, HabitModel.learn(problem, answers), answers, rounds=12)
    counts = problem.counts[problem.counts > 0]
    wrong = [np.abs(each - counts).max() for each in seen]
    assert wrong[-1] < 0.05
    assert wrong[-1] < wrong[0]


def test_habits_tell_people_apart_who_meet_every_night():
    """Two people in one home, of whom one goes left and the other right every day; at noon strangers cross their ways."""
    left, right = [2, 2, 0, 0, 0, 2], [2, 2, 4, 4, 4, 2]
    stranger = [1, 0, 0, 1, 1, 1], [3, 4, 4, 3, 3, 3]
    truth = line(*([*row] * 6 for row in (left, right, *stranger)), step="4h")
    found = rk.Habits(effort="low").recover(flows=truth.flows())
    assert rk.evaluate(found.trajectories, truth).accuracy == 1


def test_flows_of_one_step_and_of_nobody_who_moves():
    still = line([0, 0, 0], [1, 1, 1])
    assert rk.evaluate(rk.Habits(effort="low").recover(flows=still.flows()).trajectories, still).accuracy == 1
    moment = line([0], [1])
    assert rk.Habits(effort="low").recover(moment.counts(), flows=moment.flows()).trajectories.steps == 1


def test_a_saved_run_with_damaged_flows_is_refused(truth, tmp_path):
    flows, counts = truth.flows(), truth.counts()
    run = rk.Habits(effort="low").start(truth.locations, truth.calendar, people=truth.people)
    run.feed(next(counts.days()), flows=flows)
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as saved:
        arrays = dict(saved)
    assert rk.resume(tmp_path / "run.npz").days_done == 1
    arrays["flow_count"] = arrays["flow_count"] + 1
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(rk.errors.InvalidFile, match="damaged"):
        rk.resume(tmp_path / "other.npz")


def test_the_confidence_of_flows_is_calibrated():
    """On a city that was not used to fit it."""
    truth = rk.SyntheticCity(people=40, days=5, step="1h", seed=3).trajectories()
    found = rk.Habits(effort="low", workers=1).recover(flows=truth.flows())
    mapping = rk.evaluate(found.trajectories, truth).mapping
    sure = assess_confidence(found.trajectories, found.confidence, truth, mapping=mapping)
    assert sure.calibration_error < 0.05
    assert sure.claims.points > 0.5
    assert sure.claims.points_right > 0.9
