"""The linter of releases: what a published table gives away by itself, without ground truth and without an attack."""

from rekindle.checking.finding import Finding, Findings
from rekindle.checking.linter import check
from rekindle.checking.rules import RULES, Settings
from rekindle.checking.table import Table, read_published_table

__all__ = ["RULES", "Finding", "Findings", "Settings", "Table", "check", "read_published_table"]
