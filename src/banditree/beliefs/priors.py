"""Resolve the priors of a tree, one for every node or some for clusters and arms; estimate those of new arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditree.base.arrays import Floats
from banditree.beliefs.base import Belief, Rows
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.tree import Tree

OwnPriors = Mapping[Any, Belief]  # priors of some arms, and of clusters by their paths
Prior = Belief | OwnPriors
MAX_SPREAD = 0.95  # largest spread of the means of arms with rewards from 0 to 1


def parts(prior: Prior) -> tuple[Belief, OwnPriors]:
    """Split a prior into the default for all nodes and the own priors of some nodes, by key.

    The default is that of the key None. Without one, it is made from the `common` parameters that all own priors share;
    where they differ, from the class's `without_common`.
    """
    if isinstance(prior, Belief):
        return prior, {}
    mapping: object = prior
    if not isinstance(mapping, Mapping) or not mapping:
        raise InvalidType(
            f"a prior is a belief such as bt.Beta(1, 1), or a mapping from clusters or arms to beliefs; not {mapping!r}"
        )
    kinds = {type(belief) for belief in prior.values()}
    kind = kinds.pop()
    if kinds or not issubclass(kind, Belief):
        raise InvalidType(f"the priors of one tree must be beliefs of one kind, not {list(prior.values())!r}")
    own = {key: belief for key, belief in prior.items() if key is not None}
    if None in prior:
        return prior[None], own
    values = {name: {getattr(belief, name) for belief in own.values()} for name in kind.common}
    shared = {name: one.pop() for name, one in values.items() if len(one) == 1}
    try:
        return kind(**{**kind.without_common, **shared}), own
    except (TypeError, ValueError) as error:
        raise InvalidType(
            f"give the prior of all other nodes, as in {{None: ..., {next(iter(own))!r}: ...}}: {error}"
        ) from None


def resolve(tree: Tree, own: OwnPriors) -> OwnPriors:
    """Replace cluster names in keys by paths, so that the same names may later appear elsewhere in the tree.

    A key is an arm, the name of a cluster, or a path; a path that ends in ``...`` stands for everything below it.
    """
    named: dict[object, list[tuple[object, ...]]] = {}
    if own:
        for path, _ in _clusters(tree):
            named.setdefault(path[-1], []).append(path)
            named.setdefault(path, []).append(path)
    by_path: dict[object, Belief] = {}
    for key, belief in own.items():
        below = isinstance(key, tuple) and key[-1:] == (...,)
        name = key[:-1] if below else key
        paths, is_arm = named.get(name, []), not below and _is_arm(tree, key)
        if len(paths) + is_arm > 1:
            raise InvalidValue(f"prior for {key!r}: several nodes have this name; use one of the paths {paths}")
        if not paths and not is_arm:
            raise UnknownArm(f"prior for {key!r}: {tree!r} has no arm or cluster of this name or path")
        node = paths[0] if paths else key[-1] if isinstance(key, tuple) else key
        node = (*node, ...) if below else node
        if node in by_path:
            raise InvalidValue(f"prior for {key!r}: another prior is for the same node; leave one of them out")
        by_path[node] = belief
    return by_path


def by_node(full: Tree, walked: Tree, own: OwnPriors) -> dict[int, Belief]:
    """Map nodes of the walked tree to their own priors; keys whose arm or cluster is not in it are left out.

    A prior for a node itself takes precedence over one for everything below a cluster; lower clusters over higher ones.
    """
    at_path = dict(_clusters(walked)) if own else {}
    priors: dict[int, Belief] = {}
    wide = [key for key in own if isinstance(key, tuple) and key[-1] is ...]
    for key in sorted(wide, key=len):
        priors |= dict.fromkeys(_below(full, walked, at_path, key[:-1]), own[key])
    for key, belief in own.items():
        if isinstance(key, tuple):
            if key in at_path:
                priors[at_path[key]] = belief
        elif key in walked:
            priors[int(walked.shape.node_of[walked.position(key)])] = belief
    return priors


def _below(full: Tree, walked: Tree, at_path: Mapping[tuple[object, ...], int], path: tuple[object, ...]) -> list[int]:
    """Return the walked nodes of all clusters and arms below a cluster of the given tree."""
    top = full.nodes.cluster(path)
    clusters = [node for other, node in at_path.items() if len(other) > len(path) and other[: len(path)] == path]
    return clusters if top is None else [*clusters, *walked.shape.node_of[full.nodes.arms_below(top)].tolist()]


def prior_from_siblings(full: Tree, walked: Tree, rows: Rows, belief: Belief, path: Sequence[object]) -> Belief | None:
    """Estimate a prior for a new arm from the lowest cluster of its path whose arms have enough evidence, or None."""
    for level in range(len(path), -1, -1):
        node = full.nodes.cluster(path[:level])
        if node is not None:
            estimate = belief.prior_from_siblings(rows, walked.shape.node_of[full.nodes.arms_below(node)])
            if estimate is not None:
                return estimate
    return None


def _is_arm(tree: Tree, key: object) -> bool:
    if isinstance(key, tuple):
        return bool(key) and key[-1] in tree and tree.path(key[-1]) == key
    return key in tree


def _clusters(tree: Tree) -> Iterator[tuple[tuple[object, ...], int]]:
    """Yield (path, node) of every cluster except the root."""
    for node in tree.shape.inner.tolist()[1:]:
        yield tree.nodes.path(node), node


class Siblings(NamedTuple):
    """How the true means of arms lie beside each other, in units of the variance of one reward."""

    mean: float
    spread: float  # their variance
    error: float  # the variance of `mean`

    @property
    def of_another(self) -> float:
        """The variance of the true mean of one more arm."""
        return self.spread + self.error


def siblings(plays: Floats, totals: Floats, unit: float | None = None) -> Siblings | None:
    """Estimate by moments from plays and sums of rewards, (arms,) each; None if fewer than two arms were tried.

    ``unit`` is the variance of one reward; None stands for rewards from 0 to 1, whose variance depends on the mean.
    """
    n, y = plays[plays > 0], totals[plays > 0] / plays[plays > 0]
    if len(n) < 2:
        return None
    weight = np.minimum(n, 10 * np.median(n))  # no single arm dominates
    weight /= weight.sum()
    bounded = unit is None
    m = float(weight @ y)
    if bounded:  # add one play with reward 1/2, so that m is never 0 or 1
        m = float((totals.sum() + 0.5) / (plays.sum() + 1))
    u = m * (1 - m) if unit is None else unit
    # The method of moments; if noise explains all the spread, use the standard error of the estimate as phi.
    noise = float(weight @ (1 / n))
    phi = float(weight @ (y - weight @ y) ** 2) / u - noise
    phi = phi / max(1 - noise, 0.1) if bounded else phi
    phi = max(phi, noise * float(np.sqrt(2 / (len(n) - 1))))
    phi = min(phi, MAX_SPREAD) if bounded else phi
    precision = 1 / (phi + (1 - phi) / n if bounded else phi + 1 / n)
    mean = float(precision @ y / precision.sum())
    if bounded:
        mean = min(max(mean, m / 10), 1 - (1 - m) / 10)  # never exactly 0 or 1
    return Siblings(mean, phi, 1 / float(precision.sum()))
