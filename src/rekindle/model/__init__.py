"""The nouns that every room speaks."""

from rekindle.model.calendar import Calendar
from rekindle.model.counts import Counts
from rekindle.model.dataset import Dataset
from rekindle.model.locations import Locations
from rekindle.model.release import AppliedDefence, Release
from rekindle.model.trajectories import AWAY, Trajectories

__all__ = ["AWAY", "AppliedDefence", "Calendar", "Counts", "Dataset", "Locations", "Release", "Trajectories"]
