"""Figure 1: TS and TSC under strong dominance (1a to 1e), HTS on a balanced binary tree at every depth (1f)."""

from __future__ import annotations

from functools import partial
from math import isqrt
from typing import Any

from banditree import HTS, TS, TSC
from banditree.paper.figures.base import DEFAULT, Figure, Setting
from banditree.problems import hierarchical_dominance, strong_dominance

# ---------------------------------------------------------------- 1a to 1e


DEFAULTS = {"n_arms": 100, "n_clusters": 10, "n_best": 10, "width": 0.1, "distance": 0.1}

GRIDS: dict[str, list[Any]] = {
    "distance": [round(0.05 * i, 2) for i in range(1, 9)],
    "width": [round(0.05 * i, 2) for i in range(9)],
    "n_arms": [25, 50, 100, 200, 400, 600, 800, 1000],
    "n_clusters": [2, 3, 5, 10, 15, 20, 25, 30, 40],
    "n_best": [2, 5, *range(10, 100, 10)],
}

READINGS = (
    "K counts all clusters, the optimal one included.",
    "A sub-optimal cluster that gets no arm is dropped; with a single arm it has the best value, 0.6 - w* - d.",
    "Every seed has a new instance; TS and TSC run on the same one.",
    "Regret is the expected one: the sum over t of mu* minus the mean of the arm played.",
)


def _dominance_figure(name: str, varied: str, title: str, caption: str, x_label: str) -> Figure:
    def settings(variant: str) -> list[Setting]:
        count = "all" if variant == DEFAULT else variant
        listed = []
        for value in GRIDS[varied]:
            parameters = DEFAULTS | {varied: value}
            if varied == "n_arms":
                parameters |= {"n_clusters": isqrt(value), "n_best": isqrt(value)}
            problem = strong_dominance(**parameters, count=count)
            listed.append(Setting(f"{varied}={value:g}", problem, {"TS": TS, "TSC": TSC}, x=float(value)))
        return listed

    return Figure(
        name=name,
        title=f"Figure {name}: {title}",
        caption=caption,
        kind="sweep",
        settings_of=settings,
        readings=READINGS,
        options={"suboptimal": "K counts only the sub-optimal clusters"},
        horizon=3000,
        seeds=50,
        seconds=1.5,
        x_label=x_label,
    )


DOMINANCE = (
    _dominance_figure(
        "1a", "distance", "the distance between clusters", "w* = 0.1, N = 100, A* = 10, K = 10.", "distance d"
    ),
    _dominance_figure("1b", "width", "the width of the best cluster", "d = 0.1, N = 100, A* = 10, K = 10.", "width w*"),
    _dominance_figure("1c", "n_arms", "the number of arms", "w* = 0.1, d = 0.1, A* = K = ⌊√N⌋.", "number of arms N"),
    _dominance_figure(
        "1d", "n_clusters", "the number of clusters", "w* = d = 0.1, N = 100, A* = 10.", "number of clusters K"
    ),
    _dominance_figure(
        "1e", "n_best", "the size of the best cluster", "w* = d = 0.1, N = 100, K = 10.", "arms in the best cluster A*"
    ),
)


# ---------------------------------------------------------------- 1f


SIZES = [2**i for i in range(4, 12)]  # 16 ... 2048


def _depth_settings(variant: str) -> list[Setting]:
    settings = []
    for n_arms in SIZES:
        full_tree = hierarchical_dominance(n_arms)
        for depth in range(n_arms.bit_length() - 1):  # 0 ... log2 N - 1
            # The top levels are a cut of one tree; those of the other variants are not, so each depth is a problem.
            problem = full_tree if variant == DEFAULT else hierarchical_dominance(n_arms, levels=variant, depth=depth)
            policy = partial(HTS, depth=depth) if variant == DEFAULT else HTS
            instances = f"n_arms={n_arms}"  # the instances are those of all depths
            settings.append(
                Setting(
                    f"{instances} depth={depth}", problem, {"HTS": policy}, float(depth), f"N = {n_arms}", instances
                )
            )
    return settings


HIERARCHY = (
    Figure(
        name="1f",
        title="Figure 1f: the number of levels",
        caption="Dependence on the number of levels L.",
        kind="sweep",
        settings_of=_depth_settings,
        readings=(
            "Depth L keeps the top L levels of the binary tree, with the arms directly below (L = 1: two clusters).",
            "HTS runs at every depth L = 0, 1, ..., log2 N - 1; all depths have the instances instance per seed.",
        ),
        options={
            "bottom": "depth L keeps the L levels nearest to the arms",
            "even": "depth L keeps L levels evenly spaced (L = 1: about √N clusters)",
        },
        horizon=3000,
        seeds=50,
        seconds=10.0,
        x_label="depth of the tree L",
    ),
)
