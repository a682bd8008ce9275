"""Outline a tree as nested branches for a page, kept short however many arms there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditree.catalogue.items import Catalogue
from banditree.catalogue.sentences import short
from banditree.report.words import count

CHILDREN = 12  # shown of each cluster
NODES = 600  # shown in all
LEVELS = 20  # shown nested


@dataclass
class Node:
    """A cluster or an arm; without a name, a note about what is not shown."""

    name: Any
    note: str
    opened: bool = False
    children: list[Node] = field(default_factory=list)


def outline(catalogue: Catalogue, means: Mapping[tuple[Any, ...], float]) -> list[Node]:
    """List clusters with their number of arms and the mean of these, and arms with their rates."""
    shape = catalogue.tree.shape
    below = shape.sum_up((shape.content >= 0).astype(np.int64))
    left = [NODES]

    def branch(node: int, path: tuple[Any, ...]) -> list[Node]:
        first, last = int(shape.start[node]), int(shape.start[node + 1])
        shown = min(last, first + CHILDREN) if last - first > CHILDREN + 1 else last
        if len(path) == LEVELS:
            return [Node(None, f"... {count(int(below[node]), 'arm')}")]
        found = []
        for child in range(first, shown):
            if left[0] <= 0:
                shown = child
                break
            left[0] -= 1
            name = catalogue.tree.name(child)
            place = int(shape.content[child])
            if place >= 0:
                found.append(Node(name, short(float(catalogue.rates[place]))))
                continue
            inner = (*path, name)
            known = f"mean {short(means[inner])}, {count(int(below[child]), 'arm')}"
            found.append(Node(name, known, not path and last - first <= 3, branch(child, inner)))
        if shown < last:
            found.append(Node(None, f"... and {last - shown:,} more"))
        return found

    return branch(0, ())
