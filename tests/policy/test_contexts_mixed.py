"""Contexts as people have them: frames with dummies beside numbers, missing values, text and dicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import banditree as bt
from tests.support.helpers import ENGINES

FRAME = pd.DataFrame({"new": [True, False], "visits": [1, 2], "age": [0.5, 0.6]})
NUMBERS = np.array([[1.0, 1.0, 0.5], [0.0, 2.0, 0.6]])
MIXED: dict[str, Any] = {
    "dummies beside numbers": FRAME,
    "bools as objects": FRAME.astype({"new": object}),
    "numbers as objects": FRAME.astype(object),
    "nullable booleans": FRAME.astype({"new": "boolean"}),
    "nullable ints": FRAME.astype({"visits": "Int64"}),
    "Polars": pl.from_pandas(FRAME),
    "rows of mixed types": [[True, 1, 0.5], [np.False_, np.int8(2), np.float64(0.6)]],
}


def policy() -> bt.Policy:
    return bt.LinTSC(bt.Tree({"a": 2, "b": [5, 6]}), dim=3, rng=3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", MIXED)
def test_mixed_columns_are_the_numbers_they_stand_for(kind: str, engine: str) -> None:
    with bt.policy.engines.using(engine):
        one, two = policy(), policy()
        one.update_many([0, 5], [1.0, 0.0], contexts=MIXED[kind])
        two.update_many([0, 5], [1.0, 0.0], contexts=NUMBERS)
        assert one.choose_many(contexts=MIXED[kind]).tolist() == two.choose_many(contexts=NUMBERS).tolist()
        assert repr(one.table(context=NUMBERS[0])) == repr(two.table(context=NUMBERS[0]))


def test_a_row_of_a_frame_is_a_context() -> None:
    one, two = policy(), policy()
    one.update(5, 1.0, FRAME.iloc[0])
    two.update(5, 1.0, NUMBERS[0])
    assert one.best(context=FRAME.iloc[1]) == two.best(context=NUMBERS[1])


@pytest.mark.parametrize(
    ("contexts", "error", "words"),
    [
        (FRAME.assign(new=pd.array([True, None], dtype="boolean")), ValueError, "column 'new' in row 1 .*is missing"),
        (FRAME.assign(visits=pd.array([None, 1], dtype="Int64")), ValueError, "column 'visits' in row 0 .*is missing"),
        (FRAME.assign(age=[0.5, None]).astype(object).where(lambda f: f.notna(), None), ValueError, "'age' in row 1"),
        (
            FRAME.assign(new=["yes", "no"]),
            TypeError,
            "column 'new' in row 0 .*is 'yes', of type str; .*ColumnTransformer",
        ),
        ([[1, 2, "x"], [1, 2, 3]], TypeError, "column 2 in row 0 .*is 'x', of type str; .*ColumnTransformer"),
        ([{"new": True}, {"new": False}], TypeError, "list of a dict; .*docs/contexts.md .*ColumnTransformer"),
        ({"new": True, "age": 3}, TypeError, "a dict; .*features=.*docs/contexts.md"),
        (["returning", "new"], TypeError, "list of text; .*docs/contexts.md"),
        ("new", TypeError, "text; .*docs/contexts.md"),
        (FRAME.assign(age=pd.to_datetime(["2024-01-01", "2024-01-02"])), TypeError, "column 'age' .*Timestamp"),
    ],
)
def test_what_is_not_a_number_is_named(contexts: Any, error: type[Exception], words: str) -> None:
    one = policy()
    before = repr(one.table())
    for call in (
        lambda: one.choose_many(contexts=contexts),
        lambda: one.update_many([0, 5], [1, 0], contexts=contexts),
    ):
        with pytest.raises(error, match=words):
            call()
    assert repr(one.table()) == before


@pytest.mark.parametrize("context", [{"new": 1, "age": 2, "visits": 3}, "abc", ["a", "b", "c"]])
def test_a_single_context_too(context: Any) -> None:
    one = policy()
    for call in (lambda: one.choose(context), lambda: one.update(0, 1.0, context)):
        with pytest.raises(TypeError, match=r"docs/contexts\.md"):
            call()


class Arrow:
    """What PyArrow's arrays are to us: they hold scalars of their own, and `to_pylist` gives plain values."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to_pylist(self) -> list[Any]:
        return self.values


def test_arrays_that_hold_scalars_of_their_own_name_arms() -> None:
    one, two = policy(), policy()
    one.update_many(Arrow([0, 5]), [1.0, 0.0], contexts=NUMBERS)
    two.update_many([0, 5], [1.0, 0.0], contexts=NUMBERS)
    assert repr(one.table()) == repr(two.table())


def test_arrays_that_hold_scalars_of_their_own_make_trees() -> None:
    arms, kinds = pa.array(["x", "y", "z"]), pa.array(["a", "a", "b"])
    assert bt.Tree(arms).arms == ("x", "y", "z")
    assert bt.Tree({"a": arms[:2], "b": arms[2:]}) == bt.Tree.from_labels(kinds, arms=arms)
    assert bt.Tree(pa.chunked_array([[1, 2], [3]])).arms == (1, 2, 3)


@pytest.mark.parametrize(
    "clicks",
    [
        np.array([True, np.False_], object),
        pd.array([True, False], "boolean"),
        pd.Series([1, 0], dtype=object),
        pd.array([1, 0], "Int64"),
        pl.Series([True, False]),
    ],
    ids=["bools as objects", "nullable booleans", "ints as objects", "nullable ints", "Polars"],
)
def test_rewards_are_the_numbers_they_stand_for(clicks: Any) -> None:
    one, two = (bt.TSC(bt.Tree({"a": 2, "b": [5, 6]}), rng=3) for _ in range(2))
    one.update_many([0, 5], clicks)
    two.update_many([0, 5], [1.0, 0.0])
    assert repr(one.table()) == repr(two.table())


@pytest.mark.parametrize(
    ("rewards", "error", "words"),
    [
        (pd.array([True, None], "boolean"), ValueError, "reward <NA> is missing, in row 1; leave out rows"),
        (pd.Series([1, None], dtype=object), ValueError, "reward None is missing, in row 1"),
        (pd.Series([True, "no"], dtype=object), TypeError, "reward 'no' is a str, in row 1; give numbers"),
        ([0, 10**400], ValueError, "reward inf for arm 5 is not finite"),
        ({0, 1}, TypeError, "rewards is a set, which has no order"),
    ],
)
def test_what_is_in_the_way_of_rewards_is_named(rewards: Any, error: type[Exception], words: str) -> None:
    policy = bt.TSC(bt.Tree({"a": 2, "b": [5, 6]}), rng=3)
    with pytest.raises(error, match=words):
        policy.update_many([0, 5], rewards)
