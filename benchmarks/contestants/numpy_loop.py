"""A plain NumPy loop of the same algorithms: what one writes without a library, and writes well.

All beliefs are in flat arrays with a row a node, numbered so that a node's children are one slice: slices make these
loops as fast as NumPy allows, deep trees included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import banditree as bt
from benchmarks.contestants import numpy_beta, numpy_counts, numpy_linear
from benchmarks.contestants.agent import Agent, C, Offer, Setting, V
from benchmarks.contestants.numpy_tree import Nodes

PACKAGE = "numpy"
REQUIRES = ("numpy",)
IMPORT = "import numpy"
FIRST = """
import numpy as np
rng = np.random.default_rng(0)
a, b = np.ones(100), np.ones(100)
a[rng.beta(a, b).argmax()] += 1
"""


def _agent(setting: Setting, *, depth: int, loop: Callable[[Nodes, int], Agent]) -> Agent:
    tree = bt.Tree.from_labels(setting.labels.tolist()).cut(depth)  # the numbering alone is ours, and is not timed
    return loop(Nodes.of(tree), setting.seed)


OFFERS = {
    "TS": Offer("rng.beta, argmax", partial(_agent, depth=0, loop=numpy_beta.agent)),
    "TSC": Offer("rng.beta, argmax, twice", partial(_agent, depth=1, loop=numpy_beta.agent)),
    "UCB1": Offer("sqrt, argmax", partial(_agent, depth=0, loop=numpy_counts.agent)),
    "UCBC": Offer("sqrt, argmax, twice", partial(_agent, depth=1, loop=numpy_counts.agent)),
    "LinTS": Offer("matmul, normal, argmax", partial(_agent, depth=0, loop=partial(numpy_linear.agent, dim=5, v=V))),
    "LinTSC": Offer("the same, twice", partial(_agent, depth=1, loop=partial(numpy_linear.agent, dim=5, v=V))),
    "LinUCB": Offer("matmul, argmax", partial(_agent, depth=0, loop=partial(numpy_linear.agent, dim=5, c=C))),
    "LinUCBC": Offer("the same, twice", partial(_agent, depth=1, loop=partial(numpy_linear.agent, dim=5, c=C))),
}
