"""The picture of docs/robustness.md that shows all ratios at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.pages.robustness_numbers import Point

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def draw_ratios(groups: Mapping[str, Sequence[Point]], path: Path) -> None:
    """Draw one dot per world and time: how much regret ATS has beside TS, and beside the best of the others."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    axes = figure.subplots()
    low, high = 0.05, 4.0
    for colour, (name, points) in zip(COLOURS, groups.items(), strict=False):
        x = [min(max(point.to_flat.value, low), high) for point in points]
        y = [min(max(point.to_best.value, low), high) for point in points]
        axes.scatter(x, y, s=26, color=colour, alpha=0.75, linewidths=0, label=f"{name} ({len(points)})")
    axes.axvline(1, color="0.4", linewidth=1)
    axes.axhline(1, color="0.4", linewidth=1)
    axes.fill_between([low, 1], low, 1, color="#009E73", alpha=0.07, linewidth=0)
    axes.set(xscale="log", yscale="log", xlim=(low * 0.9, high), ylim=(0.25, high))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.FixedLocator([0.1, 0.25, 0.5, 1, 2, 4]))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("regret of ATS over that of TS")
    axes.set_ylabel("regret of ATS over that of the best of the others")
    axes.text(low, 0.27, "  better than all", color="#00704f", va="bottom")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
