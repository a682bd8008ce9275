"""How long a library takes to be there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report.style import BLUE, ORANGE, figure, plain_log
from benchmarks.timing import Spread
from benchmarks.words import figures


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
