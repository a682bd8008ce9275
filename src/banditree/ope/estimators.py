r"""The estimators: each is a class with a name, settings and a formula.

Add an estimator here: a class, and its place in ``ESTIMATORS``.

An estimator gives every row a score. The value is the mean of the scores, and its standard error their standard
deviation (with n - 1) divided by the square root of n: `Groups.mean_and_error` computes both. The two self-normalised
estimators are ratios; their scores are linearised (the delta method), so that the same holds for them. Where rows are
known by the sums of groups, weights are those of a group's mean, and `growth` says how they follow the plain weight.

For row i, with arm a_i, reward r_i and context x_i:

- ``rewards``: r_i
- ``weights``: w_i = pi(a_i | x_i) / pi_0(a_i | x_i), target over logging policy
- ``predicted``: q(x_i, a_i), the prediction of a reward model for the arm that was shown
- ``direct``: v_i = sum over arms a of pi(a | x_i) q(x_i, a), its prediction for the target
- ``scale``: h_i, the weight of the row itself if a learning policy wrote the log (`scales`)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import real, whole
from banditree.ope.rows import ByRow, LogRows
from banditree.ope.sums import DIRECT, WEIGHT, Form

N_SETTINGS = 12  # that SLOPE chooses from
SLOPE_REACH = 2.0  # standard errors to either side
TINY = float(np.finfo(float).tiny)
PRIOR_ROWS = 10.0  # of weight 1, before a log's first row


# ---------------------------------------------------------------- the estimators


@dataclass(frozen=True)
class Estimator:
    """One way to estimate a value from a log: weighted rewards, or a model corrected by weighted residuals.

    A subclass says which weights, or gives other ``scores``. A setting that is None is chosen by SLOPE.
    """

    name: ClassVar[str]
    valid_interval: ClassVar[bool] = True  # False if its interval ignores a bias
    self_normalised: ClassVar[bool] = False  # whether weights are divided by their sum
    needs_model: ClassVar[bool] = False
    needs_clusters: ClassVar[bool] = False  # and the logging policy's probability of each cluster
    rank: ClassVar[int] = 100  # the verdict uses the estimate with the lowest; a user's own only if there is no other

    def scores(self, rows: LogRows) -> Floats | Form:
        """Compute one score per row; their mean is the value: (n,), or a `Form`, which works with sums too."""
        growth = None if rows.groups.inside is None else self.growth(rows)
        weighted = rows.weigh(self.weights(rows), growth, residuals=self.needs_model)
        return rows.form(rows.direct, DIRECT) + weighted if self.needs_model else weighted

    def weights(self, rows: LogRows) -> Floats:
        """Compute the weight of each row's reward: (n,)."""
        return rows.weights

    def growth(self, rows: LogRows) -> Floats:
        """Compute how much this weight grows with the plain one, near its value; by default in proportion: (n,)."""
        plain = rows.weights
        return np.where(plain > 0, self.weights(rows) / np.maximum(plain, TINY), 0.0)

    def form(self, rows: LogRows) -> Form:
        """Return the scores of rows or of groups of rows."""
        scores = self.scores(rows)
        if isinstance(scores, Form):
            return scores
        if rows.groups.inside is not None:
            raise InvalidValue(f"{self.label} has scores per row, and this log is known by sums; read it into memory")
        return Form(scores)

    def choices(self, rows: LogRows) -> list[Self]:
        """List the settings that SLOPE chooses from if none is given, in order of growing bias."""
        return [self]

    @property
    def setting(self) -> str:
        """The settings as text; "" if there are none."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return ", ".join(f"{name}={value:.4g}" for name, value in given.items() if value is not None)

    @property
    def label(self) -> str:
        return f"{self.name}({self.setting})" if self.setting else self.name


class IPS(Estimator):
    r"""Inverse propensity scores (Horvitz and Thompson 1952). Unbiased; high variance if weights are large.

    .. math:: \hat V = \frac1n \sum_i w_i r_i
    """

    name = "ips"
    rank = 4


class SNIPS(Estimator):
    r"""Self-normalised inverse propensity scores (Swaminathan and Joachims 2015). Stays within the observed rewards.

    .. math:: \hat V = \frac{\sum_i w_i r_i}{\sum_i w_i}, \qquad s_i = \hat V + \frac{w_i (r_i - \hat V)}{\bar w}
    """

    name = "snips"
    rank = 3
    self_normalised = True

    def scores(self, rows: LogRows) -> Form:
        weights, one = rows.weights, np.ones(len(rows.weights))
        return rows.groups.normalise(rows.weigh(weights, one, residuals=False), rows.form(weights, WEIGHT))


class DM(Estimator):
    r"""The direct method: the model's predictions. No variance from weights; biased if the model is wrong.

    .. math:: \hat V = \frac1n \sum_i v_i, \qquad v_i = \sum_a \pi(a \mid x_i)\, \hat q(x_i, a)
    """

    name = "dm"
    rank = 9
    valid_interval = False
    needs_model = True

    def scores(self, rows: LogRows) -> Form:
        return rows.form(rows.direct, DIRECT)

    def weights(self, rows: LogRows) -> Floats:
        return np.ones(len(rows.rewards))

    def growth(self, rows: LogRows) -> Floats:
        return np.zeros(len(rows.rewards))


class DR(Estimator):
    r"""Doubly robust (Dudík, Langford and Li 2011): the model, corrected by weighted residuals. Unbiased.

    .. math:: \hat V = \frac1n \sum_i v_i + w_i (r_i - \hat q(x_i, a_i))
    """

    name = "dr"
    rank = 1
    needs_model = True


class SNDR(DR):
    r"""Doubly robust with self-normalised weights (Thomas and Brunskill 2016).

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\sum_i w_i (r_i - \hat q(x_i, a_i))}{\sum_i w_i}
    """

    name = "sndr"
    rank = 2
    self_normalised = True

    def scores(self, rows: LogRows) -> Form:
        weights, one = rows.weights, np.ones(len(rows.weights))
        residuals = rows.weigh(weights, one, residuals=True)
        return rows.form(rows.direct, DIRECT) + rows.groups.normalise(residuals, rows.form(weights, WEIGHT))


@dataclass(frozen=True)
class SwitchDR(DR):
    r"""Switch-DR (Wang, Agarwal and Dudík 2017): doubly robust, corrected only where the weight is at most ``tau``.

    .. math:: \hat V = \frac1n \sum_i v_i + w_i \mathbb{1}[w_i \le \tau] (r_i - \hat q(x_i, a_i))
    """

    name = "switch-dr"
    rank = 6
    valid_interval = False
    tau: float | None = None

    def __post_init__(self) -> None:
        _check_setting("tau", self.tau)

    def weights(self, rows: LogRows) -> Floats:
        assert self.tau is not None
        return np.where(rows.weights <= self.tau, rows.weights, 0.0)

    def choices(self, rows: LogRows) -> list[Self]:
        """Range from all weights, which is unbiased, to the smaller ones that make up half of the sum."""
        steps = np.unique(_below(rows, np.linspace(0.5, 1, N_SETTINGS)[:-1]))
        return [replace(self, tau=tau) for tau in (math.inf, *steps[::-1].tolist())]


@dataclass(frozen=True)
class DRos(DR):
    r"""Doubly robust with optimistic shrinkage of the weights (Su, Dimakopoulou, Krishnamurthy and Dudík 2020).

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\lambda w_i}{w_i^2 + \lambda} (r_i - \hat q(x_i, a_i))
    """

    name = "dros"
    rank = 5
    valid_interval = False
    lam: float | None = None

    def __post_init__(self) -> None:
        _check_setting("lam", self.lam)

    def weights(self, rows: LogRows) -> Floats:
        assert self.lam is not None
        w = rows.weights
        if np.isinf(self.lam):
            return w
        return np.where(w > 0, self.lam * w / np.maximum(w**2 + self.lam, TINY), 0.0)

    def growth(self, rows: LogRows) -> Floats:
        assert self.lam is not None
        if np.isinf(self.lam):
            return np.ones(len(rows.weights))
        squares = rows.weights**2
        return np.asarray(self.lam * (self.lam - squares) / np.maximum((squares + self.lam) ** 2, TINY))

    def choices(self, rows: LogRows) -> list[Self]:
        """Range from no shrinkage, which is unbiased, to halving the weight at the middle of the sum."""
        least, most = max(float(_below(rows, np.array([0.5]))[0]), 1e-6), max(float(rows.weights.max()), 1e-6)
        steps = np.geomspace(10 * most**2, least**2, N_SETTINGS)
        return [replace(self, lam=lam) for lam in (math.inf, *steps.tolist())]


@dataclass(frozen=True)
class MIPS(Estimator):
    r"""Marginalised inverse propensity scores (Saito and Joachims 2022), with the clusters at ``depth`` as embedding.

    Depth 1 is the top clusters. Small weights; unbiased where arms of a cluster have the same mean reward, or the two
    policies divide a cluster in the same way.

    .. math:: \hat V = \frac1n \sum_i \frac{\pi(C_i \mid x_i)}{\pi_0(C_i \mid x_i)}\, r_i
    """

    name = "mips"
    rank = 8
    valid_interval = False
    needs_clusters = True
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.depth is not None:
            whole("depth", self.depth, 0, why="1 is the top clusters, 2 the clusters in them, ...")

    def weights(self, rows: LogRows) -> Floats:
        assert self.depth is not None
        if self.depth > rows.tree.depth + 1:
            raise InvalidValue(f"{self.label}: {rows.tree!r} has clusters down to depth {rows.tree.depth}")
        return rows.cluster_weights(self.depth)

    def growth(self, rows: LogRows) -> Floats:
        return np.zeros(len(rows.weights))

    def choices(self, rows: LogRows) -> list[Self]:
        """Range from the arms themselves, which is unbiased, through every level of clusters from fine to coarse."""
        return [replace(self, depth=depth) for depth in range(rows.tree.depth + 1, 0, -1)]


class OffCEM(MIPS):
    r"""OffCEM (Saito, Ren and Joachims 2023): weights by cluster for what clusters explain, a model for the rest.

    Unbiased where the model has the differences between the arms of a cluster right.

    .. math:: \hat V = \frac1n \sum_i v_i + \frac{\pi(C_i \mid x_i)}{\pi_0(C_i \mid x_i)} (r_i - \hat q(x_i, a_i))
    """

    name = "offcem"
    rank = 7
    needs_model = True


ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (IPS, SNIPS, DM, DR, SNDR, SwitchDR, DRos, MIPS, OffCEM)
}


def parse_estimators(given: Any) -> list[Estimator]:
    """Return the estimators that a user asks for: None for all, names, estimators with settings, or one of these."""
    if given is None:
        return [kind() for kind in ESTIMATORS.values()]
    wanted = [_parse_estimator(one) for one in ([given] if isinstance(given, str | Estimator) else list(given))]
    if not wanted:
        raise InvalidValue(f"give at least one estimator of {', '.join(ESTIMATORS)}")
    return wanted


def _parse_estimator(given: object) -> Estimator:
    if isinstance(given, type) and issubclass(given, Estimator) and given is not Estimator:
        return given()
    if isinstance(given, Estimator):
        return given
    if not isinstance(given, str):
        raise InvalidType(f"estimator {given!r:.60} must be a name, or an estimator such as bt.ope.MIPS(depth=1)")
    if given.lower() not in ESTIMATORS:
        raise InvalidValue(f"no estimator {given!r}; choose from {', '.join(ESTIMATORS)}")
    return ESTIMATORS[given.lower()]()


def _below(rows: LogRows, shares: Floats) -> Floats:
    """Find the weights up to which the smaller ones make up these shares of the sum: (shares,)."""
    order = np.argsort(rows.weights)
    sums = np.cumsum((rows.weights * rows.groups.counts)[order])
    # A share may end exactly between two weights; a little less, so that rounding does not decide.
    wanted = sums[-1] * shares * (1 - 1e-9)
    return np.asarray(rows.weights[order][np.minimum(np.searchsorted(sums, wanted), len(order) - 1)])


def _check_setting(name: str, value: object) -> None:
    """Check a setting: None (chosen by SLOPE), infinite (plain doubly robust), or a number that is at least 0."""
    if value is not None and value != math.inf:
        real(name, value, 0.0)


# ---------------------------------------------------------------- choosing a setting


def slope(estimates: Iterable[tuple[float, float]]) -> int:
    """Return the index of the chosen (value, standard error), given in order of growing bias and shrinking error.

    Each interval is value ± 2 se, the paper's 2 CNF with a confidence width CNF of one standard error. The choice is
    the last estimate up to which all intervals have a point in common: while they do, chance can explain the
    differences, and the later estimate is more precise (Lepski's principle).

    >>> slope([(0.50, 0.10), (0.40, 0.05), (0.38, 0.02), (0.10, 0.01)])
    2
    """
    low, high = float("-inf"), float("inf")
    chosen = 0
    for place, (value, error) in enumerate(estimates):
        low, high = max(low, value - SLOPE_REACH * error), min(high, value + SLOPE_REACH * error)
        if not (low <= high and math.isfinite(value) and math.isfinite(error)):
            break
        chosen = place
    return chosen


# ---------------------------------------------------------------- logs that a learning policy wrote


def scales(target: ByRow, behaviour: ByRow, *, contexts: bool) -> Floats:
    r"""Compute the weight h of each row, known before its arm was chosen: (n,).

    .. math:: h_t = \Big( \sum_a \frac{\pi(a \mid x_t)^2}{e_t(a \mid x_t)} \Big)^{-1/2}

    Here e_t are the logging policy's probabilities at row t; for a single arm the weight is the square root of e_t, the
    paper's constant allocation. If rows have contexts, the sum is averaged over earlier rows, because a weight that
    depended on the row's own context would favour some contexts over others.

    Why: while a policy learns, the variance of a row's score depends on what it has seen; once an arm has become rare,
    later rows are far noisier for it than early ones. The plain mean of such scores is unbiased, but not normally
    distributed, however long the log is, and its interval covers the truth too rarely. Weighting each row by the
    inverse standard deviation of its score makes the rows comparable again (Hadad, Hirshberg, Zhan, Wager and Athey
    2021).
    """
    inverse = np.where(behaviour.table > 0, 1 / np.maximum(behaviour.table, TINY), 0.0)
    spread = target.map(target.table**2).dot(behaviour.map(inverse))
    if contexts:
        spread = _mean_before(spread)
    return np.asarray(1 / np.sqrt(np.maximum(spread, TINY)))


def estimated_scales(rows: LogRows, block: Places | None) -> Floats:
    r"""Estimate `scales` where only the propensity of the arm that was shown is logged: (n,).

    The expectation of w_s^2 over the arm of row s is the sum in `scales`. So the average of w_s^2 over the earlier rows
    takes its place, with ten rows of weight 1 before the first; it is known before the row's arm was chosen, as a
    row's weight must be, and at least 1, as the sum is. Where rows are known by the sums of blocks of time, earlier
    rows are those of earlier blocks.
    """
    groups, weight = rows.groups, rows.form(rows.weights, WEIGHT)
    squares = groups.counts * rows.weights**2 + groups.variation(weight)
    at = np.arange(len(squares)) if block is None else block
    sums, counts = np.bincount(at, squares), np.bincount(at, groups.counts)
    spread = (PRIOR_ROWS + np.cumsum(sums) - sums) / (PRIOR_ROWS + np.cumsum(counts) - counts)
    return np.asarray(1 / np.sqrt(np.maximum(spread, 1.0)))[at]


def _mean_before(values: Floats) -> Floats:
    """Average the values of the preceding rows, about sqrt(n) of them; the first row gets 1: (n,)."""
    n = len(values)
    reach = max(10, int(np.sqrt(n)))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(n)
    start = np.maximum(end - reach, 0)
    return np.where(end > 0, (sums[end] - sums[start]) / np.maximum(end - start, 1), 1.0)
