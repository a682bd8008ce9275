"""Figure 2: k-means clusters, none of which dominates (2a to 2c), and contexts (2d to 2f)."""

from __future__ import annotations

from functools import partial

from banditree import HTS, TS, TSC, UCB1, UCBC, UCT, LinTS, LinTSC, LinUCB, LinUCBC, TSMax
from banditree.paper.figures.base import DEFAULT, Figure, Setting
from banditree.problems import linear, sine_kmeans
from banditree.simulation.one_seed import Factory

# ---------------------------------------------------------------- 2a to 2c


READINGS = (
    "Clusters come from scikit-learn's KMeans with n_init=10; positions and clusters are new for every seed.",
    "UCB indices are mean + sqrt(2 ln n / n_i); inside a cluster the cluster's own plays are the clock n.",
)
TSMAX_READING = "In TSMax a cluster stands for its arm with the highest empirical mean among the arms tried."

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
        readings=(*READINGS, TSMAX_READING),
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


KMEANS = (
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


# ---------------------------------------------------------------- 2d to 2f


DIM = 5

POLICIES: dict[str, Factory] = {
    "LinTSC": partial(LinTSC, dim=DIM, v=1.0),
    "LinUCBC": partial(LinUCBC, dim=DIM, c=2.0),
    "LinTS": partial(LinTS, dim=DIM, v=1.0),
    "LinUCB": partial(LinUCB, dim=DIM, c=2.0),
}


def _context_figure(name: str, n_arms: int, n_clusters: int, spread: float) -> Figure:
    def settings(variant: str) -> list[Setting]:
        contexts = "normal" if variant == DEFAULT else variant
        return [Setting("", linear(n_arms, n_clusters, spread, dim=DIM, contexts=contexts), POLICIES)]

    return Figure(
        name=name,
        title=f"Figure {name}: contexts, N = {n_arms}, K = {n_clusters}, ε = {spread:g}",
        caption=f"CBC with k = {n_clusters}, n = {n_arms}, ε = {spread:g}.",
        kind="curves",
        settings_of=settings,
        readings=(
            "Contexts are x ~ N(0, I) of dimension 5; the reward is U(0, 2m) with m = θ·x, for m < 0 U(2m, 0).",
            "Arms fall into the clusters uniformly. Regret is max θ·x over all arms minus θ·x of the arm played.",
            "v scales the variance of the Thompson sample; nothing is forced on an untried arm of LinUCB.",
        ),
        options={"uniform": "contexts uniform in [0, 1]^5", "unit": "contexts of length 1 in a uniform direction"},
        horizon=3000,
        seeds=25,
        seconds=2.0,
    )


CONTEXTS = (
    _context_figure("2d", n_arms=400, n_clusters=20, spread=0.5),
    _context_figure("2e", n_arms=900, n_clusters=30, spread=0.5),
    _context_figure("2f", n_arms=900, n_clusters=30, spread=0.1),
)
