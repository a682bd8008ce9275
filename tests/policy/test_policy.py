"""Policies as a user meets them: seeds, contexts, batches, tables, engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import stream
from banditree.base.tables import Row, Table
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import engines
from tests.support.helpers import DIM, NAMES, SHOP, TREES, make, needs_native, run, same, state


@pytest.mark.parametrize("name", NAMES)
def test_policies_learn(name: str, engine: str) -> None:
    """One arm pays, the others do not: after 400 steps it is chosen most of the time."""
    tree = TREES["uneven"]
    policy = make(name, tree, 3)
    x = None if policy.dim is None else np.ones(DIM)
    chosen = []
    for _ in range(400):
        arm = policy.choose(x)
        policy.update(arm, arm == "d", x)
        chosen.append(arm)
    assert chosen[-100:].count("d") > 60
    assert policy.table()[0].plays == 400


@pytest.mark.parametrize("name", NAMES)
def test_rewards_may_come_late_and_in_any_order(name: str, engine: str) -> None:
    policy = make(name, SHOP, 1)
    x = None if policy.dim is None else np.ones(DIM)
    arms = [policy.choose(x) for _ in range(20)]
    for arm in reversed(arms):
        policy.update(arm, 1, x)
    assert policy.table()[0].plays == 20


@pytest.mark.parametrize(
    "reward", [True, 1, 1.0, np.float64(1), np.float32(1), np.int8(1), np.bool_(True), np.array(1.0)]
)
@pytest.mark.parametrize("name", ["TSC", "UCBC", "LinTSC"])
def test_rewards_of_every_number_type(name: str, reward: Any, engine: str) -> None:
    policy, plain = make(name, SHOP), make(name, SHOP)
    x = None if policy.dim is None else np.ones(DIM)
    policy.update("h1", reward, x)
    plain.update("h1", 1.0, x)
    assert same(state(policy), state(plain))


@pytest.mark.parametrize("kind", [list, tuple, np.array, np.float32, lambda r: np.array(r, np.int64)])
def test_batches_of_every_type(kind: Any, engine: str) -> None:
    rewards = [1, 0, 1]
    policy, plain = make("TSC", SHOP), make("TSC", SHOP)
    policy.update_many(np.array(["h1", "s1", "h1"]), kind(rewards))
    for arm, reward in zip(["h1", "s1", "h1"], rewards, strict=True):
        plain.update(arm, reward)
    assert same(state(policy), state(plain))


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, np.float32, lambda x: np.array(x, int), lambda x: np.array([x, x]).T[:, 0]]
)
def test_contexts_of_every_type(kind: Any, engine: str) -> None:
    x = [1, -2, 3]
    policy, plain = make("LinTSC", SHOP, 1), make("LinTSC", SHOP, 1)
    assert policy.choose(kind(x)) == plain.choose(np.array(x, float))
    policy.update("h1", 0.5, context=kind(x))
    plain.update("h1", 0.5, np.array(x, float))
    many = [kind(x), kind(x)]
    assert np.array_equal(policy.choose_many(contexts=many), plain.choose_many(2, contexts=np.array([x, x], float)))
    policy.update_many(["s1", "s2"], [1, 2], contexts=many)
    plain.update_many(["s1", "s2"], [1, 2], contexts=np.array([x, x], float))
    assert same(state(policy), state(plain))


def test_batches_of_decisions_are_arrays_of_ids(engine: str) -> None:
    ints = make("TS", bt.Tree(4)).choose_many(10)
    assert ints.dtype == np.int64
    assert ints.shape == (10,)
    words = make("TS", SHOP).choose_many(10)
    assert words.dtype == object
    assert all(type(arm) is str for arm in words)
    assert type(make("TS", bt.Tree(4)).choose()) is int


# Seeds


def seeds() -> list[tuple[Any, Any]]:
    """Two of the same each."""
    return [
        (7, np.int64(7)),
        (np.random.SeedSequence(7), np.random.SeedSequence(7)),
        (np.random.default_rng(7), np.random.default_rng(7)),
        (7, np.random.SeedSequence(7)),
    ]


@pytest.mark.parametrize("pair", seeds(), ids=["int", "SeedSequence", "Generator", "int and SeedSequence"])
def test_a_seed_may_be_many_things(pair: Any, engine: str) -> None:
    one, two = (run(make("HTS", TREES["uneven"], rng), 50, 0) for rng in pair)
    assert one == two


def test_without_a_seed_every_policy_draws_afresh(engine: str) -> None:
    one, two = (bt.TS(bt.Tree(1000)).choose_many(20) for _ in range(2))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("rng", [-1, 1.5, "seed", True])
def test_bad_seeds(rng: Any, engine: str) -> None:
    with pytest.raises((InvalidType, InvalidValue), match=r"rng="):
        bt.TS(SHOP, rng=rng)


# Looking


def test_the_table(engine: str) -> None:
    policy = make("TSC", SHOP)
    policy.update_many(["h1", "h1", "s2"], [1, 1, 0])
    table = policy.table()
    assert table.columns == ("path", "plays", "mean", "interval")
    assert table["path"] == [(), ("shoes",), ("hats",), *[SHOP.path(arm) for arm in SHOP.arms]]
    assert table["plays"] == [3, 1, 2, 0, 1, 2, 0, 0]
    assert table[0].mean == 3 / 5
    assert table[-1]["plays"] == 0
    assert [row.plays for row in table[1:3]] == [1, 2]
    assert len(table) == len(list(table)) == 8
    low, high = table[2].interval
    assert 0 < low < 3 / 4 < high < 1
    text = str(table).splitlines()
    assert text[0].split() == ["path", "plays", "mean", "interval"]
    assert text[1].startswith("(all)")
    assert "hats / h1" in str(table)
    assert repr(table) == str(table)
    with pytest.raises(AttributeError, match=r"no column 'regret'; there are path, plays"):
        _ = table[0].regret
    with pytest.raises(KeyError, match="no column 'regret'"):
        table["regret"]


def test_a_long_table_is_printed_short() -> None:
    text = str(bt.TS(bt.Tree(500)).table())
    assert len(text.splitlines()) == Table.SHOWN + 2
    assert "481 more rows" in text


def test_a_table_of_one_kind_of_row() -> None:
    assert str(Table(["a"], [])) == "a"
    assert Row(a=1).a == 1
    assert str(Table(["x"], [(math.pi,)])).split() == ["x", "3.142"]


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_has_a_table_and_a_repr(name: str, engine: str) -> None:
    policy = make(name, TREES["uneven"])
    run(policy, 30, 1)
    table = policy.table() if policy.dim is None else policy.table(context=np.ones(DIM))
    assert len(table) == policy._state.walked_tree.shape.n_nodes
    assert all(row.interval[0] <= row.mean <= row.interval[1] for row in table)
    assert table["plays"][0] == 30
    assert name in repr(policy)
    assert f"{engine} engine" in repr(policy)


# Engines


def test_using_an_engine() -> None:
    with engines.using("readable"):
        assert bt.engine() == "readable"
        assert bt.TS(SHOP).engine == "readable"
    with pytest.raises(InvalidValue, match="'abacus' must be 'native' or 'readable'"), engines.using("abacus"):
        bt.TS(SHOP)


def test_the_native_engine_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engines, stream):
        monkeypatch.setattr(module, "native", None)
    assert bt.engine() == "readable"
    policy = bt.TS(SHOP, rng=1)
    assert policy.engine == "readable"
    policy.update_many(["h1"], [1])
    with pytest.raises(InvalidValue, match="BANDITREE_ENGINE='native'"), engines.using("native"):
        bt.TS(SHOP)


@needs_native
def test_parts_of_ones_own_run_on_the_readable_engine() -> None:
    class Mine(bt.Thompson):
        pass

    class MyBeta(bt.Beta):
        pass

    assert bt.Policy(SHOP, belief=bt.Beta(), rule=Mine()).engine == "readable"
    assert bt.Policy(SHOP, belief=MyBeta(), rule=bt.Thompson()).engine == "native"  # its rows are Beta's own


@needs_native
@pytest.mark.parametrize("built", ["readable", "native"])
def test_a_policy_stays_on_its_engine(built: str) -> None:
    """Changing the catalogue later, when another engine is chosen, goes on with the one the policy was built on."""
    other = {"readable": "native", "native": "readable"}[built]
    with engines.using(built):
        policy = bt.TSC(SHOP, rng=1)
    with engines.using(other):
        policy.add_arms({"h4": ("hats",)})
        policy.update_many(["h4"], [1])
        assert policy.choose() in policy.tree
        assert policy.engine == built


@pytest.mark.parametrize("name", ["TSC", "LinTSC"])
def test_nothing_is_learned_from_nothing(engine: str, name: str) -> None:
    policy = make(name, SHOP)
    contexts: Any = None if policy.dim is None else []
    policy.update_many([], [], contexts=contexts)
    assert len(policy.choose_many(0, contexts=contexts)) == 0
    assert policy.table()[0].plays == 0


def test_what_a_policy_says_of_itself(engine: str) -> None:
    policy = bt.TSC(bt.Tree({"x": ["a", "b"], "y": ["c", "d"]}), rng=1)
    assert (policy.support, policy.evaluations) == ((0.0, 1.0), 0)
    policy.choose()
    assert policy.evaluations == 4
    assert policy.row("a") == policy["a"]
    linear = bt.LinTS(bt.Tree(["a", "b"]), dim=2, rng=1)
    linear.update("a", 1.0, [1.0, 0.0])
    assert linear.row("a", context=[1.0, 0.0]) == linear.table(context=[1.0, 0.0])[1]
    assert linear.row("a", context=[1.0, 0.0]).mean == pytest.approx(0.5)


def test_a_seed_is_called_rng() -> None:
    with pytest.raises(InvalidType, match=r"ATS has no parameter 'seed'; the seed is called rng: ATS\(tree, rng=7\)"):
        bt.ATS(bt.Tree(3), seed=7)  # type: ignore[call-arg]
    with pytest.raises(InvalidType, match="TS has no parameter 'horizon'"):
        bt.TS(bt.Tree(3), horizon=7)  # type: ignore[call-arg]


def test_every_algorithm_can_be_cited() -> None:
    for name, kind in bt.ALGORITHMS.items():
        assert bt.cite(kind) == bt.cite(name)
        assert bt.cite(kind).startswith("@")
    assert "10.24963/ijcai.2021/305" in bt.cite(bt.TSC)
    assert "pandey2007" in bt.cite(bt.UCBC)
    assert "bouneffouf2019" in bt.cite(bt.UCBC)
    with pytest.raises(InvalidType, match="is not an algorithm"):
        bt.cite(7)  # type: ignore[arg-type]
