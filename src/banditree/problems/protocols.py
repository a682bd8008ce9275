"""What a simulation asks of a problem and of an instance: a user's own needs no more than this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from banditree.tree import Tree


@runtime_checkable
class AnyInstance(Protocol):
    """Trees over the same arms, the first being ``tree``, and what their rewards are."""

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
    """Draws instances. ``name``, ``fixed`` and ``slow`` may be there too, as in :class:`Problem`."""

    def instance(self, rng: Any) -> AnyInstance: ...
