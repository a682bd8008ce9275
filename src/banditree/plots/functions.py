"""Draw a function of one or two variables, with arms at their positions, by cluster."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from banditree.base.arrays import Floats, Places
from banditree.plots.lines import add_legend, new_axes
from banditree.plots.style import BLACK, BLUE, GREY, ORANGE, house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def function(
    f: Callable[[Floats], Floats], places: Floats, labels: Places, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw the expected reward ``f`` on [0, 1] or [0, 1]^2, and arms at ``places``, (arms,) or (arms, 2).

    ``labels`` is the cluster of each arm: (arms,). In one dimension neighbouring clusters alternate in colour; in two,
    a thin line joins each arm to the centre of its cluster. Returns the Axes.
    """
    with house_style():
        ax = new_axes() if ax is None else ax
        if places.ndim == 1:
            _on_a_line(ax, f, places, labels)
        else:
            _on_a_plane(ax, f, places, labels)
        if title is not None:
            ax.set_title(title)
    return ax


def _on_a_line(ax: Axes, f: Callable[[Floats], Floats], places: Floats, labels: Places) -> None:
    x = np.linspace(0.0, 1.0, 1001)  # (points,)
    ax.plot(x, f(x), color=GREY, label="f(x)", zorder=1)
    left_to_right = sorted(set(labels.tolist()), key=lambda label: places[labels == label].mean())
    for i, label in enumerate(left_to_right):
        at = places[labels == label]
        name = ("arms", "arms of every\nsecond cluster", "")[min(i, 2)]
        ax.scatter(at, f(at), s=16, color=(BLUE, ORANGE)[i % 2], marker="os"[i % 2], label=name or None, zorder=2)
    ends = [(places[labels == label].min(), places[labels == label].max()) for label in left_to_right]
    for (_, end), (start, _) in pairwise(ends):
        ax.axvline((end + start) / 2, color=GREY, linewidth=0.6, linestyle=":")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="position of the arm x", ylabel="expected reward f(x)")
    add_legend(ax)


def _on_a_plane(ax: Axes, f: Callable[[Floats], Floats], places: Floats, labels: Places) -> None:
    side = np.linspace(0.0, 1.0, 201)  # (points,)
    values = f(np.stack(np.meshgrid(side, side), axis=-1))  # (points, points)
    image = ax.imshow(values, extent=(0, 1, 0, 1), origin="lower", cmap="cividis", interpolation="bilinear")
    for label in sorted(set(labels.tolist())):
        at = places[labels == label]  # (arms of the cluster, 2)
        centre = at.mean(axis=0)
        for x, y in at:
            ax.plot([centre[0], x], [centre[1], y], color="white", linewidth=0.5, alpha=0.7)
        ax.scatter(at[:, 0], at[:, 1], s=7, color="white", edgecolors=BLACK, linewidths=0.4, zorder=2)
    ax.grid(visible=False)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="position of the arm x₁", ylabel="x₂")
    ax.figure.colorbar(image, ax=ax, label="expected reward f(x₁, x₂)")
