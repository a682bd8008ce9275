"""The page of LinATS: its worlds can be played, and its numbers are those of the runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import banditree as bt
from tests.support.helpers import needs_native
from tools.pages import robustness_contexts as contexts
from tools.pages.robustness import main
from tools.pages.robustness_numbers import Point

WORLDS = {world.name: world for world in contexts.context_worlds()}


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_has_contexts_with_a_constant_or_the_papers(name: str) -> None:
    instance = WORLDS[name].problem.instance(3)
    x = instance.context(np.random.default_rng(0))
    assert x is not None
    assert "figure" in name or x[0] == 1.0
    assert {"LinATS", "LinTS", "LinTSC", "LinUCB", "LinUCBC", "ATS"} <= set(WORLDS[name].policies())


def test_the_best_arm_is_misplaced() -> None:
    world = WORLDS["misplaced"]
    instance = world.problem.instance(5)
    theta = instance.theta  # type: ignore[attr-defined]
    cluster = np.array([instance.tree.path(arm)[0] for arm in instance.tree.arms])
    best = int(theta[:, 0].argmax())
    others = {name: theta[(cluster == name) & (np.arange(len(theta)) != best), 0].mean() for name in set(cluster)}
    assert sorted(others, key=lambda name: float(others[name])).index(cluster[best]) < 3


def test_who_is_told_has_one_copy_in_effect() -> None:
    policy = contexts.told(bt.Tree({"a": ["x", "y"], "b": ["z"]}), dim=1, widths=((0.5, 0.1), (1.0, 0.3)), rng=1)
    for reward in range(8):
        policy.update("x", reward, context=[float(reward % 3)])
    rows = policy._state.rows
    weight, variance = rows.weights()  # type: ignore[attr-defined]
    prior = np.exp(rows.log_prior)  # type: ignore[attr-defined]
    np.testing.assert_allclose(weight, prior / prior.sum(), rtol=1e-9)
    np.testing.assert_allclose(variance, variance[0])


def test_the_summary_says_what_was_missed() -> None:
    world = WORLDS["clicks"]
    regret = {"LinATS": np.array([90.0, 110.0]), "LinTS": np.array([200.0, 200.0]), "ATS": np.array([50.0, 50.0])}
    text = contexts.context_page([[Point(world, 100, regret)]], {"clicks": [0.9, 0.8]})
    assert "| worst ratio to LinTS | 0.50 | at most 0.9 |" in text
    assert "| worst ratio to the best of the others | 2.00 **missed** | at most 1.1 |" in text
    assert "| clicks | 90% | 80% |" in text


@needs_native
def test_the_page_is_made_beside_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.pages.robustness.context_worlds", lambda: [WORLDS["mixed effects, 2 features"]])
    assert main(["--out", str(tmp_path / "robustness.md"), "--quick", "--part", "contexts", "--jobs", "1"]) == 0
    text = (tmp_path / "robustness-contexts.md").read_text(encoding="utf-8")
    assert "# How robust is LinATS?" in text
    assert "told the widths" in text
