"""Advice on catalogues: right on worlds we know, and honest where the data cannot tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from banditree.catalogue import Advice, Catalogue, advise
from banditree.catalogue import advice as weighing
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.engines import engine
from banditree.tree import Tree
from tests.support.made_up_advice import COUNTED, KNOWN
from tools.pages.advice_table import Draw, World, draw, row, text, too_often_wrong, worlds


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(COUNTED, horizon=300, seeds=12, rng=1)


def test_advice_is_the_same_whatever_the_jobs(advice: Advice) -> None:
    assert str(advise(COUNTED, horizon=300, seeds=12, rng=1, jobs=2)) == str(advice)


def test_advice_has_all_its_parts(advice: Advice) -> None:
    assert advice.name in advice.table["policy"]
    assert advice.table["regret"] == sorted(advice.table["regret"])
    assert sum(advice.table["best"]) >= 1.0
    assert advice.categories is not None
    low, high = advice.categories.interval
    assert low < advice.categories.saving < high
    plain = advice.to_dict()
    assert plain["policy"] == advice.policy
    assert plain["inspection"]["arms"] == 6
    assert len(plain["regret"]["TS"]) == len(plain["times"])
    assert f"{advice.horizon:,} decisions" in str(advice)
    assert advice.name in advice.sentences[0]


def test_bad_questions() -> None:
    with pytest.raises(InvalidValue, match="no categories"):
        advise(Catalogue(Tree(2), means=[0.1, 0.2]), horizon=10)
    with pytest.raises(InvalidValue, match="seeds"):
        advise(KNOWN, horizon=10, seeds=1)
    with pytest.raises(InvalidType, match="horizon"):
        advise(KNOWN, horizon=1.5)  # type: ignore[arg-type]


def test_ts_and_ats_with_and_without_the_tree_are_added() -> None:
    answer = advise(KNOWN, horizon=60, policies=["TSC"], seeds=4)
    assert set(answer.table["policy"]) == {"TS", "TSC", "ATS", "ATS without the tree"}


def test_a_horizon_of_one_decision() -> None:
    assert advise(KNOWN, horizon=1, seeds=4).horizon == 1


def test_checkpoints_end_at_the_horizon() -> None:
    for horizon in (1, 7, 1000):
        times = weighing._checkpoints(horizon)
        assert times[-1] == horizon
        assert times[0] >= 1


def test_with_one_category_the_tree_makes_no_difference() -> None:
    tree = Tree({"everything": [f"a{i}" for i in range(8)]})
    catalogue = Catalogue(tree, np.full(8, 50), [5, 6, 9, 12, 4, 8, 20, 11])
    answer = advise(catalogue, horizon=200, seeds=4, policies=["TSC", "UCT"])
    assert set(answer.table["policy"]) == {"TS", "TSC", "UCT", "ATS"}
    assert (answer.verdict, answer.categories) == ("flat", None)
    assert "The categories make no difference here" in answer.sentences[2]


def test_categories_that_say_nothing_are_worth_nothing_however_good_ats_is() -> None:
    """Shuffled categories: flat ATS has far less regret than TS, and that is not what the categories are worth."""
    rng = np.random.default_rng(1)
    tree = Tree({c: [f"{c}{i}" for i in range(50)] for c in "abcdef"})
    plays = np.full(300, 200)
    catalogue = Catalogue(tree, plays, rng.binomial(plays, rng.beta(4, 40, 300)))
    answer = advise(catalogue, horizon=3000, policies=["TSC"], seeds=30)
    regret = {row.policy: row.regret for row in answer.table}
    assert regret["ATS"] < 0.9 * regret["TS"]  # and yet
    assert answer.verdict in ("flat", "cannot tell")


def test_an_interval_holds_the_mean_over_all_worlds() -> None:
    """Of 20 answers from 12 worlds each, as many intervals as they promise hold the saving in 400 other worlds."""
    known = advise(COUNTED, horizon=200, policies=["TSC"], seeds=400, rng=1).categories
    assert known is not None
    answers = [advise(COUNTED, horizon=200, policies=["TSC"], seeds=12, rng=seed).categories for seed in range(2, 22)]
    inside = sum(found.interval[0] < known.saving < found.interval[1] for found in answers if found is not None)
    assert inside >= 16  # of 20; fewer at 95% has a chance of 0.3%


# Right on worlds we know


@pytest.mark.skipif(engine() != "native", reason="ten minutes on the readable engine")
def test_advice_is_right_on_worlds_we_know() -> None:
    """The quick form of docs/advice-table.md: one more catalogue of each world, shorter and with fewer runs."""
    answer = {}
    for world in worlds():
        short = World(world.name, world.problem, min(world.horizon, 1500), world.tree, world.depth)
        answer[world.name] = draw(short, 100, seeds=12, truth_seeds=40, jobs=2)
    assert sum(item.right for item in answer.values()) >= 9, answer
    strong = answer["strong dominance"]
    assert strong.verdict != "flat"
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


def test_the_table_is_written(tmp_path: Path) -> None:
    world = next(world for world in worlds() if "wide and near" in world.name)
    found = draw(world, 0, seeds=4, truth_seeds=4, jobs=2)
    assert found.advised in ("ATS", "TSC")  # not TS
    numbers = {"ratio": str(found.ratio), "z": str(found.z)}
    line = {"part": f"{world.name}, 0", "advised": found.advised, "best": found.best, "verdict": found.verdict}
    written = text([{**line, **numbers}], tmp_path)
    assert f"| strong dominance, wide and near | 3,000 | {found.advised} (1) |" in written
    assert "The advice is right on **1 of 1** catalogues." in written
    assert (tmp_path / "images/advice-table.png").stat().st_size > 3000


def test_the_table_fails_where_the_advice_is_right_less_than_9_times_in_10() -> None:
    right, noise, wrong = (Draw("TSC", "TS", "tree", ratio, z) for ratio, z in ((1.1, 9.0), (1.5, 1.9), (1.2, 2.1)))
    assert [item.right for item in (right, noise, wrong)] == [True, True, False]
    assert not too_often_wrong([right] * 8 + [noise, wrong])
    assert too_often_wrong([right] * 8 + [wrong] * 2)
