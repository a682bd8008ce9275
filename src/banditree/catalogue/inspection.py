"""Inspect a catalogue: how much its categories explain, and which categories and arms are good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from banditree.base import words
from banditree.base.arrays import Floats, Places
from banditree.base.document import Bar, Columns, Document, Grid, Outline, Part, Range, Section
from banditree.base.result import Result
from banditree.base.tables import Row, Table
from banditree.base.words import chance, number, percent
from banditree.catalogue.items import Catalogue, tree_of
from banditree.errors.checks import whole
from banditree.stream import Seed, generator
from banditree.theory import Quality
from banditree.theory.cluster_quality import find_branches, quality_of
from banditree.tree import Tree
from banditree.tree.text import outline

MAX_DRAWN_NUMBERS = 6_000_000  # so that larger catalogues get fewer worlds
N_TOP = 10  # best arms that are listed


@dataclass(frozen=True)
class Uncertain:
    """An uncertain number: the median of its posterior draws, and their 95% interval."""

    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, draws: Floats) -> Uncertain:
        """Summarise draws; ``method="lower"`` makes quantiles draws themselves, as infinite ones have no average."""
        low, mid, high = np.quantile(draws, [0.025, 0.5, 0.975], method="lower").tolist()
        return cls(mid, (low, high))

    def __str__(self) -> str:
        low, high = self.interval
        if low == high:
            return number(self.value)
        ends = f"{number(low)} or more" if np.isinf(high) else f"{number(low)} to {number(high)}"
        return f"{number(self.value)} ({ends})"


@dataclass(frozen=True, eq=False, repr=False)
class Inspection(Result):
    """The result of `inspect`. ``print(inspection)`` shows it, ``inspection.to_dict()`` gives data for programs."""

    catalogue: Catalogue
    worlds: int  # number of draws of the true means; 1 if the means are known
    levels: Table  # level, clusters, their sizes, share of the variance, interval, share by chance
    within: Uncertain  # share of the variance inside the finest clusters
    quality: Quality  # for the posterior means
    width: Uncertain  # w*
    distance: Uncertain  # d: the smallest d_C over sub-optimal clusters
    gamma: Uncertain  # infinite if strong dominance fails
    dominance: float  # probability that strong dominance holds
    clusters: Table  # path, level, arms, plays, rate, mean of its arms, interval, chance to hold the best arm
    top: Table  # the best arms: arm, path, plays, rate, mean, interval, chance to be the best

    def facts(self) -> dict[str, object]:
        catalogue, tree = self.catalogue, self.catalogue.tree
        counts = {"plays": catalogue.plays, "successes": catalogue.successes, "rewards": catalogue.totals}
        return {
            "arms": tree.n_arms,
            "clusters": tree.n_clusters,
            "depth": tree.depth,
            **{name: None if counted is None else counted.sum() for name, counted in counts.items()},
            "reward_sd": None if catalogue.prior is None else catalogue.prior.sd,
            "notes": catalogue.notes,
            **{name: getattr(self, name) for name in ("worlds", "levels", "within")},
            "best_arm": self.quality.best_arm,
            **{name: getattr(self, name) for name in ("width", "distance", "gamma")},
            "dominance": self.quality.dominance,
            "dominance_probability": self.dominance,
            "offenders": self.quality.offenders,
            "cluster_means": self.clusters,
            "top": self.top,
        }

    def document(self) -> Document:
        tree, about = self.catalogue.tree, self.catalogue.summary
        parts: list[Part] = [*self.catalogue.notes_section(), self.tree_section()]
        if tree.depth:
            parts += [self.levels_section(), *map(self.clusters_section, self.levels["level"])]
        parts.append(self.top_section())
        brief = (about, *self.catalogue.notes, *self._sentences())
        return Document(self._headline(), parts, name=about, about=about, brief=brief)

    # What it says

    def _headline(self) -> str:
        if not self.catalogue.tree.depth:
            return f"{self.catalogue.summary}. Without categories there is no structure to use."
        share = 1 - self.within.value
        return (
            f"The categories explain {percent(share)} of the variance of the arms' means; a random grouping would "
            f"explain {percent(sum(self.levels['by_chance']))}."
        )

    def _sentences(self) -> list[str]:
        lines = []
        for row in self.levels:
            interval = _interval(row, percent)
            interval = f", 95% interval {interval}" if interval else ""
            explained = f"Level {row.level} explains {percent(row.share)} of the variance of the arms' means{interval}"
            lines.append(f"{explained} (a random grouping would explain {percent(row.by_chance)}).")
        return lines + self.quality_sentences()

    def quality_sentences(self) -> list[str]:
        """Say whether strong dominance holds, and give the paper's measures of quality: w*, d and gamma."""
        verdict = "holds" if self.quality.dominance else "does not hold"
        over = ""
        if self.worlds > 1:
            verdict = f"holds with probability {chance(self.dominance)}"
            over = f", median and 95% interval over {self.worlds} worlds consistent with the data"
        dominance = f"Strong dominance (every arm of the best top category beats every arm outside it) {verdict}."
        if self.quality.offenders is not None:
            inside, outside = self.quality.offenders
            of_best = f"{inside} of {self.quality.best_cluster}"
            dominance += f" Counterexample: {outside} looks at least as good as {of_best}."
        nearest = f"d, the distance to the nearest other one, is {self.distance}"
        if np.isinf(self.distance.value):
            nearest = "There is no other top category to compare it with."
        elif np.isinf(self.gamma.value):
            nearest += ": the categories overlap, so gamma, the average of w*/d, is not finite."
        else:
            nearest += f", and gamma, the average of w*/d, {self.gamma}."
        return [dominance, f"w*, the width of the best top category, is {self.width}{over}. {nearest}"]

    # Its parts, which advice shows too

    def tree_section(self) -> Section:
        """The tree, with the means of its clusters and the rates of its arms."""
        tree = self.catalogue.tree
        means = {row.path: row.mean for row in self.clusters}

        def describe(node: int) -> str:
            place = int(tree.shape.content[node])
            if place >= 0:
                return number(float(self.catalogue.rates[place]))
            return f"mean {number(means[tree.nodes.path(node)])}"

        return Section("The tree", [Outline(outline(tree, describe), str(tree))])

    def levels_section(self) -> Section:
        """How much each level of categories explains, and the paper's measures of quality."""
        columns: Columns = {
            "level": lambda row: str(row.level),
            "categories": lambda row: f"{row.clusters:,}",
            "arms in each": lambda row: f"{row.smallest} to {row.largest}, median {row.median:g}",
            "": lambda row: Bar(row.share),
            "share of variance": lambda row: percent(row.share),
            "95% interval": lambda row: _interval(row, percent),
            "by chance": lambda row: percent(row.by_chance),
        }
        n_arms, inside = f"{self.catalogue.tree.n_arms:,}", self.within.value
        table = Grid.of(self.levels, columns, label="Variance by level")
        table = replace(
            table, rows=[*table.rows, ("arms", n_arms, "", Bar(inside, faint=True), percent(inside), "", "")]
        )
        return Section("What the categories explain", [table, *self.quality_sentences()])

    def clusters_section(self, level: int = 1) -> Section:
        """The categories of one level, best first."""
        rows = [row for row in self.clusters if row.level == level]
        title = "Categories" if self.catalogue.tree.depth == 1 else f"Categories of level {level}"
        low = min((row.interval[0] for row in rows), default=0.0)
        high = max((row.interval[1] for row in rows), default=1.0)
        scale = 1 / (high - low) if high > low else 0.0
        columns: Columns = {
            "category": lambda row: words.path(row.path),
            "": lambda row: Range(*((end - low) * scale for end in (*row.interval, row.mean))),
            "mean of its arms": lambda row: number(row.mean),
            "95% interval": _interval,
            "arms": lambda row: f"{row.arms:,}",
            "plays": lambda row: number(row.plays),
            "holds the best arm": lambda row: self._is_best(row.best),
        }
        return Section(title, [Grid.of(rows, columns, label=title, both_ends=True)])

    def top_section(self) -> Section:
        """The arms with the highest expected rewards."""
        columns: Columns = {
            "arm": lambda row: str(row.arm),
            "category": lambda row: words.path(row.path),
            "expected reward": lambda row: number(row.mean),
            "95% interval": _interval,
            "plays": lambda row: number(row.plays),
            "rate so far" if self.catalogue.prior is None else "mean so far": lambda row: number(row.rate),
            "is the best arm": lambda row: self._is_best(row.best),
        }
        return Section("The best arms", [Grid.of(self.top, columns, names=(0, 1), label="The best arms")])

    def _is_best(self, share: float) -> str:
        """Say yes or no if the means are known, else with which probability."""
        return ("yes" if share > 0.5 else "no") if self.worlds == 1 else chance(share)


def _interval(row: Row, write: Callable[[float], str] = number) -> str:
    """Format the interval of a row; "" if the means are known, so that there is none."""
    return "" if row.interval[0] == row.interval[1] else words.interval(row.interval, write)


def inspect(catalogue: Catalogue, *, worlds: int | None = None, rng: Seed = 0) -> Inspection:
    """Measure the clusters: sizes, shares of variance and the paper's quality measures.

    Parameters
    ----------
    catalogue
        What `read_catalogue` returns.
    worlds
        The number of draws of the true means behind the intervals; by default 50 to 400, fewer for more arms.
    rng
        A seed or a generator.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> catalogue = Catalogue(Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]}), means=[0.1, 0.2, 0.7, 0.6])
    >>> inspection = inspect(catalogue)
    >>> inspection.quality.dominance, round(inspection.levels[0].share, 2)
    (True, 0.96)
    """
    tree = tree_of(catalogue)
    by_size = int(np.clip(MAX_DRAWN_NUMBERS // tree.n_arms, 50, 400))
    n = by_size if worlds is None else whole("worlds", worlds, 1, why="how many draws of the true means")
    draws = catalogue.draws(n, generator(rng))  # (worlds, arms)
    clusters = clusters_at(tree)
    split = shares(clusters, draws)  # (worlds, depth)
    per_world = [find_branches(tree, means) for means in draws]
    no_other = np.inf  # the distance if there is no other cluster
    distances = np.array([world.distance[world.is_top].min(initial=no_other) for world in per_world])
    gammas = np.array([world.gammas.mean() if world.is_top.any() else 0.0 for world in per_world])
    return Inspection(
        catalogue=catalogue,
        worlds=len(draws),
        levels=_tabulate_levels(clusters, split),
        within=Uncertain.of(1 - split.sum(axis=1)),
        quality=quality_of(find_branches(tree, draws.mean(axis=0))),
        width=Uncertain.of(np.array([world.width for world in per_world])),
        distance=Uncertain.of(distances),
        gamma=Uncertain.of(gammas),
        dominance=float((distances > 0).mean()),
        clusters=_tabulate_clusters(catalogue, clusters, draws),
        top=_tabulate_top(catalogue, draws),
    )


def _tabulate_levels(clusters: list[Places], split: Floats) -> Table:
    columns = ("level", "clusters", "smallest", "median", "largest", "share", "interval", "by_chance")
    rows = []
    for level, by_luck in enumerate(by_chance(clusters).tolist(), start=1):
        _, sizes = np.unique(clusters[level], return_counts=True)
        share = Uncertain.of(split[:, level - 1])
        extent = int(sizes.min()), float(np.median(sizes)), int(sizes.max())
        rows.append((level, len(sizes), *extent, share.value, share.interval, by_luck))
    return Table(columns, rows)


def _tabulate_clusters(catalogue: Catalogue, clusters: list[Places], draws: Floats) -> Table:
    """List every cluster, level by level, the best first."""
    columns = ("path", "level", "arms", "plays", "rate", "mean", "interval", "best")
    tree = catalogue.tree
    level_of = tree.shape.level_of()
    winner = draws.argmax(axis=1)  # (worlds,)
    rows = []
    for level, cluster in enumerate(clusters[1:], start=1):
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
                rows.append((tree.nodes.path(node), level, *counts, float(mid[i]), interval, float(best[i])))
    return Table(columns, rows)


def _tabulate_top(catalogue: Catalogue, draws: Floats) -> Table:
    """List the arms with the highest posterior means."""
    tree, means = catalogue.tree, draws.mean(axis=0)
    top = np.argsort(-means, kind="stable")[:N_TOP]
    low, high = np.quantile(draws[:, top], [0.025, 0.975], axis=0)
    best = np.bincount(draws.argmax(axis=1), minlength=tree.n_arms) / len(draws)
    rows = [
        (
            tree.arms[arm],
            tree.path(tree.arms[arm])[:-1],
            float("nan") if catalogue.plays is None else float(catalogue.plays[arm]),
            float(catalogue.rates[arm]),
            float(means[arm]),
            (float(low[i]), float(high[i])),
            float(best[arm]),
        )
        for i, arm in enumerate(top.tolist())
    ]
    return Table(("arm", "path", "plays", "rate", "mean", "interval", "best"), rows)


# Shares of the variance


def clusters_at(tree: Tree) -> list[Places]:
    """Return the cluster of each arm at every level, from 0 (the root) to the depth of the tree: depth + 1 of (arms,).

    An arm with a shorter path keeps its last cluster at the levels below.
    """
    shape = tree.shape
    at = shape.parent[shape.node_of].astype(np.intp)  # (arms,) the finest cluster
    level = shape.level_of()
    per_level = [at]
    for depth in range(tree.depth - 1, -1, -1):
        at = np.where(level[at] > depth, shape.parent[at], at).astype(np.intp)
        per_level.append(at)
    return per_level[::-1]


def shares(clusters: list[Places], means: Floats) -> Floats:
    """Compute which share of the variance of the means lies between the clusters of each level: (draws, depth).

    The means are (draws, arms). Let m_C be the average over the arms of C, and C_l(a) the cluster of arm a at level l
    (C_0 is the root, the arm itself comes last). Then  mu_a - m_root = sum over l of
    (m_{C_l} - m_{C_{l-1}}) + (mu_a - m_{C_L}),  and the terms are orthogonal over the arms, so their squares add up to
    the variance. A level's share is what its clusters add to those of the level above. If all means are
    equal, every share is 0.
    """
    averages = [_averages(at, means) for at in clusters]
    total = ((means - averages[0]) ** 2).sum(axis=1)
    between = [((below - above) ** 2).sum(axis=1) for above, below in pairwise(averages)]
    parts: Floats = np.array(between).reshape(len(between), len(means)).T
    rounding = 1e-24 * means.shape[1] * (means**2).max(axis=1, initial=0.0)
    parts[total <= rounding] = 0.0  # all means are equal
    parts /= np.maximum(total, np.finfo(float).tiny)[:, None]
    return parts


def by_chance(clusters: list[Places]) -> Floats:
    """Compute the shares to expect if arms were assigned to clusters of these sizes at random: (depth,).

    A random split of n arms into k clusters explains (k - 1) / (n - 1) of their variance.
    """
    counts = np.array([len(np.unique(at)) for at in clusters])
    return np.diff(counts) / max(len(clusters[0]) - 1, 1)


def _averages(at: Places, means: Floats) -> Floats:
    """Compute the average of each arm's cluster: (draws, arms)."""
    _, group, size = np.unique(at, return_inverse=True, return_counts=True)
    return np.array([(np.bincount(group, row) / size)[group] for row in means])
