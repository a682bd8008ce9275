"""Mean regret and plays of every policy against plain NumPy loops, and errors planted on purpose that this catches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import banditree as bt
from tests.support import reference_bandits as plain
from tests.support.reference_bandits import FLAT, TWO_LEVELS, WHOLE, Floats, Nested, Score, World

TREE = bt.Tree({"a": {"x": [0, 1], "y": [2, 3]}, "b": [4, 5, 6]})
MEANS = np.array([0.3, 0.5, 0.9, 0.6, 0.8, 0.2, 0.4])
THETA = np.array([[0.9, 0.1], [0.5, 0.4], [-0.7, 0.2], [-0.3, 0.6], [0.2, -0.9], [0.6, -0.5], [0.1, 0.8]])
TIMES = [1, 2, 4, 10, 30, 80]
SEEDS, RUNS = 400, 600  # simulated, and in the plain loop
FEW = 150  # seeds that are enough to catch an error
SIGMAS = 4.0

PROBLEMS: dict[str, tuple[bt.problems.Problem, World]] = {
    "bernoulli": (bt.problems.bernoulli(TREE, MEANS), World("bernoulli", MEANS)),
    "bounded": (bt.problems.bounded(TREE, MEANS, 2.0), World("bounded", MEANS, 2.0)),
    "gaussian": (bt.problems.gaussian(TREE, MEANS, 0.5), World("gaussian", MEANS, 0.5)),
    "normal": (bt.problems.linear_from(TREE, THETA), World("uniform", THETA, contexts="normal")),
    "uniform": (
        bt.problems.linear_from(TREE, THETA, contexts="uniform"),
        World("uniform", THETA, contexts="uniform"),
    ),
    "unit": (bt.problems.linear_from(TREE, THETA, contexts="unit"), World("uniform", THETA, contexts="unit")),
}

Pair = tuple[Callable[..., Any], Nested, Score]
BY_COUNTS: dict[str, Pair] = {
    "UCB1": (bt.UCB1, FLAT, plain.ucb("parent")),
    "UCBC": (bt.UCBC, TWO_LEVELS, plain.ucb("parent")),
    "UCBC global": (partial(bt.UCBC, clock="global"), TWO_LEVELS, plain.ucb("global")),
    "UCT": (bt.UCT, WHOLE, plain.ucb("parent")),
}
BY_BETA: dict[str, Pair] = {
    "TS": (bt.TS, FLAT, plain.beta),
    "TSC": (bt.TSC, TWO_LEVELS, plain.beta),
    "HTS": (bt.HTS, WHOLE, plain.beta),
    "TSMax": (bt.TSMax, TWO_LEVELS, plain.best_arm),
}
BY_GAUSSIAN: dict[str, Pair] = {
    "TS": (partial(bt.TS, prior=bt.Gaussian(sd=0.5)), FLAT, plain.gaussian(0.5)),
    "TSC": (partial(bt.TSC, prior=bt.Gaussian(sd=0.5)), TWO_LEVELS, plain.gaussian(0.5)),
    "HTS": (partial(bt.HTS, prior=bt.Gaussian(sd=0.5)), WHOLE, plain.gaussian(0.5)),
}
BY_CONTEXT: dict[str, Pair] = {
    "LinTS": (partial(bt.LinTS, dim=2, v=0.5), FLAT, plain.linear(v=0.5)),
    "LinTSC": (partial(bt.LinTSC, dim=2, v=0.5), TWO_LEVELS, plain.linear(v=0.5)),
    "LinHTS": (partial(bt.LinHTS, dim=2, v=0.5), WHOLE, plain.linear(v=0.5)),
    "LinUCB": (partial(bt.LinUCB, dim=2), FLAT, plain.linear(c=2.0)),
    "LinUCBC": (partial(bt.LinUCBC, dim=2), TWO_LEVELS, plain.linear(c=2.0)),
    "LinUCT": (partial(bt.LinUCT, dim=2), WHOLE, plain.linear(c=2.0)),
}
PAIRS: dict[str, dict[str, Pair]] = {
    "bernoulli": BY_BETA | BY_COUNTS,
    "bounded": BY_BETA | BY_COUNTS,
    "gaussian": BY_GAUSSIAN | BY_COUNTS,
    "normal": BY_CONTEXT,
    "uniform": {name: BY_CONTEXT[name] for name in ("LinTSC", "LinUCB")},
    "unit": {name: BY_CONTEXT[name] for name in ("LinHTS", "LinUCBC")},
}


def sigmas(one: Floats, two: Floats) -> float:
    """The largest difference of means in standard errors, of (runs, columns) each; constant columns must agree."""
    difference = np.abs(one.mean(axis=0) - two.mean(axis=0))
    error = np.sqrt(one.var(axis=0, ddof=1) / len(one) + two.var(axis=0, ddof=1) / len(two))
    return float(np.max(difference / np.maximum(error, 1e-9)))


@cache
def plainly(problem: str, name: str) -> tuple[Floats, Floats]:
    """Regret (runs, times) and plays (runs, arms) of the plain loop."""
    _, tree, score = PAIRS[problem][name]
    rng = np.random.default_rng(2)
    return plain.play(PROBLEMS[problem][1], tree, score, times=TIMES, runs=RUNS, rng=rng)


def distance(problem: str, name: str, factory: Callable[..., Any], seeds: int) -> float:
    """How far a simulated policy is from the plain loop called ``name``: in regret over time, and in plays per arm."""
    ours, _ = PROBLEMS[problem]
    runs = bt.simulate({name: factory}, ours, horizon=max(TIMES), seeds=seeds, checkpoints=TIMES, rng=1)
    regret, plays = plainly(problem, name)
    return max(sigmas(runs.regret[name], regret), sigmas(runs.plays[name].astype(float), plays))


def test_every_algorithm_is_compared() -> None:
    """But for the adaptive ones, whose probabilities are compared with plain loops of their own at each decision."""
    assert {name for pairs in PAIRS.values() for name in pairs} >= {
        name for name, kind in bt.ALGORITHMS.items() if not kind.about.adapts
    }


@pytest.mark.parametrize(("problem", "name"), [(problem, name) for problem, pairs in PAIRS.items() for name in pairs])
def test_regret_and_plays_agree_with_a_plain_loop(problem: str, name: str) -> None:
    assert distance(problem, name, PAIRS[problem][name][0], SEEDS) < SIGMAS


class Swapped(bt.TSC):
    """Successes and failures exchanged."""

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        super().update(arm, 1 - reward)


class Backwards(bt.TSMax):
    """The same, in a cluster's best arm."""

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        super().update(arm, 1 - reward)


class Halved(bt.HTS):
    """A reward counts half."""

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        super().update(arm, reward / 2)


class Neighbour(bt.TS):
    """Some rewards go to the arm next to the one that was played."""

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        super().update(arm + 1 if arm in (1, 3) else arm, reward)


class FirstOfTies(bt.UCB1):
    """Ties go to the first arm."""

    tried = 0

    def choose(self, context: Any = None, **limits: Any) -> Any:
        self.tried += 1
        return self.tried - 1 if self.tried <= len(MEANS) else super().choose()


class Forgetful(bt.LinTSC):
    """The context that is learned from is not the one that was seen."""

    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        super().update(arm, reward, context=context[::-1].copy())


@pytest.mark.parametrize(
    ("problem", "name", "broken"),
    [
        ("bernoulli", "TSC", Swapped),
        ("bernoulli", "HTS", Halved),
        ("bernoulli", "TS", Neighbour),
        ("bernoulli", "UCB1", FirstOfTies),
        ("bernoulli", "UCBC global", bt.UCBC),
        ("bernoulli", "TSMax", Backwards),
        ("gaussian", "TS", partial(bt.TS, prior=bt.Gaussian(sd=0.7))),
        ("normal", "LinTSC", partial(Forgetful, dim=2, v=0.5)),
        ("normal", "LinTS", partial(bt.LinTS, dim=2, v=0.25)),
        ("normal", "LinUCB", partial(bt.LinUCB, dim=2, c=1.2)),
    ],
)
def test_a_planted_error_is_caught(problem: str, name: str, broken: Callable[..., Any]) -> None:
    assert distance(problem, name, broken, FEW) > SIGMAS + 1
