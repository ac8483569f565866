"""What tells the arguments of tasks apart."""

import numpy as np
from tests.small import random_truth

import rekindle as rk
from rekindle.auditing.tasks import identity
from rekindle.model import AppliedDefence, Release


def test_every_part_of_data_counts():
    truth = random_truth(np.random.default_rng(0), people=4, places=4, steps=12)
    counts = truth.counts()
    release = Release.of(counts)
    moved = rk.Locations(counts.locations.xy_km + 1, counts.locations.ids)
    renamed = rk.Locations(counts.locations.xy_km, ["a", "b", "c", "d"])
    named = rk.Trajectories(truth.cells, truth.locations, truth.calendar, "abcd")
    later = rk.Calendar("2024-03-02", "2h", 12)
    changed = counts.values.copy()
    changed[0] = changed[0][::-1]
    all_of_them = [
        truth,
        counts,
        release,
        named,
        rk.Counts(counts.values, moved, counts.calendar),
        rk.Counts(counts.values, renamed, counts.calendar),
        rk.Counts(counts.values, counts.locations, later),
        rk.Counts(changed, counts.locations, counts.calendar),
        Release(release.values, release.locations, release.calendar, [AppliedDefence(name="Round")]),
        None,
    ]
    assert len({identity(one) for one in all_of_them}) == len(all_of_them)
    assert identity(counts) == identity(truth.counts())


def test_class_settings_and_foreign_code_count():
    class Own(rk.Round):
        """Somebody's own."""

    parts = [rk.Enhanced(), rk.Enhanced(lookback_days=1), rk.Round(to=2), rk.Round(to=3), Own(to=2)]
    assert len({identity(one) for one in parts}) == len(parts)
    assert identity(rk.Round(to=2)) == identity(rk.Round(to=2))
    assert identity(rk.Round(to=2))[2] is None
    assert identity(Own(to=2))[2] is not None
    assert identity(np.arange(3)) != identity(np.arange(3).astype(np.int8)) != identity(np.zeros(3, np.int8))
