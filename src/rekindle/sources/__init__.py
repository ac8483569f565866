"""Where raw points come from: one module a dataset; each yields the points table.

To add a dataset, write a module with a function ``read_<name>(source, ...)`` that returns `Points`.
"""

from rekindle.sources.cabspotting import read_cabspotting
from rekindle.sources.geolife import read_geolife
from rekindle.sources.points import Points
from rekindle.sources.porto import read_porto
from rekindle.sources.reading import points_from_frame, read_points

__all__ = ["Points", "points_from_frame", "read_cabspotting", "read_geolife", "read_points", "read_porto"]
