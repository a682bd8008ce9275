"""docs/advice-table.md: how often the advice is right, on catalogues whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import banditree as bt
from banditree.catalogue.advice import advise
from banditree.catalogue.items import Catalogue
from banditree.policy import engines
from banditree.problems import (
    Problem,
    bernoulli,
    bumps,
    hierarchical_dominance,
    sine_kmeans,
    strong_dominance,
    surface,
    unstructured,
)
from banditree.simulation.simulator import simulate
from tools.pages import evidence
from tools.pages.evidence import Page, Part
from tools.pages.journal import Line
from tools.pages.markdown import Table, table

PLAYS = 50, 500  # per arm, drawn uniformly


@dataclass(frozen=True)
class World:
    """A problem whose instances are turned into catalogues."""

    name: str
    problem: Problem
    horizon: int
    tree: str | None = None  # which of the instance's trees to use; None for the first
    depth: int | None = None  # how many of its levels are category columns; None for all


def worlds() -> list[World]:
    """List the paper's kinds of instances. SIZES says which are smaller than in the paper, and what is left out."""
    return [
        World("strong dominance", strong_dominance(), 3000),
        World("strong dominance, wide and near", strong_dominance(width=0.3, distance=0.05), 3000),
        World("hierarchical dominance, 4 levels", hierarchical_dominance(128), 3000, depth=4),
        World("k-means on a sine", sine_kmeans(100, 10), 3000),
        World("k-means on a sine, 2 levels", sine_kmeans(400, 7, depth=2), 3000),
        World("bumps, k-means", bumps(), 10_000, "kmeans"),
        World("bumps, 3 levels of Ward", bumps(), 10_000, "ward", 3),
        World("surface, k-means", surface(300, 20), 5000, "kmeans"),
        World("surface, 3 levels of Ward", surface(300, 20), 5000, "ward", 3),
        World("no structure", unstructured(50, 10), 10_000),
    ]


@dataclass(frozen=True)
class Draw:
    """The outcome for one catalogue: what was advised, and what was best."""

    advised: str
    best: str
    verdict: str
    ratio: float  # true regret of the advised policy over that of the best candidate
    z: float  # their difference in standard errors

    @property
    def right(self) -> bool:
        """Whether the advised policy is within 10% of the best candidate, or within noise of it."""
        return self.ratio <= 1.1 or self.z < 2


def draw(world: World, seed: int, *, seeds: int | None, truth_seeds: int, jobs: int | None) -> Draw:
    """Draw an instance and counts, ask for advice, then run every candidate on the truth."""
    rng = np.random.default_rng([seed, 6])
    instance = world.problem.instance(rng)
    tree = instance.tree if world.tree is None else instance.trees[world.tree]
    tree = tree if world.depth is None else tree.cut(world.depth)
    means = np.array([instance.expected(arm) for arm in tree.arms])  # (arms,)
    plays = rng.integers(PLAYS[0], PLAYS[1] + 1, tree.n_arms)
    catalogue = Catalogue(tree, plays=plays, successes=rng.binomial(plays, means))
    advice = advise(catalogue, horizon=world.horizon, seeds=seeds, rng=seed, jobs=jobs, progress=False)
    policies = {candidate.label: candidate.factory(None) for candidate in advice.candidates}
    truth = simulate(
        policies, bernoulli(tree, means), horizon=world.horizon, seeds=truth_seeds, rng=seed, jobs=jobs, progress=False
    )
    costs = {row.policy: row.mean for row in truth.table()}
    best = min(costs, key=costs.__getitem__)
    z = 0.0 if best == advice.name else truth.compare(advice.name, best).z
    return Draw(advice.name, best, advice.verdict, costs[advice.name] / costs[best], z)


HEAD = """# Is the advice right?

Each line is a kind of world whose true means are known: the paper's kinds of instances, some of them smaller. From each
we draw {draws} catalogues: an instance, and {few} to {many} past plays of every arm. `bt.advise` sees only the counts.
Then every candidate is run on the true means. The advice is right when the advised policy's true regret is within 10%
of the best candidate's, or within two standard errors of it.

{short}
"""
SIZES = """
Sizes: strong dominance has 100 arms in 10 clusters; hierarchical dominance 128 arms, and 4 levels of its binary tree;
the sine 100 arms in 10 clusters, and 400 arms in 7 clusters of 7 (the paper: 5,000 arms on 3 levels); the bumps 50 arms
(k-means: 5 clusters) and no structure 50 arms in 10 clusters, both for 10,000 decisions instead of 25,000; the surface
300 arms instead of 500 (k-means: 20 clusters), for 5,000 decisions instead of 20,000.

What this does not show: Ward's binary trees are cut at 3 levels, like category columns. The full trees, on which
walking down to the arms does badly on the surface in the paper, are not among these worlds, so this says nothing about
trees much deeper than 4 levels.
"""
COLUMNS = ("advised", "best", "verdict", "ratio", "z")
DRAWS, TRUTH_SEEDS = 8, 100  # catalogues of each world, and runs on its true means


def text(lines: list[Line], folder: Path) -> str:
    """The page: a line per world, and a picture of all ratios."""
    found: dict[str, list[Draw]] = {}
    for line in lines:
        drawn = Draw(line["advised"], line["best"], line["verdict"], float(line["ratio"]), float(line["z"]))
        found.setdefault(line["part"].rpartition(", ")[0], []).append(drawn)
    known = {world.name: world for world in worlds()}
    rows = [row(known[name], draws) for name, draws in found.items()]
    every = [each for draws in found.values() for each in draws]
    right = sum(each.right for each in every)
    short = f"The advice is right on **{right} of {len(every)}** catalogues."
    if any(too_often_wrong(draws) for draws in found.values()):
        wrong = [name for name, draws in found.items() if too_often_wrong(draws)]
        short += f" Right less than 9 times in 10: {', '.join(wrong)}."
    if every:
        short += draw_ratios(found, folder / "images" / "advice-table.png")
    header = ("world", "horizon", "advised (times)", "cannot tell", "regret over the best's, mean", "worst", "right")
    head = HEAD.format(draws=DRAWS, few=PLAYS[0], many=PLAYS[1], short=short)
    return f"{head}\n{table(Table(header, rows))}\n{SIZES}"


def too_often_wrong(draws: Sequence[Draw]) -> bool:
    """Whether the advice is right less than 9 times in 10."""
    return sum(each.right for each in draws) < 0.9 * len(draws)


def row(world: World, draws: Sequence[Draw]) -> tuple[str, ...]:
    """Write one line of the table."""
    advised = [each.advised for each in draws]
    common = sorted(set(advised), key=lambda name: -advised.count(name))
    return (
        world.name,
        f"{world.horizon:,}",
        ", ".join(f"{name} ({advised.count(name)})" for name in common),
        str(sum(each.verdict == "cannot tell" for each in draws)),
        f"{np.mean([each.ratio for each in draws]):.2f}",
        f"{max(each.ratio for each in draws):.2f}",
        f"{sum(each.right for each in draws)} of {len(draws)}",
    )


def draw_ratios(found: Mapping[str, Sequence[Draw]], path: Path) -> str:
    """Draw one dot per catalogue: the regret of the advised policy over that of the best candidate; return the link."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 0.8 + 0.26 * len(found)), layout="constrained")
    axes = figure.subplots()
    for y, draws in enumerate(list(found.values())[::-1]):
        colours = ["#0072B2" if each.right else "#D55E00" for each in draws]
        axes.scatter([each.ratio for each in draws], [y] * len(draws), s=26, c=colours, alpha=0.6, linewidths=0)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_yticks(range(len(found)), list(found)[::-1])
    axes.set_xlabel("true regret of the advised policy over that of the best candidate")
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return f"\n\n![One dot per catalogue: the regret of the advised policy over the best](images/{path.name})"


def parts() -> list[Part]:
    """Every catalogue is a part. What it depends on shows in a short advice on it, and in the law of the candidates.

    The advice is without shortcuts, as in `robustness.parts`.
    """
    law, digests = evidence.law(("TS", "TSC", "HTS", "ATS")), {}
    for world in worlds():
        short = World(world.name, world.problem, 60, world.tree, world.depth)
        with engines.using(bt.engine(), shortcuts=False):
            tried = draw(short, 0, seeds=4, truth_seeds=2, jobs=1)
        size = (world.horizon, PLAYS, TRUTH_SEEDS)
        digests[world.name] = evidence.digest(law, world.name, *size, tried.advised, f"{tried.ratio:.4g}")
    return [  # catalogue by catalogue, so that a run that is cut short has some of every world
        Part(f"{world.name}, {seed}", digests[world.name], partial(measure, world, seed))
        for seed in range(DRAWS)
        for world in worlds()
    ]


def measure(world: World, seed: int) -> list[Line]:
    found = draw(world, seed, seeds=None, truth_seeds=TRUTH_SEEDS, jobs=-1)
    numbers = {"ratio": f"{found.ratio:.5g}", "z": f"{found.z:.4g}"}
    return [{"advised": found.advised, "best": found.best, "verdict": found.verdict, **numbers}]


PAGE = Page("advice-table", COLUMNS, parts, text)
