"""Choose the policies to try on a catalogue and how many worlds to simulate, and simulate them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from banditree.base import words
from banditree.base.document import Bar, Columns, Document, Grid, Section
from banditree.base.result import Result
from banditree.base.tables import Table
from banditree.base.words import count, duration, number, percent
from banditree.beliefs import Gaussian
from banditree.catalogue.comparison import tabulate
from banditree.catalogue.items import Catalogue, tree_of
from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.policy import Policy
from banditree.policy.algorithms import ATS, HTS, TS, TSC, UCT, PolicyChoice, parse_policy, without_contexts
from banditree.policy.engines import engine
from banditree.rules import UCB
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.simulation.simulator import simulate as run
from banditree.simulation.workers import n_workers
from banditree.stream import Seed
from banditree.tree import Tree
from banditree.tree.build import Name

PolicyNames = str | type[Policy] | Iterable[str | type[Policy]]  # "TSC", bt.TSC, or several
MAX_DEPTHS = 8  # depths that are tried
# Seconds of a decision of TSC, and more per arm: a rule of thumb and not a measurement, so that the default number of
# worlds is the same on every machine.
TSC_SECONDS = {"native": (1e-7, 5e-10), "readable": (5e-5, 0.0)}
BUDGET_SECONDS = 60.0  # of one core, for the default number of worlds; more if MIN_WORLDS need it
QUICK_SHARE = 0.1  # of that budget
MIN_WORLDS, MIN_QUICK_WORLDS, MAX_WORLDS = 8, 4, 200  # bounds of the default
PILOT_STEPS = 200  # simulated to estimate how long the rest takes
PICTURE_INCHES = 4.8, 4.4  # of the regret over time


@dataclass(frozen=True)
class Candidate:
    """A policy to try on a catalogue."""

    kind: type[Policy]
    depth: int | None = None  # of the walk, where the class has such a choice
    is_cut: bool = False  # whether it runs on the same arms without their categories

    @property
    def parameters(self) -> dict[str, Any]:
        return {} if self.depth is None else {"depth": self.depth}

    @property
    def label(self) -> str:
        """The name with its parameters, as the tables show it."""
        return PolicyChoice(self.kind, self.parameters).label + (" without the tree" if self.is_cut else "")

    @property
    def how(self) -> str:
        """What it does, in words."""
        if self.is_cut:
            return "the same policy on all arms at once, whose categories it does not see"
        return self.kind.about.summary.format(**self.parameters)

    def code(self, prior: Gaussian | None) -> str:
        """Return the Python code that builds it, with this prior if there is one: see `factory`."""
        name, tree = self.kind.__name__, "tree.cut(0)" if self.is_cut else "tree"
        options = {} if self.depth is None else {"depth": str(self.depth)}
        if prior is not None:
            told = {"sd": prior.sd, "mean": prior.mean, "prior_sd": prior.prior_sd} if prior.sd is not None else {}
            belief = f"bt.Gaussian({', '.join(f'{key}={value:.4g}' for key, value in told.items())})"
            if self.kind.about.takes_prior:
                options["prior"] = belief
            else:
                depth = {} if self._levels is None else {"depth": str(self._levels)}
                name, options = "Policy", {"belief": belief, "rule": "bt.UCB()", **depth}
        return f"bt.{name}({', '.join([tree, *(f'{key}={value}' for key, value in options.items())])})"

    def factory(self, prior: Gaussian | None) -> Callable[..., Policy]:
        """Return a function that builds it, with this prior if there is one.

        UCB policies take no prior; with normal beliefs their bound is mean + sd sqrt(2 ln n / n_i).
        """
        build: Callable[..., Policy] = partial(self.kind, **self.parameters)
        if prior is not None:
            if self.kind.about.takes_prior:
                build = partial(build, prior=prior)
            else:
                build = partial(Policy, belief=prior, rule=UCB(), depth=self._levels)
        return partial(_on_flat_tree, build) if self.is_cut else build

    @property
    def _levels(self) -> int | None:
        """How many levels of clusters it walks through; None for all."""
        return self.depth if self.kind.about.levels is None else self.kind.about.levels


def _on_flat_tree(build: Callable[..., Policy], tree: Tree, **options: object) -> Policy:
    return build(tree.cut(0), **options)


FLAT = Candidate(TS)
WITH_TREE, WITHOUT_TREE = Candidate(ATS), Candidate(ATS, is_cut=True)  # their difference is what categories are worth


def for_tree(tree: Tree) -> list[Candidate]:
    """List the default candidates, the simpler ones first: TS, TSC, HTS at each depth, UCT and ATS.

    >>> [candidate.label for candidate in for_tree(Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'TSC', 'HTS(depth=2)', 'UCT', 'ATS']
    """
    if tree.depth == 0:
        return [FLAT, Candidate(UCT)]
    deeper = [Candidate(HTS, depth) for depth in depths(tree.depth)]
    return [FLAT, Candidate(TSC), *deeper, Candidate(UCT), WITH_TREE]


def depths(deepest: int) -> list[int]:
    """List the depths from 2 to the deepest: all of them, or an even selection."""
    if deepest <= MAX_DEPTHS:
        return list(range(2, deepest + 1))
    return sorted({round(2 + (deepest - 2) * i / (MAX_DEPTHS - 2)) for i in range(MAX_DEPTHS - 1)})


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
        kind, parameters = parse_policy(given, tree=tree, among=without_contexts())
        if kind is HTS and not parameters:
            parameters = {"depth": tree.depth}
        candidate = Candidate(kind, **parameters)
        if candidate not in listed:
            listed.append(candidate)
    if not listed:
        raise InvalidValue("policies is empty; give at least one")
    return listed


# Planning


@dataclass(frozen=True)
class Workload:
    """How much to simulate: candidates, decisions and worlds."""

    catalogue: Catalogue
    candidates: tuple[Candidate, ...]
    horizon: int
    worlds: int

    @property
    def policies(self) -> dict[str, Callable[..., Policy]]:
        """The candidates as `banditree.simulate` takes them."""
        return {candidate.label: candidate.factory(self.catalogue.prior) for candidate in self.candidates}

    def run(self, policies: Mapping[str, Callable[..., Policy]] | None = None, **options: Any) -> Runs:
        """Simulate the candidates, or other policies in the same worlds; options as for `banditree.simulate`."""
        problem = self.catalogue.world()
        return run(policies or self.policies, problem, **({"horizon": self.horizon, "seeds": self.worlds} | options))

    def estimate_seconds(self, jobs: int | None) -> float:
        """Estimate how long it takes, from a few steps of every policy on this machine."""
        steps = min(self.horizon, PILOT_STEPS)
        pilot = self.run(horizon=steps, seeds=1, progress=False)
        return sum(pilot.seconds.values()) / steps * self.horizon * self.worlds / min(n_workers(jobs), self.worlds)

    def describe(self, seconds: float) -> str:
        """Say how much there is to simulate, and how long it takes."""
        size = f"{count(self.worlds, 'world')} x {count(len(self.candidates), 'policy', 'policies')}"
        return f"{duration(seconds)}: {size}, {count(self.horizon, 'decision')} each"


def plan_simulation(
    catalogue: Catalogue, *, horizon: int, policies: PolicyNames | None, seeds: int | None, quick: bool
) -> Workload:
    """Choose the candidates, and the number of worlds if it is not given."""
    return plan(catalogue, parse_candidates(policies, tree_of(catalogue)), horizon, seeds, quick=quick)


def plan(
    catalogue: Catalogue, candidates: Sequence[Candidate], horizon: int, seeds: int | None, *, quick: bool
) -> Workload:
    """Plan to simulate these candidates, by default in as many worlds as take about a minute of one core."""
    horizon = whole("horizon", horizon, 1, MAX_STEPS, why="how many decisions")
    if seeds is None:
        fixed, per_arm = TSC_SECONDS[engine()]
        cost = sum(candidate.kind.about.cost for candidate in candidates)
        seeds = default_worlds(horizon * cost * (fixed + per_arm * catalogue.tree.n_arms), quick=quick)
    return Workload(catalogue, tuple(candidates), horizon, seeds)


def default_worlds(seconds: float, *, quick: bool = False) -> int:
    """Choose how many worlds to simulate that take this long each."""
    budget = BUDGET_SECONDS * (QUICK_SHARE if quick else 1.0)
    return int(np.clip(budget // seconds, MIN_QUICK_WORLDS if quick else MIN_WORLDS, MAX_WORLDS))


# Simulating


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """The result of `simulate`: regret in ``runs``, and the traffic of each category."""

    catalogue: Catalogue
    runs: Runs

    @property
    def horizon(self) -> int:
        return int(self.runs.times[-1])

    @cached_property
    def table(self) -> Table:
        """One row per policy: regret, its interval, the regret exceeded in one world of twenty, best in worlds."""
        return tabulate(self.runs)

    @cached_property
    def traffic(self) -> Table:
        """One row per top category: its arms, and for each policy the share of its plays."""
        return tabulate_traffic(self.catalogue, self.runs)

    def facts(self) -> dict[str, object]:
        return {
            "horizon": self.horizon,
            "seeds": len(self.runs.seeds),
            "policies": self.table,
            "times": self.runs.times,
            "regret": {name: regret.mean(axis=0) for name, regret in self.runs.regret.items()},
            "traffic": self.traffic,
        }

    def document(self) -> Document:
        best, *others = self.table
        size = f"{count(self.horizon, 'decision')}, {count(len(self.runs.seeds), 'seed')}"
        headline = f"{best.policy} loses least: {self.catalogue.rewards(best.regret)}"
        headline += f"; {others[0].policy} loses {number(others[0].regret)}." if others else "."
        regret = regret_section(self.runs, self.table, self.catalogue)
        parts = [regret, traffic_section(self.traffic), *self.catalogue.notes_section()]
        return Document(headline, parts, name=size, about=size, brief=(regret.parts[0],))


def regret_section(runs: Runs, table: Table, catalogue: Catalogue) -> Section:
    """What each policy loses, from the table of `tabulate`, and the curves."""
    worst = max(table["regret"]) or 1.0
    is_known = catalogue.means is not None
    columns: Columns = {
        "policy": lambda row: str(row.policy),
        "": lambda row: Bar(row.regret / worst),
        "regret": lambda row: number(row.regret),
        "95% interval": lambda row: words.interval(row.interval),
        f"5% of {'runs' if is_known else 'worlds'} above": lambda row: number(row.bad),
        "best in": lambda row: f"{percent(row.best)} of {'runs' if is_known else 'worlds'}",
    }
    grid = Grid.of(table, columns, label="Regret of each policy")
    n = len(runs.seeds)
    where = f"{count(n, 'run')} on the means given" if is_known else f"{count(n, 'world')} consistent with the data"
    start = "" if catalogue.prior is None else "; their prior is the mean and the spread of all arms"
    about = f"The reward lost by not knowing the best arm: the mean over {where}. Policies start without data{start}."
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
        How many worlds; by default 8 to 200, fewer if runs are long.
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
    workload = plan_simulation(catalogue, horizon=horizon, policies=policies, seeds=seeds, quick=quick)
    return Simulation(catalogue, workload.run(rng=rng, jobs=jobs, progress=progress))


def tabulate_traffic(catalogue: Catalogue, runs: Runs) -> Table:
    """Tabulate which share of each policy's plays went to each top cluster, the busiest first."""

    def share(policy: str, cluster: Name) -> float:
        return float(np.mean([plays.get(cluster, 0) for plays in runs.clusters[policy]]) / int(runs.times[-1]))

    rows = [
        (cluster, len(arms), *(share(policy, cluster) for policy in runs.policies))
        for cluster, arms in catalogue.tree.clusters.items()
    ]
    return Table(("cluster", "arms", *runs.policies), sorted(rows, key=lambda row: -sum(row[2:])))
