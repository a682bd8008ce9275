"""The text and the tables of docs/robustness.md. All numbers come from the runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import banditree as bt
from tools.pages.markdown import Table, figures, table
from tools.pages.robustness_growth import Growth, draw, growth_table, verdict
from tools.pages.robustness_numbers import FLAT, OURS, Point, Ratio, geometric_mean
from tools.pages.robustness_picture import draw_ratios
from tools.pages.robustness_worlds import OTHER_TREE, TRUSTED, UNKNOWN, Drawn, Shop

BEST_AIM, MEAN_AIM, FLAT_AIM = 1.25, 0.9, 1.05
PICTURE, RATIOS = Path("images") / "robustness.png", Path("images") / "robustness-ratios.png"
PAPER, NORMAL, SHOPS, RANDOM = "worlds of the paper", "normal rewards", "shops", "random worlds"
Worlds = Sequence[Sequence[Point]]  # for each world its points in time

HEAD = """# How robust is ATS?

Made by `make robustness` with the {engine} engine: `bt.ATS` with its defaults beside flat TS, TSC, and HTS at every
depth of the tree, which a user would have to choose. HTS 3 uses three levels of clusters, HTS the whole tree. All
policies meet the same instances. A number is the cumulative regret, mean ± standard error over seeds; p99 is its 99th
percentile over seeds, which with 100 seeds or fewer is nearly the maximum. A ratio is the mean regret of ATS over that
of another policy, with a standard error that is paired over seeds. The best of the others is the one with the least
mean regret *on these very seeds*, at this very time: no user can choose so well, and luck had a say in it, so that
ratios to it err to the disadvantage of ATS.

The defaults of ATS were set on the kinds of worlds in these tables, with other seeds, and on random worlds and shops
other than those below.
"""

PRICE = """
With {seeds} seeds and several rivals, part of that is the luck of the best one. The rest is what ATS pays for not being
told: how far to trust each level has to be learned, and arms that were never tried are drawn more widely than their
cluster may warrant, in case one of them is better than it looks."""

WORLDS = """
## Worlds of the paper, and worlds made against ATS

- *Strong dominance*, *k-means* on a sine, *no structure* (50 arms in 10 clusters), the *binary tree*, *bumps* and
  *surface* are the paper's kinds of instances, a new one for each seed. On bumps and surface all use Ward's tree; TSC
  on the tree of k-means is one more rival.
- *Open Bandit* is the shop of `bt.problems.open_bandit`: 80 items, click rates of 0.09% to 0.5%.
- *Misplaced arm*: 10 clusters of 10 arms around rates from 0.1 to 0.5, or to 0.7, and one arm of 0.8 in the poorest.
- *Two arms*: the tree says nothing at all, and an unlucky start can make the better arm look worse for long.
"""

NORMAL_WORLDS = """
## Normal rewards

All policies have the prior `bt.Gaussian(sd)` with the true noise, except where it is learned. *Ratings*: 200 arms
± 0.5 in 10 clusters ± 0.25, or 0, around 3.2, with noise 1.22. *Two levels*: 12 clusters of 12, ± 0.5 and ± 0.15, noise
0.5. *Fine* and *coarse differences*: a tenth of the noise, and ten times. *Misplaced arm*: clusters from 0 to 1, and
one arm of 1.6 in the poorest.
"""

SHOP_WORLDS = """
## Shops

300 to 5,000 items in 10 to 100 categories, click rates around 0.3 to 5%, two to a hundred decisions per item. Rates are
log-normal; sd is the standard deviation of categories and of items in them, on the log scale. *TSC told* has the prior
Beta(1, 1/rate - 1): it knows the level of the rates, ATS does not.
"""

RANDOM_WORLDS = """
## Worlds drawn at random

10 to 2,000 arms on trees of 1 to 6 levels of clusters, 2 to 8 wide. Each level, and the arms, have effects that add up
on the logit scale; sd is the standard deviation of these effects, from the top level to the arms, so that 0 is a level
that means nothing. In some worlds arms have a chance to be outliers, with 2 to 10 times their rate. Rates are between
0.001 and 0.9. There is a new tree with new rates for each seed.
"""

GROWTH = """
## Does regret grow like log T?

A policy that stops learning pays the same again at every step: each factor of ten in time then adds ten times as much
regret as the one before. One that learns adds about the same: its regret grows like log T. Here is what each factor of
ten adds, mean ± standard error over {seeds} seeds, and in brackets what it adds on the worst seed; the last column is
the whole regret.
"""

EVERYONE = """
## Every policy

Mean ± standard error (p99), the least mean in bold.
"""

ON_RANDOM = """
### Shops and worlds drawn at random, every policy

At the last time of each world, without p99.
"""


def page(groups: Mapping[str, Worlds], growths: Sequence[Growth], out: Path) -> str:
    """Draw the pictures into the page's folder, and return the page."""
    draw(growths, out.parent / PICTURE)
    points = {name: [point for points in worlds for point in points] for name, worlds in groups.items()}
    draw_ratios(points, out.parent / RATIOS)
    at_a_glance = (
        "Ratios of the regret of ATS to that of TS and to that of the best of the others, one dot per line below"
    )
    alt = "Regret over time on a log axis, ATS and TS, one panel each for " + " and ".join(
        growth.world.name for growth in growths
    )
    parts = [
        HEAD.format(engine=bt.engine()),
        "## In short\n",
        summary(points),
        f"\n![{at_a_glance}]({RATIOS.as_posix()})\n",
        "## Where it loses, and why\n",
        losses(points),
        WORLDS,
        contest(points[PAPER]),
        NORMAL_WORLDS,
        contest(points[NORMAL]),
        SHOP_WORLDS,
        told_level(points[SHOPS]),
        contest(points[SHOPS], shop),
        RANDOM_WORLDS,
        contest(points[RANDOM], shape),
        GROWTH.format(seeds=growths[0].world.seeds),
        growth_table(growths),
        f"\n{verdict(growths)}\n",
        f"![{alt}]({PICTURE.as_posix()})",
        EVERYONE,
        "\n\n".join(everyone(at) for name in (PAPER, NORMAL) for at in groups[name]),
        ON_RANDOM,
        side_by_side([at[-1] for name in (SHOPS, RANDOM) for at in groups[name]]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def summary(groups: Mapping[str, Sequence[Point]]) -> str:
    """The worst and the mean of all ratios, beside what was aimed at."""
    both = tuple(groups.values())
    rows = [
        (
            "worst ratio to the best of the others",
            *(_worst(p, "to_best", BEST_AIM) for p in both),
            f"at most {BEST_AIM}",
        ),
        (
            "geometric mean of the ratios to the best",
            *(_mean(p, "to_best", MEAN_AIM) for p in both),
            f"at most {MEAN_AIM}",
        ),
        ("worst ratio to TS", *(_worst(p, "to_flat", FLAT_AIM) for p in both), f"at most {FLAT_AIM}"),
        ("geometric mean of the ratios to TS", *(_mean(p, "to_flat") for p in both), ""),
        ("worst p99 over the p99 of TS", *(_worst_tail(p) for p in both), ""),
        (f"lines above {BEST_AIM} times the best", *(_above(p, "to_best", BEST_AIM) for p in both), "none"),
        (f"lines above {FLAT_AIM} times TS", *(_above(p, "to_flat", FLAT_AIM) for p in both), "none"),
    ]
    return table(Table(("", *groups, "aim"), rows))


def told_level(points: Sequence[Point]) -> str:
    """How ATS does beside TSC and beside TSC told, at the end of each shop's horizon."""
    last = [point for point in points if point.time == point.world.horizon]
    lines = []
    for rival, aim in (("TSC", 0.65), ("TSC told", 0.85)):
        ratios = [Ratio.of(point.regret[OURS], point.regret[rival]) for point in last if rival in point.regret]
        mean_ratio, worst = (
            geometric_mean([ratio.value for ratio in ratios]),
            max(ratios, key=lambda ratio: ratio.value),
        )
        lines.append(
            f"- {rival}: geometric mean {mean_ratio:.2f}{_missed(mean_ratio, aim)} (aim: {aim}), worst {worst}"
            f"{_missed(worst.value, 1.1)} (aim: 1.1)"
        )
    return "\n".join(["Regret of ATS at the end of each shop, over that of:\n", *lines]) + "\n"


def shop(point: Point) -> dict[str, str]:
    """Describe a shop."""
    drawn = point.world.problem
    assert isinstance(drawn, Shop)
    return {
        "items": f"{drawn.n_items:,}",
        "categories": str(drawn.n_categories),
        "rate": f"{drawn.rate:.2%}",
        "sd": f"{drawn.category_sd:.2f} {drawn.item_sd:.2f}",
    }


def _worst(points: Sequence[Point], which: str, aim: float) -> str:
    worst = max(points, key=lambda point: getattr(point, which).value)
    return f"{getattr(worst, which)}{_missed(getattr(worst, which).value, aim)} ({_place(worst)})"


def _mean(points: Sequence[Point], which: str, aim: float = math.inf) -> str:
    found = geometric_mean([getattr(point, which).value for point in points])
    return f"{found:.2f}{_missed(found, aim)}"


def _missed(value: float, aim: float) -> str:
    return " **missed**" if value > aim else ""


def _worst_tail(points: Sequence[Point]) -> str:
    worst = max(points, key=lambda point: point.tail_to_flat)
    return f"{worst.tail_to_flat:.2f} ({_place(worst)})"


def _above(points: Sequence[Point], which: str, aim: float) -> str:
    ratios = [getattr(point, which) for point in points]
    above = [ratio for ratio in ratios if ratio.value > aim]
    clear = sum(ratio.value - 2 * ratio.se > aim for ratio in above)
    return f"{len(above)} of {len(points)}, {clear} by more than two standard errors"


def _place(point: Point) -> str:
    return f"{point.world.name}, T = {point.time:,}"


def losses(groups: Mapping[str, Sequence[Point]]) -> str:
    """List where ATS is behind the best of the others, or behind TS, by more than noise."""
    lines = []
    for name, points in groups.items():
        behind = [point for point in points if _clear(point)]
        lines.append(
            f"\n*{name[0].upper()}{name[1:]}*: behind by more than two standard errors on {_of(behind, points)}.\n"
        )
        if name in (RANDOM, SHOPS):
            lines += [f"- {_place(point)}: {_said(point)}" for point in behind]
            if behind:
                lines.append(PRICE.format(seeds=points[0].world.seeds))
            continue
        by_reason: dict[tuple[str, str], list[Point]] = {}
        for point in behind:
            by_reason.setdefault((point.world.name, reason(point)), []).append(point)
        for (world, why), at in by_reason.items():
            lines.append(f"- *{world}*: {'; '.join(f'at T = {each.time:,} {_said(each)}' for each in at)}. {why}")
    return "\n".join(lines).strip()


def _of(some: Sequence[Point], every: Sequence[Point]) -> str:
    return f"{len(some) or 'none'} of the {len(every)} lines"


def _clear(point: Point) -> bool:
    return any(ratio.value - 2 * ratio.se > 1 for ratio in (point.to_best, point.to_flat))


def _said(point: Point) -> str:
    told = f"{point.to_best} times the regret of {point.best}"
    return told if point.best == FLAT else f"{told}, {point.to_flat} times that of TS"


def reason(point: Point) -> str:
    """Say why ATS loses here, as far as it is known."""
    if point.best == f"TSC on {point.world.rival}":
        return OTHER_TREE
    if point.best == FLAT:
        return point.world.why or UNKNOWN
    return TRUSTED.format(best=point.best) if point.world.tells else UNKNOWN


def contest(points: Sequence[Point], more: Callable[[Point], dict[str, str]] = lambda point: {}) -> str:
    """One row per world and time: ATS, the best of the others, TS."""
    rows = []
    for point in points:
        said = more(point)
        rows.append(
            (
                point.world.name,
                *said.values(),
                f"{point.time:,}",
                str(len(point.regret[OURS])),
                mean(point, OURS),
                f"{point.best} {mean(point, point.best)}",
                str(point.to_best),
                mean(point, FLAT),
                str(point.to_flat),
                " / ".join(figures(point.tail(name)) for name in (OURS, point.best, FLAT)),
            )
        )
    last = ("T", "seeds", "ATS", "best of the others", "ratio", "TS", "ratio to TS", "p99 of ATS / best / TS")
    words = list(more(points[0]))
    return table(Table(("world", *words, *last), rows, left=1))


def shape(point: Point) -> dict[str, str]:
    """Describe a random world."""
    drawn = point.world.problem
    assert isinstance(drawn, Drawn)
    return {
        "arms": f"{drawn.n_arms:,}",
        "widths": " ".join(map(str, drawn.widths)),
        "rate": f"{drawn.rate:.2g}",
        "sd": " ".join(f"{effect:g}" for effect in drawn.effects),
        "outliers": f"{drawn.outliers:.1%}" if drawn.outliers else "none",
    }


def mean(point: Point, policy: str) -> str:
    over = point.over_seeds(policy)
    return f"{figures(over.mean)} ± {figures(over.se, 2)}"


def everyone(points: Sequence[Point]) -> str:
    """The regret of every policy on one world."""
    rows = [
        (policy, *(f"{_bold(point, policy)} ({figures(point.tail(policy))})" for point in points))
        for policy in points[0].regret
    ]
    times = (f"T = {point.time:,}" for point in points)
    return f"### {points[0].world.name[0].upper()}{points[0].world.name[1:]}\n\n" + table(
        Table(("policy", *times), rows)
    )


def side_by_side(points: Sequence[Point]) -> str:
    """The regret of every policy on many worlds, one row per world."""
    policies = list(dict.fromkeys(policy for point in points for policy in point.regret))
    rows = [
        (point.world.name, *(_bold(point, policy) if policy in point.regret else "" for policy in policies))
        for point in points
    ]
    return table(Table(("world", *policies), rows))


def _bold(point: Point, policy: str) -> str:
    least = min(point.regret, key=lambda name: float(point.regret[name].mean()))
    return f"**{mean(point, policy)}**" if policy == least else mean(point, policy)
