"""Rare rewards: intervals cover the truth with a few dozen clicks, and equal policies are not told apart."""

from __future__ import annotations

import numpy as np
import pytest

import banditree as bt
from banditree import ope
from banditree.ope.rare import Events

ROWS, ARMS = 10_000, 46
TREE = bt.Tree.from_labels([arm % 5 for arm in range(ARMS)])
UNEVEN = {
    "even": np.full(ARMS, 1 / ARMS),
    "halves": np.where(np.arange(ARMS) < ARMS / 2, 1.5, 0.5) / ARMS,
    "three arms": np.where(np.arange(ARMS) < 3, 0.3, 0.1 / (ARMS - 3)),
    "one arm": np.where(np.arange(ARMS) < 1, 0.9, 0.1 / (ARMS - 1)),
}


def clicks_log(n_clicks: int, rng: np.random.Generator) -> bt.ope.Log:
    """A uniform log whose arms all have the same rate."""
    arms = rng.integers(ARMS, size=ROWS)
    return bt.ope.Log(
        ids=TREE.arms,
        codes=arms,
        rewards=(rng.random(ROWS) < n_clicks / ROWS).astype(float),
        propensities=np.full(ROWS, 1 / ARMS),
    )


@pytest.mark.parametrize("clicks", [20, 50, 200, 2000])
def test_intervals_cover_with_few_clicks_and_uneven_weights(clicks: int) -> None:
    """The table of docs/logs.md. A share of 100 logs may be three standard errors below 95%."""
    logs = 100
    lowest = 0.95 - 3 * np.sqrt(0.95 * 0.05 / logs)
    rng = np.random.default_rng(clicks)
    held: dict[str, list[tuple[bool, bool, bool]]] = {name: [] for name in UNEVEN}
    for _ in range(logs):
        log = clicks_log(clicks, rng)
        for name, target in UNEVEN.items():
            result = bt.evaluate(log, target, tree=TREE, estimators="dr")
            (low, high), normal = result["dr"].interval, 1.96 * result["dr"].se
            truth = clicks / ROWS
            is_right = result.answer in ("same", "cannot tell")
            held[name].append((low <= truth <= high, abs(result["dr"].value - truth) <= normal, is_right))
    shares = {name: np.mean(rows, axis=0) for name, rows in held.items()}
    assert all(share[0] >= lowest and share[2] >= lowest for share in shares.values()), shares
    if clicks <= 50:  # the negative control: a standard error by itself does not cover
        assert shares["one arm"][1] < lowest, shares


def test_policies_that_learned_from_clicks_alone_are_not_called_worse() -> None:
    logs, rng = 60, np.random.default_rng(46)
    called = 0
    for _ in range(logs):
        result = ope.contest({"TSC": bt.TSC}, clicks_log(46, rng), tree=TREE, estimators="dr")
        called += result.judgements["TSC"].answer in ("better", "worse")
    assert called <= 0.05 * logs + 3 * np.sqrt(0.05 * 0.95 * logs)  # 8; by standard errors alone it was every fifth


def test_the_uniform_policy_earns_the_same_on_a_uniform_log() -> None:
    result = bt.evaluate(clicks_log(46, np.random.default_rng(1)), "uniform", tree=TREE)
    assert result.answer == "same"
    assert result.difference is not None
    assert result.difference.value == 0


def test_an_interval_of_events_of_equal_weight_is_that_of_a_poisson_mean() -> None:
    """Garwood 1936: 3 events allow for 0.62 to 8.77 (lower end 0.62), none for 3.69."""
    events = np.zeros(1000)
    reach = Events(events, np.ones(1000)).reach(np.ones(1000), 0.95)
    assert reach is not None
    assert reach[1] == pytest.approx(3.69, abs=0.03)
    events[:3] = 1
    reach = Events(events, np.ones(1000)).reach(np.ones(1000), 0.95)
    assert reach is not None
    assert (3 - reach[0], 3 + reach[1]) == pytest.approx((0.62, 8.77), abs=0.03)


def test_rare_failures_are_rare_events_too() -> None:
    log = clicks_log(50, np.random.default_rng(3))
    failures = bt.ope.Log(log.ids, log.codes, 1 - log.rewards, log.propensities)
    low, high = bt.evaluate(log, UNEVEN["one arm"], tree=TREE, estimators="snips")["snips"].interval
    mirrored = bt.evaluate(failures, UNEVEN["one arm"], tree=TREE, estimators="snips")["snips"].interval
    assert mirrored == pytest.approx((1 - high, 1 - low))
