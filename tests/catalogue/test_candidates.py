"""The policies that advice compares, which of them are the same, and simulating them on a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from banditree.catalogue import simulate
from banditree.catalogue.simulation import WITHOUT_TREE, Candidate, default_worlds, depths, for_tree, parse_candidates
from banditree.errors import InvalidValue
from banditree.policy.algorithms import HTS, TS, without_contexts
from banditree.tree import Tree
from tests.support.made_up_advice import COUNTED, KNOWN, SHOP


def test_candidates_are_flat_every_depth_uct_and_ats() -> None:
    assert [item.label for item in for_tree(SHOP)] == ["TS", "TSC", "HTS(depth=2)", "UCT", "ATS"]
    assert [item.label for item in for_tree(Tree(3))] == ["TS", "UCT"]
    assert depths(8) == [2, 3, 4, 5, 6, 7, 8]
    assert depths(30)[0] == 2
    assert depths(30)[-1] == 30
    assert len(depths(30)) == 7
    assert Candidate(HTS, 2).code(None) == "bt.HTS(tree, depth=2)"
    assert Candidate(TS).code(None) == "bt.TS(tree)"


def test_candidates_as_users_spell_them() -> None:
    candidates = parse_candidates(["ts", " HTS", "hts:1", "UCT(depth=1)", "HTS(2)", "TSMax"], SHOP)
    assert [item.label for item in candidates] == ["TS", "HTS(depth=2)", "HTS(depth=1)", "UCT(depth=1)", "TSMax"]
    with pytest.raises(InvalidValue, match="needs contexts"):
        parse_candidates(["LinTS"], SHOP)
    for wrong in (["HTS:x"], ["TSC:1"], ["ATS:1"], ["HTS:9"], []):
        with pytest.raises(InvalidValue):
            parse_candidates(wrong, SHOP)


def test_every_kind_of_candidate_is_built_and_explained() -> None:
    for name in without_contexts():
        (candidate,) = parse_candidates([name], SHOP)
        assert candidate.how
        assert "{" not in candidate.how
        assert candidate.factory(None)(SHOP, rng=0).choose() in SHOP


def test_a_candidate_without_the_tree_has_the_same_arms() -> None:
    policy = WITHOUT_TREE.factory(None)(SHOP, rng=0)
    assert (policy.tree.arms, policy.tree.depth) == (SHOP.arms, 0)
    assert WITHOUT_TREE.code(None) == "bt.ATS(tree.cut(0))"
    assert WITHOUT_TREE.label == "ATS without the tree"


# Simulations


def test_a_simulation_has_regret_and_traffic() -> None:
    candidates = simulate(COUNTED, horizon=400, policies=["TS", "TSC"], seeds=6, rng=3)
    again = simulate(COUNTED, horizon=400, policies=["TSC"], seeds=6, rng=3, jobs=2)
    assert (candidates.runs.regret["TSC"] == again.runs.regret["TSC"]).all()
    assert candidates.traffic.columns == ("cluster", "arms", "TS", "TSC")
    assert sum(candidates.traffic["TSC"]) == pytest.approx(1.0)
    assert candidates.traffic[0].cluster == "hats"
    plain: Mapping[str, Any] = candidates.to_dict()
    assert plain["policies"][0]["policy"] == min(
        "TS", "TSC", key=lambda name: candidates.runs.regret[name][:, -1].mean()
    )
    assert len(plain["regret"]["TS"]) == len(plain["times"])
    assert "hats" in str(candidates)


def test_each_seed_meets_a_world_of_its_own_or_the_means_that_are_known() -> None:
    assert simulate(KNOWN, horizon=50, policies=["TS"], seeds=2).runs.instance is not None
    drawn = COUNTED.world()
    assert not drawn.fixed
    assert drawn.instance(0).best() != drawn.instance(1).best()


def test_the_default_effort_follows_the_size() -> None:
    assert (default_worlds(1e9), default_worlds(1e9, quick=True)) == (8, 4)
    assert default_worlds(1e-6) == 200
