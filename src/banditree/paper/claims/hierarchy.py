"""Claims on figure 1f: how many levels of the tree HTS should use."""

from __future__ import annotations

import numpy as np

from banditree.paper.claims.checks import Check, Finding, Floats, Measured, mean
from banditree.paper.claims.claim import Claim
from banditree.paper.claims.data import Data
from banditree.paper.claims.dominance import by_setting
from banditree.paper.claims.shapes import ratio_slope, straighter

BENT = 1.5  # O(log N): a doubling of many arms costs at most this times a doubling of few


def full_and_flat(data: Data) -> tuple[Floats, Floats, Floats, list[Floats]]:
    """Return N, (sizes,), regret at T without and with the full tree, (seeds, sizes), and by depth for each size."""
    sizes, depths = data.depths("1f")
    flat = np.stack([regret[:, 0] for regret in depths], axis=1)
    full = np.stack([regret[:, -1] for regret in depths], axis=1)
    return sizes, flat, full, depths


def depth_helps_more(data: Data) -> Finding:
    """Judge whether the full tree saves more the more arms there are."""
    sizes, flat, full, depths = full_and_flat(data)
    saved = flat.mean(axis=0) / full.mean(axis=0)
    best = [int(regret.mean(axis=0).argmin()) for regret in depths]
    checks = (
        Check("no tree over the full tree rises with N", ratio_slope(np.log2(sizes), flat, full)),
        Check(f"the full tree has less regret than none at N = {sizes[-1]:g}", mean(flat[:, -1] - full[:, -1])),
    )
    facts = (
        f"Without a tree HTS has {saved[0]:.2f} times the regret of the full tree at N = {sizes[0]:g} and "
        f"{saved[-1]:.2f} times at N = {sizes[-1]:g}; the depth with the least regret goes from {best[0]} to "
        f"{best[-1]}"
    )
    numbers = by_setting("flat/full", "n_arms", sizes, saved) | by_setting("best depth", "n_arms", sizes, best)
    return Finding(checks, facts, numbers, len(full), data.horizon("1f"))


def log_n(data: Data) -> Finding:
    """Judge whether regret with the full tree grows no faster than log N."""
    sizes, flat, full, _ = full_and_flat(data)
    means, x = full.mean(axis=0), np.log2(sizes)
    half = len(x) // 2
    early, late = _doubling(full, x, 0, half), _doubling(full, x, half, len(x) - 1)
    excess = _doubling(full, x, half, len(x) - 1, minus=BENT, of=(0, half))
    curve = straighter(np.log(sizes), sizes, full)
    checks = (
        Check("the regret of the full tree is nearer to a line in log N than to a line in N", curve),
        Check(
            f"a doubling of N costs the larger half of the trees no more than {BENT:g} times what it costs the smaller",
            excess,
            above=False,
            proof=False,
        ),
    )
    facts = (
        f"With the full tree, regret goes from {means[0]:.0f} at N = {sizes[0]:g} to {means[-1]:.0f} at N = "
        f"{sizes[-1]:g} (without a tree {flat[:, 0].mean():.0f} to {flat[:, -1].mean():.0f}): {early.value:.1f} per "
        f"doubling up to N = {sizes[half]:g}, {late.value:.1f} from there on"
    )
    numbers = by_setting("full", "n_arms", sizes, means)
    numbers |= {"early_doubling": early.value, "late_doubling": late.value, "log or line": curve.value}
    return Finding(checks, facts, numbers, len(full), data.horizon("1f"))


def _doubling(
    regret: Floats, x: Floats, start: int, end: int, *, minus: float = 0.0, of: tuple[int, int] = (0, 1)
) -> Measured:
    """Measure the cost of a doubling between two sizes, minus a multiple of that between two others; x is log2 N."""
    cost = (regret[:, end] - regret[:, start]) / (x[end] - x[start])
    other = (regret[:, of[1]] - regret[:, of[0]]) / (x[of[1]] - x[of[0]])
    return mean(cost - minus * other)


HIERARCHY = (
    Claim(
        "depth-helps-more",
        "More levels help more as the number of arms grows",
        "as the size of the problem instance grows, i.e increasing N, using more levels in the tree becomes more "
        "beneficial due to aggressive exploration scheme of HTS.",
        ("1f",),
        "(1) The slope on log2 N of log(mean regret at L = 0 / mean regret at the greatest L) is above 0 (jackknife "
        "over seeds); (2) at the largest N the regret at L = 0 minus that at the greatest L, paired by seed, is above "
        "0.",
        depth_helps_more,
    ),
    Claim(
        "log-n",
        "HTS on the full tree: regret grows with the logarithm of the number of arms",
        "HTS gets only a dependence O(log_2 N) in the number of arms when using the full hierarchical tree",
        ("1f",),
        "Regret at T with the greatest L over the grid of N: (1) a straight line in log N leaves a smaller residual "
        "sum of squares than one in N, (r_lin - r_log) / (r_lin + r_log) > 0 with the standard error by the jackknife "
        f"over seeds; (2) unless refuted, a doubling costs in the upper half of the grid at most {BENT:g} times what "
        "it costs in the lower half.",
        log_n,
    ),
)
