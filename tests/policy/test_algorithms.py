"""What each policy class says about itself is true, and names that users write are understood."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

import banditree as bt
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.algorithms import ALGORITHMS, WITHOUT_CONTEXTS, parse_policy
from banditree.policy.policy import Policy
from banditree.rules import UCB

TREE = bt.Tree({"a": {"b": [1, 2], "c": [3, 4]}, "d": {"e": [5, 6]}})


@pytest.mark.parametrize("kind", ALGORITHMS.values())
def test_a_class_says_what_it_is(kind: type[Policy]) -> None:
    about, parameters = kind.about, signature(kind).parameters
    assert getattr(bt, kind.__name__) is kind
    assert about.takes_depth == ("depth" in parameters)
    assert about.takes_prior == ("prior" in parameters)
    assert about.takes_contexts == ("dim" in parameters)
    options: Any = {"dim": 2} if about.takes_contexts else {}
    policy = kind(TREE, **options)
    assert (policy.dim is not None) == about.takes_contexts
    if not about.adapts:
        assert policy.depth == about.levels
    assert ("UCB" in about.family) == isinstance(policy.rule, UCB)


def test_policies_as_users_spell_them() -> None:
    assert parse_policy("ts").kind is bt.TS
    assert parse_policy(" HTS ").parameters == {}
    assert {parse_policy(text).label for text in ("HTS:2", "hts(2)", "HTS(depth=2)")} == {"HTS(depth=2)"}
    assert parse_policy(bt.LinHTS).kind is bt.LinHTS
    assert parse_policy("LinHTS:1").factory(TREE, dim=3).depth == 1
    assert [parse_policy(name).kind for name in ALGORITHMS] == list(ALGORITHMS.values())


def test_what_is_not_a_policy_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_policy("TSX")
    assert all(name in str(refused.value) for name in ALGORITHMS)
    for wrong in ("", "HTS:x", "TSC:1", "HTS:-1"):
        with pytest.raises(InvalidValue):
            parse_policy(wrong)
    with pytest.raises(InvalidValue, match="depth 2"):
        parse_policy("HTS:3", tree=TREE)
    with pytest.raises(InvalidValue):
        parse_policy("LinTS", among=WITHOUT_CONTEXTS)
    with pytest.raises(InvalidType):
        parse_policy(3)  # type: ignore[arg-type]
