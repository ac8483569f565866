"""Habits as an attack: exact, deterministic, resumable, stoppable, blind to the truth, honest about its reach."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.small import random_truth, truths

import rekindle as rk
from rekindle.attacks.habits import Habits, schedule
from rekindle.attacks.saving import read_run
from rekindle.evaluation.confidence import assess_confidence

quick = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def counts():
    truth = random_truth(np.random.default_rng(1), people=12, places=9, steps=70, step="2h", start="2024-03-01 04:00")
    return truth.counts()


@pytest.fixture(scope="module")
def found(counts):
    return Habits(effort="low", seed=3).recover(counts)


def same(one, other):
    return np.array_equal(one.trajectories.cells, other.trajectories.cells) and np.array_equal(
        one.confidence, other.confidence
    )


@quick
@given(truth=truths(away=True), batches=st.lists(st.integers(1, 4), max_size=6), seed=st.integers(0, 3))
def test_counts_are_exact_however_the_days_are_fed(truth, batches, seed):
    counts = truth.counts()
    attack = Habits(effort="low", seed=seed)
    whole = attack.recover(counts)
    assert whole.trajectories.counts() == counts
    assert whole.trajectories.people == counts.people
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    days = list(counts.calendar.days())
    while days:
        size = batches.pop() if batches else len(days)
        part, days = days[:size], days[size:]
        run.feed(counts.part(slice(part[0].start, part[-1].stop)))
    assert same(run.recovery(), whole)


@quick
@given(truth=truths(away=True, max_steps=24), known=st.integers(1, 7), more=st.integers(0, 3), ask=st.booleans())
def test_people_who_turn_up_later_were_away_before(truth, known, more, ask):
    counts = truth.counts()
    people = counts.people + more
    attack = Habits(effort="low")
    whole = attack.recover(rk.Counts(counts.values, counts.locations, counts.calendar, people))
    assert whole.trajectories.people == people
    run = attack.start(counts.locations, counts.calendar, people=known)
    days = list(counts.calendar.days())
    for day in days:
        values = counts.values[day]
        seen = max(1, int(values.sum(axis=1).max()))
        run.feed(rk.Counts(values, counts.locations, counts.calendar.part(day), people if day == days[-1] else seen))
        if ask:
            assert run.trajectories().people == run.people
    assert run.people == max(people, known)
    if known <= people:
        assert same(run.recovery(), whole)


def test_a_saved_run_knows_how_many_people_there_are(tmp_path):
    truth = random_truth(np.random.default_rng(3), people=6, places=4, steps=24, step="2h", away=0.4)
    counts = truth.counts()
    whole = Habits(effort="low").recover(rk.Counts(counts.values, counts.locations, counts.calendar, 9))
    run = Habits(effort="low").start(counts.locations, counts.calendar, people=2)
    first, second = counts.days()
    run.feed(rk.Counts(first.values, first.locations, first.calendar, 9))
    run.save(tmp_path / "run.npz")
    again = rk.resume(tmp_path / "run.npz")
    assert again.people == 9
    again.feed(second)
    assert same(again.recovery(), whole)


def test_phones_that_are_off_at_night_are_a_habit():
    truth = rk.SyntheticCity(people=20, days=5, step="1h", share_phones_off_at_night=0.4).trajectories()
    counts = truth.counts()
    assert counts.away.max() > 4
    found = Habits(effort="low").recover(counts)
    assert found.trajectories.counts() == counts
    accuracy = rk.evaluate(found.trajectories, truth).accuracy
    assert accuracy > 0.7
    assert accuracy > rk.evaluate(rk.Enhanced().recover(counts).trajectories, truth).accuracy + 0.1


def test_fills_confidence_for_every_point(counts, found):
    assert found.confidence.shape == (12, 70)
    assert found.confidence.dtype == np.float32
    assert found.confidence.min() >= 0
    assert found.confidence.max() <= 1


@pytest.mark.parametrize("effort", ["low", "normal"])
def test_same_seed_same_bytes_on_any_number_of_threads(counts, effort):
    one = Habits(effort=effort, seed=3, workers=1).recover(counts)
    two = Habits(effort=effort, seed=3, workers=2).recover(counts)
    assert same(one, two)


def test_online_gives_the_best_of_the_days_so_far_and_ends_like_recover(counts, found):
    run = Habits(effort="low", seed=3).start(counts.locations, counts.calendar, people=counts.people)
    assert run.trajectories().steps == 0
    for day in counts.days():
        run.feed(day)
        so_far = run.recovery()
        assert so_far.trajectories.counts() == counts.part(slice(0, run.steps_done))
        assert so_far is run.recovery()
    assert same(so_far, found)


def test_saved_and_resumed_ends_like_recover(counts, found, tmp_path):
    attack = Habits(effort="low", seed=3)
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    days = list(counts.days())
    for day in days[:2]:
        run.feed(day)
    run.recovery()
    run.save(tmp_path / "run.npz")
    again = attack.start(counts.locations, counts.calendar, people=counts.people)
    again.restore(read_run(tmp_path / "run.npz"))
    assert same(again.recovery(), run.recovery())
    for day in days[2:]:
        again.feed(day)
    assert same(again.recovery(), found)


def test_answers_found_before_a_stop_are_saved_and_not_looked_for_again(counts, tmp_path, monkeypatch):
    attack = Habits(effort="normal", seed=1, workers=1)
    whole = attack.recover(counts)
    run = attack.start(
        counts.locations, counts.calendar, people=counts.people, progress=lambda done, total: done == 2 and run.stop()
    )
    run.feed(counts)
    assert run.stopped
    assert run.trajectories().counts() == counts
    run.save(tmp_path / "run.npz")
    saved = read_run(tmp_path / "run.npz")
    assert len(saved.arrays["numbers"]) > 0
    looked_for = []
    follow = schedule.follow

    def watched(problem, made, number, stopped):
        looked_for.append(number)
        return follow(problem, made, number, stopped)

    monkeypatch.setattr("rekindle.attacks.habits.schedule.follow", watched)
    again = attack.start(counts.locations, counts.calendar, people=counts.people)
    again.restore(saved)
    assert same(again.recovery(), whole)
    assert looked_for
    assert not set(looked_for) & set(saved.arrays["numbers"].tolist())


def test_damaged_answers_are_refused(counts, tmp_path):
    attack = Habits(effort="low")
    run = attack.start(counts.locations, counts.calendar, people=counts.people)
    run.feed(counts)
    run.save(tmp_path / "run.npz")
    saved = read_run(tmp_path / "run.npz")
    saved.arrays["tracks"][0, 0] = saved.arrays["tracks"][0, 1]
    with pytest.raises(rk.errors.InvalidData, match="counts"):
        attack.start(counts.locations, counts.calendar, people=counts.people).restore(saved)


def test_stop_before_anything_was_found_still_gives_exact_counts(counts):
    run = Habits(effort="low").start(counts.locations, rk.Calendar(counts.calendar.start, "2h"), people=12)
    run.feed(counts)
    run.stop()
    assert run.trajectories().counts() == counts
    with pytest.raises(rk.errors.Stopped):
        run.feed(counts)


def test_reading_along_while_it_works():
    truth = random_truth(np.random.default_rng(2), people=20, places=16, steps=12 * 12, step="2h")
    counts = truth.counts()
    run = Habits(effort="low").start(counts.locations, counts.calendar, people=20)
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(run.trajectories())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run.feed(counts)
    done.set()
    watcher.join()
    for snapshot in (*seen, run.trajectories()):
        assert snapshot.steps in (0, counts.steps)
        if snapshot.steps:
            assert snapshot.counts() == counts


def test_progress_goes_through_the_days_once(counts):
    told = []
    Habits(effort="low").recover(counts, progress=lambda done, total: told.append((done, total)))
    days = counts.calendar.number_of_days
    assert told == [(day, days) for day in range(1, days + 1)]


def test_ctrl_c_ends_the_search_and_the_run_can_go_on(counts, found):
    def interrupt(done, total):
        raise KeyboardInterrupt

    run = Habits(effort="low", seed=3).start(
        counts.locations, counts.calendar, people=counts.people, progress=interrupt
    )
    with pytest.raises(KeyboardInterrupt):
        run.feed(counts)
    assert same(run.recovery(), found)


@pytest.mark.parametrize("wrong", [{"effort": "much"}, {"seed": -1}, {"seed": None}, {"seed": True}, {"workers": 0}])
def test_refuses_wrong_settings(wrong):
    with pytest.raises(rk.errors.InvalidSetting, match=next(iter(wrong))):
        Habits(**wrong)


def test_renamed_places_change_nothing(counts, found):
    renamed = rk.Locations(counts.locations.xy_km, [f"place {i}" for i in range(len(counts.locations))])
    assert same(Habits(effort="low", seed=3).recover(rk.Counts(counts.values, renamed, counts.calendar)), found)


def test_never_sees_the_truth():
    """Importing the attack brings in no room that has the truth."""
    code = (
        "import sys, types\n"
        "import importlib.util as u, pathlib\n"
        "root = pathlib.Path(u.find_spec('rekindle').origin).parent\n"
        "for name in ('rekindle', 'rekindle.attacks'):\n"
        "    package = types.ModuleType(name); package.__path__ = [str(root.joinpath(*name.split('.')[1:]))]\n"
        "    sys.modules[name] = package\n"
        "import rekindle.attacks.habits.schedule, rekindle.attacks.confidence\n"
        "bad = [m for m in sys.modules if m.startswith(('rekindle.evaluation', 'rekindle.sources', 'rekindle.prepare'))]\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_works_without_compilation_and_gives_the_same(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from tests.small import random_truth\n"
        "from rekindle.attacks.habits import Habits\n"
        "truth = random_truth(np.random.default_rng(4), people=4, places=4, steps=20, step='6h')\n"
        "found = Habits(effort='low').recover(truth.counts())\n"
        "np.savez(sys.argv[1], cells=found.trajectories.cells, confidence=found.confidence)\n"
    )
    files = []
    for flag in ("0", "1"):
        files.append(tmp_path / f"{flag}.npz")
        environment = os.environ | {"NUMBA_DISABLE_JIT": flag}
        subprocess.run([sys.executable, "-c", code, str(files[-1])], check=True, timeout=300, env=environment)
    compiled, plain = (np.load(file) for file in files)
    assert np.array_equal(compiled["cells"], plain["cells"])
    assert np.allclose(compiled["confidence"], plain["confidence"], atol=1e-3)


def test_people_of_habit_are_found_and_it_knows():
    """In a small city it finds far more than the enhanced attack, and what it claims is right."""
    truth = rk.SyntheticCity(people=12, days=6, step="1h").trajectories()
    counts = truth.counts()
    found = Habits().recover(counts)
    accuracy = rk.evaluate(found.trajectories, truth).accuracy
    assert accuracy > 0.85
    assert accuracy > rk.evaluate(rk.Enhanced().recover(counts).trajectories, truth).accuracy + 0.1
    claims = assess_confidence(found.trajectories, found.confidence, truth).claims
    assert claims.points > 0.5
    assert claims.points_right > 0.9


def test_the_details_say_which_answers_became_the_result(counts, found):
    low = schedule.EFFORTS["low"]
    details = found.details
    assert (details.answers == low.members).all()
    assert (details.voters == low.voters).all()
    assert (details.exchanges == low.proposals * counts.people).all()
    assert not details.group_exchanges.any()
    assert repr(details) == "HabitsDetails(answers=4, voters=6, exchanges=360, group_exchanges=0, block_people=0)"


def test_with_groups_these_are_the_answers_of_the_last_groups(counts, monkeypatch):
    monkeypatch.setitem(schedule.EFFORTS, "low", schedule.Effort(2, 2, 1, 3, 5e7, 1e10, 66, 1.4, 2, 4, 5))
    problem = counts.part(slice(0, 34))
    run = Habits(effort="low").start(problem.locations, problem.calendar, people=problem.people)
    run.feed(problem)
    details = run.recovery().details
    assert details.answers[0] == schedule.SECOND * 2
    assert details.voters[0] == 1
    assert details.exchanges[0] == 3 * problem.people
    assert details.group_exchanges[0] == schedule.GROUP_PROPOSALS * 3 * problem.people
