"""What a belief is: a prior that a user writes down once, and the rows of arrays it becomes over a whole tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.tree.shape import Shape

Floats = NDArray[np.float64]

Nodes = slice | NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """Many rewards at once: which arm, what reward, in which context; and what each arm got in all."""

    positions: NDArray[np.int64]  # (n,) arms, as places in the user's order
    rewards: Floats  # (n,)
    contexts: Floats | None  # (n, dim)
    count: Floats  # (arms,) rewards of each arm
    total: Floats  # (arms,) and their sum


@dataclass(frozen=True)
class Belief(ABC):
    """What is believed of a node before any reward. Subclasses are frozen dataclasses whose fields are the prior."""

    can_sample: ClassVar[bool] = True  # whether there is a prior, so that there is something to draw from
    common: ClassVar[tuple[str, ...]] = ()  # parameters of the rewards, which are the same in the whole tree

    @property
    def dim(self) -> int | None:
        """Length of the contexts this belief needs, None where it takes none."""
        return None

    @abstractmethod
    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> Rows:
        """The state for a tree of ``n_nodes``, every node at this prior but those in ``own`` at theirs."""

    def parameters(self) -> dict[str, Any]:
        """The prior's parameters, for saving."""
        return asdict(self)


class Rows(ABC):
    """The beliefs of all nodes: arrays with one row a node, and the evidence that made them.

    Evidence adds up: an inner node's is the sum of its arms'. In what follows k is a number of nodes, m of decisions;
    results broadcast to (k, m), because with contexts a node's mean depends on the decision.
    """

    EVIDENCE: ClassVar[tuple[str, ...]]  # names of the arrays that add up, each (nodes, ...)
    PRIOR: ClassVar[tuple[str, ...]]  # names of the arrays that hold the prior, each (nodes, ...)
    DERIVED: ClassVar[tuple[str, ...]] = ()  # names of the arrays kept up to date by `settle`, each (nodes, ...)
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # rewards allowed
    hint: ClassVar[str] = ""  # what to do about a reward outside the support
    dim: int | None = None

    @abstractmethod
    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        """What ``count`` rewards of sum ``total`` add to the arrays of EVIDENCE: numbers, or (arms,) each."""

    @abstractmethod
    def plays(self, nodes: Nodes) -> Floats:
        """Rewards seen: (k,)."""

    @abstractmethod
    def rewards(self, nodes: Nodes) -> Floats:
        """Sum of the rewards seen: (k,)."""

    @abstractmethod
    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """Expected reward: (k, 1) or (k, m)."""

    @abstractmethod
    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """How unsure the mean is, one standard deviation: (k, 1) or (k, m)."""

    @abstractmethod
    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        """Independent draws from the beliefs, on a scale that orders them: (k, m)."""

    @abstractmethod
    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Ends of a 95% interval for the expected reward: (k,) each."""

    def observe(self, nodes: NDArray[np.intp], reward: float, context: Floats | None) -> None:
        """One reward, for every node on a path."""
        for name, value in zip(self.EVIDENCE, self.evidence(1.0, reward), strict=True):
            getattr(self, name)[nodes] += value

    def absorb(self, shape: Shape, batch: Batch) -> None:
        """Many rewards, for all the nodes above their arms."""
        arms = self.evidence(batch.count, batch.total)
        for name, values in zip(self.EVIDENCE, arms, strict=True):
            self.add_from_arms(shape, name, values)

    def add_from_arms(self, shape: Shape, name: str, values: NDArray[Any], leaves: Any = None) -> None:
        """Add evidence given for each arm, (arms, ...), or for some leaves, to these and to all nodes above."""
        target = getattr(self, name)
        total = np.zeros_like(target)
        total[shape.node_of if leaves is None else leaves] = values
        target += shape.sum_up(total)

    def settle(self, nodes: NDArray[np.intp]) -> None:  # noqa: B027 (most beliefs derive nothing)
        """Bring what is derived from the evidence of these nodes up to date."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All the state, by name."""
        return {name: getattr(self, name) for name in (*self.EVIDENCE, *self.PRIOR, *self.DERIVED)}

    def kept(self) -> dict[str, NDArray[Any]]:
        """What a file keeps, by name: the evidence, and what derives from it, to the last bit."""
        return {name: getattr(self, name) for name in (*self.EVIDENCE, *self.DERIVED)}

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        for name, array in kept.items():
            getattr(self, name)[...] = array

    def native_arrays(self) -> list[NDArray[Any]]:
        """The same as they lie in memory, for the native engine; the prior, which no step changes, may be a copy."""
        return [np.ascontiguousarray(x) if name in self.PRIOR else x for name, x in self.arrays().items()]


def per_node(n_nodes: int, value: Any, own: Mapping[int, Any], field: str) -> Floats:
    """One parameter of the prior for each node: (nodes, ...). Where all have the same it is held once."""
    value = np.asarray(value, float)
    array = np.broadcast_to(value, (n_nodes, *value.shape))
    if not own:
        return array
    array = array.copy()
    for node, belief in own.items():
        array[node] = getattr(belief, field)
    return array
