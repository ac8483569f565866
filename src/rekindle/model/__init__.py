"""The nouns that every room speaks."""

from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.dataset import Dataset
from rekindle.model.flows import Flows, check_flows
from rekindle.model.locations import AWAY, Locations
from rekindle.model.release import AppliedDefence, Release
from rekindle.model.trajectories import Trajectories

__all__ = [
    "AWAY",
    "AppliedDefence",
    "Calendar",
    "Counts",
    "Dataset",
    "Flows",
    "Locations",
    "Release",
    "Trajectories",
    "check_flows",
]
