"""Policies: the walk down the tree, the update on the way up, the two engines, and the algorithms."""

from banditree.policy.answers import Decision, Remaining
from banditree.policy.policy import Policy

__all__ = ["Decision", "Policy", "Remaining"]
