"""Policies: the walk down the tree, the update up it, the two engines, and the algorithms made of them."""

from banditree.policy.decision import Decision
from banditree.policy.policy import Policy

__all__ = ["Decision", "Policy"]
