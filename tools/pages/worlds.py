"""The worlds of docs/robustness.md and docs/robustness-contexts.md, and who plays in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

import banditree as bt
from banditree.problems import AnyProblem, Bernoulli, Instance, linear, mixed_effects
from banditree.problems.rewards import Gaussian as GaussianRewards
from banditree.stream import generator

LARGEST_RATE, SMALLEST_RATE = 0.9, 0.001
EFFECTS = (0.0, 0.15, 0.4, 0.8, 1.3)  # sd of a level's effects, on the logit scale
FIRST = 20_461  # the first random world has this number; the defaults of ATS were set on others
FIRST_SHOP = 30_301  # the same for shops
LONGEST_SHOP = 100_000  # decisions
SEEDS, FEWER, FEWEST = 60, 24, 8  # of a world; of long runs and of what takes minutes; beyond 100,000 decisions
DRAWN = 10  # instances whose depth is looked at where it differs by seed
OURS, FLAT, TOLD, NO_TREE = "ATS", "TS", "told", "without its tree"


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
    level: float | None = None  # of the rates; TSC that is told it is shown as well
    noise: float | None = None  # of the rewards; HierTS that is told it and the spreads is shown as well
    spreads: tuple[float, float] = (0.0, 0.0)  # standard deviations of clusters, and of arms in them
    why: str = ""  # why TS may be ahead here

    ours = OURS
    flat = FLAT

    def policies(self) -> dict[str, Callable[..., Any]]:
        """ATS with and without its tree, TS, TSC, HTS at every depth (the deepest is called HTS), and HierTS."""
        found: dict[str, Callable[..., Any]] = {OURS: bt.ATS, f"{OURS} {NO_TREE}": partial(flattened, policy=bt.ATS)}
        found |= {FLAT: bt.TS, "TSC": bt.TSC}
        found |= {f"HTS {level}": partial(bt.HTS, depth=level) for level in range(2, self.depth)}
        if self.depth > 1:
            found["HTS"] = bt.HTS
        if self.depth == 0:
            del found["TSC"], found[f"{OURS} {NO_TREE}"]
        if self.prior is not None:
            found = {name: partial(policy, prior=self.prior) for name, policy in found.items()}
        if hasattr(bt, "HierTS"):
            found["HierTS"] = bt.HierTS
        if self.level is not None:
            found[f"TSC {TOLD}"] = partial(bt.TSC, prior=bt.Beta(1.0, 1 / self.level - 1))
        if self.noise is not None and hasattr(bt, "HierTS"):
            clusters, arms = (max(spread, 1e-3) for spread in self.spreads)
            found[f"HierTS {TOLD}"] = partial(bt.HierTS, cluster_sd=clusters, arm_sd=arms, noise=self.noise)
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


def flattened(tree: bt.Tree, *, policy: Any, **settings: Any) -> bt.Policy:
    """A policy on the same arms without the tree."""
    built: bt.Policy = policy(bt.Tree(tree.arms), **settings)
    return built


def flattened_linear(tree: bt.Tree, *, dim: int, rng: Any) -> bt.Policy:
    """LinATS on the same arms without the tree; simulations give the length of the contexts to who takes it."""
    return flattened(tree, policy=bt.LinATS, dim=dim, rng=rng)


# Why TS may be ahead, shown only where it is.
HIDDEN = "the best arm is expected to be as poor as its cluster until it has been tried"
SHARP = "the tree says nothing, which has to be learned, and an unlucky start costs time"
NOISY = "rewards vary more than arms differ, and the best arm looks poor for long"
UNKNOWN = "we do not know why"


def paper_worlds() -> list[World]:
    """List the paper's kinds of instances, on which the numbers of ATS were set, and the shop of Open Bandit."""
    problems = bt.problems
    return [
        World("strong dominance", problems.strong_dominance(), 3000, SEEDS, FEWER),
        World("k-means, 100 arms", problems.sine_kmeans(100, 10), 3000, SEEDS, FEWER),
        World("k-means, 1,000 arms", problems.sine_kmeans(1000, 32), 3000, SEEDS, FEWER),
        World("no structure", problems.unstructured(50, 10), 25_000, SEEDS, FEWEST, why=SHARP),
        World("binary tree, 256 arms", problems.hierarchical_dominance(256), 3000, SEEDS, FEWER),
        World("bumps, Ward", problems.bumps(), 25_000, SEEDS, FEWEST, tree="ward", rival="kmeans"),
        World("surface, Ward", problems.surface(), 20_000, SEEDS, FEWEST, tree="ward", rival="kmeans"),
        World("Open Bandit", problems.open_bandit(), 100_000, SEEDS, FEWEST),
    ]


def hostile_worlds() -> list[World]:
    """List worlds made against ATS: a tree that misleads, or rewards that say little."""
    misleading = bt.problems.bernoulli(bt.Tree({"a": ["a1", "a2"], "b": ["b1"]}), [0.1, 0.5, 0.45])
    two = bt.problems.bernoulli(bt.Tree(2), [0.9, 0.8])
    # 276 amounts around 20, whose noise is 3.4 times their spread of 1
    amounts = Normal(12, 23, 0.5, 0.75**0.5, 3.4, 20.0)
    return [
        World("misplaced arm, clusters to 0.5", Misplaced(0.5), 4000, SEEDS, FEWER, why=HIDDEN),
        World("misplaced arm, clusters to 0.7", Misplaced(0.7), 4000, SEEDS, FEWER, why=HIDDEN),
        World("small tree that misleads", misleading, 10_000, 1500, SEEDS, why=HIDDEN),
        World("two arms, 0.9 and 0.8", two, 3000, 10 * SEEDS, SEEDS, why=SHARP),
        World(
            "noisy amounts, 276 items",
            amounts,
            20_000,
            SEEDS,
            prior=bt.Gaussian(),
            noise=amounts.noise,
            spreads=(amounts.cluster_sd, amounts.arm_sd),
            why=NOISY,
        ),
    ]


def normal_worlds() -> list[World]:
    """List worlds with normal rewards: arms differ by a tenth of the noise to ten times it."""
    ratings = bt.Gaussian(1.22, mean=3.2, prior_sd=0.5)
    return [
        _normal("ratings", Normal(10, 20, 0.25, 0.5, 1.22, 3.2), 20_000, SEEDS, FEWEST, prior=ratings, why=NOISY),
        _normal("ratings, no clusters", Normal(10, 20, 0.0, 0.5, 1.22, 3.2), 20_000, SEEDS, prior=ratings, why=NOISY),
        _normal("ratings, sd learned", Normal(10, 20, 0.25, 0.5, 1.22), 20_000, SEEDS, prior=bt.Gaussian(), why=NOISY),
        _normal("two levels", Normal(12, 12, 0.5, 0.15, 0.5), 5000, SEEDS, FEWER),
        _normal("fine differences", Normal(10, 10, 0.07, 0.07, 1.0), 20_000, SEEDS, why=NOISY),
        _normal("coarse differences", Normal(10, 10, 2.0, 2.0, 0.3), 2000, SEEDS, FEWER),
        _normal("clusters tell all", Normal(10, 10, 1.0, 0.0, 1.0), 5000, SEEDS),
        _normal("misplaced arm, normal", Normal(10, 10, 0.0, 0.1, 0.5, best=1.6), 10_000, SEEDS, FEWER, why=HIDDEN),
    ]


def _normal(name: str, problem: Normal, horizon: int, seeds: int, long_seeds: int = 0, **more: Any) -> World:
    """A world whose policies have the prior ``Gaussian(noise)`` unless they are given another."""
    more = {"prior": bt.Gaussian(problem.noise), "noise": problem.noise, **more}
    spreads = (problem.cluster_sd, problem.arm_sd)
    return World(name, problem, horizon, seeds, long_seeds, spreads=spreads, **more)


def shops(number: int = 12, seeds: int = FEWER) -> list[World]:
    """Draw shops whose sizes, rates and spreads are random but the same each time."""
    drawn = [Shop.from_number(FIRST_SHOP + place) for place in range(number)]
    return [
        World(f"shop {place}", each, each.horizon, seeds, level=each.rate) for place, each in enumerate(drawn, start=1)
    ]


def random_worlds(number: int = 24, seeds: int = FEWER) -> list[World]:
    """Draw worlds whose sizes, shapes and rates are random but the same each time."""
    drawn = [Drawn.from_number(FIRST + place) for place in range(number)]
    return [World(f"random {place}", each, each.horizon, seeds) for place, each in enumerate(drawn, start=1)]


def long_worlds() -> list[World]:
    """List worlds that are played for a million decisions: in neither can the tree be trusted."""
    return [
        World("no structure, long", bt.problems.unstructured(50, 10), 1_000_000, FEWEST),
        World("misplaced arm, long", Misplaced(0.5), 1_000_000, FEWEST),
    ]


# ---------------------------------------------------------------- with contexts


@dataclass(frozen=True)
class Rearranged:
    """The instances of a problem with the coefficients of some arms exchanged."""

    problem: AnyProblem
    how: str  # "shuffled", or "misplaced": the best arm goes to the poorest cluster

    def instance(self, rng: Any) -> Instance:
        instance: Any = self.problem.instance(rng)
        theta = instance.theta.copy()
        if self.how == "shuffled":
            theta = np.random.default_rng(int(abs(theta[0, 0]) * 1e9)).permutation(theta)
        else:
            cluster = np.array([instance.tree.path(arm)[0] for arm in instance.arms])
            names = np.unique(cluster)
            poorest = names[np.argmin([theta[cluster == name, 0].mean() for name in names])]
            best, there = int(theta[:, 0].argmax()), int(np.flatnonzero(cluster == poorest)[0])
            theta[[best, there]] = theta[[there, best]]
        return Instance(instance.trees, instance.rewards, theta=theta, contexts=instance.contexts)


@dataclass(frozen=True)
class Sparse:
    """Mixed effects in which the slopes of all features but the first few are 0."""

    problem: AnyProblem
    relevant: int

    def instance(self, rng: Any) -> Instance:
        instance: Any = self.problem.instance(rng)
        theta = instance.theta.copy()
        theta[:, 1 + self.relevant :] = 0.0
        return Instance(instance.trees, instance.rewards, theta=theta, contexts=instance.contexts)


@dataclass(frozen=True)
class ContextWorld(World):
    """A world with contexts; its policies have a constant among the features."""

    clicks: bool = False

    ours = "LinATS"
    flat = "LinTS"

    def policies(self) -> dict[str, Callable[..., Any]]:
        policies: dict[str, Callable[..., Any]] = {
            "LinATS": bt.LinATS,
            f"LinATS {NO_TREE}": flattened_linear,
            "LinTS": bt.LinTS,
            "LinTSC": bt.LinTSC,
        }
        if self.depth > 1:
            policies["LinHTS"] = bt.LinHTS
        policies |= {"LinUCB": bt.LinUCB, "LinUCBC": bt.LinUCBC}
        policies[OURS] = bt.ATS if self.clicks else partial(bt.ATS, prior=bt.Gaussian())
        return policies


# Why another policy may be ahead with contexts, by how a world's name begins.
REASONS = {
    "figure": "noise grows with the mean here",
    "no structure": "the tree says nothing, and every arm has to be learned by itself",
    "misplaced, contexts": "contexts say little, and ATS, which does not look at them, has less to learn",
    "slopes shared": "contexts say little, and ATS, which does not look at them, has less to learn",
}


def context_worlds() -> list[ContextWorld]:
    """List the worlds with contexts."""
    mixed = partial(mixed_effects, constant=True)
    like = mixed(100, 10, 3)
    small = mixed(100, 10, 3, cluster_sd=(0.5, 0.1), arm_sd=(0.2, 0.05))
    little = mixed(100, 10, 3, cluster_sd=(0.5, 0.01), arm_sd=(0.2, 0.01))
    unlike = mixed(100, 10, 3, cluster_sd=(0.0, 0.0), arm_sd=(0.5, 0.3))
    deep = mixed(200, (5, 25), 3, cluster_sd=[(1.0, 0.3), (0.4, 0.1)], arm_sd=(0.2, 0.05))
    clicks = mixed(100, 10, 3, cluster_sd=(0.5, 0.3), arm_sd=(0.3, 0.1), reward="clicks", rate=0.04)
    shared = mixed(100, 10, 3, cluster_sd=(0.5, 0.0), arm_sd=(0.5, 0.0))
    return [
        ContextWorld("figure 2d", linear(400, 20, 0.5), 3000, SEEDS),
        ContextWorld("figure 2e", linear(900, 30, 0.5), 3000, SEEDS),
        ContextWorld("figure 2f", linear(900, 30, 0.1), 3000, SEEDS),
        ContextWorld("mixed effects, 5 features", mixed(100, 10, 5), 3000, SEEDS),
        ContextWorld("mixed effects, 2 features", mixed(100, 5, 2), 3000, SEEDS),
        ContextWorld("no structure", unlike, 3000, SEEDS, long_seeds=FEWER),
        ContextWorld("shuffled", Rearranged(like, "shuffled"), 3000, SEEDS),
        ContextWorld("misplaced", Rearranged(small, "misplaced"), 3000, SEEDS),
        ContextWorld("misplaced, contexts matter little", Rearranged(little, "misplaced"), 3000, SEEDS),
        ContextWorld("three levels", deep, 3000, SEEDS),
        ContextWorld("clicks", clicks, 10_000, SEEDS, clicks=True),
        ContextWorld("slopes shared", shared, 3000, SEEDS),
        ContextWorld("sparse, 3 of 20 features", Sparse(mixed(100, 10, 20), 3), 3000, SEEDS),
    ]
