"""Points to trajectories: select, align, sample, fill, locate; on Polars or on Spark."""

from rekindle.prepare.assemble import Prepared
from rekindle.prepare.geolife import BEIJING, Area, prepare_geolife
from rekindle.prepare.places import Extent, Grid, H3Cells, Located, Places, Towers
from rekindle.prepare.points import dataset_from_frame, prepare_points
from rekindle.prepare.porto import prepare_porto

__all__ = [
    "BEIJING",
    "Area",
    "Extent",
    "Grid",
    "H3Cells",
    "Located",
    "Places",
    "Prepared",
    "Towers",
    "dataset_from_frame",
    "prepare_geolife",
    "prepare_points",
    "prepare_porto",
]
