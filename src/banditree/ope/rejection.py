"""Replay a log to learning policies by rejection: a row counts if the policy chooses the arm that was shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.base import words
from banditree.base.arrays import Floats, Places
from banditree.base.document import Bullets, Document, Picture
from banditree.base.intervals import student_interval, wilson_interval
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, number
from banditree.data.log import Log
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.ope.rows import LOG_PROPENSITIES, find_tree
from banditree.ope.sums import mean_and_error
from banditree.policy.factories import asks_for_dim
from banditree.simulation.simulator import name_factories
from banditree.simulation.statistics import OverSeeds, over_seeds
from banditree.stream import Seed, key_of, seed_sequence
from banditree.tree import Tree

MAX_STEPS = 4_000_000  # rows per policy over all orders, by default
MAX_ORDERS, MAX_CHECKPOINTS = 20, 200  # orders by default, and points of a curve
FEW_ROWS = 30  # with fewer accepted rows, a note says so


class Replay(Result, Table):
    """The result of `replay`: a table with one row per policy, and curves, which ``plot()`` draws.

    The columns are policy, reward (the mean per accepted row), se, interval and accepted (rows per order). Standard
    error and interval are those of a single order, because the orders share their rows. The interval is Wilson's for
    rewards of 0 and 1, and Student's for others; the standard error is unknown (NaN) if rewards do not differ.
    """

    times: NDArray[np.int64]  # numbers of accepted rows at which the curves are recorded
    curves: dict[str, Floats]  # {policy: (orders, times)}: the mean reward so far
    orders: int
    notes: tuple[str, ...]

    def __init__(self, runs: Mapping[str, list[Floats]], notes: list[str], *, are_binary: bool) -> None:
        rows = [(name, *_summarise(orders, are_binary=are_binary)) for name, orders in runs.items()]
        super().__init__(("policy", "reward", "se", "interval", "accepted"), sorted(rows, key=lambda row: -row[1]))
        shortest = min((len(rewards) for orders in runs.values() for rewards in orders), default=0)
        self.times = np.unique(np.linspace(1, shortest, min(MAX_CHECKPOINTS, shortest)).astype(np.int64))
        self.curves = {
            name: np.array([(np.cumsum(rewards)[self.times - 1] / self.times) for rewards in orders])
            for name, orders in runs.items()
        }
        self.orders = len(next(iter(runs.values())))
        few = [row[0] for row in rows if row[4] < FEW_ROWS]
        if few:
            notes.append(f"{', '.join(few)}: fewer than {FEW_ROWS} accepted rows; replay needs long logs and few arms")
        self.notes = tuple(notes)

    def document(self) -> Document:
        best = self[0]
        headline = f"{best.policy} earned {number(best.reward)} per accepted row ({words.interval(best.interval)})."
        picture = Picture(self._draw, "Mean reward so far, over accepted rows.", "Mean reward of each policy")
        pictures = [picture] if len(self.times) else []
        return Document(headline, (self.table().grid(), *pictures, Bullets(self.notes)), name="Replay", about="Replay")

    def facts(self) -> dict[str, object]:
        policies = {row.policy: {name: row[name] for name in self.columns[1:]} for row in self}
        return {"policies": policies, "orders": self.orders, "notes": self.notes}

    def _draw(self) -> str:
        from banditree import plots

        return plots.svg(plots.rewards(self, ax=plots.sheet()))

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


def _summarise(orders: list[Floats], *, are_binary: bool) -> tuple[float, float, tuple[float, float], float]:
    """Compute the mean reward, its standard error and interval, and the number of accepted rows, over orders."""
    accepted = float(np.mean([len(rewards) for rewards in orders]))
    per_order = [mean_and_error(rewards) for rewards in orders if len(rewards)]
    errors = [se for _, se in per_order if not math.isnan(se)]
    mean = float(np.mean([mean for mean, _ in per_order])) if per_order else math.nan
    se = (float(np.mean(errors)) if errors else math.nan) or math.nan  # rewards that do not differ say nothing of it
    interval = wilson_interval(mean, accepted) if are_binary else student_interval(mean, se, round(accepted))
    return mean, se, interval, int(accepted) if accepted == round(accepted) else accepted


def replay(policies: Any, log: object, *, tree: Tree | None = None, orders: int | None = None, rng: Seed = 0) -> Replay:
    """Let policies learn from a randomised log as if they had been live (Li, Chu, Langford and Wang 2011).

    The policy chooses an arm for each row. If it is the arm that was shown, the policy learns from the reward and the
    row counts; other rows are skipped. If all arms were equally likely in the log, the accepted rows are what the
    policy would have experienced. If they were not, each row is first kept with probability p_min / p, where p is its
    propensity and p_min the smallest in the log, which makes them so; a log without propensities is refused.

    Parameters
    ----------
    policies
        {name: factory}, or a list of classes, as for `simulate`. A factory that needs ``dim`` gets that of the log's
        contexts.
    log
        The log, from `read_log`.
    tree
        The tree of the arms; by default that of the log, if its rows have paths.
    orders
        How many orders of the rows to replay: the first is by time, the others are random.
    rng
        The seed.

    >>> import banditree as bt
    >>> table = {"arm": [0, 1, 0, 1] * 200, "click": [1, 0, 1, 1] * 200, "p": [0.5] * 800}
    >>> log = bt.read_log(table, arm="arm", reward="click", propensity="p")
    >>> result = bt.replay([bt.TS], log, tree=bt.Tree(2), orders=2)
    >>> result[0].policy, bool(result[0].reward > 0.8), result.orders
    ('TS', True, 2)
    """
    factories = name_factories(policies)
    if not isinstance(log, Log):
        raise InvalidType(f"log is a {type(log).__name__}; read it first with bt.read_log")
    tree = find_tree(tree, None, log)
    if log.propensities is None:
        raise InvalidValue(f"replay: {LOG_PROPENSITIES}")
    orders = int(np.clip(MAX_STEPS // len(log), 1, MAX_ORDERS)) if orders is None else whole("orders", orders, 1)
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
    runs: dict[str, list[Floats]] = {name: [] for name in factories}
    for order in range(orders):
        shuffle = np.random.default_rng(_seed(root, order, 0))
        rows = np.arange(len(log)) if order == 0 else shuffle.permutation(len(log))
        rows = rows if even else rows[shuffle.random(len(log)) < keep[rows]]
        for name, factory in factories.items():
            policy = build_policy(factory, tree, log, _seed(root, order, key_of(name)))
            runs[name].append(_accept_rows(policy, tree, log, places, rows))
    return Replay(runs, notes, are_binary=bool(np.isin(log.rewards, (0.0, 1.0)).all()))


def _seed(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def build_policy(factory: Callable[..., object], tree: Tree, log: Log, seed: np.random.SeedSequence) -> Any:
    """Build a policy on a tree; if it needs ``dim``, it gets that of the log's contexts."""
    if asks_for_dim(factory) and log.contexts is not None:
        return factory(tree, dim=log.contexts.shape[1], rng=seed)
    return factory(tree, rng=seed)


def _accept_rows(policy: Any, tree: Tree, log: Log, places: Places, rows: Places) -> Floats:
    """Run the policy over the rows, and return the rewards of those in which it chose the arm that was shown."""
    choose, update = policy.choose, policy.update
    contexts: Iterable[Floats | None] = repeat(None, len(rows))
    if log.contexts is not None and getattr(policy, "dim", log.contexts.shape[1]) is not None:
        contexts = log.contexts_for(policy)[rows]
    accepted = []
    for arm, reward, context in zip(tree.ids(places[rows]).tolist(), log.rewards[rows].tolist(), contexts, strict=True):
        if choose(context) == arm:
            update(arm, reward, context)
            accepted.append(reward)
    return np.array(accepted, np.float64)
