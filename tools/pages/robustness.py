"""docs/robustness.md and docs/robustness-contexts.md: ATS and LinATS beside other policies on worlds of many kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import banditree as bt
from banditree.base.arrays import Floats
from banditree.policy import engines
from banditree.simulation.simulator import simulate
from banditree.simulation.statistics import over_seeds
from tools.pages import evidence
from tools.pages.evidence import Page, Part
from tools.pages.journal import Line
from tools.pages.markdown import Table, figures, table
from tools.pages.worlds import (
    NO_TREE,
    REASONS,
    TOLD,
    UNKNOWN,
    ContextWorld,
    World,
    context_worlds,
    hostile_worlds,
    long_worlds,
    normal_worlds,
    paper_worlds,
    random_worlds,
    shops,
)

COLUMNS = ("world", "policy", "time", "seeds", "mean", "se", "median", "worst", "covered", "regrets")
WORST = 0.95  # quantile over seeds: one run in twenty has more regret
CONTEXTS, COVER_SEEDS, Z_90 = 40, 4, 1.6448536269514722  # contexts and runs in which 90% intervals are looked at
LONG = 100_000  # decisions, beyond which lines have fewer seeds
SHORT = 40  # rounds whose regret is part of a world's digest
GROUPS: dict[str, Callable[[], Sequence[World]]] = {
    "the paper's": paper_worlds,
    "made against ATS": hostile_worlds,
    "normal rewards": normal_worlds,
    "shops": shops,
    "at random": random_worlds,
}


# ---------------------------------------------------------------- measuring


def parts(worlds: Sequence[World]) -> list[Part]:
    """Every policy in a world is a part. What it depends on shows in the regret of a short run, and in its law.

    The run has no shortcuts, which draw other numbers from the same distributions.
    """
    found = []
    for world in worlds:
        with engines.using(bt.engine(), shortcuts=False):
            runs = simulate(world.policies(), world.problem, horizon=SHORT, seeds=1, checkpoints=2, jobs=1)
        size = (world.name, world.horizon, world.seeds, world.long_seeds)
        for name, regret in runs.regret.items():
            of = evidence.digest(evidence.law((name.split()[0],)), name, *size, evidence.numbers([regret]))
            found.append(Part(f"{world.name}: {name}", of, partial(measure, world, name)))
    return found


def measure(world: World, name: str, jobs: int | None = -1) -> list[Line]:
    """Run a policy, and look at a tenth of the horizon, the horizon, and ten times it where some seeds go on."""
    horizon = world.horizon
    times = [horizon // 10, horizon]
    if horizon >= 1_000_000:
        times = [horizon // 1000, horizon // 100, *times]
    ends = {10 * horizon: range(world.long_seeds), horizon: range(world.long_seeds, world.seeds)}
    policies = {name: world.policies()[name]}
    runs = [
        simulate(policies, world.problem, horizon=end, seeds=seeds, checkpoints=times, jobs=jobs, progress=False)
        for end, seeds in ends.items()
        if seeds
    ]
    covered = cover(world, times) if isinstance(world, ContextWorld) and name == world.ours else {}
    lines: list[Line] = []
    for place, time in enumerate([*times, 10 * horizon]):
        regrets = [run.regret[name][:, place] for run in runs if place < len(run.times)]
        if regrets:
            lines.append(line(world, name, time, np.concatenate(regrets), covered.get(time)))
    return lines


def line(world: World, policy: str, time: int, regrets: Floats, covered: float | None = None) -> dict[str, str]:
    """A policy's regret at a time: of every seed, and what sums it up."""
    summary = over_seeds(regrets)
    numbers = (summary.mean, summary.se, np.median(regrets), np.quantile(regrets, WORST))
    share = "" if covered is None else f"{covered:.3f}"
    every = " ".join(f"{value:.5g}" for value in regrets)
    names = (world.name, policy, str(time), str(len(regrets)))
    values = (*names, *(f"{value:.5g}" for value in numbers), share, every)
    return dict(zip(COLUMNS, values, strict=True))


def ratio_of(a: Floats, b: Floats) -> tuple[float, float]:
    """The mean of a over that of b, paired over seeds: to first order its error is that of a - ratio b, over mean b.

    >>> ratio_of(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    (0.5, 0.0)
    """
    value = float(a.mean() / b.mean())
    return value, over_seeds(a - value * b).se / float(b.mean())


def cover(world: World, times: Sequence[int]) -> dict[int, float]:
    """The share of 90% intervals of LinATS that hold the truth, at some times, over arms tried and random contexts."""
    shares: dict[int, list[float]] = {time: [] for time in times}
    for seed in range(COVER_SEEDS):
        instance: Any = world.problem.instance(np.random.SeedSequence([7000, seed]))
        rng = np.random.default_rng([7000, 1, seed])
        policy = bt.LinATS(instance.tree, dim=instance.dim, rng=seed)
        for t in range(1, max(times) + 1):
            x = instance.context(rng)
            arm = policy.choose(context=x)
            policy.update(arm, instance.reward(arm, rng, x), x)
            if t in shares:
                shares[t].append(_covered(policy, instance, rng))
    return {time: float(np.mean(share)) for time, share in shares.items()}


def _covered(policy: bt.Policy, instance: Any, rng: np.random.Generator) -> float:
    held = []
    for _ in range(CONTEXTS):
        x: Floats = instance.context(rng)
        for row in policy.table(context=x):
            if row.path and row.path[-1] in policy.tree.arms and row.plays:
                low, high = row.interval  # 95%
                middle, half = (low + high) / 2, (high - low) / 2 * Z_90 / 1.96
                held.append(abs(instance.expected(row.path[-1], x) - middle) <= half)
    return float(np.mean(held))


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Point:
    """The regret of all policies on a world at one time."""

    world: World
    time: int
    regret: Mapping[str, Floats]  # {policy: (seeds,)}
    covered: str = ""  # share of the 90% intervals of ours that hold the truth

    @property
    def others(self) -> list[str]:
        """The policies that one could choose in place of ours: not ours without its tree, nor those told the world."""
        return [n for n in self.regret if n != self.world.ours and NO_TREE not in n and TOLD not in n]

    @property
    def best(self) -> str:
        return min(self.others, key=lambda name: float(self.regret[name].mean()))

    def ratio(self, policy: str) -> float:
        return ratio_of(self.regret[self.world.ours], self.regret[policy])[0]

    def reach(self, policy: str) -> float:
        """Two standard errors of the paired ratio."""
        return 2 * ratio_of(self.regret[self.world.ours], self.regret[policy])[1]

    def tail(self, policy: str, quantile: float) -> float:
        """The ratio of two quantiles over seeds: the median regret, or what one run in twenty exceeds."""
        ours, theirs = (np.quantile(self.regret[name], quantile) for name in (self.world.ours, policy))
        return float(ours / max(theirs, 1e-9))

    def is_clearly(self, policy: str) -> bool:
        """Whether ours has clearly more regret."""
        return self.ratio(policy) - self.reach(policy) > 1.0


def points_of(worlds: Sequence[World], lines: Sequence[Line]) -> list[list[Point]]:
    """For each world in which ours and others were measured its points in time."""
    found: dict[str, dict[int, dict[str, Line]]] = {}
    for each in lines:
        found.setdefault(each["world"], {}).setdefault(int(each["time"]), {})[each["policy"]] = each
    worlds = [
        w for w in worlds if w.name in found and all({w.ours, w.flat} <= of.keys() for of in found[w.name].values())
    ]
    return [
        [
            Point(world, time, {name: _regrets(of[name]) for name in of}, of[world.ours]["covered"])
            for time, of in found[world.name].items()
        ]
        for world in worlds
    ]


def _regrets(line: Line) -> Floats:
    return np.array(line["regrets"].split(), np.float64)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean on the log scale.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return float(np.exp(np.mean(np.log(values))))


# ---------------------------------------------------------------- the page of ATS


HEAD = """# How robust is ATS?

`bt.ATS` with its defaults beside the policies that one would have to choose from: TS, TSC, HTS at every depth of the
tree, HierTS (which learns its variances), and ATS itself *without its tree*. All meet the same instances; a ratio is
the mean cumulative regret of ATS over that of another policy, paired over seeds, so that below 1 ATS is better. The
*best of the others* is the one with the least mean regret on these very seeds at this very time: nobody can choose so
well.
"""
WORLDS = """
## The worlds

*The paper's* kinds of instances and the shop of `bt.problems.open_bandit`. *Made against ATS*: one arm of 0.8 in the
poorest of ten clusters; a small tree that misleads, `{a: [.1, .5], b: [.45]}`; two arms and no tree; 276 amounts
whose noise is 3.4 times their spread. *Normal rewards*: differences from a tenth of the noise to ten times it. *Shops*:
300 to 5,000 items at about 0.3% to 5%. *At random*: 10 to 2,000 arms on trees of 1 to 6 levels, each of which may mean
nothing. The numbers of ATS were chosen on the first kind, on other shops and on other random worlds, with other seeds.
"""


def trees_page(lines: list[Line], folder: Path) -> str:
    groups = {name: points_of(make(), lines) for name, make in GROUPS.items()}
    groups = {name: worlds for name, worlds in groups.items() if worlds}
    if not groups:
        return HEAD
    picture = draw(groups, folder / "images" / "robustness.png", "ATS", "TS")
    parts = [HEAD, "## In short\n", summary(groups, (f"ATS {NO_TREE}", "TS", "HierTS")), picture]
    parts += ["## Worlds made against it\n", hostile(groups.get("made against ATS", []))]
    parts += ["## Where it loses, and why\n", losses(groups), WORLDS, f"{seeds_of(lines)}\n"]
    return "\n".join([*parts, "## Does regret grow like log T?\n", growth(points_of(long_worlds(), lines))])


def hostile(worlds: Sequence[Sequence[Point]]) -> str:
    """One line for each world, won or lost: its mean regret over that of others, and the tail over that of TS."""
    rows = []
    for world in worlds:
        flat = world[0].world.flat
        ratios = zip(
            *((p.ratio(flat), p.ratio(p.best), p.tail(flat, 0.5), p.tail(flat, WORST)) for p in world), strict=True
        )
        cells = (" / ".join(f"{ratio:.2f}" for ratio in some) for some in ratios)
        rows.append((world[0].world.name, " / ".join(f"{point.time:,}" for point in world), *cells))
    header = ("world", "decisions", "over TS", "over the best", "median over that of TS", "one run in twenty exceeds")
    return f"{table(Table(header, rows, left=2))}\n"


def seeds_of(lines: Sequence[Line]) -> str:
    """Say how many seeds the lines have."""
    counts: dict[bool, list[int]] = {False: [], True: []}
    for each in lines:
        counts[int(each["time"]) > LONG].append(int(each["seeds"]))
    said = [f"{min(n)}" if min(n) == max(n) else f"{min(n):,} to {max(n):,}" for n in counts.values() if n]
    longer = f", and {said[1]} beyond {LONG:,} decisions" if len(said) > 1 else ""
    return f"Lines have {said[0]} seeds{longer}."


def summary(groups: Mapping[str, Sequence[Sequence[Point]]], rivals: Sequence[str]) -> str:
    """Ratios over all worlds and times: to some rivals, and to the best of the others."""
    columns = [[point for world in worlds for point in world] for worlds in groups.values()]
    rows: list[tuple[str, ...]] = []
    for rival in (*rivals, "best"):
        name = "the best of the others" if rival == "best" else rival
        ratios = [[p.ratio(_who(p, rival)) for p in points if _who(p, rival) in p.regret] for points in columns]
        if not any(ratios):
            continue
        rows.append((f"regret over that of {name}: geometric mean", *(_cell(geometric_mean, some) for some in ratios)))
        rows.append(("... the largest", *(_cell(max, some) for some in ratios)))
        clear = [sum(p.is_clearly(_who(p, rival)) for p in points if _who(p, rival) in p.regret) for points in columns]
        share = [f"{n} of {len(some)}" for n, some in zip(clear, ratios, strict=True)]
        rows.append(("... clearly above 1, by two standard errors", *share))
        if rival == "best":
            errors = [[p.reach(p.best) for p in points] for points in columns]
            rows.append(
                ("... from what on half of the lines would show it", *(f"{1 + np.median(e):.2f}" for e in errors))
            )
    flat = rivals[-2] if len(rivals) > 1 else rivals[0]
    for quantile, words in ((0.5, "median regret"), (WORST, "regret that one run in twenty exceeds")):
        ratios = [[p.tail(flat, quantile) for p in points if np.median(p.regret[flat]) > 0] for points in columns]
        rows.append(
            (f"{words}, over that of {flat}: geometric mean", *(_cell(geometric_mean, some) for some in ratios))
        )
    sizes = [f"{name} ({len(worlds)})" for name, worlds in groups.items()]
    return table(Table(("", *sizes), rows))


def _who(point: Point, rival: str) -> str:
    return point.best if rival == "best" else rival


def _cell(of: Callable[[Sequence[float]], float], values: Sequence[float]) -> str:
    return f"{of([max(value, 1e-6) for value in values]):.2f}" if values else ""


def losses(groups: Mapping[str, Sequence[Sequence[Point]]], most: int = 12) -> str:
    """One line for each world in which ours is clearly behind, its times side by side; the worst of them."""
    behind = [world for worlds in groups.values() for world in worlds if any(p.is_clearly(p.best) for p in world)]
    behind.sort(key=lambda world: -max(point.ratio(point.best) for point in world))
    n_worlds = sum(map(len, groups.values()))
    text = f"On {len(behind)} of {n_worlds} worlds it is clearly behind the best of the others at some time."
    if not behind:
        return f"{text}\n"
    if len(behind) > most:
        text += f" The {most} where it is furthest behind, the others being in the file of all lines:"
    rows = []
    for world in behind[:most]:
        times = " / ".join(f"{point.time:,}" for point in world)
        best = " / ".join(f"{p.ratio(p.best):.2f}" for p in world)
        flat = " / ".join(f"{p.ratio(p.world.flat):.2f}" for p in world)
        names = " / ".join(dict.fromkeys(point.best for point in world))
        rows.append((world[0].world.name, times, best, names, flat, reason(world)))
    flat_name = behind[0][0].world.flat
    header = ("world", "decisions", "over the best", "which", f"over {flat_name}", "why")
    return f"{text}\n\n{table(Table(header, rows, left=6))}\n"


def reason(world: Sequence[Point]) -> str:
    """Say why ours is behind, as far as it is known."""
    worst = max(world, key=lambda point: point.ratio(point.best))
    about = worst.world
    if isinstance(about, ContextWorld):
        return next((why for start, why in REASONS.items() if about.name.startswith(start)), UNKNOWN)
    if worst.best == f"TSC on {about.rival}":
        return "the rival has a tree that suits this world better"
    if worst.best == about.flat:
        return about.why or UNKNOWN
    if worst.best.startswith("HierTS"):
        return about.why or "HierTS has no strays to look for"
    return (
        f"{worst.best} takes the tree for granted" if worst.best in ("TSC", "HTS") or "HTS " in worst.best else UNKNOWN
    )


def growth(worlds: Sequence[Sequence[Point]]) -> str:
    """What every factor of ten adds to the regret of long runs."""
    if not worlds:
        return ""
    rows = []
    for world in worlds:
        for policy in world[0].regret:
            steps = [
                over_seeds(b.regret[policy] - a.regret[policy][: len(b.regret[policy])]) for a, b in pairwise(world)
            ]
            added = [f"{figures(step.mean)} ± {figures(step.se, 2)}" for step in steps]
            rows.append((world[0].world.name.removesuffix(", long"), policy, *added))
    header = [f"{a.time:,} to {b.time:,}" for a, b in pairwise(worlds[0])]
    text = (
        "A policy that stops learning adds ten times as much regret with every factor of ten in time, one that learns "
        "about the same."
    )
    return f"{text}\n\n{table(Table(('world', 'policy', *header), rows, left=2))}\n"


# ---------------------------------------------------------------- the page of LinATS


LINEAR_HEAD = """# How robust is LinATS?

`bt.LinATS` with its defaults on worlds with contexts, beside LinTS, LinTSC, LinHTS, LinUCB, LinUCBC, ATS, which does
not look at contexts, and LinATS *without its tree*. All meet the same instances, with a constant among the features. A
ratio is the mean cumulative regret of LinATS over that of another policy, paired over seeds. The *best of the others*
is chosen by these very seeds. The numbers of LinATS were chosen on such worlds, with other seeds.
"""
LINEAR_WORLDS = """
## The worlds

*Figures 2d, 2e and 2f* are the paper's: 400, 900 and 900 arms, and noise that grows with the mean. *Mixed effects* are
as `bt.problems.mixed_effects` draws them. *No structure*: all clusters have the same coefficients; *shuffled*: the tree
is that of other arms; *misplaced*: the best arm is in the cluster with the lowest level. *Clicks* have a logistic
truth around 4%. *Slopes shared*: arms differ in level alone; *sparse*: 3 of 20 features matter.
"""


def contexts_page(lines: list[Line], folder: Path) -> str:
    worlds = points_of(context_worlds(), lines)
    if not worlds:
        return LINEAR_HEAD
    groups = {"worlds with contexts": worlds}
    picture = draw(groups, folder / "images" / "robustness-contexts.png", "LinATS", "LinTS")
    rivals = (f"LinATS {NO_TREE}", "LinTS", "ATS")
    rows = [
        (
            world[0].world.name,
            " / ".join(f"{point.time:,}" for point in world),
            *(" / ".join(f"{p.ratio(rival):.2f}" for p in world) for rival in rivals),
            " / ".join(f"{p.ratio(p.best):.2f}" for p in world),
            " / ".join(dict.fromkeys(point.best for point in world)),
            " / ".join(f"{float(p.covered):.0%}" for p in world if p.covered),
        )
        for world in worlds
    ]
    header = ("world", "decisions", *(f"over {rival}" for rival in rivals), "over the best", "which", "90% intervals")
    parts = [LINEAR_HEAD, "## In short\n", summary(groups, rivals), picture, "## World by world\n"]
    parts += ["The last column is the share of 90% intervals of arms that were tried which hold the truth.\n"]
    parts += [
        table(Table(header, rows)),
        "\n## Where it loses, and why\n",
        losses(groups),
        LINEAR_WORLDS,
        seeds_of(lines),
    ]
    return "\n".join(parts)


# ---------------------------------------------------------------- the picture


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")


def draw(groups: Mapping[str, Sequence[Sequence[Point]]], path: Path, ours: str, flat: str) -> str:
    """Draw one dot per world and time, ours beside the flat policy and the best of the others; return the link."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    low, high = 0.05, 4.0
    for colour, (name, worlds) in zip(COLOURS, groups.items(), strict=False):
        points = [point for world in worlds for point in world]
        x, y = (np.clip([p.ratio(who(p)) for p in points], low, high) for who in (lambda p: flat, lambda p: p.best))
        axes.scatter(x, y, s=22, color=colour, alpha=0.75, linewidths=0, label=name)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.axhline(1, color="0.4", linewidth=1)
    axes.fill_between([low, 1], low, 1, color="#009E73", alpha=0.07, linewidth=0)
    axes.set(xscale="log", yscale="log", xlim=(low * 0.9, high), ylim=(0.2, high))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.FixedLocator([0.1, 0.25, 0.5, 1, 2, 4]))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(f"regret of {ours} over that of {flat}")
    axes.set_ylabel("... over that of the best of the others")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    words = f"Ratios of the regret of {ours} to that of {flat} and to that of the best of the others"
    return f"\n![{words}: one dot per world and time](images/{path.name})\n"


def quick(worlds: Sequence[World], horizon: int = 50, seeds: int = 3) -> list[World]:
    """The same worlds with short runs."""
    return [replace(w, horizon=horizon, seeds=seeds, long_seeds=min(w.long_seeds, 2)) for w in worlds]


def tree_parts() -> list[Part]:
    return [part for make in (*GROUPS.values(), long_worlds) for part in parts(make())]


TREES = Page("robustness", COLUMNS, tree_parts, trees_page)
CONTEXTUAL = Page("robustness-contexts", COLUMNS, lambda: parts(context_worlds()), contexts_page)
