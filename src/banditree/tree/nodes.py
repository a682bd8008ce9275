"""The nodes of a tree by number: their names and paths, and which clusters and arms are where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from banditree.tree.build import Name
from banditree.tree.shape import Shape, lazy


class Nodes:
    """Names and places of the nodes that ``shape`` numbers; the root is node 0."""

    def __init__(self, shape: Shape, arms: tuple[Name, ...], clusters: tuple[Name | None, ...]) -> None:
        self.shape, self.arms = shape, arms
        self.clusters = clusters  # names of the inner nodes, the root's (None) first

    def name(self, node: int) -> Name:
        """Return the name of a node: its arm id or its cluster's name."""
        content = int(self.shape.content[node])
        name = self.arms[content] if content >= 0 else self.clusters[~content]
        return "root" if name is None else name

    def path(self, node: int) -> tuple[Name, ...]:
        """Return the names on the path from the root (excluded) to a node; () for the root."""
        return tuple(self.name(step) for step in reversed(self.shape.path_up(node)[:-1]))

    def paths(self) -> list[tuple[Name, ...]]:
        """Return the path of every node, starting with () for the root."""
        known: list[tuple[Name, ...]] = [()] * self.shape.n_nodes
        for node, parent in enumerate(self.shape.parent.tolist()):
            if node:
                known[node] = (*known[parent], self.name(node))
        return known

    def child(self, node: int, name: Name) -> int | None:
        """Return the cluster of this name directly below a node, or None."""
        return self._children.get((node, name))

    def cluster(self, path: Sequence[Name]) -> int | None:
        """Return the node of the cluster at the end of a path, or None."""
        node: int | None = 0
        for name in path:
            node = None if node is None else self.child(node, name)
        return node

    def arms_below(self, node: int) -> NDArray[np.intp]:
        """Return the positions of all arms below a node, in order."""
        shape, level = self.shape, np.array([node])
        leaves = []
        while len(level):  # the children of adjacent nodes are adjacent
            leaves.append(level[shape.content[level] >= 0])
            level = np.concatenate([np.arange(shape.start[inner], shape.start[inner + 1]) for inner in level.tolist()])
        return np.sort(shape.content[np.concatenate(leaves)]).astype(np.intp)

    @lazy
    def top_clusters(self) -> dict[Name, int]:
        """The node of each top cluster, by its name."""
        first, last = self.shape.start[0], self.shape.start[1]
        return {self.name(node): node for node in range(first, last) if self.shape.content[node] < 0}

    @lazy
    def top_of_arms(self) -> NDArray[np.intp]:
        """The node of each arm's top cluster, -1 for an arm directly below the root: (arms,), read-only."""
        node = np.arange(self.shape.n_nodes)
        node[self.shape.content >= 0] = -1
        top = self.shape.hand_down(node, from_level=1)[self.shape.node_of]
        top.flags.writeable = False
        return top

    def sums_of_top(self, values: NDArray[np.int64]) -> dict[Name, int]:
        """Sum ``values``, one per arm, over each top cluster; arms directly below the root are left out."""
        sums = np.bincount(self.top_of_arms + 1, values, minlength=int(self.shape.start[1]) + 1).tolist()
        return {name: int(sums[node + 1]) for name, node in self.top_clusters.items()}

    @lazy
    def _children(self) -> dict[tuple[int, Name], int]:
        inner = self.shape.inner[1:]
        pairs = zip(self.shape.parent[inner].tolist(), self.clusters[1:], inner.tolist(), strict=True)
        return {(parent, name): node for parent, name, node in pairs if name is not None}
