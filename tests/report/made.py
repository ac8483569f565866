"""Audits with given numbers: what the report says of them can be read without running an attack."""

from functools import cache

import numpy as np

import rekindle as rk
from rekindle.auditing.results import (
    AttackRisk,
    Audit,
    Exposed,
    ExposedPeople,
    Growth,
    GuessedPeople,
    PersonRisk,
    Precision,
    ReleaseRisk,
    Repairs,
)
from rekindle.auditing.risk import Estimate, judge

POINTS = (1, 2, 4, 8, 16)


def around(value, spread=0.02):
    return Estimate(value, value - spread, value + spread)


def exposing(half, almost, of):
    def counted(above, people):
        return Exposed(above, people, of, around(people / of), (people, people), people, 0.0)

    return ExposedPeople(counted(0.5, half), counted(0.9, almost), 0.97 if almost else 0.4, 0.6)


def risk(name, accuracy, advantage, exposed, **more):
    return AttackRisk(
        attack=name,
        people=8.0,
        uniqueness=(0.2, 0.4, 0.6, 0.8, 1.0),
        accuracy=around(accuracy),
        by_order=(accuracy, accuracy),
        advantage=advantage,
        exposed=exposed,
        error_km=1.5,
        home=around(0.5),
        work=around(0.4),
        reidentified=tuple(around(value) for value in (0.1, 0.2, 0.3, 0.4, 0.5)),
        learnt={p: around(0.1 + at / 10) for at, p in enumerate(POINTS)},
        by_hour=(0.25,) * 24,
        by_location=(0.5,) * 16,
        **more,
    )


def release(label, advantage, half=0, almost=0, of=8, included=1.0, **more):
    nobody = exposing(0, 0, of)
    sure = Precision((0.25, 0.5, 1.0), (0.9, 0.8, 0.6), 1.0, 0.95)
    return ReleaseRisk(
        name=label,
        label=label,
        withheld=0.0,
        people=8.0,
        utility={"count_error": 0.25, "profile_error": 0.2, "busiest_rank_correlation": 0.9},
        attacks={
            "chance": risk("chance", 0.1, around(0.0), nobody),
            "naive": risk("naive", 0.12, around(0.02), nobody),
            "habits": risk("habits", 0.6, advantage, exposing(half, almost, of), precision=sure, repair="frozen"),
            "perfect": risk("perfect", 1.0, around(1.0), exposing(of, of, of)),
        },
        included=included,
        **more,
    )


@cache
def city():
    return rk.SyntheticCity(people=8, days=2, step="1h", width_km=4, height_km=4).trajectories()


def made(advantage=None, half=0, almost=0, of=8, defended=(), **more):
    """An audit in which Habits reaches an advantage and exposes so many people."""
    truth, advantage = city(), advantage or around(0.05)
    people = tuple(
        PersonRisk(name, 0.9 - at / 10, 0.1, 1.0, 0.5, True, 2) for at, name in enumerate(truth.people_ids)
    )
    fields = {
        "verdict": judge(advantage, half, of),
        "releases": (release("as given", advantage, half, almost, of), *defended),
        "people": people,
        "growth": {name: (Growth(1, 0.3, 0.5, 0.2), Growth(2, 0.4, 0.6, 0.3)) for name in ("chance", "habits")},
        "agreements": (),
        "left_out": {},
        "settings": {
            "read_as": None, "release": "counts",
            "people": 8, "people_in_release": 8, "totals": [8, 8],
            "assumed": ["The counts say that there are 8 people."], "steps": truth.steps, "calendar": truth.calendar.to_json(),
            "locations": 16, "row_orders": 2, "attacks": {"habits": {"effort": "low"}},
        },
        "recovered": truth,
        "truth": truth,
        "matched": np.arange(8),
    }  # fmt: skip
    return Audit(**(fields | more))


def repaired(advantage=0.3):
    """A release that had to be repaired, by attackers who know the number of people and who guess it."""
    return release(
        "noise",
        around(advantage),
        repairs=Repairs("enhanced", {"default": 0.31, "frozen": 0.35}, ("frozen", "default"), 0.5),
        guessed=GuessedPeople(11.0, "habits", around(0.2), around(0.12)),
    )
