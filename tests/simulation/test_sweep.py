"""A family of problems: every combination of the parameters, each as `simulate` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import banditree as bt
from banditree.errors import BadFile, InvalidValue

GRID: dict[str, Any] = {"n_arms": [20, 40], "distance": [0.05, 0.1, 0.15]}


def make(n_arms: int, distance: float) -> bt.problems.Problem:
    return bt.problems.strong_dominance(n_arms, n_clusters=4, n_best=4, distance=distance)


def swept(grid: Any = GRID, problem: Any = make, **options: Any) -> bt.Sweep:
    settings: dict[str, Any] = {"horizon": 50, "seeds": 3, "rng": 4} | options
    found: bt.Sweep = bt.sweep(grid, problem, [bt.TS, bt.TSC], **settings)
    return found


@pytest.fixture(scope="module")
def found() -> bt.Sweep:
    return swept()


def test_every_combination_is_what_simulate_gives(found: bt.Sweep) -> None:
    assert len(found.points) == 6
    for point, runs in zip(found.points, found.runs, strict=True):
        again = bt.simulate([bt.TS, bt.TSC], make(**point), horizon=50, seeds=3, rng=4)
        assert all(np.array_equal(runs.regret[name], again.regret[name]) for name in ("TS", "TSC"))


def test_the_table_has_a_row_for_every_combination_and_policy(found: bt.Sweep) -> None:
    table = found.table()
    assert table.columns == ("n_arms", "distance", "policy", "mean", "sd", "se", "interval")
    assert len(table) == 12
    last = table[-1]
    ends = found.runs[-1].regret["TSC"][:, -1]
    assert (last.n_arms, last.distance, last.policy) == (40, 0.15, "TSC")
    assert last.mean == ends.mean()
    assert last.se == pytest.approx(ends.std(ddof=1) / np.sqrt(3), rel=1e-12)
    assert str(table) in str(found)
    assert "Made with rng 4, delay 0, batch 1" in str(found)


def test_the_frame_has_a_row_for_every_seed_too(found: bt.Sweep) -> None:
    frame = found.to_frame()
    assert list(frame.columns) == ["n_arms", "distance", "policy", "seed", "regret"]
    assert len(frame) == 6 * 2 * 3
    rows = frame[(frame.n_arms == 40) & (frame.distance == 0.05) & (frame.policy == "TS")]
    assert rows.seed.tolist() == [0, 1, 2]
    assert rows.regret.tolist() == found.runs[3].regret["TS"][:, -1].tolist()


def test_a_picture_for_each_combination_of_the_others(found: bt.Sweep) -> None:
    axes = found.plot()
    assert [ax.get_title(loc="left") for ax in axes] == ["distance = 0.05", "distance = 0.1", "distance = 0.15"]
    assert axes[0].get_xlabel() == "n_arms"
    assert len(found.plot(x="distance")) == 2
    single = swept({"distance": [0.05, 0.1]}, lambda distance: make(20, distance)).plot(y_label="lost rewards")
    assert (single.get_xlabel(), single.get_ylabel()) == ("distance", "lost rewards")
    words = swept({"count": ["all", "suboptimal"]}, lambda count: bt.problems.strong_dominance(count=count), seeds=1)
    assert [label.get_text() for label in words.plot().get_xticklabels()] == ["all", "suboptimal"]
    pyplot.close("all")
    with pytest.raises(ValueError, match="no_such' is not a parameter"):
        found.plot(x="no_such")


def test_values_may_be_arrays_and_seeds_a_list() -> None:
    found = swept({"distance": np.array([0.05, 0.1])}, lambda distance: make(20, distance), seeds=iter([5, 7]))
    assert [runs.seeds for runs in found.runs] == [(5, 7), (5, 7)]
    assert found.to_frame().distance.tolist() == [0.05] * 4 + [0.1] * 4


def test_what_was_finished_is_kept_when_stopped() -> None:
    class Impatient(bt.TS):
        """Stops at the second size, as Ctrl-C does."""

        def choose(self, context: Any = None, **limits: Any) -> Any:
            if self.tree.n_arms == 40:
                raise KeyboardInterrupt
            return super().choose(context, **limits)

    with pytest.raises(bt.errors.Interrupted) as stopped:
        bt.sweep({"n_arms": [20, 40]}, lambda n_arms: make(n_arms, 0.1), [Impatient], horizon=5, seeds=2)
    assert stopped.value.sweep is not None
    assert [dict(point) for point in stopped.value.sweep.points] == [{"n_arms": 20}]
    assert stopped.value.sweep.runs[0].seeds == (0, 1)


@pytest.mark.parametrize(
    ("grid", "error", "words"),
    [
        ({}, TypeError, "must be a mapping"),
        (["n_arms"], TypeError, "must be a mapping"),
        ({"n_arms": 20}, TypeError, "give a list of values"),
        ({"n_arms": "all"}, TypeError, "give a list of values"),
        ({"n_arms": []}, ValueError, "at least one value"),
        ({"n_arms": [20, 20]}, ValueError, "none twice"),
        ({"seed": [1]}, ValueError, "another name"),
    ],
)
def test_bad_grids_are_told(grid: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        swept(grid)
    with pytest.raises(TypeError, match="make_problem=3"):
        swept(problem=3)


def test_every_point_is_inside_its_panel() -> None:
    """The second panel has twice the regret of the first, whose limits must not be used for both."""
    wide = bt.sweep(
        {"n_arms": [20, 200], "distance": [0.05, 0.1]},
        lambda n_arms, distance: bt.problems.strong_dominance(n_arms, n_clusters=4, n_best=4, distance=distance),
        [bt.TS, bt.TSC],
        horizon=1000,
        seeds=4,
    )
    axes = wide.plot(x="distance")
    for i, ax in enumerate(axes):
        highest = max(runs.regret[name][:, -1].mean() for runs in wide.runs[2 * i : 2 * i + 2] for name in runs.regret)
        assert highest < ax.get_ylim()[1], "a mean is drawn outside its panel"


def test_a_sweep_is_saved_and_loaded(tmp_path: Path) -> None:
    result = swept(horizon=20, delay=2)
    assert {name: result.about[name] for name in ("rng", "delay", "batch", "horizon", "version")} == {
        "rng": 4, "delay": 2, "batch": 1, "horizon": 20, "version": bt.__version__
    }  # fmt: skip
    result.save(tmp_path / "sweep.npz")
    loaded = bt.Sweep.load(tmp_path / "sweep.npz")
    assert repr(loaded) == repr(result)
    assert loaded.about == result.about
    assert loaded.to_frame().equals(result.to_frame())
    result.save(tmp_path / "sweep.csv")
    assert pd.read_csv(tmp_path / "sweep.csv").equals(result.to_frame())
    with pytest.raises(BadFile, match="it is not an"):
        bt.Sweep.load(tmp_path / "sweep.csv")
    result.runs[0].save(tmp_path / "runs.npz")
    with pytest.raises(BadFile, match="holds 'runs', not sweep"):
        bt.Sweep.load(tmp_path / "runs.npz")
    odd = swept({"n_arms": [20], "what": [(1, 2), object()]}, lambda n_arms, what: make(n_arms, 0.1))
    with pytest.raises(InvalidValue, match="a file holds numbers and texts"):
        odd.save(tmp_path / "odd.npz")
