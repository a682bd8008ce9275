"""The numbers of ATS: few, explained, fixed, and printed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

import banditree as bt
from banditree.beliefs.law import Law

TREE = bt.Tree({"a": ["x", "y"], "b": ["z"]})


def test_every_number_has_a_sentence_and_there_are_few() -> None:
    rows = Law().rows()
    assert len(rows) == len(fields(Law)) <= 12
    for name, value, why in rows:
        assert why.endswith(".")
        assert f"{name}={value!r},  # {why}" in repr(Law())


def test_policies_tell_the_law_that_their_beliefs_go_by() -> None:
    policy = bt.ATS(TREE)
    assert policy.law is policy._state.rows.law
    with pytest.raises(FrozenInstanceError):
        policy.law.fall = 1.0  # type: ignore[misc]
