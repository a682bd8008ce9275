"""Choose the policies to try on a catalogue, plan how much to simulate, and simulate them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from banditree.base import words
from banditree.base.document import Bar, Bullets, Columns, Document, Grid, Part, Section
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, duration, number, percent
from banditree.beliefs import Gaussian
from banditree.catalogue.inspection import clusters_at
from banditree.catalogue.items import Catalogue, tree_of
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.policy import Policy
from banditree.policy.algorithms import ATS, HTS, TS, TSC, UCT, WITHOUT_CONTEXTS, PolicyChoice, parse_policy
from banditree.policy.engines import engine
from banditree.policy.policy import About
from banditree.problems import Problem
from banditree.rules import UCB
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.simulation.simulator import simulate as run
from banditree.simulation.workers import n_workers
from banditree.stream import Seed
from banditree.tree import Tree

MAX_DEPTHS = 8  # depths that are tried
TSC_SECONDS = {"native": (1e-7, 5e-10), "readable": (5e-5, 0.0)}  # of a decision of TSC, and more per arm


LEARNS = "learns how far to trust the categories"
LEARNS_ALIKE = "learns how alike they are"  # where the categories do not matter
PolicyNames = str | type[Policy] | Iterable[str | type[Policy]]  # "TSC", bt.TSC, or several
BUDGET_SECONDS = 60.0  # of one core, for the default number of seeds; more if MIN_SEEDS need it
QUICK_SHARE = 0.1  # of that budget
MIN_SEEDS, MIN_QUICK_SEEDS, MAX_SEEDS = 8, 4, 100  # bounds of the default number of seeds
PILOT_STEPS = 200  # simulated to estimate how long the rest takes
PICTURE_INCHES = 4.8, 4.4  # of the regret over time
LOST = "Reward lost by not knowing the best arm"


class Candidate(PolicyChoice):
    """A policy to try on a catalogue: its class, and the parameters to build it with."""

    __slots__ = ()

    @property
    def policy(self) -> str:
        """The name of its class."""
        return self.kind.__name__

    @property
    def depth(self) -> int | None:
        """The depth that it was given; None where it has no such parameter."""
        return self.parameters.get("depth")

    @property
    def code(self) -> str:
        """The Python code that builds it."""
        return f"bt.{self.policy}({', '.join(['tree', *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def code_with(self, prior: Gaussian | None) -> str:
        """Return the Python code that builds it with a prior, if there is one: see `factory_with`."""
        if prior is None:
            return self.code
        belief = f"bt.Gaussian(sd={prior.sd:.4g}, mean={prior.mean:.4g}, prior_sd={prior.prior_sd:.4g})"
        if not self.about.takes_prior:
            deep = "" if self.levels is None else f", depth={self.levels}"
            return f"bt.Policy(tree, belief={belief}, rule=bt.UCB(){deep})"
        return f"{self.code[:-1]}, prior={belief})"

    @property
    def about(self) -> About:
        """What its class is."""
        return self.kind.about

    @property
    def how(self) -> str:
        """What it does, in words."""
        return self.about.summary.format(**self.parameters)

    def factory_with(self, prior: Gaussian | None) -> Callable[..., Policy]:
        """Return a factory that uses the prior, if there is one.

        UCB policies take no prior; with normal beliefs their bound is mean + sd sqrt(2 ln n / n_i).
        """
        if prior is None:
            return self.factory
        if not self.about.takes_prior:
            return partial(Policy, belief=prior, rule=UCB(), depth=self.levels)
        return partial(self.factory, prior=prior)

    @property
    def adapts(self) -> bool:
        """Whether it learns how far to trust the categories; the others trust those that they use."""
        return self.about.adapts

    @property
    def levels(self) -> int | None:
        """How many levels of clusters it uses; None for all."""
        return self.depth if self.about.levels is None else self.about.levels

    def clusters(self, tree: Tree) -> frozenset[bytes]:
        """Find the clusters of this tree that affect its decisions, each as the indices of its arms.

        A cluster of one arm, a cluster of all arms, and the only cluster inside another affect no decision. If none is
        left, this is a flat policy.
        """
        walked = tree if self.levels is None else tree.cut(min(self.levels, tree.depth))
        level_of = walked.shape.level_of()
        clusters = set()
        for level, cluster in enumerate(clusters_at(walked)):
            order = np.argsort(cluster, kind="stable")  # (arms,) cluster by cluster
            nodes, first = np.unique(cluster[order], return_index=True)
            for node, arms in zip(nodes.tolist(), np.split(order, first[1:]), strict=True):
                if level_of[node] == level and 1 < len(arms) < tree.n_arms:
                    clusters.add(arms.tobytes())
        return frozenset(clusters)


FLAT = Candidate(TS, {})


def for_tree(tree: Tree) -> list[Candidate]:
    """List the default candidates, the simpler ones first: TS, TSC, HTS at each depth, UCT and ATS.

    >>> [candidate.label for candidate in for_tree(Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'TSC', 'HTS(depth=2)', 'UCT', 'ATS']
    """
    if tree.depth == 0:
        return [FLAT, Candidate(UCT, {})]
    deeper = [Candidate(HTS, {"depth": depth}) for depth in depths(tree.depth)]
    return [FLAT, Candidate(TSC, {}), *deeper, Candidate(UCT, {}), Candidate(ATS, {})]


def decision_seconds(candidates: Iterable[Candidate], n_arms: int) -> float:
    """Return how long one simulated decision of all candidates takes, about, on one core of an ordinary machine.

    A rule of thumb and not a measurement, so that the number of worlds that follows from it is the same everywhere.
    """
    fixed, per_arm = TSC_SECONDS[engine()]
    return sum(candidate.about.cost for candidate in candidates) * (fixed + per_arm * n_arms)


def depths(deepest: int) -> list[int]:
    """List the depths from 2 to the deepest: all of them, or an even selection."""
    if deepest <= MAX_DEPTHS:
        return list(range(2, deepest + 1))
    return sorted({round(2 + (deepest - 2) * i / (MAX_DEPTHS - 2)) for i in range(MAX_DEPTHS - 1)})


def distinct(candidates: Sequence[Candidate], tree: Tree) -> tuple[list[Candidate], dict[str, str]]:
    """Split into candidates that differ on this tree, and {label of a duplicate: label of the equal candidate before}.

    >>> kept, same = distinct(for_tree(Tree({"all": [1, 2, 3]})), Tree({"all": [1, 2, 3]}))
    >>> [candidate.label for candidate in kept], same
    (['TS', 'UCT', 'ATS'], {'TSC': 'TS'})
    """
    kept: list[Candidate] = []
    same: dict[str, str] = {}
    first: dict[tuple[str, frozenset[bytes]], str] = {}
    for candidate in candidates:
        key = candidate.about.family, candidate.clusters(tree)
        if key in first:
            same[candidate.label] = first[key]
        else:
            first[key] = candidate.label
            kept.append(candidate)
    return kept, same


def parse_candidates(names: PolicyNames | None, tree: Tree) -> list[Candidate]:
    """Parse candidates as users write them: "TS", "HTS" (the whole tree), "HTS:2", "HTS(depth=2)" or the class HTS.

    None stands for the default candidates.

    >>> tree = Tree({"a": {"b": [1, 2], "c": [3, 4]}})
    >>> [candidate.label for candidate in parse_candidates(["ts", HTS, "HTS:1"], tree)]
    ['TS', 'HTS(depth=2)', 'HTS(depth=1)']
    """
    if names is None:
        return for_tree(tree)
    listed: list[Candidate] = []
    for given in names if isinstance(names, Iterable) and not isinstance(names, str) else [names]:
        kind, parameters = parse_policy(given, tree=tree, among=WITHOUT_CONTEXTS)
        if kind is HTS and not parameters:
            parameters = {"depth": tree.depth}
        candidate = Candidate(kind, parameters)
        if candidate not in listed:
            listed.append(candidate)
    if not listed:
        raise InvalidValue("policies is empty; give at least one")
    return listed


# ---------------------------------------------------------------- planning and simulating


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """The result of `simulate`: regret in ``runs``, and the traffic of each category."""

    catalogue: Catalogue
    horizon: int
    candidates: tuple[Candidate, ...]
    runs: Runs
    traffic: Table  # cluster, arms, and for each policy the share of its plays

    def facts(self) -> dict[str, object]:
        return {
            "horizon": self.horizon,
            "seeds": len(self.runs.seeds),
            "policies": self.runs.table(),
            "times": self.runs.times,
            "regret": {name: regret.mean(axis=0) for name, regret in self.runs.regret.items()},
            "traffic": self.traffic,
        }

    def document(self) -> Document:
        runs = self.runs
        table = runs.table()
        worst = max(table["mean"]) or 1.0
        columns: Columns = {
            "policy": lambda row: str(row.policy),
            "": lambda row: Bar(row.mean / worst),
            "regret": lambda row: number(row.mean),
            "95% interval": lambda row: words.interval(row.interval),
            "standard deviation": lambda row: number(row.sd),
        }
        regret = Grid.of(table, columns, label="Regret of each policy")
        worlds = "on the means given" if self.catalogue.means is not None else "in worlds consistent with the data"
        size = f"{count(self.horizon, 'decision')}, {count(len(runs.seeds), 'seed')}"
        headline = f"{table[0].policy} loses least: {self.catalogue.rewards(table[0].mean)}"
        headline += f"; {table[1].policy} loses {number(table[1].mean)}." if len(table) > 1 else "."
        parts: list[Part] = [
            f"{LOST}, over {size}, {worlds}; less is better. {start_sentence(self.catalogue)}",
            Section("Regret", [regret, runs.picture(*PICTURE_INCHES)]),
            traffic_section(self.traffic),
        ]
        if self.catalogue.notes:
            parts.append(Section("Notes on the table", [Bullets([f"{note}." for note in self.catalogue.notes])]))
        return Document(headline, parts, name=size, about=size, brief=(regret,))


def start_sentence(catalogue: Catalogue) -> str:
    """Say what policies know at the start of a simulation."""
    if catalogue.prior is None:
        return "Policies start without data."
    return "Policies start without data; their prior is the mean and the spread of all arms."


def regret_section(table: Table, runs: Runs, about: str) -> Section:
    """What each policy loses, from advice's table (``best`` is the share of worlds that it is best in), and curves."""
    worst = max(table["regret"]) or 1.0
    columns: Columns = {
        "policy": lambda row: str(row.policy),
        "": lambda row: Bar(row.regret / worst),
        "regret": lambda row: number(row.regret),
        "95% interval": lambda row: words.interval(row.interval),
        "in a bad run": lambda row: number(row.bad_run),
        "lost per decision at the end": lambda row: number(row.loss),
    }
    if "best" in table.columns:
        columns["best in"] = lambda row: f"{percent(row.best)} of worlds"
    grid = Grid.of(table, columns, label="Regret of each policy")
    after = f"Regret after {count(int(runs.times[-1]), 'decision')}"
    return Section(after, [grid, about, runs.picture(*PICTURE_INCHES)])


def traffic_section(traffic: Table) -> Section:
    """The share of each policy's decisions in each top category."""
    policies = traffic.columns[2:]
    rows = [(str(row.cluster), f"{row.arms:,}", *(percent(row[name]) for name in policies)) for row in traffic]
    table = Grid(("category", "arms", *policies), rows, label="Traffic by category")
    return Section("Traffic by category", ["The share of each policy's decisions.", table])


def simulate(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: PolicyNames | None = None,
    seeds: int | None = None,
    quick: bool = False,
    rng: Seed = 0,
    jobs: int | None = None,
    progress: Progress = None,
) -> Simulation:
    """Simulate policies, starting without data, in worlds that are consistent with the catalogue's data.

    Given counts, each seed draws the true means from their posterior; given means, those are used. Rewards are 0 or 1,
    or normal if the catalogue has rewards that are not rates.

    Parameters
    ----------
    catalogue
        What `read_catalogue` returns.
    horizon
        How many decisions are made.
    policies
        Names such as "TS" or "HTS:2", or classes; by default flat Thompson sampling, Thompson sampling on the tree at
        every depth, UCT and ATS.
    seeds
        How many worlds; by default 8 to 100, fewer if runs are long.
    quick
        Whether to simulate fewer worlds by default, for a first answer.
    rng
        A seed or a generator; the same one gives the same result.
    jobs
        Threads; -1 for all cores. Results do not depend on it.
    progress
        As in `banditree.simulate`.

    Examples
    --------
    >>> from banditree.tree import Tree
    >>> catalogue = Catalogue(Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]}), means=[0.1, 0.2, 0.7, 0.6])
    >>> simulation = simulate(catalogue, horizon=500, policies=["TS", "TSC"], seeds=4)
    >>> simulation.traffic["cluster"]
    ['hats', 'shoes']
    """
    plan = plan_simulation(catalogue, horizon=horizon, policies=policies, seeds=seeds, quick=quick)
    runs = plan.run(rng=rng, jobs=jobs, progress=progress)
    return Simulation(catalogue, plan.horizon, plan.candidates, runs, tabulate_traffic(catalogue, runs))


@dataclass(frozen=True)
class Plan:
    """What to simulate: policies on a problem, in so many worlds."""

    policies: Mapping[str, Callable[..., Policy]]
    problem: Problem
    horizon: int
    worlds: int
    runs: int = 1  # of each policy in each world
    candidates: tuple[Candidate, ...] = ()  # the policies of a catalogue
    same: Mapping[str, str] = field(
        default_factory=dict
    )  # {candidate that is left out: the equivalent one that is not}

    def run(self, **options: Any) -> Runs:
        """Run the simulation; the options are those of `banditree.simulate`."""
        return run(self.policies, self.problem, horizon=self.horizon, seeds=self.worlds, **options)

    def estimate_seconds(self, jobs: int | None) -> float:
        """Estimate how long it takes, from a few steps of every policy on this machine."""
        steps, runs = min(self.horizon, PILOT_STEPS), self.worlds * self.runs
        pilot = run(self.policies, self.problem, horizon=steps, seeds=1, progress=False)
        return sum(pilot.seconds.values()) / steps * self.horizon * runs / min(n_workers(jobs), runs)

    def describe(self, seconds: float) -> str:
        """Say how much there is to simulate, and how long it takes."""
        repeats = f", {self.runs} runs in each" if self.runs > 1 else ""
        size = f"{count(self.worlds, 'world')} x {count(len(self.policies), 'policy', 'policies')}{repeats}"
        return f"{duration(seconds)}: {size}, {count(self.horizon, 'decision')} each"


def plan_simulation(
    catalogue: Catalogue, *, horizon: int, policies: PolicyNames | None, seeds: int | None, quick: bool
) -> Plan:
    """Choose the candidates, and the number of worlds by the size of the work if it is not given."""
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
    tree = tree_of(catalogue)
    chosen = parse_candidates(policies, tree)
    return plan_candidates(catalogue, chosen, horizon=horizon, seeds=seeds, quick=quick)


def plan_candidates(
    catalogue: Catalogue, chosen: Sequence[Candidate], *, horizon: int, seeds: int | None, quick: bool, runs: int = 1
) -> Plan:
    """Plan to simulate these candidates on a catalogue."""
    policies = {candidate.label: candidate.factory_with(catalogue.prior) for candidate in chosen}
    if seeds is None:
        seeds = default_seeds(runs * horizon * decision_seconds(chosen, catalogue.tree.n_arms), quick=quick)
    return Plan(policies, catalogue.world(), horizon, seeds, runs, tuple(chosen))


def default_seeds(seconds: float, *, quick: bool = False) -> int:
    """Choose how many seeds to run that take this long each, within about a minute of one core."""
    budget = BUDGET_SECONDS * (QUICK_SHARE if quick else 1.0)
    return int(np.clip(budget // seconds, MIN_QUICK_SEEDS if quick else MIN_SEEDS, MAX_SEEDS))


def tabulate_traffic(catalogue: Catalogue, runs: Runs) -> Table:
    """Tabulate which share of each policy's plays went to each top cluster, the busiest first."""
    horizon = int(runs.times[-1])
    rows = [
        (
            cluster,
            len(arms),
            *(
                float(np.mean([plays.get(cluster, 0) for plays in runs.clusters[name]]) / horizon)
                for name in runs.policies
            ),
        )
        for cluster, arms in catalogue.tree.clusters.items()
    ]
    return Table(("cluster", "arms", *runs.policies), sorted(rows, key=lambda row: -sum(row[2:])))
