"""Is this person in the data at all? Membership inference, and a lower bound on epsilon."""

from rekindle.membership.exact import FALSE_POSITIVES
from rekindle.membership.infer import Membership, PersonMembership, infer_membership

__all__ = ["FALSE_POSITIVES", "Membership", "PersonMembership", "infer_membership"]
