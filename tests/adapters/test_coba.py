"""A policy as a coba learner: exact probabilities, changing actions, contexts of every kind, coba's own checks."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from coba.environments import Environments
from coba.evaluators import SequentialCB
from coba.experiments import Experiment
from coba.learners import LinTSLearner
from coba.primitives import Categorical
from coba.safety import SafeLearner

import banditree as bt
from banditree.errors import BanditreeError

ACTIONS = ["red", "green", "blue"]


class Batch(list[Any]):
    is_batch = True


def trained(factory: Any, context: Any = None, **options: Any) -> Any:
    """A learner that has seen 30 rewards, 0 or 1, of three actions, blue being the best."""
    learner, rng = bt.adapters.coba(factory, rng=3, **options), np.random.default_rng(3)
    for _ in range(30):
        action, probability = learner.predict(context, ACTIONS)
        learner.learn(context, action, float(rng.random() < 0.4 + 0.1 * ACTIONS.index(action)), probability)
    return learner


@pytest.mark.parametrize("factory", [bt.ATS, bt.TS, bt.TSC, bt.UCB1, bt.LinATS, bt.LinTS, bt.LinTSC, bt.LinUCB])
@pytest.mark.parametrize("context", [None, 0.3, "phone", [0.2, 0.9], ("a", 1.5), {"age": 2, "device": "phone"}])
def test_any_policy_works_with_any_context(factory: Any, context: Any) -> None:
    learner = trained(factory, context)
    probabilities = [learner.score(context, ACTIONS, action) for action in ACTIONS]
    assert sum(probabilities) == pytest.approx(1, abs=1e-9)
    action, probability = learner.predict(context, ACTIONS)
    assert probability == pytest.approx(learner.score(context, ACTIONS, action), abs=1e-9)
    assert learner.policy.table()[0].plays == 30


@pytest.mark.parametrize("factory", [bt.ATS, bt.LinATS, bt.LinTSC])
def test_actions_are_chosen_as_often_as_their_probability_says(factory: Any) -> None:
    learner, n = trained(factory, [0.5]), 1500
    offered = ["red", "blue"]
    expected = learner.score([0.5], offered, "blue")
    share = np.mean([learner.predict([0.5], offered)[0] == "blue" for _ in range(n)])
    assert 0.05 < expected < 0.95
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    assert abs(share - learner.score([0.5], ACTIONS, "blue")) > 1e-3  # what else is offered matters


def test_actions_may_change_with_every_interaction() -> None:
    learner = bt.adapters.coba(bt.ATS, rng=1)
    assert learner.predict(None, ["a"]) == ("a", 1.0)
    for offered in (["b", "c"], ["c", "d"], ["a"], ["e", "d", "c"]):
        action, probability = learner.predict(None, offered)
        assert action in offered
        learner.learn(None, action, 1, probability)
    assert set(learner.policy.tree.arms) == set("abcde")
    learner.learn(None, "f", 1, None)  # of another policy's log
    assert learner.policy["f"].plays == 1


def test_text_features_of_an_action_are_its_clusters() -> None:
    learner = bt.adapters.coba(bt.TSC, rng=1)
    learner.predict(None, [("sports", "football", 1), ("sports", "tennis", 2), ("news", "world", 3)])
    learner.predict(None, [{"category": "news", "id": "n7"}, (1, 0, 0), 5.5])
    tree = learner.policy.tree
    assert set(tree.clusters) >= {"sports", "news"}
    assert tree.path("(sports, football, 1)")[:2] == ("sports", "football")
    assert tree.path("category=news, id=n7")[:1] == ("news",)
    assert tree.path("(1, 0, 0)") == ("(1, 0, 0)",)


def test_path_gives_the_clusters() -> None:
    learner = bt.adapters.coba(bt.TSC, path=lambda action: (f"tens-{action // 10}",), rng=1)
    learner.predict(None, [3, 7, 12])
    assert learner.policy.tree.clusters == {"tens-0": [3, 7], "tens-1": [12]}


def test_equal_features_are_one_arm_whatever_holds_them() -> None:
    learner = bt.adapters.coba(bt.TS, rng=1)
    learner.predict(None, [(0, 1), (1, 0)])
    learner.predict(None, [[0.0, 1.0], (1.0, 0.0)])
    learner.predict(None, [Categorical("x", ["x", "y"]), "y"])
    learner.predict(None, ["x", "y"])
    assert learner.policy.tree.n_arms == 4


def test_actions_that_read_the_same_are_still_different_arms() -> None:
    learner = bt.adapters.coba(bt.TS, rng=1)
    learner.predict(None, [(1, 2), "(1, 2)"])
    assert learner.policy.tree.n_arms == 2


def test_new_features_change_no_belief() -> None:
    rng = np.random.default_rng(5)
    names = [f"f{i}" for i in range(9)]
    growing = bt.adapters.coba(bt.LinTS, rng=1)
    whole = bt.LinTS(bt.Tree(ACTIONS), dim=10, rng=1)
    for step in range(60):
        known = names[: 1 + step // 7]
        x = {name: float(value) for name, value in zip(known, rng.normal(size=len(known)), strict=True)}
        action, _ = growing.predict(x, ACTIONS)
        reward = float(rng.normal())
        growing.learn(x, action, reward, 1.0)
        whole.update(action, reward, context=[1.0, *(x.get(name, 0.0) for name in names)])
    x = dict.fromkeys(names, 1.0)
    ours = [growing.score(x, ACTIONS, action) for action in ACTIONS]
    np.testing.assert_allclose(ours, whole.propensities(np.ones(10)), atol=1e-9)


def test_no_two_streams_are_alike_after_growing() -> None:
    """The first draws after a rebuild are not the first draws of the policy before it."""
    before = bt.adapters.coba(bt.LinTS, rng=1)
    first = [before.predict({"a": 1.0}, ACTIONS)[0] for _ in range(40)]
    again = [before.predict({"a": 1.0, "b": 0.0, "c": 0.0}, ACTIONS)[0] for _ in range(40)]
    assert first != again


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda learner: learner.predict([1.0, 2.0, 3.0], ACTIONS), "differs in length"),
        (lambda learner: learner.predict([1.0, object()], ACTIONS), "give numbers and text"),
        (lambda learner: learner.predict([1.0, 2.0], []), "no actions"),
        (lambda learner: learner.score([1.0, 2.0], ACTIONS, "pink"), "'pink' is not among the actions"),
        (lambda learner: learner.learn([1.0, 2.0], "red", float("nan"), 1.0), "not finite"),
    ],
)
def test_bad_input_changes_nothing(call: Any, match: str) -> None:
    learner = trained(bt.LinTS, [0.5, 0.5])
    before = [learner.score([1.0, 2.0], ACTIONS, action) for action in ACTIONS]
    with pytest.raises(bt.errors.BanditreeError, match=match):
        call(learner)
    assert [learner.score([1.0, 2.0], ACTIONS, action) for action in ACTIONS] == before


def test_too_many_features_are_refused() -> None:
    learner = bt.adapters.coba(bt.LinTS, rng=1)
    with pytest.raises(bt.errors.InvalidValue, match="more than 1,000 different features"):
        learner.predict({f"f{i}": 1.0 for i in range(1001)}, ACTIONS)


def test_there_is_no_policy_before_the_first_decision() -> None:
    with pytest.raises(bt.errors.InvalidValue, match="built at the first decision"):
        _ = bt.adapters.coba(bt.TS).policy


def test_bad_paths_and_factories_are_refused() -> None:
    with pytest.raises(bt.errors.InvalidType, match="must be a function"):
        bt.adapters.coba(bt.TS, path="category")  # type: ignore[arg-type]
    with pytest.raises(bt.errors.InvalidType, match="return a tuple of cluster names"):
        bt.adapters.coba(bt.TS, path=str).predict(None, ACTIONS)
    with pytest.raises(bt.errors.InvalidType, match="not a policy class"):
        bt.adapters.coba("TS")  # type: ignore[arg-type]


def test_params_can_be_written_to_coba_s_tables() -> None:
    learner = bt.adapters.coba(partial(bt.ATS, prior=bt.Gaussian(sd=2.0), explore=0.1), path=lambda action: ())
    assert json.loads(json.dumps(learner.params))["family"] == "ATS"
    assert learner.params["explore"] == 0.1
    assert "path" in learner.params


def test_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coba.primitives", None)
    monkeypatch.delitem(sys.modules, "banditree.adapters.coba_learner", raising=False)
    with pytest.raises(bt.errors.MissingExtra, match=r"\[coba\]"):
        bt.adapters.coba(bt.TS)


# coba's own tools


def test_safe_learner_takes_it_with_actions_of_zeros_and_ones() -> None:
    safe = SafeLearner(bt.adapters.coba(bt.ATS, rng=1))
    assert safe.has_score
    assert safe.params["family"] == "ATS"
    for actions in ([0, 1, 2], [0, 1], [(0, 1), (1, 0)]):
        action, probability, settings = safe.predict(None, actions)
        assert action in actions
        assert 0 < probability <= 1
        assert settings == {}
        safe.learn(None, action, 1.0, probability)
        assert safe.score(None, actions, action) > 0
    assert safe.learner.policy.table()[0].plays == 3


def test_safe_learner_takes_batches() -> None:
    safe = SafeLearner(bt.adapters.coba(bt.LinTS, rng=1))
    contexts, actions = Batch([[1.0, 2.0], [3.0, 4.0]]), Batch([ACTIONS, ACTIONS[:2]])
    chosen, probabilities, _ = safe.predict(contexts, actions)
    assert all(action in offered for action, offered in zip(chosen, actions, strict=True))
    assert list(probabilities) == pytest.approx([1 / 3, 1 / 2])
    safe.learn(contexts, Batch(chosen), Batch([1.0, 0.0]), Batch(probabilities))
    assert safe.learner.policy.table()[0].plays == 2


def test_an_experiment_of_coba_runs_it_and_it_learns() -> None:
    environment = Environments.from_linear_synthetic(400, n_actions=4, n_action_features=0, seed=2)
    learner = bt.adapters.coba(partial(bt.LinTS, v=0.05), rng=1)
    result = Experiment(environment, [learner, copy.deepcopy(learner)], SequentialCB()).run(quiet=True)
    rewards = np.array(result.interactions.to_pandas().reward.to_list()).reshape(2, 400)
    assert (rewards[0] == rewards[1]).all()  # a copy of a learner that has seen nothing starts from the same seed
    assert rewards[0, 200:].mean() > rewards[0, :50].mean() + 0.05


def logged(learner: Any, seeds: Sequence[int]) -> tuple[float, float, float]:
    """IPS of the uniform policy on logs that coba writes with a learner: estimate, standard error, truth."""
    terms, truths = [], []
    for seed in seeds:
        simulated = Environments.from_linear_synthetic(500, n_actions=5, n_action_features=0, seed=seed)
        for row, world in zip(simulated.logged(copy.deepcopy(learner))[0].read(), simulated[0].read(), strict=True):
            terms.append(row["reward"] / row["probability"] / 5)
            truths.append(np.mean([world["rewards"](action) for action in world["actions"]]))
    return float(np.mean(terms)), float(np.std(terms) / np.sqrt(len(terms))), float(np.mean(truths))


@pytest.mark.parametrize("factory", [partial(bt.LinTS, explore=0.1), partial(bt.LinATS, explore=0.1)])
def test_ips_on_its_logs_is_unbiased_where_coba_s_own_is_not(factory: Any) -> None:
    estimate, error, truth = logged(bt.adapters.coba(factory, rng=1), seeds=range(3, 5))
    assert abs(estimate - truth) < 2 * error
    estimate, error, truth = logged(LinTSLearner(), seeds=range(1, 3))  # draws once, and logs a probability of 1
    assert abs(estimate - truth) > 20 * error


@pytest.mark.parametrize("odd", [10**400, -(10**400), None, float("inf")])
def test_actions_of_any_kind_are_arms(odd: Any) -> None:
    learner = bt.adapters.coba(bt.TS, rng=1)
    learner.learn(None, odd, 1.0, None)
    assert learner.score(None, [odd, "other"], odd) > 0.5


@pytest.mark.parametrize("context", [[10**400, 1], {"age": 10**400}])
def test_contexts_that_floats_cannot_hold_are_refused(context: Any) -> None:
    with pytest.raises(BanditreeError, match="too large"):
        bt.adapters.coba(bt.LinTS, rng=1).predict(context, ACTIONS)
