"""Attacks x defences on a dataset, with intervals; parallel."""

from rekindle.auditing.audit import Agreement, AttackRisk, Audit, Growth, PersonRisk, ReleaseRisk, audit
from rekindle.auditing.quick import quick_audit
from rekindle.auditing.risk import RULE, Estimate, Verdict

__all__ = [
    "RULE",
    "Agreement",
    "AttackRisk",
    "Audit",
    "Estimate",
    "Growth",
    "PersonRisk",
    "ReleaseRisk",
    "Verdict",
    "audit",
    "quick_audit",
]
