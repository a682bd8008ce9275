"""Intervals that hold: over hundreds of synthetic logs whose truth is known, 95% of them cover it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

import banditree as bt

LOGS = 300
LOWEST = 0.95 - 3 * np.sqrt(0.95 * 0.05 / LOGS)  # three standard errors of a share of 300
HIGHEST = 0.95 + 3 * np.sqrt(0.95 * 0.05 / LOGS)
NAMES = ["ips", "snips", "dr", "sndr"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def coverage(
    arms: Ints, rewards: Floats, chances: Floats, target: Floats, truth: float, adaptive: bool | str
) -> dict[str, float]:
    """The share of the logs, (logs, n), whose interval holds the truth."""
    tree = bt.Tree.from_labels([i % 2 for i in range(len(target))])
    rows = np.arange(arms.shape[1])
    held = defaultdict(list)
    for log_arms, log_rewards, log_chances in zip(arms, rewards, chances, strict=True):
        table = {"arm": log_arms, "reward": log_rewards, "p": log_chances[rows, log_arms]}
        log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
        result = bt.evaluate(
            log,
            target,
            tree=tree,
            behaviour=None if adaptive == "estimated" else log_chances,
            estimators=NAMES,
            adaptive=adaptive,
        )
        for item in result:
            low, high = item.interval
            held[item.estimator.name].append(low <= truth <= high)
    return {name: float(np.mean(values)) for name, values in held.items()}


def test_intervals_cover_the_truth_for_a_fixed_logging_policy() -> None:
    rng = np.random.default_rng(11)
    means, target = np.array([0.3, 0.5, 0.4, 0.6, 0.2]), np.array([0.05, 0.5, 0.05, 0.2, 0.2])
    behaviour = np.array([0.3, 0.1, 0.3, 0.2, 0.1])
    n = 800
    arms = rng.choice(5, size=(LOGS, n), p=behaviour)
    rewards = (rng.random((LOGS, n)) < means[arms]).astype(float)
    chances = np.broadcast_to(behaviour, (LOGS, n, 5))
    result = coverage(arms, rewards, chances, target, float(means @ target), adaptive=False)
    assert all(LOWEST <= share <= HIGHEST for share in result.values()), result


def greedy(logs: int, n: int, mean: float, rng: np.random.Generator) -> tuple[Ints, Floats, Floats]:
    """Logs of a policy that plays the better of two equal arms, as it looks, and the other ever more rarely."""
    count, total, item = np.ones((logs, 2)), np.zeros((logs, 2)), np.arange(logs)
    arms, rewards = np.empty((logs, n), np.int64), np.empty((logs, n))
    chances = np.empty((logs, n, 2))
    for t in range(n):
        floor = 0.5 * (t + 1) ** -0.8
        chances[:, t] = floor
        chances[item, t, np.argmax(total / count, axis=1)] = 1 - floor
        arms[:, t] = rng.random(logs) > chances[:, t, 0]
        rewards[:, t] = mean + rng.standard_normal(logs)
        count[item, arms[:, t]] += 1
        total[item, arms[:, t]] += rewards[:, t]
    return arms, rewards, chances


def test_adaptive_intervals_cover_where_a_bandit_wrote_the_log_and_plain_ones_do_not() -> None:
    log = greedy(LOGS, 3000, 0.2, np.random.default_rng(12))
    first = np.array([1.0, 0.0])
    result = coverage(*log, target=first, truth=0.2, adaptive=True)
    assert all(LOWEST <= share <= HIGHEST for share in result.values()), result
    plain = coverage(*log, target=first, truth=0.2, adaptive=False)
    assert plain["snips"] < LOWEST, plain
    assert plain["sndr"] < LOWEST, plain
    estimated = coverage(*log, target=first, truth=0.2, adaptive="estimated")
    assert all(share >= LOWEST for share in estimated.values()), estimated


def test_adaptive_weights_are_the_square_root_of_the_propensity_for_a_single_arm() -> None:
    """The constant allocation of Hadad et al. 2021, written out for three rows."""
    chances = np.array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]])
    table = {"arm": [0, 1, 0], "reward": [1.0, 0.0, 0.5], "p": [0.5, 0.8, 0.1]}
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    model = np.array([[0.5, 0.5]] * 3)
    result = bt.evaluate(
        log, [1.0, 0.0], tree=bt.Tree(2), behaviour=chances, model=model, adaptive=True, estimators=["ips", "dr"]
    )
    h = np.sqrt([0.5, 0.2, 0.1])
    for name, scores in (("ips", [1 / 0.5, 0, 0.5 / 0.1]), ("dr", [0.5 + 0.5 / 0.5, 0.5, 0.5])):
        value = float(h @ scores / h.sum())
        assert np.isclose(result[name].value, value)
        assert np.isclose(result[name].se, np.sqrt((h**2 * (np.array(scores) - value) ** 2).sum()) / h.sum())


def test_adaptive_models_know_earlier_rows_alone() -> None:
    """Changing the last reward changes no other row's prediction."""
    rng = np.random.default_rng(3)
    arms, rewards = rng.integers(2, size=200), rng.random(200)
    chances = np.full((200, 2), 0.5)
    results = []
    for last in (0.0, 1.0):
        rewards[-1] = last
        table = {"arm": arms, "reward": rewards, "p": np.full(200, 0.5)}
        log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
        results.append(bt.evaluate(log, [0.9, 0.1], tree=bt.Tree(2), behaviour=chances, adaptive=True, estimators="dr"))
    one, two = (result["dr"].scores for result in results)
    assert np.array_equal(one[:-1], two[:-1])
    assert one[-1] != two[-1]
