"""Priors for a whole tree: one belief for every node, or a mapping that gives some clusters and arms their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from banditree.beliefs.base import Belief
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.tree import Tree

Prior = Belief | Mapping[Any, Belief]


def parts(prior: Prior) -> tuple[Belief, dict[Any, Belief]]:
    """The belief of all nodes without one of their own (key None, or the default of its kind), and the rest by key."""
    if isinstance(prior, Belief):
        return prior, {}
    given: Any = prior
    if not isinstance(given, Mapping) or not given:
        raise InvalidType(
            f"a prior is a belief such as bt.Beta(1, 1), or a mapping from clusters or arms; not {given!r}"
        )
    kinds = {type(belief) for belief in prior.values()}
    kind = kinds.pop()
    if kinds or not issubclass(kind, Belief):
        raise InvalidType(f"the priors of one tree must be beliefs of one kind, not {list(prior.values())!r}")
    own = {key: belief for key, belief in prior.items() if key is not None}
    if None in prior:
        return prior[None], own
    some = next(iter(own.values()))
    return (type(some)(some.dim) if some.dim is not None else kind()), own  # type: ignore[call-arg]


def by_node(given: Tree, walked: Tree, own: Mapping[Any, Belief], *, strict: bool) -> dict[int, Belief]:
    """Beliefs of their own by node of the tree that is walked, a cut of the one that was given.

    A key is an arm, the name of a cluster, or a path. Clusters that were cut away are passed over; keys that the given
    tree never had are an error if ``strict`` (arms and clusters may have left the tree since).
    """
    if not own:
        return {}
    at_path = dict(_clusters(walked))
    named: dict[Any, list[tuple[Any, ...]]] = {}
    for path, _ in _clusters(given):
        named.setdefault(path[-1], []).append(path)
        named.setdefault(path, []).append(path)
    found: dict[int, Belief] = {}
    for key, belief in own.items():
        paths = named.get(key, [])
        in_arms = _is_arm(given, key)
        if len(paths) + in_arms > 1:
            raise InvalidValue(f"prior for {key!r}: several nodes have this name; use one of the paths {paths}")
        if in_arms:
            arm = key[-1] if isinstance(key, tuple) else key
            found[int(walked.shape.node_of[walked.position(arm)])] = belief
        elif paths and paths[0] in at_path:
            found[at_path[paths[0]]] = belief
        elif strict and not paths:
            raise UnknownArm(f"prior for {key!r}: {given!r} has no arm or cluster of this name or path")
    return found


def _is_arm(tree: Tree, key: Any) -> bool:
    if isinstance(key, tuple):
        return bool(key) and key[-1] in tree and tree.path(key[-1]) == key
    return key in tree


def _clusters(tree: Tree) -> Iterator[tuple[tuple[Any, ...], int]]:
    """(path, node) of every cluster but the root."""
    for node in tree.shape.inner.tolist()[1:]:
        yield tree.path_of_node(node), node
