"""Define what a belief is: `Belief`, the prior that a user writes, and `Rows`, the beliefs of all nodes of a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import NormalDist
from types import ModuleType
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from banditree.base.arrays import Array, Floats, Indices, Places
from banditree.base.intervals import Number, normal_interval
from banditree.beliefs.law import Law
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import MAX_REWARD
from banditree.stream import Rng, native
from banditree.tree.shape import Shape

Nodes = slice | Indices
Arrays = Mapping[str, Array]  # by name, (nodes, ...) each

# How much two sums of the same numbers in different orders may differ, relative to the sum of absolute values: at most
# 2 n 2^-53 for n numbers (Higham 2002, section 4.2), which is 1e-6 at 4.5e9 rewards, and far less on average.
ROUNDING = 1e-6

MAX_COUNT = 1e30  # of rewards: far more than can be learned, and far from overflow


@dataclass(frozen=True)
class Batch:
    """Many rewards at once: the arm, reward and context of each, and the totals of each arm."""

    positions: NDArray[np.int64]  # (n,) arms, as positions in the user's order
    rewards: Floats  # (n,) sums of rewards
    plays: Floats  # (n,) how many rewards each row sums
    contexts: Floats | None  # (n, dim)
    count: Floats  # (arms,) number of rewards of each arm
    total: Floats  # (arms,) sum of the rewards of each arm

    @classmethod
    def of(
        cls, positions: NDArray[np.int64], rewards: Floats, plays: Floats, contexts: Floats | None, n_arms: int
    ) -> Batch:
        count, total = (np.bincount(positions, each, n_arms).astype(np.float64) for each in (plays, rewards))
        return cls(positions, rewards, plays, contexts, count, total)

    def sum_by_arm(self, each: Floats) -> Floats:
        """Add up a number of each row: (n,) -> (arms,)."""
        return np.bincount(self.positions, each, len(self.count)).astype(np.float64)


@dataclass(frozen=True)
class Belief(ABC):
    """The prior: what is believed about a node before any reward.

    Subclasses are frozen dataclasses whose fields are the parameters of the prior. `rows` makes the beliefs of a whole
    tree from it, which then learn.
    """

    can_sample: ClassVar[bool] = True  # whether there is a prior to sample from
    common: ClassVar[tuple[str, ...]] = ()  # parameters of the rewards, which all nodes must share
    without_common: ClassVar[Mapping[str, float]] = {}  # for other nodes, where own priors do not share them
    learns_noise: ClassVar[bool] = False  # whether rewards also tell how much they vary, which sums of rewards do not
    has_intercept: ClassVar[bool] = False  # whether contexts need no constant because the belief has a level of its own

    @property
    def dim(self) -> int | None:
        """Length of the contexts that this belief needs, None if it takes none."""
        return None

    @abstractmethod
    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> Rows:
        """Make the beliefs of a tree of ``n_nodes``: ``own`` maps some nodes to their own priors."""

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> Belief | None:
        """Estimate a prior for a new arm from the evidence of its sibling arms; None if there is too little."""
        raise InvalidType(
            f"{type(self).__name__} has no method `prior_from_siblings`, which prior='cluster' needs; give a prior"
        )

    def like(self, prior: Belief) -> Belief:
        """Return this prior as one of the same kind as this belief, for another node of the same tree."""
        if type(prior) is not type(self):
            raise InvalidType(f"prior={prior!r} must be a {type(self).__name__}, as the policy has")
        return prior

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the prior, for saving."""
        return asdict(self)


class NativeTwin(Protocol):
    """What beliefs ask of the native walk, which native/bindings has in full."""

    def moments(self, node: int, context: Floats | None) -> tuple[float, float]: ...
    def copies(self) -> tuple[Floats, Floats]: ...
    def believed(self, context: Floats, copies: Array, nodes: Array) -> Floats: ...


class Rows(ABC):
    """The beliefs of all nodes of a tree: the prior and the evidence, as arrays with one row per node.

    Evidence adds up: the evidence of an inner node is the sum over its arms. All of it is in one table, so that one
    assignment is a whole change: an exception such as Ctrl-C, which may come between any two steps of Python, leaves a
    reward learned by all nodes or by none. Whatever derives from the evidence is computed when it is needed.

    Below, k is a number of nodes and m a number of decisions; results broadcast to (k, m), because with contexts a
    node's mean depends on the decision.
    """

    native: ClassVar[str] = ""  # name of its twin in the native engine, if there is one; not inherited
    EVIDENCE: ClassVar[tuple[str, ...]]  # names of the evidence arrays, which add up, each (nodes, ...)
    NON_NEGATIVE: ClassVar[tuple[str, ...]] = ()  # names of the evidence arrays that cannot be negative
    PRIOR: ClassVar[tuple[str, ...]]  # names of the prior arrays, each (nodes, ...)
    support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # lowest and highest reward allowed
    hint: ClassVar[str] = ""  # what to do about a reward outside the support, for errors
    law: Law | None = None  # the numbers that the belief goes by, if some were chosen
    joint: ClassVar[bool] = False  # whether all arms compete at the root, as a node's belief depends on the whole tree
    shares_means: ClassVar[bool] = False  # whether a reward also moves the means of nodes that are not above its arm
    dim: int | None = None
    walked_natively = False  # set when the native engine walks these rows
    table: Floats  # (nodes, columns) the evidence of each node

    def lay_out(self, table: Floats, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        """Keep the evidence in this table, (nodes, columns), with each array of EVIDENCE as a view of its columns.

        ``shapes`` has the shape of a node's entry in those arrays that hold more than one number per node. A belief
        that does not call this may make its arrays in ``__init__`` and leave it to `join_evidence`.
        """
        self.table, first = table, 0
        for name in self.EVIDENCE:
            shape = (shapes or {}).get(name, ())
            width = int(np.prod(shape, dtype=np.int64))
            setattr(self, name, table[:, first : first + width].reshape(len(table), *shape))
            first += width

    def join_evidence(self) -> None:
        """Put the arrays of EVIDENCE into one table, if they are not views of one yet."""
        if "table" in vars(self):
            return
        arrays = {name: np.asarray(getattr(self, name), np.float64) for name in self.EVIDENCE}
        n, width = len(next(iter(arrays.values()))), sum(array[0].size for array in arrays.values())
        self.lay_out(np.zeros((width, n)).T, {name: array.shape[1:] for name, array in arrays.items()})
        for name, array in arrays.items():
            getattr(self, name)[...] = array

    def attach(self, shape: Shape) -> None:  # noqa: B027 (most beliefs of a node do not depend on others)
        """Take note of the tree that these nodes form, before anything else is asked."""

    def bind_walk(self, walk: NativeTwin) -> None:  # noqa: B027 (most beliefs compute what they need themselves)
        """Take note of the native walk that walks these rows."""

    @abstractmethod
    def evidence(self, count: Number, total: Number) -> tuple[Number, ...]:
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
    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        """Draw independently from the beliefs, on any scale that preserves their order: (k, m)."""

    @abstractmethod
    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        """Return the ends of a 95% interval for the expected reward: (k,) each."""

    def quantile(self, nodes: Nodes, contexts: Floats | None, level: float) -> Floats:
        """Return the expected reward that a node exceeds with probability 1 - level: (k, 1) or (k, m).

        Here by a normal distribution; beliefs that know better override it.
        """
        return self.mean(nodes, contexts) + NormalDist().inv_cdf(level) * self.spread(nodes, contexts)

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        """Return the probability that each of these nodes has the highest draw, with one draw per node: (k,)."""
        raise InvalidType(f"{type(self).__name__} has no method `wins`, which choice probabilities need")

    def draw_means(self, nodes: Indices, context: Floats | None, m: int, rng: Rng) -> Floats:
        """Draw the expected rewards of nodes m times from the beliefs about them: (k, m)."""
        return self.sample(nodes, None if context is None else np.repeat(context[None], m, axis=0), m, rng)

    def chances(self, nodes: Indices, context: Floats | None) -> Floats:
        """Return the probability that each of these nodes has the highest mean, by the beliefs: (k,)."""
        return self.wins(nodes, context)

    def trust(self, nodes: Indices) -> list[str] | None:
        """Describe how similar the children of each node are believed to be; None if that is not learned: (k,)."""
        return None

    def possible(self, means: Floats) -> Floats:
        """Return drawn means within the bounds that expected rewards have, where draws may be outside."""
        return means

    @property
    def winning(self) -> ModuleType:
        """The module with the winning probabilities: native if the native engine walks these rows."""
        if self.walked_natively and native is not None:
            return native
        from banditree.beliefs import winning

        return winning

    # Learning

    def columns(self, count: float, total: float, context: Floats | None) -> Floats:
        """Return what ``count`` rewards with sum ``total`` that came together add to a node's evidence: (columns,)."""
        return np.array(self.evidence(count, total))

    def columns_of_arms(self, batch: Batch) -> Floats:
        """Return what many rewards add to the rows of their arms: (arms, columns)."""
        return np.stack(self.evidence(batch.count, batch.total), axis=1)

    def add(self, nodes: Places, total: float, count: float, context: Floats | None) -> None:
        """Add ``count`` rewards with sum ``total`` to every node of a path."""
        self.table[nodes] += self.columns(count, total, context)

    def add_batch(self, shape: Shape, batch: Batch) -> None:
        """Add many rewards to their arms and all nodes above."""
        table = np.zeros(self.table.shape)
        table[shape.node_of] = self.columns_of_arms(batch)
        self.table += shape.sum_up(table)

    def forget(self, factor: float) -> None:
        """Multiply all evidence by ``factor``."""
        self.table *= factor

    # Files and the native engine

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the evidence and of the prior, by name."""
        return {name: getattr(self, name) for name in (*self.EVIDENCE, *self.PRIOR)}

    def check_evidence(self) -> None:
        """Raise if the evidence cannot have come from rewards. Used when it is loaded from a file."""
        for name in self.EVIDENCE:
            array = getattr(self, name)
            if not np.isfinite(array).all():
                raise InvalidValue(f"{name} has entries that are not finite")
            if name in self.NON_NEGATIVE and (array < 0).any():
                raise InvalidValue(f"{name} has entries below 0")
        if (self.plays(slice(None)) > MAX_COUNT).any():
            raise InvalidValue(f"it counts more than {MAX_COUNT:g} plays")

    def native_arrays(self) -> list[object]:
        """Return the evidence and the prior for the native engine, contiguous; the prior may be a copy."""
        return [np.ascontiguousarray(x) if name in self.PRIOR else x for name, x in self.arrays().items()]


class CountedRows(Rows):
    """Rows whose evidence begins with the number and the sum of the rewards, and whose posteriors may be normal."""

    EVIDENCE: ClassVar[tuple[str, ...]] = ("count", "total")
    NON_NEGATIVE: ClassVar[tuple[str, ...]] = ("count",)
    count: Floats  # (nodes,) rewards seen
    total: Floats  # (nodes,) their sum

    def evidence(self, count: Number, total: Number) -> tuple[Number, ...]:
        return count, total

    def check_evidence(self) -> None:
        super().check_evidence()
        check_sums("total", self.total, self.count, MAX_REWARD)

    def plays(self, nodes: Nodes) -> Floats:
        return self.count[nodes]

    def rewards(self, nodes: Nodes) -> Floats:
        return self.total[nodes]

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        return normal_interval(self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0])

    def normal_wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        """Return `wins` where draws are normal with this mean and spread: (k,)."""
        at = None if context is None else context[None]
        mean, spread = (np.ascontiguousarray(part[:, 0]) for part in (self.mean(nodes, at), self.spread(nodes, at)))
        return np.asarray(self.winning.normal_wins(mean, spread))


def check_sums(what: str, sums: Floats, count: Floats, largest: float) -> None:
    """Raise if a sum, (nodes, ...), is too large for its count, (nodes,), of numbers up to ``largest``."""
    size = np.abs(sums).reshape(len(count), -1).max(axis=1)
    if (size > count * largest * 1.01 + 1e-200).any():  # fading may bring a count down to 0
        raise InvalidValue(f"{what} has entries that are too large for so few rewards")


def per_node(n_nodes: int, value: ArrayLike, own: Mapping[int, object], field: str) -> Floats:
    """Return one prior parameter per node: (nodes, ...). If all are equal, the value is stored once."""
    each = np.asarray(value, float)
    array = np.broadcast_to(each, (n_nodes, *each.shape)) if each.ndim else _repeat(n_nodes, float(each))
    if not own:
        return array
    array = array.copy()
    for node, belief in own.items():
        array[node] = getattr(belief, field)
    return array


def least(array: Floats) -> float:
    """Return the least entry of an array from `per_node`; a value stored once is read once."""
    return float(array[0] if array.strides == (0,) else array.min())


@lru_cache(maxsize=64)  # read-only, and used by every policy of a simulation
def _repeat(n_nodes: int, value: float) -> Floats:
    return np.broadcast_to(value, n_nodes)


MIN_DRAWS, USUAL_DRAWS, MAX_DRAWS = 100, 2_000, 20_000  # of the means of all arms
MEANS_DRAWN, MOST_DRAWN, BLOCK = 2_000_000, 20_000_000, 1_000_000  # how many means are drawn in all, and at once


def draws_in_blocks(n_arms: int) -> list[int]:
    """Return how often the means of all arms are drawn at a time: less often in all where that would take minutes.

    >>> [sum(draws_in_blocks(n)) for n in (10, 1_000, 10_000, 100_000, 1_000_000)]
    [20000, 2000, 2000, 200, 100]
    """
    wanted = max(MEANS_DRAWN // n_arms, min(MOST_DRAWN // n_arms, USUAL_DRAWS))
    n_draws, block = min(max(wanted, MIN_DRAWS), MAX_DRAWS), max(1, BLOCK // n_arms)
    return [min(block, n_draws - start) for start in range(0, n_draws, block)]
