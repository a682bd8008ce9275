"""The appendix's figures of regret: on the surface, on the bumps, and with clusters that mean nothing."""

from __future__ import annotations

from banditree import HTS, TS, TSC, UCT
from banditree.paper.figures.base import Factory, Figure, Setting
from banditree.problems import Problem, bumps, surface, unstructured
from banditree.simulation.simulator import on

ON_TREES: dict[str, Factory] = {"TSC": TSC, "HTS": on("ward", HTS), "UCT": on("ward", UCT)}
FLAT_OR_NOT: dict[str, Factory] = {"TS": TS, "TSC": TSC}

TREES = "TSC uses k-means clusters; HTS and UCT the full tree of agglomerative clustering with Ward's linkage."


def _figure(
    name: str, title: str, caption: str, problem: Problem, policies: dict[str, Factory], horizon: int, reading: str
) -> Figure:
    return Figure(
        name=name,
        title=title,
        caption=caption,
        kind="curves",
        settings_of=lambda _: [Setting("", problem, policies)],
        readings=(reading, "Every seed has a new instance."),
        horizon=horizon,
        seeds=25,
        seconds=1.5,
    )


FIGURES = (
    _figure("surface-regret", "Regret on the surface, N = 500, K = 20",
            "Cumulative regret over the 2-d instance with N = 500 and K = 20.",
            surface(500, 20), ON_TREES, 20_000, TREES),
    _figure("bumps-regret", "Regret on the bumps, N = 50, K = 5",
            "Cumulative regret over the instance with N = 50 arms with expected rewards as f(x).",
            bumps(50, 5), ON_TREES, 25_000, TREES),
    _figure("unstructured-regret", "Regret without structure, N = 50, K = 10",
            "Cumulative regret over uniformly assigned expected rewards. N = 50 and K = 10.",
            unstructured(50, 10), FLAT_OR_NOT, 25_000, "Ten clusters of five arms, whatever their means; T = 25,000."),
)  # fmt: skip
