"""Linear-Gaussian beliefs, for expected rewards that are linear functions of a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import ROUNDING, Batch, Belief, Floats, Nodes, Rows, Write, check_sums, per_node
from banditree.beliefs.exact import Sums
from banditree.beliefs.inverse import inverted
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import LARGEST, positive, real, shown, whole
from banditree.tree.shape import Shape

REFRESH = 512  # rewards of a node between two inversions from scratch, so that rounding errors do not build up
STEEP = 1e4  # a rank-one update that shrinks the variance by more than this factor loses digits: invert from scratch
INFLATED = 1e8  # if collinear contexts inflate a variance by more than this, doubles lose digits: sum exactly
LONGEST = 2**15  # most numbers in a context


@dataclass(frozen=True)
class Linear(Belief):
    """Rewards theta.x + noise, with the prior theta ~ N(mean, (v / precision) I).

    ``v`` scales the variance of the samples (the paper's v); ``precision`` and ``mean`` are B and mu at the start
    (the paper's 1_d and 0_d). ``mean`` is one number for all coefficients, or one per coefficient.

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
            raise InvalidType("give the length of the contexts, for example dim=5")
        dim = whole("dim", dim, 1, why="the length of the contexts")
        if dim > LONGEST:
            raise InvalidValue(f"dim={shown(dim)} is too long: a context has at most {LONGEST:,} numbers")
        for what, number in {"v": v, "precision": precision}.items():  # keeps all numbers finite
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

    def beside(self, rows: Rows, leaves: NDArray[Any]) -> Linear | None:
        """Start from the coefficients that fit all rewards of the sibling arms."""
        assert isinstance(rows, LinearRows)
        if not rows.plays(leaves).any():
            return None
        gram, moment = (part[leaves].sum(axis=0) * rows.scale[0] for part in (rows.gram, rows.moment))
        b = self.precision * np.eye(self.dim) + gram
        mean = np.linalg.solve(b, self.precision * np.array(self.mean) + moment)
        return Linear(self.dim, v=self.v, mean=mean.tolist(), precision=self.precision)

    def rows(self, n_nodes: int, own: Mapping[int, Any]) -> LinearRows:
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


class LinearRows(Rows):
    """Posterior of node i: theta ~ N(coefficients[i], v inverse[i]) (the paper's mu = B^-1 f and B^-1).

    The sum of x x' is stored beside the inverse, so that inner nodes can be recomputed from their arms. The inverse is
    symmetric, and stored as its upper triangle, row by row.

    Similar contexts inflate the variance of coefficient i by B_ii (B^-1)_ii. As long as that is below INFLATED, B in
    doubles has the digits it needs, whatever the scale of the contexts. Otherwise the node is *rooted*: its sums are
    stored without rounding, and instead of the inverse the triangle holds its root, U with U U' = B^-1.
    """

    native = "Linear"
    LAZY = True
    EVIDENCE = ("count", "total", "gram", "moment")
    NON_NEGATIVE = ("count",)
    PRIOR = ("precision", "prior_mean")
    DERIVED = ("triangle", "coefficients")
    OPTIONAL = ("scale", "exact_nodes", "exact")

    dim: int

    def __init__(self, dim: int, v: float, precision: Floats, prior_mean: Floats) -> None:
        n = len(precision)
        self.dim, self.v = dim, v
        self.precision, self.prior_mean = precision, prior_mean  # (nodes,), (nodes, dim)
        self.count, self.total = np.zeros(n), np.zeros(n)  # (nodes,) rewards seen and their sum
        self.gram = np.zeros((n, dim, dim))  # sum of x x'
        self.moment = np.zeros((n, dim))  # sum of r x
        self._upper = row, column = np.triu_indices(dim)  # the entries of B^-1 that its triangle holds, in order
        self._triangle_index = np.empty((dim, dim), np.intp)  # (dim, dim) index of each entry of B^-1 in its triangle
        self._triangle_index[row, column] = self._triangle_index[column, row] = np.arange(len(row))
        # Nodes are the last axis in memory: the same entry of many nodes is adjacent, because they are scored together.
        self.triangle = np.empty((len(row), n)).T  # (nodes, dim (dim + 1) / 2) of B^-1, B = precision I + gram
        self.triangle[...] = (row == column) / precision[:, None]
        self.coefficients = np.empty((dim, n)).T  # (nodes, dim) B^-1 f, f = precision prior_mean + moment
        self.coefficients[...] = prior_mean
        self._diagonal = self._triangle_index.diagonal().copy()  # (dim,)
        self.rooted = np.zeros(n)  # (nodes,) 1 where the triangle holds U instead of B^-1
        self._sums: dict[int, Sums] = {}  # of the rooted nodes; other nodes may have stale ones

    def inverse(self, nodes: Nodes) -> Floats:
        """Return B^-1: (k, dim, dim)."""
        if self.fades:
            return self._computed(nodes)[0]
        inverse = self.triangle[nodes][:, self._triangle_index]
        rooted = self._rooted(nodes)
        if rooted is not None:
            root = np.triu(inverse[rooted])
            inverse[rooted] = root @ root.transpose(0, 2, 1)
        return inverse

    def _rooted(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Say which of these nodes are rooted: (k,), None if none are."""
        rooted = self.rooted[nodes] > 0 if self._sums else None
        return rooted if rooted is not None and rooted.any() else None

    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        return count, total

    def observed(self, nodes: NDArray[np.intp], total: float, count: float, context: Floats | None) -> list[Write]:
        """Compute a rank-one update (Sherman and Morrison), or from time to time an inversion from scratch.

        With g = B^-1 x and s = 1 + x'g, B^-1 becomes B^-1 - g g'/s and B^-1 f becomes B^-1 f + g (r - x'B^-1 f) / s.
        n rewards in one context x equal one reward of sum / sqrt(n) in the context sqrt(n) x.
        """
        assert context is not None
        if self.fades:  # what derives from the sums is then computed when needed
            more = (count, total, count * context[:, None] * context, total * context)
            return self._added(nodes, more)
        x, reward = context * np.sqrt(count), total / np.sqrt(count)
        counted = self.count[nodes] + count
        writes: list[Write] = [(self.count, nodes, counted), (self.total, nodes, self.total[nodes] + total)]
        gram, moment = self.gram[nodes] + x[:, None] * x, self.moment[nodes] + reward * x
        inverse = self.inverse(nodes)  # (path, dim, dim)
        gain = inverse @ x  # (path, dim)
        shrink = 1 + gain @ x  # (path,)
        afresh = ~self._even(nodes, x) | (np.floor(counted) % REFRESH == 0) | (shrink > STEEP)
        if afresh.any():
            one = Sums.of_rewards(x[None], np.array([reward]))
            writes += self._posterior(nodes[afresh], gram[afresh], moment[afresh], lambda at: dict.fromkeys(at, one))
            whole, kept = (nodes, gram, moment, inverse, gain, shrink), ~afresh
            nodes, gram, moment, inverse, gain, shrink = (part[kept] for part in whole)
        before = self.coefficients[nodes]
        error = reward - before @ x  # (path,)
        scaled = gain / shrink[:, None]
        triangle = (inverse - scaled[:, :, None] * gain[:, None, :])[:, *self._upper]
        coefficients = before + scaled * error[:, None]
        new = {"gram": gram, "moment": moment, "triangle": triangle, "coefficients": coefficients}
        return [*writes, *((getattr(self, name), nodes, values) for name, values in new.items())]

    def _even(self, nodes: NDArray[np.intp], context: Floats) -> NDArray[np.bool_]:
        """Whether a rank-one update keeps its digits: the new B_ii times the old (B^-1)_ii bounds the loss: (k,)."""
        b = self.precision[nodes, None] + self.gram[nodes].diagonal(axis1=1, axis2=2) + context * context
        even = np.asarray((b * self.triangle[nodes][:, self._diagonal] <= INFLATED).all(axis=1))
        rooted = self._rooted(nodes)
        return even if rooted is None else even & ~rooted

    def absorbed(self, shape: Shape, batch: Batch) -> list[Write]:
        assert not self.fades  # fading rewards are learned one by one, in order
        n, dim = len(batch.count), self.dim
        gram, moment = np.zeros((n, dim, dim)), np.zeros((n, dim))
        order = np.argsort(batch.positions, kind="stable")
        bounds = np.searchsorted(batch.positions[order], np.arange(n + 1))
        assert batch.contexts is not None
        roots = np.ones(len(batch.rewards)) if batch.plays is None else np.sqrt(batch.plays)
        contexts, rewards = batch.contexts * roots[:, None], batch.rewards / roots
        rows = {arm: order[bounds[arm] : bounds[arm + 1]] for arm in np.flatnonzero(batch.count).tolist()}
        for arm, mine in rows.items():
            x = contexts[mine]
            gram[arm], moment[arm] = x.T @ x, rewards[mine] @ x
        nodes = shape.touched(batch.count)
        more = [self._from_arms(shape, name, values)[nodes] for name, values in (("gram", gram), ("moment", moment))]

        def exactly(uneven: set[int]) -> dict[int, Sums]:
            found: dict[int, Sums] = {}
            for arm, mine in rows.items():
                above = uneven.intersection(shape.path_up(int(shape.node_of[arm])))
                if above:
                    sums = Sums.of_rewards(contexts[mine], rewards[mine])
                    found |= {node: found[node] + sums if node in found else sums for node in above}
            return found

        counted: list[Write] = []
        for name, values in (("count", batch.count), ("total", batch.total)):
            array = getattr(self, name)
            counted.append((array, slice(None), array + self._from_arms(shape, name, values)))
        return counted + self._posterior(nodes, self.gram[nodes] + more[0], self.moment[nodes] + more[1], exactly)

    def forgotten(self, factor: float) -> list[Write]:
        if self.fades:
            return super().forgotten(factor)
        nodes = np.flatnonzero(self.count > 0)
        counted = [(array, slice(None), array * factor) for array in (self.count, self.total)]
        sums = {int(node): self._sums_of(int(node)).scaled(factor) for node in nodes[self.rooted[nodes] > 0]}
        gram, moment = self.gram[nodes] * factor, self.moment[nodes] * factor
        return counted + self._posterior(nodes, gram, moment, lambda _: {}, sums)

    def _computed(self, nodes: Nodes) -> tuple[Floats, Floats]:
        """Compute B^-1 and B^-1 f from the sums with their present weight: (k, dim, dim), (k, dim)."""
        b = self.precision[nodes, None, None] * np.eye(self.dim) + self.gram[nodes] * self.scale
        inverse, even = inverted(b, INFLATED)
        if not even.all():
            values, vectors = np.linalg.eigh(b[~even])
            least = np.maximum(values, self.precision[nodes][~even, None])  # no eigenvalue is below, up to rounding
            inverse[~even] = (vectors / least[:, None, :]) @ vectors.transpose(0, 2, 1)
        f = self.precision[nodes, None] * self.prior_mean[nodes] + self.moment[nodes] * self.scale
        return inverse, (inverse @ f[:, :, None])[:, :, 0]

    def refresh_derived(self, nodes: NDArray[np.intp]) -> None:
        if self.fades:
            return
        for array, where, values in self._posterior(nodes, self.gram[nodes], self.moment[nodes], lambda _: {}):
            array[where] = values

    def _posterior(
        self,
        nodes: NDArray[np.intp],
        gram: Floats,
        moment: Floats,
        more: Callable[[set[int]], Mapping[int, Sums]],
        instead: Mapping[int, Sums] | None = None,
    ) -> list[Write]:
        """Compute, without applying it, what changes when nodes get these sums: the sums and what derives from them.

        Where doubles would lose digits, ``more(nodes)`` gives the new part of the sums of those nodes without rounding;
        ``instead`` holds exact sums that replace those that the nodes have.
        """
        d = self.dim
        prior = self.precision[nodes, None] * self.prior_mean[nodes]  # (k, d)
        b = self.precision[nodes, None, None] * np.eye(d) + gram  # (k, d, d)
        inverse, even = inverted(b, INFLATED)
        triangle = inverse[:, *self._upper]
        coefficients = (inverse @ (prior + moment)[:, :, None])[:, :, 0]
        uneven = np.flatnonzero(~even)
        new = more(set(nodes[uneven].tolist()))
        writes: list[Write] = []
        for at in uneven:
            node = int(nodes[at])
            sums = (instead or {}).get(node) or self._sums_of(node)
            sums = sums + new[node] if node in new else sums
            root, coefficients[at] = sums.solved(float(self.precision[node]), prior[at])
            triangle[at] = root[self._upper]
            gram[at], moment[at] = sums.rounded()
            writes.append((self._sums, node, sums))
        arrays = (self.gram, self.moment, self.triangle, self.coefficients, self.rooted)
        values = (gram, moment, triangle, coefficients, ~even)
        return writes + [(array, nodes, value) for array, value in zip(arrays, values, strict=True)]

    def _sums_of(self, node: int) -> Sums:
        """Return the exact sums of a node, made from its doubles if those have the digits it needs."""
        return self._sums[node] if self.rooted[node] > 0 else Sums.of(self.gram[node], self.moment[node])

    def inherit(self, old: LinearRows, shape: Shape, here: NDArray[Any], there: NDArray[Any]) -> None:
        """Copy the exact sums of the leaves ``here`` from those at ``there``, and sum them for the nodes above."""
        self.rooted[here] = old.rooted[there]
        above: set[int] = set()
        for at in np.flatnonzero(self.rooted[here]):
            self._sums[int(here[at])] = old._sums[int(there[at])]
            above.update(shape.path_up(int(here[at]))[1:])
        for node in sorted(above, reverse=True):  # a child has a higher number than its parent
            children = np.arange(shape.start[node], shape.start[node + 1])
            even = children[self.rooted[children] == 0]
            total = Sums.of(self.gram[even].sum(axis=0), self.moment[even].sum(axis=0))
            for child in np.setdiff1d(children, even):
                total += self._sums[int(child)]
            self._sums[node], self.rooted[node] = total, 1
            self.gram[node], self.moment[node] = total.rounded()

    def kept(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file, with the whole inverse, so that files do not depend on the memory layout."""
        kept = super().kept()
        del kept["triangle"]
        kept["inverse"] = self.inverse(slice(None))
        rooted = np.flatnonzero(self.rooted)
        if len(rooted):
            terms = [self._sums[int(node)].terms() for node in rooted]
            exact = np.zeros((len(terms), max(map(len, terms)), self.dim + 1, self.dim))
            for at, each in enumerate(terms):
                exact[at, : len(each)] = each
            kept |= {"exact_nodes": rooted.astype(np.int64), "exact": exact}
        return kept

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        others = dict(kept)
        nodes, exact = others.pop("exact_nodes", np.zeros(0, np.int64)), others.pop("exact", None)
        self.triangle[...] = others.pop("inverse")[:, *self._upper]
        super().put_back(others)
        self.rooted[:], self._sums = 0, {}
        if exact is not None:
            n = len(self.count)
            if exact.shape[2:] != (self.dim + 1, self.dim) or nodes.shape != exact.shape[:1] or not exact.shape[1]:
                raise InvalidValue("the exact sums do not fit the contexts")
            exist = ((nodes >= 0) & (nodes < n)).all() and len(set(nodes)) == len(nodes)
            if not exist or not (np.abs(exact) < 1e250).all():
                raise InvalidValue("the exact sums are for nodes that do not exist, or are not numbers")
            self._sums = {node: Sums.of_terms(terms) for node, terms in zip(nodes.tolist(), exact, strict=True)}
            self.rooted[nodes] = 1
            for node, sums in self._sums.items():
                self.gram[node], self.moment[node] = sums.rounded()
        # In files of version 0.1 the inverse may have lost its digits; recompute it from the sums.
        every = np.arange(len(self.count))
        lost = ~self._even(every, np.zeros(self.dim))
        self.refresh_derived(np.union1d(every[lost], nodes))

    def check_evidence(self) -> None:
        """Check also that a sum of x x' is symmetric and has no negative eigenvalue, up to rounding."""
        super().check_evidence()
        for name, largest in {"total": LARGEST, "gram": LARGEST**2, "moment": LARGEST**2}.items():
            check_sums(name, getattr(self, name), self.count, largest)
        trace = np.trace(self.gram, axis1=1, axis2=2)  # (nodes,) no entry is larger, and rounding is far smaller
        slack = ROUNDING * trace[:, None, None]
        uneven = np.abs(self.gram - self.gram.swapaxes(1, 2)) > slack
        if (uneven | (np.abs(self.gram) > trace[:, None, None] + slack)).any():
            raise InvalidValue("gram has entries that no sum of x x' can have")
        try:
            np.linalg.cholesky((self.gram / np.where(trace > 0, trace, 1)[:, None, None]) + ROUNDING * np.eye(self.dim))
        except np.linalg.LinAlgError:
            raise InvalidValue("gram has a negative eigenvalue, which no sum of x x' can have") from None

    def residue(self, name: str, nodes: NDArray[np.intp]) -> Floats | float:
        count, noise = self.count[nodes], ROUNDING * np.sqrt(self.v)
        if name == "total":
            return np.asarray(noise * count)
        if name == "moment":
            return np.asarray(noise * np.sqrt(count * np.trace(self.gram[nodes], axis1=1, axis2=2)))
        if name == "coefficients":
            variance = self.triangle[nodes][:, self._diagonal].max(axis=1)
            return np.asarray(noise * np.sqrt(count * variance))
        return 0.0

    def native_arrays(self) -> list[NDArray[Any]]:
        *others, triangle, coefficients = super().native_arrays()
        return [*others, triangle.T, coefficients.T, self.rooted]

    def plays(self, nodes: Nodes) -> Floats:
        return self.count[nodes] * self.scale

    def rewards(self, nodes: Nodes) -> Floats:
        return self.total[nodes] * self.scale

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        coefficients = self._computed(nodes)[1] if self.fades else self.coefficients[nodes]
        return coefficients @ contexts.T

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        along = np.einsum("md,kde,me->km", contexts, self.inverse(nodes), contexts, optimize=len(contexts) > 1)
        rooted = self._rooted(nodes)
        if rooted is not None:
            root = np.triu(self.triangle[nodes][rooted][:, self._triangle_index])
            along[rooted] = ((contexts @ root) ** 2).sum(axis=-1)
        return np.asarray(np.sqrt(self.v * np.maximum(along, 0)))

    def sample(self, nodes: Nodes, contexts: Floats | None, m: int, rng: Any) -> Floats:
        mean = self.mean(nodes, contexts)
        return np.asarray(mean + self.spread(nodes, contexts) * rng.standard_normal((m, len(mean))).T)

    def wins(self, nodes: Nodes, context: Floats | None) -> Floats:
        at = None if context is None else context[None]
        mean, spread = (np.ascontiguousarray(part[:, 0]) for part in (self.mean(nodes, at), self.spread(nodes, at)))
        return np.asarray(self.winning.normal_wins(mean, spread))

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        mean, spread = self.mean(nodes, contexts)[:, 0], self.spread(nodes, contexts)[:, 0]
        return mean - 1.96 * spread, mean + 1.96 * spread
