"""Attacks x defences on a dataset, with intervals; parallel."""

from rekindle.auditing.plan import audit
from rekindle.auditing.results import (
    Agreement,
    AttackRisk,
    Audit,
    Exposed,
    ExposedPeople,
    Growth,
    GuessedPeople,
    PersonRisk,
    Precision,
    ReleaseRisk,
    Repairs,
)
from rekindle.auditing.risk import Estimate
from rekindle.auditing.store import AUDIT, begin_output, remove_tasks
from rekindle.auditing.verdict import LEVELS, RULE, Verdict

__all__ = [
    "AUDIT",
    "LEVELS",
    "RULE",
    "Agreement",
    "AttackRisk",
    "Audit",
    "Estimate",
    "Exposed",
    "ExposedPeople",
    "Growth",
    "GuessedPeople",
    "PersonRisk",
    "Precision",
    "ReleaseRisk",
    "Repairs",
    "Verdict",
    "audit",
    "begin_output",
    "remove_tasks",
]
