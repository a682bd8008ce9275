"""Find the children that a walk may step to when some arms are excluded, or only some are allowed.

Twin of ``native/policy/limits.hpp``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Indices, Places
from banditree.errors import InvalidType, InvalidValue
from banditree.tree import Tree
from banditree.tree.shape import Shape

MIN_INVERTED = 64  # number of arms named above which the others are counted too


class AnyLimits(Protocol):
    """What the walks and the probabilities need from the limits of either engine."""

    n_allowed: int

    def allowed(self, node: int) -> Indices: ...
    def arms_allowed(self) -> Indices: ...


class Limits:
    """Limits for the readable engine: ``arms`` are the only ones allowed, or those excluded."""

    def __init__(self, shape: Shape, arms: NDArray[np.int64], only: bool) -> None:
        is_allowed = np.full(len(shape.node_of), not only)
        is_allowed[arms] = only
        self.shape, self._arms = shape, np.flatnonzero(is_allowed)
        self.n_allowed = len(self._arms)
        self._is_open = np.zeros(shape.n_nodes, bool)  # whether a node has an allowed arm, or is one
        nodes = shape.node_of[self._arms]
        while len(nodes):
            self._is_open[nodes] = True
            nodes = shape.parent[nodes]
            nodes = nodes[nodes >= 0]

    def allowed(self, node: int) -> Places:
        """Return the children of a node that may be chosen, in order: those with an allowed arm."""
        children = np.arange(self.shape.start[node], self.shape.start[node + 1])
        return children[self._is_open[children]]

    def arms_allowed(self) -> Places:
        """Return the positions of the arms that may be chosen, in order."""
        return self._arms


def find_arms(tree: Tree, only: object, exclude: object) -> tuple[NDArray[np.int64], bool] | None:
    """Return the positions of the arms that ``only`` and ``exclude`` name, and whether they are the only ones allowed.

    None if there is no limit. If more than half of the arms are named, the others are returned instead.
    """
    if only is None and exclude is None:
        return None
    arms, allowed = _arms(tree, "exclude", exclude) if only is None else _arms(tree, "only", only), only is not None
    if only is not None and exclude is not None:
        arms = np.setdiff1d(arms, _arms(tree, "exclude", exclude))
    if len(arms) > MIN_INVERTED and 2 * len(arms) > tree.n_arms:
        others = np.ones(tree.n_arms, bool)
        others[arms] = False
        arms, allowed = np.flatnonzero(others), not allowed
    return arms, allowed


def _arms(tree: Tree, what: str, given: object) -> NDArray[np.int64]:
    """Return the positions of arms given as ids, in any collection, or as a mask over ``tree.arms``."""
    if isinstance(given, np.ndarray) and given.dtype == bool and not isinstance(given, np.ma.MaskedArray):
        if given.shape != (tree.n_arms,):
            raise InvalidValue(f"{what} is a mask of shape {given.shape}; give one bool per arm, {(tree.n_arms,)}")
        return np.flatnonzero(given)
    if isinstance(given, set | frozenset):  # the order does not matter here
        given = list(given)
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InvalidType(f"{what}={given!r:.60} must be a list of arm ids, or a NumPy array of bools over tree.arms")
    return tree.positions(given)
