"""The appendix's three functions, with arms drawn on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditree.paper.figures.base import Figure, Setting
from banditree.problems import Problem, bumps, functions, sine_kmeans, surface


def _figure(name: str, title: str, caption: str, function: Callable[[Any], Any], problem: Problem) -> Figure:
    return Figure(
        name=name,
        title=title,
        caption=caption,
        kind="function",
        settings_of=lambda _: [Setting("", problem, {})],
        readings=("The arms are one draw of the instance, coloured by their k-means clusters.",),
        function=function,
    )


FIGURES = (
    _figure("sine", "The function of figures 2a to 2c", "f(x) = (sin 13x sin 27x + 1) / 2.", functions.sine,
            sine_kmeans(100, 10)),
    _figure("bumps", "The function of bumps-regret", "f(x) = (exp(-(0.1 - x)² / 0.05) + exp(-(0.9 - x)² / 0.8)) / 2.",
            functions.bumps, bumps()),
    _figure("surface", "The function of surface-regret",
            "f(x₁, x₂) = exp(-100 (0.2 - x₁)²) / 2 + exp(-100 (0.7 - x₁)²) / 5 + exp(-100 (0.7 - x₂)²) / 5.",
            functions.surface, surface()),
)  # fmt: skip
