"""Trees from trees: arms added, moved and removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditree as bt
from banditree.errors import BanditreeError, InvalidType, InvalidValue, UnknownArm
from tests.helpers import SHOP
from tests.strategies import trees


@given(trees, st.data())
def test_edits_change_the_paths_they_say(tree: bt.Tree, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(tree.arms), unique=True))
    above = data.draw(st.sampled_from([(), ("new",), ("new", 7), *(path[:-1] for path in tree.paths())]))
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
    ("add_arms", {"s1": ("hats",)}, InvalidValue, "'s1' is in the tree already"),
    ("add_arms", {"n": "hats"}, InvalidType, "must be a tuple such as"),
    ("add_arms", {"n": None}, InvalidType, "must be a tuple such as"),
    ("add_arms", {"n": (None,)}, InvalidType, "cluster None"),
    ("add_arms", ["n"], InvalidType, "give a mapping"),
    ("add_arms", {1.5: ("hats",)}, InvalidType, "arm 1.5"),
    ("move_arms", {"n": ("hats",)}, UnknownArm, "'n' is not in"),
    ("move_arms", "s1", InvalidType, "give a mapping"),
    ("remove_arms", ["n"], UnknownArm, "'n' is not in"),
    ("remove_arms", "s1", InvalidType, "give a list of arms"),
    ("remove_arms", 3, InvalidType, "give a list of arms"),
    ("remove_arms", [["s1"]], UnknownArm, "is not in"),
    ("remove_arms", SHOP.arms, InvalidValue, "would remove all"),
]


@pytest.mark.parametrize(("change", "argument", "kind", "says"), BAD)
def test_bad_edits(change: str, argument: Any, kind: type[BanditreeError], says: str) -> None:
    with pytest.raises(kind, match=says):
        getattr(SHOP, change)(argument)
