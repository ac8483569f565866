"""Counts to trajectories."""

from __future__ import annotations

from pathlib import Path

from rekindle.attacks.base import Attack, DailyRun, Details, Recovery, Run, with_away
from rekindle.attacks.baseline import Baseline
from rekindle.attacks.chance import Chance
from rekindle.attacks.confidence import confidence_from_agreement
from rekindle.attacks.costs import MoveContext, MoveCost, Popular, Stay, TargetCost, Velocity
from rekindle.attacks.day_by_day import DayByDay, DayByDayDetails
from rekindle.attacks.enhanced import Enhanced
from rekindle.attacks.folder import open_folder, recover_into
from rekindle.attacks.habits import Habits, HabitsDetails
from rekindle.attacks.linking import InformationGain, LinkingCost
from rekindle.attacks.moves import LearntMoves
from rekindle.attacks.naive import Naive
from rekindle.attacks.priors import PRIORS, KnownPast, KnownPeople, OtherTraces, Prior
from rekindle.attacks.saving import read_run
from rekindle.errors import InvalidFile, InvalidSetting
from rekindle.progress import Progress

__all__ = [
    "ATTACKS",
    "PRIORS",
    "REFERENCES",
    "Attack",
    "Baseline",
    "Chance",
    "DailyRun",
    "DayByDay",
    "DayByDayDetails",
    "Details",
    "Enhanced",
    "Habits",
    "HabitsDetails",
    "InformationGain",
    "KnownPast",
    "KnownPeople",
    "LearntMoves",
    "LinkingCost",
    "MoveContext",
    "MoveCost",
    "Naive",
    "OtherTraces",
    "Popular",
    "Prior",
    "Progress",
    "Recovery",
    "Run",
    "Stay",
    "TargetCost",
    "Velocity",
    "confidence_from_agreement",
    "open_folder",
    "recover_into",
    "resume",
    "with_away",
]

ATTACKS: dict[str, type[Attack]] = {"baseline": Baseline, "enhanced": Enhanced, "habits": Habits}
"""The attacks that a name at the command line, or a saved run, may call for."""

REFERENCES: dict[str, type[Attack]] = {"chance": Chance, "naive": Naive}
"""The two that every result stands beside."""


def resume(path: str | Path, *, attack: Attack | None = None, progress: Progress | None = None) -> Run:
    """Resume a run that was saved.

    Parameters
    ----------
    path
        What `Run.save` wrote.
    attack
        The attack with the settings it had. Needed where a setting is an object of your own, or the attack is: a file
        never names code to run.
    progress
        Called after each day.
    """
    saved = read_run(path)
    if attack is None:
        kind = {cls.__name__: cls for cls in (ATTACKS | REFERENCES).values()}.get(saved.attack)
        if kind is None:
            raise InvalidSetting(f"{path} was saved by the attack {saved.attack!r}; give it as `attack`.")
        attack = kind()
        plain = {name: value for name, value in saved.settings.items() if value != attack.settings().get(name)}
        try:
            attack = kind(**plain)
        except (TypeError, InvalidSetting) as error:
            raise InvalidSetting(
                f"{path} was saved with settings that a file cannot give ({error}); give `attack`."
            ) from None
    if type(attack).__name__ != saved.attack or attack.settings() != saved.settings:
        raise InvalidSetting(
            f"{path} was saved by {saved.attack} with {saved.settings}, "
            f"not by {type(attack).__name__} with {attack.settings()}."
        )
    run = attack.start(saved.locations, saved.calendar, people=saved.people, progress=progress)
    try:
        run.restore(saved)
    except (KeyError, IndexError, ValueError) as error:
        raise InvalidFile(path, f"the saved run is damaged ({type(error).__name__}: {error}).") from None
    return run
