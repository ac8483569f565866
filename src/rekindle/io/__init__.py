"""Reading and writing the nouns: dataset folder, csv, parquet, the paper's wide csv."""

from rekindle.io.dataset import read_dataset, write_dataset
from rekindle.io.recovery import RecoveryFolder, StoredRecovery, read_recovery
from rekindle.io.tables.counts import read_counts, write_counts
from rekindle.io.tables.flows import read_flows, write_flows
from rekindle.io.tables.locations import read_locations, write_locations
from rekindle.io.tables.published import Published, read_published
from rekindle.io.tables.release import read_release, write_release
from rekindle.io.tables.trajectories import read_trajectories, write_trajectories

__all__ = [
    "Published",
    "RecoveryFolder",
    "StoredRecovery",
    "read_counts",
    "read_dataset",
    "read_flows",
    "read_locations",
    "read_published",
    "read_recovery",
    "read_release",
    "read_trajectories",
    "write_counts",
    "write_dataset",
    "write_flows",
    "write_locations",
    "write_release",
    "write_trajectories",
]
