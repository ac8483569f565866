import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.small import truths

import rekindle as rk
from rekindle.attacks import ATTACKS
from rekindle.defences import (
    PRESETS,
    Cap,
    Chain,
    GeometricNoise,
    LaplaceNoise,
    NothingLeft,
    Round,
    Suppress,
)
from rekindle.model import AppliedDefence, Release
from rekindle.repairing import REPAIRS, guess_people, hold_still, repair
from rekindle.repairing.observations import exact_totals
from rekindle.repairing.whole import nearest_counts


@settings(max_examples=60, deadline=None)
@given(truth=truths(away=True))
def test_untouched_counts_come_back(truth):
    """Exact numbers are never changed, whatever they add up to."""
    counts = truth.counts()
    assert repair(counts) == counts
    untouched = Release(counts.values, counts.locations, counts.calendar, [AppliedDefence(name="None", exact=True)])
    assert np.array_equal(repair(untouched).values, counts.values)
    assert repair(untouched).people == counts.totals.max()
    for one in REPAIRS.values():
        assert one(untouched, truth.people) == counts


published = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
    elements=st.one_of(st.just(np.nan), st.integers(-3, 30).map(float), st.floats(-1e4, 1e4), st.just(1e6)),
).filter(lambda values: not np.isnan(values).all())


numbers = st.one_of(st.none(), st.sampled_from([1e-300, 0.5, 2.0, 5, 1e9, 1e300]))
statements = st.lists(
    st.builds(
        AppliedDefence,
        name=st.just("Anything"),
        exact=st.booleans(),
        adds_noise=st.booleans(),
        withholds_below=numbers,
        rounds_to=numbers,
        caps_at=numbers,
    ),
    max_size=2,
)
"""What a file beside a table may state, true or not."""


@settings(max_examples=60, deadline=None)
@given(
    values=published,
    stated=statements,
    people=st.one_of(st.none(), st.integers(1, 50)),
    how=st.sampled_from([*REPAIRS]),
)
def test_any_release_becomes_valid_counts(values, stated, people, how):
    places = rk.Locations(np.column_stack([np.arange(values.shape[1]), np.zeros(values.shape[1])]))
    release = Release(values, places, rk.Calendar("2024-03-01", "1h"), stated)
    before = release.values.copy()
    people = people or guess_people(release)
    exact = exact_totals(release)
    if exact is not None and exact.max() > people:
        with pytest.raises(rk.errors.InvalidData, match="`people` is"):
            REPAIRS[how](release, people)
        return
    counts = REPAIRS[how](release, people)
    if exact is not None:
        assert np.array_equal(counts.values, values)
    assert counts.people == people
    assert counts == REPAIRS[how](release, people)
    assert np.array_equal(release.values, before, equal_nan=True)


def naive(release, people):
    """Withheld is 0, negative is 0, and the rest in proportion."""
    values = np.maximum(np.nan_to_num(release.values), 0.0)
    sums = values.sum(axis=1, keepdims=True)
    share = np.where(sums > 0, values / np.maximum(sums, 1e-9), 1 / values.shape[1]) * people
    totals = np.full(len(values), people)
    return nearest_counts(share, totals, np.zeros(share.shape), np.full(share.shape, np.inf), share < 0)


@pytest.fixture(scope="module", params=[0, 1, 2])
def city(request):
    return rk.SyntheticCity(people=60, days=3, step="20min", seed=request.param).trajectories()


@pytest.mark.parametrize(
    "defence",
    [
        *(LaplaceNoise(epsilon=epsilon, per="event", seed=0) for epsilon in (3.0, 1.0, 0.3, 0.1, 0.03)),
        GeometricNoise(epsilon=0.5, per="event", seed=0),
        Suppress(below=2),
        Suppress(below=4),
        Suppress(below=3, zeros=False),
        Round(to=2),
        Round(to=5),
        Cap(at=2),
        Chain([GeometricNoise(epsilon=1.0, per="event", seed=0), Suppress(below=2)]),
        Chain([Suppress(below=3), Round(to=5)]),
    ],
    ids=lambda defence: defence.describe(),
)
def test_better_than_a_naive_repair(city, defence):
    counts, release = city.counts().values, defence(city)
    ours = np.abs(repair(release, city.people).values - counts).mean()
    assert ours < np.abs(naive(release, city.people) - counts).mean()


@settings(max_examples=60, deadline=None)
@given(truth=truths(away=True), below=st.integers(2, 5), zeros=st.booleans(), how=st.sampled_from([*REPAIRS]))
def test_exact_numbers_are_kept(truth, below, zeros, how):
    counts = truth.counts()
    try:
        release = Suppress(below=below, zeros=zeros)(counts)
    except NothingLeft:
        return
    found = REPAIRS[how](release, truth.people).values
    assert np.array_equal(found[~release.withheld], counts.values[~release.withheld])
    assert found[release.withheld].max(initial=0) < below


@pytest.mark.parametrize("how", REPAIRS)
def test_what_is_published_exactly_stays(city, how):
    counts = city.counts()
    release = Suppress(below=3)(counts)
    found = REPAIRS[how](release, city.people).values
    assert np.array_equal(found[~release.withheld], counts.values[~release.withheld])
    assert found[release.withheld].max() <= 2


def test_rounded_numbers_stay_within_their_interval(city):
    counts = city.counts()
    found = repair(Round(to=2)(counts), city.people).values
    assert np.array_equal(np.floor(found / 2 + 0.5), np.floor(counts.values / 2 + 0.5))


def test_withheld_is_zero_where_everything_adds_up(city):
    counts = city.counts()
    values = np.where(counts.values == 0, np.nan, counts.values)
    assert repair(Release(values, counts.locations, counts.calendar)) == counts


@pytest.mark.parametrize("people", [0, -1, 2.5, True, "60"])
def test_refuses_people(city, people):
    with pytest.raises(rk.errors.InvalidSetting, match="`people` is"):
        repair(city.counts(), people)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_no_preset_crashes_any_attack(attack, preset):
    truth = rk.SyntheticCity(people=150, days=2, step="2h", width_km=3, height_km=3).trajectories()
    counts = repair(preset.seeded(0)(truth))
    assert attack().recover(counts).trajectories.counts() == counts


def test_frozen_is_the_same_at_every_step(city):
    release = LaplaceNoise(epsilon=0.1, per="event", seed=0)(city)
    found = REPAIRS["frozen"](release, city.people).values
    assert (found == found[0]).all()
    mean = release.values.mean(axis=0)
    assert np.corrcoef(found[0], mean)[0, 1] > 0.7


def noisy_days(days, start="2024-03-04"):
    """Two locations: by day all 8 people are in the second, by night in the first; at weekends always in the first."""
    hour, day = np.arange(24 * days) % 24, np.arange(24 * days) // 24
    out = (hour >= 8) & (hour < 18) & (day % 7 < 5)
    counts = np.where(out[:, None], [0, 8], [8, 0])
    noise = np.random.default_rng(0).normal(0, 0.7, counts.shape)
    return counts, Release(counts + noise, rk.Locations([[0, 0], [1, 0]]), rk.Calendar(start, "1h"))


def test_daily_profile_follows_the_day():
    counts, release = noisy_days(5)
    assert np.abs(REPAIRS["daily profile"](release, 8).values - counts).max() <= 1


def test_daily_profile_keeps_weekends_apart_where_there_are_enough():
    counts, release = noisy_days(21)
    assert np.abs(REPAIRS["daily profile"](release, 8).values - counts).max() <= 1
    counts, release = noisy_days(7)
    assert np.abs(REPAIRS["daily profile"](release, 8).values - counts).max() > 1


def test_a_stated_threshold_limits_what_is_withheld():
    """Below 5 is withheld, the smallest published number is 9: the others are at most 4 all the same."""
    counts = rk.Counts(
        [[9, 4, 4, 0], [17, 0, 0, 0]],
        rk.Locations(np.eye(4)[:, :2] + np.arange(4)[:, None]),
        rk.Calendar("2024-03-01", "1h"),
    )
    for one in REPAIRS.values():
        assert one(Suppress(below=5)(counts), 17).values[0, 1:].max() <= 4


def test_a_stated_base_is_used_where_numbers_share_a_larger_one():
    counts = rk.Counts(
        [[4, 4, 3], [5, 4, 2]], rk.Locations([[0, 0], [1, 0], [2, 0]]), rk.Calendar("2024-03-01", "1h")
    )
    release = Round(to=2)(counts)
    assert release.values.tolist() == [[4, 4, 4], [6, 4, 2]]
    assert np.abs(repair(release, 11).values - release.values).max() <= 1


def without_phones_at_night(truth, share=0.4):
    """The same city, where that share of the people is away from 23:00 to 06:00."""
    cells, hours = truth.cells.copy(), truth.calendar.times().astype("datetime64[h]").astype(int) % 24
    off = np.random.default_rng(0).random(truth.people) < share
    cells[np.ix_(off, (hours >= 23) | (hours < 6))] = rk.AWAY
    return rk.Trajectories(cells, truth.locations, truth.calendar)


@pytest.fixture(scope="module")
def sleepy():
    return without_phones_at_night(rk.SyntheticCity(people=400, days=3, step="1h", seed=1).trajectories())


@pytest.mark.parametrize("how", REPAIRS)
@pytest.mark.parametrize(
    ("defence", "off"),
    [
        (LaplaceNoise(epsilon=3.0, per="event", seed=0), 0.02),
        (GeometricNoise(epsilon=0.5, per="event", seed=0), 0.06),
        (Suppress(below=3), 0.05),
        (Suppress(below=3, zeros=False), 0.03),
        (Round(to=3), 0.05),
        (Round(to=5), 0.05),
    ],
    ids=lambda value: value.describe() if isinstance(value, rk.defences.Defence) else None,
)
def test_repaired_totals_follow_people_who_come_and_go(sleepy, defence, off, how):
    truth = sleepy.counts()
    found = REPAIRS[how](defence(sleepy), sleepy.people)
    assert found.people == sleepy.people
    assert found.totals.max() <= sleepy.people
    assert np.abs(found.totals - truth.totals).mean() <= off * sleepy.people
    assert np.abs(sleepy.people - truth.totals).mean() > 0.1 * sleepy.people  # what a constant total would be off by


@pytest.mark.parametrize(
    "defence",
    [
        LaplaceNoise(epsilon=1.0, per="event", seed=0),
        GeometricNoise(epsilon=0.3, per="event", seed=1),
        Suppress(below=3),
        Suppress(below=5, zeros=False),
        Round(to=5),
        Cap(at=4),
        Chain([Suppress(below=3), Round(to=5)]),
    ],
    ids=lambda defence: defence.describe(),
)
def test_where_nobody_is_away_the_total_stays_the_same(city, defence):
    for one in REPAIRS.values():
        assert (one(defence(city), city.people).totals == city.people).all()


def test_a_number_of_people_below_the_totals_is_refused(city):
    with pytest.raises(rk.errors.InvalidData, match="`people` is 59, but the counts"):
        repair(Release.of(city.counts()), 59)


def test_who_is_never_counted_is_away_behind_noise_too(city):
    """Of 90 known people 60 are in each step."""
    found = repair(LaplaceNoise(epsilon=3.0, per="event", seed=0)(city), 90)
    assert found.people == 90
    assert np.abs(found.totals - 60).max() <= 1


def test_the_reference_in_which_nobody_moves_follows_the_totals(sleepy):
    truth = sleepy.counts()
    still = hold_still(truth)
    assert np.array_equal(still.totals, truth.totals)
    full = still.values[truth.totals == sleepy.people]
    assert (full == full[0]).all()
