"""Simulate policies on a catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.catalogue import candidates
from banditree.catalogue.candidates import Candidate, PolicyNames
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.jsonable import jsonable
from banditree.errors.checks import whole
from banditree.policy.engines import engine
from banditree.report.tables import Table
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate as run

# Decisions simulated by default, in about half a minute; more if FEWEST seeds need them.
STEPS = {"native": 40_000_000, "readable": 600_000}
FEWEST, MOST = 8, 100  # bounds of the default number of seeds


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """The result of `simulate`: regret in ``runs``, and the traffic of each category."""

    catalogue: Catalogue
    horizon: int
    candidates: tuple[Candidate, ...]
    runs: Runs
    traffic: Table  # cluster, arms, and for each policy the share of its plays

    def to_dict(self) -> dict[str, Any]:
        """Convert to lists, numbers and strings for JSON; NaN becomes None."""
        found: dict[str, Any] = jsonable(
            {
                "horizon": self.horizon,
                "seeds": len(self.runs.seeds),
                "policies": self.runs.table(),
                "times": self.runs.times,
                "regret": {name: regret.mean(axis=0) for name, regret in self.runs.regret.items()},
                "traffic": self.traffic,
            }
        )
        return found

    def to_html(self, *, title: str = "catalogue") -> str:
        """Return a self-contained web page: no scripts, no external fonts, no network."""
        from banditree.catalogue.page import simulation_page

        return simulation_page(self, title=title)

    def __str__(self) -> str:
        return f"{self.runs.table()}\n\n{self.traffic}"

    __repr__ = __str__


def simulate(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: PolicyNames | None = None,
    seeds: int | None = None,
    rng: Any = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Simulation:
    """Simulate policies, starting without data, in worlds that are consistent with the catalogue's data.

    Given counts, each seed draws the true means from their posterior; given means, those are used. ``policies`` are
    names such as "TS" or "HTS:2", or classes; by default flat Thompson sampling, Thompson sampling on the tree at every
    depth, UCT and ATS. Rewards are 0 or 1, or normal if the catalogue has rewards that are not rates. By default there
    are 8 to 100 ``seeds``, fewer if runs are long.

    >>> from banditree.tree import Tree
    >>> catalogue = Catalogue(Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]}), means=[0.1, 0.2, 0.7, 0.6])
    >>> found = simulate(catalogue, horizon=500, policies=["TS", "TSC"], seeds=4)
    >>> found.traffic["cluster"]
    ['hats', 'shoes']
    """
    horizon = whole("horizon", horizon, 1, why="how many decisions")
    tree = tree_of(catalogue)
    chosen = candidates.for_tree(tree) if policies is None else candidates.named(policies, tree)
    runs = run(
        {candidate.label: candidate.factory_with(catalogue.prior) for candidate in chosen},
        catalogue.world(),
        horizon=horizon,
        seeds=default_seeds(horizon * candidates.cost(chosen)) if seeds is None else seeds,
        rng=rng,
        jobs=jobs,
        progress=progress,
    )
    return Simulation(catalogue, horizon, tuple(chosen), runs, traffic(catalogue, runs))


def default_seeds(steps: int, most: int = MOST) -> int:
    """Choose how many seeds of this many steps to run in about half a minute."""
    return int(np.clip(STEPS[engine()] // steps, FEWEST, most))


def traffic(catalogue: Catalogue, runs: Runs) -> Table:
    """Tabulate which share of each policy's plays went to each top cluster, the busiest first."""
    horizon = int(runs.times[-1])
    sizes = {name: len(arms) for name, arms in catalogue.tree.clusters.items()}
    rows = [
        (cluster, size, *(_share(runs, name, cluster, horizon) for name in runs.policies))
        for cluster, size in sizes.items()
    ]
    return Table(("cluster", "arms", *runs.policies), sorted(rows, key=lambda row: -sum(row[2:])))


def _share(runs: Runs, name: str, cluster: Any, horizon: int) -> float:
    return float(np.mean([plays.get(cluster, 0) for plays in runs.clusters[name]]) / horizon)
