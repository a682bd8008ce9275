"""The structure of a tree as flat arrays, for the engines to walk: nodes are numbered breadth-first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Array, Places

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Shape:
    """Parents and children by node number. Node 0 is the root; the children of node i are ``start[i]:start[i + 1]``."""

    start: Ints  # (nodes + 1,) first child of each node; nodes without children have an empty slice
    parent: Ints  # (nodes,) parent of each node, -1 for the root
    content: Ints  # (nodes,) the arm's position in the user's order, or ~c for the c-th cluster (the root is ~0)
    node_of: Ints  # (arms,) the leaf of each arm, in the user's order
    levels: Ints  # (levels + 1,) first node of each level; level 0 is the root

    def __setstate__(self, state: dict[str, object]) -> None:
        """Align unpickled arrays: some transports, such as Dask's, place them anywhere in memory."""
        self.__dict__.update({name: np.require(array, requirements=["C", "A"]) for name, array in state.items()})

    @property
    def n_nodes(self) -> int:
        return len(self.parent)

    @property
    def inner(self) -> Places:
        """The inner nodes in breadth-first order: the c-th is cluster c."""
        return np.flatnonzero(self.content < 0)

    def level_of(self) -> Places:
        """Return the level of every node: (nodes,)."""
        return np.repeat(np.arange(len(self.levels) - 1), np.diff(self.levels))

    def sum_up(self, values: Array) -> Array:
        """Set every inner node to the sum of its children, in place, from the leaves up: (nodes, ...)."""
        for level in range(len(self.levels) - 2, -1, -1):
            low, high = self.levels[level], self.levels[level + 1]
            first, last = self.start[low], self.start[high]
            if first == last:
                continue
            nodes = np.arange(low, high)[self.start[low:high] < self.start[low + 1 : high + 1]]
            values[nodes] = np.add.reduceat(values[first:last], self.start[nodes] - first, axis=0)
        return values

    def nodes_above(self, count: Array) -> Places:
        """Return the nodes at or above arms whose count, (arms,), is not 0; the root comes first: (k,)."""
        counts = np.zeros(self.n_nodes)
        counts[self.node_of] = count
        return np.flatnonzero(self.sum_up(counts))

    def hand_down(self, values: Array, from_level: int) -> Array:
        """Give every node below ``from_level`` its parent's value, in place, from the top down: (nodes, ...)."""
        for level in range(from_level + 1, len(self.levels) - 1):
            nodes = slice(self.levels[level], self.levels[level + 1])
            values[nodes] = values[self.parent[nodes]]
        return values

    def path_up(self, node: int) -> list[int]:
        """Return the nodes from ``node`` up to the root, both included."""
        path = [node]
        while (node := int(self.parent[node])) >= 0:
            path.append(node)
        return path


def number(parent: Places, arm: Places) -> tuple[Shape, Places]:
    """Number nodes breadth-first; siblings keep their order.

    ``parent`` (nodes,) holds the index of each node's parent in the same array, with node 0 as the root; ``arm``
    (nodes,) holds the arm's position in the user's order, or -1 for a cluster. Also returns the old numbers of the
    clusters in their new order, for renumbering whatever belongs to them.
    """
    by_parent = np.argsort(parent, kind="stable")[1:]  # children grouped by parent; the root (-1) drops out
    n_children = np.bincount(parent[1:], minlength=len(parent))
    first = np.concatenate([[0], np.cumsum(n_children)])
    order, levels = [np.zeros(1, np.intp)], [0, 1]
    while len(level := _concatenate_slices(by_parent, first, order[-1])):
        order.append(level)
        levels.append(levels[-1] + len(level))
    old = np.concatenate(order)  # (nodes,) old number of each new one
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    content = arm[old]
    inner, leaves = np.flatnonzero(content < 0), np.flatnonzero(content >= 0)
    content[inner] = ~np.arange(len(inner))
    node_of = np.empty(len(leaves), np.int32)
    node_of[content[leaves]] = leaves
    arrays = (
        np.concatenate([[1], 1 + np.cumsum(n_children[old])]).astype(np.int32),
        np.concatenate([[-1], new[parent[old[1:]]]]).astype(np.int32),
        content.astype(np.int32),
        node_of,
        np.array(levels, np.int32),
    )
    for array in arrays:
        array.flags.writeable = False
    return Shape(*arrays), old[inner]


def _concatenate_slices(values: Places, first: Places, nodes: Places) -> Places:
    """Concatenate ``values[first[i]:first[i + 1]]`` for every i in nodes."""
    lengths = first[nodes + 1] - first[nodes]
    offsets = np.repeat(first[nodes] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.asarray(values[offsets + np.arange(lengths.sum())])
