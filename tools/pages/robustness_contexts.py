"""The worlds with contexts of docs/robustness-contexts.md, the numbers of LinATS beside its rivals, and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt
from banditree.problems import AnyProblem, Instance, linear, mixed_effects
from tools.pages.markdown import Table, figures, table
from tools.pages.robustness_numbers import Point, Ratio, geometric_mean, measure
from tools.pages.robustness_worlds import World

OURS, FLAT, TOLD = "LinATS", "LinTS", "told the widths"
FIRST_SEED = 7000  # the constants of LinATS were set with others
CONTEXTS, COVERED = 40, 0.9  # contexts in which intervals are looked at, and the share that they should cover
Z_90 = 1.6448536269514722

HEAD = """# How robust is LinATS?

Made by `make robustness` with the {engine} engine: `bt.LinATS` with its defaults on worlds with contexts, beside
LinTS, LinTSC, LinHTS where the tree is deeper, LinUCB, LinUCBC, and ATS, which does not look at contexts.
*{told}* is LinATS that is told how far arms and clusters differ, which nobody knows: it is shown, and not
counted among the others. All meet the same instances, with a constant among the features for those that need one. A
number is the cumulative regret, mean ± standard error over seeds. The best of the others is chosen by these very seeds.
The constants of LinATS were set on such worlds, with other seeds.
"""

WORLDS = """
## The worlds

- *Figures 2d, 2e and 2f* are the paper's: 400, 900 and 900 arms, no levels, slopes of arms around those of their
  cluster, and rewards U(0, 2m), whose noise grows with the mean m.
- *Mixed effects*: levels and slopes of clusters and of arms, as `bt.problems.mixed_effects` draws them; *three levels*
  has clusters in clusters.
- *No structure*: all clusters have the same coefficients; *shuffled*: the tree is that of other arms.
- *Misplaced*: the best arm is in the cluster with the lowest level; in the second world contexts matter little.
- *Clicks*: rewards 0 and 1 with a logistic truth around 4%.
- *Slopes shared*: arms differ in level alone; *sparse*: 3 of 20 features matter.
"""


@dataclass(frozen=True)
class Rearranged:
    """The instances of a problem with the coefficients of some arms exchanged."""

    problem: AnyProblem
    how: str  # "shuffled", or "misplaced": the best arm goes to the poorest cluster

    def instance(self, rng: Any) -> Instance:
        instance: Any = self.problem.instance(rng)
        theta = instance.theta.copy()
        if self.how == "shuffled":
            theta = np.random.default_rng(int(abs(theta[0, 0]) * 1e9)).permutation(theta)
        else:
            cluster = np.array([instance.tree.path(arm)[0] for arm in instance.arms])
            names = np.unique(cluster)
            poorest = names[np.argmin([theta[cluster == name, 0].mean() for name in names])]
            best, there = int(theta[:, 0].argmax()), int(np.flatnonzero(cluster == poorest)[0])
            theta[[best, there]] = theta[[there, best]]
        return Instance(instance.trees, instance.rewards, theta=theta, contexts=instance.contexts)


@dataclass(frozen=True)
class Sparse:
    """Mixed effects in which the slopes of all features but the first few are 0."""

    problem: AnyProblem
    relevant: int

    def instance(self, rng: Any) -> Instance:
        instance: Any = self.problem.instance(rng)
        theta = instance.theta.copy()
        theta[:, 1 + self.relevant :] = 0.0
        return Instance(instance.trees, instance.rewards, theta=theta, contexts=instance.contexts)


@dataclass(frozen=True)
class ContextWorld(World):
    """A world with contexts; ``widths`` are what `told` is told: (level, slopes) of arms, and of clusters upwards."""

    widths: tuple[tuple[float, float], ...] = ()
    clicks: bool = False

    def policies(self) -> dict[str, Callable[..., Any]]:
        policies: dict[str, Callable[..., Any]] = {OURS: bt.LinATS, FLAT: bt.LinTS, "LinTSC": bt.LinTSC}
        if self.depth > 1:
            policies["LinHTS"] = bt.LinHTS
        policies |= {"LinUCB": bt.LinUCB, "LinUCBC": bt.LinUCBC}
        policies["ATS"] = bt.ATS if self.clicks else partial(bt.ATS, prior=bt.Gaussian())
        if self.widths:
            policies[TOLD] = partial(told, widths=self.widths)
        return policies


def told(tree: bt.Tree, *, dim: int, widths: tuple[tuple[float, float], ...], rng: Any) -> bt.Policy:
    """Make a LinATS that knows how far nodes are from their parent, level by level, in units of the noise."""
    policy = bt.LinATS(tree, dim=dim, rng=rng)
    rows: Any = policy._state.rows
    for height in range(len(rows.level_width)):  # the engines read these arrays
        level, slope = widths[min(height, len(widths) - 1)]
        rows.level_width[height], rows.slope_width[height] = max(level, 1e-3), max(slope, 1e-3)
    policy._state.walk.reset()
    return policy


def context_worlds() -> list[ContextWorld]:
    """List the worlds, each with a constant among the features."""
    mixed = partial(mixed_effects, constant=True)
    spread, wide, close = ((0.5, 0.1), (1.0, 0.3)), ((0.2, 0.05), (0.5, 0.1)), ((0.5, 0.0), (0.5, 0.0))
    like = mixed(100, 10, 3)
    small = mixed(100, 10, 3, cluster_sd=(0.5, 0.1), arm_sd=(0.2, 0.05))
    little = mixed(100, 10, 3, cluster_sd=(0.5, 0.01), arm_sd=(0.2, 0.01))
    unlike = mixed(100, 10, 3, cluster_sd=(0.0, 0.0), arm_sd=(0.5, 0.3))
    deep = mixed(200, (5, 25), 3, cluster_sd=[(1.0, 0.3), (0.4, 0.1)], arm_sd=(0.2, 0.05))
    clicks = mixed(100, 10, 3, cluster_sd=(0.5, 0.3), arm_sd=(0.3, 0.1), reward="clicks", rate=0.04)
    flat = ((0.5, 0.3), (1e-3, 1e-3))
    return [
        ContextWorld("figure 2d", linear(400, 20, 0.5), 3000, 6),
        ContextWorld("figure 2e", linear(900, 30, 0.5), 3000, 6),
        ContextWorld("figure 2f", linear(900, 30, 0.1), 3000, 6),
        ContextWorld("mixed effects, 5 features", mixed(100, 10, 5), 3000, 10, widths=spread),
        ContextWorld("mixed effects, 2 features", mixed(100, 5, 2), 3000, 10, widths=spread),
        ContextWorld("no structure", unlike, 3000, 10, long_seeds=5, widths=flat),
        ContextWorld("shuffled", Rearranged(like, "shuffled"), 3000, 10),
        ContextWorld("misplaced", Rearranged(small, "misplaced"), 3000, 10, widths=wide),
        ContextWorld("misplaced, contexts matter little", Rearranged(little, "misplaced"), 3000, 10),
        ContextWorld("three levels", deep, 3000, 10, widths=((0.2, 0.05), (0.4, 0.1), (1.0, 0.3))),
        ContextWorld("clicks", clicks, 10_000, 10, clicks=True),
        ContextWorld(
            "slopes shared", mixed(100, 10, 3, cluster_sd=(0.5, 0.0), arm_sd=(0.5, 0.0)), 3000, 10, widths=close
        ),
        ContextWorld("sparse, 3 of 20 features", Sparse(mixed(100, 10, 20), 3), 3000, 10),
    ]


def quicker(worlds: Sequence[ContextWorld], horizon: int, seeds: int) -> list[ContextWorld]:
    """The same worlds with short runs."""
    return [replace(world, horizon=horizon, seeds=seeds, long_seeds=min(world.long_seeds, 1)) for world in worlds]


def measure_contexts(world: ContextWorld, *, jobs: int | None, progress: Callable[[float], None] | None) -> list[Point]:
    """Run all policies; all times but the first are kept, as nobody has learned much by then."""
    return measure(world, jobs=jobs, progress=progress)[1:]


def cover(world: ContextWorld, times: Sequence[int], seeds: int) -> list[float]:
    """Return the share of 90% intervals that hold the truth, at some times, over arms that were tried and contexts."""
    shares: list[list[float]] = [[] for _ in times]
    for seed in range(seeds):
        instance: Any = world.problem.instance(np.random.SeedSequence([FIRST_SEED, seed]))
        rng = np.random.default_rng([FIRST_SEED, 1, seed])
        policy = bt.LinATS(instance.tree, dim=instance.dim, rng=seed)
        for t in range(1, max(times) + 1):
            x = instance.context(rng)
            arm = policy.choose(context=x)
            policy.update(arm, instance.reward(arm, rng, x), x)
            if t in times:
                shares[list(times).index(t)].append(_covered(policy, instance, rng))
    return [float(np.mean(share)) for share in shares]


def _covered(policy: bt.Policy, instance: Any, rng: np.random.Generator) -> float:
    rows, leaves = policy._state.rows, policy.tree.shape.node_of
    tried = np.flatnonzero(rows.plays(leaves) > 0)
    held = []
    for _ in range(CONTEXTS):
        x: NDArray[np.float64] = instance.context(rng)
        low, high = rows.interval(leaves[tried], x[None])  # 95%
        middle, half = (low + high) / 2, (high - low) / 2 * Z_90 / 1.96
        truth = np.array([instance.expected(policy.tree.arms[arm], x) for arm in tried])
        held.append(np.mean(np.abs(truth - middle) <= half))
    return float(np.mean(held))


def context_page(worlds: Sequence[Sequence[Point]], coverage: dict[str, list[float]]) -> str:
    """Return the page: in short, the table, and what every policy had."""
    points = [point for of_world in worlds for point in of_world]
    parts = [HEAD.format(engine=bt.engine(), told=TOLD), "## In short\n", _summary(points)]
    parts += ["\n## Where it loses, and why\n", _losses(points), WORLDS]
    parts += ["## LinATS beside the others\n", _contest(points), "\n## Intervals\n", _coverage(coverage)]
    parts += ["\n## Every policy\n", _everyone(points)]
    return "\n".join(parts).rstrip() + "\n"


# Why another policy may be ahead, shown only where it is.
PAPER = (
    "Draws of LinATS are still sharp about clusters that were unlucky at first, and come back to them late; noise that "
    "grows with the mean, as it does here, adds to it."
)
LONG = (
    "The tree says nothing, and every arm has to be learned by itself; draws that are sharp early settle on arms that "
    "are not the best for some visitors, and notice late."
)
LITTLE = "Contexts say little here, and ATS, which does not look at them, has less to learn."
REASONS = {"figure": PAPER, "no structure": LONG, "misplaced, contexts": LITTLE, "slopes shared": LITTLE}


def _losses(points: Sequence[Point]) -> str:
    """List where LinATS is behind the best of the others by more than two standard errors."""
    behind = [point for point in points if (ratio := _ratio(point, _best(point))).value - 2 * ratio.se > 1]
    lines = [
        f"It is behind the best of the others by more than two standard errors on {len(behind)} of {len(points)} lines."
    ]
    for point in behind:
        why = next(
            (text for start, text in REASONS.items() if point.world.name.startswith(start)), "We do not know why."
        )
        said = f"{_ratio(point, _best(point))} times the regret of {_best(point)}"
        lines.append(f"- *{point.world.name}*, T = {point.time:,}: {said}. {why}")
    return "\n".join([lines[0], "", *lines[1:]])


def _best(point: Point) -> str:
    return min((name for name in point.regret if name not in (OURS, TOLD)), key=lambda name: point.regret[name].mean())


def _ratio(point: Point, other: str) -> Ratio:
    return Ratio.of(point.regret[OURS], point.regret[other])


def _summary(points: Sequence[Point]) -> str:
    flat, best = ([_ratio(p, name(p)) for p in points] for name in (lambda p: FLAT, _best))
    told = [_ratio(p, TOLD).value for p in points if TOLD in p.regret]
    long = [_ratio(p, FLAT).value for p in points if p.world.name == "no structure" and p.time > p.world.horizon]
    rows = [
        ("geometric mean of the ratios to LinTS", geometric_mean([r.value for r in flat]), 0.45),
        ("worst ratio to LinTS", max(r.value for r in flat), 0.9),
        ("geometric mean of the ratios to the best of the others", geometric_mean([r.value for r in best]), 0.85),
        ("worst ratio to the best of the others", max(r.value for r in best), 1.1),
        ("ratio to LinTS without structure, ten times the horizon", max(long, default=float("nan")), 1.0),
        (
            "geometric mean of the ratios to LinATS told the widths",
            geometric_mean(told) if told else float("nan"),
            None,
        ),
    ]
    return table(
        Table(
            ("", "measured", "aim"),
            [
                (what, f"{value:.2f}{' **missed**' if aim and value > aim else ''}", f"at most {aim}" if aim else "")
                for what, value, aim in rows
            ],
        )
    )


def _mean(point: Point, policy: str) -> str:
    over = point.over_seeds(policy)
    return f"{figures(over.mean)} ± {figures(over.se, 2)}"


def _contest(points: Sequence[Point]) -> str:
    rows = [
        (
            point.world.name,
            f"{point.time:,}",
            str(len(point.regret[OURS])),
            _mean(point, OURS),
            f"{_best(point)} {_mean(point, _best(point))}",
            str(_ratio(point, _best(point))),
            _mean(point, FLAT),
            str(_ratio(point, FLAT)),
            str(_ratio(point, TOLD)) if TOLD in point.regret else "",
        )
        for point in points
    ]
    columns = ("world", "T", "seeds", OURS, "best of the others", "ratio", FLAT, "ratio to LinTS", "ratio to told")
    return table(Table(columns, rows, left=1))


def _coverage(coverage: dict[str, list[float]]) -> str:
    lines = (
        "The share of 90% intervals of arms that were tried, for visitors at random, that hold the truth (aim: 85%).\n"
    )
    rows = [(name, *(f"{share:.0%}" for share in shares)) for name, shares in coverage.items()]
    return lines + "\n" + table(Table(("world", "after 100 decisions", "at the end"), rows))


def _everyone(points: Sequence[Point]) -> str:
    policies = list(dict.fromkeys(name for point in points for name in point.regret))
    rows = [
        (
            f"{point.world.name}, T = {point.time:,}",
            *(_mean(point, policy) if policy in point.regret else "" for policy in policies),
        )
        for point in points
    ]
    return table(Table(("world", *policies), rows))
