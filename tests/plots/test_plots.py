"""Pictures show the numbers, policies always look the same, and nothing covers anything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import banditree as bt
from banditree import plots
from banditree.errors import InvalidValue, MissingExtra
from banditree.paper.figures import DEFAULT, FIGURES
from banditree.paper.pictures import axes, draw, is_drawn
from banditree.plots import files
from banditree.plots.style import SPARE
from banditree.problems import functions

TREE = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]})
MEANS = [0.2, 0.3, 0.7, 0.8]
ALL = [(name, variant) for name, figure in FIGURES.items() for variant in figure.variants]


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def runs() -> bt.Runs:
    return bt.simulate([bt.TS, bt.TSC], bt.problems.bernoulli(TREE, MEANS), horizon=60, seeds=4)


def made_up(names: list[str], n_seeds: int = 6, horizon: int = 100) -> bt.Runs:
    """Runs with regret that grows at random, for pictures."""
    rng = np.random.default_rng(0)
    regret = {name: rng.gamma(2.0, size=(n_seeds, horizon)).cumsum(axis=1) for name in names}
    nothing: dict[str, Any] = dict.fromkeys(names)
    return bt.Runs(
        times=np.arange(1, horizon + 1), seeds=tuple(range(n_seeds)), regret=regret, engine=nothing,
        evaluations=nothing, seconds=nothing, clusters=nothing, plays={}, arms=(), problem="made up",
    )  # fmt: skip


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_are_means_and_the_legend_is_in_their_order(runs: bt.Runs) -> None:
    ax = runs.plot(title="two policies")
    result = lines(ax)
    for name, regret in runs.regret.items():
        assert np.array_equal(result[name].get_xdata(), runs.times)
        assert result[name].get_ydata() == pytest.approx(regret.mean(axis=0))
        assert to_hex(result[name].get_color()) == plots.LOOKS[name].color.lower()
        assert result[name].get_marker() == plots.LOOKS[name].marker
    assert legend(ax) == sorted(runs.regret, key=lambda name: -runs.regret[name][:, -1].mean())
    assert ax.get_legend().get_title().get_text() == "mean ± 1 sd,\n4 seeds"
    assert ax.get_title(loc="left") == "two policies"
    assert ax.get_xlabel() == "time t (steps)"
    assert ax.get_ylabel() == "cumulative regret (reward)"


@pytest.mark.parametrize(("band", "scale"), [("sd", 1.0), ("se", 0.5), ("interval", 3.182446 / 2)])
def test_bands_are_one_deviation_or_one_error_or_an_interval(runs: bt.Runs, band: str, scale: float) -> None:
    ax = runs.plot(band=band)
    order = legend(ax)
    for name, area in zip(order, ax.collections, strict=True):
        mean, sd = runs.regret[name].mean(axis=0), runs.regret[name].std(axis=0, ddof=1)
        at_end = area.get_paths()[0].vertices
        at_end = at_end[at_end[:, 0] == runs.times[-1]][:, 1]
        assert at_end.max() == pytest.approx(mean[-1] + scale * sd[-1])
        assert at_end.min() == pytest.approx(mean[-1] - scale * sd[-1])


def test_no_band_without_one_or_with_one_seed(runs: bt.Runs) -> None:
    assert len(runs.plot(band=None).collections) == 0
    ax = plots.regret(made_up(["TS"], n_seeds=1))
    assert len(ax.collections) == 0
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "1 seed"


def test_long_times_are_written_out_or_in_millions() -> None:
    ax = plots.regret(made_up(["TS"]))
    for value, text in (
        (0, "0"),
        (1500, "1,500"),
        (999_999, "999,999"),
        (2.5e6, "2.5M"),
        (20e6, "20M"),
        (0.25, "0.25"),
    ):
        assert ax.xaxis.get_major_formatter()(value) == text
        assert ax.yaxis.get_major_formatter()(value) == text


def test_time_can_be_logarithmic(runs: bt.Runs) -> None:
    assert runs.plot(log_time=True).get_xscale() == "log"
    assert runs.plot().get_xscale() == "linear"


def test_bounds_of_a_fixed_instance(runs: bt.Runs) -> None:
    ax = runs.plot(bounds=True)
    result = lines(ax)
    curves = bt.theory.bound_curves(TREE, MEANS, runs.times)
    assert len(curves) == 3
    for name, curve in curves.items():
        assert result[name].get_ydata() == pytest.approx(curve)
        assert name in legend(ax)
    assert len({str(result[name].get_linestyle()) for name in curves}) == len(curves)
    assert "for large t" in ax.get_legend().get_title().get_text()


def test_bounds_need_one_instance_with_means() -> None:
    drawn_anew = bt.simulate([bt.TS], bt.problems.unstructured(6, 2), horizon=5, seeds=1)
    with pytest.raises(InvalidValue, match="one instance for all seeds, with rewards of 0 or 1"):
        drawn_anew.plot(bounds=True)
    problem = bt.problems.linear_from(bt.Tree(2), [[1.0, 0.0], [0.0, 1.0]])
    contexts = bt.simulate({"LinTS": lambda tree, rng: bt.LinTS(tree, dim=2, rng=rng)}, problem, horizon=5, seeds=1)
    with pytest.raises(InvalidValue, match="one instance for all seeds, with rewards of 0 or 1"):
        contexts.plot(bounds=True)


def test_an_unknown_band_is_refused_before_anything_is_drawn(runs: bt.Runs) -> None:
    with pytest.raises(InvalidValue, match="band='range' must be one of 'sd', 'se'"):
        runs.plot(band="range")
    assert pyplot.get_fignums() == []


def test_axes_of_the_users_own_keep_their_figure_and_settings(runs: bt.Runs) -> None:
    before = dict(pyplot.rcParams)
    figure, (left, right) = pyplot.subplots(1, 2)
    assert runs.plot(ax=right) is right
    assert left.get_legend() is None
    box = right.get_legend().get_window_extent()
    assert right.get_window_extent().contains(box.x0, box.y0)  # no layout makes room beside: it goes inside
    assert pyplot.get_fignums() == [figure.number]
    assert dict(pyplot.rcParams) == before


def test_every_policy_has_a_look_of_its_own() -> None:
    assert set(bt.ALGORITHMS) <= set(plots.LOOKS)
    seen = [(look.color, look.marker) for look in plots.LOOKS.values()]
    assert len(set(seen)) == len(seen)
    for takes_contexts in (False, True):
        names = [name for name, kind in bt.ALGORITHMS.items() if kind.about.takes_contexts == takes_contexts]
        assert len({plots.LOOKS[name].color for name in names}) == len(names)


def test_policies_we_do_not_know_get_what_is_free() -> None:
    result = plots.looks(["TSC", "mine", "yours", "TS"])
    assert result["TS"] == plots.LOOKS["TS"]
    assert len({look.color for look in result.values()}) == 4
    many = plots.looks([f"policy {i}" for i in range(20)])
    assert len({(look.color, look.dashes) for look in many.values()}) == 20
    crowd = plots.looks([*(name for name in plots.LOOKS if plots.LOOKS[name].color in SPARE), "mine"])
    assert crowd["mine"].color in SPARE


def test_depths_of_a_policy_are_shades_of_its_colour() -> None:
    depths = (10, 2, 3, 4, 5, 6, 7)
    built = {f"{kind}(depth={depth})": (kind, {"depth": depth}) for kind in ("HTS", "UCT") for depth in depths}
    alone = plots.looks(["TS", "HTS(depth=2)", "UCT(depth=2)"], built)
    assert [alone[name] for name in alone] == [plots.LOOKS[name] for name in ("TS", "HTS", "UCT")]
    names = ["TS", "TSC", *(f"HTS(depth={depth})" for depth in depths), "UCT", "UCT(depth=2)"]
    result = plots.looks(names, built)
    assert result["HTS(depth=10)"] == plots.LOOKS["HTS"]
    assert result["UCT"] == plots.LOOKS["UCT"]
    assert len({look.color for look in result.values()}) == len(names)
    shades = [int(result[f"HTS(depth={depth})"].color[1:3], 16) for depth in (10, 7, 6, 5, 4, 3, 2)]
    assert shades == sorted(set(shades))  # the shallower, the paler
    assert result["UCT(depth=2)"].dashes == "--"
    assert plots.looks(["mine"], {"mine": ("Mine", {"depth": 2})})["mine"].color in SPARE


def test_sweep_draws_means_and_error_bars_of_one_deviation() -> None:
    series = {"TS": ([1.0, 2.0, 4.0], [5.0, 6.0, 9.0], [1.0, 0.5, 2.0]), "TSC": ([1.0, 2.0], [3.0, 2.0], [0.25, 0.75])}
    ax = plots.sweep(series, x_label="arms", y_label="regret", seeds=50)
    assert legend(ax) == ["TS", "TSC"]
    for (name, (x, mean, sd)), drawn_bars in zip(series.items(), ax.containers, strict=True):
        line, _, (bars,) = drawn_bars
        assert line.get_ydata() == pytest.approx(mean)
        assert line.get_xdata() == pytest.approx(x, abs=0.04)  # moved too little to be mistaken for another value
        assert to_hex(line.get_color()) == plots.LOOKS[name].color.lower()
        ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
        assert ends == [[m - s, m + s] for m, s in zip(mean, sd, strict=True)]
    assert ax.get_ylim()[0] == 0
    below = plots.sweep({"TS": ([1.0, 2.0], [1.0, 1.0], [2.0, 0.0])}, x_label="x", y_label="y", seeds=2)
    assert below.get_ylim()[0] < -1


@pytest.mark.parametrize("band", ["sd", "se", "interval", None])
def test_bars_of_a_sweep_are_chosen_and_its_axis_may_be_logarithmic(band: str | None) -> None:
    made = bt.sweep({"n": [2, 20, 200]}, lambda n: bt.problems.bernoulli(bt.Tree(n), [0.5, 0.4] * (n // 2)),
                    [bt.TS], horizon=50, seeds=4)  # fmt: skip
    ax = made.plot(band=band, log=True)
    assert ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "20", "200"]
    (bars,) = ax.containers
    if band is None:
        assert not bars.has_yerr
        return
    scale = {"sd": 1.0, "se": 0.5, "interval": 3.182446 / 2}[band]
    final = made.runs[-1].regret["TS"][:, -1]
    low, high = bars[2][0].get_segments()[-1][:, 1]
    assert (high - low) / 2 == pytest.approx(scale * final.std(ddof=1))
    with pytest.raises(InvalidValue, match="band"):
        made.plot(band="bootstrap")


def overlaps(ax: Any) -> list[str]:
    """What covers something else, or sticks out of the picture."""
    figure = ax.get_figure()
    figure.draw_without_rendering()
    result = []
    if ax.get_legend() is not None and ax.get_legend().get_window_extent().overlaps(ax.get_window_extent()):
        result.append("legend")
    texts = [ax.xaxis.label, ax.yaxis.label, ax._left_title]
    texts += ax.get_legend().get_texts() if ax.get_legend() else []
    page = figure.bbox.padded(1.0)
    for text in filter(lambda text: text.get_text(), texts):
        box = text.get_window_extent()
        if not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1)):
            result.append(f"{text.get_text()!r} sticks out")
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = [t.label1.get_window_extent() for t in ticks if t.label1.get_visible() and t.label1.get_text()]
        result += [f"tick labels of {axis.axis_name}" for a, b in pairwise(boxes) if a.overlaps(b)]
    return result


@pytest.mark.parametrize("size", [(3.25, 2.4), (3.25, 3.2), (6.4, 3.8)])
def test_nothing_overlaps_in_the_column_of_a_paper(size: tuple[float, float]) -> None:
    names = ["TS", "TSC", "HTS", "UCB1", "UCBC", "ATS"]
    ax = plots.regret(made_up(names, horizon=1000), ax=plots.sheet(*size), band="interval")
    assert overlaps(ax) == []
    box = ax.get_window_extent()
    assert box.width > 0.55 * ax.figure.bbox.width
    assert box.height > 0.4 * ax.figure.bbox.height


@pytest.mark.parametrize(("n_panels", "size"), [(1, (3.25, 2.4)), (2, None), (4, (3.25, 3.4)), (4, None), (5, None)])
def test_panels_of_a_sweep_do_not_collide(n_panels: int, size: tuple[float, float] | None) -> None:
    line = ([20.0, 40.0, 80.0], [50.0, 80.0, 160.0], [5.0, 8.0, 20.0])
    words: dict[str, Any] = {"x_label": "n_arms", "y_label": "cumulative regret at T = 500 (reward)"}
    titles = [f"n_best = 10, distance = 0.{i}" for i in range(n_panels)]
    drawn = plots.panels([{"TS": line, "TSC": line}] * n_panels, titles=titles, seeds=5, figsize=size, **words)
    axes = np.atleast_1d(drawn)
    figure = axes[0].get_figure()
    assert [item for ax in axes for item in overlaps(ax)] == []
    boxes = [ax.get_tightbbox() for ax in axes] + [legend.get_window_extent() for legend in figure.legends]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(ax.get_window_extent().width > 0.2 * figure.bbox.width for ax in axes)


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_every_figure_of_the_paper_is_drawn_and_nothing_overlaps(name: str, variant: str) -> None:
    figure = FIGURES[name]
    settings = figure.settings(variant)
    made = {item.label: made_up(list(item.policies)) for item in settings} if figure.kind != "function" else {}
    ax = axes(figure, variant, made)
    assert overlaps(ax) == []
    title = ax.get_title(loc="left")
    assert title == (figure.title if variant == DEFAULT else f"{figure.title} ({variant})")
    assert pyplot.get_fignums() == []  # a picture for a file opens no window
    if figure.kind == "curves":
        shown = lines(ax)
        assert set(shown) == set(settings[0].policies)
        assert len({line.get_color() for line in shown.values()}) == len(shown)
    elif figure.kind == "sweep":
        shown = {str(bars.get_label()): bars[0] for bars in ax.containers}
        assert set(shown) == ({s.line for s in settings} if name == "1f" else set(settings[0].policies))
        assert len({line.get_color() for line in shown.values()}) == len(shown)
        for label, line in shown.items():
            expected = [s.x for s in settings if not s.line or s.line == label]
            assert line.get_xdata() == pytest.approx(expected, abs=0.02 * (settings[-1].x - settings[0].x))
        final = made[settings[-1].label].regret[list(settings[0].policies)[-1]][:, -1]
        (last,) = [bars for bars in ax.containers if bars.get_label() == (settings[-1].line or "ATS")]
        _, _, (segments,) = last
        low, high = segments.get_segments()[-1][:, 1]
        assert (high - low) / 2 == pytest.approx(final.std(ddof=1))


def test_the_check_of_overlaps_sees_one() -> None:
    ax = plots.regret(made_up(["TS", "TSC"]), ax=plots.sheet(), title="a title " * 20)
    ax.legend(loc="center")
    assert any("title" in item for item in overlaps(ax))
    assert "legend" in overlaps(ax)


def test_a_function_of_one_place_has_its_arms_on_it() -> None:
    places = np.array([0.1, 0.15, 0.5, 0.55, 0.9])
    ax: Any = plots.function(functions.sine, places, np.array([7, 7, 3, 3, 5]), title="f")
    x, y = lines(ax)["f(x)"].get_data()
    assert y == pytest.approx(functions.sine(x))
    arms = np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections])
    assert arms[np.argsort(arms[:, 0])] == pytest.approx(np.stack([places, functions.sine(places)], axis=1))
    colors = [to_hex(dots.get_facecolor()[0]) for dots in ax.collections]
    assert colors[0] == colors[2] != colors[1]
    boundaries = [line.get_xdata()[0] for line in ax.get_lines() if line.get_linestyle() == ":"]
    assert boundaries == pytest.approx([0.325, 0.725])


def test_a_function_of_two_places_is_a_map() -> None:
    places = np.array([[0.1, 0.2], [0.2, 0.2], [0.8, 0.9]])
    ax = plots.function(functions.surface, places, np.array([0, 0, 1]))
    (image,) = ax.get_images()
    values = np.asarray(image.get_array())
    assert values[140, 40] == pytest.approx(functions.surface([0.2, 0.7]))  # rows are x2, columns x1
    arms = np.concatenate([np.asarray(dots.get_offsets()) for dots in ax.collections])
    assert arms == pytest.approx(places)
    assert ax.get_title(loc="left") == ""


def test_files_are_the_same_for_the_same_picture_and_have_text_as_text(tmp_path: Path) -> None:
    figure, made = FIGURES["2a"], {"": made_up(["TS", "TSC"])}
    stem = tmp_path / "2a"
    assert not is_drawn(stem)
    png, svg = draw(figure, DEFAULT, made, stem)
    assert is_drawn(stem)
    first = png.read_bytes(), svg.read_bytes()
    assert first[0].startswith(b"\x89PNG")
    draw(figure, DEFAULT, made, stem)
    assert (png.read_bytes(), svg.read_bytes()) == first
    texts = ["".join(node.itertext()) for node in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"TS", "TSC", "time t (steps)", figure.title} <= set(texts)
    png.unlink()
    assert not is_drawn(stem)


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_one_picture_of_the_kind_that_its_name_says(kind: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"regret.{kind}"
    files.write(plots.regret(made_up(["TS"]), ax=plots.sheet()), path)
    first = path.read_bytes()
    assert first.startswith(start)
    files.write(plots.regret(made_up(["TS"]), ax=plots.sheet()), path)
    assert path.read_bytes() == first
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert pyplot.get_fignums() == []


def test_a_picture_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    for name in ("regret.nonsense", "regret"):
        with pytest.raises(InvalidValue, match=r"must end in one of \.png, \.svg, \.pdf"):
            files.write(plots.sheet(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_error_names_the_extra(runs: bt.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"'\.\[plot\]'"):
        runs.plot()


TITLES = [f"The Adventures of Priscilla, Queen of the Desert, director's cut ({1980 + i})" for i in range(40)]


WIDE = [f"商品カテゴリの非常に長い名前が続く場合の表示を確かめるための文字列 {i}" for i in range(40)]
BROKEN = [f"one\nline\tand\r\nanother of {i}, and some more of it" for i in range(40)]


@pytest.mark.parametrize("kind", ["support", "intervals", "regret", "regret below"])
@pytest.mark.parametrize("titles", [TITLES, WIDE, BROKEN], ids=["long", "wide", "broken"])
@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # whether a font has them is not ours to say
def test_long_names_leave_room_for_the_picture(kind: str, titles: list[str]) -> None:
    """Names of 70 characters: no warning of Matplotlib's, which is an error here, axes of some size, labels inside."""
    rng = np.random.default_rng(0)
    ax: Any
    if kind == "support":
        ax = plots.support(titles, rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(40)), ax=plots.sheet())
    elif kind == "intervals":
        values, errors = rng.random(6).tolist(), rng.random(6).tolist()
        ax = plots.intervals(titles[:6], values, errors, reference=(0.5, 0.1), ax=plots.sheet(height=3.0))
    else:
        problem = bt.problems.bernoulli(bt.Tree(3), [0.1, 0.2, 0.3])
        runs = bt.simulate(dict.fromkeys(titles[:4], bt.TS), problem, horizon=50, seeds=2)
        ax = plots.regret(runs, ax=plots.sheet(4.8, 4.4), legend="below" if "below" in kind else "beside")
    ax.figure.draw_without_rendering()
    box, figure = ax.get_window_extent(), ax.figure.bbox
    assert box.width > 0.25 * figure.width
    assert box.height > 0.25 * figure.height
    for text in (*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.get_legend().get_texts()):
        extent = text.get_window_extent()
        assert extent.x0 >= figure.x0 - 1
        assert extent.y0 >= figure.y0 - 1
        assert extent.x1 <= figure.x1 + 1
    names = [text.get_text() for text in (ax.get_xticklabels() if kind == "support" else ax.get_legend().get_texts())]
    assert len(set(names)) == len(names), "no two look the same"
    assert not any(sign in name for name in names for sign in "\n\r\t")


def test_a_page_says_nothing_about_fonts_that_this_machine_lacks() -> None:
    """The text of an SVG picture is drawn with the fonts of whoever looks at it."""
    assert "商品" in plots.svg(plots.intervals(["商品"], [0.5], [0.1], ax=plots.sheet()))


def test_no_two_policies_look_alike() -> None:
    looks = [plots.LOOKS[name] for name in bt.ALGORITHMS]
    assert len(set(looks)) == len(looks)
    assert plots.LOOKS["ATS"].color != plots.LOOKS["LinATS"].color
