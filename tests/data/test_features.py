"""Features by name: what they encode to, from a mapping and from frames, as plain data, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import banditree as bt

FEATURES = bt.Features({"device": ["phone", "tablet", "desktop"], "age": (18, 90), "returning": bool})
VISITS: dict[str, Any] = {
    "id": [7, 8, 9],
    "returning": [True, False, True],
    "age": [18, 54, 200],
    "device": ["phone", "tv", "desktop"],
}
ENCODED = np.array([[1, 0, 0, -1, 1], [0, 0, 0, 0, 0], [0, 0, 1, 1, 1]], float)
FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame(VISITS),
    "pandas with categories": pd.DataFrame(VISITS).astype({"device": "category", "age": "Int64"}),
    "Polars": pl.DataFrame(VISITS),
    "lazy": pl.DataFrame(VISITS).lazy(),
    "PyArrow": pa.table(VISITS),
}


def test_columns_in_the_order_of_the_features() -> None:
    assert FEATURES.names == ("device=phone", "device=tablet", "device=desktop", "age", "returning")
    assert FEATURES.dim == 5
    assert FEATURES.spec == {"device": ["phone", "tablet", "desktop"], "age": (18, 90), "returning": bool}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_encoded_as_its_rows(kind: str) -> None:
    encoded = FEATURES.encode(FRAMES[kind])
    assert encoded.dtype == np.float64
    assert encoded.shape == (3, 5)
    np.testing.assert_array_equal(encoded, ENCODED)


def test_a_mapping_is_one_visitor() -> None:
    rows = [{name: values[row] for name, values in VISITS.items()} for row in range(3)]
    np.testing.assert_array_equal([FEATURES.encode(row) for row in rows], ENCODED)
    np.testing.assert_array_equal(FEATURES.encode(rows), ENCODED)
    assert FEATURES.encode([]).shape == (0, 5)
    with pytest.raises(TypeError, match="feature 'device' is \\['phone'"):
        FEATURES.encode(VISITS)  # never columns


def test_numbers_are_clipped_to_their_range() -> None:
    scale = bt.Features({"x": (-2.0, 6.0)})
    values: list[Any] = [-3, -2, 0, 2.0, 6, np.float32(4), 10**50]
    expected: Any = [-1.0, -1.0, -0.5, 0.0, 1.0, 0.5, 1.0]
    np.testing.assert_allclose([scale.encode({"x": value})[0] for value in values], expected)
    np.testing.assert_allclose(scale.encode(pd.DataFrame({"x": [float(v) for v in values]}))[:, 0], expected)


def test_levels_of_whole_numbers() -> None:
    shop = bt.Features({"shop": [3, 1, 2]})
    np.testing.assert_array_equal(shop.encode(pl.DataFrame({"shop": [1, 2, 9]})), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert shop.encode({"shop": np.int16(3)}).tolist() == [1, 0, 0]
    for value in ("3", 3.0, True):
        with pytest.raises(TypeError, match="feature 'shop'"):
            shop.encode({"shop": value})


@pytest.mark.parametrize("kind", [*FRAMES, "columns"])
def test_levels_and_ranges_of_a_frame(kind: str) -> None:
    frame = VISITS if kind == "columns" else FRAMES[kind]
    found = bt.Features.from_frame(frame)
    expected = {"id": (7, 9), "returning": bool, "age": (18, 200), "device": ["desktop", "phone", "tv"]}
    assert found == bt.Features(expected)
    assert found.spec == expected


def test_categories_of_whole_numbers_are_levels() -> None:
    frame = pd.DataFrame({"shop": [3, 1, 3]}).astype("category")
    assert bt.Features.from_frame(frame) == bt.Features({"shop": [1, 3]})


def test_plain_data_and_back() -> None:
    plain = json.loads(json.dumps(FEATURES.to_dict(), sort_keys=True))
    assert bt.Features.from_dict(plain) == FEATURES
    assert pickle.loads(pickle.dumps(FEATURES)) == copy.deepcopy(FEATURES) == FEATURES  # noqa: S301
    assert eval(repr(FEATURES), {"Features": bt.Features}) == FEATURES  # noqa: S307
    others: list[dict[str, Any]] = [
        {"device": ["phone", "desktop", "tablet"], "age": (18, 90), "returning": bool},
        {"age": (18, 90), "device": ["phone", "tablet", "desktop"], "returning": bool},
        {"device": ["phone", "tablet", "desktop"], "age": (18, 91), "returning": bool},
    ]
    assert all(bt.Features(other) != FEATURES for other in others)
    assert FEATURES != "features"
    assert len({FEATURES, bt.Features(FEATURES.spec)}) == 1


GOOD = {"device": "phone", "age": 30, "returning": False}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"device": None}, ValueError, "'device' is missing"),
        ({"device": 3}, TypeError, "'device' is 3, of type int; give text such as 'phone'"),
        ({"age": float("nan")}, ValueError, "'age' is missing"),
        ({"age": pd.NA}, ValueError, "'age' is missing"),
        ({"age": float("inf")}, ValueError, "'age' is inf"),
        ({"age": "30"}, TypeError, "'age' is '30', of type str"),
        ({"age": True}, TypeError, "'age' is True"),
        ({"age": 10**400}, ValueError, "'age' is 1000"),
        ({"returning": 1}, TypeError, "'returning' is 1, of type int; give True or False"),
        ({"returning": np.nan}, ValueError, "'returning' is missing"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_feature(change: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        FEATURES.encode(GOOD | change)
    assert isinstance(raised.value, bt.errors.BanditreeError)
    with pytest.raises(error, match=words.split(maxsplit=1)[0]) as raised:
        FEATURES.encode([GOOD, GOOD | change])
    assert "row 1" in str(raised.value)
    frame = pd.DataFrame([GOOD, GOOD | change], dtype=object)
    with pytest.raises(error, match="in row 1"):
        FEATURES.encode(frame)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="feature 'age'"):
        FEATURES.encode({"device": "phone", "returning": True})
    with pytest.raises(ValueError, match=r"feature 'age' .*'device'"):
        FEATURES.encode(pd.DataFrame({"device": ["phone"]}))
    with pytest.raises(TypeError, match="give a mapping"):
        FEATURES.encode(3)
    assert FEATURES.encode(pd.DataFrame(VISITS).iloc[:0]).shape == (0, 5)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({}, "must be a mapping"),
        (["device"], "must be a mapping"),
        ({3: bool}, "needs a name"),
        ({"": bool}, "needs a name"),
        ({"a": ["x"]}, "one level"),
        ({"a": []}, "no levels"),
        ({"a": ["x", "x"]}, "twice"),
        ({"a": ["x", 1]}, "all text or all whole numbers"),
        ({"a": [1.5, 2.5]}, "all text or all whole numbers"),
        ({"a": [True, False]}, "all text or all whole numbers"),
        ({"a": ("x", "y")}, "not a range"),
        ({"a": (1, 2, 3)}, "not a range"),
        ({"a": (True, 3)}, "not a range"),
        ({"a": (3, 3)}, "lower to a higher"),
        ({"a": (3, 1)}, "lower to a higher"),
        ({"a": (0, float("nan"))}, "end of the range"),
        ({"a": (0, float("inf"))}, "end of the range"),
        ({"a": (0, 1e-305)}, "too narrow"),
        ({"a": {"x", "y"}}, "list of levels"),
        ({"a": int}, "list of levels"),
        ({"a": True}, "list of levels"),
        ({"a": ["b=c", "d"], "a=b": ["c", "e"]}, "two columns would be named 'a=b=c'"),
        ({"user": [str(i) for i in range(10_000)]}, "10,000 columns, .*'user'; at most 1,000"),
        ({"x": bool, "user": list(range(1000))}, "1,001 columns"),
    ],
)
def test_features_that_are_refused(features: Any, words: str) -> None:
    with pytest.raises(bt.errors.BanditreeError, match=words):
        bt.Features(features)


def test_a_thousand_columns_are_allowed() -> None:
    assert bt.Features({"user": list(range(1000))}).dim == 1000


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "no columns"),
        ({"a": []}, "no rows"),
        ({"a": ["x", "x"]}, "'a' has one value, 'x'"),
        ({"a": [True, True]}, "one value"),
        ({"a": [3, 3.0]}, "one value"),
        ({"a": ["x", None]}, "'a' is missing in row 1"),
        ({"a": [1.0, np.nan]}, "'a' is missing in row 1"),
        ({"a": ["x", 1]}, "'a' mixes"),
        ({"a": [True, 2]}, "'a' mixes"),
        ({"a": [np.datetime64("2026-01-01"), np.datetime64("2026-01-02")]}, "'a': .*datetime64"),
        ({"a": [[1], [2]]}, "'a': .*list"),
        ({"a": "text"}, "not a column"),
        ({"a": [1, 2], "b": [1, 2, 3]}, "different lengths"),
        ({"a": [str(i) for i in range(10_000)]}, "10,000 columns"),
        ({3: [1, 2]}, "needs a name"),
    ],
)
def test_frames_that_are_refused(columns: Any, words: str) -> None:
    with pytest.raises(bt.errors.BanditreeError, match=words):
        bt.Features.from_frame(columns)


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        {},
        {"features": []},
        {"features": {"a": "bool"}},
        {"features": [3]},
        {"features": [{"levels": ["x", "y"]}]},
        {"features": [{"name": 3, "type": "bool"}]},
        {"features": [{"name": "a"}]},
        {"features": [{"name": "a", "type": "int"}]},
        {"features": [{"name": "a", "levels": "xy"}]},
        {"features": [{"name": "a", "levels": ["x", None]}]},
        {"features": [{"name": "a", "range": [1]}]},
        {"features": [{"name": "a", "range": [1, "2"]}]},
        {"features": [{"name": "a", "range": [1, 2], "levels": ["x", "y"]}]},
        {"features": [{"name": "a", "type": "bool"}, {"name": "a", "type": "bool"}]},
    ],
)
def test_plain_data_that_is_refused(plain: Any) -> None:
    with pytest.raises(bt.errors.BanditreeError):
        bt.Features.from_dict(plain)


def test_no_order_of_a_mapping_matters() -> None:
    rng = np.random.default_rng(3)
    names = list(GOOD)
    for _ in range(5):
        shuffled = {name: GOOD[name] for name in rng.permutation(names)} | {"other": object()}
        np.testing.assert_array_equal(FEATURES.encode(shuffled), FEATURES.encode(GOOD))


def test_columns_of_the_same_name_are_refused() -> None:
    frame = pd.DataFrame([["phone", 30, 31]], columns=["device", "age", "age"])
    for read in (bt.Features.from_frame, FEATURES.encode, lambda table: bt.read_catalogue(table, arm="device")):
        with pytest.raises(ValueError, match="have the same name; rename all but one"):
            read(frame)


def test_one_context_is_not_several() -> None:
    with pytest.raises(ValueError, match="needs 1 context of 3 numbers"):
        bt.LinTS(bt.Tree(2), dim=3).choose_many(contexts=np.ones((1, 2)))
