"""Policies on a catalogue as the world they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from banditree.catalogue import candidates, playing
from banditree.catalogue.candidates import Candidate, Named
from banditree.catalogue.items import Catalogue, tree_of
from banditree.catalogue.plain import plain
from banditree.errors.checks import whole
from banditree.output.tables import Table
from banditree.policy.engines import engine
from banditree.simulation.runs import Runs
from banditree.simulation.simulator import simulate as run

STEPS = {"native": 40_000_000, "readable": 600_000}  # run by default if enough for FEWEST seeds: half a minute or so
FEWEST, MOST = 8, 100  # seeds by default


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """What `simulate` finds: regret in ``runs``, and where the plays went."""

    catalogue: Catalogue
    horizon: int
    candidates: tuple[Candidate, ...]
    runs: Runs
    traffic: Table  # cluster, arms, and for each policy the share of its plays

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings; None for what is not a number."""
        found: dict[str, Any] = plain(
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
        """A web page that needs nothing else: no scripts, no fonts, no network."""
        from banditree.catalogue.page import simulation_page

        return simulation_page(self, title=title)

    def __str__(self) -> str:
        return f"{self.runs.table()}\n\n{self.traffic}"

    __repr__ = __str__


def simulate(
    catalogue: Catalogue,
    *,
    horizon: int,
    policies: Named | None = None,
    seeds: int | None = None,
    rng: Any = 0,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Simulation:
    """Run policies, from the start and knowing nothing, in worlds that the catalogue's data allow.

    Given counts, each seed draws the true means from their posterior; given means, those are the world. ``policies``
    are names such as "TS" or "HTS:2", or classes, by default flat Thompson sampling, the same down the tree at every
    depth, and UCT. Rewards are 0 or 1, or normal where the catalogue has rewards that are not rates. ``seeds`` is by
    default 8 to 100, fewer where a run is long.

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
        {candidate.label: playing.factory(candidate, catalogue) for candidate in chosen},
        catalogue.world(),
        horizon=horizon,
        seeds=default_seeds(horizon * len(chosen)) if seeds is None else seeds,
        rng=rng,
        jobs=jobs,
        progress=progress,
    )
    return Simulation(catalogue, horizon, tuple(chosen), runs, traffic(catalogue, runs))


def default_seeds(steps: int, most: int = MOST) -> int:
    """As many seeds of this many steps as are done soon."""
    return int(np.clip(STEPS[engine()] // steps, FEWEST, most))


def traffic(catalogue: Catalogue, runs: Runs) -> Table:
    """The share of each policy's plays that went to each top cluster, the busiest first."""
    horizon = int(runs.times[-1])
    sizes = {name: len(arms) for name, arms in catalogue.tree.clusters.items()}
    rows = [
        (cluster, size, *(_share(runs, name, cluster, horizon) for name in runs.policies))
        for cluster, size in sizes.items()
    ]
    return Table(("cluster", "arms", *runs.policies), sorted(rows, key=lambda row: -sum(row[2:])))


def _share(runs: Runs, name: str, cluster: Any, horizon: int) -> float:
    return float(np.mean([plays.get(cluster, 0) for plays in runs.clusters[name]]) / horizon)
