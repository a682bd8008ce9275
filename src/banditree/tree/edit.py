"""Add, move and remove arms: turn a tree into the draft of the changed tree.

This works on the arrays of the tree, not on the paths of its arms, so a deep tree costs no more than a flat one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue
from banditree.tree.build import Draft, Name, names

if TYPE_CHECKING:
    from banditree.tree.tree import Tree

Targets = dict[Name, tuple[Name, ...]]  # arm -> the clusters above it
NO_ARM = np.iinfo(np.int64).max  # stands for the first arm of an empty cluster


def added(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> Draft:
    targets = _targets(tree, arms)
    for arm in targets:
        if arm in tree:
            raise InvalidValue(f"arm {arm!r} is already in the tree; use move_arms to put it elsewhere")
    return _edited(tree, added=targets)


def moved(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> Draft:
    targets = _targets(tree, arms)
    for arm in targets:
        tree.position(arm)
    return _edited(tree, moved=targets)


def removed(tree: Tree, arms: Iterable[Any]) -> Draft:
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise InvalidType(f"give a list of arms to remove, not {arms!r}")
    gone = np.unique(np.fromiter((tree.position(arm) for arm in arms), np.int64))
    if len(gone) == tree.n_arms:
        raise InvalidValue("a tree needs at least one arm; this would remove all of them")
    return _edited(tree, gone=gone)


def _edited(
    tree: Tree, *, added: Targets | None = None, moved: Targets | None = None, gone: NDArray[np.int64] | None = None
) -> Draft:
    """Return the draft after a change. Clusters are in the order of their first arms, and come before the arms."""
    shape = tree.shape
    new_clusters: dict[tuple[int, Name], int] = {}  # (parent, name) -> node, numbered after the nodes of the tree
    parent_of_new: list[int] = []

    def node_of(clusters: tuple[Name, ...]) -> int:
        node = 0
        for name in clusters:
            found = tree.child_cluster(node, name)
            if found is None:
                found = new_clusters.setdefault((node, name), shape.n_nodes + len(new_clusters))
                if found == shape.n_nodes + len(parent_of_new):
                    parent_of_new.append(node)
            node = found
        return node

    above = shape.parent[shape.node_of].astype(np.int64)  # (arms,) the cluster above each arm
    for arm, clusters in (moved or {}).items():
        above[tree.position(arm)] = node_of(clusters)
    above = np.concatenate([above, np.fromiter(map(node_of, (added or {}).values()), np.int64)])
    arms = [*tree.arms, *(added or {})]
    if gone is not None:
        stays = np.ones(len(arms), bool)
        stays[gone] = False
        above, arms = above[stays], list(compress(arms, stays.tolist()))
    parent = np.concatenate([shape.parent, np.array(parent_of_new, np.int64)])
    first = _first_arms(tree, parent, above)
    old = np.concatenate([shape.inner, np.arange(shape.n_nodes, len(parent))])  # clusters, the root first
    old = old[first[old] < NO_ARM]
    old[1:] = old[1:][np.argsort(first[old[1:]], kind="stable")]
    new_number = np.empty(len(parent), np.int64)
    new_number[old] = np.arange(len(old))
    name_of_new = [name for _, name in new_clusters]
    draft = Draft()
    draft.parent = np.concatenate([[-1], new_number[parent[old[1:]]], new_number[above]]).tolist()
    draft.arm = np.concatenate([np.full(len(old), -1), np.arange(len(arms))]).tolist()
    draft.names = {
        new: tree.cluster_name(node) if node < shape.n_nodes else name_of_new[node - shape.n_nodes]
        for new, node in enumerate(old.tolist())
    }
    draft.arms = arms
    return draft


def _first_arms(tree: Tree, parent: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest arm position below each cluster, NO_ARM for an empty one: (nodes and new clusters,)."""
    first = np.full(len(parent), NO_ARM)
    np.minimum.at(first, above, np.arange(len(above)))
    for node in range(len(parent) - 1, tree.shape.n_nodes - 1, -1):  # new clusters: a child comes after its parent
        first[parent[node]] = min(first[parent[node]], first[node])
    for level in range(len(tree.shape.levels) - 2, 0, -1):
        nodes = slice(tree.shape.levels[level], tree.shape.levels[level + 1])
        np.minimum.at(first, parent[nodes], first[nodes])
    return first


def _targets(tree: Tree, arms: Mapping[Any, Sequence[Any]]) -> Targets:
    if not isinstance(arms, Mapping):
        raise InvalidType(f"give a mapping from arms to the clusters above them, not {arms!r}")
    found: Targets = {}
    for arm, clusters in zip(names(arms, "arm"), arms.values(), strict=True):
        if isinstance(clusters, str | bytes) or not isinstance(clusters, Sequence):
            raise InvalidType(f"the clusters above arm {arm!r} must be a tuple such as ('hats',), not {clusters!r}")
        found[arm] = tuple(names(clusters, "cluster"))
        _check_end(tree, arm, found[arm])
    return found


def _check_end(tree: Tree, arm: Name, clusters: tuple[Name, ...]) -> None:
    """Refuse the path of an arm where the clusters above it are needed: it would create a cluster named like the arm.

    Clusters and arms may share names, as when both are numbers. So only the whole path of an arm, or clusters that end
    in the arm itself, count as a mistake, and only if there is no such cluster.
    """
    if not clusters:
        return
    last = clusters[-1]
    doubtful = last == arm or (last in tree and tree.path(last) == clusters)
    if doubtful and tree.cluster_at(clusters) is None:
        end = f"end in arm {last!r}: the path of an arm has the arm last"
        raise InvalidValue(f"the clusters {clusters!r} above arm {arm!r} {end}; leave it off: {clusters[:-1]!r}")
