"""Trees of arms: their shape, how they are built, edited and printed, and clustering by features."""

from banditree.tree.tree import Tree

__all__ = ["Tree"]
