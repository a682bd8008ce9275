"""Every belief with every rule that is registered keeps the laws: a new part is tested the moment it is there."""

from __future__ import annotations

from typing import Any

import pytest

import banditree as bt
from banditree.beliefs import BELIEFS
from banditree.errors import BanditreeError
from banditree.rules import RULES


def belief_of(name: str) -> bt.Belief:
    kind: Any = BELIEFS[name]
    try:
        belief: bt.Belief = kind()
    except BanditreeError:  # needs to know the length of the contexts
        belief = kind(dim=2)
    return belief


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("belief", BELIEFS)
def test_parts_keep_the_laws_together(belief: str, rule: str, engine: str) -> None:
    kind: Any = RULES[rule]
    if not goes_with(belief, kind()):
        return
    bt.testing.check_policy(
        lambda tree, rng: bt.Policy(tree, belief=belief_of(belief), rule=kind(), rng=rng),
        trees=[bt.Tree({"a": ["x", "y"], "b": ["z"]})],
    )


def goes_with(belief: str, rule: bt.Rule) -> bool:
    try:
        rule.check(belief_of(belief))
    except BanditreeError:
        return False
    return True
