"""Linear-Gaussian beliefs, for expected rewards that are linear functions of a context."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from banditree.base.arrays import Floats, Indices, Places
from banditree.beliefs.base import ROUNDING, Batch, Belief, CountedRows, NativeTwin, Nodes, Rows, check_sums, per_node
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import MAX_CONTEXT, MAX_REWARD, positive, real, whole
from banditree.stream import Rng

MAX_INFLATION = 1e8  # of a variance by collinear contexts; beyond it, Cholesky's factors have lost too many digits
MAX_DIM = 2**15  # most numbers in a context


@dataclass(frozen=True)
class Linear(Belief):
    """Rewards theta.x + noise, with the prior theta ~ N(mean, (v / precision) I).

    Parameters
    ----------
    dim
        Length of the contexts.
    v
        Scales the variance of the samples, the paper's v.
    mean
        Of the coefficients at the start, the paper's 0_d: one number for all of them, or one each.
    precision
        B at the start, the paper's 1_d, as a multiple of the identity.

    >>> Linear(dim=2)
    Linear(dim=2, v=1.0, mean=(0.0, 0.0), precision=1.0)
    """

    common = ("dim", "v")

    size: int
    v: float
    mean: tuple[float, ...]
    precision: float

    def __init__(
        self, dim: int | None = None, *, v: float = 1.0, mean: ArrayLike = 0.0, precision: float = 1.0
    ) -> None:
        if dim is None:
            raise InvalidType("give the length of the contexts, for example dim=5")
        dim = whole("dim", dim, 1, why="the length of the contexts")
        if dim > MAX_DIM:
            raise InvalidValue(f"dim={dim!s:.60} is too long: a context has at most {MAX_DIM:,} numbers")
        for what, number in {"v": v, "precision": precision}.items():  # keeps all numbers finite
            real(f"Linear: {what}", positive(f"Linear: {what}", number), 1e-30, MAX_CONTEXT)
        if np.size(mean) not in (1, dim):
            raise InvalidValue(f"Linear: mean={mean!r} must be one number, or one for each of the {dim} coefficients")
        means = tuple(
            real("Linear: mean", value, -MAX_CONTEXT, MAX_CONTEXT) for value in np.broadcast_to(mean, dim).tolist()
        )
        for name, value in {"size": dim, "v": v, "mean": means, "precision": precision}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Linear(dim={self.size}, v={self.v}, mean={self.mean}, precision={self.precision})"

    @property
    def dim(self) -> int:
        return self.size

    def parameters(self) -> dict[str, object]:
        return {"dim": self.size, "v": self.v, "mean": list(self.mean), "precision": self.precision}

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> Linear | None:
        """Start from the coefficients that fit all rewards of the sibling arms."""
        assert isinstance(rows, LinearRows)
        if not rows.plays(leaves).any():
            return None
        gram, moment = (part[leaves].sum(axis=0) for part in (rows.gram, rows.moment))
        plays = float(rows.plays(leaves).sum())
        mean, _ = solve_collinear(self.precision, np.array(self.mean), gram, moment, plays)
        return Linear(self.dim, v=self.v, mean=mean.tolist(), precision=self.precision)

    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> LinearRows:
        for belief in own.values():
            if (belief.dim, belief.v) != (self.dim, self.v):
                raise InvalidValue(f"{belief} must have the dim and v of the whole tree, {self.dim} and {self.v}")
        precision = per_node(n_nodes, self.precision, own, "precision")
        try:
            return LinearRows(self.dim, self.v, precision, per_node(n_nodes, self.mean, own, "mean"))
        except MemoryError:
            size = n_nodes * self.dim**2 * 12 / 2**30
            raise InvalidValue(
                f"{n_nodes:,} nodes with contexts of {self.dim:,} numbers need {size:,.0f} GB of memory; "
                "use fewer arms or shorter contexts"
            ) from None


class LinearRows(CountedRows):
    """Posterior of node i: N(B^-1 f, v B^-1), B = precision[i] I + gram[i], f = precision[i] prior_mean[i] + moment[i].

    (The paper's mu = B^-1 f.) B^-1 is kept as R with R R' = B^-1, so that x' B^-1 x = |R' x|^2 is a sum of squares, in
    which nothing cancels.
    """

    native = "Linear"
    EVIDENCE = ("count", "total", "gram", "moment")
    PRIOR = ("precision", "prior_mean")

    dim: int
    gram: Floats  # (nodes, dim, dim) sum of x x'
    moment: Floats  # (nodes, dim) sum of r x

    def __init__(self, dim: int, v: float, precision: Floats, prior_mean: Floats) -> None:
        n = len(precision)
        self.dim, self.v = dim, v
        self.precision, self.prior_mean = precision, prior_mean  # (nodes,), (nodes, dim)
        self.lay_out(np.zeros((n, 2 + dim * dim + dim)), {"gram": (dim, dim), "moment": (dim,)})
        self._posteriors: tuple[Floats, Floats, Floats] | None = None  # the evidence they are of, B^-1 f and R
        self._walk: ref[NativeTwin] | None = None

    def bind_walk(self, walk: NativeTwin) -> None:
        """Remember the native walk, as long as it exists."""
        self._walk = ref(walk)

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        """Return the chance that each node has the highest draw, from the very numbers that the engine draws with.

        Computed in another way they may differ by more than a spread, where rewards are of another order of magnitude.
        """
        walk = None if self._walk is None else self._walk()
        if walk is None:
            return self.normal_wins(nodes, context)
        mean, spread = np.array([walk.moments(int(node), context) for node in np.asarray(nodes)]).T.copy()
        return np.asarray(self.winning.normal_wins(mean, spread))

    def columns(self, count: float, total: float, context: Floats | None) -> Floats:
        assert context is not None
        gram = count * context[:, None] * context
        return np.concatenate([[count, total], gram.ravel(), total * context])

    def columns_of_arms(self, batch: Batch) -> Floats:
        assert batch.contexts is not None
        n, dim = len(batch.count), self.dim
        gram, moment = np.zeros((n, dim, dim)), np.zeros((n, dim))
        order = np.argsort(batch.positions, kind="stable")
        bounds = np.searchsorted(batch.positions[order], np.arange(n + 1))
        for arm in np.flatnonzero(batch.count).tolist():
            rows = order[bounds[arm] : bounds[arm + 1]]
            x = batch.contexts[rows]
            gram[arm] = (x * batch.plays[rows][:, None]).T @ x
            moment[arm] = batch.rewards[rows] @ x
        return np.concatenate([batch.count[:, None], batch.total[:, None], gram.reshape(n, -1), moment], axis=1)

    def posterior(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Return B^-1 f and R, recomputed where the evidence has changed: (k, dim), (k, dim, dim)."""
        if self._posteriors is None:
            n, dim = len(self.count), self.dim
            self._posteriors = np.full_like(self.table, np.nan), np.zeros((n, dim)), np.zeros((n, dim, dim))
        known_table, coefficients, root = self._posteriors
        nodes = np.arange(len(self.count))[nodes]
        table = self.table[nodes]
        moved = (table != known_table[nodes]).any(axis=1)  # also where none was computed: NaN differs from everything
        if moved.any():
            some = nodes[moved]
            coefficients[some], root[some] = self._solve(some)
            known_table[some] = table[moved]
        return coefficients[nodes], root[nodes]

    def _solve(self, nodes: Places) -> tuple[Floats, Floats]:
        """Compute B^-1 f and R by Cholesky's B = L L', R = L^-T; by eigenvectors where that loses digits."""
        precision, prior_mean = self.precision[nodes], self.prior_mean[nodes]
        gram, moment = self.gram[nodes], self.moment[nodes]
        b = precision[:, None, None] * np.eye(self.dim) + gram
        low: Floats = np.full_like(b, np.nan)
        try:
            low[...] = np.linalg.cholesky(b)
        except np.linalg.LinAlgError:  # one of them is singular up to rounding
            for at in range(len(b)):
                with suppress(np.linalg.LinAlgError):
                    low[at] = np.linalg.cholesky(b[at])
        root = np.zeros_like(b)  # first L^-1, row by row
        for i in range(self.dim):
            root[:, i, i] = 1 / low[:, i, i]
            root[:, i, :i] = -(low[:, i, None, :i] @ root[:, :i, :i])[:, 0] * root[:, i, i, None]
        root = root.transpose(0, 2, 1)
        f = precision[:, None] * prior_mean + moment
        coefficients = (root @ (root.transpose(0, 2, 1) @ f[:, :, None]))[:, :, 0]
        inflation = np.einsum("kii->ki", b) * (root * root).sum(axis=2)
        collinear = ~(inflation <= MAX_INFLATION).all(axis=1)  # also where it is not a number
        for at in np.flatnonzero(collinear).tolist():
            count = self.count[nodes[at]]
            solution = solve_collinear(float(precision[at]), prior_mean[at], gram[at], moment[at], count)
            coefficients[at], root[at] = solution
        untouched = self.count[nodes] == 0
        coefficients[untouched] = prior_mean[untouched]  # without rounding
        return coefficients, root

    def check_evidence(self) -> None:
        """Check also that a sum of x x' is symmetric and has no negative eigenvalue, up to rounding."""
        super().check_evidence()
        check_sums("gram", self.gram, self.count, MAX_CONTEXT**2)
        check_sums("moment", self.moment, self.count, MAX_REWARD * MAX_CONTEXT)
        trace = np.trace(self.gram, axis1=1, axis2=2)  # (nodes,) no entry is larger, and rounding is far smaller
        slack = ROUNDING * trace[:, None, None] + 1e-300  # squares of tiny numbers have few digits
        uneven = np.abs(self.gram - self.gram.swapaxes(1, 2)) > slack
        if (uneven | (np.abs(self.gram) > trace[:, None, None] + slack)).any():
            raise InvalidValue("gram has entries that no sum of x x' can have")
        try:
            np.linalg.cholesky((self.gram / np.where(trace > 0, trace, 1)[:, None, None]) + ROUNDING * np.eye(self.dim))
        except np.linalg.LinAlgError:
            raise InvalidValue("gram has a negative eigenvalue, which no sum of x x' can have") from None

    def native_arrays(self) -> list[object]:
        return [self.table, np.ascontiguousarray(self.precision), np.ascontiguousarray(self.prior_mean)]

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        return self.posterior(nodes)[0] @ contexts.T

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        return np.asarray(np.sqrt(self.v * ((contexts @ self.posterior(nodes)[1]) ** 2).sum(axis=-1)))

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Rng) -> Floats:
        mean = self.mean(nodes, contexts)
        return np.asarray(mean + self.spread(nodes, contexts) * rng.standard_normal((m, len(mean))).T)

    def draw_means(self, nodes: Indices, context: Floats | None, m: int, rng: Rng) -> Floats:
        assert context is not None
        mean, spread = self.mean(nodes, context[None]), self.spread(nodes, context[None])
        return np.asarray(mean + spread * rng.standard_normal((len(mean), m)))


def solve_collinear(
    precision: float, prior_mean: Floats, gram: Floats, moment: Floats, count: float
) -> tuple[Floats, Floats]:
    """Compute B^-1 f and R of one node whose contexts are nearly collinear, by the eigenvectors of ``gram``.

    Rounding leaves eigenvalues of about 1e-16 of the largest, and more after many rewards, where they should be 0: no
    context was seen in these directions, and the prior remains as it was. Twin of ``solve_collinear`` in linear.hpp.
    """
    values, vectors = np.linalg.eigh(gram)
    noise = min(np.finfo(float).eps * (len(values) + count), 1 / MAX_INFLATION) * values[-1]
    seen = values > noise
    b = precision + np.where(seen, values, 0.0)
    along = (precision * (prior_mean @ vectors) + np.where(seen, moment @ vectors, 0.0)) / b
    return vectors @ along, vectors / np.sqrt(b)
