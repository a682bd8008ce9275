"""The worlds of docs/robustness.md: those that ATS was made for and against, and others drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

import banditree as bt
from banditree.problems import AnyProblem, Bernoulli, Instance
from banditree.problems.rewards import Gaussian as GaussianRewards
from banditree.stream import generator

LARGEST_RATE, SMALLEST_RATE = 0.9, 0.001
EFFECTS = (0.0, 0.15, 0.4, 0.8, 1.3)  # sd of a level's effects, on the logit scale
FIRST = 20_461  # the first random world has this number; the defaults of ATS were set on others
FIRST_SHOP = 30_301  # the same for shops
LONGEST_SHOP = 100_000  # decisions
DRAWN = 10  # instances whose depth is looked at where it differs by seed


@dataclass(frozen=True)
class Misplaced:
    """Clusters of ten arms around evenly spaced rates, and the best arm of all in the poorest of them."""

    high: float  # rate of the best cluster; the poorest has 0.1
    best: float = 0.8

    def instance(self, rng: Any) -> Instance:
        clusters = np.repeat(np.arange(10), 10)  # (arms,)
        means = np.linspace(0.1, self.high, 10)[clusters] + generator(rng).random(100) * 0.1 - 0.05
        means[0] = self.best
        return Instance({"clusters": bt.Tree.from_labels(clusters.tolist())}, Bernoulli(), means=means)


@dataclass(frozen=True)
class Normal:
    """Normal rewards: clusters differ, and so do the arms in them; or the best arm of all is in the poorest cluster."""

    n_clusters: int
    n_per_cluster: int
    cluster_sd: float
    arm_sd: float
    noise: float
    mean: float = 0.0
    best: float | None = None  # mean of a misplaced arm; clusters are evenly spaced from 0 to 1 then

    def instance(self, rng: Any) -> Instance:
        stream = generator(rng)
        clusters = np.repeat(np.arange(self.n_clusters), self.n_per_cluster)  # (arms,)
        levels = self.cluster_sd * stream.standard_normal(self.n_clusters)
        if self.best is not None:
            levels = np.linspace(0.0, 1.0, self.n_clusters)
        means = self.mean + levels[clusters] + self.arm_sd * stream.standard_normal(len(clusters))
        if self.best is not None:
            means[0] = self.best
        return Instance({"clusters": bt.Tree.from_labels(clusters.tolist())}, GaussianRewards(self.noise), means=means)


@dataclass(frozen=True)
class Shop:
    """Items in categories, with click rates that are log-normal around one level."""

    number: int
    n_items: int
    n_categories: int
    rate: float
    category_sd: float  # on the log scale
    item_sd: float
    horizon: int

    @classmethod
    def from_number(cls, number: int) -> Shop:
        rng = np.random.default_rng(number)
        n_items, n_categories = (round(np.exp(rng.uniform(*np.log(ends)))) for ends in ((300, 5000), (10, 100)))
        rate, plays = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in ((0.003, 0.05), (2, 100)))
        category_sd, item_sd = rng.uniform(0.1, 0.8), rng.uniform(0.1, 0.5)
        horizon = 10 * round(min(n_items * plays, LONGEST_SHOP) / 10)
        return cls(number, n_items, n_categories, rate, float(category_sd), float(item_sd), horizon)

    def instance(self, rng: Any) -> Instance:
        stream = generator(rng)
        category = stream.integers(self.n_categories, size=self.n_items)  # (items,)
        category[: self.n_categories] = np.arange(self.n_categories)
        logs = self.category_sd * stream.standard_normal(self.n_categories)[category]
        rates = self.rate * np.exp(logs + self.item_sd * stream.standard_normal(self.n_items))
        tree = bt.Tree.from_labels(category.tolist())
        return Instance(
            {"categories": tree}, Bernoulli(), means=np.minimum(rates, LARGEST_RATE)[np.array(tree.arms, np.intp)]
        )


@dataclass(frozen=True)
class Drawn:
    """A random world: a tree whose levels and arms have effects that add up on the logit scale.

    How many arms and levels it has and how much each level matters is drawn once from its number; the tree and the
    rates are drawn for each seed.
    """

    number: int
    n_arms: int
    widths: tuple[int, ...]  # children of a cluster, level by level
    rate: float  # of an arm without effects
    effects: tuple[float, ...]  # sd of each level's effects, and of the arms'
    outliers: float  # chance that an arm has twice to ten times its rate
    horizon: int

    @classmethod
    def from_number(cls, number: int) -> Drawn:
        rng = np.random.default_rng(number)
        n_arms, depth = round(np.exp(rng.uniform(np.log(10), np.log(2000)))), int(rng.integers(1, 7))
        horizon = n_arms * np.exp(rng.uniform(np.log(10), np.log(300)))
        return cls(
            number,
            n_arms,
            widths=tuple(rng.integers(2, 9, size=depth).tolist()),
            rate=float(np.exp(rng.uniform(np.log(SMALLEST_RATE), np.log(0.5)))),
            effects=tuple(rng.choice(EFFECTS, size=depth + 1).tolist()),
            outliers=float(rng.choice([0.0, 0.0, 0.0, 1 / n_arms, 0.02])),
            horizon=10 * round(np.clip(horizon, 1000, min(60_000, 4_000_000 / n_arms + 1000)) / 10),
        )

    def instance(self, rng: Any) -> Instance:
        rng = np.random.default_rng(rng)
        logits = np.full(self.n_arms, np.log(self.rate / (1 - self.rate)))  # (arms,)
        paths = np.empty((self.n_arms, 0), np.intp)  # (arms, levels)
        for width, effect in zip(self.widths, self.effects, strict=False):
            paths = np.column_stack([paths, rng.integers(width, size=self.n_arms)])
            found, cluster = np.unique(paths, axis=0, return_inverse=True)
            logits += effect * rng.standard_normal(len(found))[cluster.ravel()]
        means = 1 / (1 + np.exp(-logits - self.effects[-1] * rng.standard_normal(self.n_arms)))
        means *= np.where(rng.random(self.n_arms) < self.outliers, rng.uniform(2, 10, self.n_arms), 1.0)
        means = np.clip(means, SMALLEST_RATE, LARGEST_RATE)
        tree = bt.Tree.from_paths([(*path, f"a{arm}") for arm, path in enumerate(paths.tolist())])
        return Instance({"tree": tree}, Bernoulli(), means=means[[int(str(arm)[1:]) for arm in tree.arms]])


@dataclass(frozen=True)
class World:
    """A problem, how long it is played and how often."""

    name: str
    problem: AnyProblem
    horizon: int
    seeds: int
    long_seeds: int = 0  # how many of the seeds go on to ten times the horizon
    tree: str | None = None  # which of the instance's trees is used, None for the first
    rival: str | None = None  # a tree on which TSC is one more rival
    prior: bt.Belief | None = None  # of all policies, where rewards are not rates
    told: bt.Belief | None = None  # a prior that knows the level of the rates; TSC with it is one more rival
    tells: bool = True  # whether the tree says something about most arms
    why: str = ""  # why ATS may lose to TS here, for the page

    def policies(self) -> dict[str, Callable[..., Any]]:
        """ATS, TS, TSC, and HTS at every depth; the deepest is called HTS and takes the whole tree."""
        found: dict[str, Callable[..., Any]] = {"ATS": bt.ATS, "TS": bt.TS, "TSC": bt.TSC}
        found |= {f"HTS {level}": partial(bt.HTS, depth=level) for level in range(2, self.depth)}
        if self.depth > 1:
            found["HTS"] = bt.HTS
        if self.depth == 0:
            del found["TSC"]
        if self.prior is not None:
            found = {name: partial(policy, prior=self.prior) for name, policy in found.items()}
        if self.told is not None:
            found["TSC told"] = partial(bt.TSC, prior=self.told)
        if self.tree is not None:
            found = {name: bt.on(self.tree, policy) for name, policy in found.items()}
        if self.rival is not None:
            found[f"TSC on {self.rival}"] = bt.on(self.rival, bt.TSC)
        return found

    @cached_property
    def depth(self) -> int:
        """The depth of the tree, or of the deepest of some where another tree than the first is used, as Ward's."""
        instances = (self.problem.instance(seed) for seed in range(1 if self.tree is None else DRAWN))
        return max((each.tree if self.tree is None else each.trees[self.tree]).depth for each in instances)


# Why ATS may lose, shown only where it does.
TRUSTED = (
    "{best} takes for granted that the tree can be trusted. ATS has to learn how far, and tries arms that might not "
    "follow their cluster."
)
HIDDEN = (
    "The best arm is expected to be as poor as its cluster until it has been tried. TS, which expects nothing of a "
    "cluster, tries every arm early; ATS tries such arms rarely, the more often the longer it runs."
)
SHARP = (
    "The tree says nothing here. ATS has to learn that, and its draws, which are sharper than those of TS, cost time "
    "where the best arm had an unlucky start."
)
OTHER_TREE = "The rival has a tree which suits this world better than the one that ATS was given."
UNKNOWN = "We do not know why."


def table_worlds() -> list[World]:
    """List the worlds on which the defaults of ATS were set."""
    problems = bt.problems
    two = problems.bernoulli(bt.Tree(2), [0.9, 0.8])
    return [
        World("strong dominance", problems.strong_dominance(), 3000, 200, 100),
        World("k-means, 100 arms", problems.sine_kmeans(100, 10), 3000, 200, 100),
        World("k-means, 1,000 arms", problems.sine_kmeans(1000, 32), 3000, 200, 50),
        World("no structure", problems.unstructured(50, 10), 25_000, 200, 50, tells=False, why=SHARP),
        World("binary tree, 256 arms", problems.hierarchical_dominance(256), 3000, 200, 50),
        World("bumps, Ward", problems.bumps(), 25_000, 200, 50, tree="ward", rival="kmeans"),
        World("surface, Ward", problems.surface(), 20_000, 200, 50, tree="ward", rival="kmeans"),
        World("Open Bandit", problems.open_bandit(), 100_000, 200, 50),
        World("misplaced arm, clusters to 0.5", Misplaced(0.5), 4000, 200, 100, why=HIDDEN),
        World("misplaced arm, clusters to 0.7", Misplaced(0.7), 4000, 200, 100, why=HIDDEN),
        World("two arms, 0.9 and 0.8", two, 3000, 500, 500, tells=False, why=SHARP),
    ]


NOISY = (
    "The best arm looks poor for long where rewards vary more than arms differ. ATS draws arms that it knows well more "
    "sharply than TS, and may stay with one that is nearly as good."
)


def normal_worlds() -> list[World]:
    """List worlds with normal rewards: arms differ by a tenth of the noise to ten times it."""
    ratings = bt.Gaussian(1.22, mean=3.2, prior_sd=0.5)
    return [
        World("ratings", Normal(10, 20, 0.25, 0.5, 1.22, 3.2), 20_000, 40, 10, prior=ratings, why=NOISY),
        World(
            "ratings, clusters alike",
            Normal(10, 20, 0.0, 0.5, 1.22, 3.2),
            20_000,
            20,
            prior=ratings,
            why=NOISY,
            tells=False,
        ),
        World("ratings, sd learned", Normal(10, 20, 0.25, 0.5, 1.22), 20_000, 20, prior=bt.Gaussian(), why=NOISY),
        World("two levels", Normal(12, 12, 0.5, 0.15, 0.5), 5000, 40, 10, prior=bt.Gaussian(0.5)),
        World("fine differences", Normal(10, 10, 0.07, 0.07, 1.0), 20_000, 20, prior=bt.Gaussian(1.0), why=NOISY),
        World("coarse differences", Normal(10, 10, 2.0, 2.0, 0.3), 2000, 20, 10, prior=bt.Gaussian(0.3)),
        World("clusters tell all", Normal(10, 10, 1.0, 0.0, 1.0), 5000, 20, prior=bt.Gaussian(1.0)),
        World(
            "misplaced arm, normal",
            Normal(10, 10, 0.0, 0.1, 0.5, best=1.6),
            10_000,
            40,
            10,
            prior=bt.Gaussian(0.5),
            why=HIDDEN,
        ),
    ]


def shops(number: int, seeds: int) -> list[World]:
    """Draw shops whose sizes, rates and spreads are random but the same each time."""
    drawn = [Shop.from_number(FIRST_SHOP + place) for place in range(number)]
    return [
        World(f"shop {place}", each, each.horizon, seeds, told=bt.Beta(1.0, 1 / each.rate - 1))
        for place, each in enumerate(drawn, start=1)
    ]


def random_worlds(number: int, seeds: int) -> list[World]:
    """Draw worlds whose sizes, shapes and rates are random but the same each time."""
    drawn = [Drawn.from_number(FIRST + place) for place in range(number)]
    return [World(f"random {place}", each, each.horizon, seeds) for place, each in enumerate(drawn, start=1)]


def growing_worlds(horizon: int, seeds: int) -> list[World]:
    """List the worlds that are played for long: in neither can the tree be trusted."""
    return [
        World("no structure", bt.problems.unstructured(50, 10), horizon, seeds),
        World("misplaced arm, clusters to 0.5", Misplaced(0.5), horizon, seeds),
    ]
