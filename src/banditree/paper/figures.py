"""The figures of the paper, in its order. A new one is a `Figure` in this file, and its name in ``FIGURES``.

ATS, and LinATS where there are contexts, is not in the paper: it is one more policy of every setting.

>>> list(FIGURES)[:6], FIGURES["2b"].seeds
(['1a', '1b', '1c', '1d', '1e', '1f'], 100)
>>> [setting.label for setting in FIGURES["1a"].settings()][:2]
['distance=0.05', 'distance=0.1']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isqrt
from typing import Any

from banditree import ATS, HTS, TS, TSC, UCB1, UCBC, UCT, LinATS, LinTS, LinTSC, LinUCB, LinUCBC, TSMax, problems
from banditree.base.arrays import Floats
from banditree.policy.factories import Factory
from banditree.problems import Problem, functions, sine_kmeans
from banditree.simulation.simulator import on

Function = Callable[[Floats], Floats]
DEFAULT = "default"
OURS = ("ATS", "ATS on Ward's tree", "LinATS")  # policies that are not in the paper

__all__ = ["DEFAULT", "FIGURES", "OURS", "Figure", "Setting"]


@dataclass(frozen=True)
class Setting:
    """One problem and the policies that run on it."""

    label: str  # what varies, as `key=value` pairs with the problem's parameter names; empty if nothing does
    problem: Problem
    policies: Mapping[str, Factory]  # {name in the table: factory}, as `bt.simulate` wants them
    x: float = 0.0  # its position on the axis of a sweep
    line: str = ""  # the line of a sweep that it belongs to, if lines are not policies
    instances: str = ""  # settings with the same text here have the same instances; the label if empty

    @property
    def stream(self) -> str:
        """The name of the random stream that its instances come from."""
        return self.instances or self.label


@dataclass(frozen=True)
class Figure:
    """A figure of the paper. ``settings(variant)`` lists what to run; a figure of kind "function" runs nothing."""

    name: str
    title: str
    caption: str  # the paper's, in short
    kind: str  # "sweep": regret at T against a parameter; "curves": regret over time; "function": f and arms on it
    settings_of: Callable[[str], list[Setting]]
    readings: Sequence[str]  # choices where the paper is silent
    options: Mapping[str, str] = field(default_factory=dict)  # {variant: description}, without the default
    horizon: int = 0  # the paper's T
    seeds: int = 0
    seconds: float = 0.0  # about how long a run with the paper's seeds takes on two cores, for the bar
    x_label: str = ""
    function: Function | None = None  # of a figure of kind "function"

    @property
    def variants(self) -> dict[str, str]:
        """Every variant with its description; the default comes first."""
        return {DEFAULT: "the readings chosen here", **self.options}

    def settings(self, variant: str = DEFAULT) -> list[Setting]:
        """Return the settings of a variant, in the order of the axis."""
        return self.settings_of(variant)

    def n_seeds(self, *, quick: bool = False) -> int:
        """Return the number of seeds: the paper's, or a tenth of them."""
        return max(5, self.seeds // 10) if quick else self.seeds


# ---------------------------------------------------------------- 1a to 1e: TS and TSC under strong dominance


DEFAULTS = {"n_arms": 100, "n_clusters": 10, "n_best": 10, "width": 0.1, "distance": 0.1}

GRIDS: dict[str, list[Any]] = {
    "distance": [round(0.05 * i, 2) for i in range(1, 9)],
    "width": [round(0.05 * i, 2) for i in range(9)],
    "n_arms": [25, 50, 100, 200, 400, 600, 800, 1000],
    "n_clusters": [2, 3, 5, 10, 15, 20, 25, 30, 40],
    "n_best": [2, 5, *range(10, 100, 10)],
}


def _dominance_figure(name: str, varied: str, title: str, caption: str, x_label: str) -> Figure:
    def settings(variant: str) -> list[Setting]:
        count = "all" if variant == DEFAULT else variant
        listed = []
        for value in GRIDS[varied]:
            parameters = DEFAULTS | {varied: value}
            if varied == "n_arms":
                parameters |= {"n_clusters": isqrt(value), "n_best": isqrt(value)}
            problem = problems.strong_dominance(**parameters, count=count)
            listed.append(Setting(f"{varied}={value:g}", problem, {"TS": TS, "TSC": TSC, "ATS": ATS}, x=float(value)))
        return listed

    return Figure(
        name=name,
        title=f"Figure {name}: {title}",
        caption=caption,
        kind="sweep",
        settings_of=settings,
        readings=(
            "K counts all clusters, the optimal one included.",
            "A sub-optimal cluster that gets no arm is dropped; with a single arm it has the best value, 0.6 - w* - d.",
            "Every seed has a new instance; all policies run on the same one.",
            "Regret is the expected one: the sum over t of mu* minus the mean of the arm played.",
        ),
        options={"suboptimal": "K counts only the sub-optimal clusters"},
        horizon=3000,
        seeds=50,
        seconds=5.0,
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


# ---------------------------------------------------------------- 1f: HTS on a balanced binary tree at every depth


SIZES = [2**i for i in range(4, 12)]  # 16 ... 2048


def _depth_settings(variant: str) -> list[Setting]:
    settings = []
    for n_arms in SIZES:
        full_tree = problems.hierarchical_dominance(n_arms)
        instances = f"n_arms={n_arms}"  # all depths have the same instances
        deepest = n_arms.bit_length() - 2  # log2 N - 1
        for depth in range(deepest + 1):
            # The top levels are a cut of one tree; those of the other variants are not, so each depth is a problem.
            problem = (
                full_tree
                if variant == DEFAULT
                else problems.hierarchical_dominance(n_arms, levels=variant, depth=depth)
            )
            policies: dict[str, Factory] = {"HTS": partial(HTS, depth=depth) if variant == DEFAULT else HTS}
            if depth == deepest:
                policies["ATS"] = ATS  # it is not told how much of the tree to use
            label, line = f"{instances} depth={depth}", f"N = {n_arms}"
            settings.append(Setting(label, problem, policies, float(depth), line, instances))
    return settings


HIERARCHY = Figure(
    name="1f",
    title="Figure 1f: the number of levels",
    caption="Dependence on the number of levels L.",
    kind="sweep",
    settings_of=_depth_settings,
    readings=(
        "Depth L keeps the top L levels of the binary tree, with the arms directly below (L = 1: two clusters).",
        "HTS runs at every depth L = 0, 1, ..., log2 N - 1; all depths have the same instance per seed.",
    ),
    options={
        "bottom": "depth L keeps the L levels nearest to the arms",
        "even": "depth L keeps L levels evenly spaced (L = 1: about √N clusters)",
    },
    horizon=3000,
    seeds=50,
    seconds=30.0,
    x_label="depth of the tree L",
)


# ---------------------------------------------------------------- 2a to 2c: k-means clusters, none of which dominates


KMEANS_READINGS = (
    "Clusters come from scikit-learn's KMeans with n_init=10; positions and clusters are new for every seed.",
    "UCB indices are mean + sqrt(2 ln n / n_i); inside a cluster the cluster's own plays are the clock n.",
)

KMEANS_VARIANTS: dict[str, dict[str, Factory]] = {
    "posterior": {"TSMax": partial(TSMax, best="posterior")},
    "global": {"UCBC": partial(UCBC, clock="global")},
}


def _kmeans_figure(name: str, n_arms: int, n_clusters: int, seconds: float) -> Figure:
    def settings(variant: str) -> list[Setting]:
        rivals: dict[str, Factory] = {"TSC": TSC, "UCBC": UCBC, "TSMax": TSMax, "UCB1": UCB1, "TS": TS, "ATS": ATS}
        return [Setting("", sine_kmeans(n_arms, n_clusters), rivals | KMEANS_VARIANTS.get(variant, {}))]

    return Figure(
        name=name,
        title=f"Figure {name}: k-means clusters, N = {n_arms}, K = {n_clusters}",
        caption=f"K-means instance with N = {n_arms}, K = {n_clusters}.",
        kind="curves",
        settings_of=settings,
        readings=(
            *KMEANS_READINGS,
            "In TSMax a cluster stands for its arm with the highest empirical mean among the arms tried.",
        ),
        options={
            "posterior": "in TSMax a cluster stands for its arm with the highest posterior mean, tried or not",
            "global": "in UCBC the clock inside a cluster is the number of all plays",
        },
        horizon=3000,
        seeds=100,
        seconds=seconds,
    )


THREE_LEVELS: dict[str, Factory] = {
    "TSC": TSC,
    **{f"{kind.__name__} L={depth}": partial(kind, depth=depth) for kind in (HTS, UCT) for depth in (2, 3)},
    "ATS": ATS,
}

KMEANS = (
    _kmeans_figure("2a", n_arms=100, n_clusters=10, seconds=6.0),
    _kmeans_figure("2b", n_arms=1000, n_clusters=32, seconds=6.0),
    Figure(
        name="2c",
        title="Figure 2c: k-means in three levels, N = 5000, K = 15",
        caption="Hierarchical clustering with k-means.",
        kind="curves",
        settings_of=lambda _: [Setting("", sine_kmeans(5000, 15, depth=3), THREE_LEVELS)],
        readings=(
            *KMEANS_READINGS,
            "The tree has three levels of 15-means; a cluster of at most 15 arms is not split.",
            "TSC uses the 15 top clusters.",
        ),
        horizon=3000,
        seeds=100,
        seconds=100.0,
    ),
)


# ---------------------------------------------------------------- 2d to 2f: contexts


DIM = 5

LINEAR: dict[str, Factory] = {
    "LinTSC": partial(LinTSC, dim=DIM, v=1.0),
    "LinUCBC": partial(LinUCBC, dim=DIM, c=2.0),
    "LinTS": partial(LinTS, dim=DIM, v=1.0),
    "LinUCB": partial(LinUCB, dim=DIM, c=2.0),
    "LinATS": partial(LinATS, dim=DIM),
}


def _context_figure(name: str, n_arms: int, n_clusters: int, spread: float) -> Figure:
    def settings(variant: str) -> list[Setting]:
        contexts = "normal" if variant == DEFAULT else variant
        return [Setting("", problems.linear(n_arms, n_clusters, spread, dim=DIM, contexts=contexts), LINEAR)]

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
        seconds=6.0,
    )


CONTEXTS = (
    _context_figure("2d", n_arms=400, n_clusters=20, spread=0.5),
    _context_figure("2e", n_arms=900, n_clusters=30, spread=0.5),
    _context_figure("2f", n_arms=900, n_clusters=30, spread=0.1),
)


# ---------------------------------------------------------------- the appendix: three functions, and regret


def _function_figure(name: str, where: str, caption: str, function: Function, problem: Problem) -> Figure:
    return Figure(
        name=name,
        title=f"The function of {where}",
        caption=caption,
        kind="function",
        settings_of=lambda _: [Setting("", problem, {})],
        readings=("The arms are one draw of the instance, coloured by their k-means clusters.",),
        function=function,
    )


FUNCTIONS = (
    _function_figure(
        "sine", "figures 2a to 2c", "f(x) = (sin 13x sin 27x + 1) / 2.", functions.sine, sine_kmeans(100, 10)
    ),
    _function_figure(
        "bumps",
        "bumps-regret",
        "f(x) = (exp(-(0.1 - x)² / 0.05) + exp(-(0.9 - x)² / 0.8)) / 2.",
        functions.bumps,
        problems.bumps(),
    ),
    _function_figure(
        "surface",
        "surface-regret",
        "f(x₁, x₂) = exp(-100 (0.2 - x₁)²) / 2 + exp(-100 (0.7 - x₁)²) / 5 + exp(-100 (0.7 - x₂)²) / 5.",
        functions.surface,
        problems.surface(),
    ),
)

ON_TREES: dict[str, Factory] = {
    "TSC": TSC,
    "HTS": on("ward", HTS),
    "UCT": on("ward", UCT),
    "ATS": ATS,
    "ATS on Ward's tree": on("ward", ATS),
}
TREES_READING = (
    "TSC and ATS use k-means clusters; HTS, UCT and the other ATS the full tree of agglomerative clustering by Ward."
)


def _regret_figure(
    name: str, title: str, caption: str, problem: Problem, policies: dict[str, Factory], horizon: int, reading: str
) -> Figure:
    return Figure(
        name=name,
        title=f"Regret {title}",
        caption=f"Cumulative regret over {caption}",
        kind="curves",
        settings_of=lambda _: [Setting("", problem, policies)],
        readings=(reading, "Every seed has a new instance."),
        horizon=horizon,
        seeds=25,
        seconds=10.0,
    )


REGRET = (
    _regret_figure(
        "surface-regret",
        "on the surface, N = 500, K = 20",
        "the 2-d instance with N = 500 and K = 20.",
        problems.surface(500, 20),
        ON_TREES,
        20_000,
        TREES_READING,
    ),
    _regret_figure(
        "bumps-regret",
        "on the bumps, N = 50, K = 5",
        "the instance with N = 50 arms with expected rewards as f(x).",
        problems.bumps(50, 5),
        ON_TREES,
        25_000,
        TREES_READING,
    ),
    _regret_figure(
        "unstructured-regret",
        "without structure, N = 50, K = 10",
        "uniformly assigned expected rewards. N = 50 and K = 10.",
        problems.unstructured(50, 10),
        {"TS": TS, "TSC": TSC, "ATS": ATS},
        25_000,
        "Ten clusters of five arms, whatever their means; T = 25,000.",
    ),
)

FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in (*DOMINANCE, HIERARCHY, *KMEANS, *CONTEXTS, *FUNCTIONS, *REGRET)
}
