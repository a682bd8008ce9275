"""Estimators against numbers computed by hand on five rows, and against another implementation on the same arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import ope
from banditree.ope.rows import clusters
from tools import ope_reference as reference

TREE = bt.Tree({"x": ["a", "b"], "y": ["c"]})
ARMS = ["a", "b", "c", "a", "c"]
REWARDS = [1, 0, 1, 0, 1]
PROPENSITIES = [1 / 2, 1 / 4, 1 / 4, 1 / 2, 1 / 4]
TARGET = {"a": 1 / 4, "b": 1 / 4, "c": 1 / 2}  # weights 1/2, 1, 2, 1/2, 2: they sum to 6, their squares to 9.5
PREDICTED = [1 / 2, 1 / 4, 3 / 4]  # for a, b, c: of the target 9/16; residuals 1/2, -1/4, 1/4, -1/2, 1/4
MODEL = np.tile(PREDICTED, (5, 1))


def five_rows(**more: Any) -> ope.Log:
    table = {"arm": ARMS, "reward": REWARDS, "p": PROPENSITIES, **more}
    return bt.read_log(table, arm="arm", reward="reward", propensity="p", context=list(more))


# Value and squared standard error. Each error: the squared deviations of the scores, over n - 1 = 4 and n = 5.
BY_HAND: list[tuple[Any, float, float]] = [
    ("ips", 4.5 / 5, (0.16 + 0.81 + 1.21 + 0.81 + 1.21) / 20),
    ("snips", 4.5 / 6, (0.125**2 + 0.75**2 + 0.5**2 + 0.375**2 + 0.5**2) / 1.2**2 / 20),
    ("dr", 9 / 16 + 0.75 / 5, (0.1**2 + 0.4**2 + 0.35**2 + 0.4**2 + 0.35**2) / 20),
    ("sndr", 9 / 16 + 0.75 / 6, (0.1875**2 + 0.375**2 + 0.25**2 + 0.3125**2 + 0.25**2) / 1.2**2 / 20),
    (ope.SwitchDR(tau=1), 9 / 16 - 0.25 / 5, (0.3**2 + 0.2**2 + 0.05**2 + 0.2**2 + 0.05**2) / 20),
    (ope.DRos(lam=1), 9 / 16 + 0.075 / 5, (0.185**2 + 0.14**2 + 0.085**2 + 0.215**2 + 0.085**2) / 20),
    (ope.MIPS(depth=1), 14 / 15, ((4 / 15) ** 2 + 2 * (14 / 15) ** 2 + 2 * (16 / 15) ** 2) / 20),
    (ope.OffCEM(depth=1), 9 / 16 + 1 / 6, ((1 / 6) ** 2 + 3 * (1 / 3) ** 2 + (1 / 2) ** 2) / 20),
]


@pytest.mark.parametrize(("estimator", "value", "variance"), BY_HAND, ids=str)
def test_five_rows_by_hand(estimator: Any, value: float, variance: float) -> None:
    result = bt.evaluate(five_rows(), TARGET, tree=TREE, estimators=[estimator], model=MODEL)
    values = result[estimator]
    assert values.value == pytest.approx(value, rel=1e-12)
    assert values.se == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert values.interval == pytest.approx((value - 1.96 * values.se, value + 1.96 * values.se), rel=1e-12)


def test_effective_sample_sizes_by_hand() -> None:
    result = bt.evaluate(five_rows(), TARGET, tree=TREE, model=MODEL)
    assert result["ips"].ess == pytest.approx(36 / 9.5)
    assert result["dm"].ess == 5
    switched = bt.evaluate(five_rows(), TARGET, tree=TREE, model=MODEL, estimators=ope.SwitchDR(tau=1))
    assert switched["switch-dr"].ess == pytest.approx(2**2 / 1.5)
    assert result.largest_weight == 2


def test_the_direct_method_has_no_standard_error() -> None:
    plain = bt.evaluate(five_rows(), TARGET, tree=TREE, model=MODEL)["dm"]
    assert plain.value == pytest.approx(9 / 16)
    assert math.isnan(plain.se)
    varied = MODEL + np.array([0.0, 0.1, 0.2, 0.3, 0.4])[:, None]
    result = bt.evaluate(five_rows(age=[1, 2, 3, 4, 5]), TARGET, tree=TREE, model=varied)["dm"]
    assert result.value == pytest.approx(9 / 16 + 0.2)
    assert math.isnan(result.se)  # the spread of predictions would leave out the model's bias


def test_all_ways_to_give_a_target_agree() -> None:
    in_order = [TARGET[arm] for arm in ("a", "b", "c")]
    ways = [TARGET, in_order, np.array(in_order), np.tile(in_order, (5, 1))]
    results = [bt.evaluate(five_rows(), way, tree=TREE, model=MODEL) for way in ways]
    for result in results[1:]:
        assert [item.value for item in result] == pytest.approx([item.value for item in results[0]], rel=1e-12)


# What `python -m tools.ope_reference` prints: Open Bandit Pipeline 0.5.5 (sb-obp 0.5.10).
REFERENCE = {
    "ips": 0.22059115671879817,
    "snips": 0.22982290056421198,
    "dm": 0.2238355903492676,
    "dr": 0.2300932242152647,
    "sndr": 0.23035510630423217,
    "switch-dr": 0.23258373959097497,
    "dros": 0.2295734964384477,
    "mips": 0.22281830149695062,
}


def test_the_same_numbers_as_another_implementation() -> None:
    made = reference.arrays()
    tree = bt.Tree.from_labels(reference.CLUSTER.tolist())
    rows = np.arange(reference.ROWS)
    table = {"arm": made["arm"], "reward": made["reward"], "p": made["behaviour"][rows, made["arm"]]}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    settings = [ope.SwitchDR(tau=reference.TAU), ope.DRos(lam=reference.LAM), ope.MIPS(depth=1)]
    result = bt.evaluate(
        log,
        made["target"],
        tree=tree,
        behaviour=made["behaviour"],
        model=made["predicted"],
        estimators=["ips", "snips", "dm", "dr", "sndr", *settings],
    )
    assert {name: result[name].value for name in REFERENCE} == pytest.approx(REFERENCE, rel=1e-9)


def test_equivalences_between_estimators() -> None:
    made = reference.arrays()
    tree = bt.Tree.from_labels(reference.CLUSTER.tolist())
    rows = np.arange(reference.ROWS)
    table = {"arm": made["arm"], "reward": made["reward"], "p": made["behaviour"][rows, made["arm"]]}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")

    def value(estimator: Any, model: Any = made["predicted"], **how: Any) -> float:
        how = {"tree": tree, "behaviour": made["behaviour"], "model": model, "estimators": [estimator]} | how
        return bt.evaluate(log, made["target"], **how)[estimator].value

    nothing = np.zeros((reference.ROWS, reference.ARMS))
    assert value("dr", nothing) == pytest.approx(value("ips"))
    assert value("sndr", nothing) == pytest.approx(value("snips"))
    assert value(ope.OffCEM(depth=1), nothing) == pytest.approx(value(ope.MIPS(depth=1)))
    assert value(ope.SwitchDR(tau=math.inf)) == pytest.approx(value("dr"))
    assert value(ope.DRos(lam=math.inf)) == pytest.approx(value("dr"))
    assert value(ope.SwitchDR(tau=0)) == pytest.approx(value("dm"))
    assert value(ope.DRos(lam=0)) == pytest.approx(value("dm"))
    assert value(ope.MIPS(depth=2)) == pytest.approx(value("ips"))  # below the clusters are the arms
    assert value(ope.OffCEM(depth=2)) == pytest.approx(value("dr"))
    assert value(ope.MIPS(depth=0)) == pytest.approx(made["reward"].mean())  # the root is always chosen
    own = bt.evaluate(log, made["behaviour"], tree=tree, estimators=["ips", "snips"])
    assert own["ips"].value == pytest.approx(made["reward"].mean())
    assert own["snips"].value == pytest.approx(own["ips"].value)
    assert own["ips"].ess == pytest.approx(reference.ROWS)


def test_clusters_of_arms_at_different_depths() -> None:
    tree = bt.Tree.from_paths([("a", "x", 0), ("a", "x", 1), ("a", "y", 2), ("b", 3), ("b", 4), (5,)])
    result = [clusters(tree, depth).tolist() for depth in range(4)]
    same = [[{i for i in range(6) if row[i] == label} for label in dict.fromkeys(row)] for row in result]
    assert same[0] == [set(range(6))]
    assert same[1] == [{0, 1, 2}, {3, 4}, {5}]
    assert same[2] == [{0, 1}, {2}, {3}, {4}, {5}]
    assert same[3] == [{i} for i in range(6)]


def test_slope_stops_where_intervals_no_longer_meet() -> None:
    assert ope.slope([(0.5, 0.1)]) == 0
    assert ope.slope([(0.5, 0.1), (0.29, 0.001)]) == 0  # 0.5 ± 0.2 and 0.29 ± 0.002 do not meet
    assert ope.slope([(0.5, 0.1), (0.299, 0.001)]) == 1
    assert ope.slope([(0.5, 0.1), (0.35, 0.01), (0.45, 0.01), (0.4, 0.0)]) == 1  # each meets the first, not each other
    assert ope.slope([(0.5, 0.1), (math.nan, 0.1), (0.5, 0.01)]) == 0


def test_slope_takes_clusters_where_they_explain_and_arms_where_they_do_not() -> None:
    """Means that follow the clusters: the coarsest level. Means that differ inside a cluster: back to the arms."""
    tree = bt.Tree({c: [f"{c}{i}" for i in range(5)] for c in "xy"})
    rng = np.random.default_rng(4)
    arms = rng.integers(10, size=20_000)
    target = np.array([0.9, 0.02, 0.02, 0.02, 0.04, 0, 0, 0, 0, 0])
    for means, depth in (([0.6] * 5 + [0.2] * 5, 1), ([0.9, 0.1, 0.1, 0.1, 0.1] + [0.2] * 5, 2)):
        rewards = rng.random(20_000) < np.array(means)[arms]
        table = {"arm": [tree.arms[a] for a in arms], "reward": rewards, "p": np.full(20_000, 0.1)}
        log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
        result = bt.evaluate(log, target, tree=tree, estimators=["mips"])
        assert result["mips"].estimator == ope.MIPS(depth=depth)
        assert abs(result["mips"].value - target @ means) < 4 * result["mips"].se
    assert bt.evaluate(log, target, tree=tree, estimators=ope.MIPS(depth=1))["mips"].interval[1] < target @ means
