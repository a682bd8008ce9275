"""The pictures of the benchmarks: times, regret, ratios, growth and cold starts, in one style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.contestants import NUMPY, OURS, READABLE
from benchmarks.page import Spread, Target
from tools.pages.markdown import figures, micro, times

if TYPE_CHECKING:
    from benchmarks.steps import Cell

BLUE, SKY, ORANGE, GREEN, RED, GREY = "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#6b6b6b"


def colour(who: str) -> str:
    return {OURS: BLUE, READABLE: SKY, NUMPY: ORANGE}.get(who, GREY)


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Any]:
    """An axes to draw on; the picture is written when the block ends."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        fig, axes = plt.subplots(figsize=(width, height), layout="constrained")
        yield axes
        fig.savefig(path, dpi=130, metadata={"Software": None})
        plt.close(fig)


def plain_log(axis: Any) -> None:
    """Ticks like 0.1, 1, 1,000 on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


# ---------------------------------------------------------------- steps


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


# ---------------------------------------------------------------- ratios


def draw_targets(targets: Sequence[Target], path: Path) -> None:
    """A bar a case, and a line where the target is."""
    with figure(path, 8.0, 1.0 + 0.34 * len(targets)) as axes:
        for place, target in enumerate(targets):
            ratio = target.measured.median
            axes.barh(place, ratio, color=BLUE if target.met else RED, height=0.6)
            axes.plot([target.goal] * 2, [place - 0.42, place + 0.42], color="black", linewidth=2)
            axes.annotate(
                times(ratio),
                (max(ratio, target.goal), place),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(targets)), [target.what.split(":")[0] for target in targets])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(left=0.5)
        axes.margins(x=0.15)
        plain_log(axes.xaxis)
        axes.set_xlabel("times as fast as a NumPy loop (logarithmic); a black line is the target, a red bar misses it")
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)


# ---------------------------------------------------------------- growth


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


# ---------------------------------------------------------------- cold starts


def draw_cold(spreads: Mapping[str, Sequence[Spread]], path: Path) -> None:
    """Two dots a contestant: imported, and decided once."""
    ordered = sorted(spreads.items(), key=lambda item: item[1][1].median)
    with figure(path, 7.5, 1.1 + 0.34 * len(ordered)) as axes:
        for place, (_, (imported, decided)) in enumerate(ordered):
            first = place == 0
            axes.plot([imported.median, decided.median], [place, place], color="0.7", linewidth=1.5, zorder=1)
            axes.plot(imported.median, place, "o", color=BLUE, label="imported" if first else None)
            axes.plot(decided.median, place, "s", color=ORANGE, label="first decision made" if first else None)
            axes.annotate(
                figures(decided.median),
                (max(imported.median, decided.median), place),
                (8, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
        axes.invert_yaxis()
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        axes.margins(x=0.12)
        axes.set_xlabel("milliseconds (logarithmic)")
        axes.legend(loc="lower left" if len(ordered) < 4 else "upper right", frameon=False)
        axes.grid(axis="x", color="0.92")
        axes.set_axisbelow(True)
