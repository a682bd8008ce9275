"""The tree as nested lists that open and close, short however many arms there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from banditree.catalogue.items import Catalogue
from banditree.catalogue.sentences import short
from banditree.output.html import text
from banditree.output.words import count

CHILDREN = 12  # shown of each cluster
NODES = 600  # shown in all


def outline(catalogue: Catalogue, means: Mapping[tuple[Any, ...], float]) -> str:
    """Clusters with the mean of their arms and the number of arms below them; arms with their rates."""
    shape = catalogue.tree.shape
    below = shape.sum_up((shape.content >= 0).astype(np.int64))
    left = [NODES]

    def branch(node: int, path: tuple[Any, ...]) -> str:
        first, last = int(shape.start[node]), int(shape.start[node + 1])
        shown = min(last, first + CHILDREN) if last - first > CHILDREN + 1 else last
        parts = []
        for child in range(first, shown):
            if left[0] <= 0:
                shown = child
                break
            left[0] -= 1
            name = catalogue.tree.name(child)
            place = int(shape.content[child])
            if place >= 0:
                parts.append(f"<li>{text(name)} <span class='small'>{short(float(catalogue.rates[place]))}</span></li>")
                continue
            inner = (*path, name)
            known = f"mean {short(means[inner])}, {count(int(below[child]), 'arm')}"
            opened = " open" if not path and last - first <= 3 else ""
            summary = f"<summary>{text(name)} <span class='small'>{known}</span></summary>"
            parts.append(f"<li><details{opened}>{summary}{branch(child, inner)}</details></li>")
        if shown < last:
            parts.append(f"<li class='small'>... and {last - shown:,} more</li>")
        return f"<ul class='tree'>{''.join(parts)}</ul>"

    return branch(0, ())
