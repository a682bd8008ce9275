"""What is no catalogue, no policy, no number of worlds: an error of ours that says what to give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.catalogue import Catalogue, advise, inspect, read_catalogue, simulate
from banditree.errors import BanditreeError, InvalidType, InvalidValue, UnknownArm
from banditree.simulation.simulator import MAX_STEPS

TREE = bt.Tree({"x": ["a", "b"], "y": ["c"]})
ITEMS = Catalogue(TREE, means=[0.1, 0.2, 0.3])
ANY: Any = bt


class Own(bt.TSC):
    """A policy of one's own."""


BAD: list[tuple[Callable[[], Any], type[BanditreeError], str]] = [
    (lambda: ANY.advise("items.csv", horizon=9), InvalidType, r"'items.csv' is a str; read it first with bt.read_cat"),
    (lambda: ANY.catalogue.simulate("items.csv", horizon=9), InvalidType, "read it first with bt.read_catalogue"),
    (lambda: ANY.catalogue.inspect({"item": [1]}), InvalidType, "is a dict; read it first with bt.read_catalogue"),
    (lambda: inspect(ITEMS, worlds=0), InvalidValue, "worlds=0 must be at least 1"),
    (lambda: inspect(ITEMS, worlds=-1), InvalidValue, "worlds=-1 must be at least 1"),
    (lambda: inspect(ITEMS, worlds=2.5), InvalidType, "worlds=2.5 must be an int"),  # type: ignore[arg-type]
    (lambda: Catalogue(TREE, means=["a", "b", "c"]), InvalidType, r"means must be numbers, .* not \['a', 'b', 'c'\]"),
    (lambda: Catalogue(TREE, means=[[0.1], [0.2, 0.3], 1]), InvalidValue, "lists of different lengths"),
    (lambda: Catalogue(TREE, means={"a": 0.1, "b": 0.2}), InvalidValue, "means has no value for arm 'c'"),
    (lambda: Catalogue(TREE, means={"d": 0.1}), UnknownArm, "means has 'd'"),
    (lambda: Catalogue({"x": ["a"]}, means=[0.1]), InvalidType, "is a dict; build one with bt.Tree"),  # type: ignore[arg-type]
    (
        lambda: ANY.advise(ITEMS, horizon=9, policies=[bt.LinTS]),
        InvalidType,
        "'TSC' or 'HTS:2', or one of ATS, TS, TSC",
    ),
    (lambda: ANY.advise(ITEMS, horizon=9, policies=[Own]), InvalidType, "Own.* must be a name such as 'TSC'"),
    (lambda: simulate(ITEMS, horizon=9, policies=3), InvalidType, "policy 3 must be a name"),  # type: ignore[arg-type]
    (lambda: simulate(ITEMS, horizon=10**20), InvalidValue, f"horizon={10**20} must be from 1 to {MAX_STEPS}"),
    (lambda: advise(ITEMS, horizon=10**20), InvalidValue, f"must be from 1 to {MAX_STEPS}"),
    (lambda: bt.simulate([bt.TS], ITEMS.world(), horizon=10**20, seeds=1), InvalidValue, f"from 1 to {MAX_STEPS}"),
    (lambda: read_catalogue({}, arm="i", path="dept, sub", mean="m"), InvalidType, r"for example \['dept', 'sub'\]"),
]


@pytest.mark.parametrize(("call", "kind", "says"), BAD, ids=[says for *_, says in BAD])
def test_mistakes_are_named(call: Callable[[], Any], kind: type[BanditreeError], says: str) -> None:
    with pytest.raises(kind, match=says):
        call()


def test_values_may_be_given_by_arm() -> None:
    known = Catalogue(TREE, means={"c": 0.3, "a": 0.1, "b": 0.2})
    assert np.array_equal(known.rates, ITEMS.rates)
    counted = Catalogue(TREE, plays={"c": 30, "a": 10, "b": 20}, successes={"b": 2, "c": 3, "a": 1})
    assert counted.rates.tolist() == [0.1, 0.1, 0.1]


@pytest.mark.parametrize("policies", ["TSC", bt.TSC, [bt.TSC], ["tsc"]])
def test_policies_are_names_or_classes_one_or_many(policies: Any) -> None:
    assert simulate(ITEMS, horizon=9, policies=policies, seeds=1).runs.policies == ("TSC",)
    assert set(advise(ITEMS, horizon=9, policies=policies, seeds=4).table["policy"]) > {"TS", "TSC"}
