"""Means, standard errors and effective numbers of scores, from rows or from the sums of groups of rows.

A row in memory is a group of one. A group of a lazy log (`banditree.data.lazy`) stands for all rows with the same arm,
fold and (nearly) the same propensity: it has a mean, and the variation of its rows around it. Scores are linear in what
varies, so that their sums of squares follow exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditree.base.arrays import Floats

# Variables within a group: the reward, the model's prediction for the target and for the arm that was shown, the
# weight, and the products of the weight with reward and prediction.
REWARD, DIRECT, PREDICTED, WEIGHT, WEIGHTED_REWARD, WEIGHTED_PREDICTION = range(6)
N_VARYING = 6


@dataclass(frozen=True, eq=False)
class Form:
    """A number per row: its mean in each group, and its slopes in the variables of the group."""

    mean: Floats  # (groups,)
    slopes: Floats | None = None  # (groups, 6) by REWARD, DIRECT, ...; None if each group is a single row

    def __add__(self, other: Form) -> Form:
        slopes = None if self.slopes is None or other.slopes is None else self.slopes + other.slopes
        return Form(self.mean + other.mean, slopes)

    def __sub__(self, other: Form) -> Form:
        return self + other.times(-1.0)

    def times(self, factor: Floats | float) -> Form:
        """Multiply by a number per group."""
        column = np.asarray(factor)[..., None]
        return Form(self.mean * factor, None if self.slopes is None else self.slopes * column)

    def plus(self, constant: float) -> Form:
        return Form(self.mean + constant, self.slopes)


@dataclass(frozen=True, eq=False)
class Groups:
    """How many rows each group has, how they vary in it, and how much they count."""

    counts: Floats  # (groups,)
    scale: Floats | None = None  # (groups,) weights of rows, if a learning policy wrote the log
    inside: Floats | None = None  # (groups, 6, 6) sums of products about the group's means; None for single rows
    tails: tuple[Floats, Floats] | None = None  # (groups,) each, sums of third and fourth powers of rewards

    @property
    def n(self) -> float:
        return float(self.counts.sum())

    @property
    def scales(self) -> Floats:
        return np.ones(len(self.counts)) if self.scale is None else self.scale

    def variation(self, form: Form) -> Floats:
        """Sum the squared deviations of rows from their group's mean: (groups,)."""
        if self.inside is None or form.slopes is None:
            return np.zeros(len(self.counts))
        return np.asarray(np.maximum(np.einsum("gi,gij,gj->g", form.slopes, self.inside, form.slopes), 0.0))

    def mean_and_error(self, form: Form) -> tuple[float, float]:
        r"""Compute the value and its standard error, which is NaN for a single row.

        With ``scale`` (a log written by a learning policy) both are weighted, after Hadad et al. 2021:

        .. math:: \hat V = \frac{\sum_i h_i s_i}{\sum_i h_i}, \qquad
            \mathrm{se} = \frac{\sqrt{\sum_i h_i^2 (s_i - \hat V)^2}}{\sum_i h_i}
        """
        h = self.scales
        total = float(h @ self.counts)
        value = float((h * self.counts) @ form.mean) / total
        squares = float((h**2) @ (self.counts * (form.mean - value) ** 2 + self.variation(form)))
        freedom = 1.0 if self.scale is not None else self.n / (self.n - 1) if self.n > 1 else np.nan
        return value, float(np.sqrt(squares * freedom)) / total if self.n > 1 else float("nan")

    def effective(self, form: Form) -> float:
        r"""Compute how many rows of equal weight would be as informative (Kish 1965): :math:`(\sum w)^2 / \sum w^2`."""
        scaled = form.times(self.scales)
        squares = float((self.counts * scaled.mean**2 + self.variation(scaled)).sum())
        return float(self.counts @ scaled.mean) ** 2 / squares if squares > 0 else 0.0

    def contributions(self, form: Form) -> float:
        """Compute how many rows determine the standard error: the effective number of squared deviations.

        Inside of a group deviations follow the reward; what varies besides, as weights do that are only nearly equal,
        counts as normally distributed.
        """
        apart = form.mean - float(self.counts @ form.mean) / self.n
        within = self.variation(form) / self.counts
        squares = float(self.counts @ (apart**2 + within))
        fourth = float(self.counts @ (apart**4 + 6 * apart**2 * within))
        if self.inside is not None and form.slopes is not None and self.tails is not None:
            spread = self.inside[:, REWARD, REWARD]
            shared = np.einsum("gi,gi->g", form.slopes, self.inside[:, :, REWARD])
            by_reward = np.where(spread > 0, shared / np.where(spread > 0, spread, 1.0), 0.0)
            rest = np.maximum(within - by_reward**2 * spread / self.counts, 0.0)
            fourth += float((4 * apart * by_reward**3) @ self.tails[0] + by_reward**4 @ self.tails[1])
            fourth += float((6 * by_reward**2 * spread) @ rest + self.counts @ (3 * rest**2))
        return squares**2 / fourth if fourth > 0 else float("inf")

    def normalise(self, values: Form, weights: Form) -> Form:
        """Return scores whose (scaled) mean is the weighted mean of the values, linearised; NaN if all weights are 0.

        ``values`` are multiplied by their weights. With ``scale`` a few rows may carry most of the weight and pull the
        mean towards themselves: their residuals are divided by one minus their share of the weight, as the jackknife
        would do (HC3, MacKinnon and White 1985).
        """
        h = self.scales
        counted = h * self.counts
        total = float(counted @ weights.mean)
        if total == 0:
            return Form(np.full(len(h), np.nan), values.slopes)
        centre = float(counted @ values.mean) / total
        apart = (values - weights.times(centre)).times(float(counted.sum()) / total)
        if self.scale is not None:
            apart = apart.times(1 / np.maximum(1 - h * weights.mean / total, np.finfo(float).eps))
            apart = apart.plus(-float(counted @ apart.mean) / float(counted.sum()))
        return apart.plus(centre)


def mean_and_error(scores: Floats, scale: Floats | None = None) -> tuple[float, float]:
    """Compute the mean of scores, one per row, and its standard error, as `Groups.mean_and_error`."""
    return Groups(np.ones(len(scores)), scale).mean_and_error(Form(scores))


def effective_sample_size(weights: Floats) -> float:
    """Compute how many rows of equal weight would be as informative."""
    return Groups(np.ones(len(weights))).effective(Form(weights))
