"""Figures 1a to 1e: TS and TSC under strong dominance, with one parameter of the problem varied at a time."""

from __future__ import annotations

from math import isqrt
from typing import Any

from banditree import TS, TSC
from banditree.paper.figures.base import DEFAULT, Figure, Setting
from banditree.problems import strong_dominance

FIXED = {"n_arms": 100, "n_clusters": 10, "n_best": 10, "width": 0.1, "distance": 0.1}

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


def _figure(name: str, varied: str, title: str, caption: str, x_label: str) -> Figure:
    def settings(variant: str) -> list[Setting]:
        count = "all" if variant == DEFAULT else variant
        found = []
        for value in GRIDS[varied]:
            parameters = FIXED | {varied: value}
            if varied == "n_arms":
                parameters |= {"n_clusters": isqrt(value), "n_best": isqrt(value)}
            problem = strong_dominance(**parameters, count=count)
            found.append(Setting(f"{varied}={value:g}", problem, {"TS": TS, "TSC": TSC}, x=float(value)))
        return found

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


FIGURES = (
    _figure("1a", "distance", "the distance between clusters", "w* = 0.1, N = 100, A* = 10, K = 10.", "distance d"),
    _figure("1b", "width", "the width of the best cluster", "d = 0.1, N = 100, A* = 10, K = 10.", "width w*"),
    _figure("1c", "n_arms", "the number of arms", "w* = 0.1, d = 0.1, A* = K = ⌊√N⌋.", "number of arms N"),
    _figure("1d", "n_clusters", "the number of clusters", "w* = d = 0.1, N = 100, A* = 10.", "number of clusters K"),
    _figure("1e", "n_best", "the size of the best cluster", "w* = d = 0.1, N = 100, K = 10.",
            "arms in the best cluster A*"),
)  # fmt: skip
