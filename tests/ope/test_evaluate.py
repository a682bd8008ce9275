"""Evaluating a target: unbiased where it should be, honest about support, and clear about what is missing."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge

import banditree as bt
from banditree import ope
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.ope import models
from banditree.ope.rows import ByRow, LogRows

TREE = bt.Tree({"x": [0, 1, 2], "y": [3, 4]})
MEANS = np.array([0.2, 0.3, 0.25, 0.6, 0.5])
UNIFORM = np.full(5, 0.2)
COLUMNS: dict[str, Any] = {"arm": "arm", "reward": "reward", "propensity": "p"}


def made(n: int, seed: int, behaviour: Any = UNIFORM, means: Any = MEANS) -> ope.Log:
    rng = np.random.default_rng(seed)
    arms = rng.choice(5, size=n, p=behaviour)
    rewards = (rng.random(n) < np.asarray(means)[arms]).astype(float)
    table = {"arm": arms, "reward": rewards, "p": np.asarray(behaviour)[arms]}
    return bt.read_log(table, **COLUMNS)


def test_ips_and_dr_are_unbiased_and_a_wrong_propensity_is_not() -> None:
    behaviour, target = np.array([0.4, 0.1, 0.2, 0.1, 0.2]), np.array([0.1, 0.1, 0.1, 0.4, 0.3])
    values: dict[str, list[float]] = {"ips": [], "dr": []}
    for seed in range(300):
        result = bt.evaluate(made(200, seed, behaviour), target, tree=TREE, estimators=["ips", "dr"], rng=seed)
        for name, found in values.items():
            found.append(result[name].value)
    truth = float(target @ MEANS)
    for name, found in values.items():
        error = np.std(found, ddof=1) / math.sqrt(len(found))
        assert abs(np.mean(found) - truth) < 4 * error, name
        assert abs(np.mean(found) - 1.1 * truth) > 4 * error, name  # the test would see a bias of a tenth


def test_a_model_of_folds_in_which_all_rewards_are_0_can_be_fitted() -> None:
    log = bt.read_log({"arm": [0, 1, 2, 3, 4], "reward": [0, 0, 7.5, 0, 0], "p": [0.2] * 5}, **COLUMNS)
    assert math.isfinite(bt.evaluate(log, UNIFORM, tree=TREE, estimators="dm")["dm"].value)


def test_the_verdict_says_better_worse_same_or_what_would_tell() -> None:
    log = made(4000, 1)
    best, worst = [0, 0, 0, 1.0, 0], [1.0, 0, 0, 0, 0]
    better, worse = (bt.evaluate(log, target, tree=TREE) for target in (best, worst))
    assert (better.answer, worse.answer) == ("better", "worse")
    assert better.verdict.startswith("The target is better than the logging policy: ")
    assert better.difference is not None
    assert better.difference.interval[0] > 0
    same = bt.evaluate(log, UNIFORM, tree=TREE, estimators=["ips"])
    assert same.answer == "same"
    slightly = bt.evaluate(made(100, 5), [0.16, 0.2, 0.2, 0.22, 0.22], tree=TREE)
    assert slightly.answer == "cannot tell"
    assert "more rows like these would show" in slightly.verdict


def test_the_rows_that_the_verdict_asks_for_tell() -> None:
    """As many rows as the verdict counts tell a true difference of that size four times in five."""
    target = [0.15, 0.2, 0.2, 0.25, 0.2]
    gain = float(np.array(target) @ MEANS - UNIFORM @ MEANS)
    result = bt.evaluate(made(400, 2), target, tree=TREE)
    assert result.difference is not None
    needed = round(400 * ((1.96 + 0.8416) * result.difference.se / gain) ** 2)
    answers = [bt.evaluate(made(needed, seed), target, tree=TREE, estimators="dr").answer for seed in range(100)]
    assert abs(answers.count("better") / 100 - 0.8) < 4 * math.sqrt(0.8 * 0.2 / 100)


def test_arms_without_rows_are_named_and_withhold_the_verdict() -> None:
    log = made(1000, 3, behaviour=[0.5, 0.3, 0.2, 0, 0])
    result = bt.evaluate(log, [0.2, 0.2, 0.2, 0.3, 0.1], tree=TREE)
    assert result.unsupported == pytest.approx(0.4)
    assert result.missing == (3, 4)
    assert result.answer == "cannot tell"
    assert "40% of its probability is on 2 arms that the log never shows (3, 4)" in result.verdict
    by_row = bt.evaluate(log, np.tile([0.2, 0.2, 0.2, 0.3, 0.1], (1000, 1)), tree=TREE)
    assert by_row.unsupported == pytest.approx(0.4)


def test_a_few_heavy_rows_withhold_the_verdict() -> None:
    log = made(1000, 4, behaviour=[0.01, 0.33, 0.33, 0.3, 0.03])
    result = bt.evaluate(log, [1.0, 0, 0, 0, 0], tree=TREE)
    assert result["ips"].ess < 30
    assert result.answer == "cannot tell"
    assert "rows to the worth of" in result.verdict
    assert result.largest_weight == pytest.approx(100)


def test_a_verdict_that_rests_on_a_few_rewards_is_withheld(tmp_path: Path) -> None:
    """42 clicks of a shop's own policy say that a random one is worse, if one believes the standard error.

    The random policy's own log says 0.0038 per decision, which is not told apart from 0.0042.
    """
    ope.write_example_log(tmp_path / "thompson.csv", policy="thompson")
    log = bt.read_log(tmp_path / "thompson.csv", arm="item", reward="click", propensity="propensity")
    tree = bt.problems.open_bandit().instance(0).tree
    result = bt.evaluate(log, np.full(80, 1 / 80), tree=tree)
    assert result.difference is not None
    assert result.difference.value + 1.96 * result.difference.se < 0 < result.difference.interval[1]
    assert result.answer == "cannot tell"
    assert "too few rewards to tell: 42, about" in result.verdict


def test_propensities_that_cannot_be_are_noticed() -> None:
    """Weights average 1 where the propensities are true; twice the true propensity halves them."""
    rng = np.random.default_rng(6)
    arms = rng.integers(5, size=2000)
    table = {"arm": arms, "reward": MEANS[arms], "p": np.full(2000, 0.4)}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    target = [0.1, 0.1, 0.1, 0.4, 0.3]
    notes = bt.evaluate(log, target, tree=TREE, estimators="ips").notes
    assert any("the weights average 0.49" in note for note in notes)
    assert not any("the weights average" in note for note in bt.evaluate(made(2000, 6), target, tree=TREE).notes)


def test_arms_that_chance_left_out_say_nothing_against_the_propensities() -> None:
    """Rows of true propensities, of which few arms were drawn: weights average 1, and not the share of those arms."""
    rare, wanted = np.full(80, 0.02 / 79), np.full(80, 0.03 / 79)
    rare[0], wanted[0] = 0.98, 0.97
    accused = 0
    for seed in range(20):
        arms = np.random.default_rng(seed).choice(80, size=400, p=rare)
        log = bt.read_log(
            {"arm": arms, "reward": arms % 2, "p": rare[arms]}, arm="arm", reward="reward", propensity="p"
        )
        result = bt.evaluate(log, wanted, tree=bt.Tree(80), estimators="ips")
        accused += any("the weights average" in note for note in result.notes)
    assert accused == 0


def test_a_log_without_propensities_says_what_to_log() -> None:
    log = bt.read_log({"a": [0, 1], "r": [1, 0]}, arm="a", reward="r")
    with pytest.raises(InvalidValue, match=r"decision\.propensity.*estimated"):
        bt.evaluate(log, UNIFORM, tree=TREE)
    given = bt.evaluate(log, [0.5, 0.5, 0, 0, 0], tree=TREE, behaviour=UNIFORM, estimators="ips")
    assert given["ips"].value == pytest.approx(2.5 / 2)


def test_behaviour_is_deduced_needed_or_left_out_with_a_note() -> None:
    target = [0.1, 0.1, 0.1, 0.4, 0.3]
    behaviour = np.array([0.4, 0.1, 0.2, 0.1, 0.2])
    log = made(500, 7, behaviour)
    deduced = bt.evaluate(log, target, tree=TREE)
    given = bt.evaluate(log, target, tree=TREE, behaviour=dict(enumerate(behaviour)))
    assert [item.value for item in deduced] == [item.value for item in given]
    changing = bt.read_log(
        {"a": log.arms, "r": log.rewards, "p": np.linspace(0.1, 0.3, 500)}, arm="a", reward="r", propensity="p"
    )
    result = bt.evaluate(changing, target, tree=TREE)
    assert "mips" not in result
    assert "dr" in result
    assert any("left out: mips and offcem" in note for note in result.notes)
    assert any("adaptive=True" in note for note in result.notes)
    with pytest.raises(InvalidValue, match="behaviour="):
        bt.evaluate(changing, target, tree=TREE, estimators=["mips"])
    with pytest.raises(InvalidType, match="behaviour="):
        bt.evaluate(changing, target, tree=TREE, adaptive=True)
    apart = bt.evaluate(changing, target, tree=TREE, behaviour=behaviour)
    assert any("behaviour and the log's propensities differ" in note for note in apart.notes)
    with pytest.raises(InvalidValue, match="this one is flat"):
        bt.evaluate(log, target, tree=bt.Tree(5), estimators=["mips"])
    assert "mips" not in bt.evaluate(log, target, tree=bt.Tree(5))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"target": [0.5, 0.5]}, InvalidValue, r"shape \(2,\)"),
        ({"target": [0.5, 0.5, 0.5, 0, 0]}, InvalidValue, "sums to 1.5"),
        ({"target": [1.5, -0.5, 0, 0, 0]}, InvalidValue, "1.5 for arm 0"),
        ({"target": [math.nan, 1, 0, 0, 0]}, InvalidValue, "nan for arm 0"),
        ({"target": {0: 0.5, 7: 0.5}}, UnknownArm, "7"),
        ({"target": "TS"}, InvalidType, "must be a policy"),
        ({"tree": None}, InvalidType, "give the bt.Tree"),
        ({"estimators": ["dm", "magic"]}, InvalidValue, "no estimator 'magic'; choose from ips, snips"),
        ({"estimators": [3]}, InvalidType, "estimator 3"),
        ({"estimators": []}, InvalidValue, "at least one"),
        ({"estimators": [ope.MIPS(depth=9)]}, InvalidValue, "down to depth 1"),
        ({"model": np.zeros((3, 3))}, InvalidValue, r"model has shape \(3, 3\)"),
        ({"model": np.full((50, 5), math.nan)}, InvalidValue, "not finite"),
        ({"model": "good"}, InvalidType, "model 'good'"),
        ({"behaviour": [1.0, 0, 0, 0, 0], "estimators": ["mips"]}, InvalidValue, "probability 0"),
    ],
)
def test_what_cannot_be_evaluated(options: dict[str, Any], error: type[Exception], words: str) -> None:
    given: dict[str, Any] = {"target": UNIFORM, "tree": TREE, **options}
    with pytest.raises(error, match=words):
        bt.evaluate(made(50, 8), given.pop("target"), **given)


def test_settings_are_checked() -> None:
    for make in (lambda: ope.SwitchDR(tau=-1), lambda: ope.DRos(lam=math.nan), lambda: ope.MIPS(depth=-1)):
        with pytest.raises(InvalidValue):
            make()
    with pytest.raises(InvalidType):
        ope.SwitchDR(tau="large")  # type: ignore[arg-type]


def test_two_settings_of_one_estimator_have_names_of_their_own() -> None:
    result = bt.evaluate(made(200, 9), UNIFORM, tree=TREE, estimators=[ope.MIPS(depth=1), ope.MIPS(depth=2)])
    assert result["mips(depth=1)"].estimator == ope.MIPS(depth=1)
    assert result[ope.MIPS(depth=2)].value == pytest.approx(result.logging.value)
    with pytest.raises(InvalidValue, match="several estimates of 'mips'"):
        result["mips"]
    assert result.table()["setting"] == ["depth=1", "depth=2"]


class Half(ope.Estimator):
    """An estimator of a user's own."""

    name = "half"

    def scores(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(rows.rewards * rows.weights / 2)


def test_an_estimator_of_ones_own_is_told_like_the_others() -> None:
    """The verdict is based on it only if there is no other."""
    target = [0.1, 0.1, 0.1, 0.4, 0.3]
    alone, with_ips = (bt.evaluate(made(500, 3), target, tree=TREE, estimators=e) for e in ([Half()], [Half(), "ips"]))
    assert alone.trusted.estimator.name == "half"
    assert with_ips.trusted.estimator.name == "ips"
    assert alone["half"].value == pytest.approx(with_ips["ips"].value / 2)
    assert "half" in str(alone)
    assert alone.verdict


def test_rates_are_shrunk_towards_their_clusters() -> None:
    """Five arms of which one has never been shown: it takes its cluster's rate; a well-known one keeps its own."""
    rows = np.array([1000.0, 1000, 0, 1000, 1000])
    sums = np.array([150.0, 250, 0, 640, 560])
    result = ope.believed_means(TREE, rows, sums, None)
    assert result[0] < result[2] < result[1]
    assert result[2] == pytest.approx(0.2, abs=0.03)
    assert result[3] == pytest.approx(0.64, abs=0.005)
    assert ope.believed_means(TREE, np.full(5, 100.0), np.full(5, 30.0), None) == pytest.approx(0.3, abs=0.01)
    exact = ope.believed_means(TREE, np.full(5, 3.0), 3 * MEANS, 3 * MEANS**2)  # rewards without noise
    assert exact == pytest.approx(MEANS, rel=1e-3)
    assert ope.believed_means(TREE, np.zeros(5), np.zeros(5), None).tolist() == [0.0] * 5


def test_default_predictions_are_the_means_that_ats_believes() -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(5, size=400)
    for scale, prior in ((1.0, None), (30.0, bt.Gaussian(13.5, mean=12.0))):
        rewards = scale * (rng.random(400) < MEANS[arms])
        policy = bt.ATS(TREE, prior=prior, rng=0)
        policy.update_many(TREE.ids(arms), rewards)
        rows, sums, squares = (
            np.bincount(arms, weights).astype(float) for weights in (np.ones(400), rewards, rewards**2)
        )
        result = ope.believed_means(TREE, rows, sums, None if prior is None else squares)
        assert result == pytest.approx([policy[arm].mean for arm in TREE.arms], rel=1e-12 if prior is None else 0.1)


def contextual(n: int, seed: int) -> tuple[ope.Log, NDArray[np.float64], float]:
    """A log whose rewards depend on context and arm, a target that sees the context, and the target's true value."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    arms = rng.integers(5, size=n)
    mean = 0.1 + 0.5 * x[:, None] * (np.arange(5) >= 3) + 0.3 * (1 - x[:, None]) * (np.arange(5) < 3)
    rewards = (rng.random(n) < mean[np.arange(n), arms]).astype(float)
    table = {"arm": arms, "reward": rewards, "p": np.full(n, 0.2), "x": x}
    target = np.where(x[:, None] > 0.5, [0.0, 0, 0, 0.5, 0.5], [0.4, 0.3, 0.3, 0, 0])
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p", context=["x"])
    return log, target, float((mean * target).sum(axis=1).mean())


@pytest.mark.parametrize("model", [None, Ridge(), LogisticRegression()], ids=str)
def test_models_of_every_kind_give_the_same_answer(model: Any) -> None:
    log, target, truth = contextual(4000, 10)
    result = bt.evaluate(log, target, tree=TREE, model=model, estimators=["dr", "sndr", "dm"])
    for name in ("dr", "sndr"):
        assert abs(result[name].value - truth) < 4 * result[name].se


def test_a_model_that_sees_contexts_makes_dr_surer() -> None:
    from sklearn.ensemble import RandomForestRegressor

    log, target, _ = contextual(4000, 11)
    forest = RandomForestRegressor(30, min_samples_leaf=50, random_state=0)
    bare = bt.read_log(
        {"a": log.arms, "r": log.rewards, "p": log.propensities}, arm="a", reward="r", propensity="p"
    )  # the same rows without contexts: the default model then knows the arms' rates alone
    plain = bt.evaluate(bare, target, tree=TREE, estimators="dr")["dr"].se
    for model in (None, forest):
        assert bt.evaluate(log, target, tree=TREE, model=model, estimators="dr")["dr"].se < plain


def test_the_default_model_of_a_log_with_contexts_is_what_linats_expects() -> None:
    log, target, _ = contextual(400, 16)
    given = np.zeros((400, 5))
    folds = models.folds(400, 0)
    for fold in range(5):
        others, rows = folds != fold, np.flatnonzero(folds == fold)
        policy = bt.LinATS(TREE, dim=1, rng=1)
        policy.learn(log.rows(others))
        for row in rows.tolist()[:3]:
            assert log.contexts is not None
            table = {entry.path[-1]: entry.mean for entry in policy.table(context=log.contexts[row]) if entry.path}
            given[row] = [table[arm] for arm in TREE.arms]
    result = bt.evaluate(log, target, tree=TREE, estimators="dr", rng=0)
    assert isinstance(result.inputs, LogRows)
    assert result.inputs.model is not None
    predicted = result.inputs.model.table[result.inputs.model.kind]
    checked = given.any(axis=1)
    assert checked.sum() == 15
    assert predicted[checked] == pytest.approx(given[checked], abs=1e-9)


def test_whether_knowing_who_asks_pays_is_said_in_words() -> None:
    rng = np.random.default_rng(17)
    n = 2000
    arms, device = rng.integers(5, size=n), rng.integers(2, size=n)
    rewards = (rng.random(n) < 0.1 + 0.4 * ((arms >= 3) == device)).astype(float)
    table = {"arm": arms, "reward": rewards, "p": np.full(n, 0.2), "device": device}
    columns: dict[str, Any] = {"arm": "arm", "reward": "reward", "propensity": "p", "context": ["device"]}
    result = ope.contest({"LinATS": bt.LinATS, "ATS": bt.ATS}, bt.read_log(table, **columns), tree=TREE)
    assert result.contexts_verdict.startswith("Knowing who asks pays: LinATS would earn")
    assert result.contexts_verdict in result.to_text()
    assert result.to_dict()["contexts"] == result.contexts_verdict
    noise = bt.read_log(table | {"device": rng.integers(2, size=n)}, **columns)  # the control: it says nothing
    control = ope.contest({"LinATS": bt.LinATS, "ATS": bt.ATS, "TS": bt.TS}, noise, tree=TREE)
    assert not control.contexts_verdict.startswith("Knowing who asks pays:")
    assert ope.contest([bt.ATS, bt.TS], noise, tree=TREE).contexts_verdict == ""


def test_a_difference_of_rounding_errors_is_none() -> None:
    """Each size goes with one arm, so that both policies would earn what the log has; they differed by 5e-17."""
    rows = range(60)
    table = {"arm": [i % 5 for i in rows], "reward": [i % 2 for i in rows], "size": [f"{38 + i % 3}" for i in rows]}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="estimated", context={"size": "category"})
    result = ope.contest([bt.LinATS, bt.ATS, bt.TS], log, tree=bt.Tree(5))
    assert result.contexts_verdict.startswith("The log cannot tell")


def test_policies_with_features_are_evaluated_and_replayed_by_their_features() -> None:
    log, *_ = contextual(200, 19)
    features = bt.Features({"x": (0, 1)})
    factory = partial(bt.LinATS, features=features)
    result = ope.contest({"named": factory, "vectors": bt.LinATS}, log, tree=TREE)
    named, vectors = (result.evaluations[name]["dr"].value for name in ("named", "vectors"))
    assert named == pytest.approx(vectors, abs=1e-6)  # LinATS does not depend on the scale of features
    assert bt.replay({"named": factory}, log, tree=TREE, orders=1)[0].accepted > 0


def test_predictions_are_cross_fitted() -> None:
    """A model that remembers every row would have no residuals if it saw them."""
    from sklearn.neighbors import KNeighborsRegressor

    log, target, truth = contextual(1000, 12)
    result = bt.evaluate(log, target, tree=TREE, model=KNeighborsRegressor(1), estimators=["dr", "dm"])
    residuals = log.rewards - result.inputs.predicted
    assert (residuals != 0).mean() > 0.1
    assert abs(result["dr"].value - truth) < 4 * result["dr"].se


def test_vectors_that_rows_share_add_up_like_a_matrix() -> None:
    rng = np.random.default_rng(13)
    one, two = rng.random((4, 6)), rng.random((3, 6))
    kinds = rng.integers(4, size=50), rng.integers(3, size=50)
    for first, second in ((one, two), (one[:1], two), (one, two[:1])):
        at = [kind % len(table) for kind, table in zip(kinds, (first, second), strict=True)]
        result = ByRow(first, at[0]).dot(ByRow(second, at[1]))
        assert result == pytest.approx((first[at[0]] * second[at[1]]).sum(axis=1))
    group = np.array([0, 1, 0, 2, 1, 1])
    pooled = ByRow(one, kinds[0]).pool(group)
    assert pooled.table[:, 1] == pytest.approx(one[:, [1, 4, 5]].sum(axis=1))


def test_printing_says_what_matters() -> None:
    result = bt.evaluate(made(300, 14), [0.1, 0.1, 0.1, 0.4, 0.3], tree=TREE)
    shown = str(result)
    assert result.verdict in shown
    assert "The logging policy earned" in shown
    assert "ignore their bias" in shown
    values = result.to_dict()
    assert set(values["estimates"]) >= {"ips", "snips", "dr", "sndr", "dm"}
    assert values["estimates"]["dm"]["se"] is None
    assert result.to_text() == shown
    assert result.verdict in result._repr_html_()
    several = ope.contest({"TS": bt.TS, "uniform": "uniform"}, made(300, 14), tree=TREE)
    assert several.verdict in several._repr_html_()
    assert several.verdict in several.to_text()


def test_targets_by_name() -> None:
    log = made(400, 15)
    uniform, always = (bt.evaluate(log, target, tree=TREE, estimators="ips") for target in ("uniform", "item:3"))
    assert uniform["ips"].value == pytest.approx(log.rewards.mean())
    assert always["ips"].value == bt.evaluate(log, {3: 1.0}, tree=TREE, estimators="ips")["ips"].value
    assert always["ips"].value == bt.evaluate(log, "item:3", estimators="ips")["ips"].value  # names need no tree
    with pytest.raises(UnknownArm, match="not an arm"):
        bt.evaluate(log, "item:9", tree=TREE)


def test_many_contexts_and_arms_are_drawn_in_place_of_exact_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    log, *_ = contextual(300, 20)
    policy = bt.LinTS(TREE, dim=1, rng=3)
    policy.learn(log)
    before = policy.to_bytes()
    exact = bt.evaluate(log, policy, estimators="ips")
    monkeypatch.setattr("banditree.ope.rows.MAX_EXACT", 1)
    drawn = bt.evaluate(log, policy, estimators="ips")
    assert policy.to_bytes() == before
    assert any("32 choices in each of 300 contexts" in note for note in drawn.notes)
    # A probability by 32 draws has a standard error below 0.09.
    assert log.propensities is not None
    apart = log.propensities * (exact.inputs.weights - drawn.inputs.weights)
    assert abs(apart.mean()) < 4 * 0.09 / math.sqrt(300)
    assert 0 < np.abs(apart).max() < 5 * 0.09


def test_rewards_that_are_all_equal_are_no_certainty() -> None:
    """Arm 0 earned nothing in 133 rows, where others earned 1 in 250: that is no reason to call it worse."""
    n_arms, n = 75, 9_975
    table = {"arm": [i % n_arms for i in range(n)], "p": [1 / n_arms] * n}
    table["reward"] = [int(i % 250 == 1 and i % n_arms > 0) for i in range(n)]
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    result = bt.evaluate(log, "item:0", estimators=["snips", "dr"])
    for estimate in result.estimates:
        assert estimate.interval[1] > 0.02
    assert "cannot tell" in result.verdict
    assert "better" in bt.evaluate(bt.read_log(SURE, arm="arm", reward="r", propensity="p"), "item:1").verdict


SURE = {"arm": [0, 1] * 50, "r": [0, 1] * 50, "p": [0.5] * 100}


def test_the_policy_that_wrote_the_log_is_the_same_whatever_it_earned() -> None:
    log = bt.read_log({"arm": [0, 1] * 50, "r": [0] * 100, "p": [0.5] * 100}, arm="arm", reward="r", propensity="p")
    assert "same" in bt.evaluate(log, "uniform").verdict
    assert "cannot tell" in bt.evaluate(log, "item:0").verdict
    assert bt.evaluate(log, "uniform").logging.interval[1] > 0.03
