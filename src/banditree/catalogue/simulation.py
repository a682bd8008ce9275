"""Simulate policies on a catalogue, and plan how much of it to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from banditree.catalogue import candidates
from banditree.catalogue.candidates import Candidate, PolicyNames
from banditree.catalogue.items import Catalogue, tree_of
from banditree.errors.checks import whole
from banditree.policy import Policy
from banditree.problems import Problem
from banditree.report import words
from banditree.report.document import Bar, Bullets, Document, Grid, Part, Section
from banditree.report.result import Result
from banditree.report.tables import Table
from banditree.report.words import count, duration, number, percent
from banditree.simulation.progress import Progress
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import MAX_STEPS
from banditree.simulation.simulator import simulate as run
from banditree.simulation.workers import n_workers
from banditree.stream import Seed

BUDGET_SECONDS = 60.0  # of one core, for the default number of seeds; more if MIN_SEEDS need it
QUICK_SHARE = 0.1  # of that budget
MIN_SEEDS, MIN_QUICK_SEEDS, MAX_SEEDS = 8, 4, 100  # bounds of the default number of seeds
PILOT_STEPS = 200  # simulated to estimate how long the rest takes
PICTURE_INCHES = 4.8, 4.4  # of the regret over time
LOST = "Reward lost by not knowing the best arm"


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
        rows = [
            (row.policy, Bar(row.mean / worst), number(row.mean), words.interval(row.interval), number(row.sd))
            for row in table
        ]
        regret = Grid(
            ("policy", "", "regret", "95% interval", "standard deviation"), rows, label="Regret of each policy"
        )
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
    columns = ["policy", "", "regret", "95% interval", "in a bad run", "lost per decision at the end"]
    columns += ["best in"] if "best" in table.columns else []
    worst = max(table["regret"]) or 1.0
    rows = [
        (
            row.policy,
            Bar(row.regret / worst),
            *(number(row.regret), words.interval(row.interval), number(row.bad_run), number(row.loss)),
            *([f"{percent(row.best)} of worlds"] if "best" in row else []),
        )
        for row in table
    ]
    grid = Grid(columns, rows, label="Regret of each policy")
    return Section(
        f"Regret after {count(int(runs.times[-1]), 'decision')}", [grid, about, runs.picture(*PICTURE_INCHES)]
    )


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
    chosen = candidates.for_tree(tree) if policies is None else candidates.parse_candidates(policies, tree)
    return plan_candidates(catalogue, chosen, horizon=horizon, seeds=seeds, quick=quick)


def plan_candidates(
    catalogue: Catalogue, chosen: Sequence[Candidate], *, horizon: int, seeds: int | None, quick: bool, runs: int = 1
) -> Plan:
    """Plan to simulate these candidates on a catalogue."""
    policies = {candidate.label: candidate.factory_with(catalogue.prior) for candidate in chosen}
    if seeds is None:
        seeds = default_seeds(runs * horizon * candidates.decision_seconds(chosen, catalogue.tree.n_arms), quick=quick)
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
