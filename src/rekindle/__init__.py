"""Rekindle: audit a release of people counts before it goes out.

>>> import rekindle as rk
>>> truth = rk.SyntheticCity(people=20, days=2).trajectories()
>>> recovery = rk.Enhanced().recover(truth.counts())
>>> result = rk.evaluate(recovery.trajectories, truth)
"""

__version__ = "0.1.0"

from rekindle.attacks import (
    Attack,
    Baseline,
    DayByDay,
    Enhanced,
    InformationGain,
    LinkingCost,
    MoveCost,
    Popular,
    Recovery,
    Run,
    Situation,
    Stay,
    Velocity,
    resume,
)
from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists, RekindleError, Stopped
from rekindle.evaluation import Evaluation, deal_at_random, evaluate, stay_if_possible, yardsticks
from rekindle.io import (
    Dataset,
    read_counts,
    read_dataset,
    read_locations,
    read_recovery,
    write_counts,
    write_dataset,
    write_locations,
    write_trajectories,
)
from rekindle.model import Calendar, Counts, Locations, Trajectories
from rekindle.sources.synthetic import SyntheticCity

__all__ = [
    "Attack",
    "Baseline",
    "Calendar",
    "Counts",
    "Dataset",
    "DayByDay",
    "Enhanced",
    "Evaluation",
    "InformationGain",
    "InvalidData",
    "InvalidFile",
    "InvalidSetting",
    "LinkingCost",
    "Locations",
    "MoveCost",
    "OutputExists",
    "Popular",
    "Recovery",
    "RekindleError",
    "Run",
    "Situation",
    "Stay",
    "Stopped",
    "SyntheticCity",
    "Trajectories",
    "Velocity",
    "__version__",
    "deal_at_random",
    "evaluate",
    "read_counts",
    "read_dataset",
    "read_locations",
    "read_recovery",
    "resume",
    "stay_if_possible",
    "write_counts",
    "write_dataset",
    "write_locations",
    "write_trajectories",
    "yardsticks",
]
