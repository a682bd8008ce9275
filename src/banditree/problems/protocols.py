"""What a simulation needs of a problem and of an instance, as protocols for those that users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from banditree.tree import Tree


@runtime_checkable
class AnyInstance(Protocol):
    """Trees over the same arms, the first of which is ``tree``, and their rewards."""

    @property
    def tree(self) -> Tree: ...

    @property
    def trees(self) -> Mapping[str, Tree]: ...

    def context(self, rng: Any) -> Any: ...

    def reward(self, arm: Any, rng: Any, context: Any = None) -> float: ...

    def expected(self, arm: Any, context: Any = None) -> float: ...

    def best(self, context: Any = None) -> float: ...


@runtime_checkable
class AnyProblem(Protocol):
    """Draws instances. It may also have ``name``, ``fixed`` and ``slow``, as :class:`Problem` has."""

    def instance(self, rng: Any) -> AnyInstance: ...
