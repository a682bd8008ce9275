"""Trees from trees: arms added, moved and removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditree as bt
from banditree.errors import BanditreeError, InvalidType, InvalidValue, UnknownArm
from tests.support.helpers import SHOP
from tests.support.hypothesis_strategies import trees


@given(trees, st.data())
def test_edits_change_the_paths_they_say(tree: bt.Tree, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(tree.arms), unique=True))
    above = data.draw(st.sampled_from([(), ("new",), ("new", -7), *(path[:-1] for path in tree.paths())]))
    paths = {arm: tree.path(arm) for arm in tree.arms}

    moved = tree.move_arms(dict.fromkeys(some, above))
    assert moved.arms == tree.arms
    assert {arm: moved.path(arm) for arm in moved.arms} == paths | {arm: (*above, arm) for arm in some}

    added = tree.add_arms({"fresh": above, 10**9: ()})
    assert added.arms == (*tree.arms, "fresh", 10**9)
    assert {arm: added.path(arm) for arm in added.arms} == paths | {"fresh": (*above, "fresh"), 10**9: (10**9,)}

    assert added.remove_arms(["fresh", 10**9]).paths() == tree.paths()
    if len(some) < tree.n_arms:
        left = tree.remove_arms(some)
        assert {arm: left.path(arm) for arm in left.arms} == {arm: p for arm, p in paths.items() if arm not in some}
        assert left.arms == tuple(arm for arm in tree.arms if arm not in some)


def test_empty_clusters_go_and_new_ones_come() -> None:
    assert list(SHOP.remove_arms(["s1", "s2"]).clusters) == ["hats"]
    assert list(SHOP.move_arms({"s1": ("bags",), "s2": ("hats",)}).clusters) == ["bags", "hats"]
    assert SHOP.add_arms({"b1": ("bags", "small")}).path("b1") == ("bags", "small", "b1")
    assert SHOP.remove_arms([]) == bt.Tree.from_paths(SHOP.paths())


BAD: list[tuple[str, Any, type[BanditreeError], str]] = [
    ("add_arms", {"s1": ("hats",)}, InvalidValue, "'s1' is already in the tree"),
    ("add_arms", {"n": "hats"}, InvalidType, "must be a tuple such as"),
    ("add_arms", {"n": None}, InvalidType, "must be a tuple such as"),
    ("add_arms", {"n": (None,)}, InvalidType, "cluster None"),
    ("add_arms", ["n"], InvalidType, "give a mapping"),
    ("add_arms", {1.5: ("hats",)}, InvalidType, "arm 1.5"),
    (
        "add_arms",
        {"s3": SHOP.path("s1")},
        InvalidValue,
        r"the path of an arm has the arm last; leave it off: \('shoes',\)",
    ),
    ("add_arms", {"s3": ("shoes", "s3")}, InvalidValue, "end in arm 's3'"),
    ("move_arms", {"s1": SHOP.path("h1")}, InvalidValue, "end in arm 'h1'"),
    ("move_arms", {"s1": SHOP.path("s1")}, InvalidValue, "end in arm 's1'"),
    ("move_arms", {"n": ("hats",)}, UnknownArm, "'n' is not in"),
    ("move_arms", "s1", InvalidType, "give a mapping"),
    ("remove_arms", ["n"], UnknownArm, "'n' is not in"),
    ("remove_arms", "s1", InvalidType, "arms to remove must be a list"),
    ("remove_arms", 3, InvalidType, "arms to remove must be a list"),
    ("remove_arms", [["s1"]], UnknownArm, "is not in"),
    ("remove_arms", SHOP.arms, InvalidValue, "would remove all"),
]


@pytest.mark.parametrize(("change", "argument", "kind", "says"), BAD)
def test_bad_edits(change: str, argument: Any, kind: type[BanditreeError], says: str) -> None:
    with pytest.raises(kind, match=says):
        getattr(SHOP, change)(argument)


def test_clusters_may_be_called_like_arms() -> None:
    """Numbers often are both. A path that is a cluster already is no mistake either, whatever its arms are called."""
    numbered = bt.Tree.from_labels([0, 1, 0, 1])
    assert numbered.add_arms({4: (2,), 5: (0,)}).clusters == {0: [0, 2, 5], 1: [1, 3], 2: [4]}
    twice = bt.Tree.from_paths([("shoes", "s1"), ("shoes", "s1", "s2")])
    assert twice.add_arms({"s3": twice.path("s1")}).path("s3") == ("shoes", "s1", "s3")
