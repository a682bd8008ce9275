"""Values that users give by arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from banditree.errors import InvalidValue, UnknownArm
from banditree.tree import Tree


def in_order(tree: Tree, what: str, values: Mapping[Any, Any]) -> list[Any]:
    """The values of {arm: value} in the order of ``tree.arms``: one for every arm, and none for another."""
    strange = [arm for arm in values if arm not in tree]
    if strange:
        raise UnknownArm(f"{what} has {strange[0]!r}, which is no arm of {tree!r}; leave it out or add it to the tree")
    missing = [arm for arm in tree.arms if arm not in values]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InvalidValue(f"{what} has no value for arm {missing[0]!r}{more}; give every arm of the tree one")
    return [values[arm] for arm in tree.arms]
