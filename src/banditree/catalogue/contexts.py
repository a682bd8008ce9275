"""Questions to a log with contexts: what varies with the visitor, and whether it pays to know who is asking.

LinATS's own belief is the model. After it has learned the log, every arm has a level and slopes around those of its
category, with widths and noise that were learned too. A *world* is one draw of all coefficients from that belief.
Visitors are drawn with the means and the correlations that contexts have in the log: with x = m + L u, where u has
uncorrelated numbers of variance 1, the reward of arm a is level_a + slopes_a.u, and u is normal. As u is uncorrelated,
the variance of expected rewards over arms and visitors splits into parts that add up:

    Var(level_a)                 the arms: between the categories of each level, and between arms of one category
    |mean slopes|^2              the visitor, alike for all arms
    mean |slopes_a - mean|^2     visitor and arm together: between categories, and between arms of one category
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from banditree.base import words
from banditree.base.document import Bar, Code, Columns, Document, Grid, Note, Part, Section
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import chance, count, number, percent
from banditree.beliefs import Gaussian
from banditree.beliefs.adaptive_linear import AdaptiveLinear, AdaptiveLinearRows
from banditree.beliefs.base import Batch
from banditree.catalogue.advice import ROUNDS
from banditree.catalogue.comparison import Difference, WorldRuns
from banditree.catalogue.inspection import Estimate, clusters_at
from banditree.catalogue.simulation import Candidate, Plan, decision_seconds, default_seeds, regret_section
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.policy import Policy
from banditree.policy.algorithms import ATS, LinATS, LinTS
from banditree.problems import Instance, Problem
from banditree.problems import rewards as families
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.stream import Rng, Seed, generator
from banditree.tree import Tree
from banditree.tree.shape import Floats

N_DRAWS = 200  # of all coefficients, for an inspection
MIN_EIGENVALUE = 1e-9  # of the largest: directions in which contexts do not vary are left out
WITH_CONTEXTS, WITHOUT_CONTEXTS, WITHOUT_TREE = LinATS.__name__, ATS.__name__, LinTS.__name__


@dataclass(frozen=True, eq=False, repr=False)
class ContextModel:
    """A mixed model of a log: what LinATS believes after it has learned it."""

    tree: Tree
    rows: AdaptiveLinearRows
    centre: Floats  # (dim,) the mean context
    factor: Floats  # (dim, rank) contexts are centre + factor @ u
    n_rows: int
    names: tuple[str, ...]  # of the contexts

    @classmethod
    def fit(cls, log: Any, tree: Tree) -> ContextModel:
        """Learn a log (`bt.read_log` with ``context=``) of arms that are in the tree."""
        if log.contexts is None:
            raise InvalidValue("this log has no contexts; name their columns: read_log(..., context=[...])")
        rows = AdaptiveLinear(log.contexts.shape[1]).rows(tree.shape.n_nodes, {})
        rows.attach(tree.shape)
        rows.add_batch(tree.shape, Batch.of(log.places(tree), log.rewards, None, log.contexts, tree.n_arms))
        centred = log.contexts - log.contexts.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
        kept = values > MIN_EIGENVALUE * max(values.max(), 1e-300)
        if not kept.any():
            raise InvalidValue("the contexts of this log do not vary, so there is nothing to learn from them")
        factor = vectors[:, kept] * np.sqrt(values[kept])
        return cls(tree, rows, log.contexts.mean(axis=0), factor, len(log), tuple(log.context_names))

    def draw(self, rng: Rng) -> tuple[Floats, float]:
        """Draw the coefficients of all arms for (1, u), and the noise that goes with them: (arms, 1 + rank)."""
        theta, noise = self.rows.draw_coefficients(rng)  # (arms, 1 + dim)
        level = theta[:, 0] + theta[:, 1:] @ self.centre
        return np.column_stack([level, theta[:, 1:] @ self.factor]), noise

    def world(self) -> Problem:
        """Return a problem to simulate: each seed draws coefficients from the belief, and visitors like those seen."""
        return Problem("log with contexts", _draw_world, {"model": self})

    def __repr__(self) -> str:
        return f"ContextModel({self.tree!r}, {count(self.n_rows, 'row')}, {count(len(self.names), 'context')})"


def _draw_world(rng: Rng, model: ContextModel) -> Instance:
    theta, noise = model.draw(rng)
    return Instance({"log": model.tree}, families.Gaussian(noise), theta=theta, contexts="constant")


# What varies


@dataclass(frozen=True, eq=False, repr=False)
class ContextInspection(Result):
    """The result of `inspect_contexts`."""

    rows: int  # of the log
    arms: int
    contexts: tuple[str, ...]
    parts: Table  # part, share of the variance of expected rewards, interval, its standard deviation
    noise: Estimate  # standard deviation of a reward around its expected value

    def document(self) -> Document:
        largest = max(self.parts, key=lambda row: float(row.share))
        together = sum(row.share for row in self.parts if row.part.startswith("visitor and"))
        what = largest.part if largest.part.startswith("visitor and") else f"the {largest.part}"
        headline = (
            f"Expected rewards vary most with {what} ({percent(largest.share)} of their variance); "
            f"{percent(together)} depends on visitor and item together."
        )
        columns: Columns = {
            "part": lambda row: str(row.part),
            "": lambda row: Bar(row.share),
            "share of variance": lambda row: percent(row.share),
            "95% interval": lambda row: words.interval(row.interval, percent),
            "standard deviation": lambda row: number(row.sd),
        }
        table = Grid.of(self.parts, columns)
        about = f"{count(self.rows, 'row')}, {count(self.arms, 'arm')}, contexts: {', '.join(self.contexts)}"
        note = Note(
            f"A single reward varies by ±{number(self.noise.value)} around its expected value, which no policy can "
            "foresee. Shares are medians over draws from what LinATS believes after this log, and need not add up to "
            "100%."
        )
        return Document(headline, (table, note), name="What varies with the visitor", about=about)


def inspect_contexts(log: Any, tree: Tree, *, rng: Seed = 0) -> ContextInspection:
    """Measure how much of the variance of expected rewards is visitor, category, item, and their interaction.

    ``log`` is what `read_log` returns, with contexts, and ``tree`` has its arms in their categories.
    """
    model, stream = ContextModel.fit(log, tree), generator(rng)
    drawn = [model.draw(stream) for _ in range(N_DRAWS)]
    variances = [split_variance(tree, theta) for theta, _ in drawn]
    parts = []
    for name in variances[0]:
        values = np.array([parts_of_draw[name] for parts_of_draw in variances])
        totals = np.array([sum(parts_of_draw.values()) for parts_of_draw in variances])
        share = Estimate.of(values / np.maximum(totals, 1e-300))
        parts.append((name, share.value, share.interval, float(np.sqrt(np.median(values)))))
    noise = Estimate.of(np.array([noise for _, noise in drawn]))
    table = Table(("part", "share", "interval", "sd"), parts)
    return ContextInspection(model.n_rows, tree.n_arms, model.names, table, noise)


def split_variance(tree: Tree, theta: Floats) -> dict[str, float]:
    """Split the variance of level_a + slopes_a.u over arms and visitors u of variance 1: theta is (arms, 1 + rank).

    >>> tree = Tree({"a": [0, 1], "b": [2, 3]})
    >>> theta = np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 0.0], [7.0, 0.0]])
    >>> split_variance(tree, theta)
    {'visitor': 1.0, 'category': 4.0, 'item': 1.0, 'visitor and category': 1.0, 'visitor and item': 0.0}
    """
    mean = theta.mean(axis=0)
    _, group, size = np.unique(clusters_at(tree)[-1], return_inverse=True, return_counts=True)
    averages = np.array([np.bincount(group, column) / size for column in theta.T])[:, group].T  # (arms, 1 + rank)
    (level, slopes), (all_levels, all_slopes) = (
        ((values[:, 0] - mean[0]) ** 2, ((values[:, 1:] - mean[1:]) ** 2).sum(axis=1)) for values in (averages, theta)
    )
    parts = {
        "visitor": (mean[1:] ** 2).sum(),
        "category": level.mean(),
        "item": max(all_levels.mean() - level.mean(), 0.0),
        "visitor and category": slopes.mean(),
        "visitor and item": max(all_slopes.mean() - slopes.mean(), 0.0),
    }
    return {name: float(part) for name, part in parts.items() if tree.depth or "category" not in name}


# What to run


@dataclass(frozen=True, eq=False, repr=False)
class ContextAdvice(Result):
    """The result of `advise_contexts`: whether contexts pay off, and whether the tree does where they are used."""

    policy: str  # LinATS, LinTS or ATS
    code: str
    horizon: int
    verdict: str  # do contexts pay off: "contexts", "no contexts", or "cannot tell"
    of_contexts: Difference  # LinATS compared with ATS, which does not see them
    of_tree: Difference  # LinATS compared with LinTS, which does not use the tree
    table: Table  # policy, regret, interval, regret of a bad run, loss per decision at the end
    runs: Runs
    model: ContextModel
    inspection: ContextInspection

    def facts(self) -> dict[str, object]:
        names = ("policy", "code", "horizon", "verdict", "of_contexts", "of_tree")
        return {name: getattr(self, name) for name in names} | {
            "sentences": self.sentences,
            "policies": self.table,
            "seeds": len(self.runs.seeds),
            "inspection": self.inspection,
        }

    @property
    def sentences(self) -> list[str]:
        """The answer in words."""
        lead = {
            "contexts": f"Run {self.policy}: knowing who asks pays off.",
            "no contexts": f"Run {self.policy}: knowing who asks does not pay off.",
            "cannot tell": f"The data cannot tell whether knowing who asks pays off. {self.policy} is the better bet.",
        }[self.verdict]
        contexts = _compare("The contexts", self.of_contexts, "does not see them")
        tree = _compare("The categories", self.of_tree, "does not use them")
        return [lead, f"Over {count(self.horizon, 'decision')}, {contexts[0].lower()}{contexts[1:]}", tree]

    def document(self) -> Document:
        first, *rest = self.sentences
        size = count(self.horizon, "decision")
        worlds = f"{count(len(self.runs.seeds), 'world')} consistent with the log"
        about = f"Reward lost by not knowing the best arm for each visitor, in {worlds}; less is better."
        inspection = self.inspection.document()
        parts: list[Part] = [
            *rest,
            Code(self.code, "In Python"),
            regret_section(self.table, self.runs, about),
            Section("What varies with the visitor", [inspection.headline, *inspection.parts]),
        ]
        return Document(first, parts, name=self.policy, about=size, brief=(self.policy,))


def _is_clear(difference: Difference) -> bool:
    """Whether the data can tell, and the interval does as well."""
    low, high = difference.interval
    return difference.is_decisive and not low <= 0 <= high


def _compare(what: str, difference: Difference, how: str) -> str:
    low, high = difference.interval
    saved, interval = number(abs(difference.saving)), f"95% interval {number(low)} to {number(high)}"
    less = "less" if difference.saving > 0 else "more"
    if not _is_clear(difference):
        return (
            f"{what} may or may not pay off, the data cannot tell: {difference.policy} loses {saved} {less} than "
            f"{difference.rival}, which {how} ({interval} saved), and loses less with probability "
            f"{chance(difference.chance)}."
        )
    does = f"save {saved} ({interval}), or {percent(difference.share)}"
    if difference.saving <= 0:
        does = f"cost {saved} ({interval} saved)"
    return f"{what} {does}: {difference.policy} compared with {difference.rival}, which {how}."


def plan_contexts(model: ContextModel, *, horizon: int, seeds: int | None, quick: bool) -> Plan:
    """Plan to compare LinATS, ATS, which does not see contexts, and LinTS, which does not use the tree.

    LinTS is told the noise, which the others learn. The number of worlds follows from the size of the work if it is not
    given.
    """
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
    if seeds is None:
        chosen = [Candidate(kind, {}) for kind in (LinATS, ATS, LinTS)]
        seeds = default_seeds(ROUNDS[0] * horizon * decision_seconds(chosen, model.tree.n_arms), quick=quick)
    weight, variance = model.rows.weights()
    noise = float(np.exp(weight @ np.log(variance)))
    policies: dict[str, Callable[..., Policy]] = {
        WITH_CONTEXTS: LinATS,
        WITHOUT_CONTEXTS: partial(ATS, prior=Gaussian()),
        WITHOUT_TREE: partial(LinTS, v=noise),
    }
    return Plan(policies, model.world(), horizon, whole("seeds", seeds, 4, why="how many worlds"), ROUNDS[0])


def simulate_contexts(
    model: ContextModel, *, horizon: int, seeds: int | None = None, quick: bool = False, **options: Any
) -> Runs:
    """Simulate LinATS, ATS without contexts and LinTS without the tree in worlds that are consistent with a log.

    ``model`` comes from `ContextModel.fit`; the other parameters are as in `catalogue.simulate`, and ``options`` those
    of `banditree.simulate`.
    """
    plan = plan_contexts(model, horizon=horizon, seeds=seeds, quick=quick)
    times = np.concatenate([np.geomspace(min(10, plan.horizon), plan.horizon, 30), np.linspace(1, plan.horizon, 21)])
    return plan.run(checkpoints=np.unique(times.astype(int).clip(1)).tolist(), **options)


def advise_contexts(
    log: Any,
    tree: Tree,
    *,
    horizon: int,
    seeds: int | None = None,
    quick: bool = False,
    rng: Seed = 0,
    jobs: int | None = None,
    progress: Progress = None,
    model: ContextModel | None = None,
) -> ContextAdvice:
    """Advise whether knowing who asks pays off over ``horizon`` decisions, and whether the tree does.

    Simulates LinATS, ATS without contexts and LinTS without the tree in worlds that are consistent with the log.

    Parameters
    ----------
    log
        What `read_log` returns, with contexts.
    tree
        The arms in their categories.
    horizon, seeds, quick, rng, jobs, progress
        As in `advise`.
    model
        A model that was already fitted to this log.
    """
    model = ContextModel.fit(log, tree) if model is None else model
    options: dict[str, Any] = {"rng": rng, "jobs": jobs, "progress": progress, "replicates": ROUNDS[0]}
    runs = simulate_contexts(model, horizon=horizon, seeds=seeds, quick=quick, **options)
    results = WorldRuns(runs, one_world=False)
    of_contexts = results.compare(WITH_CONTEXTS, WITHOUT_CONTEXTS)
    of_tree = results.compare(WITH_CONTEXTS, WITHOUT_TREE)
    verdict = "cannot tell"
    if _is_clear(of_contexts):
        verdict = "contexts" if of_contexts.saving > 0 else "no contexts"
    policy = WITH_CONTEXTS  # unless a simpler one is as good: ATS without contexts, LinTS without the tree
    if of_contexts.saving <= 0 or not of_contexts.matters:
        policy = WITHOUT_CONTEXTS
    elif of_tree.saving < 0 and of_tree.is_decisive:
        policy = WITHOUT_TREE
    dim = "" if policy == WITHOUT_CONTEXTS else f", dim={len(model.centre)}"
    return ContextAdvice(
        policy=policy,
        code=f"bt.{policy}(tree{dim})",
        horizon=int(runs.times[-1]),
        verdict=verdict,
        of_contexts=of_contexts,
        of_tree=of_tree,
        table=results.table(count_wins=False),
        runs=runs,
        model=model,
        inspection=inspect_contexts(log, tree, rng=rng),
    )
