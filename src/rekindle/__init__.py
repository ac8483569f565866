"""Rekindle: audit a release of people counts before it goes out.

>>> import rekindle as rk
>>> truth = rk.SyntheticCity(people=20, days=2).trajectories()
>>> recovery = rk.Enhanced().recover(truth.counts())
>>> result = rk.evaluate(recovery.trajectories, truth)
"""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

from rekindle.attacks import (
    Attack,
    Baseline,
    DayByDay,
    Enhanced,
    Habits,
    InformationGain,
    LinkingCost,
    MoveCost,
    Popular,
    Recovery,
    Run,
    Situation,
    Stay,
    Velocity,
    agree,
    resume,
)
from rekindle.audit import Audit, audit
from rekindle.defences import (
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    Defence,
    Geometric,
    Laplace,
    Round,
    Sample,
    Suppress,
    repair,
)
from rekindle.errors import (
    InvalidData,
    InvalidFile,
    InvalidSetting,
    OutputExists,
    OutputFailed,
    OutputInUse,
    RekindleError,
    Stopped,
    TooLarge,
)
from rekindle.evaluation import Evaluation, deal_at_random, evaluate, stay_if_possible, utility, yardsticks
from rekindle.io import (
    Dataset,
    read_counts,
    read_dataset,
    read_locations,
    read_recovery,
    read_release,
    write_counts,
    write_dataset,
    write_locations,
    write_release,
    write_trajectories,
)
from rekindle.model import Calendar, Counts, Locations, Release, Trajectories
from rekindle.sources.synthetic import SyntheticCity

if TYPE_CHECKING:
    from rekindle.report import figures

__all__ = [
    "Attack",
    "Audit",
    "Baseline",
    "Calendar",
    "Cap",
    "Chain",
    "CoarserSpace",
    "CoarserTime",
    "Counts",
    "Dataset",
    "DayByDay",
    "Defence",
    "Enhanced",
    "Evaluation",
    "Geometric",
    "Habits",
    "InformationGain",
    "InvalidData",
    "InvalidFile",
    "InvalidSetting",
    "Laplace",
    "LinkingCost",
    "Locations",
    "MoveCost",
    "OutputExists",
    "OutputFailed",
    "OutputInUse",
    "Popular",
    "Recovery",
    "RekindleError",
    "Release",
    "Round",
    "Run",
    "Sample",
    "Situation",
    "Stay",
    "Stopped",
    "Suppress",
    "SyntheticCity",
    "TooLarge",
    "Trajectories",
    "Velocity",
    "__version__",
    "agree",
    "audit",
    "deal_at_random",
    "evaluate",
    "figures",
    "read_counts",
    "read_dataset",
    "read_locations",
    "read_recovery",
    "read_release",
    "repair",
    "resume",
    "stay_if_possible",
    "utility",
    "write_counts",
    "write_dataset",
    "write_locations",
    "write_release",
    "write_trajectories",
    "yardsticks",
]


def __getattr__(name: str) -> Any:
    if name == "figures":  # matplotlib takes a second to load
        import rekindle.report.figures as figures

        return figures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
