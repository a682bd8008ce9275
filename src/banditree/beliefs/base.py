"""What a belief is: a prior that a user writes down once, and the rows of arrays it becomes over a whole tree."""

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

# How far two sums of the same numbers in another order may differ, as a share of the sum of their sizes: at most twice
# n 2^-53 for n numbers (Higham 2002, section 4.2), which is 1e-6 at 4.5e9 rewards, and far less on average.
ROUNDING = 1e-6

LEAST_SCALE = 2.0**-20  # what stored evidence counts at least, where it fades; then it is scaled anew

MOST = 2.0**53  # rewards: beyond this one more makes no difference to a float


Write = tuple[Any, Any, Any]  # (array, where, values): array[where] = values


@dataclass(frozen=True)
class Batch:
    """Many rewards at once: which arm, what reward, in which context; and what each arm got in all."""

    positions: NDArray[np.int64]  # (n,) arms, as positions in the user's order
    rewards: Floats  # (n,) each the sum of so many rewards
    plays: Floats | None  # (n,) how many; None: one each
    contexts: Floats | None  # (n, dim)
    count: Floats  # (arms,) rewards of each arm
    total: Floats  # (arms,) and their sum

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

    def beside(self, rows: Rows, leaves: NDArray[Any]) -> Belief | None:
        """A prior for a new arm from what these arms beside it have shown, None where that is too little."""
        raise InvalidType(f"{type(self).__name__} has no method `beside`, which prior='cluster' needs; give a prior")

    def parameters(self) -> dict[str, Any]:
        """The prior's parameters, for saving."""
        return asdict(self)


class Rows(ABC):
    """The beliefs of all nodes: arrays with one row per node, and the evidence that made them.

    Evidence adds up: an inner node's is the sum of its arms'. In what follows k is a number of nodes, m of decisions;
    results broadcast to (k, m), because with contexts a node's mean depends on the decision.
    """

    native: ClassVar[str] = ""  # its name in the native engine, where it has a twin there; not inherited
    EVIDENCE: ClassVar[tuple[str, ...]]  # names of the arrays that add up, each (nodes, ...)
    NON_NEGATIVE: ClassVar[tuple[str, ...]] = ()  # names of those among them that count something
    PRIOR: ClassVar[tuple[str, ...]]  # names of the arrays that hold the prior, each (nodes, ...)
    DERIVED: ClassVar[tuple[str, ...]] = ()  # names of the arrays kept up to date by `settle`, each (nodes, ...)
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # rewards allowed
    hint: ClassVar[str] = ""  # what to do about a reward outside the support
    OPTIONAL: ClassVar[tuple[str, ...]] = ("scale",)  # names of arrays that only some files have
    LAZY: ClassVar[bool] = False  # whether `scale` is looked at: then evidence fades without touching every node
    dim: int | None = None
    walked_natively = False  # an engine says so when it takes them over
    fades = False  # a policy with a half-life says so

    @lazy
    def scale(self) -> Floats:
        """What the stored evidence counts, where it fades with every reward: (1,), shared with the native engine."""
        return np.ones(1)

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

    def observed(self, nodes: NDArray[np.intp], total: float, count: float, context: Floats | None) -> list[Write]:
        """What ``count`` rewards of sum ``total`` change at every node of a path. Nothing is changed yet."""
        return self._added(nodes, self.evidence(count, total))

    def absorbed(self, shape: Shape, batch: Batch) -> list[Write]:
        """What many rewards change at all the nodes above their arms. Nothing is changed yet."""
        arms = self.evidence(batch.count, batch.total)
        sums = [self._from_arms(shape, name, values) for name, values in zip(self.EVIDENCE, arms, strict=True)]
        return self._added(slice(None), sums)

    def _added(self, nodes: Nodes, more: Any) -> list[Write]:
        arrays = [getattr(self, name) for name in self.EVIDENCE]
        return [(array, nodes, array[nodes] + values) for array, values in zip(arrays, more, strict=True)]

    def forgotten(self, factor: float) -> list[Write]:
        """What changes where all evidence counts ``factor`` of what it did. Nothing is changed yet."""
        return [(array, slice(None), array * factor) for array in (getattr(self, name) for name in self.EVIDENCE)]

    @property
    def winning(self) -> Any:
        """The functions for winning probabilities: the native ones where the native engine walks these rows."""
        return native if self.walked_natively else winning

    def rescaled(self) -> list[Write]:
        """What changes where stored evidence is to count as it stands again, which changes no belief."""
        return [*self.forgotten(float(self.scale[0])), (self.scale, slice(None), np.ones(1))]

    def observed_while_fading(
        self, nodes: NDArray[np.intp], total: float, count: float, context: Floats | None, fade: float
    ) -> list[Write]:
        """What rewards change where all evidence before them counts ``fade`` of what it did. Nothing is changed yet.

        Instead of letting all evidence fade, the rewards count more: evidence counts ``scale`` of what is stored.
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
        """How likely each of these nodes is to have the highest of one draw each: (k,)."""
        raise InvalidType(f"{type(self).__name__} has no method `wins`, which probabilities of choices need")

    def add_from_arms(self, shape: Shape, name: str, values: NDArray[Any], leaves: Any = None) -> None:
        """Add evidence given for each arm, (arms, ...), or for some leaves, to these and to all nodes above."""
        target = getattr(self, name)
        target += self._from_arms(shape, name, values, leaves)

    def _from_arms(self, shape: Shape, name: str, values: NDArray[Any], leaves: Any = None) -> NDArray[Any]:
        """What `add_from_arms` adds: (nodes, ...)."""
        total = np.zeros_like(getattr(self, name))
        total[shape.node_of if leaves is None else leaves] = values
        return shape.sum_up(total)

    def inherit(self, old: Any, shape: Shape, here: NDArray[Any], there: NDArray[Any]) -> None:  # noqa: B027
        """Take what is not in an array from rows over another tree: leaves ``here`` were at ``there``."""

    def settle(self, nodes: NDArray[np.intp]) -> None:  # noqa: B027 (most beliefs derive nothing)
        """Bring what is derived from the evidence of these nodes up to date."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All the state, by name."""
        return {name: getattr(self, name) for name in (*self.EVIDENCE, *self.PRIOR, *self.DERIVED)}

    def kept(self) -> dict[str, NDArray[Any]]:
        """What a file keeps, by name: the evidence, and what derives from it, to the last bit."""
        kept = {name: getattr(self, name) for name in (*self.EVIDENCE, *self.DERIVED)}
        return kept if self.scale[0] == 1 else kept | {"scale": self.scale}

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        scale = kept.get("scale", np.ones(1))
        if scale.shape != (1,) or not LEAST_SCALE <= scale[0] <= 1:
            raise InvalidValue("scale is not one number from 2^-20 to 1")
        for name, array in ({"scale": scale} | dict(kept)).items():
            getattr(self, name)[...] = array

    def check_evidence(self) -> None:
        """Raise where the evidence cannot have come from rewards. Used on loading, where it comes from a file."""
        for name in self.EVIDENCE:
            array = getattr(self, name)
            if not np.isfinite(array).all():
                raise InvalidValue(f"{name} has entries that are not finite")
            if name in self.NON_NEGATIVE and ((array < 0) | (array > MOST)).any():
                raise InvalidValue(f"{name} has entries that are not from 0 to {MOST:g}")

    def native_arrays(self) -> list[NDArray[Any]]:
        """The same as they lie in memory, for the native engine; the prior, which no step changes, may be a copy."""
        return [np.ascontiguousarray(x) if name in self.PRIOR else x for name, x in self.arrays().items()]


def check_sums(what: str, sums: Floats, count: Floats, largest: float) -> None:
    """Raise where a sum, (nodes, ...), is larger than its count, (nodes,), of numbers up to ``largest`` can make it."""
    size = np.abs(sums).reshape(len(count), -1).max(axis=1)
    if (size > count * largest * 1.01 + 1e-200).any():  # old evidence may fade until nothing is left of its count
        raise InvalidValue(f"{what} has entries that are too large for so few rewards")


def per_node(n_nodes: int, value: Any, own: Mapping[int, Any], field: str) -> Floats:
    """One parameter of the prior for each node: (nodes, ...). Where all have the same it is held once."""
    array = _repeated(n_nodes, float(value)) if np.ndim(value) == 0 else _broadcast(n_nodes, value)
    if not own:
        return array
    array = array.copy()
    for node, belief in own.items():
        array[node] = getattr(belief, field)
    return array


def least(array: Floats) -> float:
    """The least entry of an array of `per_node`; one that is held once is looked at once."""
    return float(array[0] if array.strides == (0,) else array.min())


def _broadcast(n_nodes: int, value: Any) -> Floats:
    value = np.asarray(value, float)
    return np.broadcast_to(value, (n_nodes, *value.shape))


@lru_cache(maxsize=64)  # read-only, and asked for by every policy of a simulation
def _repeated(n_nodes: int, value: float) -> Floats:
    return _broadcast(n_nodes, value)
