"""What a policy of many arms holds: bytes per arm inside the arrays, and the time to build it. Ours alone."""

from __future__ import annotations

from time import perf_counter
from types import ModuleType

import numpy as np

import banditree as bt


def run(contestant: ModuleType, *, n_arms: int) -> dict[str, float]:
    labels = np.arange(n_arms) // max(1, round(n_arms**0.5))
    begin = perf_counter()
    tree = bt.Tree.from_labels(labels)
    grown = perf_counter()
    policy = bt.TSC(tree, rng=0)
    policy.update(policy.choose(), 1)
    ready = perf_counter()
    shape = tree.shape
    skeleton = sum(array.nbytes for array in (shape.start, shape.parent, shape.content, shape.node_of, shape.levels))
    beliefs = sum(array.nbytes for array in policy._state.rows.native_arrays())
    return {
        "tree": skeleton / n_arms,
        "beliefs": beliefs / n_arms,
        "grow": grown - begin,
        "policy": ready - grown,
    }
