"""Limits on decisions: the walk goes on what is allowed, each node as likely as the beliefs say, on both engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.helpers import NAMES, SHOP, TREES, events, feed, make, needs_native
from tests.support.walk_law import law
from tests.support.winning import P_FLOOR, chi_square

CALLS = ("choose", "slate", "choose_many", "decide")


def context(policy: bt.Policy) -> Any:
    return None if policy.dim is None else np.array([1.0, -0.5, 0.25])


def learned(name: str, tree: bt.Tree, rng: Any = 0, n: int = 25, **options: Any) -> bt.Policy:
    policy = make(name, tree, rng, **options)
    return feed(policy, events(tree, n, 1, policy.dim))


def some(tree: bt.Tree, seed: int) -> list[Any]:
    """At least one arm, at random."""
    rng = np.random.default_rng(seed)
    found = [arm for arm in tree.arms if rng.random() < 0.5]
    return found or [tree.arms[0]]


# What may be passed


@pytest.mark.parametrize("call", ["choose", "decide", "propensities"])
def test_ids_masks_and_other_collections_mean_the_same(call: str, engine: str) -> None:
    mask = np.array([arm != "h2" for arm in SHOP.arms])
    ways: list[dict[str, Any]] = [
        {"exclude": ["h2"]},
        {"exclude": ("h2",)},
        {"exclude": {"h2"}},
        {"exclude": frozenset({"h2"})},
        {"exclude": {"h2": "sold out"}},
        {"exclude": np.array(["h2"], object)},
        {"exclude": ~mask},
        {"only": mask},
        {"only": ["s1", "s2", "h1", "h3"]},
        {"only": list(SHOP.arms), "exclude": ["h2"]},
        {"only": mask, "exclude": ["h2"]},
        {"only": SHOP.arms, "exclude": ~mask},
    ]
    found = []
    for limits in ways:
        policy = learned("TSC", SHOP, 7)
        found.append(str([getattr(policy, call)(**limits) for _ in range(5)]))
    assert len(set(found)) == 1
    assert {policy.choose(only=(arm for arm in ["h2", "h2"])) for _ in range(3)} == {"h2"}


def test_no_limits_are_no_limits(engine: str) -> None:
    everything: list[dict[str, Any]] = [{}, {"exclude": []}, {"only": SHOP.arms}, {"exclude": np.zeros(5, bool)}]
    chances = [learned("HTS", SHOP).propensities(**limits) for limits in everything]
    assert all(np.array_equal(each, chances[0]) for each in chances)


@pytest.mark.parametrize("call", [*CALLS, "propensities"])
@pytest.mark.parametrize(
    ("limits", "error", "says"),
    [
        ({"exclude": SHOP.arms}, InvalidValue, "leave no arm"),
        ({"only": []}, InvalidValue, "leave no arm"),
        ({"only": np.zeros(5, bool)}, InvalidValue, "leave no arm"),
        ({"only": ["h1"], "exclude": ["h1"]}, InvalidValue, "leave no arm"),
        ({"exclude": ["h9"]}, UnknownArm, "arm 'h9' is not in"),
        ({"only": ["h9"]}, UnknownArm, "arm 'h9' is not in"),
        ({"only": ["hats"]}, UnknownArm, "arm 'hats' is not in"),
        ({"exclude": "h2"}, InvalidType, "exclude='h2' must be a list of arm ids"),
        ({"only": 3}, InvalidType, "only=3 must be a list of arm ids"),
        ({"only": np.ones(4, bool)}, InvalidValue, r"only is a mask of shape \(4,\); give one bool per arm, \(5,\)"),
        ({"exclude": np.ones((5, 1), bool)}, InvalidValue, "exclude is a mask of shape"),
        ({"only": [True, False, True, True, True]}, UnknownArm, "not of type bool"),
        ({"exclude": np.ma.array(["h1"], mask=[True])}, InvalidType, "masked"),
    ],
)
def test_what_is_refused(call: str, limits: dict[str, Any], error: type[Exception], says: str, engine: str) -> None:
    policy = learned("TSC", SHOP)
    sizes = (1,) if call in ("slate", "choose_many") else ()
    with pytest.raises(error, match=says):
        getattr(policy, call)(*sizes, **limits)
    assert policy.choose() in SHOP


@pytest.mark.parametrize("n", [100, 300])
def test_all_of_many_arms_excluded(n: int, engine: str) -> None:
    policy = bt.TSC(bt.Tree(n), rng=1)
    with pytest.raises(InvalidValue, match="leave no arm"):
        policy.choose(exclude=range(n))
    assert policy.choose(exclude=[arm for arm in range(n) if arm != 17]) == 17
    assert policy.choose(only=[17]) == 17


# The law of the walk


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_choices_are_as_likely_as_the_beliefs_say(name: str, shape: str, engine: str) -> None:
    policy = learned(name, TREES[shape], 3)
    allowed = some(policy.tree, 4)
    n = 3000 if engine == "native" else 300
    x = None if policy.dim is None else np.tile(context(policy), (n, 1))
    seen = Counter(policy.choose_many(n, contexts=x, only=allowed).tolist())
    counts = np.array([seen[arm] for arm in policy.tree.arms])
    expected = law(policy, allowed, context(policy))
    assert not counts[expected == 0].any()
    assert chi_square(counts, expected) > P_FLOOR


@needs_native
def test_a_planted_error_is_found() -> None:
    """The same statistic against the law of a walk that divides by the remaining probability."""
    policy = bt.TSC(bt.Tree({"x": ["a", "b"], "y": ["d", "e"]}), rng=3)
    policy.update_many(["a", "b", "d", "e"], [2, 8, 5, 5], plays=[10, 10, 10, 10])
    allowed = ["a", "d", "e"]
    wrong = law(policy) * [arm in allowed for arm in policy.tree.arms]
    seen = Counter(policy.choose_many(3000, only=allowed).tolist())
    counts = np.array([seen[arm] for arm in policy.tree.arms])
    assert chi_square(counts, law(policy, allowed)) > P_FLOOR
    assert chi_square(counts, wrong / wrong.sum()) < P_FLOOR


@needs_native
@pytest.mark.parametrize("explore", [0.0, 0.3])
@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_draw_for_draw(name: str, shape: str, explore: float) -> None:
    found = []
    for engine in ("native", "readable"):
        with engines.using(engine, shortcuts=False):
            policy = learned(name, TREES[shape], native_stream(5), explore=explore)
        x, runs = context(policy), []
        for seed in range(12):
            allowed = some(policy.tree, seed)
            gone = [arm for arm in policy.tree.arms if arm not in allowed]
            runs += [
                policy.choose(x, only=allowed),
                policy.choose(x, exclude=gone),
                *policy.slate(len(allowed), x, only=allowed),
            ]
            runs += policy.slate(1, x)
            if seed % 3 == 0:  # the readable engine takes its time to compute the propensity
                runs.append(policy.decide(x, exclude=gone).arm)
        found.append(runs)
    assert found[0] == found[1]


# Wide nodes, on the native engine's shortcuts

WIDE: dict[str, dict[str, Any]] = {
    "TS": {},
    "TS, skewed prior": {"prior": bt.Beta(0.5, 2)},
    "TS, prior of each": {"prior": {None: bt.Beta(1, 2), 3: bt.Beta(5, 2)}},
    "TS, half-life": {"half_life": 50.0},
    "TS, half-life and prior below 1": {"half_life": 50.0, "prior": bt.Beta(0.5, 0.5)},
    "TS, explore": {"explore": 0.2},
    "UCB1": {},
    "UCB1, half-life": {"half_life": 50.0},
}


def wide(case: str, k: int, n: int = 400) -> bt.Policy:
    """A flat policy in the middle of a run; half of its arms were never tried."""
    with engines.using("native"):
        policy = make(case.split(",", maxsplit=1)[0], bt.Tree(k), 1, **WIDE[case])
    rng = np.random.default_rng(k)
    arms = rng.integers(k // 2, size=n)
    policy.update_many(arms, (rng.random(n) < 0.1 + 0.8 * arms / k).astype(float))
    return policy


@needs_native
@pytest.mark.parametrize("excluded", ["few", "most of those tried", "nearly all"])
@pytest.mark.parametrize("k", [60, 300, 2000])
@pytest.mark.parametrize("case", WIDE)
def test_wide_nodes_under_limits(case: str, k: int, excluded: str) -> None:
    policy = wide(case, k)
    best = np.argsort(-policy.propensities())
    gone = {"few": best[:3], "most of those tried": np.arange(k // 2 - 5), "nearly all": best[:-20]}[excluded]
    allowed = np.setdiff1d(np.arange(k), gone)
    n = 20_000
    picks = policy.choose_many(n, exclude=gone)
    counts = np.bincount(picks, minlength=k)
    assert not counts[gone].any()
    assert chi_square(counts, policy.propensities(exclude=gone)) > P_FLOOR
    if k == 60:
        expected = law(policy, allowed.tolist())
        assert np.allclose(policy.propensities(exclude=gone), expected, rtol=1e-6, atol=1e-9)
        assert chi_square(counts, expected) > P_FLOOR


@needs_native
def test_a_planted_error_at_wide_nodes_is_found() -> None:
    """One arm too many is excluded, of twenty of the better ones."""
    policy = wide("TS", 300)
    gone = np.argsort(-policy.propensities())[:3]
    left = np.argsort(-policy.propensities(exclude=gone))
    counts = np.bincount(policy.choose_many(20_000, exclude=[*gone.tolist(), int(left[20])]), minlength=300)
    assert chi_square(counts, policy.propensities(exclude=gone)) < P_FLOOR


@needs_native
def test_work_goes_along_the_paths_of_what_is_named() -> None:
    """Of 100,000 arms few are looked at: neither by the walk nor by what makes ready for it."""
    tree = bt.Tree(
        {f"c{c}": {f"c{c} g{g}": [f"{c} {g} {i}" for i in range(20)] for g in range(50)} for c in range(100)}
    )
    policy = bt.HTS(tree, rng=2)
    policy.update_many(tree.arms[::977], [1.0] * len(tree.arms[::977]))
    for limits in ({"exclude": tree.arms[:5]}, {"only": tree.arms[::20_000]}, {"exclude": tree.arms[:20]}):
        before = policy._state.walk.evaluations
        policy.choose(**limits)
        assert policy._state.walk.evaluations - before <= 100 + 50 + 20
        listed: Any = policy._limits(policy._state, **{"only": None, "exclude": None, **limits})
        assert listed.n_allowed in (5, tree.n_arms - 5, tree.n_arms - 20)


# The best allowed arm stands for its cluster


def standing(policy: bt.Policy, **limits: Any) -> dict[Any, float]:
    return dict(zip(policy.tree.arms, policy.propensities(**limits).tolist(), strict=True))


def test_the_best_allowed_arm_stands_for_its_cluster(engine: str) -> None:
    """x: a 9 of 10, b 6 of 10, c never; y: d 5 of 10. By hand: who stands for x, and the integral of two Betas."""
    from tests.support.winning import by_quadrature

    tree = bt.Tree({"x": ["a", "b", "c"], "y": ["d"]})
    policy = bt.TSMax(tree, rng=1)
    policy.update_many(["a", "b", "d"], [9, 6, 5], plays=[10, 10, 10])

    def against_d(a: float, b: float) -> float:
        return float(by_quadrature(np.array([a, 6.0]), np.array([b, 6.0]))[0])

    assert np.isclose(1 - standing(policy)["d"], against_d(10, 2), atol=1e-9)
    assert np.isclose(1 - standing(policy, exclude=["a"])["d"], against_d(7, 5), atol=1e-9)
    assert np.isclose(1 - standing(policy, exclude=["c"])["d"], against_d(10, 2), atol=1e-9)
    assert np.isclose(standing(policy, only=["c", "d"])["c"], against_d(1, 1), atol=1e-9)  # never tried: its prior
    within = standing(policy, exclude=["a"])
    assert np.isclose(
        within["c"] / (within["b"] + within["c"]), by_quadrature(np.array([1.0, 7]), np.array([1.0, 5]))[0]
    )


def test_a_cluster_without_an_allowed_arm_is_no_choice(engine: str) -> None:
    policy = learned("TSC", SHOP)
    chances = standing(policy, exclude=["s1", "s2"])
    assert chances["s1"] == chances["s2"] == 0
    assert {policy.choose(exclude=["s1", "s2"]) for _ in range(30)} <= {"h1", "h2", "h3"}
    assert policy.decide(only=["s1"]).steps == (1.0, 1.0)
