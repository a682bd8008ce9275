"""Laws of the theory on random trees, against definitions written out the slow way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditree import theory
from banditree.tree import Tree

untimed = settings(deadline=None)  # a busy machine is no reason to fail

# A random tree is nested lists; a leaf is None until its arm and mean are put in. The root is always a list.
NESTED = st.recursive(st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=12)
ROOTS = st.lists(NESTED, min_size=1, max_size=5)
GRID = st.integers(1, 31).map(lambda k: k / 32)  # coarse, so that equal means are common


def leaves(node: Any) -> Iterator[Any]:
    if isinstance(node, list):
        for child in node:
            yield from leaves(child)
    else:
        yield node


def fill(node: Any, values: Iterator[Any]) -> Any:
    return [fill(child, values) for child in node] if isinstance(node, list) else next(values)


def paths(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for number, child in enumerate(node):
        if isinstance(child, list):
            yield from paths(child, (*above, f"k{number}"))
        else:
            yield (*above, child[0])


def shuffled(node: Any, rng: Any) -> Any:
    if not isinstance(node, list):
        return node
    children = [shuffled(child, rng) for child in node]
    rng.shuffle(children)
    return children


@st.composite
def any_case(draw: st.DrawFn) -> Any:
    """Nested lists of (arm, mean), any means."""
    shape = draw(ROOTS)
    return fill(shape, iter([(f"a{i}", draw(GRID)) for i, _ in enumerate(leaves(shape))]))


@st.composite
def dominated_case(draw: st.DrawFn) -> Any:
    """Nested lists whose every sub-tree holds a run of the sorted means: hierarchical dominance, then shuffled."""
    shape = draw(ROOTS)
    n = len(list(leaves(shape)))
    mu = draw(st.lists(st.floats(0.01, 0.99).map(lambda x: round(x, 3)), min_size=n, max_size=n, unique=True))
    case = fill(shape, iter([(f"a{i}", m) for i, m in enumerate(sorted(mu, reverse=True))]))
    return shuffled(case, draw(st.randoms(use_true_random=False)))


def build(case: Any) -> tuple[Tree, dict[str, float]]:
    return Tree.from_paths(list(paths(case))), dict(leaves(case))


def D(p: float, q: float) -> float:  # noqa: N802 (the paper's name)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


# The definitions, word for word.


def holds(node: Any, arm: str) -> bool:
    return any(name == arm for name, _ in leaves(node))


def means_in(node: Any) -> list[float]:
    return [mean for _, mean in leaves(node)]


def slow_top(case: Any) -> tuple[list[float], list[list[float]]]:
    """The means of the optimal top cluster, and of each sub-optimal one."""
    best_mean = max(means_in(case))
    star = next(arm for arm, mean in leaves(case) if mean == best_mean)
    (optimal,) = [child for child in case if holds(child, star)]
    ties = [c for c in case if not isinstance(optimal, list) and not isinstance(c, list) and c[1] == best_mean]
    inside = ties or [optimal]
    return means_in(inside), [means_in(child) for child in case if child not in inside]


def slow_hierarchical(case: Any) -> bool:
    """Whether at every node on the way down each sibling stays strictly below the child with the best arm."""
    best_mean = max(means_in(case))
    star = next(arm for arm, mean in leaves(case) if mean == best_mean)
    node = case
    while isinstance(node, list):
        (optimal,) = [child for child in node if holds(child, star)]
        for child in node:
            beside = not isinstance(child, list) and not isinstance(optimal, list) and child[1] == best_mean
            if child is not optimal and not beside and max(means_in(child)) >= min(means_in(optimal)):
                return False
        node = optimal
    return True


def slow_hts(node: Any, best_mean: float) -> float:
    (optimal,) = [child for child in node if best_mean in means_in(child)]
    low = min(means_in(optimal))
    here = sum(
        (best_mean - max(means_in(child))) / D(max(means_in(child)), low) for child in node if child is not optimal
    )
    return here + (slow_hts(optimal, best_mean) if isinstance(optimal, list) else 0.0)


@untimed
@given(any_case() | dominated_case())
def test_quality_follows_the_definitions(case: Any) -> None:
    tree, means = build(case)
    q = theory.quality(tree, means)
    optimal, others = slow_top(case)
    distance = [min(optimal) - max(other) for other in others]
    assert q.width == max(optimal) - min(optimal)
    assert (q.n_best, q.n_suboptimal, q.n_arms) == (len(optimal), len(others), tree.n_arms)
    assert sorted(q.distance.values()) == sorted(distance)
    assert sorted(q.gap.values()) == sorted(max(optimal) - max(other) for other in others)
    assert q.distance.keys() == q.gap.keys() == q.gammas.keys()
    assert q.dominance == all(d > 0 for d in distance)
    assert q.hierarchical == slow_hierarchical(case)
    if q.dominance:
        gammas = [q.width / d for d in distance]
        assert q.gamma == pytest.approx(sum(gammas) / len(gammas) if gammas else 0)


@untimed
@given(any_case())
def test_offenders_do_offend(case: Any) -> None:
    tree, means = build(case)
    q = theory.quality(tree, means)
    assert (q.offenders is None) == q.dominance
    assert (q.hierarchical_offenders is None) == q.hierarchical
    if q.offenders is not None:
        ours, theirs = q.offenders
        assert means[str(theirs)] >= means[str(ours)]
        assert tree.path(ours)[0] == q.best_cluster != tree.path(theirs)[0]
        assert q.hierarchical_offenders == q.offenders
    elif q.hierarchical_offenders is not None:
        ours, theirs = q.hierarchical_offenders
        assert means[str(theirs)] >= means[str(ours)]
        assert tree.path(theirs)[0] == q.best_cluster


@untimed
@given(dominated_case())
def test_bounds_follow_the_definitions(case: Any) -> None:
    tree, means = build(case)
    optimal, others = slow_top(case)
    star = max(optimal)
    inside = sum((star - m) / D(m, star) for m in optimal if m < star)
    upper = inside + sum((star - max(c)) / D(max(c), min(optimal)) for c in others)
    below = inside + sum((star - max(c)) / D(min(c), star) for c in others)
    assert theory.tsc_upper(tree, means) == pytest.approx(upper, rel=1e-9)
    assert theory.lower(tree, means) == pytest.approx(below, rel=1e-9)
    assert theory.hts_upper(tree, means) == pytest.approx(slow_hts(case, star), rel=1e-9)
    plays = sorted(1 / D(max(c), min(optimal)) for c in others)
    assert sorted(theory.cluster_plays(tree, means).values()) == pytest.approx(plays, rel=1e-9)


@untimed
@given(dominated_case())
def test_bounds_stand_in_their_order(case: Any) -> None:
    tree, means = build(case)
    slack = 1 + 1e-12
    upper = theory.tsc_upper(tree, means)
    assert theory.lower(tree, means) <= upper * slack
    assert theory.lower(tree, means) <= theory.lai_robbins(means) * slack
    assert upper <= theory.tsc_upper(tree, means, form="pinsker") * slack
    assert theory.hts_upper(tree, means) <= theory.hts_upper(tree, means, form="pinsker") * slack
    assert theory.minimax_lower(tree, means) <= theory.tsc_minimax(tree, means) * slack


@untimed
@given(dominated_case())
def test_depth_zero_is_lai_and_robbins_and_depth_one_theorem_three(case: Any) -> None:
    tree, means = build(case)
    assert theory.hts_upper(tree, means, depth=0) == pytest.approx(theory.lai_robbins(means), rel=1e-14)
    assert theory.hts_upper(tree, means, depth=1) == theory.tsc_upper(tree, means)
    assert theory.hts_upper(tree, means, depth=tree.depth) == theory.hts_upper(tree, means)
    assert theory.hts_upper(tree, means, depth=tree.depth + 1) == theory.hts_upper(tree, means)


@untimed
@given(dominated_case(), st.randoms(use_true_random=False))
def test_names_and_order_make_no_difference(case: Any, rng: Any) -> None:
    mixed = shuffled(case, rng)
    other = fill(mixed, iter([(1000 + i, mean) for i, (_, mean) in enumerate(leaves(mixed))]))
    ours, theirs = build(case), build(other)
    for bound in (theory.tsc_upper, theory.hts_upper, theory.lower, theory.tsc_minimax, theory.minimax_lower):
        assert bound(*ours) == pytest.approx(bound(*theirs), rel=1e-14)
    mine, yours = theory.quality(*ours), theory.quality(*theirs)
    assert ours[1][str(mine.best_arm)] == theirs[1][yours.best_arm]  # type: ignore[index]
    assert (mine.width, mine.n_best, mine.dominance) == (yours.width, yours.n_best, yours.dominance)
    assert sorted(mine.distance.values()) == sorted(yours.distance.values())
