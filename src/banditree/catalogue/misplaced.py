"""Arms that sit in the wrong place: their counts fit another cluster better than their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.items import Catalogue
from banditree.output.tables import Table

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
BEFOREHAND = 0.05  # how likely any arm is to be misplaced before its counts are seen
SURE = 0.9  # how likely it must be afterwards
MOST = 1_500_000  # pairs of an arm and a cluster that are looked at


def misplaced(catalogue: Catalogue, draws: Floats) -> Table:
    """The arms that are likely to belong elsewhere, likeliest first, given draws of the true means (draws, arms).

    An arm of cluster C has a mean from Beta with C's average and the spread of arms in clusters, widened by what is not
    known of the average; its successes are then beta-binomial. Beforehand one arm in twenty is misplaced, all other
    places being equally likely. Its own cluster is taken without it. Arms alone in their
    cluster are left out: there is nothing to compare them with.
    """
    columns = ("arm", "path", "rate", "cluster_rate", "fits", "fits_rate", "probability")
    tree, known = catalogue.tree, catalogue.posterior
    parent = tree.shape.parent[tree.shape.node_of].astype(np.intp)  # (arms,)
    home, group, size = np.unique(parent, return_inverse=True, return_counts=True)
    if len(home) < 2:
        return Table(columns, [])
    phi = max(known.arm_spread, 1e-9)
    sums = np.array([np.bincount(group, row) for row in draws])  # (draws, clusters)
    without = (sums[:, group] - draws) / np.maximum(size[group] - 1, 1)  # (draws, arms) the own cluster less the arm
    own, own_unsure = without.mean(axis=0), without.var(axis=0)
    average = (sums / size).mean(axis=0)  # (clusters,)
    unsure = (sums / size).var(axis=0)

    n, s = known.plays, known.successes
    noise = own * (1 - own) * (phi + (1 - phi) / np.maximum(n, 1)) + own_unsure
    surprise = np.where((size[group] > 1) & (n > 0), (s / np.maximum(n, 1) - own) ** 2 / np.maximum(noise, 1e-18), 0.0)
    looked_at = np.argsort(-surprise)[: max(10, MOST // len(home))]
    looked_at = looked_at[surprise[looked_at] > 2.0]  # the others cannot be far more likely elsewhere

    rows = []
    elsewhere_prior, own_prior = _Prior.of(average, unsure, phi), _Prior.of(own, own_unsure, phi)
    for arm in looked_at.tolist():
        here = own_prior.at(arm).evidence(s[arm], n[arm])[0]
        there = elsewhere_prior.evidence(s[arm], n[arm])
        there[group[arm]] = -np.inf
        top = max(float(there.max()), float(here))
        elsewhere = BEFOREHAND * np.exp(there - top).sum() / (len(home) - 1)
        chance = float(elsewhere / (elsewhere + (1 - BEFOREHAND) * np.exp(here - top)))
        if chance > SURE:
            best = int(there.argmax())
            fits = tree.path_of_node(int(home[best]))
            rate = float(s[arm] / n[arm])
            path = tree.path(tree.arms[arm])[:-1]
            rows.append((tree.arms[arm], path, rate, float(own[arm]), fits, float(average[best]), chance))
    return Table(columns, sorted(rows, key=lambda row: -row[-1]))


@dataclass(frozen=True)
class _Prior:
    """What an arm's mean is taken to be in each of several clusters: Beta(a, b), (clusters,) both."""

    a: Floats
    b: Floats

    @classmethod
    def of(cls, mean: Floats, unsure: Floats, phi: float) -> _Prior:
        """For clusters of these averages, known up to the variance ``unsure``; ``phi`` is the spread of their arms."""
        mean = np.clip(mean, 1e-9, 1 - 1e-9)
        strength = 1 / np.clip(phi + unsure / (mean * (1 - mean)), 1e-9, 0.95) - 1
        return cls(mean * strength, (1 - mean) * strength)

    def at(self, i: int) -> _Prior:
        return _Prior(self.a[i : i + 1], self.b[i : i + 1])

    @cached_property
    def _total(self) -> Floats:
        return _log_beta(self.a, self.b)

    def evidence(self, s: float, n: float) -> Floats:
        """log P(s successes in n plays), less what no cluster changes: (clusters,)."""
        return _log_beta(self.a + s, self.b + n - s) - self._total


def _log_beta(a: Floats, b: Floats) -> Floats:
    # Near the end of the range lgamma(b) - lgamma(a + b) would cancel; b is at most 1e9 and 1e-7 is enough here.
    found: Floats = _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)
    return found


_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
