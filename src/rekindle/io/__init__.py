"""Reading and writing the nouns: dataset folder, csv, parquet, the paper's wide csv."""

from rekindle.io.dataset import Dataset, read_dataset, write_dataset
from rekindle.io.tables import read_counts, read_locations, write_counts, write_locations

__all__ = [
    "Dataset",
    "read_counts",
    "read_dataset",
    "read_locations",
    "write_counts",
    "write_dataset",
    "write_locations",
]
