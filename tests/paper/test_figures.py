"""The table of figures: the paper's settings, random streams, and every figure run small."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banditree.errors import InvalidValue
from banditree.paper.figures import DEFAULT, FIGURES
from banditree.paper.reproduce import plan, run
from banditree.paper.results import COLUMNS, FinishedFigure, Results, another_problem, instance, stream

SEEDS, HORIZON = 2, 40
ALL = [(name, variant) for name, figure in FIGURES.items() for variant in figure.variants]

HALVES = [round(0.05 * i, 2) for i in range(1, 9)]
GRIDS: dict[str, tuple[str, list[float]]] = {
    "1a": ("distance", HALVES),
    "1b": ("width", [0, *HALVES]),
    "1c": ("n_arms", [25, 50, 100, 200, 400, 600, 800, 1000]),
    "1d": ("n_clusters", [2, 3, 5, 10, 15, 20, 25, 30, 40]),
    "1e": ("n_best", [2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
}
TWO = ["TS", "TSC", "ATS"]
RIVALS = ["TSC", "UCBC", "TSMax", "UCB1", "TS", "ATS"]
CONTEXTUAL = ["LinTSC", "LinUCBC", "LinTS", "LinUCB", "LinATS"]
ON_TREES = ["TSC", "HTS", "UCT", "ATS", "ATS on Ward's tree"]
PAPER: dict[str, tuple[list[str], int, int]] = {  # its policies and ours, horizon, seeds
    "1a": (TWO, 3000, 50),
    "1b": (TWO, 3000, 50),
    "1c": (TWO, 3000, 50),
    "1d": (TWO, 3000, 50),
    "1e": (TWO, 3000, 50),
    "1f": (["HTS"], 3000, 50),
    "2a": (RIVALS, 3000, 100),
    "2b": (RIVALS, 3000, 100),
    "2c": (["TSC", "HTS L=2", "HTS L=3", "UCT L=2", "UCT L=3", "ATS"], 3000, 100),
    "2d": (CONTEXTUAL, 3000, 25),
    "2e": (CONTEXTUAL, 3000, 25),
    "2f": (CONTEXTUAL, 3000, 25),
    "sine": ([], 0, 0),
    "bumps": ([], 0, 0),
    "surface": ([], 0, 0),
    "surface-regret": (ON_TREES, 20_000, 25),
    "bumps-regret": (ON_TREES, 25_000, 25),
    "unstructured-regret": (TWO, 25_000, 25),
}


def policies_of(name: str, label: str) -> list[str]:
    """The policies of a setting. In 1f, ATS runs where HTS runs on the whole tree, which it is not told to use."""
    parts = parsed(label)
    is_whole = name == "1f" and parts["n_arms"] == 2 ** (parts["depth"] + 1)
    return [*PAPER[name][0], *(["ATS"] if is_whole else [])]


def parsed(label: str) -> dict[str, float]:
    return {key: float(value) for key, value in (part.split("=") for part in label.split())}


def test_figures_come_in_the_order_of_the_paper() -> None:
    assert list(FIGURES) == list(PAPER)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_the_papers_policies_horizon_and_seeds(name: str) -> None:
    figure = FIGURES[name]
    assert (figure.horizon, figure.seeds) == PAPER[name][1:]
    assert next(iter(figure.variants)) == DEFAULT
    assert figure.title
    assert figure.caption.endswith(".")
    assert figure.readings
    for variant in figure.variants:
        assert all(list(each.policies) == policies_of(name, each.label) for each in figure.settings(variant))


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("variant", [DEFAULT, "suboptimal"])
def test_a_sweep_has_the_papers_grid(name: str, variant: str) -> None:
    key, values = GRIDS[name]
    settings = FIGURES[name].settings(variant)
    assert [setting.label for setting in settings] == [f"{key}={value:g}" for value in values]
    assert [setting.x for setting in settings] == values
    for setting, value in zip(settings, values, strict=True):
        expected: dict[str, Any] = {"n_arms": 100, "n_clusters": 10, "n_best": 10, "width": 0.1, "distance": 0.1}
        expected |= {key: value, "count": "all" if variant == DEFAULT else variant}
        if key == "n_arms":
            expected |= {"n_clusters": int(value**0.5), "n_best": int(value**0.5)}
        assert setting.problem.parameters == expected


@pytest.mark.parametrize("variant", FIGURES["1f"].variants)
def test_1f_has_every_depth_of_every_size(variant: str) -> None:
    labels = [parsed(setting.label) for setting in FIGURES["1f"].settings(variant)]
    assert labels == [{"n_arms": 2**i, "depth": depth} for i in range(4, 12) for depth in range(i)]


@pytest.mark.parametrize("variant", FIGURES["1f"].variants)
def test_1f_walks_trees_of_the_depth_it_says(variant: str) -> None:
    for setting in FIGURES["1f"].settings(variant)[:9]:  # 16 and 32 arms
        policy = setting.policies["HTS"](setting.problem.instance(0).tree, rng=0)
        walked = policy.tree.depth if policy.depth is None else policy.depth
        assert (policy.tree.n_arms, walked) == tuple(parsed(setting.label).values())


@pytest.mark.parametrize(("name", "variant"), [item for item in ALL if item[1] != DEFAULT])
def test_a_variant_is_another_setting(name: str, variant: str) -> None:
    figure = FIGURES[name]
    for one, two in zip(figure.settings(), figure.settings(variant), strict=True):
        assert one.label == two.label
        assert (repr(one.problem), str(one.policies)) != (repr(two.problem), str(two.policies))


def test_no_two_settings_share_random_numbers_unless_they_say_so() -> None:
    keys: dict[Any, str] = {}
    for name, variant in ALL:
        for setting in FIGURES[name].settings(variant):
            own = variant if variant not in ("posterior", "global") else DEFAULT  # these change only a policy
            who = f"{name}/{own}/{setting.stream}"
            assert keys.setdefault(stream(name, variant, setting).spawn_key, who) == who
    assert len(keys) == len(set(keys.values()))


@pytest.mark.parametrize("variant", FIGURES["1f"].variants)
def test_all_depths_of_1f_meet_the_same_arms(variant: str) -> None:
    def means(depth: int, seed: int) -> Any:
        return instance("1f", f"n_arms=32 depth={depth}", seed, variant).means

    assert all(np.array_equal(means(0, 3), means(depth, 3)) for depth in range(1, 5))
    assert not np.array_equal(means(0, 3), means(0, 4))


def test_an_instance_drawn_again_is_the_one_that_was_met() -> None:
    figure = replace(FIGURES["unstructured-regret"], horizon=1)
    runs = run(figure, seeds=5, jobs=1)[""]
    for seed in range(5):
        met = instance(figure.name, "", seed)
        assert met.means is not None
        possible = met.best() - met.means  # (arms,)
        for regret in runs.regret.values():
            assert np.abs(possible - regret[seed, 0]).min() < 1e-12


@pytest.mark.parametrize("variant", ["posterior", "global"])
def test_a_variant_of_a_policy_changes_nothing_but_that_policy(variant: str) -> None:
    figure = replace(FIGURES["2a"], horizon=300)
    before, after = (run(figure, item, seeds=2, jobs=1)[""].regret for item in (DEFAULT, variant))
    changed = {"posterior": "TSMax", "global": "UCBC"}[variant]
    assert [name for name in before if not np.array_equal(before[name], after[name])] == [changed]
    assert not another_problem("2a", variant, figure.settings(variant)[0])
    assert another_problem("2d", "unit", FIGURES["2d"].settings("unit")[0])


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_every_figure_runs_small_and_gives_the_promised_rows(name: str, variant: str, tmp_path: Path) -> None:
    figure = replace(FIGURES[name], horizon=HORIZON)
    runs = run(figure, variant, seeds=SEEDS, jobs=1)
    if figure.kind != "function":
        assert list(runs) == [setting.label for setting in figure.settings(variant)]
    for label, item in runs.items():
        flat = variant != DEFAULT and label.endswith("depth=0")  # a tree without clusters
        policies = policies_of(name, label)
        assert list(item.regret) == policies
        assert item.times[-1] == HORIZON
        for policy in policies:
            assert item.regret[policy].shape == (SEEDS, len(item.times))
            assert (np.diff(item.regret[policy], axis=1, prepend=0.0) >= -1e-12).all()
            assert [sum(seed.values()) for seed in item.clusters[policy]] == [0 if flat else HORIZON] * SEEDS
            assert (item.evaluations[policy] >= 1).all()
    results = Results(tmp_path)
    (tmp_path / "runs").mkdir()
    results.keep(FinishedFigure(name, variant, SEEDS, "native", "0", labels=tuple(runs)), runs)
    rows = results.rows
    n_times = {"sweep": 1, "curves": HORIZON, "function": 0}[figure.kind]
    assert len(rows) == n_times * sum(len(setting.policies) for setting in figure.settings(variant))
    for row in rows:
        assert tuple(row) == COLUMNS
        regret = runs[row["setting"]].regret[row["policy"]]
        at = int(np.flatnonzero(runs[row["setting"]].times == row["time"])[0])
        assert (row["figure"], row["variant"], row["seeds"]) == (name, variant, SEEDS)
        assert row["mean"] == pytest.approx(regret[:, at].mean())
        assert row["sd"] == pytest.approx(abs(regret[0, at] - regret[1, at]) / np.sqrt(2), abs=1e-9)
        assert row["se"] == pytest.approx(row["sd"] / np.sqrt(2))
    if figure.kind == "sweep":
        assert {row["time"] for row in rows} == {HORIZON}


def test_numbers_depend_neither_on_jobs_nor_on_being_watched() -> None:
    figure = replace(FIGURES["surface-regret"], horizon=HORIZON)
    lock, seen = threading.Lock(), []  # a lock, as any screen has one: it cannot be sent to a process

    def progress(share: float) -> None:
        with lock:
            seen.append(share)

    watched = run(figure, seeds=3, jobs=2, progress=progress)[""]
    plain = run(figure, seeds=3, jobs=1)[""]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    for policy, regret in plain.regret.items():
        assert np.array_equal(regret, watched.regret[policy])


def test_a_plan_is_in_the_papers_order() -> None:
    assert [figure.name for figure, _ in plan()] == list(FIGURES)
    assert [(f.name, v) for f, v in plan(["2b", "1a"])] == [("1a", DEFAULT), ("2b", DEFAULT)]
    assert [(f.name, v) for f, v in plan(["2c"], ["1f:even", "1f:default"])] == [
        ("1f", DEFAULT),
        ("1f", "even"),
        ("2c", DEFAULT),
    ]
    assert [(f.name, v) for f, v in plan(["1f"], ["all"])] == [("1f", v) for v in (DEFAULT, "bottom", "even")]
    assert [(f.name, v) for f, v in plan([], ["all"])] == ALL


@pytest.mark.parametrize(
    ("figures", "variants", "message"),
    [
        (["2x"], [], r"no figure '2x'; there are 1a, 1b"),
        ([], ["2x:even"], r"no figure '2x'"),
        (["2x"], ["all"], r"no figure '2x'"),
        ([], ["1f:odd"], r"1f has no variant 'odd'; it has default, bottom, even"),
        ([], ["even"], r"such as 1f:even"),
    ],
)
def test_a_plan_of_what_is_not_there_is_refused(figures: list[str], variants: list[str], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        plan(figures, variants)


def test_quick_takes_a_tenth_of_the_seeds_and_at_least_five() -> None:
    assert [FIGURES[name].n_seeds(quick=True) for name in ("1a", "2a", "2d")] == [5, 10, 5]
    assert FIGURES["2a"].n_seeds() == 100
