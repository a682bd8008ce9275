"""The cost of a step against the number of arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.report.style import BLUE, GREEN, ORANGE, figure, plain_log
from benchmarks.timing import Spread

LOOKS = ((ORANGE, "s"), (BLUE, "o"), (GREEN, "^"))


def draw_growth(sizes: Sequence[int], curves: Mapping[str, Sequence[Spread]], path: Path) -> None:
    """Measured curves, and dashed ones that grow like the square root and the logarithm from the same start."""
    with figure(path, 7.5, 4.5) as axes:
        n = np.array(sizes, float)
        handles = []
        shapes = {1: n**0.5, 2: np.log(n)}
        for place, ((name, spreads), (colour, marker)) in enumerate(zip(curves.items(), LOOKS, strict=True)):
            medians = np.array([spread.median for spread in spreads])
            low, high = (np.array([getattr(spread, end) for spread in spreads]) for end in ("low", "high"))
            line = axes.errorbar(
                n, medians, yerr=(medians - low, high - medians), color=colour, marker=marker, label=name, capsize=2
            )
            handles.append(line)
            if place in shapes:
                grown = medians[0] * shapes[place] / shapes[place][0]
                label = "like √N" if place == 1 else "like log N"
                handles += axes.plot(n, grown, color=colour, linestyle="--", linewidth=0.9, label=f"   {label}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
        axes.set_xlabel("arms, N (logarithmic)")
        axes.set_ylabel("microseconds per step (logarithmic)")
        axes.legend(handles=handles, loc="upper left", frameon=False)
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
