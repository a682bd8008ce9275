"""Vowpal Wabbit's decision logs: what we write comes back as it was, vw itself reads it, and its own logs are read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import ope
from banditree.errors import InvalidType, InvalidValue

MEANS = {1: 0.1, 2: 0.5, "c": 0.8}


def made(n: int = 400, seed: int = 1, **more: Any) -> ope.Log:
    rng = np.random.default_rng(seed)
    arms = [list(MEANS)[place] for place in rng.integers(3, size=n)]
    table: dict[str, Any] = {
        "arm": arms,
        "paid": [round(float(rng.normal(MEANS[arm], 0.1)), 3) for arm in arms],
        "p": rng.uniform(0.1, 0.9, n),
        "device": rng.choice(["tv", "pc", 'a "quoted" é'], n),
        "age": rng.integers(18, 80, n),
        "score": rng.standard_normal(n),
        "returning": rng.random(n) < 0.5,
        "at": np.arange(n)[::-1],
    }
    table |= more
    context = ["device", "age", "score", "returning"]
    return bt.read_log(table, arm="arm", reward="paid", propensity="p", context=context, time="at")


@pytest.mark.parametrize("name", ["log.dsjson", "log.dsjson.gz"])
@pytest.mark.parametrize(
    "times", [np.arange(400)[::-1], [f"2026-01-{1 + i % 28:02d}T10:00:00.123456Z" for i in range(400)]]
)
def test_what_was_written_comes_back_as_it_was(name: str, times: Any, tmp_path: Path) -> None:
    log = made(at=times)
    log.to_dsjson(tmp_path / name)
    back = bt.read_log(tmp_path / name)
    assert back.arms.tolist() == log.arms.tolist()
    assert {type(arm) for arm in back.ids} == {int, str}
    assert log.propensities is not None
    assert np.array_equal(back.rewards, log.rewards)
    assert back.propensities is not None
    assert np.array_equal(back.propensities, log.propensities)
    assert back.contexts is not None
    assert log.contexts is not None
    assert np.array_equal(back.contexts, log.contexts)
    assert (back.columns, back.context_names, back.features) == (log.columns, log.context_names, log.features)
    assert log.times is not None
    assert back.times is not None
    assert np.array_equal(back.times, log.times)
    assert repr(back) == repr(log)
    assert (name[-2:] == "gz") == ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b")


def test_paths_and_estimated_propensities_come_back(tmp_path: Path) -> None:
    table = {"arm": ["a", "b"], "propensity": [0.5, 0.5], "reward": [1, 0], "path": ['["x", "a"]', '["y", "z", "b"]']}
    table |= {"at": ["2026-01-01", "2026-01-02"]}
    log = bt.read_log(table)
    log.to_dsjson(tmp_path / "paths.dsjson")
    back = bt.read_log(tmp_path / "paths.dsjson")
    assert back.tree == log.tree
    assert back.tree is not None
    assert back.tree.path("b") == ("y", "z", "b")
    fitted = bt.read_log(table, arm="arm", reward="reward", propensity="estimated")
    fitted.to_dsjson(tmp_path / "fitted.dsjson")
    assert bt.read_log(tmp_path / "fitted.dsjson").estimated
    with pytest.raises(InvalidValue, match="no propensities"):
        bt.read_log(table, arm="arm", reward="reward").to_dsjson(tmp_path / "none.dsjson")


def test_vw_reads_what_we_wrote_and_learns_the_best_action_from_it(tmp_path: Path) -> None:
    vw = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed: vw did not read what we wrote")
    n = 600
    rng = np.random.default_rng(3)
    arms = rng.integers(3, size=n)
    log = made(
        n, arm=[list(MEANS)[place] for place in arms], paid=(rng.random(n) < np.array([*MEANS.values()])[arms]) * 1.0
    )
    log.propensities = np.full(n, 1 / 3)
    log.to_dsjson(tmp_path / "log.dsjson")
    workspace = vw.Workspace(f"--cb_explore_adf --dsjson -d {tmp_path / 'log.dsjson'} --quiet --epsilon 0 -P 1")
    assert workspace.get_weighted_examples() == n
    # vw's progressive estimate of what its own choices would have earned: near the best arm's 0.8, not the log's 0.47.
    assert -workspace.get_sum_loss() / n > 0.65
    with (tmp_path / "log.dsjson").open() as file:
        line = file.readline().strip()
    chances = workspace.predict(workspace.parse(line))
    actions = json.loads(line)["c"]["_multi"]
    assert actions[int(np.argmax(chances))]["_id"] == "c"
    workspace.finish()


def line(**changes: Any) -> str:
    """A decision as Personalizer and VW's documentation write it."""
    decision: dict[str, Any] = {
        "_label_cost": -1.0,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "e"}],
        "Timestamp": "2021-02-12T15:50:00.7000000Z",
        "Version": "1",
        "EventId": "e",
        "a": [2, 1],
        "c": {
            "GUser": {"device": "phone", "age": 30},
            "_multi": [{"TAction": {"topic": "Herbs"}}, {"TAction": {"topic": "Skiing"}}],
        },
        "p": [0.8, 0.2],
        "VWState": {"m": "model"},
    }
    return json.dumps(decision | changes) + "\n"


def test_logs_of_others_are_read_by_number_or_by_a_feature(tmp_path: Path) -> None:
    file = tmp_path / "decisions.json.gz"  # known by its content
    rows = [line(), line(_labelIndex=0, _label_cost=0.0, _label_probability=0.2), line(_label_cost=None)]
    rows += [line(_skipLearn=True), json.dumps({"RewardValue": 1.0, "EventId": "e"}) + "\n", "\n"]
    file.write_bytes(gzip.compress("".join(rows).encode()))
    log = bt.read_log(file)
    assert (log.arms.tolist(), log.rewards.tolist()) == ([2, 1], [1.0, 0.0])
    assert log.propensities is not None
    assert log.propensities.tolist() == [0.8, 0.2]
    assert log.without_reward == 1
    assert log.contexts is None
    assert any("1 decision that did not take place" in note for note in log.notes)
    assert any("1 line without a decision" in note for note in log.notes)
    named = bt.read_log(file, arm="TAction.topic", context=["GUser.device", "age"])
    assert named.arms.tolist() == ["Skiing", "Herbs"]
    assert named.columns == {"GUser.device": ["phone"] * 2, "age": [30, 30]}
    assert bt.read_log(file, arm="topic").arms.tolist() == ["Skiing", "Herbs"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("not json\n", "row 2: not a JSON object"),
        ("[1]\n", "row 2: not a JSON object"),
        ("[" * 100_000 + "\n", "row 2: not a JSON object"),
        (line(_labelIndex=7), "row 2: _labelIndex 7 is not one of its 2 actions"),
        (line(_label_cost="much"), "row 2: _label_cost 'much' is not a number"),
        (line(_label_probability=0), "row 2, column '_label_probability': 0"),
        (line(c={"_multi": 3}), "row 2: has no list of actions"),
        (line(c={"_multi": [], "_slots": []}), "row 2"),
    ],
)
def test_what_is_wrong_has_its_line(bad: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "decisions.dsjson"
    file.write_text(line() + bad)
    with pytest.raises(ope.LogError, match=words):
        bt.read_log(file)


def test_columns_of_a_decision_log_are_not_named(tmp_path: Path) -> None:
    file = tmp_path / "decisions.dsjson"
    file.write_text(line())
    with pytest.raises(InvalidType, match="no columns to name"):
        bt.read_log(file, arm="topic", reward="click")
    with pytest.raises(ope.LogError, match="no feature 'name'"):
        bt.read_log(file, arm="name")


@pytest.mark.parametrize("cost", [10**400, -(10**400)])
def test_costs_that_floats_cannot_hold_are_told(tmp_path: Path, cost: int) -> None:
    file = tmp_path / "decisions.dsjson"
    file.write_text(line(_label_cost=cost))
    with pytest.raises(ope.LogError, match="too large"):
        bt.read_log(file)
