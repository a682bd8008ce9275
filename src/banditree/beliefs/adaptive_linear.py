"""Beliefs about linear rewards that learn how far to trust the tree: one model across arms, for contexts.

The reward of an arm in a context x is z'theta + noise, with z = (1, x standardised): a level, and slopes. Arms have
coefficients around those of their cluster, clusters around those of their parent. How far they are apart, which differs
for levels and slopes, is not known, and neither is the noise: several *copies* of the belief, each with its own widths,
are kept side by side, and weighed by how well they explain the rewards. Everything here is a function of the arms'
evidence alone, so neither order nor batches nor moves matter. docs/adaptive.md states it.

Twin of ``native/beliefs/adaptive_linear.hpp``: with the native random stream, both take the same steps, draw for draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, overload
from weakref import ref

import numpy as np

from banditree.base.arrays import Floats, Indices
from banditree.base.intervals import normal_interval
from banditree.beliefs.base import ROUNDING, Batch, Belief, NativeTwin, Nodes, Rows, check_sums
from banditree.beliefs.copies import LARGEST_FACTOR, NEGLIGIBLE, TOO_EARLY, CopiedRows, weights_for_intervals, word_for
from banditree.beliefs.draws import Coupling, Draws
from banditree.beliefs.linear import Linear
from banditree.beliefs.priors import OwnPriors, Prior
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import MAX_CONTEXT, MAX_REWARD, real
from banditree.stream import Rng
from banditree.tree.shape import Shape

# Widths are standard deviations in units of the noise.
LEVEL_WIDTHS = 2.0 ** np.arange(2, -6, -1)  # of arms around their cluster
WIDER_ABOVE = (0.1, 1.0, 3.0)  # factor by which widths grow with each level up; 0.1: clusters hardly differ
SLOPE_SHARES = (0.02, 0.3, 1.0, 8.0)  # width of slopes, per standard deviation of a feature, over that of levels
LARGEST_WIDTH, LEAST_WIDTH = 16.0, 1e-3
ROOT_LEVEL_WIDTH, ROOT_SLOPE_WIDTH = 100.0, 1.0  # slopes: or twice the width of the level below, if that is more
ORIGIN_STEP = 16.0  # standard deviations: rewards are measured from a multiple of this
LEAST_PLAYS, MOST_PLAYS = 1e-6, 1e12  # that a prior may be worth; with less, the variance would drown all evidence
CONSTANT = 1e-12  # a variance that is a smaller share of the mean square is rounding
BLOCK = 2**20  # numbers in memory when the messages of many arms are computed together

KINDS = len(LEVEL_WIDTHS) * len(SLOPE_SHARES)  # of copies, as far as arms go: copy % KINDS


@dataclass(frozen=True)
class AdaptiveLinear(Belief):
    """The prior of the root, or what is known of another node beforehand: coefficients, and plays they are worth.

    ``plays`` of 0 mean that nothing is known. Slopes are those of the contexts as given.
    """

    common = ("dim",)
    has_intercept = learns_noise = True

    size: int
    level: float = 0.0
    slopes: tuple[float, ...] = ()
    plays: float = 0.0  # of the slopes
    level_plays: float = 0.0

    def __init__(
        self,
        dim: int | None = None,
        *,
        level: float = 0.0,
        slopes: Iterable[float] = (),
        plays: float = 0.0,
        level_plays: float = 0.0,
    ) -> None:
        dim = Linear(dim).dim  # checks it
        values = tuple(real("slopes", slope, -MAX_REWARD, MAX_REWARD) for slope in slopes) or (0.0,) * dim
        if len(values) != dim:
            raise InvalidValue(f"{len(values)} slopes for contexts of {dim} numbers; give one for each")
        for what, number in {"plays": plays, "level_plays": level_plays}.items():
            if real(what, number, 0.0, MOST_PLAYS):
                real(what, number, LEAST_PLAYS, why="0 if nothing is known")
        real("level", level, -MAX_REWARD, MAX_REWARD)
        fields = {"size": dim, "level": level, "slopes": values, "plays": plays, "level_plays": level_plays}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        known = "" if not self.plays and not self.level_plays else f", level={self.level}, slopes={self.slopes}"
        plays = "" if not known else f", plays={self.plays}, level_plays={self.level_plays}"
        return f"AdaptiveLinear(dim={self.size}{known}{plays})"

    @property
    def dim(self) -> int:
        return self.size

    def parameters(self) -> dict[str, object]:
        return {
            "dim": self.size,
            "level": self.level,
            "slopes": list(self.slopes),
            "plays": self.plays,
            "level_plays": self.level_plays,
        }

    def prior_from_siblings(self, rows: Rows, leaves: Indices) -> None:
        """Return nothing: a new arm starts from its cluster by itself."""

    def like(self, prior: Belief) -> Belief:
        return adaptive_linear(prior, self.dim) if type(prior) is Linear else super().like(prior)

    def rows(self, n_nodes: int, own: Mapping[int, Self]) -> AdaptiveLinearRows:
        plays, theta = np.zeros((n_nodes, 2)), np.zeros((n_nodes, 1 + self.dim))
        for node, belief in {0: self, **own}.items():
            if belief.dim != self.dim:
                raise InvalidValue(f"{belief} must have the dim of the whole tree, {self.dim}")
            plays[node] = belief.level_plays, belief.plays
            theta[node] = belief.level, *belief.slopes
        try:
            return AdaptiveLinearRows(self.dim, plays, theta)
        except MemoryError:
            size = n_nodes * self.dim**2 * 4 / 2**30
            raise InvalidValue(
                f"{n_nodes:,} nodes with contexts of {self.dim:,} numbers need {size:,.0f} GB of memory; "
                "use fewer arms or shorter contexts"
            ) from None


@overload
def adaptive_linear(prior: Belief, dim: int | None) -> Belief: ...
@overload
def adaptive_linear(prior: OwnPriors, dim: int | None) -> OwnPriors: ...
def adaptive_linear(prior: Prior, dim: int | None) -> Prior:
    """Return the adaptive prior that a `bt.Linear`, or a mapping of them, stands for.

    Its mean are the slopes, and its precision the plays that they are worth; with one coefficient more than contexts
    have numbers, the last is the level.
    """
    if isinstance(prior, Mapping):
        return {key: adaptive_linear(belief, dim) for key, belief in prior.items()}
    if type(prior) is AdaptiveLinear:
        return prior
    if type(prior) is not Linear:
        raise InvalidType(f"prior={prior!r} must be a bt.Linear, or a mapping from clusters or arms to them")
    if prior.v != 1.0:
        raise InvalidValue(f"prior={prior!r}: LinATS learns the noise; leave out v=")
    dim = prior.dim if dim is None else dim
    if prior.dim not in (dim, dim + 1):
        raise InvalidValue(
            f"prior={prior!r} has {prior.dim} coefficients; give {dim}, one per number of the context, or one more "
            "for the level, after them"
        )
    worth = "the plays that the coefficients are worth; leave out a prior that is worth less"
    plays = real("precision", prior.precision, LEAST_PLAYS, MOST_PLAYS, why=worth)
    *slopes, last = prior.mean
    if prior.dim == dim:
        return AdaptiveLinear(dim, slopes=prior.mean, plays=plays)
    return AdaptiveLinear(dim, level=last, slopes=slopes, plays=plays, level_plays=plays)


class Standard(NamedTuple):
    """What features and rewards are measured from, and in. Rounded, so that more evidence rarely changes them."""

    origin: float  # of the rewards
    centre: Floats  # (dim,) of the features
    per_scale: Floats  # (dim,) 1 over the scale, 0 for a feature that has not varied yet


class Sums(NamedTuple):
    """What clusters know from the messages of their children, per copy, and how well each copy explains the rewards."""

    standard: Standard
    gram: Floats  # (clusters, copies, p, p) A
    moment: Floats  # (clusters, copies, p) b
    weight: Floats  # (copies,) sums to 1
    variance: Floats  # (copies,) of the noise


class Settings(NamedTuple):
    """What the native engine needs to know besides the evidence and the prior; it reads these by name."""

    height: Floats
    level_width: Floats
    slope_width: Floats
    log_prior: Floats
    kinds: int
    stray_factor: float
    noise_share: float
    coupling: Coupling
    root_level_width: float = ROOT_LEVEL_WIDTH
    root_slope_width: float = ROOT_SLOPE_WIDTH
    origin_step: float = ORIGIN_STEP


class AdaptiveLinearRows(CopiedRows):
    """The coefficients of all nodes."""

    native = "AdaptiveLinear"
    EVIDENCE = ("draws", "squares", "gram", "moment")
    NON_NEGATIVE = ("draws", "squares")
    PRIOR = ("prior_plays", "prior_theta")
    dim: int
    draws: Floats  # (nodes,) rows learned, however many plays each stands for
    squares: Floats  # (nodes,) sum of s^2 / n over rows of n plays with sum s
    gram: Floats  # (nodes, triangle) sum of (1, x) (1, x)': the lower triangle, row by row
    moment: Floats  # (nodes, p) sum of r (1, x)

    def __init__(self, dim: int, prior_plays: Floats, prior_theta: Floats) -> None:
        self.dim, p = dim, dim + 1
        self.prior_plays, self.prior_theta = prior_plays, prior_theta  # (nodes, 2) levels and slopes, (nodes, p)
        self._lower = np.tril_indices(p)
        triangle = len(self._lower[0])
        self.lay_out(np.zeros((len(prior_plays), 2 + triangle + p)), {"gram": (triangle,), "moment": (p,)})

    def attach(self, shape: Shape) -> None:
        super().attach(shape)
        widths, shares = (grid.ravel() for grid in np.meshgrid(LEVEL_WIDTHS, SLOPE_SHARES, indexing="ij"))
        factor = np.repeat(WIDER_ABOVE, KINDS)  # (copies,)
        factors = np.tile(factor, (self.height[0] + 1, 1))
        factors[0] = np.tile(widths, len(WIDER_ABOVE))
        level = np.cumprod(factors, axis=0)  # and not powers, whose last bit may differ between machines
        self.level_width = np.clip(level, LEAST_WIDTH, LARGEST_WIDTH)  # (heights, copies)
        self.slope_width = np.maximum(self.level_width * np.tile(shares, len(WIDER_ABOVE)), LEAST_WIDTH)
        falls = -self.law.fall * np.repeat(np.arange(len(LEVEL_WIDTHS)), len(SLOPE_SHARES))
        self.log_prior = np.tile(falls, len(WIDER_ABOVE)).astype(np.float64)
        self._walk: ref[NativeTwin] | None = None

    def settings(self) -> Settings:
        widths = self.level_width, self.slope_width, self.log_prior
        chosen = self.law.stray_factor, self.law.noise_share
        return Settings(self.height.astype(np.float64), *widths, KINDS, *chosen, self.coupling)

    def native_arrays(self) -> list[object]:
        return [self.table, self.prior_plays, self.prior_theta, self.settings()]

    def bind_walk(self, walk: NativeTwin) -> None:
        """Remember the native walk, which has computed what `believed` asks for, as long as it exists."""
        self._walk = ref(walk)

    # Evidence

    def evidence(self, count: Any, total: Any) -> tuple[Any, ...]:
        """Return what rewards add that came with a context of zeros."""
        return tuple(self.columns(count, total, np.zeros(self.dim)))

    def columns(self, count: float, total: float, context: Floats | None) -> Floats:
        assert context is not None
        x = np.append(1.0, context)
        gram = (count * x[:, None] * x)[self._lower]
        return np.concatenate([[1.0, total * total / count], gram, total * x])

    def columns_of_arms(self, batch: Batch) -> Floats:
        assert batch.contexts is not None
        n, m = len(batch.count), len(batch.positions)
        x = np.column_stack([np.ones(m), batch.contexts])
        columns = np.zeros((n, self.table.shape[1]))
        columns[:, 0] = batch.sum_by_arm(np.ones(m))
        columns[:, 1] = batch.sum_by_arm(batch.rewards**2 / batch.plays)
        order = np.argsort(batch.positions, kind="stable")
        bounds = np.searchsorted(batch.positions[order], np.arange(n + 1))
        for arm in np.flatnonzero(columns[:, 0]).tolist():
            rows = order[bounds[arm] : bounds[arm + 1]]
            gram = (x[rows] * batch.plays[rows][:, None]).T @ x[rows]
            columns[arm, 2:] = np.concatenate([gram[self._lower], batch.rewards[rows] @ x[rows]])
        return columns

    def plays(self, nodes: Nodes) -> Floats:
        return self.gram[nodes, 0]

    def rewards(self, nodes: Nodes) -> Floats:
        return self.moment[nodes, 0]

    def check_evidence(self) -> None:
        """Check also that a sum of x x' has no negative eigenvalue, up to rounding, and that no sum is too large."""
        super().check_evidence()
        count = self.gram[:, 0]
        if (count < 0).any() or (self.draws > count * (1 + ROUNDING) * MAX_REWARD).any():
            raise InvalidValue("gram counts fewer rewards than there are")
        largest = {"gram": MAX_CONTEXT**2, "moment": MAX_REWARD * MAX_CONTEXT, "squares": MAX_REWARD**2}
        for name, most in largest.items():
            check_sums(name, getattr(self, name), count, most)
        gram = self._square(self.gram)
        size = np.sqrt(np.maximum(np.einsum("kii->ki", gram), 0.0))  # (nodes, p) a zero row has no entries
        size = np.where(size > 1e-150, size, 1.0)  # squares of smaller numbers have few digits
        scaled = gram / size[:, :, None] / size[:, None, :]
        if (np.abs(scaled) > 1 + ROUNDING).any():
            raise InvalidValue("gram has entries that no sum of x x' can have")
        try:
            np.linalg.cholesky(scaled + ROUNDING * (self.dim + 1) * np.eye(self.dim + 1))
        except np.linalg.LinAlgError:
            raise InvalidValue("gram has a negative eigenvalue, which no sum of x x' can have") from None
        explained = self.moment[:, 0] ** 2 > self.squares * count * (1 + ROUNDING) + 1e-200
        if explained.any():
            raise InvalidValue("squares are smaller than the sums of rewards allow")

    def _square(self, triangle: Floats) -> Floats:
        """Return whole symmetric matrices: (..., triangle) -> (..., p, p)."""
        p = self.dim + 1
        whole_matrix = np.empty((*triangle.shape[:-1], p, p))
        whole_matrix[..., self._lower[0], self._lower[1]] = triangle
        whole_matrix[..., self._lower[1], self._lower[0]] = triangle
        return whole_matrix

    # Up: messages, and the weights of the copies

    def standard(self) -> Standard:
        """Return the scales of the features and the origin of the rewards, by all evidence."""
        gram, moment = self._square(self.gram[0]), self.moment[0]
        n, squares = gram[0, 0], float(self.squares[0])
        if not n > 0:
            return Standard(0.0, np.zeros(self.dim), np.zeros(self.dim))
        total, square = gram[0, 1:], gram.diagonal()[1:]
        within = square - total * (total / n)
        varies = within > CONSTANT * square
        sized = np.where(varies, within, 1.0) * (n + 3) / max(n - 1, n / 2) ** 2
        scale = np.exp2(np.rint(0.5 * np.log2(sized)))
        centre = np.where(varies, 0.5 * scale * np.rint(2.0 * (total / n) / scale), 0.0)
        mean = moment[0] / n
        apart = squares - moment[0] * mean
        if not apart > CONSTANT * squares:
            origin = float(np.float32(mean)) if abs(mean) < 1e30 else 0.0
        else:
            size = ORIGIN_STEP * np.exp2(np.rint(0.5 * np.log2(apart / n)))
            origin = float(size * np.rint(mean / size))
        return Standard(origin, centre, np.where(varies, 1 / scale, 0.0))

    def _read(self, leaves: Indices, standard: Standard) -> tuple[Floats, Floats]:
        """Return the evidence of arms, with what is known beforehand, standardised: (k, p, p), (k, p)."""
        origin, centre, per_scale = standard
        gram, moment = self._square(self.gram[leaves]), self.moment[leaves].copy()
        n, x = gram[:, 0, 0].copy(), gram[:, 0, 1:].copy()
        total = moment[:, 0] - origin * n
        off = x - centre * n[:, None]
        inner = (gram[:, 1:, 1:] - x[:, :, None] * centre) - centre[:, None] * off[:, None, :]
        gram[:, 1:, 1:] = inner * per_scale[:, None] * per_scale
        gram[:, 0, 1:] = gram[:, 1:, 0] = off * per_scale
        moment[:, 1:] = ((moment[:, 1:] - origin * x) - centre * total[:, None]) * per_scale
        moment[:, 0] = total
        known, known_moment, _ = self._known(leaves, standard)
        gram[:, np.arange(self.dim + 1), np.arange(self.dim + 1)] += known
        return gram, moment + known_moment

    def _known(self, nodes: Indices, standard: Standard) -> tuple[Floats, Floats, Floats]:
        """Return what is known beforehand: plays per coefficient, their moment, and what they add to the squares."""
        theta, plays = self.prior_theta[nodes].copy(), self.prior_plays[nodes]
        theta[:, 0] += theta[:, 1:] @ standard.centre - standard.origin
        scale = np.where(standard.per_scale > 0, 1 / np.where(standard.per_scale > 0, standard.per_scale, 1.0), 0.0)
        theta[:, 1:] *= scale
        plays = np.concatenate([plays[:, :1], np.repeat(plays[:, 1:], self.dim, axis=1)], axis=1)
        return plays, plays * theta, (plays * theta * theta).sum(axis=1)

    def sums(self) -> Sums:
        """Pass the evidence up the tree, and weigh the copies by how well they explain it."""
        return self.remembered("sums", self._collect)

    def _collect(self) -> Sums:
        shape, p = self.shape, self.dim + 1
        standard = self.standard()
        n_clusters, copies = int((shape.content < 0).sum()), len(self.log_prior)
        gram, moment = np.zeros((n_clusters, copies, p, p)), np.zeros((n_clusters, copies, p))
        logs, fits, sends = np.zeros(copies), np.zeros(copies), np.zeros(shape.n_nodes, bool)
        known = np.asarray(np.any(self.prior_plays > 0, axis=1))
        leaf = shape.content >= 0
        sends[leaf] = (self.gram[leaf, 0] > 0) | known[leaf]
        inner = np.flatnonzero(known & ~leaf)
        plays, known_moment, _ = self._known(inner, standard)
        at = ~shape.content[inner]
        above = np.flatnonzero(at > 0)  # the root's are in its prior
        gram[at[above]] += (plays[above, :, None] * np.eye(p))[:, None]
        moment[at] += known_moment[:, None]
        sends[inner] = True
        fit_of_known = self._known(np.flatnonzero(known), standard)[2].sum()
        for level in range(len(shape.levels) - 2, 0, -1):
            nodes = np.arange(shape.levels[level], shape.levels[level + 1])
            nodes = nodes[sends[nodes]]
            sends[shape.parent[nodes]] = True
            for some in _blocks(nodes[leaf[nodes]], KINDS * p * p):
                a, b = self._read(some, standard)
                widths = self.level_width[0, :KINDS], self.slope_width[0, :KINDS]
                message, eta, log, fit = _message(a[:, None], b[:, None], *widths)
                to, repeats = ~shape.content[shape.parent[some]], len(WIDER_ABOVE)
                np.add.at(gram, to, np.tile(message, (1, repeats, 1, 1)))
                np.add.at(moment, to, np.tile(eta, (1, repeats, 1)))
                logs += np.tile(log.sum(axis=0), repeats)
                fits += np.tile(fit.sum(axis=0), repeats)
            for node in nodes[~leaf[nodes]]:
                c, h = ~shape.content[node], self.height[node]
                message, eta, log, fit = _message(gram[c], moment[c], self.level_width[h], self.slope_width[h])
                to = ~shape.content[shape.parent[node]]
                gram[to] += message
                moment[to] += eta
                logs, fits = logs + log, fits + fit
        _, _, log, fit = _message(gram[0], moment[0], *self._root_widths())
        weight, variance = self._weigh(standard, logs + log, fits + fit, fit_of_known)
        return Sums(standard, gram, moment, weight, variance)

    def _root_widths(self) -> tuple[Floats, Floats]:
        """Return the widths of the level and of the slopes of the root: (copies,) each."""
        top = max(self.height[0] - 1, 0)
        slopes = np.maximum(ROOT_SLOPE_WIDTH, 2 * self.slope_width[top])
        level = np.full(len(slopes), ROOT_LEVEL_WIDTH)
        of_level, of_slopes = self.prior_plays[0]
        return (
            level if not of_level > 0 else np.full_like(level, of_level**-0.5),
            slopes if not of_slopes > 0 else np.full_like(slopes, of_slopes**-0.5),
        )

    def _weigh(self, standard: Standard, logs: Floats, fits: Floats, fit_of_known: float) -> tuple[Floats, Floats]:
        """Weigh the copies by their marginal likelihood, the noise integrated out, and estimate the noise of each."""
        n, draws = self.gram[0, 0], self.draws[0]
        total, squares = self.moment[0, 0], self.squares[0]
        within = max(squares - total * (total / n), 0.0) if n > 0 else 0.0
        log_weight = self.log_prior - 0.5 * logs
        variance = np.ones(len(logs))
        if within > CONSTANT * squares or fit_of_known > 0:
            centred = max(squares - 2 * standard.origin * total + standard.origin**2 * n, 0.0) + fit_of_known
            half = 1 + 0.5 * draws
            rest = (self.law.noise_share * within / draws if draws > 0 else 0.0) + 0.5 * np.maximum(
                centred - fits, CONSTANT * centred
            )
            log_weight = log_weight - half * np.log(rest)
            variance = rest / half
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum(), variance

    # Down: beliefs

    def weights(self) -> Floats:
        return self.weights_and_noise()[0]

    def weights_and_noise(self) -> tuple[Floats, Floats]:
        """Return the weights of the copies, and the variance of the noise in each: (copies,) each."""
        walk = self._native_walk()
        if walk is not None:
            weight, variance = walk.copies()
            return weight, variance
        sums = self.sums()
        return sums.weight, sums.variance

    def arms(self, nodes: Indices, context: Floats | None, copies: Indices) -> Iterator[Draws]:
        """Return what some copies believe about nodes in one context, rewards measured from the origin."""
        assert context is not None
        walk = self._native_walk()
        if walk is not None:
            table = walk.believed(context, np.asarray(copies, np.int64), np.asarray(nodes, np.int64))
            yield from (Draws(*columns) for columns in table)
            return
        at_once = max(1, BLOCK // (len(nodes) * (self.dim + 1) ** 2))
        for start in range(0, len(copies), at_once):
            yield from self._believed(nodes, context, np.asarray(copies[start : start + at_once], np.intp))

    def _native_walk(self) -> NativeTwin | None:
        return None if self._walk is None else self._walk()

    def _standardised(self, context: Floats, standard: Standard) -> Floats:
        """Return z, the context with a 1 before it: (p,)."""
        return np.append(1.0, (context - standard.centre) * standard.per_scale)

    def _believed(self, nodes: Indices, context: Floats, copies: Indices) -> list[Draws]:
        shape, sums = self.shape, self.sums()
        standard = sums.standard
        z = self._standardised(context, standard)
        mean, spread = self.remembered(("clusters", copies.tobytes()), lambda: self._clusters(copies))
        variance = sums.variance[copies][:, None]  # (copies, 1); below, arrays are (copies, nodes)
        to_sd = np.sqrt(variance)
        leaf = shape.content[nodes] >= 0
        value, unit, other, other_unit, odds = np.zeros((5, len(copies), len(nodes)))
        at = ~shape.content[nodes[~leaf]]
        value[:, ~leaf] = other[:, ~leaf] = mean[:, at] @ z
        unit[:, ~leaf] = other_unit[:, ~leaf] = spread[:, at] @ z @ z
        leaves, above = nodes[leaf], ~shape.content[shape.parent[nodes[leaf]]]
        m, s = mean[:, above], spread[:, above]
        w = self._widths(self.level_width[0, copies], self.slope_width[0, copies])  # (copies, 1, p)
        w0 = w[:, :, 0]
        ws = self.law.stray_factor * w0
        key = ("arms", (copies % KINDS).tobytes(), leaves.tobytes())
        inverse, b = self.remembered(key, lambda: self._inverses(leaves, w, standard))
        share = inverse @ z  # (copies, k, p)
        f = m / w**2 + b
        value[:, leaf] = (share * f).sum(axis=-1)
        unit[:, leaf] = share @ z + _quadratic(share / w**2, s)
        # An arm whose level does not follow its cluster has a wider prior for it: a change of rank one.
        level, corner = (inverse[:, :, 0] * f).sum(axis=-1), inverse[:, :, 0, 0]
        apart, more = level - m[:, :, 0], ws**2 - w0**2
        explained = 1 + more * (w0**2 - corner) / w0**4
        factor = 0.5 * (more * (apart / w0**2) ** 2 / explained / variance - np.log(explained))
        odds[:, leaf] = self.coupling.odds * np.exp(np.minimum(factor, LARGEST_FACTOR))
        fewer = 1 / w0**2 - 1 / ws**2
        extra = fewer / (1 - fewer * corner)
        other[:, leaf] = value[:, leaf] + share[:, :, 0] * extra * apart
        wider = share + (extra * share[:, :, 0])[:, :, None] * inverse[:, :, 0]
        precision = 1 / w**2
        precision[:, :, 0] = 1 / ws**2
        other_unit[:, leaf] = wider @ z + _quadratic(wider * precision, s)
        columns = value, to_sd * np.sqrt(unit), other, to_sd * np.sqrt(other_unit), odds
        return [Draws(*parts) for parts in zip(*columns, strict=True)]

    def _widths(self, level: Floats, slope: Floats) -> Floats:
        """Return the widths of all coefficients: (copies, 1, p)."""
        return np.concatenate([level[:, None], np.repeat(slope[:, None], self.dim, axis=1)], axis=1)[:, None]

    def _clusters(self, copies: Indices) -> tuple[Floats, Floats]:
        """Return the coefficients of the clusters, and their covariance over the noise's.

        (copies, clusters, p), (copies, clusters, p, p).
        """
        shape, sums, p = self.shape, self.sums(), self.dim + 1
        mean, spread = np.empty((len(copies), len(sums.gram), p)), np.empty((len(copies), len(sums.gram), p, p))
        root = tuple(width[copies] for width in self._root_widths())
        for node in shape.inner.tolist():
            c, h = ~shape.content[node], self.height[node]
            below_root = self.level_width[h, copies], self.slope_width[h, copies]
            w = self._widths(*(root if c == 0 else below_root))[:, 0]
            inverse = _inverse(sums.gram[c, copies], w)
            mean[:, c] = (inverse @ sums.moment[c, copies][:, :, None])[:, :, 0]
            spread[:, c] = inverse
            if c > 0:
                above = ~shape.content[shape.parent[node]]
                gain = inverse / (w**2)[:, None, :]  # P w^-2
                mean[:, c] += (gain @ mean[:, above, :, None])[:, :, 0]
                spread[:, c] += gain @ spread[:, above] @ gain.swapaxes(1, 2)
        return mean, spread

    def _inverses(self, leaves: Indices, w: Floats, standard: Standard) -> tuple[Floats, Floats]:
        """Return P and b of arms: (copies, k, p, p), (k, p)."""
        gram, moment = self._read(leaves, standard)
        return _inverse(gram, w), moment

    # What every belief can do

    def equals(self, nodes: Indices) -> Indices:
        """Arms of one cluster without evidence are equal."""
        touched = (self.gram[nodes, 0] > 0) | (self.prior_plays[nodes] > 0).any(axis=1)
        return np.asarray(np.where(touched, nodes, -1 - self.shape.parent[nodes]), np.intp)

    def draw_copy(self, nodes: Indices, context: Floats | None, copy: int, m: int, rng: Rng) -> Floats:
        assert context is not None
        standard, shape = self.sums().standard, self.shape
        clusters, sd = self._draw_clusters(copy, m, rng)
        w = np.append(self.level_width[0, copy], np.full(self.dim, self.slope_width[0, copy]))
        z, parent = self._standardised(context, standard), ~shape.content[shape.parent[nodes]]
        draws = np.empty((len(nodes), m))
        for places in _blocks(np.arange(len(nodes)), (self.dim + 1) ** 2 + m * (self.dim + 1)):
            inverse, moment = self._inverses(nodes[places], w, standard)
            share = inverse @ z  # (k, p)
            above = np.einsum("kp,kmp->km", share / w**2, clusters[parent[places]])
            own = np.sqrt(np.maximum(share @ z, 0.0))[:, None] * rng.standard_normal((len(places), m))
            draws[places] = above + (share * moment).sum(axis=1)[:, None] + sd * own
        return draws

    def as_reward(self, draws: Floats) -> Floats:
        return draws + self.standard().origin

    def _draw_clusters(self, copy: int, m: int, rng: Rng) -> tuple[Floats, float]:
        """Draw the root m times, and clusters around their parents, from one copy: (clusters, m, p), and the noise."""
        shape, sums = self.shape, self.sums()
        sd = float(np.sqrt(sums.variance[copy]))
        clusters = np.empty((len(sums.gram), m, self.dim + 1))
        for node in shape.inner.tolist():
            c = ~shape.content[node]
            if c == 0:
                w0, w1 = (width[copy] for width in self._root_widths())
            else:
                w0, w1 = self.level_width[self.height[node], copy], self.slope_width[self.height[node], copy]
            w = np.append(w0, np.full(self.dim, w1))
            inverse = _inverse(sums.gram[c, copy], w)
            above = 0.0 if c == 0 else clusters[~shape.content[shape.parent[node]]] / w**2
            root = np.linalg.cholesky(np.eye(len(w)) + w[:, None] * sums.gram[c, copy] * w)  # P = w (root root')^-1 w
            normal = w * np.linalg.solve(root.T, rng.standard_normal((len(w), m))).T
            clusters[c] = (above + sums.moment[c, copy]) @ inverse + sd * normal
        return clusters, sd

    def possible(self, means: Floats) -> Floats:
        """Return means within 0 and 1 if all rewards were, as far as the sums of the arms tell."""
        squares, totals = self.squares[self.shape.node_of], self.moment[self.shape.node_of, 0]
        rates = self.draws[0] > 0 and (squares <= totals * (1 + ROUNDING)).all()
        return np.clip(means, 0.0, 1.0) if rates else means

    def mean(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        return np.stack([self._moments(nodes, x)[0] for x in contexts], axis=1)

    def spread(self, nodes: Nodes, contexts: Floats | None) -> Floats:
        assert contexts is not None
        return np.stack([self._moments(nodes, x)[1] for x in contexts], axis=1)

    def interval(self, nodes: Nodes, contexts: Floats | None) -> tuple[Floats, Floats]:
        assert contexts is not None
        mean, sd = self._moments(nodes, contexts[0])
        return normal_interval(mean, sd)

    def _moments(self, nodes: Nodes, context: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the expected reward in one context, over all copies: (k,) each."""
        nodes = np.arange(self.shape.n_nodes)[nodes]
        key = ("moments", nodes.tobytes(), context.tobytes())
        return self.remembered(key, lambda: self._mixed(nodes, context))

    def _mixed(self, nodes: Indices, context: Floats) -> tuple[Floats, Floats]:
        weight = self.weights()
        grid = weight.reshape(len(WIDER_ABOVE), len(LEVEL_WIDTHS), len(SLOPE_SHARES)).swapaxes(1, 2)
        wider = weights_for_intervals(grid, np.arange(float(len(LEVEL_WIDTHS))), self.law.interval_fall)
        wider = wider.swapaxes(1, 2).ravel()
        rising = np.argsort(wider)
        kept = rising[np.cumsum(wider[rising]) > NEGLIGIBLE]
        parts = np.stack(list(self.arms(nodes, context, kept)))  # (copies, 5, k)
        mean, sd = parts[:, 0], parts[:, 1]
        weight, wider = weight[kept] / weight[kept].sum(), wider[kept] / wider[kept].sum()
        centre = weight @ mean
        return centre + self.standard().origin, np.sqrt(wider @ (sd**2 + (mean - centre) ** 2))

    def gaps(self) -> tuple[Floats, Floats, Floats]:
        """Return how far apart the children of each node are: levels, slopes per sd of a feature, and the noise.

        (nodes,) each, as standard deviations of rewards; NaN where fewer than two children were tried.
        """
        weight, variance = self.weights_and_noise()
        noise = float(np.exp(0.5 * (weight @ np.log(variance))))
        tried = np.bincount(self.shape.parent[1:], self.plays(slice(1, None)) > 0, self.shape.n_nodes)
        level, slope = np.full((2, self.shape.n_nodes), np.nan)
        known = tried > 1
        below = self.height[known] - 1
        level[known] = np.exp(np.log(self.level_width[below]) @ weight) * noise
        slope[known] = np.exp(np.log(self.slope_width[below]) @ weight) * noise
        return level, slope, np.full(self.shape.n_nodes, noise)

    def trust(self, nodes: Indices) -> list[str]:
        """Describe levels and slopes; a slope is the effect of one standard deviation of a feature."""
        sentences = []
        columns = (self.shape.content < 0, *self.gaps())
        for is_inner, level, slope, noise in zip(*(column[nodes].tolist() for column in columns), strict=True):
            if not is_inner or np.isnan(level):
                sentences.append(TOO_EARLY if is_inner else "")
                continue
            shared = word_for((noise / slope) ** 2).replace("nearly equal", "shared")
            sentences.append(f"levels {word_for((noise / level) ** 2)}: ±{level:.2g}; slopes {shared}: ±{slope:.2g}")
        return sentences


def _message(gram: Floats, moment: Floats, level: Floats, slope: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return what nodes with evidence A and b pass on for some widths w: Lambda, eta, ln|M| and b'Pb.

    M = I + w A w, P = w M^-1 w, Lambda = w^-2 - w^-2 P w^-2 and eta = w^-2 P b.
    """
    w = np.concatenate([level[:, None], np.repeat(slope[:, None], moment.shape[-1] - 1, axis=1)], axis=1)
    inverse = _inverse(gram, w)
    solved = (inverse @ moment[..., None])[..., 0]
    message = -inverse / (w**2)[..., :, None] / (w**2)[..., None, :]
    message[..., np.arange(w.shape[-1]), np.arange(w.shape[-1])] += 1 / w**2
    _, log = np.linalg.slogdet(np.eye(w.shape[-1]) + w[..., :, None] * gram * w[..., None, :])
    return message, solved / w**2, log, (solved * moment).sum(axis=-1)


def _quadratic(vectors: Floats, matrices: Floats) -> Floats:
    """Return v' S v: (..., p), (..., p, p) -> (...)."""
    return np.asarray(((matrices @ vectors[..., None])[..., 0] * vectors).sum(axis=-1))


def _inverse(gram: Floats, w: Floats) -> Floats:
    """Return P = (w^-2 + A)^-1."""
    scaled = np.eye(w.shape[-1]) + w[..., :, None] * gram * w[..., None, :]
    inverse = np.asarray(np.linalg.inv(scaled), np.float64)
    return w[..., :, None] * inverse * w[..., None, :]


def _blocks(nodes: Indices, numbers: int) -> list[Indices]:
    """Split nodes into blocks that need at most BLOCK numbers, with so many for each node."""
    at_once = max(1, BLOCK // numbers)
    return [nodes[start : start + at_once] for start in range(0, len(nodes), at_once)]
