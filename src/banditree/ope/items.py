"""The tree of a log's arms from a table of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from banditree.catalogue import columns
from banditree.catalogue.rows import Rows
from banditree.catalogue.troubles import CatalogueError, Trouble
from banditree.tree import Tree


def read_tree(source: Any, *, arm: Sequence[str], path: Sequence[str] = ()) -> Tree:
    """Read the tree alone from a table of items, as `read_catalogue` reads it with counts; other columns do not matter.

    ``arm`` are the columns that make an id, ``path`` those of the categories from coarse to fine.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", "head", "foot"]}
    >>> read_tree(table, arm=["item"], path=["kind"]).clusters
    {'head': ['hat', 'cap'], 'foot': ['boot']}
    """
    table = columns.load(source, list(dict.fromkeys([*arm, *path])))
    if not table.rows and not table.troubles:
        raise CatalogueError(table.source, [Trouble(None, None, "no rows; a tree needs at least one arm")])
    rows = Rows(table, arm, path)
    first, _ = rows.arms(once="")
    if table.troubles:
        raise CatalogueError(table.source, table.troubles)
    return Tree.from_paths([(*rows.paths[row], rows.ids[row]) for row in first])
