"""Inputs that the theory accepts and rejects, and its curves over time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from banditree import theory
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.tree import Tree

TREE = Tree({"a": ["a1", "a2"], "b": ["b1"]})
MEANS = [0.2, 0.3, 0.8]


@pytest.mark.parametrize(
    ("means", "error", "message"),
    [
        ({"a1": 0.1, "a2": 0.2, "b1": 0.5, "zz": 0.5}, UnknownArm, "'zz', which is not an arm of Tree"),
        ({"a1": 0.1, "a2": 0.2}, InvalidValue, "no value for arm 'b1';"),
        ({"a1": 0.1}, InvalidValue, "no value for arm 'a2' and 1 more;"),
        ({"a1": 0.1, "a2": 0.2, "b1": None}, InvalidType, "must be numbers"),
        ({"a1": 0.1, "a2": 1.2, "b1": 0.3}, InvalidValue, r"mean 1.2 of arm 'a2' is not in \[0, 1\]"),
        ([0.1, math.nan, 0.3], InvalidValue, "mean nan of arm 'a2'"),
        ([0.1, 0.2, -0.3], InvalidValue, "mean -0.3 of arm 'b1'"),
        ([0.1, 0.2], InvalidValue, r"shape \(2,\); give 3 numbers"),
        ([[0.1, 0.2, 0.3]], InvalidValue, r"shape \(1, 3\)"),
        ([[0.1], [0.2, 0.3]], InvalidValue, "different lengths"),
        (["0.1", "0.2", "0.3"], InvalidType, "must be numbers"),
        (0.5, InvalidType, "must be numbers, in the order of the arms"),
    ],
)
@pytest.mark.parametrize("function", [theory.quality, theory.tsc_upper, theory.hts_upper, theory.lower])
def test_bad_means_are_refused(function: Any, means: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(TREE, means)


@pytest.mark.parametrize(
    ("means", "error", "message"),
    [
        ([], InvalidValue, "one number per arm"),
        ({}, InvalidValue, "one per arm"),
        ([0.5, 7], InvalidValue, "mean 7.0 of arm 1 "),
        ({"x": 0.5, "y": -1}, InvalidValue, "mean -1.0 of arm 'y'"),
        ("0.5", InvalidType, "must be numbers"),
        (np.array(0.5), InvalidType, "must be numbers"),
    ],
)
@pytest.mark.parametrize("function", [theory.lai_robbins, theory.arm_plays])
def test_bad_flat_means_are_refused(function: Any, means: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(means)


def test_unknown_forms_and_horizons_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"form='printed' must be one of 'kl', 'pinsker'$"):
        theory.tsc_upper(TREE, MEANS, form="printed")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="form='x' must be one of 'kl', 'pinsker', 'printed'"):
        theory.hts_upper(TREE, MEANS, form="x")  # type: ignore[arg-type]
    for horizon in (0, -5, math.inf, math.nan):
        for bound in (theory.tsc_minimax, theory.minimax_lower):
            with pytest.raises(InvalidValue, match=f"horizon={horizon} must be"):
                bound(TREE, MEANS, horizon=horizon)


def test_a_cluster_and_an_arm_of_one_name_below_the_root_cannot_share_a_key() -> None:
    tree = Tree.from_paths([("x", "y"), ("x",), ("z", "w")])
    with pytest.raises(InvalidValue, match="'x' is both a cluster and an arm"):
        theory.quality(tree, [0.1, 0.2, 0.9])
    assert theory.minimax_lower(tree, [0.1, 0.2, 0.9]) == 3  # needs no names


def test_curve_by_hand() -> None:
    times = [1, 2, 100, 3000]
    assert theory.curve(3.0, times) == pytest.approx([3 * math.log(t) for t in times])
    lemma = [0, 3 * math.log(2), *(3 * (math.log(t) + math.log(math.log(t))) for t in (100, 3000))]
    assert theory.curve(3.0, times, loglog=True) == pytest.approx(lemma)


@pytest.mark.parametrize("times", [[0, 1], [1, math.nan], [-3], [math.inf]])
def test_curves_refuse_times_that_are_none(times: list[float]) -> None:
    with pytest.raises(InvalidValue, match=r"time .* at least 1"):
        theory.curve(1.0, times)
    with pytest.raises(InvalidValue, match=r"time .* at least 1"):
        theory.bound_curves(TREE, MEANS, times)


def test_bound_curves_are_the_bounds() -> None:
    tree, means = Tree({"a": {"x": 2, "y": 1}, "b": 2}), [0.9, 0.8, 0.7, 0.3, 0.2]
    times = np.array([10, 1000])
    logs = np.log(times)
    curves = theory.bound_curves(tree, means, times, minimax=True)
    expected = {
        "TSC upper (Theorem 3)": theory.tsc_upper(tree, means) * logs,
        "HTS upper (Theorem 7)": theory.hts_upper(tree, means) * logs,
        "Lower (Theorem 5)": theory.lower(tree, means) * logs,
        "Lai and Robbins": theory.lai_robbins(means) * logs,
        "TSC minimax (Theorem 4)": [theory.tsc_minimax(tree, means, horizon=t) for t in times],
        "Minimax lower (Theorem 6)": [theory.minimax_lower(tree, means, horizon=t) for t in times],
    }
    assert list(curves) == list(expected)
    for name, values in expected.items():
        assert curves[name] == pytest.approx(values), name


def test_bound_curves_leave_out_what_does_not_apply() -> None:
    deep = Tree({"a": {"x": 2, "y": 1}, "b": 2})
    no_hierarchy = theory.bound_curves(deep, [0.9, 0.5, 0.7, 0.3, 0.2], [10])
    assert list(no_hierarchy) == ["TSC upper (Theorem 3)", "Lower (Theorem 5)", "Lai and Robbins"]
    assert list(theory.bound_curves(deep, [0.9, 0.1, 0.7, 0.3, 0.2], [10], minimax=True)) == ["Lai and Robbins"]
