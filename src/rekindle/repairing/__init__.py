"""A release back to counts or flows: the attacker's first step, in several ways."""

from rekindle.repairing.flows import FLOW_REPAIRS, repair_flows
from rekindle.repairing.observations import exact_totals
from rekindle.repairing.people import guess_people
from rekindle.repairing.repairs import REPAIRS, hold_still, repair

__all__ = ["FLOW_REPAIRS", "REPAIRS", "exact_totals", "guess_people", "hold_still", "repair", "repair_flows"]
