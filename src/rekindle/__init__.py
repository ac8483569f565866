"""Rekindle: audit a release of people counts before it goes out.

>>> import rekindle as rk
>>> truth = rk.SyntheticCity(people=20, days=2).trajectories()
>>> recovery = rk.Enhanced().recover(truth.counts())
>>> result = rk.evaluate(recovery.trajectories, truth)
"""

__version__ = "0.2.0"

from typing import TYPE_CHECKING, Any

from rekindle.attacks import (
    Attack,
    Baseline,
    DayByDay,
    Enhanced,
    Habits,
    InformationGain,
    LinkingCost,
    MoveContext,
    MoveCost,
    Popular,
    Recovery,
    Run,
    Stay,
    Velocity,
    confidence_from_agreement,
    resume,
)
from rekindle.auditing import Audit, audit
from rekindle.checking import check
from rekindle.defences import (
    Cap,
    Chain,
    CoarserSpace,
    CoarserTime,
    Defence,
    GeometricNoise,
    LaplaceNoise,
    Round,
    Sample,
    Suppress,
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
from rekindle.evaluation import Evaluation, deal_at_random, evaluate, reference_scores, stay_if_possible, utility
from rekindle.io import (
    read_counts,
    read_dataset,
    read_locations,
    read_recovery,
    read_release,
    read_trajectories,
    write_counts,
    write_dataset,
    write_locations,
    write_release,
    write_trajectories,
)
from rekindle.model import Calendar, Counts, Dataset, Locations, Release, Trajectories
from rekindle.repairing import repair
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
    "GeometricNoise",
    "Habits",
    "InformationGain",
    "InvalidData",
    "InvalidFile",
    "InvalidSetting",
    "LaplaceNoise",
    "LinkingCost",
    "Locations",
    "MoveContext",
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
    "Stay",
    "Stopped",
    "Suppress",
    "SyntheticCity",
    "TooLarge",
    "Trajectories",
    "Velocity",
    "__version__",
    "audit",
    "check",
    "confidence_from_agreement",
    "deal_at_random",
    "evaluate",
    "figures",
    "read_counts",
    "read_dataset",
    "read_locations",
    "read_recovery",
    "read_release",
    "read_trajectories",
    "reference_scores",
    "repair",
    "resume",
    "stay_if_possible",
    "utility",
    "write_counts",
    "write_dataset",
    "write_locations",
    "write_release",
    "write_trajectories",
]


def __getattr__(name: str) -> Any:
    if name == "figures":  # matplotlib takes a second to load
        import rekindle.report.figures as figures

        return figures
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
