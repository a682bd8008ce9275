"""Answer questions about a policy: its beliefs, the probability of each arm, the remaining value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.beliefs.base import Nodes, draws_in_blocks
from banditree.data.features import Features
from banditree.errors import InvalidValue, UnknownArm
from banditree.policy.limits import AnyLimits
from banditree.policy.state import State
from banditree.tree.build import Name

if TYPE_CHECKING:
    from banditree.base.tables import Row, Table
    from banditree.policy.policy import Policy


@dataclass(frozen=True)
class Decision:
    """One choice, and the probability with which the policy made it.

    ``path`` is the arm's path in the given tree; ``steps`` are the probabilities of the steps of the walk, from coarse
    to fine. With ``explore=0`` their product is the ``propensity``.
    """

    arm: Name
    path: tuple[Name, ...]
    propensity: float
    steps: tuple[float, ...]


def decide(state: State, limits: AnyLimits | None, context: Floats | None, position: int, explore: float) -> Decision:
    """Return the decision for the arm at a position. Needs exclusive access."""
    arm = state.walked_tree.arms[position]
    known = state.walk.wins(limits, context, position)
    steps = _steps(state, limits, context, position) if known is None else known.tolist()
    uniform = explore / (state.walked_tree.n_arms if limits is None else limits.n_allowed)
    return Decision(arm, state.full_tree.path(arm), (1 - explore) * math.prod(steps) + uniform, tuple(steps))


def _steps(state: State, limits: AnyLimits | None, context: Floats | None, position: int) -> list[float]:
    """Return the probabilities of the steps to an arm."""
    steps = []
    for node, child in pairwise(state.walk.path(position)):
        children = state.walk.children(node, limits)
        at = int(np.searchsorted(children, child))
        steps.append(float(_wins(state, limits, context, node, children)[at]))
    return steps


def propensities(state: State, limits: AnyLimits | None, context: Floats | None, explore: float) -> Floats:
    """Return the probability of every arm: (arms,). Needs exclusive access."""
    chances = state.walk.wins(limits, context)
    chances = (1 - explore) * (_arm_chances(state, limits, context) if chances is None else chances)
    if explore > 0:
        allowed: Nodes = slice(None) if limits is None else limits.arms_allowed()
        chances[allowed] += explore / len(chances[allowed])
    return chances


def _arm_chances(state: State, limits: AnyLimits | None, context: Floats | None) -> Floats:
    """Return the probability that the walk reaches each arm: (arms,)."""
    shape = state.walked_tree.shape
    chance = np.zeros(shape.n_nodes)
    chance[0] = 1
    waiting = [0]
    while waiting:
        node = waiting.pop()
        children = state.walk.children(node, limits)
        if not len(children):
            continue
        chance[children] = chance[node] * _wins(state, limits, context, node, children)
        waiting.extend(children[shape.content[children] < 0].tolist())
    return np.asarray(chance[shape.node_of])


def _wins(state: State, limits: AnyLimits | None, context: Floats | None, node: int, children: Indices) -> Floats:
    """Return the probability that the walk steps from a node to each of these children: (k,)."""
    if len(children) == 1:
        return np.ones(1)
    contexts = None if context is None else context[None]
    return state.walk.rule.wins(state.walk.view(node, children, contexts, limits))


COLUMNS = ("path", "plays", "mean", "interval", "trust")
NO_CONTEXT = "needs context="  # shown instead of an interval that depends on one


def table(state: State, context: Floats | None, features: Features | None) -> Table:
    """Return one row per node, the root first."""
    from banditree.base.tables import Table  # not needed by `import banditree`

    nodes = np.arange(state.walked_tree.shape.n_nodes)
    columns = _columns(state, nodes, context, features)
    return Table(COLUMNS[: 1 + len(columns)], list(zip(state.walked_tree.nodes.paths(), *columns, strict=True)))


def html(policy: Policy) -> str:
    """The policy in a notebook: what it is, and its table."""
    from banditree.base.document import Document

    table = policy.table()
    return Document(repr(policy), (table.grid(),)).to_fragment(f"{policy!r}\n{table}")


def row(state: State, key: object, context: Floats | None, features: Features | None) -> Row:
    """Return the row of an arm, or of the node at a path."""
    from banditree.base.tables import Row

    node = _node(state, key)
    columns = _columns(state, np.array([node]), context, features)
    values = (state.walked_tree.nodes.path(node), *(column[0] for column in columns))
    return Row(zip(COLUMNS, values, strict=False))


def best(state: State, context: Floats | None) -> Name:
    """Return the arm with the highest expected reward among those tried; ties go to the first."""
    leaves = state.walked_tree.shape.node_of
    tried = np.flatnonzero(state.rows.plays(leaves) > 0)
    if not len(tried):
        raise InvalidValue("no arm has been tried yet; learn from some rewards first")
    means = state.rows.mean(leaves[tried], None if context is None else context[None])[:, 0]
    return state.walked_tree.arms[int(tried[np.argmax(means)])]


class Remaining(NamedTuple):
    """Remaining value: reward per decision that knowing the best arm would still add, by the beliefs."""

    mean: float  # expected
    high: float  # it is at most this much with a probability of 95%


def chances(state: State, context: Floats | None) -> dict[Name, float]:
    """Return the probability of each arm that its mean is the highest."""
    highest = state.rows.chances(np.asarray(state.walked_tree.shape.node_of, np.intp), context)
    return dict(zip(state.walked_tree.arms, (highest / highest.sum()).tolist(), strict=True))


def remaining(state: State, context: Floats | None) -> Remaining:
    """Compare the highest mean with that of the arm which is best by its expected mean, over draws of all means.

    The draws have a stream of their own, so that the same beliefs give the same answer.
    """
    rows, leaves = state.rows, np.asarray(state.walked_tree.shape.node_of, np.intp)
    best = int(np.argmax(rows.mean(leaves, None if context is None else context[None])[:, 0]))
    rng = np.random.default_rng(0)
    gains = []
    for m in draws_in_blocks(len(leaves)):
        means = rows.possible(rows.draw_means(leaves, context, m, rng))
        gains.append(means.max(axis=0) - means[best])
    gain = np.concatenate(gains)
    return Remaining(float(gain.mean()), float(np.quantile(gain, 0.95)))


def _columns(state: State, nodes: Indices, context: Floats | None, features: Features | None) -> list[Sequence[object]]:
    """Return plays, mean and interval of some nodes, and trust where it is learned."""
    rows = state.rows
    plays = rows.plays(nodes)
    shown = plays.astype(int) if ((plays == np.rint(plays)) & (plays < 2**53)).all() else plays
    if rows.dim is not None and context is None:
        means = np.where(plays > 0, rows.rewards(nodes) / np.where(plays > 0, plays, 1), 0.0)
        named = NO_CONTEXT if features is None else f"{NO_CONTEXT} {', '.join(features.spec)}"
        columns: list[Sequence[object]] = [shown.tolist(), means.tolist(), [named] * len(nodes)]
    else:
        at = None if context is None else context[None]
        ends = (end.tolist() for end in rows.interval(nodes, at))
        columns = [shown.tolist(), rows.mean(nodes, at)[:, 0].tolist(), list(zip(*ends, strict=True))]
    trust = rows.trust(nodes)
    return columns if trust is None else [*columns, trust]


def _node(state: State, key: object) -> int:
    tree, path = state.walked_tree, key if isinstance(key, tuple) else (key,)
    plain = all(isinstance(name, str | int | np.integer) and not isinstance(name, bool) for name in path)
    if isinstance(key, tuple) and plain:
        node = tree.nodes.cluster(key)
        if node is not None:
            return node
        if key and key[-1] in tree and key in (state.full_tree.path(key[-1]), tree.path(key[-1])):
            return int(tree.shape.node_of[tree.position(key[-1])])
        if state.full_tree.nodes.cluster(key) is not None:
            raise UnknownArm(f"{key!r} is a cluster that this policy does not walk; it walks {tree!r}")
    if isinstance(key, tuple):
        raise UnknownArm(f"{tree!r} has no cluster and no arm at the path {key!r}")
    if plain and key not in tree and tree.nodes.cluster(path) is not None:
        return tree.nodes.cluster(path) or 0
    return int(tree.shape.node_of[tree.position(key)])
