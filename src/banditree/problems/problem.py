"""A problem: a distribution over instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from banditree.problems.instance import Instance
from banditree.stream import Stream, generator

Rng = np.random.Generator | Stream  # what instances are drawn from


@dataclass(frozen=True, eq=False)
class Problem:
    """Draws instances by ``draw(rng, **parameters)``, a function of a module, so that a problem can be pickled.

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
    fixed: bool = False  # every seed has the same instance, which is drawn once
    slow: bool = False  # drawing takes long in Python, so it is worth several processes

    def instance(self, rng: Any) -> Instance:
        """Draw one instance; ``rng`` is an int, a SeedSequence or a Generator."""
        if self.fixed:
            return self._only
        return self.draw(generator(rng), **self.parameters)

    @cached_property
    def _only(self) -> Instance:
        return self.draw(generator(0), **self.parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the instance of a fixed problem, which is made again where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_only"}

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_short(value)}' for name, value in self.parameters.items())})"


def _short(value: Any) -> str:
    return f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)
