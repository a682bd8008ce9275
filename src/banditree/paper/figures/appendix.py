"""The appendix: three functions with arms drawn on them, and regret on the surface, on the bumps, without structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditree import HTS, TS, TSC, UCT
from banditree.paper.figures.base import Figure, Setting
from banditree.problems import Problem, bumps, functions, sine_kmeans, surface, unstructured
from banditree.simulation.one_seed import Factory
from banditree.simulation.simulator import on

# ---------------------------------------------------------------- functions


def _function_figure(name: str, title: str, caption: str, function: Callable[[Any], Any], problem: Problem) -> Figure:
    return Figure(
        name=name,
        title=title,
        caption=caption,
        kind="function",
        settings_of=lambda _: [Setting("", problem, {})],
        readings=("The arms are one draw of the instance, coloured by their k-means clusters.",),
        function=function,
    )


FUNCTIONS = (
    _function_figure(
        "sine",
        "The function of figures 2a to 2c",
        "f(x) = (sin 13x sin 27x + 1) / 2.",
        functions.sine,
        sine_kmeans(100, 10),
    ),
    _function_figure(
        "bumps",
        "The function of bumps-regret",
        "f(x) = (exp(-(0.1 - x)² / 0.05) + exp(-(0.9 - x)² / 0.8)) / 2.",
        functions.bumps,
        bumps(),
    ),
    _function_figure(
        "surface",
        "The function of surface-regret",
        "f(x₁, x₂) = exp(-100 (0.2 - x₁)²) / 2 + exp(-100 (0.7 - x₁)²) / 5 + exp(-100 (0.7 - x₂)²) / 5.",
        functions.surface,
        surface(),
    ),
)


# ---------------------------------------------------------------- regret


ON_TREES: dict[str, Factory] = {"TSC": TSC, "HTS": on("ward", HTS), "UCT": on("ward", UCT)}
FLAT_AND_CLUSTERED: dict[str, Factory] = {"TS": TS, "TSC": TSC}

TREES_READING = "TSC uses k-means clusters; HTS and UCT the full tree of agglomerative clustering with Ward's linkage."


def _regret_figure(
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


REGRET = (
    _regret_figure(
        "surface-regret",
        "Regret on the surface, N = 500, K = 20",
        "Cumulative regret over the 2-d instance with N = 500 and K = 20.",
        surface(500, 20),
        ON_TREES,
        20_000,
        TREES_READING,
    ),
    _regret_figure(
        "bumps-regret",
        "Regret on the bumps, N = 50, K = 5",
        "Cumulative regret over the instance with N = 50 arms with expected rewards as f(x).",
        bumps(50, 5),
        ON_TREES,
        25_000,
        TREES_READING,
    ),
    _regret_figure(
        "unstructured-regret",
        "Regret without structure, N = 50, K = 10",
        "Cumulative regret over uniformly assigned expected rewards. N = 50 and K = 10.",
        unstructured(50, 10),
        FLAT_AND_CLUSTERED,
        25_000,
        "Ten clusters of five arms, whatever their means; T = 25,000.",
    ),
)
