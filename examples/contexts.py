"""Rewards that depend on who is asking: linear beliefs, a context with every decision."""

from collections.abc import Callable
from functools import partial

import numpy as np

import banditree as bt

tree = bt.Tree({"news": ["politics", "sport"], "music": ["rock", "jazz", "folk"]})
policy = bt.LinTSC(tree, dim=3, rng=7)

visitors = np.random.default_rng(1)
for _ in range(2000):
    young = float(visitors.random() < 0.5)
    context = [1.0, young, 1.0 - young]
    arm = policy.choose(context=context)
    liked = 0.7 if arm == ("rock" if young else "jazz") else 0.3
    policy.update(arm, reward=visitors.random() < liked, context=context)

for who, context in {"young": [1.0, 1.0, 0.0], "old": [1.0, 0.0, 1.0]}.items():
    print(f"\n{who}")
    print(policy.table(context=context))

# Is it worth clustering? Flat and clustered on the paper's contextual problem, made small.
problem = bt.problems.linear(n_arms=60, n_clusters=6, spread=0.3, dim=5)
policies: dict[str, Callable[..., bt.Policy]] = {
    "LinTS": partial(bt.LinTS, dim=5),
    "LinTSC": partial(bt.LinTSC, dim=5),
}
runs = bt.simulate(policies, problem, horizon=500, seeds=8, rng=0)
print(f"\n{runs}")
print(runs.compare("LinTSC", "LinTS"))
