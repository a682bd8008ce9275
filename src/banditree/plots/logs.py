"""Draw results from logs: rewards of a replay, estimates with intervals, weights of rows, support of a target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from banditree.base.arrays import Floats
from banditree.base.intervals import normal_interval
from banditree.base.words import count
from banditree.plots.lines import add_legend, draw_mean, labels, new_axes
from banditree.plots.style import BLUE, GREY, ORANGE, house_style, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from banditree.ope.rejection import Replay

MAX_ARMS = 30  # the most arms in a picture


def rewards(replay: Replay, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the mean reward so far over accepted rows, as `Replay.plot` does, with bands of one sd. Returns the Axes."""
    with house_style():
        ax = new_axes() if ax is None else ax
        styles, orders = looks(replay.curves), replay.orders
        over = {name: replay.over_orders(name) for name in replay.curves}
        order = sorted(over, key=lambda name: -float(over[name].mean[-1]))
        for name, short in zip(order, labels(order), strict=True):
            draw_mean(ax, short, styles[name], replay.times, over[name].mean, over[name].sd if orders > 1 else None)
        ax.set(xlabel="accepted rows", ylabel="mean reward so far", title=title)
        add_legend(ax, title="one order" if orders == 1 else f"mean ± 1 sd,\n{count(orders, 'order')}")
    return ax


def intervals(
    names: Sequence[str],
    values: Sequence[float],
    errors: Sequence[float],
    *,
    reference: tuple[float, float] | None = None,
    spans: Sequence[tuple[float, float]] | None = None,
    faint: Sequence[bool] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw values with 95% intervals, one per name from top to bottom. Returns the Axes.

    ``reference`` is the value and standard error of a baseline, drawn as a line and a band.
    ``spans`` are the ends of the intervals where they are not 1.96 standard errors to either side.
    ``faint`` marks the values whose interval understates the uncertainty, which are drawn as open circles.
    """
    with house_style():
        ax = new_axes() if ax is None else ax
        at = np.arange(len(names))[::-1]
        if reference is not None:
            value, error = reference
            ax.axvspan(*normal_interval(value, error), color=GREY, alpha=0.18, linewidth=0)
            ax.axvline(value, color=GREY, linewidth=1.2, linestyle="--", label="logging policy")
        known = np.isfinite(errors)
        middle = np.asarray(values, float)
        ends = np.array(
            normal_interval(middle, np.asarray(errors, float)) if spans is None else list(zip(*spans, strict=True))
        )
        reach = np.where(known, np.nan_to_num(np.abs(ends - middle)), 0.0)  # (2, names) to the left and to the right
        open_ones = np.zeros(len(names), bool) if faint is None else np.asarray(faint, bool)
        for some, fill in ((~open_ones, BLUE), (open_ones, "white")):
            ax.errorbar(np.asarray(values)[some], at[some], xerr=reach[:, some], fmt="o", color=BLUE, capsize=3,
                        markerfacecolor=fill, elinewidth=1.4, markersize=5)  # fmt: skip
        ax.set_yticks(at, labels(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.set_xlabel("reward per decision, with 95% intervals")
        if reference is not None:
            add_legend(ax)
    return ax


def weights(values: Floats, counts: Floats | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw how much of the total weight the heaviest rows have; ``counts`` rows have each value. Returns the Axes."""
    with house_style():
        ax = new_axes() if ax is None else ax
        order = np.argsort(-values)
        each = np.ones(len(values)) if counts is None else counts[order]
        sums = np.cumsum(values[order] * each)
        shares = sums / sums[-1] if sums[-1] > 0 else np.zeros(len(sums))
        rows = np.cumsum(each) / each.sum()
        drawn = np.unique(np.searchsorted(rows, np.linspace(0, 1, 400)).clip(max=len(rows) - 1))
        ax.plot([0, *(100 * rows[drawn])], [0, *(100 * shares[drawn])], color=BLUE, label="this target")
        ax.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1.0, label="equal weights")
        ax.set(xlim=(0, 100), ylim=(0, 102), xlabel="rows, heaviest first (%)", ylabel="share of the weight (%)")
        add_legend(ax)
    return ax


def support(names: Sequence[str], target: Floats, shown: Floats, *, ax: Axes | None = None) -> Axes:
    """Draw the target's probability of each arm beside its share of the log's rows: (arms,) both. Returns the Axes.

    The most likely arms come first; those without rows are marked.
    """
    with house_style():
        ax = new_axes() if ax is None else ax
        order = np.argsort(-target, kind="stable")[:MAX_ARMS]
        at = np.arange(len(order))
        ax.bar(at - 0.2, 100 * target[order], 0.4, color=BLUE, label="target")
        ax.bar(at + 0.2, 100 * shown[order], 0.4, color=GREY, label="rows of the log")
        missing = [i for i, arm in enumerate(order) if shown[arm] == 0 and target[arm] > 0]
        if missing:
            ax.scatter(missing, 100 * target[order][missing], marker="x", color=ORANGE, zorder=3, label="never shown")
        ordered = [str(names[arm]) for arm in order]
        turned = len(order) > 8 or max(map(len, ordered)) > 6
        ax.set_xticks(at, labels(ordered), rotation=90 if turned else 0)
        ax.tick_params(axis="x", labelsize="small")
        ax.grid(visible=False, axis="x")
        ax.set_xlim(-0.7, len(order) - 0.3)
        more = f" (the first {MAX_ARMS} of {len(target):,})" if len(target) > MAX_ARMS else ""
        ax.set(xlabel=f"arm{more}", ylabel="share (%)")
        add_legend(ax)
    return ax
