"""The estimators as classes with a name and settings: add a new one here, to ``ESTIMATORS`` and to ``TRUSTED``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from inspect import isabstract
from typing import Any, ClassVar, Self

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import real, whole
from banditree.ope import estimators
from banditree.ope.by_row import Floats
from banditree.ope.rows import Rows

STEPS = 12  # number of settings that SLOPE chooses from


@dataclass(frozen=True)
class Estimator(ABC):
    """One way to estimate a value from a log. A setting that is None is chosen by SLOPE."""

    name: ClassVar[str]
    valid_interval: ClassVar[bool] = True  # False if its interval ignores a bias
    needs_model: ClassVar[bool] = False
    needs_clusters: ClassVar[bool] = False  # and the logging policy's probability of each cluster

    @abstractmethod
    def scores(self, rows: Rows) -> Floats:
        """Compute one score per row; their mean is the value: (n,)."""

    def weights(self, rows: Rows) -> Floats:
        """Compute the weight of each row's reward: (n,)."""
        return rows.weights

    def choices(self, rows: Rows) -> list[Self]:
        """List the settings that SLOPE chooses from, in order of growing bias; only itself if its setting is given."""
        return [self]

    @property
    def setting(self) -> str:
        """The settings as text; "" if there are none."""
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        return ", ".join(f"{name}={value:.4g}" for name, value in given.items() if value is not None)

    @property
    def label(self) -> str:
        return f"{self.name}({self.setting})" if self.setting else self.name


@dataclass(frozen=True)
class IPS(Estimator):
    """Inverse propensity scores: `ips`."""

    name = "ips"

    def scores(self, rows: Rows) -> Floats:
        return estimators.ips(rows.rewards, rows.weights)


@dataclass(frozen=True)
class SNIPS(Estimator):
    """Self-normalised inverse propensity scores: `snips`."""

    name = "snips"

    def scores(self, rows: Rows) -> Floats:
        return estimators.snips(rows.rewards, rows.weights, rows.scale)


@dataclass(frozen=True)
class DM(Estimator):
    """The direct method: `dm`."""

    name = "dm"
    valid_interval = False
    needs_model = True

    def scores(self, rows: Rows) -> Floats:
        return estimators.dm(rows.direct)

    def weights(self, rows: Rows) -> Floats:
        return np.ones(len(rows.rewards))


@dataclass(frozen=True)
class DR(Estimator):
    """Doubly robust: `dr`."""

    name = "dr"
    needs_model = True

    def scores(self, rows: Rows) -> Floats:
        return estimators.dr(rows.rewards, rows.weights, rows.predicted, rows.direct)


@dataclass(frozen=True)
class SNDR(Estimator):
    """Doubly robust with self-normalised weights: `sndr`."""

    name = "sndr"
    needs_model = True

    def scores(self, rows: Rows) -> Floats:
        return estimators.sndr(rows.rewards, rows.weights, rows.predicted, rows.direct, rows.scale)


@dataclass(frozen=True)
class SwitchDR(Estimator):
    """Doubly robust, corrected only where the weight is at most ``tau``: `switch_dr`."""

    name = "switch-dr"
    valid_interval = False
    needs_model = True
    tau: float | None = None

    def __post_init__(self) -> None:
        _check_setting("tau", self.tau)

    def scores(self, rows: Rows) -> Floats:
        assert self.tau is not None
        return estimators.switch_dr(rows.rewards, rows.weights, rows.predicted, rows.direct, tau=self.tau)

    def weights(self, rows: Rows) -> Floats:
        assert self.tau is not None
        return np.where(rows.weights <= self.tau, rows.weights, 0.0)

    def choices(self, rows: Rows) -> list[Self]:
        """Range from all weights, which is unbiased, to the smaller ones that make up half of the sum."""
        if self.tau is not None:
            return [self]
        steps = np.unique(_below(rows.weights, np.linspace(0.5, 1, STEPS)[:-1]))
        return [replace(self, tau=tau) for tau in (math.inf, *steps[::-1].tolist())]


@dataclass(frozen=True)
class DRos(Estimator):
    """Doubly robust with weights shrunk by ``lam``: `dros`."""

    name = "dros"
    valid_interval = False
    needs_model = True
    lam: float | None = None

    def __post_init__(self) -> None:
        _check_setting("lam", self.lam)

    def scores(self, rows: Rows) -> Floats:
        assert self.lam is not None
        return estimators.dros(rows.rewards, rows.weights, rows.predicted, rows.direct, lam=self.lam)

    def weights(self, rows: Rows) -> Floats:
        assert self.lam is not None
        return estimators.shrunk(rows.weights, self.lam)

    def choices(self, rows: Rows) -> list[Self]:
        """Range from no shrinkage, which is unbiased, to halving the weight at the middle of the sum."""
        if self.lam is not None:
            return [self]
        least, most = max(float(_below(rows.weights, np.array([0.5]))[0]), 1e-6), max(float(rows.weights.max()), 1e-6)
        steps = np.geomspace(10 * most**2, least**2, STEPS)
        return [replace(self, lam=lam) for lam in (math.inf, *steps.tolist())]


@dataclass(frozen=True)
class _ByCluster(Estimator):
    """Weights by cluster, at ``depth`` of the tree; depth 1 is the top clusters."""

    valid_interval = False
    needs_clusters = True
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.depth is not None:
            whole("depth", self.depth, 0, why="1 is the top clusters, 2 the clusters in them, ...")

    def weights(self, rows: Rows) -> Floats:
        assert self.depth is not None
        if self.depth > rows.tree.depth + 1:
            raise InvalidValue(f"{self.label}: {rows.tree!r} has clusters down to depth {rows.tree.depth}")
        return rows.cluster_weights(self.depth)

    def choices(self, rows: Rows) -> list[Self]:
        """Range from the arms themselves, which is unbiased, through every level of clusters from fine to coarse."""
        if self.depth is not None:
            return [self]
        return [replace(self, depth=depth) for depth in range(rows.tree.depth + 1, 0, -1)]


@dataclass(frozen=True)
class MIPS(_ByCluster):
    """Marginalised inverse propensity scores, with the clusters at ``depth``: `mips`."""

    name = "mips"

    def scores(self, rows: Rows) -> Floats:
        return estimators.ips(rows.rewards, self.weights(rows))


@dataclass(frozen=True)
class OffCEM(_ByCluster):
    """Weights by the clusters at ``depth``, and a model for the rest: `offcem`."""

    name = "offcem"
    needs_model = True

    def scores(self, rows: Rows) -> Floats:
        return estimators.dr(rows.rewards, self.weights(rows), rows.predicted, rows.direct)


ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind for kind in (IPS, SNIPS, DM, DR, SNDR, SwitchDR, DRos, MIPS, OffCEM)
}


def estimators_named(given: Any) -> list[Estimator]:
    """Return the estimators that a user asks for: None for all, names, estimators with settings, or one of these."""
    if given is None:
        return [kind() for kind in ESTIMATORS.values()]
    found: list[Estimator] = []
    for one in [given] if isinstance(given, str | Estimator) else list(given):
        if isinstance(one, type) and issubclass(one, Estimator) and not isabstract(one):
            found.append(one())
        elif isinstance(one, Estimator):
            found.append(one)
        elif isinstance(one, str) and one.lower() in ESTIMATORS:
            found.append(ESTIMATORS[one.lower()]())
        elif isinstance(one, str):
            raise InvalidValue(f"no estimator {one!r}; choose from {', '.join(ESTIMATORS)}")
        else:
            raise InvalidType(f"estimator {one!r:.60} must be a name, or an estimator such as bt.ope.MIPS(depth=1)")
    if not found:
        raise InvalidValue(f"estimators is empty; give at least one of {', '.join(ESTIMATORS)}")
    return list(dict.fromkeys(found))


def _below(weights: Floats, shares: Floats) -> Floats:
    """Find the weights up to which the smaller ones make up these shares of the sum: (shares,)."""
    ordered = np.sort(weights)
    sums = np.cumsum(ordered)
    return np.asarray(ordered[np.searchsorted(sums, sums[-1] * shares)])


def _check_setting(name: str, value: Any) -> None:
    """Check a setting: None (chosen by SLOPE), infinite (plain doubly robust), or a number that is at least 0."""
    if value is not None and value != math.inf:
        real(name, value, 0.0)
