"""Bad input on both engines: the error names the value, is of the type Python users expect, and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import BanditreeError
from tests.support.helpers import DIM, NAMES, SHOP, make, run, same, state

X = np.ones(DIM)
Call = Callable[[bt.Policy], Any]


def refused(policy: bt.Policy, call: Call, kind: type[Exception], says: str) -> None:
    """The call fails as it should, and the policy goes on exactly like one that never saw it."""
    name = type(policy).__name__
    twin = make(name, SHOP, 1)
    for one in (policy, twin):
        run(one, 15, 2)
    before, tree = state(policy), policy.tree
    with pytest.raises(BanditreeError, match=says) as caught:
        call(policy)
    assert isinstance(caught.value, kind), type(caught.value)
    assert same(before, state(policy))
    assert policy.tree is tree
    assert run(policy, 15, 3) == run(twin, 15, 3)


def update(arm: Any, reward: Any, *context: Any) -> Call:
    return lambda policy: policy.update(arm, reward, *context)


def update_many(arms: Any, rewards: Any, contexts: Any = None) -> Call:
    return lambda policy: policy.update_many(arms, rewards, contexts=contexts)


NAN, INF = math.nan, math.inf

# Rewards and arms: the linear policies get a context and refuse in the same words.
STEPS: list[tuple[Any, Any, type[Exception], str]] = [
    ("h1", NAN, ValueError, "reward nan for arm 'h1' is not finite"),
    ("h1", INF, ValueError, "reward inf for arm 'h1'"),
    ("h1", -INF, ValueError, "reward -inf for arm 'h1'"),
    ("h1", np.float64("nan"), ValueError, r"reward .*nan.* for arm 'h1'"),
    ("h1", None, TypeError, "reward None for arm 'h1' is a NoneType"),
    ("h1", "1", TypeError, "reward '1' for arm 'h1' is a str"),
    ("h1", [1], TypeError, r"reward \[1\] for arm 'h1' is a list"),
    ("h1", np.array([1.0]), TypeError, "for arm 'h1' is a ndarray"),
    ("h1", 1 + 0j, TypeError, r"reward \(1\+0j\) for arm 'h1'"),
    ("h9", 1, KeyError, "arm 'h9' is not in Tree.5 arms.*'s1', 's2'"),
    (None, 1, KeyError, "arm None is not in"),
    (["h1"], 1, KeyError, r"arm \['h1'\] is not in"),
    ({}, 1, KeyError, r"arm {} is not in"),
]


@pytest.mark.parametrize(("arm", "reward", "kind", "says"), STEPS, ids=[says for *_, says in STEPS])
@pytest.mark.parametrize("name", ["TSC", "UCBC", "TSMax", "LinTSC"])
def test_bad_steps(name: str, arm: Any, reward: Any, kind: type[Exception], says: str, engine: str) -> None:
    policy = make(name, SHOP, 1)
    refused(policy, update(arm, reward, *([X] if policy.dim else [])), kind, says)


OUTSIDE = [1.7, -0.1, 2, np.float32(1.5), 1 + 1e-9]


@pytest.mark.parametrize("reward", OUTSIDE)
def test_rewards_outside_the_support(reward: Any, engine: str) -> None:
    says = r"reward .* for arm 'h2' is outside \[0, 1\]; .*prior=bt.Gaussian\(\)"
    refused(make("TSC", SHOP, 1), update("h2", reward), ValueError, says)
    refused(make("TSMax", SHOP, 1), update_many(["s1", "h2"], [1, reward]), ValueError, says)
    for unbounded in (bt.TSC(SHOP, prior=bt.Gaussian(), rng=0), bt.UCBC(SHOP, rng=0)):
        unbounded.update("h2", reward)
        unbounded.update_many(["h2"], [reward])


BATCHES: list[tuple[Any, Any, type[Exception], str]] = [
    (["h1", "h2"], [1], ValueError, r"2 arms but rewards of shape \(1,\)"),
    (["h1"], [1, 0], ValueError, r"1 arms but rewards of shape \(2,\)"),
    (["h1"], 1, ValueError, r"1 arms but rewards of shape \(\)"),
    (["h1", "h2"], [[1], [0]], ValueError, r"rewards of shape \(2, 1\)"),
    (["h1", "h2"], [[1], [0, 1]], ValueError, "2 arms but rewards in lists of different lengths"),
    (["h1", "h9"], [1, 1], KeyError, "arm 'h9' is not in"),
    (["h1", ["h2"]], [1, 1], KeyError, r"arm \['h2'\] is not in"),
    ("h1", [1, 1], TypeError, "arms must be a list or an array, not 'h1'"),
    (None, [1], TypeError, "arms must be a list or an array, not None"),
    (["h1", "h2"], [1, NAN], ValueError, "reward nan for arm 'h2' is not finite"),
    (["h1", "h2"], [1, INF], ValueError, "reward inf for arm 'h2'"),
    (["h1", "h2"], [1, None], ValueError, "reward None is missing, in row 1"),
    (["h1", "h2"], [1, "0"], TypeError, "reward '0' is a str"),
    (["h1", "h2"], np.array(["a", "b"]), TypeError, "reward .*a.* is a str"),
]


@pytest.mark.parametrize(("arms", "rewards", "kind", "says"), BATCHES, ids=[says for *_, says in BATCHES])
@pytest.mark.parametrize("name", ["TSC", "UCBC", "TSMax", "LinTSC"])
def test_bad_batches(name: str, arms: Any, rewards: Any, kind: type[Exception], says: str, engine: str) -> None:
    policy = make(name, SHOP, 1)
    refused(policy, update_many(arms, rewards, None if policy.dim is None else np.ones((2, DIM))), kind, says)


CONTEXTS: list[tuple[Any, type[Exception], str]] = [
    (None, ValueError, "LinTSC needs a context of 3 numbers; pass context=x"),
    ([1, 2], ValueError, r"LinTSC needs a context of 3 numbers, a shape of \(3,\); this one has shape \(2,\)"),
    (1.0, ValueError, r"this one has shape \(\)"),
    (np.ones((1, DIM)), ValueError, r"this one has shape \(1, 3\)"),
    ([1, NAN, 0], ValueError, r"context has .*nan.* at 1"),
    ([1, 2, INF], ValueError, r"context has .*inf.* at 2"),
    (np.array([0, 0, -INF]), ValueError, r"context has .*-inf.* at 2"),
    (["a", "b", "c"], TypeError, "LinTSC needs a context of 3 numbers, and context is a list of text"),
    ([1, [2], 3], ValueError, "LinTSC needs a context of 3 numbers; these are of different lengths"),
]


@pytest.mark.parametrize(("context", "kind", "says"), CONTEXTS, ids=[says for *_, says in CONTEXTS])
def test_bad_contexts(context: Any, kind: type[Exception], says: str, engine: str) -> None:
    policy = make("LinTSC", SHOP, 1)
    refused(policy, lambda p: p.choose(context), kind, says)
    refused(make("LinTSC", SHOP, 1), update("h1", 1, context), kind, says)
    if context is not None:
        refused(make("LinTSC", SHOP, 1), lambda p: p.table(context), kind, says)


MANY: list[tuple[Any, type[Exception], str]] = [
    (None, ValueError, "LinTSC needs contexts of 3 numbers each; pass contexts=X"),
    (np.ones((2, 2)), ValueError, r"LinTSC needs 2 contexts of 3 numbers each.*\(2, 2\)"),
    (np.ones((3, DIM)), ValueError, r"LinTSC needs 2 contexts.*\(3, 3\)"),
    (np.ones(DIM), ValueError, r"\(3,\)"),
    ([[1, 2, 3], [1, NAN, 3]], ValueError, r"contexts has .*nan.* at \(1, 1\)"),
    ([[1, 2, 3], [1]], ValueError, "of different lengths"),
    ([["a"] * 3] * 2, TypeError, "column 0 in row 0 of contexts is 'a', of type str"),
]


@pytest.mark.parametrize(("contexts", "kind", "says"), MANY, ids=[says for *_, says in MANY])
def test_bad_batches_of_contexts(contexts: Any, kind: type[Exception], says: str, engine: str) -> None:
    refused(make("LinTSC", SHOP, 1), lambda p: p.choose_many(2, contexts=contexts), kind, says)
    refused(make("LinTSC", SHOP, 1), update_many(["h1", "h2"], [1, 1], contexts), kind, says)


@pytest.mark.parametrize(
    ("contexts", "kind"),
    [
        (5, TypeError),
        (1.0, TypeError),
        (np.array(1.0), TypeError),
        ("x", TypeError),
        (None, ValueError),
        (X, ValueError),
    ],
)
def test_contexts_that_are_no_rows(contexts: Any, kind: type[Exception], engine: str) -> None:
    refused(make("LinTSC", SHOP, 1), lambda p: p.choose_many(contexts=contexts), kind, "LinTSC needs")


def test_contexts_where_none_are_needed(engine: str) -> None:
    says = "TSC takes no context; leave it out, or use a policy that does, such as LinATS"
    refused(make("TSC", SHOP, 1), lambda p: p.choose(context=[1, 2]), ValueError, says)
    refused(make("TSC", SHOP, 1), update("h1", 1, [1, 2]), ValueError, says)
    refused(make("TSC", SHOP, 1), lambda p: p.choose_many(2, contexts=np.ones((2, 2))), ValueError, says)
    refused(make("TSC", SHOP, 1), update_many(["h1"], [1], np.ones((1, 2))), ValueError, says)
    refused(make("TSC", SHOP, 1), lambda p: p.table([1, 2]), ValueError, says)


@pytest.mark.parametrize(
    ("n", "kind"), [(-1, ValueError), (1.5, TypeError), ("3", TypeError), (None, TypeError), (True, TypeError)]
)
def test_bad_numbers_of_decisions(n: Any, kind: type[Exception], engine: str) -> None:
    says = "give the number of decisions" if n is None else f"n={n!r}"
    refused(make("TSC", SHOP, 1), lambda p: p.choose_many(n), kind, says)


def test_contexts_too_large_to_compute_with(engine: str) -> None:
    """Finite, but their squares are not: refused, and never taken in. The largest allowed do no harm."""
    huge, says = np.full(DIM, 1e200), r"has 1e\+200 at .* the largest allowed is 1e\+30; scale your contexts"
    refused(make("LinTSC", SHOP, 1), lambda p: p.choose(huge), ValueError, says)
    refused(make("LinTSC", SHOP, 1), lambda p: p.choose_many(contexts=huge[None]), ValueError, says)
    refused(make("LinTSC", SHOP, 1), update("h1", 1, huge), ValueError, says)
    refused(make("LinTSC", SHOP, 1), update_many(["h1"], [1], huge[None]), ValueError, says)
    policy = make("LinTSC", SHOP, 1)
    for arm in SHOP.arms:
        policy.update(arm, 1, huge / 1e170)
        policy.update(arm, 1, X)
    assert all(np.isfinite(array).all() for array in state(policy).values())
    assert policy.choose(huge / 1e170) in SHOP


def test_the_largest_that_is_allowed_does_no_harm(engine: str) -> None:
    """Extreme priors, contexts and rewards together: everything stays finite, and the policy goes on."""
    prior = bt.Linear(2, v=1e30, mean=1e30, precision=1e-30)
    policy = bt.Policy(bt.Tree(2), belief=prior, rule=bt.UCB(c=2.0), rng=0)
    for arm in (0, 1):
        for x in ([1e30, 0.0], [0.0, -1e30], [1e30, 1e30]):
            policy.update(arm, 1e100, x)
            policy.update(arm, -1e100, x)
    assert all(np.isfinite(array).all() for array in state(policy).values())
    assert policy.choose([1e30, -1e30]) in (0, 1)
    refused(make("UCB1", SHOP, 1), update("h1", 1e101), ValueError, "too large to compute with")
    refused(make("UCB1", SHOP, 1), update_many(["h1", "h2"], [1, -1e101]), ValueError, "too large to compute with")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Lin")])
def test_dim_is_needed(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} needs .*the length of the contexts, for example dim=5") as caught:
        bt.ALGORITHMS[name](SHOP)  # type: ignore[call-arg]
    assert isinstance(caught.value, BanditreeError)


PARAMETERS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bt.TS(["a", "b"]), TypeError, r"tree \['a', 'b'\] is a list; build one with bt.Tree"),  # type: ignore[arg-type]
    (lambda: bt.TS(None), TypeError, "tree None is a NoneType"),  # type: ignore[arg-type]
    (lambda: bt.HTS(SHOP, depth=-1), ValueError, "depth=-1 must be at least 0"),
    (lambda: bt.HTS(SHOP, depth=1.0), TypeError, "depth=1.0 must be an int"),  # type: ignore[arg-type]
    (lambda: bt.LinTS(SHOP, dim=0), ValueError, "dim=0"),
    (lambda: bt.LinTS(SHOP, dim="3"), TypeError, "dim='3'"),  # type: ignore[arg-type]
    (lambda: bt.LinTS(SHOP, dim=3, v=0.0), ValueError, "v=0.0"),
    (lambda: bt.LinTS(SHOP, dim=3, v=-1.0), ValueError, "v=-1.0"),
    (lambda: bt.LinUCB(SHOP, dim=3, c=NAN), ValueError, "c=nan"),
    (lambda: bt.UCBC(SHOP, clock="sun"), ValueError, "clock='sun'"),
    (lambda: bt.TSMax(SHOP, best="worst"), ValueError, "best='worst'"),
    (lambda: bt.TS(SHOP, rng="seed"), TypeError, "rng='seed'"),  # type: ignore[arg-type]
    (lambda: bt.TS(SHOP, prior=None), TypeError, "a prior is a belief"),
]


@pytest.mark.parametrize(("build", "kind", "says"), PARAMETERS, ids=[says for *_, says in PARAMETERS])
def test_bad_parameters(build: Callable[[], Any], kind: type[Exception], says: str, engine: str) -> None:
    with pytest.raises(BanditreeError, match=says) as caught:
        build()
    assert isinstance(caught.value, kind)


def test_parameters_are_keyword_only() -> None:
    for kind in bt.ALGORITHMS.values():
        with pytest.raises(TypeError, match="positional argument"):
            kind(SHOP, 1)  # type: ignore[call-arg, arg-type]


def test_messages_are_sentences() -> None:
    """Not in quotes, as a KeyError would show them."""
    with pytest.raises(KeyError) as caught:
        bt.TSC(SHOP).update("x", 1)
    assert str(caught.value).startswith("arm 'x' is not in Tree(5 arms, 2 clusters, depth 1)")
    assert str(BanditreeError()) == ""


@pytest.mark.parametrize("clusters", [None, 7, "x", ([],), (10**400, [])])
def test_wrong_clusters_of_new_arms_are_refused_before_their_siblings_are_asked(clusters: Any) -> None:
    policy = feed_all(bt.TS(SHOP, rng=1))
    before = state(policy)
    with pytest.raises(BanditreeError):
        policy.add_arms({"new": clusters}, prior="cluster")
    assert same(before, state(policy))


@pytest.mark.parametrize("size", [1e-160, 1e20, 1e30])
def test_an_estimate_from_siblings_whose_contexts_are_collinear(size: float) -> None:
    policy = bt.LinTS(SHOP, dim=2, rng=1)
    policy.update_many(["h1", "h2"], [1.0, 1.0], contexts=np.full((2, 2), size))
    policy.add_arms({"h4": ("hats",)}, prior="cluster")
    assert policy.row("h4", context=np.full(2, size))["mean"] >= 0


def feed_all(policy: bt.Policy) -> bt.Policy:
    policy.update_many(policy.tree.arms, [1.0] * len(policy.tree))
    return policy
