"""Figures 2d to 2f: contexts, with arms around the centre of their cluster."""

from __future__ import annotations

from functools import partial

from banditree import LinTS, LinTSC, LinUCB, LinUCBC
from banditree.paper.figures.base import DEFAULT, Factory, Figure, Setting
from banditree.problems import linear

DIM = 5

POLICIES: dict[str, Factory] = {
    "LinTSC": partial(LinTSC, dim=DIM, v=1.0),
    "LinUCBC": partial(LinUCBC, dim=DIM, c=2.0),
    "LinTS": partial(LinTS, dim=DIM, v=1.0),
    "LinUCB": partial(LinUCB, dim=DIM, c=2.0),
}


def _figure(name: str, n_arms: int, n_clusters: int, spread: float) -> Figure:
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


FIGURES = (
    _figure("2d", n_arms=400, n_clusters=20, spread=0.5),
    _figure("2e", n_arms=900, n_clusters=30, spread=0.5),
    _figure("2f", n_arms=900, n_clusters=30, spread=0.1),
)
