"""Compute the probability of a choice: of each step of the walk, and of every arm."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.policy.limits import AnyLimits
from banditree.policy.state import State
from banditree.tree.build import Name

Floats = NDArray[np.float64]


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


def decided(state: State, limits: AnyLimits | None, context: Any, position: int, explore: float) -> Decision:
    """Return the decision for the arm at a position. Needs exclusive access."""
    arm = state.arms[position]
    steps = []
    if state.rows.joint and (limits is None or limits.n_allowed > 1) and (n_arms := state.tree.n_arms) > 1:
        known = state.rows.win(position, limits)
        if known is not None:
            propensity = (1 - explore) * known + explore / (n_arms if limits is None else limits.n_allowed)
            return Decision(arm, state.given.path(arm), propensity, (known,))
    for node, child in pairwise(state.readable.path(position)):
        children = state.readable.children(node, limits)
        at = int(np.searchsorted(children, child))
        steps.append(float(_wins(state, limits, context, node, children)[at]))
    uniform = explore / (state.tree.n_arms if limits is None else limits.n_allowed)
    propensity = (1 - explore) * float(np.prod(steps)) + uniform
    return Decision(arm, state.given.path(arm), propensity, tuple(steps))


def propensities(state: State, limits: AnyLimits | None, context: Any, explore: float) -> Floats:
    """Return the probability of every arm: (arms,). Needs exclusive access."""
    shape = state.tree.shape
    chance = np.zeros(shape.n_nodes)  # probability that the walk reaches each node
    chance[0] = 1
    allowed = np.zeros(shape.n_nodes, bool)
    waiting = [0]
    while waiting:
        node = waiting.pop()
        children = state.readable.children(node, limits)
        if not len(children):
            allowed[node] = True
            continue
        chance[children] = chance[node] * _wins(state, limits, context, node, children)
        inner = children[shape.content[children] < 0]
        allowed[children[shape.content[children] >= 0]] = True
        waiting.extend(inner.tolist())
    found = (1 - explore) * chance[shape.node_of]
    if explore > 0:
        among = allowed[shape.node_of]
        found[among] += explore / among.sum()
    return found


def _wins(state: State, limits: AnyLimits | None, context: Any, node: int, children: NDArray[Any]) -> Floats:
    """Return the probability that the walk steps from a node to each of these children: (k,)."""
    if len(children) == 1:
        return np.ones(1)
    view = state.readable.view(node, children, context, limits)
    return state.readable.rule.wins(view)
