"""Figures 2a to 2c: arms on a line in k-means clusters, none of which dominates."""

from __future__ import annotations

from functools import partial

from banditree import HTS, TS, TSC, UCB1, UCBC, UCT, TSMax
from banditree.paper.figures.base import Factory, Figure, Setting
from banditree.problems import sine_kmeans

READINGS = (
    "Clusters come from scikit-learn's KMeans with n_init=10; positions and clusters are new for every seed.",
    "UCB indices are mean + sqrt(2 ln n / n_i); inside a cluster the cluster's own plays are the clock n.",
)
TSMAX = "In TSMax a cluster stands for its arm with the highest empirical mean among the arms tried."

VARIANTS: dict[str, dict[str, Factory]] = {
    "posterior": {"TSMax": partial(TSMax, best="posterior")},
    "global": {"UCBC": partial(UCBC, clock="global")},
}


def _two_levels(name: str, n_arms: int, n_clusters: int, seconds: float) -> Figure:
    def settings(variant: str) -> list[Setting]:
        rivals: dict[str, Factory] = {"TSC": TSC, "UCBC": UCBC, "TSMax": TSMax, "UCB1": UCB1, "TS": TS}
        return [Setting("", sine_kmeans(n_arms, n_clusters), rivals | VARIANTS.get(variant, {}))]

    return Figure(
        name=name,
        title=f"Figure {name}: k-means clusters, N = {n_arms}, K = {n_clusters}",
        caption=f"K-means instance with N = {n_arms}, K = {n_clusters}.",
        kind="curves",
        settings_of=settings,
        readings=(*READINGS, TSMAX),
        options={
            "posterior": "in TSMax a cluster stands for its arm with the highest posterior mean, tried or not",
            "global": "in UCBC the clock inside a cluster is the number of all plays",
        },
        horizon=3000,
        seeds=100,
        seconds=seconds,
    )


def _three_levels(_: str) -> list[Setting]:
    policies: dict[str, Factory] = {
        "TSC": TSC,
        "HTS L=2": partial(HTS, depth=2),
        "HTS L=3": partial(HTS, depth=3),
        "UCT L=2": partial(UCT, depth=2),
        "UCT L=3": partial(UCT, depth=3),
    }
    return [Setting("", sine_kmeans(5000, 15, depth=3), policies)]


FIGURES = (
    _two_levels("2a", n_arms=100, n_clusters=10, seconds=3.0),
    _two_levels("2b", n_arms=1000, n_clusters=32, seconds=6.0),
    Figure(
        name="2c",
        title="Figure 2c: k-means in three levels, N = 5000, K = 15",
        caption="Hierarchical clustering with k-means.",
        kind="curves",
        settings_of=_three_levels,
        readings=(
            *READINGS,
            "The tree has three levels of 15-means; a cluster of at most 15 arms is not split.",
            "TSC uses the 15 top clusters.",
        ),
        horizon=3000,
        seeds=100,
        seconds=80.0,
    ),
)
