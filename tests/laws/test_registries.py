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


APART = {("Counts", "Thompson"), ("Counts", "BestArm")}  # counts have no prior to draw from


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("belief", BELIEFS)
def test_parts_keep_the_laws_together(belief: str, rule: str, engine: str) -> None:
    kind: Any = RULES[rule]
    if (belief, rule) in APART:
        with pytest.raises(BanditreeError):
            kind().check(belief_of(belief))
        return
    bt.testing.check_policy(
        lambda tree, rng: bt.Policy(tree, belief=belief_of(belief), rule=kind(), rng=rng),
        trees=[bt.Tree({"a": ["x", "y"], "b": ["z"]})],
    )
