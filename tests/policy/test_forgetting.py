"""Forgetting: on the user's own clock, and with every reward. Sums by hand, both engines, files and copies."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import engines
from banditree.policy.state import hold
from banditree.stream import native_stream
from tests.support.helpers import DIM, NAMES, TREES, events, feed, make, needs_native, same, state

TREE = bt.Tree({"x": ["a", "b"], "y": ["c", {"z": ["d", "e"]}]})
Events = list[tuple[Any, float, Any]]


def evidence(policy: bt.Policy) -> dict[str, Any]:
    """What the evidence counts now, node by node."""
    with hold(policy) as held:
        rows = held.rows
        return {name: getattr(rows, name).copy() for name in rows.EVIDENCE}


def close(one: dict[str, Any], two: dict[str, Any], rtol: float = 1e-10) -> bool:
    return all(np.allclose(one[name], two[name], rtol=rtol, atol=1e-12) for name in one)


# On the user's own clock


@pytest.mark.parametrize("name", NAMES)
def test_forgetting_scales_the_evidence_and_leaves_the_prior(name: str, engine: str) -> None:
    policy = make(name, TREE)
    feed(policy, events(TREE, 60, 1, policy.dim, binary=False))
    before, prior = evidence(policy), {field: getattr(policy._state.rows, field) for field in policy._state.rows.PRIOR}
    policy.forget(0.25)  # a power of two: exact
    after = evidence(policy)
    assert all(np.array_equal(after[field], 0.25 * before[field]) for field in before)
    assert all(np.array_equal(getattr(policy._state.rows, field), prior[field]) for field in prior)
    policy.forget(0)
    fresh = make(name, TREE)
    assert same(state(policy), state(fresh), rtol=1e-12, atol=1e-12)


def test_what_is_shown_of_fractions(engine: str) -> None:
    policy = bt.TSC(TREE, rng=1)
    policy.update_many(["a", "a", "c"], [1, 0, 1])
    assert policy["a"].plays == 2
    assert isinstance(policy["a"].plays, int)
    policy.forget(0.25)
    assert policy["a"].plays == 0.5
    assert np.isclose(policy["a"].mean, (1 + 0.25) / (2 + 0.5))
    assert policy.table()[0].plays == 0.75
    assert policy["e"].plays == 0
    policy.forget(0)
    assert policy["a"].plays == 0
    assert policy["a"].mean == 0.5


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), float("inf")])
def test_factors_that_are_refused(bad: float, engine: str) -> None:
    policy = feed(bt.TSC(TREE), events(TREE, 10, 1))
    before = state(policy)
    with pytest.raises(InvalidValue, match="factor="):
        policy.forget(bad)
    with pytest.raises(InvalidType, match="factor='half'"):
        policy.forget("half")  # type: ignore[arg-type]
    assert same(state(policy), before)


def test_linear_beliefs_that_forget_are_solved_again(engine: str) -> None:
    policy = make("LinTSC", TREE)
    feed(policy, events(TREE, 50, 3, DIM))
    policy.forget(0.3)
    rows: Any = policy._state.rows
    x = np.array([0.5, 1.0, -1.0])
    b = np.eye(DIM) + rows.gram[0]
    assert np.isclose(policy.table(x)[0].mean, x @ np.linalg.solve(b, rows.moment[0]))


# By itself


@pytest.mark.parametrize("half_life", [1.0, 3.0, 50.0])
@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_the_geometric_sum_of_its_rewards(name: str, half_life: float, engine: str) -> None:
    """Reward i of n counts 2^-((n - i) / H), at its arm and all above: exactly where each reward lets 1% fade."""
    policy = make(name, TREE, half_life=half_life)
    n = 90
    history = events(TREE, n, 4, policy.dim, binary=False)
    feed(policy, history)
    shape = policy._state.walked_tree.shape
    weights = 0.5 ** ((n - 1 - np.arange(n)) / half_life)
    plays, rewards = np.zeros(shape.n_nodes), np.zeros(shape.n_nodes)
    gram, moment = np.zeros((shape.n_nodes, DIM, DIM)), np.zeros((shape.n_nodes, DIM))
    for weight, (arm, reward, x) in zip(weights, history, strict=True):
        above = shape.path_up(int(shape.node_of[policy._state.walked_tree.position(arm)]))
        plays[above] += weight
        rewards[above] += weight * reward
        if x is not None:
            gram[above] += weight * np.outer(x, x)
            moment[above] += weight * reward * x
    every = np.arange(shape.n_nodes)
    rows: Any = policy._state.rows
    assert np.allclose(rows.plays(every), plays, rtol=1e-9, atol=1e-9)
    assert np.allclose(rows.rewards(every), rewards, rtol=1e-9, atol=1e-12)
    if rows.joint and policy.dim is not None:
        lower = np.tril_indices(DIM)
        assert np.allclose(rows._square(rows.gram)[:, 1:, 1:][:, *lower], gram[:, *lower], rtol=1e-9)
    elif policy.dim is not None:
        now = evidence(policy)
        assert np.allclose(now["gram"], gram, rtol=1e-9, atol=1e-12)
        x = np.array([1.0, -0.5, 2.0])
        b = np.eye(DIM) + gram
        mean = [x @ np.linalg.solve(b[i], moment[i]) for i in every]
        sd = [np.sqrt(rows.v * x @ np.linalg.solve(b[i], x)) for i in every]
        table = policy.table(x)
        assert np.allclose([row.mean for row in table], mean, rtol=1e-9, atol=1e-12)
        assert np.allclose([row.interval for row in table], np.array(mean)[:, None] + 1.96 * np.outer(sd, [-1, 1]))


@pytest.mark.parametrize("half_life", [40.0, 150.0, 1000.0, 50_000.0])
@pytest.mark.parametrize("name", NAMES)
def test_every_reward_counts_what_it_should_within_a_hundredth(name: str, half_life: float, engine: str) -> None:
    """However rewards come: one by one, in batches, after a file. Arm i gets reward i, so its plays are the weight."""
    n = 300
    tree = bt.Tree({"x": list(range(0, n, 2)), "y": list(range(1, n, 2))})
    one, many = (make(name, tree, half_life=half_life) for _ in range(2))
    history = [(arm, 1.0, None if one.dim is None else np.ones(DIM)) for arm in range(n)]
    feed(one, history)
    for start, end in ((0, 1), (1, 5), (5, 250), (250, 300)):
        more = {} if one.dim is None else {"contexts": np.ones((end - start, DIM))}
        many.update_many(list(range(start, end)), [1.0] * (end - start), **more)
        many = bt.from_bytes(many.to_bytes(), rng=1)
    wanted = 0.5 ** ((n - 1 - np.arange(n)) / half_life)
    for policy in (one, many):
        rows, shape = policy._state.rows, policy._state.walked_tree.shape
        plays = rows.plays(shape.node_of[tree.positions(range(n))])
        assert np.allclose(np.log(plays), np.log(wanted), rtol=0, atol=0.0101)
        assert np.isclose(rows.plays(np.array([0]))[0], plays.sum())
    assert close(evidence(one), evidence(many))


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_a_batch_count_in_their_order(name: str, engine: str) -> None:
    one, many, mixed = (make(name, TREE, half_life=7.0) for _ in range(3))
    history = events(TREE, 70, 5, one.dim)
    feed(one, history)
    for at in (0, 1, 30):
        end = {0: 1, 1: 30, 30: 70}[at]
        arms, rewards, contexts = zip(*history[at:end], strict=True)
        many.update_many(list(arms), list(rewards), contexts=None if one.dim is None else np.array(contexts))
    assert close(evidence(one), evidence(many))
    feed(mixed, history[::-1])
    assert not close(evidence(one), evidence(mixed))  # the order matters here


def test_a_row_with_plays_is_one_step_of_the_clock(engine: str) -> None:
    policy = bt.TSC(TREE, half_life=1.0)
    policy.update_many(["a", "b"], [3.0, 1.0], plays=[4.0, 2.0])
    assert (policy["a"].plays, policy["b"].plays) == (2, 2)
    assert np.allclose(evidence(policy)["successes"][0], 1.5 + 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_files_copies_and_changes_of_the_tree_go_on_where_they_were(name: str, engine: str) -> None:
    kept = make(name, TREE, half_life=6.0, explore=0.25)
    history = events(TREE, 80, 6, kept.dim)
    feed(kept, history[:50])
    loaded = bt.from_bytes(kept.to_bytes(), rng=1)
    copied = copy.deepcopy(kept)
    edited = bt.from_bytes(kept.to_bytes(), rng=1)
    edited.add_arms({"f": ("x",)})
    edited.remove_arms(["f"])
    edited.move_arms({"a": ("y",)})
    edited.move_arms({"a": ("x",)})
    edited.retree(TREE)
    for policy in (loaded, copied, edited):
        assert (policy.half_life, policy.explore) == (6.0, 0.25)
        assert close(evidence(policy), evidence(kept))
    for policy in (kept, loaded, copied, edited):
        feed(policy, history[50:])
    for policy in (loaded, copied, edited):
        assert close(evidence(policy), evidence(kept))
        x = None if kept.dim is None else np.ones(DIM)
        assert np.allclose(policy.propensities(x), kept.propensities(x), atol=1e-9)


def test_moved_arms_take_what_is_left_of_their_evidence_along(engine: str) -> None:
    policy = bt.HTS(TREE, half_life=1.0)
    policy.update_many(["a", "b"], [1, 1])
    policy.move_arms({"a": ("y",)})
    assert (policy["x"].plays, policy["y"].plays, policy["a"].plays) == (1, 0.5, 0.5)
    policy.remove_arms(["b"])
    assert policy.table()[0].plays == 0.5


def test_forgetting_goes_with_a_half_life(engine: str) -> None:
    policy = bt.TSC(TREE, half_life=1.0)
    policy.update_many(["a", "b"], [1, 1])
    policy.forget(0.5)
    policy.update("b", 1)
    assert np.allclose([policy["a"].plays, policy["b"].plays], [0.125, 0.25 + 1])


@needs_native
@pytest.mark.parametrize("half_life", [1.0, 20.0, 50_000.0])
@pytest.mark.parametrize("shape", ["uneven", "clusters", "flat"])
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_draw_for_draw(name: str, shape: str, half_life: float) -> None:
    runs, ends = [], []
    for engine in ("native", "readable"):
        with engines.using(engine, shortcuts=False):
            policy = make(name, TREES[shape], native_stream(5), half_life=half_life)
        rng = np.random.default_rng(1)
        run = []
        for _ in range(60):
            x = None if policy.dim is None else rng.standard_normal(DIM)
            run.append(policy.choose(x))
            policy.update(run[-1], float(rng.integers(2)), x)
        runs.append(run)
        ends.append(evidence(policy))
    assert runs[0] == runs[1]
    assert close(ends[0], ends[1])


def test_the_clock_of_ucb_never_runs_below_one(engine: str) -> None:
    """n = 1 + 1/2 + ... < 2 at H = 1: c = sqrt(2 ln n). After forgetting n < 1, and c is 0: the mean decides."""
    policy = bt.UCB1(bt.Tree(2), half_life=1.0, rng=1)
    policy.update_many([0, 1], [1.0, 0.8])
    n, c = 1.5, np.sqrt(2 * np.log(1.5))
    index = [1.0 + c / np.sqrt(0.5), 0.8 + c / np.sqrt(1.0)]
    assert policy.propensities().tolist() == [1.0 * (index[0] > index[1]), 1.0 * (index[1] > index[0])]
    assert np.isclose(policy.table()[0].plays, n)
    policy.forget(0.1)
    assert policy.propensities().tolist() == [1, 0]
    policy.update_many([0], [0.0])
    policy.forget(0.5)  # arm 0: 0.05 of 1 and 1 of 0, so a mean below 0.8
    assert policy.propensities().tolist() == [0, 1]


@pytest.mark.parametrize("bad", [0, -1, 0.99, 1e-4, float("nan"), float("inf")])
def test_half_lives_that_are_refused(bad: float, engine: str) -> None:
    with pytest.raises(InvalidValue, match="half_life="):
        bt.TSC(TREE, half_life=bad)


def test_the_best_posterior_mean_follows_as_evidence_fades(engine: str) -> None:
    """1 of 1 beats 60 of 100 today, not when both count a hundredth."""
    policy = bt.TSMax(TREE, best="posterior", half_life=10.0, rng=1)
    policy.update_many(["a"] * 100 + ["b"], [1] * 60 + [0] * 40 + [1], plays=[1] * 101)
    fresh = bt.TSMax(TREE, best="posterior", rng=1)
    fresh.update_many(["a", "b"], [0.6, 1.0])
    for _ in range(40):
        policy.update("c", 0)
    rows: Any = policy._state.rows
    kept = policy._state.walk.summary
    assert kept is not None
    leaves = [policy._state.walked_tree.position(arm) for arm in ("a", "b")]
    nodes = policy._state.walked_tree.shape.node_of[leaves]
    best = nodes[int(np.argmax(rows.mean(nodes, None)[:, 0]))]
    assert kept[policy._state.walked_tree.shape.parent[nodes[0]]] == best


def test_a_bad_row_leaves_a_batch_unlearned(engine: str) -> None:
    policy = feed(bt.TSC(TREE, half_life=5.0), events(TREE, 10, 1))
    before = evidence(policy)
    with pytest.raises(InvalidValue, match="outside"):
        policy.update_many(["a", "b"], [1, 7])
    assert close(evidence(policy), before, rtol=0)
