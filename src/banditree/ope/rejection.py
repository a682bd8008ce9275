"""Replay a log to learning policies by rejection: a row counts if the policy chooses the arm that was shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.ope.estimators import mean_and_error
from banditree.ope.log import Log, Places
from banditree.ope.rows import LOG_PROPENSITIES
from banditree.report.tables import Table
from banditree.report.words import count
from banditree.simulation.one_seed import asks_for_dim, key_of
from banditree.simulation.statistics import OverSeeds, over_seeds
from banditree.stream import seed_sequence
from banditree.tables.cells import Floats
from banditree.tree import Tree

STEPS = 4_000_000  # rows per policy over all orders, by default
MOST, CHECKPOINTS = 20, 200  # orders by default, and points of a curve
Z = 1.96


class Replay(Table):
    """The result of `replay`: a table with one row per policy, and curves, which ``plot()`` draws.

    The columns are policy, reward (the mean per accepted row), se, interval and accepted (rows per order). The standard
    error is that of a single order, because the orders share their rows.
    """

    times: NDArray[np.int64]  # numbers of accepted rows at which the curves are recorded
    curves: dict[str, Floats]  # {policy: (orders, times)}: the mean reward so far
    orders: int
    notes: tuple[str, ...]

    def __init__(self, runs: Mapping[str, list[Floats]], notes: list[str]) -> None:
        rows = []
        for name, orders in runs.items():
            accepted = float(np.mean([len(rewards) for rewards in orders]))
            found = [mean_and_error(rewards) for rewards in orders if len(rewards)]
            errors = [se for _, se in found if not math.isnan(se)]
            mean = float(np.mean([mean for mean, _ in found])) if found else math.nan
            se = float(np.mean(errors)) if errors else math.nan
            shown = int(accepted) if accepted == round(accepted) else accepted
            rows.append((name, mean, se, (mean - Z * se, mean + Z * se), shown))
        super().__init__(("policy", "reward", "se", "interval", "accepted"), sorted(rows, key=lambda row: -row[1]))
        shortest = min((len(rewards) for orders in runs.values() for rewards in orders), default=0)
        self.times = np.unique(np.linspace(1, shortest, min(CHECKPOINTS, shortest)).astype(np.int64))
        self.curves = {
            name: np.array([(np.cumsum(rewards)[self.times - 1] / self.times) for rewards in orders])
            for name, orders in runs.items()
        }
        self.orders = len(next(iter(runs.values())))
        self.notes = tuple(notes)

    def table(self) -> Table:
        """Return only the table."""
        return self[:]

    def plot(self, **options: Any) -> Any:
        """Draw the mean reward over accepted rows, with bands over the orders, and return the Axes."""
        from banditree import plots

        return plots.rewards(self, **options)

    def over_orders(self, policy: str) -> OverSeeds:
        """Return the mean curve of a policy over the orders, with its standard deviation: (times,) each."""
        return over_seeds(self.curves[policy])

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"- {note}" for note in self.notes)])

    __repr__ = __str__


def replay(
    policies: Any,
    log: Any,
    *,
    tree: Tree,
    orders: int | None = None,
    rng: Any = 0,
) -> Replay:
    """Let policies learn from a randomised log as if they had been live (Li, Chu, Langford and Wang 2011).

    The policy chooses an arm for each row. If it is the arm that was shown, the policy learns from the reward and the
    row counts; other rows are skipped. If all arms were equally likely in the log, the accepted rows are what the
    policy would have experienced. If they were not, each row is first kept with probability p_min / p, where p is its
    propensity and p_min the smallest in the log, which makes them so; a log without propensities is refused. The first
    order of the rows is by time; the ``orders`` - 1 others are random. A policy is built as in `simulate`, by
    ``factory(tree, rng=rng)``; if it needs ``dim``, it gets that of the log's contexts.

    >>> import banditree as bt
    >>> table = {"arm": [0, 1, 0, 1] * 200, "click": [1, 0, 1, 1] * 200, "p": [0.5] * 800}
    >>> log = bt.read_log(table, arm="arm", reward="click", propensity="p")
    >>> found = bt.replay({"TS": bt.TS}, log, tree=bt.Tree(2), orders=2)
    >>> found[0].policy, bool(found[0].reward > 0.8), found.orders
    ('TS', True, 2)
    """
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidType(f"policies {policies!r:.60} must be a mapping such as {{'TS': bt.TS, 'TSC': bt.TSC}}")
    if not isinstance(log, Log):
        raise InvalidType(f"log {log!r:.60} is a {type(log).__name__}; read it first with bt.read_log")
    if not isinstance(tree, Tree):
        raise InvalidType(f"tree {tree!r:.60} must be the bt.Tree of the arms")
    if log.propensities is None:
        raise InvalidValue(f"replay: {LOG_PROPENSITIES}")
    orders = int(np.clip(STEPS // len(log), 1, MOST)) if orders is None else whole("orders", orders, 1)
    root = seed_sequence(rng)
    log = log.in_time()
    places = log.places(tree)
    assert log.propensities is not None
    notes, keep = list(log.notes), log.propensities.min() / log.propensities  # (n,)
    even = bool(keep.min() > 1 - 1e-6)
    unseen = tree.n_arms - len(np.unique(places))
    if unseen:
        notes.append(
            f"{count(unseen, 'arm')} of the tree without rows: a policy that chooses such an arm learns nothing from it"
        )
    if not even:
        notes.append(f"the log is not uniform: to make it so, about {keep.sum():,.0f} of {len(log):,} rows are kept")
    runs: dict[str, list[Floats]] = {str(name): [] for name in policies}
    for order in range(orders):
        shuffle = np.random.default_rng(_seed(root, order, 0))
        rows = np.arange(len(log)) if order == 0 else shuffle.permutation(len(log))
        rows = rows if even else rows[shuffle.random(len(log)) < keep[rows]]
        for name, factory in policies.items():
            policy = build_policy(factory, tree, log, _seed(root, order, key_of(str(name))))
            runs[str(name)].append(_accepted(policy, tree, log, places, rows))
    return Replay(runs, notes)


def _seed(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def build_policy(factory: Callable[..., Any], tree: Tree, log: Log, seed: np.random.SeedSequence) -> Any:
    """Build a policy on a tree; if it needs ``dim``, it gets that of the log's contexts."""
    if log.contexts is not None and asks_for_dim(factory):
        return factory(tree, dim=log.contexts.shape[1], rng=seed)
    return factory(tree, rng=seed)


def _accepted(policy: Any, tree: Tree, log: Log, places: Places, rows: Places) -> Floats:
    """Run the policy over the rows, and return the rewards of those in which it chose the arm that was shown."""
    choose, update = policy.choose, policy.update
    arms = tree.ids(places[rows]).tolist()
    rewards = log.rewards[rows].tolist()
    found = []
    if log.contexts is None or getattr(policy, "dim", log.contexts.shape[1]) is None:
        for arm, reward in zip(arms, rewards, strict=True):
            if choose() == arm:
                update(arm, reward)
                found.append(reward)
    else:
        for arm, reward, context in zip(arms, rewards, log.contexts[rows], strict=True):
            if choose(context) == arm:
                update(arm, reward, context)
                found.append(reward)
    return np.array(found, np.float64)
