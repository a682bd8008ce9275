"""Draw regret as lines: over time with bands, or at the horizon against a parameter with error bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from os.path import commonprefix
from textwrap import fill
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from banditree.base.arrays import Array, Floats
from banditree.base.words import cell_width, chop, count, visible
from banditree.errors import InvalidValue
from banditree.errors.checks import choice
from banditree.plots.style import GREY, Look, house_style, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from banditree.simulation.runs import Runs

Line = tuple[Sequence[float], Sequence[float], Sequence[float]]  # x, mean, half the length of the bar
SIZE_INCHES = (6.4, 3.8)  # inches
BANDS = {"sd": "1 sd", "se": "1 se", "interval": "95% interval"}  # words for a band after "mean ±"
LEGENDS = "beside", "below"
MAX_LABEL = 24  # columns of a name, of which a wide character takes two
NARROW_INCHES = 3.6  # axes narrower than this, such as those of a paper's column, have small type and the legend below
SMALL_POINTS = 8.0
SMALL_LEGEND = {"fontsize": SMALL_POINTS, "title_fontsize": SMALL_POINTS, "handlelength": 1.5}


def regret(
    runs: Runs,
    *,
    ax: Axes | None = None,
    band: str | None = "sd",
    log_time: bool = False,
    bounds: bool = False,
    title: str | None = None,
    legend: str | None = None,
) -> Axes:
    """Draw mean cumulative regret over time for every policy, as `Runs.plot` does. Returns the Axes.

    Parameters
    ----------
    runs
        What `simulate` returns.
    ax
        The Axes to draw on; without it a new figure is made.
    band
        "sd" or "se" over seeds, "interval" for a 95% interval of the mean, or None.
    log_time
        Whether the time axis is logarithmic.
    bounds
        Whether to add the paper's bounds, for a problem whose instance is the same for all seeds.
    title
        Above the axes.
    legend
        "beside" or "below" the axes; by default below those that are narrow, as in a paper's column.
    """
    if legend is not None:
        choice("legend", legend, LEGENDS)
    if band is not None:
        choice("band", band, tuple(BANDS))
    curves = _bounds(runs) if bounds else {}
    with house_style():
        ax = new_axes() if ax is None else ax
        order = sorted(runs.regret, key=lambda name: -float(runs.regret[name][:, -1].mean()))
        styles = looks(runs.regret, runs.built)
        for i, (name, short) in enumerate(zip(order, labels(order), strict=True)):
            over, look = runs.over_seeds(name), styles[name]
            # Ten markers per line, shifted from line to line so that they do not hide each other.
            every = max(1, len(runs.times) // 10)
            markers = {"marker": look.marker, "markevery": (i * every // max(1, len(order)), every)}
            spread = None if band is None or over.seeds == 1 else over.half_width(band)
            draw_mean(ax, short, look, runs.times, over.mean, spread, **markers)
        for (name, curve), dashes in zip(curves.items(), ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1))), strict=False):
            ax.plot(runs.times, curve, linestyle=dashes, color=GREY, label=name)
        if log_time:
            ax.set_xscale("log")
        else:
            ax.set_xlim(0, runs.times[-1])
            ax.locator_params(axis="x", nbins=min(6, max(2, int(1.7 * _inches(ax)))))  # room for labels such as 17,500
            ax.xaxis.set_major_formatter(_tick)
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(_tick)
        ax.set(
            xlabel="time t (steps)", ylabel="cumulative regret (reward)", **({} if title is None else {"title": title})
        )
        shown = "" if len(runs.seeds) == 1 else f"mean ± {BANDS[band]},\n" if band else "mean,\n"
        shown += count(len(runs.seeds), "seed") + ("; bounds\nare for large t" if curves else "")
        add_legend(ax, legend, title=shown)
    return ax


def sweep(
    series: Mapping[str, Line],
    *,
    x_label: str,
    y_label: str,
    seeds: int,
    ax: Axes | None = None,
    title: str | None = None,
    ordered: bool = False,
    band: str | None = "sd",
    log: bool = False,
) -> Axes:
    """Draw lines with error bars. Returns the Axes.

    Parameters
    ----------
    series
        ``{name: (x, mean, half the length of the bar)}``.
    x_label, y_label, title
        Texts of the picture.
    seeds
        How many seeds the means are over, for the legend.
    ax
        The Axes to draw on; without it a new figure is made.
    ordered
        Whether the names are sizes rather than policies; lines are then shaded from dark to light.
    band
        What the bars show, for the legend: "sd", "se", "interval", or None for no bars.
    log
        Whether the horizontal axis is logarithmic.
    """
    if band is not None:
        choice("band", band, tuple(BANDS))
    with house_style() as matplotlib:
        ax = new_axes() if ax is None else ax
        styles = _shades(matplotlib, list(series)) if ordered else looks(series)
        positions = sorted({x for xs, _, _ in series.values() for x in xs})
        # Lines are shifted a little, so that error bars at the same x do not hide each other.
        gap = min((b - a for a, b in pairwise(positions)), default=0.0)
        apart = min(0.07 * gap, 0.006 * (positions[-1] - positions[0])) if not ordered else 0.3 * gap / len(series)
        shown = labels(list(series))
        for i, (name, (xs, mean, sd)) in enumerate(series.items()):
            look, shift = styles[name], (i - (len(series) - 1) / 2) * apart
            at = np.asarray(xs) if log else np.asarray(xs) + shift
            ax.errorbar(at, mean, yerr=None if band is None else sd, color=look.color, marker=look.marker,
                        linestyle=look.dashes, label=shown[i], capsize=2.5, elinewidth=1.0)  # fmt: skip
        _start_at_zero(ax, series.values())
        ax.set(xlabel=x_label, ylabel=y_label, **({} if title is None else {"title": title}))
        if log:
            ax.set_xscale("log")
            ax.set_xticks(positions, map(_tick, positions))
            ax.minorticks_off()
        if ordered:
            ax.locator_params(axis="x", integer=True)
        measure = f"mean ± {BANDS[band]}" if band else "mean"
        add_legend(ax, title=f"{measure},\n{count(seeds, 'seed')}", reverse=ordered)
    return ax


def panels(
    series: Sequence[Mapping[str, Line]],
    *,
    titles: Sequence[str],
    ticks: Sequence[str] | None = None,
    in_window: bool = True,
    figsize: tuple[float, float] | None = None,
    **words: Any,
) -> Any:
    """Draw several `sweep` pictures side by side on one scale, which holds the data of all of them.

    Parameters
    ----------
    series
        The lines of each picture, as `sweep` takes them.
    titles
        One per picture.
    ticks
        Labels of x = 0, 1, ...
    in_window
        Whether notebooks and ``pyplot.show`` show the figure; otherwise it is only written to a file.
    figsize
        Width and height of the whole figure in inches.
    words
        The other options of `sweep`.

    Returns
    -------
    The Axes, or an array of them.
    """
    columns = 2 if len(series) == 4 else min(len(series), 3)
    rows = -(-len(series) // columns)
    usual = SIZE_INCHES if len(series) == 1 else (SIZE_INCHES[0] * columns * 0.8, SIZE_INCHES[1] * rows)
    with house_style():
        figure = _new_figure(figsize or usual, in_window=in_window)
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for ax in grid.flat[len(series) :]:
        ax.set_visible(False)
    axes = list(grid.flat[: len(series)])
    for ax, lines, title in zip(axes, series, titles, strict=True):
        sweep(lines, ax=ax, **({"title": title or None} | words))
        if ticks is not None:
            ax.set_xticks(range(len(ticks)), ticks)
    axes[0].autoscale(axis="y")  # `sweep` has set the lower end, and with it the upper one for all
    _start_at_zero(axes[0], [line for lines in series for line in lines.values()])
    if len(axes) > 1:  # one legend and one name of each axis serve all
        _share_words(figure, axes, words["y_label"])
    return axes[0] if len(axes) == 1 else np.array(axes, object)


def _share_words(figure: Figure, axes: Sequence[Any], y_label: str) -> None:
    """Give the panels one legend and one name of the vertical axis, and name horizontal axes only below."""
    handles, names = axes[-1].get_legend_handles_labels()
    title = axes[-1].get_legend().get_title().get_text()
    options: dict[str, Any] = {"loc": "outside right upper"}
    if _is_narrow(axes[0]):
        title = title.replace("\n", " ")
        options = {"loc": "outside lower left", "ncols": _legend_columns(figure.get_figwidth(), names)} | SMALL_LEGEND
    for ax in axes:
        ax.get_legend().remove()
        ax.set(ylabel="", **({} if ax.get_subplotspec().is_last_row() else {"xlabel": ""}))
    figure.supylabel(y_label, fontsize=SMALL_POINTS if _is_narrow(axes[0]) else "medium")
    figure.legend(handles, names, title=title, alignment="left", frameon=False, **options)


def _start_at_zero(ax: Axes, lines: Iterable[Line]) -> None:
    """Let the vertical axis start at 0, if no error bar of the lines, (x, mean, sd), goes below."""
    if all(low >= 0 for _, mean, sd in lines for low in np.subtract(mean, sd)):
        ax.set_ylim(bottom=0)


def _new_figure(size: tuple[float, float], *, in_window: bool) -> Figure:
    if in_window:
        from matplotlib import pyplot

        return pyplot.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def new_axes() -> Axes:
    """Return the axes of a new figure, which notebooks and ``pyplot.show`` show."""
    return _new_figure(SIZE_INCHES, in_window=True).subplots()


def sheet(width: float = SIZE_INCHES[0], height: float = SIZE_INCHES[1]) -> Axes:
    """Return the axes of a new figure that is only written to a file: it has no window and need not be closed."""
    with house_style():
        return _new_figure((width, height), in_window=False).subplots()


def add_legend(ax: Any, where: str | None = None, *, title: str | None = None, **options: object) -> None:
    """Put the legend beside or below the axes if the layout makes room for it, else where it covers least.

    Without ``where`` it is below narrow axes, which also get small type.
    """
    from matplotlib.transforms import ScaledTranslation

    narrow, figure = _is_narrow(ax), ax.get_figure()
    where = where or ("below" if narrow else "beside")
    place: dict[str, object] = {"loc": "best"}
    if figure.get_layout_engine() is not None:
        place = {"loc": "upper left", "borderaxespad": 0.0, "bbox_to_anchor": (1.01, 1.0)}
        if where == "below":  # as far down as ticks and the name of the axis reach, however high the axes are
            down = ScaledTranslation(0.0, -0.42 if narrow else -0.5, figure.dpi_scale_trans)
            columns = _legend_columns(_inches(ax), ax.get_legend_handles_labels()[1])
            place |= {"bbox_to_anchor": (0.0, 0.0), "bbox_transform": ax.transAxes + down, "ncols": columns}
            title = title and title.replace("\n", " ")
    if narrow:
        options |= SMALL_LEGEND
        ax.tick_params(labelsize=SMALL_POINTS)
        ax.xaxis.label.set_fontsize(SMALL_POINTS)
        box, letter = ax.get_position(), 0.6 * SMALL_POINTS / 72  # the width of a letter, in inches
        high = int(0.75 * box.height * figure.get_figheight() / letter)
        wide = int(box.width * figure.get_figwidth() / letter)
        ax.set_ylabel(fill(ax.get_ylabel(), max(10, high)), fontsize=SMALL_POINTS)
        ax.set_title(fill(ax.get_title(loc="left"), max(10, wide)), loc="left", fontsize=SMALL_POINTS)
    ax.legend(**place, **options, title=title, alignment="left")


def _legend_columns(inches: float, names: Sequence[str]) -> int:
    """Return how many columns of a legend fit into this width; there are at most three."""
    return max(1, min(3, int(inches / (0.48 + 0.07 * max(map(cell_width, names), default=0)))))


def _inches(ax: Any) -> float:
    """Return the width of axes in inches, as it is before the layout makes room for words."""
    return float(ax.get_position().width * ax.get_figure().get_figwidth())


def _is_narrow(ax: Axes) -> bool:
    return _inches(ax) < NARROW_INCHES


def _tick(value: float, _: float | None = None) -> str:
    """Format a number on an axis: 10,000 or 2.5M."""
    return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value:,.0f}" if value == round(value) else f"{value:g}"


def label(name: str) -> str:
    """Shorten a long name in the middle, so that a picture has room for its axes, and escape it.

    Matplotlib reads dollars as formulas, and leaves out labels that begin with an underscore.

    >>> label("The Adventures of Priscilla, Queen of the Desert (1994)")
    'The Adventures … t (1994)'
    """
    name = visible(name)
    if cell_width(name) > MAX_LABEL:
        start, end = chop(name, 2 * MAX_LABEL // 3 - 1)[0], chop(name[::-1], MAX_LABEL // 3)[0][::-1]
        name = f"{start.rstrip()} … {end.lstrip()}"
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def labels(names: Sequence[str]) -> list[str]:
    """Shorten names; those that would look the same start at the word in which they first differ.

    >>> labels(["A shirt for long winter nights, S, of wool", "A shirt for long winter nights, M, of wool", "A hat"])
    ['… S, of wool', '… M, of wool', 'A hat']
    """
    shared: dict[str, set[str]] = {}
    for name in names:
        shared.setdefault(label(name), set()).add(name)
    starts = {short: len(commonprefix([*group])) for short, group in shared.items() if len(group) > 1}  # noqa: RUF071
    return [
        label(f"… {name[name.rfind(' ', 0, starts[short]) + 1 :]}") if short in starts else short
        for name, short in zip(names, map(label, names), strict=True)
    ]


def draw_mean(ax: Axes, short: str, look: Look, x: Array, mean: Floats, spread: Floats | None, **options: Any) -> None:
    """Draw the line of a policy, by its label, and a band of ``spread`` around it."""
    ax.plot(x, mean, look.dashes, color=look.color, label=short, **options)
    if spread is not None:
        ax.fill_between(x, mean - spread, mean + spread, color=look.color, alpha=0.13, linewidth=0)


def _shades(matplotlib: ModuleType, names: Sequence[str]) -> dict[str, Look]:
    """Shade from dark to light in viridis, which all kinds of colour vision can tell apart, without the palest end."""
    colors = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(names)))  # (names, 4)
    return {
        name: Look(matplotlib.colors.to_hex(color), "os^vDPX*"[i % 8])
        for i, (name, color) in enumerate(zip(names, colors, strict=True))
    }


def _bounds(runs: Any) -> dict[str, Floats]:
    from banditree import theory
    from banditree.problems import Bernoulli

    instance = runs.instance
    if not isinstance(getattr(instance, "rewards", None), Bernoulli) or instance.means is None:
        raise InvalidValue(
            "bounds=True needs one instance for all seeds, with rewards of 0 or 1 and known means, such as that of "
            "bt.problems.bernoulli(tree, means), and runs that were not read from a file"
        )
    return theory.bound_curves(instance.tree, instance.means, runs.times)
