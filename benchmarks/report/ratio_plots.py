"""Ratios beside their targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.findings import Target
from benchmarks.report.style import BLUE, RED, figure, plain_log
from benchmarks.words import times


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
