"""A problem: a distribution over instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.problems.instance import Instance
from banditree.stream import Stream, generator

Rng = np.random.Generator | Stream  # what instances are drawn from


@dataclass(frozen=True, eq=False)
class Problem:
    """Draws instances: ``draw(rng, **parameters)``, ``draw`` being a function of a module so that it can be sent.

    >>> from banditree.problems import unstructured
    >>> problem = unstructured(n_arms=6, n_clusters=2)
    >>> problem
    unstructured(n_arms=6, n_clusters=2)
    >>> problem.instance(0).tree.clusters
    {0: [0, 1, 2], 1: [3, 4, 5]}
    """

    name: str
    draw: Callable[..., Instance]
    parameters: Mapping[str, Any]
    fixed: bool = False  # every seed meets the same instance
    slow: bool = False  # an instance takes long in Python: draw several in processes

    def instance(self, rng: Any) -> Instance:
        """One instance; ``rng`` is an int, a SeedSequence or a Generator."""
        return self.draw(generator(rng), **self.parameters)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_short(value)}' for name, value in self.parameters.items())})"


def _short(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)
