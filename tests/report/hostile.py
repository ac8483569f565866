"""A small audit in which every name tries to run as a script."""

from functools import cache

import rekindle as rk
from rekindle.auditing import audit
from rekindle.defences import GeometricNoise, Round

HOSTILE = (
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    '"><svg onload=window.hacked=1>',
    "'-window.hacked=1-'",
    "${window.hacked=1}\u2028\u2029",
    "<!--<script>",
    "&lt;b&gt; ]]>",
)


def hostile_truth():
    city = rk.SyntheticCity(people=8, days=2, step="1h", width_km=4, height_km=4).trajectories()
    names = [HOSTILE[at] if at < len(HOSTILE) else f"cell {at}" for at in range(len(city.locations))]
    locations = rk.Locations(city.locations.xy_km, names)
    return rk.Trajectories(city.cells, locations, city.calendar, HOSTILE)


def hostile_audit(with_truth=True):
    return _audited(with_truth)


@cache
def _audited(with_truth):
    truth = hostile_truth()
    return audit(
        truth if with_truth else truth.counts(),
        attacks=[rk.Baseline(), rk.Enhanced()],
        defences=[Round(to=2), GeometricNoise(epsilon=1, per="event")],
        seeds=2,
        workers=1,
    )
