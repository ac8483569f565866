"""How often do the limits of an audit hold the mean over fresh cities?

Every city is another draw of people, homes, centres and row orders. The limits are made from one city alone, as an audit
makes them; what they should hold is the mean of the measure over all cities of the same kind. Each entry of the table is
the coverage in percent and, after it, how wide the limits are compared with what would just do: 3.92 times the standard
deviation between cities. Where no city differs from another, there is nothing to cover and the entry is empty.

    python -m benchmarks.coverage --cities 400 --people 30
    python -m benchmarks.coverage --cities 100 --family "few locations" --effort normal
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import joblib
import numpy as np

import rekindle as rk
from rekindle.attacks import Attack
from rekindle.auditing.risk import Estimate, estimate, estimate_advantage, estimate_exposed
from rekindle.defences import Defence, GeometricNoise, NothingLeft, Suppress
from rekindle.evaluation import KNOWN_POINTS, Exposure, expose
from rekindle.repairing import repair

RELEASES: dict[str, Defence | None] = {
    "as given": None,
    "below 3 withheld": Suppress(below=3),
    "noise, epsilon 1 per event": GeometricNoise(epsilon=1.0, per="event"),
}
ON_DEFENDED = ("chance", "habits")

FAMILIES: dict[str, dict[str, Any]] = {
    "default": {},
    "without routine": {"share_without_routine": 0.6, "share_without_work": 0.1},
    "many locations": {"width_km": 20, "height_km": 20},
    "few locations": {"width_km": 4, "height_km": 4},
    "regular": {
        "share_without_routine": 0.0,
        "share_without_work": 0.05,
        "irregularity_min": 5,
        "share_staying_home": 0.0,
        "share_out_after_work": 0.1,
    },
    "one centre": {"centres": 1, "favourite_places": 2, "share_night_workers": 0.2},
    "steps of an hour": {"step": "1h", "days": 5},
}


def attacks(effort: str) -> dict[str, Attack]:
    """All attacks, each on one core: cities are what runs side by side."""
    return {
        "chance": rk.Chance(),
        "naive": rk.Naive(),
        "baseline": rk.Baseline(),
        "enhanced": rk.Enhanced(),
        "habits": rk.Habits(effort=effort, workers=1),
    }


def audit_city(city: rk.SyntheticCity, effort: str, orders: int) -> dict[tuple[str, str], dict[str, Estimate]]:
    """The estimates of one city, by release and attack; a defence that leaves nothing is left out."""
    truth = city.trajectories()
    result = {}
    for release, defence in RELEASES.items():
        found: dict[str, list[Exposure]] = {}
        for seed in range(orders):
            counts = truth.counts()
            if defence is not None:
                try:
                    counts = repair(defence.seeded(seed)(counts), truth.people)
                except NothingLeft:
                    break
            for name, attack in attacks(effort).items():
                if defence is None or name in ON_DEFENDED:
                    seeded: Any = dataclasses.replace(attack, seed=seed)  # type: ignore[type-var]
                    found.setdefault(name, []).append(expose(seeded.recover(counts).trajectories, truth, seed=seed))
        for name, exposures in found.items():
            result[release, name] = measures(exposures, found["chance"], truth.steps)
    return result


def measures(exposures: list[Exposure], by_chance: list[Exposure], steps: int) -> dict[str, Estimate]:
    """The headline measures of one attack, from its exposure under each row order and that of chance."""
    accuracy, chance = (np.array([one.accuracy for one in each]) for each in (exposures, by_chance))
    result = {
        "accuracy": estimate(accuracy),
        "advantage": estimate_advantage(accuracy, chance),
        "home": estimate(np.array([one.home for one in exposures])),
        "re-identified from 4": estimate(np.array([one.reidentified[:, KNOWN_POINTS.index(4)] for one in exposures])),
    }
    for points in (1, 4, 16):
        learnt = np.array([one.learnt[:, KNOWN_POINTS.index(points)] for one in exposures])
        result[f"learnt from {points}"] = estimate(learnt)
    for above in (0.5, 0.9):
        result[f"exposed above {above:.0%}"] = estimate_exposed(accuracy, chance, steps, above)
    return result


def coverage(estimates: list[Estimate]) -> str:
    """How often the limits hold the mean of the values, in percent, and how wide they are against the spread."""
    values, low, high = np.array([dataclasses.astuple(one) for one in estimates]).T
    mean, spread = values.mean(), 3.92 * values.std(ddof=1)
    if spread < 1e-9:
        return ""
    held = (low <= mean) & (mean <= high)
    return f"{100 * held.mean():.1f} / {np.mean(high - low) / spread:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cities", type=int, default=400)
    options.add_argument("--first", type=int, default=0, help="seed of the first city")
    options.add_argument("--people", type=int, default=30)
    options.add_argument("--family", choices=FAMILIES, default="default")
    options.add_argument("--effort", choices=("low", "normal", "high"), default="low")
    options.add_argument("--orders", type=int, default=3)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    settings: dict[str, Any] = {"days": 3, "step": "30min"} | FAMILIES[given.family]
    cities = [
        rk.SyntheticCity(people=given.people, seed=seed, **settings)
        for seed in range(given.first, given.first + given.cities)
    ]
    found = joblib.Parallel(given.workers)(
        joblib.delayed(audit_city)(city, given.effort, given.orders) for city in cities
    )
    error = 100 * np.sqrt(0.95 * 0.05 / given.cities)
    print(
        f"{given.cities} cities ({given.family}) of {given.people} people, {given.orders} row orders, Habits with effort "
        f"{given.effort}; standard error of a coverage of 95%: {error:.1f} points\n"
    )
    names = list(next(iter(found[0].values())))
    print("| attack | release | cities |", " | ".join(names), "|")
    print("|---|---|---|" + "---|" * len(names))
    for release, attack in dict.fromkeys(key for city in found for key in city):
        kept = [city[release, attack] for city in found if (release, attack) in city]
        entries = [coverage([one[name] for one in kept]) for name in names]
        print(f"| {attack} | {release} | {len(kept)} |", " | ".join(entries), "|")


if __name__ == "__main__":
    main()
