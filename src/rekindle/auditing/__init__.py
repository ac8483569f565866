"""Attacks x defences on a dataset, with intervals; parallel."""

from rekindle.auditing.entry import audit
from rekindle.auditing.evidence import Evidence
from rekindle.auditing.families import FAMILIES, Family
from rekindle.auditing.forecast import Forecast
from rekindle.auditing.plan import Plan
from rekindle.auditing.recommendation import Candidate, Recommendation
from rekindle.auditing.results import (
    Agreement,
    AttackRisk,
    Audit,
    Expectation,
    Exposed,
    ExposedPeople,
    Growth,
    GuessedPeople,
    Identity,
    PersonRisk,
    Precision,
    ReleaseRisk,
    Repairs,
    WindowRisk,
)
from rekindle.auditing.risk import LEVELS, RULE, Estimate, Verdict
from rekindle.auditing.search import recommend
from rekindle.auditing.similar import people_like
from rekindle.auditing.store import AUDIT, TASKS, begin_output, remove_tasks

__all__ = [
    "AUDIT",
    "FAMILIES",
    "LEVELS",
    "RULE",
    "TASKS",
    "Agreement",
    "AttackRisk",
    "Audit",
    "Candidate",
    "Estimate",
    "Evidence",
    "Expectation",
    "Exposed",
    "ExposedPeople",
    "Family",
    "Forecast",
    "Growth",
    "GuessedPeople",
    "Identity",
    "PersonRisk",
    "Plan",
    "Precision",
    "Recommendation",
    "ReleaseRisk",
    "Repairs",
    "Verdict",
    "WindowRisk",
    "audit",
    "begin_output",
    "people_like",
    "recommend",
    "remove_tasks",
]
