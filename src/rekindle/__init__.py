"""Rekindle: audit a release of people counts before it goes out.

>>> import rekindle as rk
>>> truth = rk.SyntheticCity(people=20, days=2).trajectories()
>>> recovery = rk.Enhanced().recover(truth.counts())
>>> result = rk.evaluate(recovery.trajectories, truth)

What is used rarely lives in its room: errors in `rekindle.errors`, move and linking costs in `rekindle.attacks`, metrics in
`rekindle.evaluation`. Names and rooms are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rekindle import errors as errors

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rekindle.attacks import Attack as Attack
    from rekindle.attacks import Baseline as Baseline
    from rekindle.attacks import Chance as Chance
    from rekindle.attacks import DayByDay as DayByDay
    from rekindle.attacks import Enhanced as Enhanced
    from rekindle.attacks import Habits as Habits
    from rekindle.attacks import KnownPast as KnownPast
    from rekindle.attacks import KnownPeople as KnownPeople
    from rekindle.attacks import Naive as Naive
    from rekindle.attacks import OtherTraces as OtherTraces
    from rekindle.attacks import Recovery as Recovery
    from rekindle.attacks import Run as Run
    from rekindle.attacks import resume as resume
    from rekindle.auditing import Audit as Audit
    from rekindle.auditing import audit as audit
    from rekindle.auditing import recommend as recommend
    from rekindle.checking import check as check
    from rekindle.defences import Cap as Cap
    from rekindle.defences import Chain as Chain
    from rekindle.defences import CoarserSpace as CoarserSpace
    from rekindle.defences import CoarserTime as CoarserTime
    from rekindle.defences import Defence as Defence
    from rekindle.defences import GeometricNoise as GeometricNoise
    from rekindle.defences import LaplaceNoise as LaplaceNoise
    from rekindle.defences import Round as Round
    from rekindle.defences import Sample as Sample
    from rekindle.defences import Suppress as Suppress
    from rekindle.evaluation import evaluate as evaluate
    from rekindle.evaluation import reference_scores as reference_scores
    from rekindle.io import read_counts as read_counts
    from rekindle.io import read_dataset as read_dataset
    from rekindle.io import read_flows as read_flows
    from rekindle.io import read_locations as read_locations
    from rekindle.io import read_recovery as read_recovery
    from rekindle.io import read_release as read_release
    from rekindle.io import read_trajectories as read_trajectories
    from rekindle.io import write_counts as write_counts
    from rekindle.io import write_dataset as write_dataset
    from rekindle.io import write_flows as write_flows
    from rekindle.io import write_locations as write_locations
    from rekindle.io import write_release as write_release
    from rekindle.io import write_trajectories as write_trajectories
    from rekindle.membership import infer_membership as infer_membership
    from rekindle.model import AWAY as AWAY
    from rekindle.model import Calendar as Calendar
    from rekindle.model import Counts as Counts
    from rekindle.model import Dataset as Dataset
    from rekindle.model import Flows as Flows
    from rekindle.model import Locations as Locations
    from rekindle.model import Release as Release
    from rekindle.model import Trajectories as Trajectories
    from rekindle.repairing import repair as repair
    from rekindle.repairing import repair_flows as repair_flows
    from rekindle.report import figures as figures
    from rekindle.sources.synthetic import SyntheticCity as SyntheticCity

_NAMES = {
    "attacks": "Attack Baseline Chance DayByDay Enhanced Habits KnownPast KnownPeople Naive OtherTraces Recovery Run resume",
    "auditing": "Audit audit recommend",
    "checking": "check",
    "defences": "Cap Chain CoarserSpace CoarserTime Defence GeometricNoise LaplaceNoise Round Sample Suppress",
    "evaluation": "evaluate reference_scores",
    "io": "read_counts read_dataset read_flows read_locations read_recovery read_release read_trajectories "
    "write_counts write_dataset write_flows write_locations write_release write_trajectories",
    "membership": "infer_membership",
    "model": "AWAY Calendar Counts Dataset Flows Locations Release Trajectories",
    "repairing": "repair repair_flows",
    "report": "figures",
    "sources.synthetic": "SyntheticCity",
}
_ROOM_OF = {name: room for room, names in _NAMES.items() for name in names.split()}
# fmt: off
_ROOMS = {
    "attacks", "auditing", "checking", "defences", "evaluation", "io", "membership", "model", "prepare", "repairing", "report",
    "sources", "testing",
}
# fmt: on

__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"rekindle.{name}")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = import_module(f"rekindle.{_ROOM_OF[name]}")
    value = globals()[name] = getattr(room, name, None) or import_module(f"{room.__name__}.{name}")
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
