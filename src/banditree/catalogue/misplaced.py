"""Arms that sit in the wrong place: their counts fit another cluster better than their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.items import Catalogue
from banditree.output.tables import Table

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
BEFOREHAND = 0.05  # how likely any arm is to be misplaced before its counts are seen
SURE = 0.9  # how likely it must be afterwards
LEAST = 1e-300  # variance, to divide by
MOST = 1_500_000  # pairs of an arm and a cluster that are looked at


def misplaced(catalogue: Catalogue, draws: Floats) -> Table:
    """The arms that are likely to belong elsewhere, likeliest first, given draws of the true means (draws, arms).

    An arm of cluster C has a mean from Beta (or normal) with C's average and the spread of arms in clusters, widened by
    what is not known of the average; its successes are then beta-binomial (or its mean reward is normal). Beforehand
    one arm in twenty is misplaced, all other places being equally likely. Its own cluster is taken without it. Arms
    alone in their cluster are left out: there is nothing to compare them with.
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

    n, rates = known.plays, np.nan_to_num(catalogue.rates)
    noise = known.noise(own, phi, n) + own_unsure
    surprise = np.where((size[group] > 1) & (n > 0), (rates - own) ** 2 / np.maximum(noise, LEAST), 0.0)
    looked_at = np.argsort(-surprise)[: max(10, MOST // len(home))]
    looked_at = looked_at[surprise[looked_at] > 2.0]  # the others cannot be far more likely elsewhere

    rows = []
    for arm in looked_at.tolist():
        here = known.evidence(arm, own[arm], own_unsure[arm], phi)
        there = known.evidence(arm, average, unsure, phi)
        there[group[arm]] = -np.inf
        top = max(float(there.max()), float(here))
        elsewhere = BEFOREHAND * np.exp(there - top).sum() / (len(home) - 1)
        chance = float(elsewhere / (elsewhere + (1 - BEFOREHAND) * np.exp(here - top)))
        if chance > SURE:
            best = int(there.argmax())
            fits = tree.path_of_node(int(home[best]))
            rate = float(rates[arm])
            path = tree.path(tree.arms[arm])[:-1]
            rows.append((tree.arms[arm], path, rate, float(own[arm]), fits, float(average[best]), chance))
    return Table(columns, sorted(rows, key=lambda row: -row[-1]))
