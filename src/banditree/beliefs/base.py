"""Define what a belief is: `Belief`, the prior that a user writes, and `Rows`, the beliefs of all nodes of a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import winning
from banditree.errors import InvalidType, InvalidValue
from banditree.stream import native
from banditree.tree.lazy import lazy
from banditree.tree.shape import Shape

Floats = NDArray[np.float64]

Nodes = slice | NDArray[Any]

# How much two sums of the same numbers in different orders may differ, relative to the sum of absolute values: at most
# 2 n 2^-53 for n numbers (Higham 2002, section 4.2), which is 1e-6 at 4.5e9 rewards, and far less on average.
ROUNDING = 1e-6

LEAST_SCALE = 2.0**-20  # the least weight of stored, fading evidence; below it the evidence is rescaled

MOST = 2.0**53  # most rewards: beyond this, a float cannot count one more


Write = tuple[Any, Any, Any]  # (array, where, values): array[where] = values


@dataclass(frozen=True)
class Batch:
    """Many rewards at once: the arm, reward and context of each, and the totals of each arm."""

    positions: NDArray[np.int64]  # (n,) arms, as positions in the user's order
    rewards: Floats  # (n,) rewards, or sums of rewards where `plays` is given
    plays: Floats | None  # (n,) how many rewards each row sums; None: one each
    contexts: Floats | None  # (n, dim)
    count: Floats  # (arms,) number of rewards of each arm
    total: Floats  # (arms,) sum of the rewards of each arm

    @classmethod
    def of(
        cls,
        positions: NDArray[np.int64],
        rewards: Floats,
        plays: Floats | None,
        contexts: Floats | None,
        n_arms: int,
    ) -> Batch:
        count = np.bincount(positions, plays, minlength=n_arms).astype(np.float64)
        total = np.bincount(positions, rewards, minlength=n_arms).astype(np.float64)
        return cls(positions, rewards, plays, contexts, count, total)


@dataclass(frozen=True)
class Belief(ABC):
    """The prior: what is believed about a node before any reward.

    Subclasses are frozen dataclasses whose fields are the parameters of the prior. `rows` makes the beliefs of a whole
    tree from it, which then learn.
    """

    can_sample: ClassVar[bool] = True  # whether there is a prior to sample from
    common: ClassVar[tuple[str, ...]] = ()  # parameters of the rewards, which all nodes must share
    has_intercept: ClassVar[bool] = False  # whether contexts need no constant because the belief has a level of its own

    @property
    def dim(self) -> int | None:
        """Length of the contexts that this belief needs, None if it takes none."""
        return None

    @abstractmethod
    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> Rows:
        """Make the beliefs of a tree of ``n_nodes``: ``own`` maps some nodes to their own priors."""

    def beside(self, rows: Rows, leaves: NDArray[Any]) -> Belief | None:
        """Estimate a prior for a new arm from the evidence of its sibling arms; None if there is too little."""
        raise InvalidType(f"{type(self).__name__} has no method `beside`, which prior='cluster' needs; give a prior")

    def like(self, prior: Belief) -> Belief:
        """Return this prior as one of the same kind as this belief, for another node of the same tree."""
        if type(prior) is not type(self):
            raise InvalidType(f"prior={prior!r} must be a {type(self).__name__}, as the policy has")
        return prior

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the prior, for saving."""
        return asdict(self)


class Rows(ABC):
    """The beliefs of all nodes of a tree: the prior and the evidence, as arrays with one row per node.

    Evidence adds up: the evidence of an inner node is the sum over its arms. Below, k is a number of nodes and m a
    number of decisions; results broadcast to (k, m), because with contexts a node's mean depends on the decision.
    """

    native: ClassVar[str] = ""  # name of its twin in the native engine, if there is one; not inherited
    EVIDENCE: ClassVar[tuple[str, ...]]  # names of the evidence arrays, which add up, each (nodes, ...)
    NON_NEGATIVE: ClassVar[tuple[str, ...]] = ()  # names of the evidence arrays that cannot be negative
    PRIOR: ClassVar[tuple[str, ...]]  # names of the prior arrays, each (nodes, ...)
    DERIVED: ClassVar[tuple[str, ...]] = ()  # names of the arrays that `refresh_derived` computes, each (nodes, ...)
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # lowest and highest reward allowed
    hint: ClassVar[str] = ""  # what to do about a reward outside the support, for errors
    OPTIONAL: ClassVar[tuple[str, ...]] = ("scale",)  # names of arrays that a file may lack
    joint: ClassVar[bool] = (
        False  # whether a node's belief depends on the whole tree; then all arms compete at the root
    )
    LAZY: ClassVar[bool] = False  # whether methods apply `scale`, so that evidence fades without touching every node
    dim: int | None = None
    walked_natively = False  # set when the native engine walks these rows
    fades = False  # set by a policy with a half-life

    @lazy
    def scale(self) -> Floats:
        """The weight of the stored evidence, which falls as evidence fades: (1,), shared with the native engine."""
        return np.ones(1)

    def attach(self, shape: Shape) -> None:  # noqa: B027 (most beliefs of a node do not depend on others)
        """Take note of the tree that these nodes form, before anything else is asked."""

    def joins(self, walk: Any) -> None:  # noqa: B027 (most beliefs compute what they need themselves)
        """Take note of the native walk that walks these rows."""

    @abstractmethod
    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        """Return what ``count`` rewards with sum ``total`` add to the arrays of EVIDENCE: numbers, or (arms,) each."""

    @abstractmethod
    def plays(self, nodes: Nodes) -> Floats:
        """Return the number of rewards seen: (k,)."""

    @abstractmethod
    def rewards(self, nodes: Nodes) -> Floats:
        """Return the sum of the rewards seen: (k,)."""

    @abstractmethod
    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """Return the expected reward: (k, 1) or (k, m)."""

    @abstractmethod
    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        """Return the uncertainty of the mean, as a standard deviation: (k, 1) or (k, m)."""

    @abstractmethod
    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        """Draw independently from the beliefs, on any scale that preserves their order: (k, m)."""

    @abstractmethod
    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Return the ends of a 95% interval for the expected reward: (k,) each."""

    def observed(self, nodes: NDArray[np.intp], total: float, count: float, context: Floats | None) -> list[Write]:
        """Compute, without applying it, what ``count`` rewards with sum ``total`` change at every node of a path."""
        return self._added(nodes, self.evidence(count, total))

    def absorbed(self, shape: Shape, batch: Batch) -> list[Write]:
        """Compute, without applying it, what many rewards change at their arms and all nodes above."""
        arms = self.evidence(batch.count, batch.total)
        sums = [self._from_arms(shape, name, values) for name, values in zip(self.EVIDENCE, arms, strict=True)]
        return self._added(slice(None), sums)

    def _added(self, nodes: Nodes, more: Any) -> list[Write]:
        arrays = [getattr(self, name) for name in self.EVIDENCE]
        return [(array, nodes, array[nodes] + values) for array, values in zip(arrays, more, strict=True)]

    def forgotten(self, factor: float) -> list[Write]:
        """Compute, without applying it, what changes when all evidence is multiplied by ``factor``."""
        return [(array, slice(None), array * factor) for array in (getattr(self, name) for name in self.EVIDENCE)]

    @property
    def winning(self) -> Any:
        """The module with the winning probabilities: native if the native engine walks these rows."""
        return native if self.walked_natively else winning

    def rescaled(self) -> list[Write]:
        """Compute, without applying it, the same evidence with ``scale`` set back to 1. No belief changes."""
        return [*self.forgotten(float(self.scale[0])), (self.scale, slice(None), np.ones(1))]

    def observed_while_fading(
        self, nodes: NDArray[np.intp], total: float, count: float, context: Floats | None, fade: float
    ) -> list[Write]:
        """Compute, without applying it, what rewards change when all earlier evidence is multiplied by ``fade``.

        With LAZY, the stored evidence stays: ``scale`` falls instead, and the new rewards are divided by it.
        """
        if self.LAZY:
            scale = float(self.scale[0]) * fade
            return [(self.scale, slice(None), scale), *self.observed(nodes, total / scale, count / scale, context)]
        writes = []
        for array, _, values in self.forgotten(fade):
            writes.append((array, slice(None), values))
        for (_, _, values), more in zip(writes, self.evidence(count, total), strict=True):
            values[nodes] += more
        return writes

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        """Return the probability that each of these nodes has the highest draw, with one draw per node: (k,)."""
        raise InvalidType(f"{type(self).__name__} has no method `wins`, which choice probabilities need")

    def add_from_arms(self, shape: Shape, name: str, values: NDArray[Any], leaves: Any = None) -> None:
        """Add evidence given per arm, (arms, ...), or for some leaves, to the leaves and all nodes above them."""
        target = getattr(self, name)
        target += self._from_arms(shape, name, values, leaves)

    def _from_arms(self, shape: Shape, name: str, values: NDArray[Any], leaves: Any = None) -> NDArray[Any]:
        """Return what `add_from_arms` adds: (nodes, ...)."""
        total = np.zeros_like(getattr(self, name))
        total[shape.node_of if leaves is None else leaves] = values
        return shape.sum_up(total)

    def inherit(self, old: Any, shape: Shape, here: NDArray[Any], there: NDArray[Any]) -> None:  # noqa: B027
        """Copy state that is not in arrays from the rows of another tree, in which leaves ``here`` are at ``there``."""

    def refresh_derived(self, nodes: NDArray[np.intp]) -> None:  # noqa: B027 (most beliefs derive nothing)
        """Recompute the derived arrays of these nodes from their evidence."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all the arrays, by name."""
        return {name: getattr(self, name) for name in (*self.EVIDENCE, *self.PRIOR, *self.DERIVED)}

    def kept(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that a file keeps, by name: the evidence, and what derives from it, to the last bit."""
        kept = {name: getattr(self, name) for name in (*self.EVIDENCE, *self.DERIVED)}
        return kept if self.scale[0] == 1 else kept | {"scale": self.scale}

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that `kept` returned."""
        scale = kept.get("scale", np.ones(1))
        if scale.shape != (1,) or not LEAST_SCALE <= scale[0] <= 1:
            raise InvalidValue("scale is not one number from 2^-20 to 1")
        for name, array in ({"scale": scale} | dict(kept)).items():
            getattr(self, name)[...] = array

    def check_evidence(self) -> None:
        """Raise if the evidence cannot have come from rewards. Used when it is loaded from a file."""
        for name in self.EVIDENCE:
            array = getattr(self, name)
            if not np.isfinite(array).all():
                raise InvalidValue(f"{name} has entries that are not finite")
            if name in self.NON_NEGATIVE and ((array < 0) | (array > MOST)).any():
                raise InvalidValue(f"{name} has entries that are not from 0 to {MOST:g}")

    def residue(self, name: str, nodes: NDArray[np.intp]) -> Floats | float:
        """Return what rounding may leave in an array where terms of both signs cancel: (k,), or 0 where none can.

        What is left is relative to the terms, of which nothing is stored. A millionth of the rewards' noise allows for
        rewards 10^7 times as large as that, and makes no difference to any decision.
        """
        return 0.0

    def native_arrays(self) -> list[NDArray[Any]]:
        """Return the same arrays for the native engine, contiguous; the prior, which never changes, may be a copy."""
        return [np.ascontiguousarray(x) if name in self.PRIOR else x for name, x in self.arrays().items()]


def check_sums(what: str, sums: Floats, count: Floats, largest: float) -> None:
    """Raise if a sum, (nodes, ...), is too large for its count, (nodes,), of numbers up to ``largest``."""
    size = np.abs(sums).reshape(len(count), -1).max(axis=1)
    if (size > count * largest * 1.01 + 1e-200).any():  # fading may bring a count down to 0
        raise InvalidValue(f"{what} has entries that are too large for so few rewards")


def per_node(n_nodes: int, value: Any, own: Mapping[int, Any], field: str) -> Floats:
    """Return one prior parameter per node: (nodes, ...). If all are equal, the value is stored once."""
    array = _repeated(n_nodes, float(value)) if np.ndim(value) == 0 else _broadcast(n_nodes, value)
    if not own:
        return array
    array = array.copy()
    for node, belief in own.items():
        array[node] = getattr(belief, field)
    return array


def least(array: Floats) -> float:
    """Return the least entry of an array from `per_node`; a value stored once is read once."""
    return float(array[0] if array.strides == (0,) else array.min())


def _broadcast(n_nodes: int, value: Any) -> Floats:
    value = np.asarray(value, float)
    return np.broadcast_to(value, (n_nodes, *value.shape))


@lru_cache(maxsize=64)  # read-only, and used by every policy of a simulation
def _repeated(n_nodes: int, value: float) -> Floats:
    return _broadcast(n_nodes, value)
