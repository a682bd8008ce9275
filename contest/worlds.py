"""The worlds of the contest: contexts, arms and rewards, drawn in advance into files, so that all meet the same.

An environment draws a world from a seed; a new one is a function and a line in ``ENVIRONMENTS``. Reading a world
needs NumPy alone, because every package plays in an environment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import banditree as bt
    from banditree.base.arrays import Floats


@dataclass(frozen=True)
class World:
    """What happens in ``horizon`` rounds. Which arm is chosen decides on the reward, never on what comes later.

    An arm's mean reward at round t is a row of ``table``, or linear in the context: theta.(1, x), as log odds if
    rewards are clicks; without contexts x is empty. All arms share the round's random number, so two contestants that
    choose the same arm get the same reward.
    """

    horizon: int
    paths: NDArray[
        np.int64
    ]  # (arms, levels) the clusters of each arm, coarse to fine; the numbers are unique per level
    contexts: Floats | None = None  # (rounds, dim)
    theta: Floats | None = None  # (arms, 1 + dim)
    table: Floats | None = None  # (rounds, arms) mean rewards
    draws: Floats = field(default_factory=lambda: np.zeros(0))  # (rounds,) normal, or uniform for clicks
    clicks: bool = False
    noise: float = 0.0  # standard deviation of a reward around its mean
    told: dict[str, Any] = field(default_factory=dict)  # for algorithms that must be told how the world was made

    @property
    def n_arms(self) -> int:
        return len(self.paths)

    @property
    def dim(self) -> int:
        """Length of the contexts, 0 if there are none."""
        return 0 if self.contexts is None else self.contexts.shape[1]

    @property
    def labels(self) -> NDArray[np.int64]:
        """The top cluster of each arm, (arms,)."""
        return self.paths[:, 0]

    def context(self, t: int) -> Floats:
        """The context of a round, (dim,)."""
        return np.zeros(0) if self.contexts is None else self.contexts[t]

    def means(self, t: int) -> Floats:
        """Mean rewards of a round, (arms,)."""
        if self.table is not None:
            return np.asarray(self.table[t], np.float64)
        assert self.theta is not None
        values = self.theta[:, 0] + self.theta[:, 1:] @ self.context(t)
        return np.asarray(1 / (1 + np.exp(-values)) if self.clicks else values)

    def reward(self, t: int, mean: float) -> float:
        """The reward of an arm whose mean at this round is ``mean``."""
        return float(self.draws[t] < mean) if self.clicks else mean + self.noise * float(self.draws[t])

    def save(self, path: Path) -> None:
        arrays = {name: getattr(self, name) for name in ("paths", "contexts", "theta", "table", "draws")}
        plain = {"horizon": self.horizon, "clicks": self.clicks, "noise": self.noise, "told": self.told}
        kept = {name: array for name, array in arrays.items() if array is not None}
        np.savez(path, plain=np.array(json.dumps(plain)), **kept)

    @classmethod
    def load(cls, path: Path) -> World:
        with np.load(path) as file:
            plain = json.loads(str(file["plain"]))
            return cls(**plain, **{name: file[name] for name in file.files if name != "plain"})


# ---------------------------------------------------------------- environments


Draw = Callable[[np.random.Generator, int, int], World]  # of a stream, a seed and a horizon


@dataclass(frozen=True)
class Environment:
    """A kind of world."""

    name: str
    about: str
    draw: Draw
    horizon: int
    arms_in_groups: bool  # whether the tree says something about rewards by the way the world is made
    is_linear: bool = True  # whether mean rewards are linear in the context (or there is none)
    why_not_linear: str = ""

    def world(self, seed: int, horizon: int | None = None) -> World:
        """Draw the world of a seed, with at most ``horizon`` rounds."""
        rounds = self.horizon if horizon is None else min(horizon, self.horizon)
        return self.draw(np.random.default_rng([seed, *self.name.encode()]), seed, rounds)


# coba's synthetic environments: flat, without noise


def _coba(kind: str, n_arms: int = 10, dim: int = 5) -> Draw:
    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        from coba import Environments

        make = getattr(Environments, f"from_{kind}_synthetic")
        simulated = make(horizon, n_actions=n_arms, n_context_features=dim, n_action_features=0, seed=seed + 1)
        rows = list(simulated[0].read())
        table = np.array([[row["rewards"](action) for action in row["actions"]] for row in rows])
        contexts = np.array([row["context"] for row in rows], np.float64)
        return World(len(rows), _flat(n_arms), contexts, table=table, draws=np.zeros(len(rows)))

    return draw


# supervised data: an arm is a class, its reward 1 if it is the right one


def _classes(loader: str) -> Draw:
    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        from sklearn import datasets

        import banditree as bt

        X, y = getattr(datasets, loader)(return_X_y=True)
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        centres = np.array([X[y == label].mean(axis=0) for label in np.unique(y)])
        order = rng.permutation(len(y))[:horizon]
        table = np.eye(len(centres))[y[order]]
        paths = _paths(bt.clustering.agglomerative(centres, linkage="ward"), levels=2)
        return World(len(order), paths, X[order], table=table, draws=np.zeros(len(order)))

    return draw


# arms in groups, linear


def _mixed(n_arms: int, n_clusters: int, dim: int = 5) -> Draw:
    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        import banditree as bt

        sds: dict[str, Any] = {"cluster_sd": (1.0, 0.3), "arm_sd": (0.5, 0.1)}
        problem = bt.problems.mixed_effects(n_arms=n_arms, n_clusters=n_clusters, dim=dim, noise=1.0, **sds)
        instance = problem.instance(rng)
        return World(
            horizon,
            _paths(instance.tree),
            rng.standard_normal((horizon, dim)),
            theta=np.asarray(instance.theta),
            draws=rng.standard_normal(horizon),
            noise=1.0,
            told=sds,
        )

    return draw


def _articles(rng: np.random.Generator, seed: int, horizon: int) -> World:
    """Twenty articles in four categories; two features count for all, one for each of three categories."""
    labels = np.repeat(np.arange(4), 5)
    theta = np.zeros((20, 6))
    theta[:, 1:3] = 0.8, 0.5
    for category in range(3):
        theta[labels == category, 3 + category] = 1.2
    theta[:, 1:] += 0.1 * rng.standard_normal((20, 5))
    users = rng.standard_normal((1000, 5))
    users = (users - users.mean(axis=0)) / users.std(axis=0)
    return World(
        horizon,
        labels[:, None],
        users[rng.integers(1000, size=horizon)],
        theta=theta,
        draws=rng.standard_normal(horizon),
        noise=0.5,
        told={"cluster_sd": (0.01, 0.6), "arm_sd": (0.01, 0.1)},
    )


def _effects(shared: bool) -> Draw:
    """The mixed-effect paper's setting, with the numbers of its authors' `run_lin`: K = 100, d = 2, sigma = 1,
    100 contexts, three effects with covariance 3I, arms around their weighted sum with covariance I.

    Weights are uniform on (-1, 1), or every arm has one of the effects, which a tree can express. Their code draws a
    context for each arm; here all arms of a round have the same one, as in the paper's text.
    """

    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        n_arms, n_effects, dim, effect_sd, arm_sd = 100, 3, 2, 3.0**0.5, 1.0
        labels = np.arange(n_arms) % n_effects
        weights = rng.uniform(-1, 1, (n_arms, n_effects)) if shared else np.eye(n_effects)[labels]
        effects = effect_sd * rng.standard_normal((n_effects, dim))
        slopes = weights @ effects + arm_sd * rng.standard_normal((n_arms, dim))
        return World(
            horizon,
            (weights.argmax(axis=1) if shared else labels)[:, None],
            rng.uniform(-1, 1, (100, dim))[rng.integers(100, size=horizon)],
            theta=np.column_stack([np.zeros(n_arms), slopes]),
            draws=rng.standard_normal(horizon),
            noise=1.0,
            told={"cluster_sd": (1e-3, effect_sd), "arm_sd": (1e-3, arm_sd), "weights": weights.tolist()},
        )

    return draw


# without contexts


def _shop(n_items: int, n_categories: int) -> Draw:
    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        labels = np.arange(n_items) % n_categories
        log_odds = np.log(0.01 / 0.99) + 0.7 * rng.standard_normal(n_categories)[labels]
        log_odds += 0.4 * rng.standard_normal(n_items)
        return World(
            horizon, labels[:, None], theta=log_odds[:, None], draws=rng.random(horizon), clicks=True, noise=0.1
        )

    return draw


def _open_bandit(campaign: str) -> Draw:
    def draw(rng: np.random.Generator, seed: int, horizon: int) -> World:
        import banditree as bt

        instance = bt.problems.open_bandit(campaign).instance(rng)
        means = np.asarray(instance.means)
        theta = np.log(means / (1 - means))[:, None]
        return World(horizon, _paths(instance.tree), theta=theta, draws=rng.random(horizon), clicks=True, noise=0.07)

    return draw


def _flat(n_arms: int) -> NDArray[np.int64]:
    return np.zeros((n_arms, 1), np.int64)


def _paths(tree: bt.Tree, levels: int = 1) -> NDArray[np.int64]:
    """The clusters of each arm in the tree's top levels, numbered at each level: (arms, levels)."""
    paths = [tree.path(arm)[:-1] for arm in tree.arms]
    padded = [(*path, *[arm] * levels)[:levels] for path, arm in zip(paths, tree.arms, strict=True)]
    columns = []
    for level in range(levels):
        prefixes = [path[: level + 1] for path in padded]
        number = {prefix: i for i, prefix in enumerate(dict.fromkeys(prefixes))}
        columns.append([number[prefix] for prefix in prefixes])
    return np.array(columns, np.int64).T


ENVIRONMENTS = (
    Environment("mixed 20", "mixed effects: 20 arms in 4 clusters, 5 features", _mixed(20, 4), 2000, True),
    Environment("mixed 200", "mixed effects: 200 arms in 20 clusters, 5 features", _mixed(200, 20), 1000, True),
    Environment("mixed 2000", "mixed effects: 2,000 arms in 50 clusters, 5 features", _mixed(2000, 50), 250, True),
    Environment("articles", "bayesianbandits' worked example: 20 articles, 4 categories", _articles, 1000, True),
    Environment(
        "effects", "the mixed-effect paper: 100 arms, d = 2, one of 3 effects each", _effects(False), 5000, True
    ),
    Environment(
        "shared effects",
        "the mixed-effect paper: 100 arms, d = 2, each a weighted sum of 3 effects; the tree knows the largest weight",
        _effects(True),
        5000,
        True,
    ),
    Environment("open bandit", "Open Bandit's items: 80 items, no contexts", _open_bandit("all"), 5000, True),
    Environment("open bandit men", "its campaign for men: 34 items, no contexts", _open_bandit("men"), 5000, True),
    Environment(
        "open bandit women", "its campaign for women: 46 items, no contexts", _open_bandit("women"), 5000, True
    ),
    Environment("shop 300", "a shop: 300 items in 20 categories at about 1%, no contexts", _shop(300, 20), 3000, True),
    Environment(
        "shop 2000", "a shop: 2,000 items in 40 categories at about 1%, no contexts", _shop(2000, 40), 600, True
    ),
    Environment("coba linear", "coba's linear synthetic, 10 arms, 5 features", _coba("linear"), 500, False),
    Environment(
        "coba neighbours",
        "coba's neighbours synthetic, 10 arms, 5 features",
        _coba("neighbors"),
        500,
        False,
        is_linear=False,
        why_not_linear="a reward is that of the nearest of ten random points",
    ),
    Environment(
        "coba kernel",
        "coba's kernel synthetic, 10 arms, 5 features",
        _coba("kernel"),
        500,
        False,
        is_linear=False,
        why_not_linear="a reward is a sum of Gaussian kernels",
    ),
    Environment(
        "coba mlp",
        "coba's multilayer perceptron synthetic, 10 arms, 5 features",
        _coba("mlp"),
        500,
        False,
        is_linear=False,
        why_not_linear="a reward is the output of a random neural network",
    ),
    Environment(
        "digits",
        "scikit-learn's digits: 10 classes, 61 features, a tree of the classes by Ward",
        _classes("load_digits"),
        1000,
        False,
        is_linear=False,
        why_not_linear="which digit it is, is not linear in the pixels",
    ),
    Environment(
        "breast cancer",
        "scikit-learn's breast cancer: 2 classes, 30 features",
        _classes("load_breast_cancer"),
        569,
        False,
        is_linear=False,
        why_not_linear="a class is not linear in the features, although nearly",
    ),
    Environment(
        "wine",
        "scikit-learn's wine: 3 classes, 13 features, a tree of the classes by Ward",
        _classes("load_wine"),
        178,
        False,
        is_linear=False,
        why_not_linear="a class is not linear in the features, although nearly",
    ),
)
