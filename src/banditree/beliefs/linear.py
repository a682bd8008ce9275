"""Linear-Gaussian beliefs: the expected reward is a linear function of a context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import Batch, Belief, Floats, Nodes, Rows, per_node
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import LARGEST, positive, real, whole
from banditree.tree.shape import Shape

REFRESH = 512  # rewards of a node between two inversions from scratch, so that rounding never builds up
STEEP = 1e4  # a rank-one update that shrinks the variance by more than this loses its digits: invert from scratch
SINGULAR = 1e-13  # below this ratio of the smallest to the largest eigenvalue an inversion has no digits to give


@dataclass(frozen=True)
class Linear(Belief):
    """Reward ~ theta.x + noise, theta believed to be N(mean, (v / precision) I) before any reward.

    ``v`` scales the variance of the samples (the paper's v); ``precision`` and ``mean`` are B and mu at the start
    (the paper's 1_d and 0_d). ``mean`` is one number for all coefficients, or one each.

    >>> Linear(dim=2)
    Linear(dim=2, v=1.0, mean=(0.0, 0.0), precision=1.0)
    """

    common = ("dim", "v")

    size: int
    v: float
    mean: tuple[float, ...]
    precision: float

    def __init__(
        self, dim: int | None = None, *, v: float = 1.0, mean: float | Any = 0.0, precision: float = 1.0
    ) -> None:
        if dim is None:
            raise InvalidType("say how long the contexts are, for example dim=5")
        dim = whole("dim", dim, 1, why="the length of the contexts")
        for what, number in {"v": v, "precision": precision}.items():  # with the largest contexts all stays finite
            real(f"Linear: {what}", positive(f"Linear: {what}", number), 1e-50, 1e50)
        if np.size(mean) not in (1, dim):
            raise InvalidValue(f"Linear: mean={mean!r} must be one number, or one for each of the {dim} coefficients")
        means = tuple(real("Linear: mean", value, -LARGEST, LARGEST) for value in np.broadcast_to(mean, dim).tolist())
        for name, value in {"size": dim, "v": v, "mean": means, "precision": precision}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Linear(dim={self.size}, v={self.v}, mean={self.mean}, precision={self.precision})"

    @property
    def dim(self) -> int:
        return self.size

    def parameters(self) -> dict[str, Any]:
        return {"dim": self.size, "v": self.v, "mean": list(self.mean), "precision": self.precision}

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> LinearRows:
        for belief in own.values():
            if (belief.dim, belief.v) != (self.dim, self.v):
                raise InvalidValue(f"{belief} must have the dim and v of the whole tree, {self.dim} and {self.v}")
        precision = per_node(n_nodes, self.precision, own, "precision")
        return LinearRows(self.dim, self.v, precision, per_node(n_nodes, self.mean, own, "mean"))


class LinearRows(Rows):
    """Posterior of node i: theta ~ N(coefficients[i], v inverse[i]) (the paper's mu = B^-1 f and B^-1).

    The sum of x x' is kept beside the inverse, so that inner nodes can be recomputed from their arms. The inverse is
    symmetric and kept as its upper triangle, row by row.
    """

    EVIDENCE = ("count", "total", "gram", "moment")
    PRIOR = ("precision", "prior_mean")
    DERIVED = ("triangle", "coefficients")

    dim: int

    def __init__(self, dim: int, v: float, precision: Floats, prior_mean: Floats) -> None:
        n = len(precision)
        self.dim, self.v = dim, v
        self.precision, self.prior_mean = precision, prior_mean  # (nodes,), (nodes, dim)
        self.count, self.total = np.zeros(n), np.zeros(n)  # (nodes,) rewards seen and their sum
        self.gram = np.zeros((n, dim, dim))  # sum of x x'
        self.moment = np.zeros((n, dim))  # sum of r x
        row, column = np.triu_indices(dim)
        self._place = np.empty((dim, dim), np.intp)  # (dim, dim) where each entry of B^-1 is in its triangle
        self._place[row, column] = self._place[column, row] = np.arange(len(row))
        # The nodes lie side by side in memory (they are the last axis of what is allocated): they are scored so.
        self.triangle = np.empty((len(row), n)).T  # (nodes, dim (dim + 1) / 2) of B^-1, B = precision I + gram
        self.triangle[...] = (row == column) / precision[:, None]
        self.coefficients = np.empty((dim, n)).T  # (nodes, dim) B^-1 f, f = precision prior_mean + moment
        self.coefficients[...] = prior_mean

    def inverse(self, nodes: Nodes) -> Floats:
        """B^-1: (k, dim, dim)."""
        return self.triangle[nodes][:, self._place]

    def _set_inverse(self, nodes: Nodes, inverse: Floats) -> None:
        self.triangle[nodes] = inverse[:, *np.triu_indices(self.dim)]

    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        return count, total

    def observe(self, nodes: NDArray[np.intp], reward: float, context: Floats | None) -> None:
        """A rank-one update (Sherman and Morrison), and from time to time an inversion from scratch.

        With g = B^-1 x and s = 1 + x'g, B^-1 becomes B^-1 - g g'/s and B^-1 f becomes B^-1 f + g (r - x'B^-1 f) / s.
        """
        assert context is not None
        self.count[nodes] += 1
        self.total[nodes] += reward
        self.gram[nodes] += context[:, None] * context
        self.moment[nodes] += reward * context
        inverse = self.inverse(nodes)  # (path, dim, dim)
        gain = inverse @ context  # (path, dim)
        shrink = 1 + gain @ context  # (path,)
        error = reward - self.coefficients[nodes] @ context  # (path,)
        scaled = gain / shrink[:, None]
        self._set_inverse(nodes, inverse - scaled[:, :, None] * gain[:, None, :])
        self.coefficients[nodes] += scaled * error[:, None]
        due = (self.count[nodes] % REFRESH == 0) | (shrink > STEEP)
        if due.any():
            values = np.linalg.eigvalsh(self._b(nodes[due]))
            self.settle(nodes[due][values[:, 0] > SINGULAR * values[:, -1]])

    def absorb(self, shape: Shape, batch: Batch) -> None:
        n, dim = len(batch.count), self.dim
        gram, moment = np.zeros((n, dim, dim)), np.zeros((n, dim))
        order = np.argsort(batch.positions, kind="stable")
        bounds = np.searchsorted(batch.positions[order], np.arange(n + 1))
        assert batch.contexts is not None
        for arm in np.flatnonzero(batch.count):
            mine = order[bounds[arm] : bounds[arm + 1]]
            x = batch.contexts[mine]
            gram[arm], moment[arm] = x.T @ x, batch.rewards[mine] @ x
        arrays: tuple[Floats, ...] = (batch.count, batch.total, gram, moment)
        for name, values in zip(self.EVIDENCE, arrays, strict=True):
            self.add_from_arms(shape, name, values)
        self.settle(shape.touched(batch.count))

    def settle(self, nodes: NDArray[np.intp]) -> None:
        b = self._b(nodes)
        safe = np.trace(b, axis1=1, axis2=2) < self.precision[nodes] / SINGULAR  # no eigenvalue is below the precision
        self._set_inverse(nodes[safe], np.linalg.inv(b[safe]))
        if not safe.all():
            values, vectors = np.linalg.eigh(b[~safe])
            least = np.maximum(values, self.precision[nodes[~safe], None])  # nor is it here, but for rounding
            self._set_inverse(nodes[~safe], (vectors / least[:, None, :]) @ vectors.transpose(0, 2, 1))
        f = self.precision[nodes, None] * self.prior_mean[nodes] + self.moment[nodes]
        self.coefficients[nodes] = (self.inverse(nodes) @ f[:, :, None])[:, :, 0]

    def _b(self, nodes: NDArray[np.intp]) -> Floats:
        """(k, dim, dim)"""
        return np.asarray(self.precision[nodes, None, None] * np.eye(self.dim) + self.gram[nodes])

    def kept(self) -> dict[str, NDArray[Any]]:
        """Files hold the whole inverse: they do not depend on how it lies in memory."""
        kept = super().kept()
        del kept["triangle"]
        return kept | {"inverse": self.inverse(slice(None))}

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        others = dict(kept)
        self._set_inverse(slice(None), others.pop("inverse"))
        super().put_back(others)

    def native_arrays(self) -> list[NDArray[Any]]:
        *others, triangle, coefficients = super().native_arrays()
        return [*others, triangle.T, coefficients.T]

    def plays(self, nodes: Nodes) -> Floats:
        return self.count[nodes]

    def rewards(self, nodes: Nodes) -> Floats:
        return self.total[nodes]

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        return self.coefficients[nodes] @ contexts.T

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        along = np.einsum("md,kde,me->km", contexts, self.inverse(nodes), contexts, optimize=len(contexts) > 1)
        return np.asarray(np.sqrt(self.v * np.maximum(along, 0)))

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        mean = self.mean(nodes, contexts)
        return np.asarray(mean + self.spread(nodes, contexts) * rng.standard_normal((m, len(mean))).T)

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        mean, spread = self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0]
        return mean - 1.96 * spread, mean + 1.96 * spread
