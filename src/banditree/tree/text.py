"""A tree as text, for a terminal or a notebook; short however many arms it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from banditree.base.words import count, visible

if TYPE_CHECKING:
    from banditree.base.document import Line
    from banditree.tree.tree import Tree

MAX_LINES = 40
MAX_CHILDREN, MAX_LEVELS, MAX_NODES = 20, 8, 400  # on a page, where clusters open and close
MAX_OPEN = 3  # top clusters that are open at first


def tree_as_text(tree: Tree) -> str:
    """Return the tree as lines with branches, and the number of arms in each cluster; omitted children are counted."""
    n_below = tree.shape.sum_up((tree.shape.content >= 0).astype(np.int64))
    for most_children in (MAX_LINES, 6, 4, 3, 2):
        lines = [summary(tree)]
        _branch(tree, n_below, 0, "", most_children, lines)
        if len(lines) <= MAX_LINES:
            break
    return "\n".join(lines if len(lines) <= MAX_LINES else [*lines[:MAX_LINES], "..."])


def _branch(
    tree: Tree, n_below: NDArray[np.int64], node: int, indent: str, most_children: int, lines: list[str]
) -> None:
    first, last = int(tree.shape.start[node]), int(tree.shape.start[node + 1])
    # A single surplus child is shown, because "... and 1 more" would take a line as well.
    shown = last - first if last - first <= most_children + 1 else most_children
    for child in range(first, first + shown):
        if len(lines) > MAX_LINES:
            return
        end = child == last - 1
        arms = "" if tree.shape.content[child] >= 0 else f" ({count(int(n_below[child]), 'arm')})"
        lines.append(f"{indent}{'└' if end else '├'}── {visible(tree.nodes.name(child))}{arms}")
        _branch(tree, n_below, child, indent + ("    " if end else "│   "), most_children, lines)
    if first + shown < last:
        lines.append(f"{indent}└── ... and {last - first - shown:,} more")


def tree_as_html(tree: Tree) -> str:
    """An outline whose clusters open and close, the top ones open, with a count of the omitted nodes."""
    from banditree.base.document import Document, Outline

    return Document(summary(tree), (Outline(outline(tree)),)).to_fragment(tree_as_text(tree))


def outline(tree: Tree, describe: Callable[[int], str] = lambda node: "") -> list[Line]:
    """Outline a tree for a page, kept short however many arms there are, with a count of the omitted nodes.

    ``describe`` says more about a node than its name and, for a cluster, its number of arms.
    """
    from banditree.base.document import Line

    n_below = tree.shape.sum_up((tree.shape.content >= 0).astype(np.int64))
    n_left = MAX_NODES

    def below(node: int, level: int) -> list[Line]:
        nonlocal n_left
        first, last = int(tree.shape.start[node]), int(tree.shape.start[node + 1])
        n_shown = min(last - first, MAX_CHILDREN, max(n_left, 0) if level < MAX_LEVELS else 0)
        n_left -= n_shown
        lines: list[Line] = []
        for child in range(first, first + n_shown):
            is_arm = tree.shape.content[child] >= 0
            size = "" if is_arm else count(int(n_below[child]), "arm")
            note = ", ".join(filter(None, (size, describe(child))))
            inside = [] if is_arm else below(child, level + 1)
            is_open = level == 0 and last - first <= MAX_OPEN
            lines.append(Line(str(tree.nodes.name(child)), f"({note})" if note else "", inside, is_open))
        if first + n_shown < last:
            lines.append(Line("", f"... and {last - first - n_shown:,} more"))
        return lines

    return below(0, 0)


def summary(tree: Tree) -> str:
    """Describe a tree in one line."""
    return f"Tree({count(tree.n_arms, 'arm')}, {count(tree.n_clusters, 'cluster')}, depth {tree.depth})"
