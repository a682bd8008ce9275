"""Who takes part in the benchmarks, and what every contestant offers: two calls, to be timed as they are.

A new peer is a `Library` in peers.py and a name in ``PEERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Contestant

V = 0.25  # variance of a sampled score, as of a Bernoulli reward at its most uncertain (LinTS)
C = 0.5  # widths added to a score (LinUCB)

OURS = "banditree, native"
READABLE = "banditree, readable"
NUMPY = "NumPy loop"
PEERS = ("mabwiser", "river", "contextualbandits", "coba", "bayesianbandits", "vowpalwabbit", "pybandits")

OWN = (
    Contestant(OURS, "benchmarks.ours:banditree", "banditree", environ={"BANDITREE_ENGINE": "native"}),
    Contestant(READABLE, "benchmarks.ours:banditree", "banditree", environ={"BANDITREE_ENGINE": "readable"}),
    Contestant(NUMPY, "benchmarks.ours:numpy_loop", "numpy"),
)
OTHERS = tuple(Contestant(peer, f"benchmarks.peers:{peer}", peer, (peer, "numpy")) for peer in PEERS)


@dataclass(frozen=True)
class Setting:
    """What a contestant is told."""

    n_arms: int
    dim: int | None  # length of the contexts
    labels: NDArray[np.int64]  # (arms,) the cluster of each arm
    seed: int

    @property
    def arms(self) -> list[int]:
        return list(range(self.n_arms))


@dataclass(frozen=True)
class Agent:
    """``choose()`` and ``update(arm, reward)``; with contexts, ``choose(x)`` and ``update(arm, reward, x)``.

    ``context`` turns a vector into what the library takes. It is called before the clock starts.
    """

    choose: Callable[..., int]
    update: Callable[..., Any]
    context: Callable[[NDArray[np.float64]], Any] = lambda x: x


@dataclass(frozen=True)
class Offer:
    """How a contestant runs an algorithm: in its own words, and in code."""

    label: str
    make: Callable[[Setting], Agent]


@dataclass(frozen=True)
class Library:
    """The code that imports a library, the code of its first decision, and how it runs each algorithm."""

    imports: str
    first: str
    offers: Mapping[str, Offer]
