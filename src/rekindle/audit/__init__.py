"""Attacks x defences on a dataset, with intervals; parallel."""

from rekindle.audit.audit import Agreement, AttackRisk, Audit, Growth, PersonRisk, ReleaseRisk, audit
from rekindle.audit.quick import quick_audit
from rekindle.audit.risk import RULE, Estimate, Verdict

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
