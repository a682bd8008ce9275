"""The paths of a tree's arms after arms were added, moved or removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from banditree.errors import InvalidType, InvalidValue
from banditree.tree.build import Name, names

if TYPE_CHECKING:
    from banditree.tree.tree import Tree

Paths = list[tuple[Name, ...]]


def added(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> Paths:
    new = _targets(tree, arms)
    for arm in new:
        if arm in tree:
            raise InvalidValue(f"arm {arm!r} is in the tree already; use move_arms to put it elsewhere")
    return [*tree.paths(), *new.values()]


def moved(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> Paths:
    new = _targets(tree, arms)
    for arm in new:
        tree.position(arm)
    return [new.get(arm, path) for arm, path in zip(tree.arms, tree.paths(), strict=True)]


def removed(tree: Tree, arms: Iterable[Any]) -> Paths:
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise InvalidType(f"give a list of arms to remove, not {arms!r}")
    gone = {tree.arms[tree.position(arm)] for arm in arms}
    if len(gone) == tree.n_arms:
        raise InvalidValue("a tree needs at least one arm; this would remove all of them")
    return [path for path in tree.paths() if path[-1] not in gone]


def _targets(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> dict[Name, tuple[Name, ...]]:
    """{arm: its whole path}."""
    if not isinstance(arms, Mapping):
        raise InvalidType(f"give a mapping from arms to the clusters above them, not {arms!r}")
    found: dict[Name, tuple[Name, ...]] = {}
    for arm, clusters in zip(names(arms, "arm"), arms.values(), strict=True):
        if isinstance(clusters, str | bytes) or not isinstance(clusters, Sequence):
            raise InvalidType(f"the clusters above arm {arm!r} must be a tuple such as ('hats',), not {clusters!r}")
        found[arm] = (*names(clusters, "cluster"), arm)
    _check_ends(tree, found)
    return found


def _check_ends(tree: Tree, targets: Mapping[Name, tuple[Name, ...]]) -> None:
    """Refuse the path of an arm in place of the clusters above it: it would make a cluster that is called like the arm.

    Clusters may be called like arms where both are numbers, so that only a whole path of an arm, or one that ends in
    the arm itself, is taken for a mistake; and not where there is such a cluster.
    """
    doubtful = {arm: path[:-1] for arm, path in targets.items() if len(path) > 1 and _ends_in_arm(tree, path)}
    if not doubtful:
        return
    known = {path[:level] for path in tree.paths() for level in range(1, len(path))}
    for arm, clusters in doubtful.items():
        if clusters not in known:
            end = f"end in arm {clusters[-1]!r}: the path of an arm has the arm last"
            raise InvalidValue(f"the clusters {clusters!r} above arm {arm!r} {end}; leave it off, as {clusters[:-1]!r}")


def _ends_in_arm(tree: Tree, path: tuple[Name, ...]) -> bool:
    """Whether the clusters of this path are themselves the path of an arm."""
    *clusters, arm = path
    last = clusters[-1]
    return last == arm or (last in tree and tree.path(last) == tuple(clusters))
