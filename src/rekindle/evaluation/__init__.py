"""How much of the truth a recovery found, beside what anyone could reach."""

from rekindle.evaluation.confidence import Claims, Confidence, PrecisionCurve, assess_confidence, precision_curve
from rekindle.evaluation.exposure import Exposure, agreement, expose
from rekindle.evaluation.lookup import KNOWN_POINTS, Lookup, look_up, unique_points
from rekindle.evaluation.mapping import Mapping, map_people
from rekindle.evaluation.metrics import Metric
from rekindle.evaluation.mixing import mix_identities
from rekindle.evaluation.people import PersonScores
from rekindle.evaluation.scores import (
    METRICS,
    Evaluation,
    PerPerson,
    ReferenceScores,
    Spread,
    evaluate,
    reference_scores,
)
from rekindle.evaluation.unique import count_sets, top_locations, uniqueness_by_k
from rekindle.evaluation.usefulness import UTILITIES, Utility, implied_flows, utility

__all__ = [
    "KNOWN_POINTS",
    "METRICS",
    "UTILITIES",
    "Claims",
    "Confidence",
    "Evaluation",
    "Exposure",
    "Lookup",
    "Mapping",
    "Metric",
    "PerPerson",
    "PersonScores",
    "PrecisionCurve",
    "ReferenceScores",
    "Spread",
    "Utility",
    "agreement",
    "assess_confidence",
    "count_sets",
    "evaluate",
    "expose",
    "implied_flows",
    "look_up",
    "map_people",
    "mix_identities",
    "precision_curve",
    "reference_scores",
    "top_locations",
    "unique_points",
    "uniqueness_by_k",
    "utility",
]
