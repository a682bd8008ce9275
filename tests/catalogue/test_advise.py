"""Advice on catalogues: right on worlds we know, and honest where the data cannot tell."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from banditree.catalogue import Advice, Catalogue, advise
from banditree.catalogue import advice as weighing
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.engines import engine
from banditree.tree import Tree
from tests.support.made_up_advice import COUNTED, KNOWN
from tools.pages.advice_table import Draw, World, draw, main, row, too_often_wrong, worlds


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(COUNTED, horizon=300, seeds=12, rng=1)


def test_advice_is_the_same_whatever_the_jobs(advice: Advice) -> None:
    assert str(advise(COUNTED, horizon=300, seeds=12, rng=1, jobs=2)) == str(advice)


def test_advice_has_all_its_parts(advice: Advice) -> None:
    assert advice.name in advice.table["policy"]
    assert advice.table["regret"] == sorted(advice.table["regret"])
    assert sum(advice.table["best"]) == pytest.approx(1.0)
    low, high = advice.against_flat.interval
    assert low < advice.against_flat.saving < high
    plain = advice.to_dict()
    assert plain["policy"] == advice.policy
    assert plain["inspection"]["arms"] == 6
    assert len(plain["regret"]["TS"]) == len(plain["times"])
    assert f"{advice.horizon:,} decisions" in str(advice)
    assert advice.name in advice.sentences[0]


def test_bad_questions() -> None:
    with pytest.raises(InvalidValue, match="no categories"):
        advise(Catalogue(Tree(2), means=[0.1, 0.2]), horizon=10)
    for flat in (["TS"], ["UCB1"], ["TS", "UCB1", "HTS:0"]):
        with pytest.raises(InvalidValue, match=f"none of the policies uses the tree: {flat[0]}"):
            advise(KNOWN, horizon=10, policies=flat)
    with pytest.raises(InvalidValue, match="seeds"):
        advise(KNOWN, horizon=10, seeds=1)
    with pytest.raises(InvalidType, match="horizon"):
        advise(KNOWN, horizon=1.5)  # type: ignore[arg-type]


def test_flat_is_added_to_compare_with() -> None:
    answer = advise(KNOWN, horizon=60, policies=["TSC"], seeds=4)
    assert set(answer.table["policy"]) == {"TS", "TSC"}


def test_misplaced_arms_are_a_reason_to_move_them() -> None:
    tree = Tree({"x": list(range(80)), "y": list(range(80, 160))})
    means = np.repeat([0.1, 0.5], 80) + np.tile([0.0, 0.01, 0.02, 0.03], 40)
    means[[7, 9, 85, 90]] = 0.5, 0.5, 0.1, 0.1
    answer = advise(Catalogue(tree, means=means), horizon=100, seeds=4)
    assert any("look misplaced" in line and "and 1 more" in line for line in answer.changes)


def test_a_horizon_of_one_decision() -> None:
    assert advise(KNOWN, horizon=1, seeds=4).horizon == 1


def test_checkpoints_end_at_the_horizon() -> None:
    for horizon in (1, 7, 1000):
        times = weighing._checkpoints(horizon)
        assert times[-1] == horizon
        assert times[0] >= 1


def films() -> Catalogue:
    """The best film is in a poor genre: TSC settles in the genre with the best average and never finds it."""
    rng = np.random.default_rng(0)
    tree = Tree({f"genre-{genre}": [f"{genre}-{i}" for i in range(20)] for genre in range(10)})
    means = rng.uniform(0.1, 0.2, 200)
    means[:20] = rng.uniform(0.29, 0.30, 20)
    means[20] = 0.4
    plays = np.full(200, 5000)
    return Catalogue(tree, plays, rng.binomial(plays, means))


@pytest.mark.skipif(engine() != "native", reason="minutes on the readable engine")
def test_a_policy_that_never_finds_the_best_arm_is_shown_up_beside_the_headline() -> None:
    answer = advise(films(), horizon=18_000, policies=["TSC"], seeds=8)
    losses = {row.policy: row.loss for row in answer.table}
    assert (answer.policy, answer.verdict) == ("TSC", "tree")  # over 18,000 decisions it is ahead
    assert losses["TSC"] > 1.3 * losses["TS"]
    assert answer.overtaken is not None
    assert answer.overtaken.policy == "TS"
    assert 20_000 < answer.overtaken.at < 60_000
    at_the_end, where = answer.sentences[2:4]
    assert "it has stopped learning; TS loses" in at_the_end
    assert "If that continues, TS will be ahead after about" in at_the_end
    assert "of its decisions are in genre-0, which holds the best arm with probability under 1%." in where
    assert answer.to_dict()["overtaken"]["policy"] == "TS"


def test_with_one_category_the_tree_changes_nothing_whatever_the_seed() -> None:
    tree = Tree({"everything": [f"a{i}" for i in range(8)]})
    catalogue = Catalogue(tree, np.full(8, 50), [5, 6, 9, 12, 4, 8, 20, 11])
    for seed in range(3):
        answer = advise(catalogue, horizon=200, seeds=4, rng=seed, policies=["TSC", "UCT"])
        assert (answer.policy, answer.verdict, answer.same) == ("TS", "flat", {"TSC": "TS"})
        assert "Here the categories make no difference." in answer.sentences[0]
        assert any("TSC is the same policy as TS here" in line for line in answer.sentences)
        assert not any("cannot tell" in line for line in answer.sentences)
        with_adaptive = advise(catalogue, horizon=200, seeds=20, rng=seed)
        assert with_adaptive.policy in ("ATS", "TS")  # the least regret decides, which luck has a part in
        assert (with_adaptive.verdict, with_adaptive.same) == ("flat", {"TSC": "TS"})
        assert with_adaptive.sentences[0].endswith("Here the categories make no difference.")
    asked = advise(catalogue, horizon=200, seeds=4, policies=["TSC"])
    assert asked.table["policy"] == ["TS"]
    assert asked.against_flat.saving == 0
    assert asked.to_dict()["same"] == {"TSC": "TS"}


def test_more_runs_where_luck_has_a_large_part_and_none_where_all_is_clear() -> None:
    """Arms that are nearly alike leave luck; a tree that clearly pays, nothing to ask."""
    rng = np.random.default_rng(0)
    tree = Tree({c: [f"{c}{i}" for i in range(8)] for c in "abcdef"})
    plays = np.full(48, 400)
    alike = advise(Catalogue(tree, plays, rng.binomial(400, 0.3, 48)), horizon=50, policies=["TSC"], seeds=20)
    assert alike.runs.replicates["TS"].shape[:2] == (20, 8)
    good = np.repeat([0.05, 0.05, 0.05, 0.05, 0.1, 0.8], 8)
    clear = advise(Catalogue(tree, plays, rng.binomial(400, good)), horizon=300, policies=["TSC"], seeds=20)
    assert clear.runs.replicates["TS"].shape[:2] == (20, 2)
    assert clear.against_flat.chance > 0.99


# Right on worlds we know


@pytest.mark.skipif(engine() != "native", reason="ten minutes on the readable engine")
def test_advice_is_right_on_worlds_we_know() -> None:
    """The quick form of ``make advice-table``: one more catalogue of each world, shorter and with fewer runs."""
    answer = {}
    for world in worlds():
        short = World(world.name, world.problem, min(world.horizon, 1500), world.tree, world.depth)
        answer[world.name] = draw(short, 100, seeds=12, truth_seeds=40, jobs=2)
    assert sum(item.right for item in answer.values()) >= 9, answer
    strong = answer["strong dominance"]
    assert strong.verdict == "tree"
    assert strong.right
    assert row(worlds()[0], [strong])[-1] == "1 of 1"


def test_a_best_arm_among_bad_ones_is_no_place_for_a_tree() -> None:
    """The cluster of the best arm looks worst: going down the tree has linear regret, and the advice says so."""
    tree = Tree({cluster: [f"{cluster}{i}" for i in range(8)] for cluster in "abcd"})
    means = np.full(32, 0.5)
    means[:8] = 0.9, *[0.05] * 7
    rng = np.random.default_rng(0)
    answer = advise(Catalogue(tree, np.full(32, 100), rng.binomial(100, means)), horizon=1500, seeds=80, jobs=2)
    assert answer.verdict == "flat"
    assert answer.policy in ("TS", "ATS")
    regret = {row.policy: row.regret for row in answer.table}
    assert regret["TSC"] > 1.5 * regret["TS"]


def test_the_table_is_written(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--only", "wide and near", "--draws", "1", "--seeds", "4", "--truth-seeds", "4", "--jobs", "2"]
    assert main([*options, "--out", str(tmp_path / "table.md")]) == 0
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert re.search(r"\| strong dominance, wide and near \| 3,000 \| (ATS|TSC) \(1\) \|", text)  # not TS
    assert text.endswith("| 1 of 1 |\n")
    main(options)
    assert capsys.readouterr().out == text


def test_the_table_fails_where_the_advice_is_right_less_than_9_times_in_10() -> None:
    right, noise, wrong = (Draw("TSC", "TS", "tree", ratio, z) for ratio, z in ((1.1, 9.0), (1.5, 1.9), (1.2, 2.1)))
    assert [item.right for item in (right, noise, wrong)] == [True, True, False]
    assert not too_often_wrong([right] * 8 + [noise, wrong])
    assert too_often_wrong([right] * 8 + [wrong] * 2)
