"""Measure how good the clustering of a catalogue is, with the uncertainty that its data leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.jsonable import jsonable
from banditree.catalogue.misplaced import misplaced
from banditree.catalogue.variance_shares import Places, by_chance, clusters_at, shares
from banditree.errors.checks import whole
from banditree.report.tables import Table
from banditree.stream import generator
from banditree.theory import Quality
from banditree.theory.cluster_quality import find_branches, quality_of

Floats = NDArray[np.float64]
Range = tuple[float, float]
CELLS = 6_000_000  # numbers to draw in total, so that larger catalogues get fewer worlds


@dataclass(frozen=True)
class Estimate:
    """An uncertain number: the median of its posterior draws, and their 95% interval."""

    value: float
    interval: Range

    @classmethod
    def of(cls, draws: Floats) -> Estimate:
        """Summarise draws; ``method="lower"`` makes quantiles draws themselves, as infinite ones have no average."""
        low, mid, high = np.quantile(draws, [0.025, 0.5, 0.975], method="lower").tolist()
        return cls(mid, (low, high))


@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """The result of `inspect`. ``print(found)`` shows it, ``found.to_dict()`` gives data for programs."""

    catalogue: Catalogue
    worlds: int  # number of draws of the true means; 1 if the means are known
    levels: Table  # level, clusters, their sizes, share of the variance, interval, share by chance
    within: Estimate  # share of the variance inside the finest clusters
    quality: Quality  # for the posterior means
    width: Estimate  # w*
    distance: Estimate  # d: the smallest d_C over sub-optimal clusters
    gamma: Estimate  # infinite if strong dominance fails
    dominance: float  # probability that strong dominance holds
    clusters: Table  # path, level, arms, plays, rate, mean of its arms, interval, chance to hold the best arm
    misplaced: Table

    def to_dict(self) -> dict[str, Any]:
        """Convert to lists, numbers and strings for JSON; infinity and NaN become None."""
        catalogue = self.catalogue
        found = {
            "arms": catalogue.tree.n_arms,
            "clusters": catalogue.tree.n_clusters,
            "depth": catalogue.tree.depth,
            "plays": None if catalogue.plays is None else catalogue.plays.sum(),
            "successes": None if catalogue.successes is None else catalogue.successes.sum(),
            "rewards": None if catalogue.totals is None else catalogue.totals.sum(),
            "reward_sd": None if catalogue.prior is None else catalogue.prior.sd,
            "notes": catalogue.notes,
            "worlds": self.worlds,
            "levels": self.levels,
            "within": self.within,
            "best_arm": self.quality.best_arm,
            "width": self.width,
            "distance": self.distance,
            "gamma": self.gamma,
            "dominance": self.quality.dominance,
            "dominance_probability": self.dominance,
            "offenders": self.quality.offenders,
            "cluster_means": self.clusters,
            "misplaced": self.misplaced,
        }
        converted: dict[str, Any] = jsonable(found)
        return converted

    def to_html(self, *, title: str = "catalogue") -> str:
        """Return a self-contained web page: no scripts, no external fonts, no network."""
        from banditree.catalogue.page import inspection_page

        return inspection_page(self, title=title)

    def __str__(self) -> str:
        from banditree.catalogue import sentences

        return "\n".join(sentences.inspection(self))

    __repr__ = __str__


def inspect(catalogue: Catalogue, *, worlds: int | None = None, rng: Any = 0) -> Inspection:
    """Measure the clusters: sizes, shares of variance, the paper's quality measures, and arms that look misplaced.

    ``worlds`` is the number of draws of the true means behind the intervals; by default 50 to 400, by size.

    >>> from banditree.tree import Tree
    >>> catalogue = Catalogue(Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]}), means=[0.1, 0.2, 0.7, 0.6])
    >>> found = inspect(catalogue)
    >>> found.quality.dominance, round(found.levels[0].share, 2)
    (True, 0.96)
    """
    tree = tree_of(catalogue)
    by_size = int(np.clip(CELLS // tree.n_arms, 50, 400))
    n = by_size if worlds is None else whole("worlds", worlds, 1, why="how many draws of the true means")
    draws = catalogue.draws(n, generator(rng))  # (worlds, arms)
    at = clusters_at(tree)
    split = shares(at, draws)  # (worlds, depth)
    guess = draws.mean(axis=0)
    found = [find_branches(tree, world) for world in draws]
    none = np.inf  # the distance if there is no other cluster
    distances = np.array([world.distance[world.is_top].min(initial=none) for world in found])
    gammas = np.array([world.gammas.mean() if world.is_top.any() else 0.0 for world in found])
    return Inspection(
        catalogue=catalogue,
        worlds=len(draws),
        levels=_levels(at, split),
        within=Estimate.of(1 - split.sum(axis=1)),
        quality=quality_of(find_branches(tree, guess)),
        width=Estimate.of(np.array([world.width for world in found])),
        distance=Estimate.of(distances),
        gamma=Estimate.of(gammas),
        dominance=float((distances > 0).mean()),
        clusters=_clusters(catalogue, at, draws),
        misplaced=misplaced(catalogue, draws),
    )


def _levels(at: list[Places], split: Floats) -> Table:
    columns = ("level", "clusters", "smallest", "median", "largest", "share", "interval", "by_chance")
    rows = []
    for level, chance in enumerate(by_chance(at).tolist(), start=1):
        _, sizes = np.unique(at[level], return_counts=True)
        share = Estimate.of(split[:, level - 1])
        extent = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
        rows.append((level, len(sizes), *extent, share.value, share.interval, chance))
    return Table(columns, rows)


def _clusters(catalogue: Catalogue, at: list[Places], draws: Floats) -> Table:
    """List every cluster, level by level, the best first."""
    columns = ("path", "level", "arms", "plays", "rate", "mean", "interval", "best")
    tree = catalogue.tree
    level_of = tree.shape.level_of()
    winner = draws.argmax(axis=1)  # (worlds,)
    rows = []
    for level, cluster in enumerate(at[1:], start=1):
        nodes, group, size = np.unique(cluster, return_inverse=True, return_counts=True)
        averages = np.array([np.bincount(group, row) / size for row in draws])  # (worlds, clusters)
        low, mid, high = np.quantile(averages, [0.025, 0.5, 0.975], axis=0)
        best = np.bincount(group[winner], minlength=len(nodes)) / len(draws)
        plays = rate = np.full(len(nodes), np.nan)
        if catalogue.plays is not None and catalogue.totals is not None:
            plays = np.bincount(group, catalogue.plays)
            rate = np.bincount(group, catalogue.totals) / np.where(plays > 0, plays, np.nan)
        for i in np.argsort(-mid, kind="stable").tolist():
            node = int(nodes[i])
            if level_of[node] == level:  # skip clusters of upper levels, which stand in for arms directly below them
                counts = int(size[i]), float(plays[i]), float(rate[i])
                interval = float(low[i]), float(high[i])
                rows.append((tree.path_of_node(node), level, *counts, float(mid[i]), interval, float(best[i])))
    return Table(columns, rows)
