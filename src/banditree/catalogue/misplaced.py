"""Find misplaced arms: those whose data fit another cluster better than their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.items import Catalogue
from banditree.report.tables import Table

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
PRIOR = 0.05  # probability that an arm is misplaced, before its data are seen
SURE = 0.9  # report arms that are misplaced with at least this probability
LEAST = 1e-300  # smallest variance to divide by
MOST = 1_500_000  # pairs of an arm and a cluster to examine


def misplaced(catalogue: Catalogue, draws: Floats) -> Table:
    """List the arms that probably belong elsewhere, most probable first, given draws of the true means (draws, arms).

    The mean of an arm in cluster C has a Beta (or normal) distribution around C's average, with the spread of arms in
    clusters, widened by the uncertainty of the average; its successes are then beta-binomial (or its mean reward is
    normal). A priori one arm in twenty is misplaced, and all other clusters are equally likely. An arm's own cluster is
    averaged without it. Arms alone in their cluster are left out, because there is nothing to compare them with.
    """
    columns = ("arm", "path", "rate", "cluster_rate", "fits", "fits_rate", "probability")
    tree, known = catalogue.tree, catalogue.posterior
    parent = tree.shape.parent[tree.shape.node_of].astype(np.intp)  # (arms,)
    home, group, size = np.unique(parent, return_inverse=True, return_counts=True)
    if len(home) < 2:
        return Table(columns, [])
    phi = max(known.arm_spread, 1e-9)
    sums = np.array([np.bincount(group, row) for row in draws])  # (draws, clusters)
    without = (sums[:, group] - draws) / np.maximum(size[group] - 1, 1)  # (draws, arms) the arm's cluster without it
    home_mean, home_variance = without.mean(axis=0), without.var(axis=0)
    average = (sums / size).mean(axis=0)  # (clusters,)
    variance = (sums / size).var(axis=0)

    n, rates = known.plays, np.nan_to_num(catalogue.rates)
    noise = known.noise(home_mean, phi, n) + home_variance
    surprise = np.where((size[group] > 1) & (n > 0), (rates - home_mean) ** 2 / np.maximum(noise, LEAST), 0.0)
    looked_at = np.argsort(-surprise)[: max(10, MOST // len(home))]
    looked_at = looked_at[surprise[looked_at] > 2.0]  # the others cannot be far more likely elsewhere

    rows = []
    for arm in looked_at.tolist():
        here = known.evidence(arm, home_mean[arm], home_variance[arm], phi)
        there = known.evidence(arm, average, variance, phi)
        there[group[arm]] = -np.inf
        top = max(float(there.max()), float(here))
        elsewhere = PRIOR * np.exp(there - top).sum() / (len(home) - 1)
        chance = float(elsewhere / (elsewhere + (1 - PRIOR) * np.exp(here - top)))
        if chance > SURE:
            best = int(there.argmax())
            fits = tree.path_of_node(int(home[best]))
            rate = float(rates[arm])
            path = tree.path(tree.arms[arm])[:-1]
            rows.append((tree.arms[arm], path, rate, float(home_mean[arm]), fits, float(average[best]), chance))
    return Table(columns, sorted(rows, key=lambda row: -row[-1]))
