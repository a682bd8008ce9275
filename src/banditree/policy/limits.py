"""Find the children that a walk may step to when some arms are excluded, or only some are allowed.

Twin of ``native/policy/limits.hpp``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue
from banditree.stream import Rng
from banditree.tree import Tree
from banditree.tree.shape import Indices, Shape

NO_ARM = "only and exclude leave no arm to choose from; allow at least one"
MIN_INVERTED = 64  # arms named, from which on it is worth a look whether there are fewer others


class AnyLimits(Protocol):
    """What the walks and the probabilities need from the limits of either engine."""

    n_allowed: int

    def allowed(self, node: int) -> Indices: ...
    def arms_allowed(self) -> Indices: ...


class Limits:
    """Limits for the readable engine: ``arms`` are the only ones allowed, or those excluded.

    Only the paths of the arms named are visited, never the whole tree. A cluster cannot be chosen once all its children
    are excluded, or until one of them is allowed.
    """

    def __init__(self, shape: Shape, arms: NDArray[np.int64], only: bool) -> None:
        self.shape, self.only = shape, only
        self.arms = np.unique(arms)
        self._listed: dict[int, list[int]] = {}  # node -> its children that are allowed, or excluded
        for node in shape.node_of[self.arms].tolist():
            self._list(node)
        self.n_allowed = len(self.arms) if only else len(shape.node_of) - len(self.arms)

    def allowed(self, node: int) -> NDArray[np.intp]:
        """Return the children of a node that may be chosen, in order."""
        listed = np.array(sorted(self._listed.get(node, ())), np.intp)
        if self.only:
            return listed
        children = np.arange(self.shape.start[node], self.shape.start[node + 1])
        return children if not len(listed) else np.delete(children, listed - self.shape.start[node])

    def arms_allowed(self) -> NDArray[np.int64]:
        """Return the positions of the arms that may be chosen."""
        return self.arms if self.only else np.delete(np.arange(len(self.shape.node_of)), self.arms)

    def arm(self, rank: int) -> int:
        """Return the allowed arm of this rank, in the order of positions."""
        if self.only:
            return int(self.arms[rank])
        for gone in self.arms.tolist():
            if gone > rank:
                break
            rank += 1
        return rank

    def uniform(self, rng: Rng) -> int:
        """Draw an allowed arm, all equally likely."""
        return self.arm(int(rng.integers(self.n_allowed)))

    def _list(self, node: int) -> None:
        """List a node under its parent, and its parent too if it is the first child allowed, or the last excluded."""
        while (parent := int(self.shape.parent[node])) >= 0:
            siblings = self._listed.setdefault(parent, [])
            siblings.append(node)
            n_children = self.shape.start[parent + 1] - self.shape.start[parent]
            if len(siblings) != (1 if self.only else n_children):
                return
            node = parent


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
    if allowed and not len(arms):
        raise InvalidValue(NO_ARM)
    return arms, allowed


def require_arms(limits: AnyLimits) -> AnyLimits:
    """Refuse limits that leave no arm."""
    if not limits.n_allowed:
        raise InvalidValue(NO_ARM)
    return limits


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


def uniform_arm(limits: Limits | None, shape: Shape, rng: Rng) -> int:
    """Draw an allowed arm, all equally likely."""
    return int(rng.integers(len(shape.node_of))) if limits is None else limits.uniform(rng)
