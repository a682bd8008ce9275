"""Check the arrays and names of a saved tree before a tree is built from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditree.errors import InvalidValue
from banditree.tree.build import names as checked_names


def check(parent: Any, content: Any, arms: Sequence[Any], names: Sequence[Any]) -> None:
    """Raise unless these are valid output of `Tree.to_arrays`: a tree whose nodes are numbered breadth-first."""
    whole = all(array.ndim == 1 and array.dtype.kind == "i" for array in (parent, content))
    if not whole or len(parent) != len(content) or len(parent) < 2:
        raise InvalidValue("these arrays are not a tree: each needs one whole number per node, for two nodes or more")
    n = len(parent)
    if parent[0] != -1 or (parent[1:] < 0).any() or (parent[1:] >= np.arange(1, n)).any():
        raise InvalidValue("these arrays are not a tree: each node except the root needs a parent that comes before it")
    if (np.diff(parent) < 0).any():
        raise InvalidValue("these arrays are not a tree whose nodes are numbered breadth-first")
    has_children = np.bincount(parent[1:], minlength=n) > 0
    if ((content < 0) != has_children).any():
        raise InvalidValue("these arrays are not a tree: arms must have no children, and clusters at least one")
    if not np.array_equal(np.sort(content[content >= 0]), np.arange(len(arms))):
        raise InvalidValue(f"these arrays are not a tree: each of its {len(arms)} arms must appear exactly once")
    inner = np.flatnonzero(content < 0)
    if not np.array_equal(content[inner], ~np.arange(len(inner))) or len(names) != len(inner):
        raise InvalidValue("these arrays are not a tree: clusters must be numbered in order, each with one name")
    checked_names(arms, "arm")
    _check_names(parent[inner[1:]].tolist(), names)


def _check_names(parents: list[int], names: Sequence[Any]) -> None:
    root, *clusters = names
    if root is not None:
        raise InvalidValue(f"the root of a tree has no name; this one is called {root!r:.60}")
    seen = set(zip(parents, checked_names(clusters, "cluster"), strict=True))
    if len(seen) < len(clusters):
        raise InvalidValue("these arrays are not a tree: two sibling clusters have the same name")
