"""Build, edit and print trees of arms, and cluster arms by features."""

from banditree.tree.tree import Tree

__all__ = ["Tree"]
