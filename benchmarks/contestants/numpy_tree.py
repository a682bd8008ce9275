"""A tree as plain lists of ints, for the NumPy loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import banditree as bt


@dataclass(frozen=True)
class Nodes:
    """Node i's children are ``start[i]:start[i + 1]``; the root is node 0."""

    start: list[int]  # (nodes + 1,)
    arm: list[int]  # (nodes,) the arm at a leaf, negative at an inner node
    path: list[list[int]]  # (arms,) the nodes of an arm's path that hold a belief: all but the root

    @property
    def n(self) -> int:
        return len(self.arm)

    @classmethod
    def of(cls, tree: bt.Tree) -> Self:
        shape = tree.shape
        paths = [shape.path_up(node)[:-1] for node in shape.node_of.tolist()]
        return cls(shape.start.tolist(), shape.content.tolist(), paths)
