"""Rules: indices by hand, the best arm of a cluster, ties at random, and how often a Thompson sample wins."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.rules import RULES
from tests.support.helpers import SHOP, feed, needs_native

P_FLOOR = 1e-6
ERRORS = 6.0  # standard errors; 2e-9


def scores(policy: bt.Policy, node: int, rng: Any = 0, context: Any = None) -> Any:
    """What the rule says of a node's children: (k,)."""
    state = policy._state
    shape = state.walked_tree.shape
    children = np.arange(shape.start[node], shape.start[node + 1])
    at = None if context is None else np.asarray(context, float)[None]
    view = bt.View(state.rows, node, children, at, 1, np.random.default_rng(rng), state.walk.summary)
    return np.broadcast_to(policy.rule.score(view), (len(children), 1))[:, 0]


# UCB

THREE = bt.Tree(3)


def test_ucb1_by_hand(engine: str) -> None:
    """n = 6: arms with 3, 2, 1 plays and means 1/3, 1/2, 0."""
    policy = feed(
        bt.UCB1(THREE, rng=0), [(0, 1, None), (0, 0, None), (0, 0, None), (1, 1, None), (1, 0, None), (2, 0, None)]
    )
    by_hand = [
        1 / 3 + math.sqrt(2 * math.log(6) / 3),
        1 / 2 + math.sqrt(2 * math.log(6) / 2),
        math.sqrt(2 * math.log(6)),
    ]
    assert scores(policy, 0) == pytest.approx(by_hand)
    assert {policy.choose() for _ in range(20)} == {THREE.arms[int(np.argmax(by_hand))]} == {2}


def test_untried_arms_come_first(engine: str) -> None:
    policy = feed(bt.UCB1(THREE, rng=0), [(1, 1, None)] * 50)
    assert scores(policy, 0).tolist() == [np.inf, 1 + math.sqrt(2 * math.log(50) / 50), np.inf]
    assert {policy.choose() for _ in range(50)} == {0, 2}


def test_after_one_play_the_clock_stands_still(engine: str) -> None:
    """ln 1 = 0: inside a cluster with one play the index of the arm played is its mean."""
    tree = bt.Tree({"c": ["x"], "d": ["y", "z"]})
    policy = feed(bt.UCBC(tree, rng=0), [("x", 1, None), ("y", 0.5, None)])
    d = tree.nodes.top_clusters["d"]
    assert scores(policy, d).tolist() == [0.5, np.inf]
    solo = feed(bt.UCB1(bt.Tree(2), rng=0), [(0, 0.5, None)])
    assert scores(solo, 0).tolist() == [0.5, np.inf]


def test_clocks(engine: str) -> None:
    """Inside hats, 4 of 10 plays: the parent's clock says ln 4, the global one ln 10; at the root both say ln 10."""
    history = (
        [("h1", 1, None), ("h1", 0, None), ("h2", 1, None), ("h3", 0, None)]
        + [("s1", 0, None)] * 3
        + [("s2", 1, None)] * 3
    )
    node = SHOP.nodes.top_clusters["hats"]
    plays, means = np.array([2, 1, 1]), np.array([0.5, 1, 0])
    for clock, n in (("cluster", 4), ("global", 10)):
        policy = feed(bt.UCBC(SHOP, clock=clock, rng=0), history)
        assert scores(policy, node) == pytest.approx(means + np.sqrt(2 * np.log(n) / plays))
        top = [0.5 + math.sqrt(2 * math.log(10) / 6), 0.5 + math.sqrt(2 * math.log(10) / 4)]
        assert scores(policy, 0) == pytest.approx(top)


def test_clocks_choose_differently(engine: str) -> None:
    """x: 100 plays, mean 0.9; y: 20 plays, mean 0.4. Bonuses at ln 120: 0.31 and 0.69, at ln 100,120: 0.48 and 1.07."""
    tree = bt.Tree({"c": ["x", "y"], "d": ["z"]})
    arms = ["x"] * 100 + ["y"] * 20 + ["z"] * 100_000
    rewards = [0.9] * 100 + [0.4] * 20 + [0.0] * 100_000
    chosen = {}
    for clock in ("cluster", "global"):
        policy = bt.UCBC(tree, clock=clock, rng=0)
        policy.update_many(arms, rewards)
        chosen[clock] = {policy.choose() for _ in range(10)}
    assert chosen == {"cluster": {"x"}, "global": {"y"}}


def test_linucb_by_hand(engine: str) -> None:
    """Nothing is forced: an untried arm's index is c |x|. One play of x = (3, 4), reward 2: B^-1 takes 25 to 25/26."""
    policy = bt.LinUCB(bt.Tree(2), dim=2, c=0.5, rng=0)
    policy.update(0, 2.0, context=[3, 4])
    found = scores(policy, 0, context=[3, 4])
    assert found == pytest.approx([2 * 25 / 26 + 0.5 * math.sqrt(25 / 26), 0.5 * 5])
    assert {policy.choose(context=[3.0, 4.0]) for _ in range(10)} == {1}
    assert {policy.choose(context=[-3.0, -4.0]) for _ in range(10)} == {1}
    policy.update(1, 0.0, context=[3, 4])
    assert {policy.choose(context=[3.0, 4.0]) for _ in range(10)} == {0}


@pytest.mark.parametrize(("name", "tree"), [("UCB1", bt.Tree(60)), ("UCT", bt.Tree({"a": 40, "b": {"c": 50}}))])
def test_wide_nodes_step_to_the_highest_index(name: str, tree: bt.Tree, engine: str) -> None:
    """Through single rewards, batches and changes of the tree; ties and untried arms, at random, are never left out."""
    policy = bt.ALGORITHMS[name](tree, rng=1)  # type: ignore[call-arg]
    rng = np.random.default_rng(0)

    def steps_to_the_highest(arm: Any) -> bool:
        shape = policy._state.walked_tree.shape
        path = shape.path_up(int(shape.node_of[policy._state.walked_tree.position(arm)]))
        for child, node in itertools.pairwise(path):
            index = scores(policy, node)
            if index[child - shape.start[node]] < index.max() * (1 - 1e-12):
                return False
        return True

    for step in range(250):
        arm = policy.choose()
        assert steps_to_the_highest(arm), step
        policy.update(arm, float(rng.integers(3) / 2))
        if step % 50 == 20:
            policy.update_many(rng.integers(tree.n_arms, size=30), rng.integers(2, size=30))
        if step == 130:
            policy.remove_arms([0, 7])
            policy.add_arms({0: (), 7: ()})
    assert all(steps_to_the_highest(arm) for arm in set(policy.choose_many(50).tolist()))
    assert not all(steps_to_the_highest(arm) for arm in tree.arms)  # the control


# The best arm


def best_of(policy: bt.Policy, cluster: Any) -> Any:
    """The arm that stands for a top cluster; the cluster itself where none was tried."""
    tree = policy._state.walked_tree
    node = tree.nodes.top_clusters[cluster]
    assert policy._state.walk.summary is not None
    return tree.nodes.name(int(policy._state.walk.summary[node]))


H = {"hats": ["h1", "h2", "h3"], "shoes": ["s1", "s2"]}
BEST: list[tuple[str, list[tuple[str, float]], str, str]] = [
    ("nothing tried", [], "hats", "h1"),
    ("one tried, however bad, against the prior's 1/2", [("h2", 0)], "h2", "h1"),
    ("one tried and good", [("h2", 1)], "h2", "h2"),
    (
        "highest mean: 2/3 against 1/2; posterior 3/5 against 1/2",
        [("h1", 1), ("h1", 0), ("h3", 1), ("h3", 1), ("h3", 0)],
        "h3",
        "h3",
    ),
    (
        "1/1 against 3/4: empirical h1; posterior 2/3 against 4/6, a tie, so more plays",
        [("h1", 1), *[("h2", 1)] * 3, ("h2", 0)],
        "h1",
        "h2",
    ),
    ("a tie in means: more plays", [("h1", 1), ("h2", 1), ("h2", 1)], "h2", "h2"),
    ("a tie in means at 1/2: more plays", [("h1", 1), ("h1", 0), *[("h3", 1), ("h3", 0)] * 2], "h3", "h3"),
    ("other clusters do not matter", [("s1", 1), ("s1", 1), ("h3", 1)], "h3", "h3"),
]


@pytest.mark.parametrize(
    ("history", "empirical", "posterior"), [case[1:] for case in BEST], ids=[case[0] for case in BEST]
)
def test_the_best_arm_by_hand(history: Any, empirical: str, posterior: str, engine: str) -> None:
    for best, expected in (("empirical", empirical), ("posterior", posterior)):
        one_by_one = feed(bt.TSMax(bt.Tree(H), best=best, rng=0), [(arm, reward, None) for arm, reward in history])
        assert best_of(one_by_one, "hats") == expected
        batched = bt.TSMax(bt.Tree(H), best=best, rng=0)
        batched.update_many([arm for arm, _ in history], [reward for _, reward in history])
        assert best_of(batched, "hats") == expected


def test_fractions_of_a_reward_are_whole_plays(engine: str) -> None:
    """0.3 + 0.3 + 0.3 successes and 0.7 three times failures are three plays, whatever the rounding."""
    policy = feed(bt.TSMax(bt.Tree(H), rng=0), [("h1", 0.3, None)] * 3 + [("h2", 0.9, None)] + [("h3", 0.1, None)] * 7)
    assert [row.plays for row in policy.table() if row.path[-1:] in (("h1",), ("h2",), ("h3",))] == [3, 1, 7]
    assert best_of(policy, "hats") == "h2"


def test_a_cluster_samples_from_its_best_arm(engine: str) -> None:
    """hats: h1 has Beta(31, 1), h2 Beta(1, 31); shoes: s1 Beta(16, 16). Pooled, hats would win half the time."""
    policy = feed(
        bt.TSMax(bt.Tree(H), rng=1),
        [("h1", 1, None)] * 30 + [("h2", 0, None)] * 30 + [("s1", i % 2, None) for i in range(30)],
    )
    n = 4000
    hats = sum(arm in ("h1", "h2", "h3") for arm in policy.choose_many(n)) / n
    expected = wins([(31, 1), (16, 16)])[0]
    assert abs(hats - expected) <= ERRORS * math.sqrt(expected * (1 - expected) / n) + 1e-9
    pooled = wins([(31, 31), (16, 16)])[0]
    assert abs(hats - pooled) > ERRORS * math.sqrt(0.25 / n)


# Ties


def spread_evenly(counts: Any) -> bool:
    return bool(stats.chisquare(counts).pvalue > P_FLOOR)


@pytest.mark.parametrize("width", [3, 30])
@pytest.mark.parametrize("name", ["UCB1", "UCBC", "UCT", "LinUCB", "LinUCBC"])
def test_ties_are_broken_at_random(name: str, width: int, engine: str) -> None:
    """Cold index policies tie everywhere: every cluster, and every arm in it, is as likely as its siblings."""
    tree = bt.Tree(dict.fromkeys(range(4), width))
    more: Any = {"dim": 2} if name.startswith("Lin") else {}
    policy = bt.ALGORITHMS[name](tree, rng=5, **more)
    n = 2000
    X = np.tile([1.0, -2.0], (n, 1)) if more else None
    counts = np.bincount(policy.choose_many(n, contexts=X), minlength=4 * width)
    one_by_one = np.bincount([policy.choose(None if X is None else X[0]) for _ in range(n)], minlength=4 * width)
    assert spread_evenly(counts)
    assert spread_evenly(one_by_one)


def test_a_position_bias_would_show() -> None:
    """The control: the first of those that tie, with a probability of just 0.1, and at random otherwise."""
    rng = np.random.default_rng(5)
    biased = np.where(rng.random(3000) < 0.1, 0, rng.integers(12, size=3000))
    assert not spread_evenly(np.bincount(biased, minlength=12))


def test_thompson_samples_that_tie_are_broken_at_random(engine: str) -> None:
    """Gaussian beliefs too narrow for their mean tie in floating point, always."""
    policy = bt.TS(bt.Tree(4), prior=bt.Gaussian(sd=1e-300, mean=1.0), rng=3)
    assert spread_evenly(np.bincount(policy.choose_many(3000), minlength=4))
    assert spread_evenly(np.bincount([policy.choose() for _ in range(3000)], minlength=4))


# How often a Thompson sample wins


def wins(posteriors: list[tuple[float, float]]) -> Any:
    """Probability that each of several Beta draws is the highest, by integration: (k,)."""
    laws = [stats.beta(a, b) for a, b in posteriors]
    below = np.array([law.cdf(np.linspace(0, 1, 4001)) for law in laws])  # (k, points)
    one = np.ones((1, below.shape[1]))
    before = np.cumprod(np.concatenate([one, below[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([one, below[:0:-1]]), axis=0)[::-1]
    # Integrate against dF rather than f dx: densities may be infinite at the ends.
    return integrate.trapezoid(before * after, below, axis=1)


def winning_counts(posteriors: list[tuple[float, float]], n: int, seed: int) -> Any:
    """How often each arm is chosen at beliefs that hold these posteriors, as prior or as evidence on Beta(1, 1)."""
    prior: dict[Any, bt.Belief] = {i: bt.Beta(a, b) for i, (a, b) in enumerate(posteriors)}
    policy = bt.TS(bt.Tree(len(posteriors)), prior=prior, rng=seed)
    return counted(policy, n)


def counted(policy: bt.Policy, n: int) -> Any:
    """How often each of the arms 0, 1, ... is chosen, mostly in a batch and some one by one: (arms,)."""
    k, one_by_one = int(np.max(policy.tree.arms)) + 1, n // 10
    many = np.bincount(policy.choose_many(n - one_by_one), minlength=k)
    return many + np.bincount([policy.choose() for _ in range(one_by_one)], minlength=k)


def close(counts: Any, expected: Any) -> bool:
    n = counts.sum()
    errors = np.sqrt(expected * (1 - expected) / n)
    return bool((np.abs(counts / n - expected) <= ERRORS * errors + 1e-4).all())


MANY = 50

NODES: dict[str, list[tuple[float, float]]] = {
    "two": [(3, 5), (4, 4)],
    "several": [(1, 1), (10, 12), (50, 60), (2, 9)],
    "below 1": [(0.5, 0.5), (0.2, 0.1), (3, 4)],
    "many": [(1 + i % 7, 2 + i % 5) for i in range(MANY)],
}


@needs_native
def test_many_are_as_many_as_the_native_engine_walks_by_its_shortcut() -> None:
    assert bt.TS(bt.Tree(MANY))._state.walk.native.min_wide <= MANY


@pytest.mark.parametrize("name", NODES)
def test_winning_frequencies(name: str, engine: str) -> None:
    posteriors = NODES[name]
    counts = winning_counts(posteriors, 20_000, 9)
    assert close(counts, wins(posteriors))
    swapped = [(b, a) for a, b in posteriors]
    assert not close(counts, wins(swapped))


def test_many_children_follow_every_change(engine: str, tmp_path: Path) -> None:
    """A wide node keeps its frequencies right through single rewards, batches, changes of the tree, and loading."""
    k = MANY
    policy: bt.Policy = bt.TS(bt.Tree(k), rng=2)
    rng = np.random.default_rng(0)
    a, b = np.ones(k), np.ones(k)

    def learn(n: int, batch: bool) -> None:
        arms, rewards = rng.integers(k, size=n), rng.integers(2, size=n)
        np.add.at(a, arms, rewards)
        np.add.at(b, arms, 1 - rewards)
        if batch:
            policy.update_many(arms, rewards)
        else:
            for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
                policy.update(arm, reward)

    def right() -> bool:
        posteriors = list(zip(a.tolist(), b.tolist(), strict=True))
        counts = counted(policy, 5000)
        return close(counts, wins(posteriors))

    assert right()
    learn(60, batch=False)
    assert right()
    learn(60, batch=True)
    assert right()
    policy.remove_arms([0])
    a[0], b[0] = 1e-6, 1e6  # never chosen
    assert right()
    policy.add_arms({0: ()})
    a[0], b[0] = 1, 1
    assert right()
    learn(60, batch=False)
    assert right()
    policy.save(tmp_path / "policy")
    policy = bt.load(tmp_path / "policy", rng=3)
    assert right()
    a[:], b[:] = np.roll(a, 1), np.roll(b, 1)
    assert not right()  # the control: the same beliefs one place on


# Bad ones


@pytest.mark.parametrize(
    ("build", "kind", "says"),
    [
        (lambda: bt.UCB(c=0), InvalidValue, "c=0 must be above 0"),
        (lambda: bt.UCB(c="x"), InvalidType, "c='x'"),  # type: ignore[arg-type]
        (lambda: bt.UCB(clock="wall"), InvalidValue, "clock='wall' must be one of 'parent', 'global'"),
        (lambda: bt.UCBC(SHOP, clock="wall"), InvalidValue, "clock='wall'"),
        (lambda: bt.BestArm(best="worst"), InvalidValue, "best='worst'"),
        (lambda: bt.TSMax(SHOP, best=1), InvalidValue, "best=1"),  # type: ignore[arg-type]
        (lambda: bt.Policy(SHOP, belief=bt.Beta(), rule="UCB"), InvalidType, "must be a rule"),  # type: ignore[arg-type]
        (lambda: bt.Policy(SHOP, belief=bt.Counts(), rule=bt.BestArm()), InvalidValue, "no prior to sample from"),
        (
            lambda: bt.Policy(SHOP, belief=bt.Linear(2), rule=bt.BestArm(best="posterior")),
            InvalidValue,
            "depends on the context",
        ),
    ],
)
def test_bad_rules(build: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        build()


def test_the_registry_has_every_rule() -> None:
    assert {bt.Thompson, bt.UCB, bt.BestArm} <= set(RULES.values())
    for kind in RULES.values():
        assert kind(**kind().parameters()) == kind()


@dataclasses.dataclass(frozen=True)
class Least(bt.Rule):
    """The child with the fewest plays: a rule may look at anything a view shows."""

    def score(self, view: bt.View) -> Any:
        assert view.plays_here == view.plays().sum()
        assert view.plays_total >= view.plays_here
        assert view.sample().shape == (len(view.children), view.m)
        return -view.plays()


def test_a_rule_of_ones_own_sees_the_view() -> None:
    policy = bt.Policy(SHOP, belief=bt.Beta(), rule=Least(), rng=0)
    assert policy.engine == "readable"
    for _ in range(60):
        policy.update(policy.choose(), 1)
    plays = {row.path: row.plays for row in policy.table()}
    assert plays[("shoes",)] == plays[("hats",)] == 30
    assert plays[("shoes", "s1")] == 15
    assert plays[("hats", "h3")] == 10
