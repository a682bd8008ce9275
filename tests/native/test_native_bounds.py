"""Nothing that is passed makes the native engine read or write outside its arrays, whoever calls it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree.policy import engines
from banditree.stream import native, native_stream
from tests.support.helpers import make, masked, misaligned, needs_native, same, state

Array = NDArray[Any]


def walk_of(policy: bt.Policy) -> Any:
    return policy._state.walk.native


@needs_native
def test_learn_checks_its_arguments() -> None:
    with engines.using("native"):
        plain, linear = bt.TS(bt.Tree(3), rng=0), bt.LinTS(bt.Tree(3), dim=2, rng=0)
    one = np.ones(1)
    before = state(plain), state(linear)
    for arm in (-1, 3, 10**8, -(2**63), 2**32):
        for n in (1, 1000):  # few and many take other ways
            arms = np.append(np.zeros(n - 1, np.int64), arm)
            assert walk_of(plain).learn(arms, np.ones(n), None, None) == n - 1
    for rewards in (np.ones(0), np.ones(2), np.ones((1, 1)), misaligned(one)):
        with pytest.raises(ValueError, match="one number"):
            walk_of(plain).learn(np.array([0]), rewards, None, None)
    with pytest.raises(ValueError, match="do not fit"):
        walk_of(plain).learn(np.array([0]), one, None, np.ones((1, 2)))
    with pytest.raises(ValueError, match="do not fit"):
        walk_of(linear).learn(np.array([0]), one, None, None)
    for shape in ((1, 1), (0, 2), (2,), (1, 3)):
        with pytest.raises(ValueError, match="one row"):
            walk_of(linear).learn(np.array([0]), one, None, np.ones(shape))
    for value in (np.nan, np.inf, 1e101):
        with pytest.raises(ValueError, match="finite"):
            walk_of(linear).learn(np.array([0]), one, None, np.full((1, 2), value))
    for odd in (np.array([0.0]), np.array([0], np.int32), np.zeros((1, 1), np.int64), [0]):
        with pytest.raises(TypeError):
            walk_of(plain).learn(odd, one, None, None)
    for plays in (np.ones(0), np.ones(2), misaligned(one)):
        with pytest.raises(ValueError, match="one number"):
            walk_of(plain).learn(np.array([0]), one, plays, None)
    for count in (0.0, -1.0, np.nan, np.inf, 0.5):  # 0.5: a sum of 1 is too much
        assert walk_of(plain).learn(np.array([0]), one, np.array([count]), None) == 0
    assert same(before[0], state(plain))
    assert same(before[1], state(linear))


@needs_native
def test_limits_check_their_arguments() -> None:
    with engines.using("native"):
        policy, other = bt.TS(bt.Tree(3), rng=0), bt.TS(bt.Tree(3), rng=0)
    walk: Any = walk_of(policy)
    for arm in (-1, 3, 2**40):
        with pytest.raises(ValueError, match="positions of arms"):
            walk.limits(np.array([arm]), True)
    with pytest.raises(ValueError, match="one arm"):
        walk.limits(np.zeros(0, np.int64), True)
    limits = walk.limits(np.array([0]), False)
    for node in (-1, 4):
        with pytest.raises(IndexError):
            limits.allowed(node)
    with pytest.raises(ValueError, match="another tree"):
        walk_of(other).choose_within(limits, None)
    with pytest.raises(ValueError, match="not that many"):
        walk.slate(3, limits, None)


@needs_native
def test_single_steps_refuse_what_is_not_ready() -> None:
    with engines.using("native"):
        policy = bt.LinTS(bt.Tree(3), dim=2, rng=0)
    walk, before = walk_of(policy), state(policy)
    good = np.ones(2)
    for odd in (masked(good), misaligned(good), np.ones(3), np.ones((2, 1)), np.ones(4)[::2], good.tolist(), None):
        assert walk.choose(odd) is None
        assert walk.update(0, 1.0, odd) is False
        assert walk.learn_one(0, 1.0, odd) is False
    for odd in (masked(good), np.ones((1, 3)), np.ones((2, 1)), good, np.ones((1, 4))[:, ::2], [[1.0, 1.0]], None):
        assert walk.learn_lists([0], [1.0], odd) is False
    for arm in (-1, 3):
        assert walk.learn_one(arm, 1.0, good) is False
    for other in (-1, 3, 2**80, "0", True, 1.0, np.int32(1), np.True_, None, [0], (0,), object()):
        assert walk.update(other, 1.0, good) is False
        assert walk.learn_lists([0, other], [1.0, 1.0], np.ones((2, 2))) is False
    for rewards in ([1.0], [1.0] * 3, (1.0, 1.0), np.ones(2), [1.0, None], [1.0, np.inf], None):
        assert walk.learn_lists([0, 1], rewards, np.ones((2, 2))) is False
    assert walk.learn_lists([0] * 257, [1.0] * 257, np.ones((257, 2))) is False
    for shape in ((2, 1), (1, 2), (4,)):
        with pytest.raises(ValueError, match="one row"):
            walk.choose_many(2, np.ones(shape))
    with pytest.raises(ValueError, match="too many"):
        walk.choose_many(2**31, None)
    assert same(before, state(policy))


Pieces = dict[str, Any]


def pieces(policy: bt.Policy) -> Pieces:
    """What a native walk is made of."""
    walk = policy._state.walk
    shape = {name: getattr(walk.shape, name) for name in ("start", "parent", "content", "node_of")}
    rule = {"rule": type(policy.rule).__name__, "c": 1.0, "clock": "parent", "best": "empirical"}
    rows = {"belief": walk.rows.native, "arrays": walk.rows.native_arrays(), "dim": walk.rows.dim, "v": 1.0}
    fading = {"every": 0, "factor": 1.0}
    tree = {"arms": walk.tree.arms, "index": walk.tree.index}
    return shape | rule | rows | fading | tree | {"summary": walk.summary, "rng": native_stream(0), "explore": 0.0}


def assembled(given: Pieces) -> Any:
    """A native walk of these pieces."""
    assert native is not None
    names = SimpleNamespace(**given)
    names.shape = names.tree = names.fading = names
    names.rows = SimpleNamespace(
        native=given["belief"], native_arrays=lambda: given["arrays"], dim=given["dim"], v=given["v"], law=None
    )
    names.rule = SimpleNamespace(native=given["rule"], **{name: given[name] for name in ("c", "clock", "best")})
    return native.Walk(names)


@needs_native
@pytest.mark.parametrize("name", ["TSC", "UCBC", "TSMax", "LinTSC"])
def test_a_walk_is_made_of_what_fits_together(name: str) -> None:
    assert native is not None
    given = pieces(make(name, bt.Tree({"a": 3, "b": 2})))
    assembled(given)  # the control
    wrong: list[dict[str, Any]] = [
        {"rng": None},
        {"rng": 7},
        {"dim": 40_000},
        {"belief": "Gamma"},
        *({"arms": odd} for odd in (None, list(given["arms"]), given["arms"][:-1], (*given["arms"], "more"))),
        *({"index": odd} for odd in (None, list(given["index"].items()))),
        {"rule": "None"},
        *({"explore": odd} for odd in (-0.1, 1.1, np.nan)),
        *({"factor": odd} for odd in (0.0, 1.1, np.nan)),
        {"every": -1},
    ]
    for field in ("start", "parent", "content", "node_of"):
        array = given[field]
        for place, value in ((0, 10**8), (-1, -(10**8)), (1, 0), (len(array) - 1, len(array) + 1)):
            changed = array.copy()
            changed[place] = value
            if not np.array_equal(changed, array):
                wrong.append({field: changed})
        wrong += [{field: array[:-1].copy()}, {field: array.astype(np.int64)}, {field: misaligned(array)}]
    for place, array in enumerate(given["arrays"]):
        for shorter in (array[:-1].copy(), array.astype(np.float32), misaligned(array)):
            if array.size > 1:
                wrong.append({"arrays": [*given["arrays"][:place], shorter, *given["arrays"][place + 1 :]]})
    wrong += [{"arrays": given["arrays"][:-1]}, {"arrays": []}]
    if given["summary"] is not None:
        wrong += [{"summary": given["summary"] + 100}, {"summary": given["summary"] - 100}, {"summary": None}]
        wrong += [{"summary": given["summary"][1:].copy()}, {"summary": given["summary"].astype(np.int64)}]
    for change in wrong:
        with pytest.raises((ValueError, TypeError)):
            assembled(given | change)


@needs_native
def test_positions_that_do_not_exist_are_refused() -> None:
    assert native is not None
    given = pieces(bt.TS(bt.Tree(["a", "b"]), rng=0))
    for odd in (-1, 2, 2**80, 1.0, "1", None):
        walk = assembled(given | {"index": {"a": odd, "b": 1}})
        assert walk.update("a", 1, None) is False
        assert walk.learn_lists(["b", "a"], [1, 1], None) is False
    assert walk.update("b", 1, None) is True


@needs_native
def test_an_arm_with_children_is_no_tree() -> None:
    assert native is not None
    given = pieces(bt.TSC(bt.Tree({"a": 3, "b": 2}), rng=0))
    content = given["content"].copy()
    content[1] = 0  # the cluster becomes an arm
    with pytest.raises(ValueError, match="tree"):
        assembled(given | {"content": content})


@needs_native
def test_runs_check_world_and_players() -> None:
    assert native is not None
    with engines.using("native"):
        walk = walk_of(bt.TS(bt.Tree(3), rng=0))
    player = [walk, None, native_stream(1), np.zeros(2), np.zeros(3, np.int64), None]

    def run(truth: Any = (0.1, 0.2, 0.3), times: Any = (5, 10), horizon: int = 10, **more: Any) -> Any:
        mine = list(player)
        for place, value in more.pop("player", {}).items():
            mine[place] = value
        given = {"dim": 0, "rewards": "Bernoulli", "parameter": 0.0, "contexts": ""} | more
        return native.run(
            truth=np.array(truth, float),
            context_stream=native_stream(2),
            horizon=horizon,
            times=np.array(times, np.int64),
            players=[tuple(mine)],
            monitor=native.Monitor(),
            **given,
        )

    assert run()[0] > 0  # the control
    wrong: list[dict[str, Any]] = [
        {"truth": (0.1, 0.2)},
        {"truth": (0.1, 0.2, 0.3, 0.4)},
        {"truth": ()},
        {"truth": (0.1, 0.2, np.nan)},
        {"truth": (0.1, 0.2, 1.5)},
        {"truth": [[0.1, 0.2, 0.3]]},
        {"dim": 2, "truth": np.ones((3, 2))},
        {"dim": 2, "truth": np.ones((3, 2)), "contexts": "normal", "rewards": "Uniform"},
        {"contexts": "normal"},
        {"delay": -1},
        {"batch": 0},
        {"batch": -1},
        {"every": -1},
        {"every": 5},
        {"every": 5, "next_truth": lambda change: np.ones(2)},
        {"every": 5, "next_truth": lambda change: np.full(3, 2.0)},
        {"every": 5, "next_truth": lambda change: None},
        {"delay": 2**62},
        {"times": (5, 9)},
        {"times": (5,)},
        {"times": ()},
        {"times": (0, 10)},
        {"times": (10, 10)},
        {"horizon": 11},
        {"rewards": "Gaussian", "parameter": 1.0},
        {"rewards": "Uniform", "truth": (0.1, 0.2, 0.9)},
        {"rewards": "Bounded", "parameter": 0.0},
        {"rewards": "Bounded", "parameter": np.inf},
        {"player": {1: np.array([0, 1], np.int32)}},
        {"player": {1: np.array([0, 1, 3], np.int32)}},
        {"player": {1: np.array([0, 1, -1], np.int32)}},
        {"player": {3: np.zeros(1)}},
        {"player": {4: np.zeros(2, np.int64)}},
        {"player": {4: np.zeros(3)}},
        {"player": {3: misaligned(np.zeros(2))}},
    ]
    for change in wrong:
        with pytest.raises((ValueError, TypeError)):
            run(**change)


@needs_native
def test_streams_refuse_sizes_that_overflow() -> None:
    stream: Any = native_stream(0)
    before = stream.state().tolist()
    with pytest.raises(MemoryError):
        stream.beta_fill(np.ones(1024), np.ones(1024), 2**54 + 1)
    with pytest.raises(MemoryError):
        stream.standard_gamma_fill(np.ones(16), 2**60)
    with pytest.raises(ValueError, match="aligned"):
        stream.standard_gamma_fill(misaligned(np.ones(2)), 1)
    assert stream.state().tolist() == before
