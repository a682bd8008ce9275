"""Rewards that come late, and decisions in batches: who learns what when, in both engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.policy import engines
from banditree.stream import native_stream
from tests.simulation.test_simulate import BOUNDED, CASES, IDS, TREE, fitted
from tests.support.helpers import needs_native

WHENS = [(0, 1), (0, 7), (5, 1), (5, 3), (10, 4), (100, 50), (1000, 1)]


class Diary:
    """Plays the arms in turn, and records the calls."""

    def __init__(self, tree: bt.Tree, *, rng: Any, log: list[Any]) -> None:
        self.arms, self.log, self.step = tree.arms, log, 0

    def choose(self, context: Any = None) -> Any:
        self.step += 1
        self.log.append(("choose", self.step, None if context is None else tuple(context)))
        return self.arms[self.step % len(self.arms)]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        self.log.append(("update", arm, None if context is None else tuple(context)))


def diary(horizon: int, problem: Any = BOUNDED, **when: Any) -> list[Any]:
    log: list[Any] = []
    bt.simulate({"diary": partial(Diary, log=log)}, problem, horizon=horizon, seeds=1, **when)
    return log


def learned(log: list[Any]) -> dict[int, list[int]]:
    """The steps whose rewards were learned just before each step: {step: steps}. Rewards come in the order of steps."""
    found: dict[int, list[int]] = {}
    waiting: list[int] = []
    n = 0
    for what, which, _ in log:
        if what == "update":
            n += 1
            assert which == TREE.arms[n % TREE.n_arms]
            waiting.append(n)
        elif waiting:
            found[which], waiting = waiting, []
    if waiting:
        found[0] = waiting  # at the end
    return found


def test_by_hand() -> None:
    assert learned(diary(4)) == {2: [1], 3: [2], 4: [3], 0: [4]}
    assert learned(diary(5, delay=2)) == {4: [1], 5: [2]}
    assert learned(diary(7, batch=3)) == {4: [1, 2, 3], 7: [4, 5, 6]}
    # Batches start at steps 1, 4, 7 and 10. The reward of step 1 is there after step 3, in time for step 4.
    assert learned(diary(10, delay=2, batch=3)) == {4: [1], 7: [2, 3, 4], 10: [5, 6, 7]}
    assert learned(diary(6, delay=6)) == {}
    assert learned(diary(6, batch=6)) == {}


@pytest.mark.parametrize(("delay", "batch"), WHENS)
def test_a_reward_is_learned_at_the_first_batch_after_its_delay(delay: int, batch: int) -> None:
    horizon = 333
    found = {t: step for step, steps in learned(diary(horizon, delay=delay, batch=batch)).items() for t in steps}
    starts = range(1, horizon + 1, batch)
    for t in range(1, horizon + 1):
        due = next((start for start in starts if start > t + delay), None)
        if (delay, batch) == (0, 1) and t == horizon:
            due = 0
        assert found.get(t) == due


def test_a_late_reward_comes_with_the_context_of_its_decision() -> None:
    theta = np.linspace(-1, 1, 2 * TREE.n_arms).reshape(-1, 2)
    log = diary(60, bt.problems.linear_from(TREE, theta), delay=5, batch=4)
    chosen = [context for what, _, context in log if what == "choose"]
    updated = [context for what, _, context in log if what == "update"]
    assert len(set(chosen)) == 60
    assert updated == chosen[: len(updated)]
    assert len(updated) == 51  # those of steps t with t + 5 < 57, where the last batch starts


@needs_native
@pytest.mark.parametrize(("delay", "batch"), [(0, 5), (7, 1), (20, 6)])
@pytest.mark.parametrize(("name", "problem"), CASES[::2], ids=IDS[::2])
def test_both_engines_give_the_same_run_draw_for_draw(name: str, problem: Any, delay: int, batch: int) -> None:
    factory: Callable[..., bt.Policy] = fitted(name, problem)
    options: dict[str, Any] = {"horizon": 150, "seeds": 2, "checkpoints": 150, "delay": delay, "batch": batch}
    with engines.using("native", shortcuts=False):
        runs = bt.simulate({name: factory}, problem, **options)
    with engines.using("readable"):
        readable = bt.simulate({name: lambda tree, rng: factory(tree, rng=native_stream(rng))}, problem, **options)
    assert (runs.engine[name], readable.engine[name]) == ("native", "readable")
    assert np.array_equal(readable.regret[name], runs.regret[name])
    assert np.array_equal(readable.plays[name], runs.plays[name])
    at_once = bt.simulate({name: factory}, problem, horizon=150, seeds=2, checkpoints=150)
    assert not np.array_equal(at_once.regret[name], runs.regret[name])


def test_without_delay_and_batches_nothing_changes() -> None:
    one = bt.simulate([bt.TSC, bt.UCT], BOUNDED, horizon=300, seeds=3)
    two = bt.simulate([bt.TSC, bt.UCT], BOUNDED, horizon=300, seeds=3, delay=0, batch=1)
    assert all(np.array_equal(one.regret[name], two.regret[name]) for name in one.policies)


def test_waiting_costs_regret_and_nothing_learned_is_chance() -> None:
    problem = bt.problems.bernoulli(TREE, np.linspace(0.1, 0.7, 7))
    ends = [
        bt.simulate({"TS": bt.TS}, problem, horizon=400, seeds=40, delay=delay).regret["TS"][:, -1]
        for delay in (0, 150, 400)
    ]
    for less, more in pairwise(ends):
        assert more.mean() - less.mean() > 4 * np.sqrt((less.var() + more.var()) / 40)
    uniform = 400 * (0.7 - np.linspace(0.1, 0.7, 7).mean())
    assert abs(ends[-1].mean() - uniform) < 4 * ends[-1].std() / np.sqrt(40)


@pytest.mark.parametrize("bad", [{"delay": -1}, {"batch": 0}, {"delay": 1.5}, {"batch": "50"}])
def test_what_is_not_a_number_of_steps_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError if isinstance(next(iter(bad.values())), int) else TypeError, match=next(iter(bad))):
        bt.simulate([bt.TS], BOUNDED, horizon=10, seeds=1, **bad)
