"""Colours that colour-blind readers can tell apart (Okabe and Ito), and plain axes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.contestants import NUMPY, OURS, READABLE

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
