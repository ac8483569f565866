"""Rekindle: audit a release of people counts before it goes out."""

from rekindle.errors import InvalidData, InvalidFile, InvalidSetting, OutputExists, RekindleError
from rekindle.model import Calendar, Counts, Locations, Trajectories

__version__ = "0.1.0"

__all__ = [
    "Calendar",
    "Counts",
    "InvalidData",
    "InvalidFile",
    "InvalidSetting",
    "Locations",
    "OutputExists",
    "RekindleError",
    "Trajectories",
    "__version__",
]
