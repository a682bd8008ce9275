"""The theory's numbers, computed by hand and from the paper's formulas, and what it says about bad input."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from banditree import theory
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.theory.arithmetic import kl
from banditree.tree import Tree

INF = math.inf
# The optimal cluster is b: means 0.8 and 0.7; a and c are sub-optimal, c with a single arm.
TREE = Tree({"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1"]})
MEANS = {"a1": 0.5, "a2": 0.4, "b1": 0.8, "b2": 0.7, "c1": 0.6}


def D(p: float, q: float) -> float:  # noqa: N802 (the paper's name)
    """The divergence as the paper writes it."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def test_divergence_of_hand_worked_pairs() -> None:
    assert kl(0.5, 0.25) == pytest.approx(0.5 * math.log(4 / 3))  # (log 2 - log 1.5) / 2
    assert kl([0.2, 0.9], [0.3, 0.1]) == pytest.approx([D(0.2, 0.3), D(0.9, 0.1)])


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
        (0.3, 0.3, 0.0),
        (0.0, 0.5, math.log(2)),
        (1.0, 0.5, math.log(2)),
        (0.0, 1.0, INF),
        (1.0, 0.0, INF),
        (0.5, 1.0, INF),
        (0.5, 0.0, INF),
        (5e-324, 0.5, math.log(2)),  # 0.5 / 5e-324 is past the largest float
    ],
)
def test_divergence_at_the_edges(p: float, q: float, expected: float) -> None:
    assert kl(p, q) == pytest.approx(expected)


@pytest.mark.parametrize("p", [1e-12, 0.001, 0.3, 0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("step", [1e-15, 1e-9, 1e-4, 0.03, 0.0999, 0.1001, 0.4])
def test_divergence_keeps_its_digits_however_close(p: float, step: float) -> None:
    q = p + step if p + step < 1 else p - step
    with localcontext() as context:
        context.prec = 60
        P, Q = Decimal(p), Decimal(q)
        exact = P * (P / Q).ln() + (1 - P) * ((1 - P) / (1 - Q)).ln()
    assert float(kl(p, q)) == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_quality_by_hand() -> None:
    q = theory.quality(TREE, MEANS)
    assert (q.best_arm, q.best_cluster, q.n_arms, q.n_best, q.n_suboptimal) == ("b1", "b", 5, 2, 2)
    assert q.width == pytest.approx(0.1)
    assert q.distance == pytest.approx({"a": 0.2, "c": 0.1})
    assert q.gap == pytest.approx({"a": 0.3, "c": 0.2})
    assert q.gammas == pytest.approx({"a": 0.5, "c": 1.0})
    assert q.gamma == pytest.approx(0.75)
    assert (q.dominance, q.offenders, q.hierarchical, q.hierarchical_offenders) == (True, None, True, None)
    assert repr(q) == (
        "Quality(best arm 'b1' in cluster 'b', A*=2 of 5 arms, K=2, width 0.1, gamma 0.75, "
        "strong dominance holds, hierarchical holds)"
    )


def test_theorems_by_hand() -> None:
    assert theory.tsc_upper(TREE, MEANS) == pytest.approx(0.3 / D(0.5, 0.7) + 0.2 / D(0.6, 0.7) + 0.1 / D(0.7, 0.8))
    assert theory.lower(TREE, MEANS) == pytest.approx(0.3 / D(0.4, 0.8) + 0.2 / D(0.6, 0.8) + 0.1 / D(0.7, 0.8))
    assert theory.tsc_upper(TREE, MEANS, form="pinsker") == pytest.approx((1.5 / 0.2 + 2.0 / 0.1 + 1 / 0.1) / 2)
    assert theory.tsc_minimax(TREE, MEANS) == pytest.approx(2 + 2 * 1.75)
    assert theory.tsc_minimax(TREE, MEANS, horizon=1000) == pytest.approx(math.sqrt(5.5 * 1000 * math.log(1000)))
    assert theory.minimax_lower(TREE, MEANS) == 4
    assert theory.minimax_lower(TREE, MEANS, horizon=1000) == pytest.approx(math.sqrt(4000))
    assert theory.cluster_plays(TREE, MEANS) == pytest.approx({"a": 1 / D(0.5, 0.7), "c": 1 / D(0.6, 0.7)})
    assert theory.arm_plays({"x": 0.2, "y": 0.6, "z": 0.6}) == pytest.approx({"x": 1 / D(0.2, 0.6)})
    assert theory.arm_plays([0.6, 0.2]) == pytest.approx({1: 1 / D(0.2, 0.6)})
    assert theory.lai_robbins([0.6, 0.2, 0.5]) == pytest.approx(0.4 / D(0.2, 0.6) + 0.1 / D(0.5, 0.6))


# Two levels below the root, and arms at three different depths. The best arm is d1.
UNEVEN = Tree([{"far": ["f1", "f2"], "near": [{"deep": ["d1", "d2"]}, "n1"]}, "r1"])
UNEVEN_MEANS = {"f1": 0.1, "f2": 0.2, "d1": 0.9, "d2": 0.8, "n1": 0.6, "r1": 0.3}


def test_hts_on_an_uneven_tree_by_hand() -> None:
    top = 0.7 / D(0.2, 0.6) + 0.6 / D(0.3, 0.6)  # far, and r1 as a cluster of its own, against the worst of near
    assert theory.hts_upper(UNEVEN, UNEVEN_MEANS) == pytest.approx(top + 0.3 / D(0.6, 0.8) + 0.1 / D(0.8, 0.9))
    printed = 0.7 / 0.4**2 + 0.6 / 0.3**2 + 0.3 / 0.2**2 + 1 / 0.1
    assert theory.hts_upper(UNEVEN, UNEVEN_MEANS, form="printed") == pytest.approx(printed)
    assert theory.hts_upper(UNEVEN, UNEVEN_MEANS, form="pinsker") == pytest.approx(printed / 2)
    assert theory.hts_upper(UNEVEN, UNEVEN_MEANS, depth=1) == theory.tsc_upper(UNEVEN, UNEVEN_MEANS)
    assert theory.hts_upper(UNEVEN, UNEVEN_MEANS, depth=0) == pytest.approx(theory.lai_robbins(UNEVEN_MEANS))
    q = theory.quality(UNEVEN, UNEVEN_MEANS)
    assert q.distance == pytest.approx({"far": 0.4, "r1": 0.3})
    assert (q.best_cluster, q.n_best, q.n_suboptimal, q.hierarchical) == ("near", 3, 2, True)


def test_a_best_arm_beside_clusters_is_a_cluster_of_its_own() -> None:
    tree, means = Tree(["top", {"c": ["c1", "c2"]}]), [0.9, 0.5, 0.1]
    q = theory.quality(tree, means)
    assert (q.best_cluster, q.n_best, q.width, q.gamma) == ("top", 1, 0, 0)
    assert q.distance == pytest.approx({"c": 0.4})
    assert theory.tsc_upper(tree, means) == pytest.approx(0.4 / D(0.5, 0.9))
    assert theory.lower(tree, means) == pytest.approx(0.4 / D(0.1, 0.9))


def test_a_flat_tree_is_a_flat_bandit() -> None:
    tree, means = Tree(4), [0.2, 0.7, 0.5, 0.7]
    flat = theory.lai_robbins(means)
    assert flat == pytest.approx(0.5 / D(0.2, 0.7) + 0.2 / D(0.5, 0.7))
    assert theory.tsc_upper(tree, means) == theory.hts_upper(tree, means) == theory.lower(tree, means) == flat
    assert theory.cluster_plays(tree, means) == theory.arm_plays(means)
    q = theory.quality(tree, means)  # 1 and 3 are equally good and side by side: the optimal cluster is both
    assert (q.best_arm, q.n_best, q.n_suboptimal, q.dominance, q.gamma) == (1, 2, 2, True, 0)
    assert theory.minimax_lower(tree, means) == theory.tsc_minimax(tree, means) == 4


def test_upper_meets_lower_as_widths_go_to_zero() -> None:
    def ratio(width: float) -> float:
        means = [0.3, 0.3 + width, 0.8 - width, 0.8, 0.5 - width / 3, 0.5]
        tree = Tree({"a": 2, "b": 2, "c": 2})
        return theory.tsc_upper(tree, means) / theory.lower(tree, means)

    ratios = [ratio(width) for width in (0.1, 0.01, 0.001, 0.0)]
    assert ratios[0] > 1.2
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[2] == pytest.approx(1, abs=0.01)
    assert ratios[3] == pytest.approx(1, abs=1e-12)


def test_one_cluster_only() -> None:
    tree, means = Tree({"all": 3}), [0.2, 0.4, 0.9]
    q = theory.quality(tree, means)
    assert (q.n_suboptimal, q.gamma, q.distance, q.dominance, q.n_best) == (0, 0.0, {}, True, 3)
    assert q.width == pytest.approx(0.7)
    assert theory.tsc_upper(tree, means) == theory.lower(tree, means) == pytest.approx(theory.lai_robbins(means))
    assert theory.cluster_plays(tree, means) == {}
    assert theory.tsc_minimax(tree, means) == theory.minimax_lower(tree, means) == 3


@pytest.mark.parametrize("tree", [Tree(1), Tree({"c": 1}), Tree({"c": {"d": 1}})])
def test_one_arm_only(tree: Tree) -> None:
    assert theory.tsc_upper(tree, [0.3]) == theory.hts_upper(tree, [0.3]) == theory.lower(tree, [0.3]) == 0
    assert theory.lai_robbins([0.3]) == 0
    assert theory.quality(tree, [0.3]).n_best == 1


def test_equal_best_arms_in_one_cluster_add_nothing() -> None:
    one, two = Tree({"a": ["a1"], "b": ["b1", "b2"]}), Tree({"a": ["a1"], "b": ["b1", "b2", "b3"]})
    assert theory.tsc_upper(two, [0.2, 0.8, 0.6, 0.8]) == theory.tsc_upper(one, [0.2, 0.8, 0.6])
    assert theory.quality(two, [0.2, 0.8, 0.6, 0.8]).n_best == 3


def test_equal_best_arms_in_two_clusters_break_dominance() -> None:
    tree, means = Tree({"a": ["a1", "a2"], "b": ["b1"]}), [0.8, 0.3, 0.8]
    q = theory.quality(tree, means)
    assert (q.dominance, q.offenders, q.hierarchical_offenders) == (False, ("a2", "b1"), ("a2", "b1"))
    assert q.gammas == {"b": INF}
    with pytest.raises(InvalidValue, match=r"arm 'b1' \(mean 0.8\) of cluster 'b' .* arm 'a2' .* cluster 'a'"):
        theory.tsc_upper(tree, means)
    assert theory.quality(Tree({"a": 1, "b": 1}), [0.5, 0.5]).gamma == INF  # 0 / 0: no distance, no bound


def test_equal_best_arms_below_one_top_cluster_break_hierarchical_dominance() -> None:
    tree, means = Tree({"a": {"x": ["x1"], "y": ["y1", "y2"]}, "b": ["b1"]}), [0.8, 0.8, 0.5, 0.1]
    q = theory.quality(tree, means)
    assert (q.dominance, q.hierarchical, q.offenders, q.hierarchical_offenders) == (True, False, None, ("x1", "y1"))
    assert "hierarchical fails ('y1' is as good as 'x1' or better)" in repr(q)
    assert theory.hts_upper(tree, means, depth=1) == theory.tsc_upper(tree, means)
    with pytest.raises(InvalidValue, match=r"of cluster 'a' / 'y' .* of the optimal cluster 'a' / 'x'"):
        theory.hts_upper(tree, means)


BOUNDS = [theory.tsc_upper, theory.lower, theory.tsc_minimax, theory.minimax_lower, theory.cluster_plays]


@pytest.mark.parametrize("bound", [*BOUNDS, theory.hts_upper])
def test_bounds_say_what_breaks_dominance(bound: Any) -> None:
    # b2 is worse than the best of both others; c1 is the farther one above it.
    means = {**MEANS, "b2": 0.45}
    q = theory.quality(TREE, means)
    assert (q.dominance, q.offenders) == (False, ("b2", "c1"))
    assert q.distance == pytest.approx({"a": -0.05, "c": -0.15})
    with pytest.raises(InvalidValue, match=r"'c1' \(mean 0.6\) of cluster 'c' .* 'b2' \(mean 0.45\) .* cluster 'b'"):
        bound(TREE, means)


def test_means_of_zero_and_one() -> None:
    tree = Tree({"a": 2, "b": 2})
    # D(p, 1) is infinite, so a sure best arm is found at no cost in log T; D(0, q) = -log(1 - q).
    assert theory.lai_robbins([0.3, 1.0]) == 0
    assert theory.tsc_upper(tree, [0.0, 0.0, 1.0, 1.0]) == 0
    assert theory.tsc_upper(tree, [0.0, 0.0, 0.5, 1.0]) == pytest.approx(1 / math.log(2))
    assert theory.tsc_upper(tree, [0.0, 0.0, 0.5, 1.0], form="pinsker") == pytest.approx((1 / 0.5**2 + 1 / 0.5) / 2)
    assert theory.lai_robbins([0.0, 0.0]) == theory.lai_robbins([1.0, 1.0]) == 0
    assert theory.arm_plays([0.0, 1.0]) == {0: 0.0}


def test_arms_too_close_for_a_float_give_infinity_and_no_warning() -> None:
    tiny = 5e-324
    assert theory.lai_robbins([tiny, 2 * tiny]) == INF
    assert theory.hts_upper(Tree(3), [tiny, tiny, 2 * tiny], form="printed") == INF
    assert theory.hts_upper(Tree(2), [1e-308, 2e-308], form="printed") == pytest.approx(1e308)
    assert theory.hts_upper(Tree(3), [1e-308, 1e-308, 2e-308], form="printed") == INF  # each term is finite


def test_numpy_and_mappings_in_any_order_mean_the_same() -> None:
    array = np.array([MEANS[str(arm)] for arm in TREE.arms])
    backwards = dict(reversed(MEANS.items()))
    assert theory.quality(TREE, array) == theory.quality(TREE, backwards) == theory.quality(TREE, list(array))
    assert array.tolist() == [0.5, 0.4, 0.8, 0.7, 0.6]


# ---------------------------------------------------------------- what users pass


PLAIN_TREE = Tree({"a": ["a1", "a2"], "b": ["b1"]})
PLAIN_MEANS = [0.2, 0.3, 0.8]


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
        function(PLAIN_TREE, means)


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
        theory.tsc_upper(PLAIN_TREE, PLAIN_MEANS, form="printed")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="form='x' must be one of 'kl', 'pinsker', 'printed'"):
        theory.hts_upper(PLAIN_TREE, PLAIN_MEANS, form="x")  # type: ignore[arg-type]
    for horizon in (0, -5, math.inf, math.nan):
        for bound in (theory.tsc_minimax, theory.minimax_lower):
            with pytest.raises(InvalidValue, match=f"horizon={horizon} must be"):
                bound(PLAIN_TREE, PLAIN_MEANS, horizon=horizon)


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
        theory.bound_curves(PLAIN_TREE, PLAIN_MEANS, times)


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
