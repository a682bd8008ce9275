"""Pictures of the stepwise cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.report.style import BLUE, GREY, colour, figure, plain_log
from benchmarks.words import micro

if TYPE_CHECKING:
    from benchmarks.sections.steps import Cell


def draw_times(heading: str, cells: Sequence[Cell], path: Path) -> None:
    """A row a contestant and algorithm: a dot at the median, a line over the middle half, the number beside it."""
    with figure(path, 8.0, 0.9 + 0.24 * len(cells)) as axes:
        for place, cell in enumerate(cells):
            spread = cell.time * 1e6
            axes.plot([spread.low, spread.high], [place, place], color=colour(cell.who), linewidth=2)
            axes.plot(spread.median, place, "o", color=colour(cell.who), markersize=6)
            axes.annotate(
                micro(cell.time.median),
                (spread.high, place),
                (7, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(cells)), [f"{cell.algorithm}   {cell.who}" for cell in cells])
        for place in range(1, len(cells)):
            if cells[place].algorithm != cells[place - 1].algorithm:
                axes.axhline(place - 0.5, color="0.85", linewidth=0.8)
        axes.set_ylim(len(cells) - 0.4, -0.6)
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        axes.margins(x=0.12)
        axes.set_xlabel("microseconds per step, choose and update (logarithmic)")
        axes.set_title(heading, loc="left")
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)


def draw_regret(heading: str, cells: Sequence[Cell], blind: float, path: Path) -> None:
    """Time against regret: down and left is better. Names stand in a column of their own, so they never overlap."""
    shown = [cell for cell in cells if cell.who not in (NUMPY, READABLE) and cell.regrets and cell.stopped_at is None]
    shown.sort(key=lambda cell: cell.regret[0])
    if not shown:
        return
    with figure(path, 8.0, 1.6 + 0.26 * max(len(shown), 8)) as axes:
        heights = [cell.regret[0] for cell in shown]
        top = max(*heights, blind) * 1.1
        axes.axhline(blind, color="0.4", linestyle=":", linewidth=1)
        axes.annotate(
            "choosing at random", (0.01, blind / top + 0.01), xycoords="axes fraction", fontsize=8, color="0.4"
        )
        times = [cell.time.median * 1e6 for cell in shown]
        for cell, x, y in zip(shown, times, heights, strict=True):
            error = cell.regret[1]
            axes.errorbar(
                x, y, yerr=None if np.isnan(error) else error, fmt="o", color=colour(cell.who), markersize=6, capsize=2
            )
        axes.set_xscale("log")
        low, high = min(times) / 2, max(times) * 2
        axes.set_xlim(low, high)
        axes.set_ylim(0, top)
        slots = _spaced(heights, top * 0.05, top)
        for cell, x, y, slot in zip(shown, times, heights, slots, strict=True):
            ours = cell.who == OURS
            axes.annotate(
                f"{cell.algorithm}, {cell.who}",
                xy=(x, y),
                xytext=(1.03, slot / top),
                textcoords="axes fraction",
                va="center",
                fontsize=8,
                color=BLUE if ours else "0.2",
                fontweight="bold" if ours else "normal",
                arrowprops={"arrowstyle": "-", "color": BLUE if ours else GREY, "linewidth": 0.5, "alpha": 0.6},
                annotation_clip=False,
            )
        plain_log(axes.xaxis)
        axes.set_xlabel("microseconds per step (logarithmic)")
        axes.set_ylabel("expected regret at the end")
        axes.set_title(heading, loc="left")
        axes.grid(color="0.92")
        axes.set_axisbelow(True)


def _spaced(wanted: Sequence[float], gap: float, top: float) -> list[float]:
    """Heights near the wanted ones, which ascend, at least ``gap`` apart and below ``top``."""
    found: list[float] = []
    for height in wanted:
        found.append(max(height, found[-1] + gap) if found else height)
    ceiling = top
    for place in reversed(range(len(found))):
        found[place] = min(found[place], ceiling)
        ceiling = found[place] - gap
    return found
