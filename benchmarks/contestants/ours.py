"""banditree, one call to choose and one to update. Which engine runs is in the environment (BANDITREE_ENGINE)."""

from __future__ import annotations

from functools import partial
from typing import Any

import banditree as bt
from benchmarks.contestants.agent import Agent, C, Offer, Setting, V

PACKAGE = "banditree"
REQUIRES = ("banditree",)
IMPORT = "import banditree"
FIRST = """
import banditree as bt
policy = bt.TS(bt.Tree(100), rng=0)
policy.update(policy.choose(), 1)
"""


def _agent(setting: Setting, *, policy: Any) -> Agent:
    tree = bt.Tree.from_labels(setting.labels)
    built = policy(tree, rng=setting.seed)
    return Agent(built.choose, built.update)


OFFERS = {
    name: Offer(f"bt.{name}", partial(_agent, policy=policy))
    for name, policy in {
        "TS": bt.TS,
        "TSC": bt.TSC,
        "UCB1": bt.UCB1,
        "UCBC": bt.UCBC,
        "LinATS": partial(bt.LinATS, dim=5),
        "LinTS": partial(bt.LinTS, dim=5, v=V),
        "LinTSC": partial(bt.LinTSC, dim=5, v=V),
        "LinUCB": partial(bt.LinUCB, dim=5, c=C),
        "LinUCBC": partial(bt.LinUCBC, dim=5, c=C),
    }.items()
}
