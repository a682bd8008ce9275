"""The tree of a log's arms from a table of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from banditree.catalogue import columns
from banditree.catalogue.read import read_catalogue
from banditree.tree import Tree


def read_tree(source: Any, *, arm: str, path: Sequence[str] = ()) -> Tree:
    """Read the tree alone from a table of items, as `read_catalogue` reads it with counts; other columns do not matter.

    >>> table = {"item": ["hat", "cap", "boot"], "kind": ["head", "head", "foot"]}
    >>> read_tree(table, arm="item", path=["kind"]).clusters
    {'head': ['hat', 'cap'], 'foot': ['boot']}
    """
    table = columns.load(source, [arm, *path])
    n = len(table.rows)
    known = {name: table.values[name] for name in (arm, *path)}
    counts = {" plays": [1] * n, " successes": [0] * n}  # names with a space in front, which no column has
    return read_catalogue(known | counts, arm=arm, path=path, plays=" plays", successes=" successes").tree
