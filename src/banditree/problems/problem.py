"""A problem, a distribution over instances; and the protocols that a problem of the user's own has to follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from banditree.problems.instance import Instance
from banditree.stream import Seed, generator
from banditree.tree import Tree
from banditree.tree.build import Name


@runtime_checkable
class AnyInstance(Protocol):
    """Trees over the same arms, the first of which is ``tree``, and their rewards."""

    @property
    def tree(self) -> Tree: ...

    @property
    def trees(self) -> Mapping[str, Tree]: ...

    def context(self, rng: Any) -> Any: ...

    def reward(self, arm: Name, rng: Any, context: Any = None) -> float: ...

    def expected(self, arm: Name, context: Any = None) -> float: ...

    def best(self, context: Any = None) -> float: ...


@runtime_checkable
class AnyProblem(Protocol):
    """Draws instances from a NumPy Generator. It may also have ``name``, ``fixed`` and ``slow``, as `Problem` has."""

    def instance(self, rng: Any) -> AnyInstance: ...


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

    def instance(self, rng: Seed) -> Instance:
        """Draw one instance; ``rng`` is an int, a SeedSequence or a Generator."""
        if self.fixed:
            return self._fixed_instance
        return self.draw(generator(rng), **self.parameters)

    @cached_property
    def _fixed_instance(self) -> Instance:
        return self.draw(generator(0), **self.parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the instance of a fixed problem, which is made again where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_fixed_instance"}

    def __repr__(self) -> str:
        shown = {
            name: f"array{value.shape}" if isinstance(value, np.ndarray) else repr(value)
            for name, value in self.parameters.items()
        }
        return f"{self.name}({', '.join(f'{name}={text}' for name, text in shown.items())})"
