"""Read the tree of a log's arms from a table of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from banditree.catalogue import columns
from banditree.catalogue.defects import CatalogueError, Defect
from banditree.catalogue.rows import Rows
from banditree.tree import Tree


def read_tree(source: Any, *, arm: Sequence[str], path: Sequence[str] = ()) -> Tree:
    """Read only the tree from a table of items, as `read_catalogue` does; other columns are ignored.

    ``arm`` lists the columns that form an id, ``path`` the columns of the categories from coarse to fine.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", "head", "foot"]}
    >>> read_tree(table, arm=["item"], path=["kind"]).clusters
    {'head': ['hat', 'cap'], 'foot': ['boot']}
    """
    table = columns.load(source, list(dict.fromkeys([*arm, *path])))
    if not table.rows and not table.defects:
        raise CatalogueError(table.source, [Defect(None, None, "no rows; a tree needs at least one arm")])
    rows = Rows(table, arm, path)
    first, _ = rows.arms(once="")
    if table.defects:
        raise CatalogueError(table.source, table.defects)
    return Tree.from_paths([(*rows.paths[row], rows.ids[row]) for row in first])
