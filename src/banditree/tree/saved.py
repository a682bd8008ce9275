"""Check the arrays and names of a saved tree, before a tree is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditree.errors import InvalidValue
from banditree.tree.build import names as checked_names


def check(parent: Any, content: Any, arms: Sequence[Any], names: Sequence[Any]) -> None:
    """Raise where these are not what `Tree.to_arrays` gives: a tree whose nodes are numbered breadth-first."""
    whole = all(array.ndim == 1 and array.dtype.kind == "i" for array in (parent, content))
    if not whole or len(parent) != len(content) or len(parent) < 2:
        raise InvalidValue("these arrays are not a tree: each has one whole number per node, and a tree has two nodes")
    n = len(parent)
    if parent[0] != -1 or (parent[1:] < 0).any() or (parent[1:] >= np.arange(1, n)).any():
        raise InvalidValue("these arrays are not a tree: each node but the root has a parent that comes before it")
    if (np.diff(parent) < 0).any():
        raise InvalidValue("these arrays are not a tree whose nodes are numbered breadth-first")
    has_children = np.bincount(parent[1:], minlength=n) > 0
    if ((content < 0) != has_children).any():
        raise InvalidValue("these arrays are not a tree: arms have no children, and clusters have some")
    if not np.array_equal(np.sort(content[content >= 0]), np.arange(len(arms))):
        raise InvalidValue(f"these arrays are not a tree: each of its {len(arms)} arms must be there once")
    inner = np.flatnonzero(content < 0)
    if not np.array_equal(content[inner], ~np.arange(len(inner))) or len(names) != len(inner):
        raise InvalidValue("these arrays are not a tree: clusters are numbered in order, and each has one name")
    checked_names(arms, "arm")
    _check_names(parent[inner[1:]].tolist(), names)


def _check_names(parents: list[int], names: Sequence[Any]) -> None:
    root, *clusters = names
    if root is not None:
        raise InvalidValue(f"the root of a tree has no name, this one is called {root!r:.60}")
    seen = set(zip(parents, checked_names(clusters, "cluster"), strict=True))
    if len(seen) < len(clusters):
        raise InvalidValue("these arrays are not a tree: two clusters beside each other have the same name")
