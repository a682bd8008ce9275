"""The laws can fail: for each there are policies, broken on purpose, that it catches and names."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree import testing
from banditree.errors import BanditreeError, InvalidValue
from banditree.testing import LAWS, LawBroken
from tests.laws.test_decisions import MUTANTS as DECISION_MUTANTS
from tests.support.helpers import DIM, SHOP, make


class Plain:
    """Thompson sampling as a user may write it: the two methods and nothing else."""

    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        self.arms = list(tree.arms)
        self.rng = np.random.default_rng(rng)
        self.wins = dict.fromkeys(self.arms, 1.0)
        self.losses = dict.fromkeys(self.arms, 1.0)

    def choose(self, context: Any = None) -> Any:
        draws = [self.rng.beta(self.wins[arm], self.losses[arm]) for arm in self.arms]
        return self.arms[int(np.argmax(draws))]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        if not 0 <= reward <= 1:
            raise ValueError(f"reward {reward}")
        self.wins[arm] += reward
        self.losses[arm] += 1 - reward


class Full(Plain):
    """The same with all other methods that the laws check."""

    def choose_many(self, n: int, *, contexts: Any = None) -> list[Any]:
        return [self.choose() for _ in range(n)]

    def update_many(self, arms: list[Any], rewards: list[float], *, contexts: Any = None) -> None:
        if not all(0 <= reward <= 1 for reward in rewards):
            raise ValueError("a bad reward")
        for arm, reward in zip(arms, rewards, strict=True):
            self.update(arm, reward)

    def table(self) -> list[tuple[Any, ...]]:
        return [(arm, self.wins[arm], self.losses[arm]) for arm in self.arms]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([self.arms, list(self.wins.values()), list(self.losses.values())]))

    @classmethod
    def load(cls, path: Path, rng: Any) -> Full:
        policy = cls(bt.Tree(1), rng)
        policy.arms, wins, losses = json.loads(path.read_text())
        policy.wins = dict(zip(policy.arms, wins, strict=True))
        policy.losses = dict(zip(policy.arms, losses, strict=True))
        return policy

    def add_arms(self, arms: dict[Any, Any]) -> None:
        self._go_on([*self.arms, *arms])

    def remove_arms(self, arms: list[Any]) -> None:
        self._go_on([arm for arm in self.arms if arm not in arms])

    def move_arms(self, arms: dict[Any, Any]) -> None:
        """A flat policy knows no clusters."""

    def retree(self, tree: bt.Tree) -> None:
        self._go_on(list(tree.arms))

    def _go_on(self, arms: list[Any]) -> None:
        self.arms = arms
        self.wins = {arm: self.wins.get(arm, 1.0) for arm in arms}
        self.losses = {arm: self.losses.get(arm, 1.0) for arm in arms}


class ByContext:
    """Ridge regression per arm, greedy, with ties at random: contexts without a ``dim`` to read."""

    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        self.arms = tree.arms
        self.rng = np.random.default_rng(rng)
        self.moment = {arm: np.zeros(DIM) for arm in self.arms}
        self.gram = {arm: np.eye(DIM) for arm in self.arms}

    def choose(self, context: Any = None) -> Any:
        scores = np.round([np.linalg.solve(self.gram[arm], self.moment[arm]) @ context for arm in self.arms], 9)
        return self.arms[self.rng.choice(np.flatnonzero(scores == scores.max()))]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        if not np.isfinite(reward):
            raise ValueError(f"reward {reward}")
        self.moment[arm] += reward * context
        self.gram[arm] += np.outer(context, context)


def test_policies_of_users_pass() -> None:
    testing.check_policy(Plain)
    testing.check_policy(Full, load=Full.load)
    testing.check_policy(ByContext, dim=DIM, trees=[bt.Tree(3), SHOP])


# Broken ones. Each is named by the law that must catch it.

ARM, SEED, CHOOSING, ADD_UP, RENAME, ORDER, STORE, MOVE, BAD, *_ = LAWS


class NotAnArm(Plain):
    def choose(self, context: Any = None) -> Any:
        return self.arms.index(super().choose())


class TooFew(Full):
    def choose_many(self, n: int, *, contexts: Any = None) -> list[Any]:
        return super().choose_many(max(n - 1, 0))


class OddMany(Full):
    def choose_many(self, n: int, *, contexts: Any = None) -> list[Any]:
        return ["nobody"] * n


class Unseeded(Plain):
    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        super().__init__(tree, None)


class TiresOfItsChoices(Plain):
    def choose(self, context: Any = None) -> Any:
        arm = super().choose()
        self.wins[arm] = 1.0
        self.losses[arm] += 50
        return arm


class ShowsChoices(Full):
    """A change too small to see in its choices; the table shows it."""

    def choose(self, context: Any = None) -> Any:
        arm = super().choose()
        self.losses[arm] += 1e-9
        return arm


class LastRewardWins(Plain):
    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        super().update(arm, reward)
        self.wins = dict.fromkeys(self.arms, 1.0) | {arm: 1.0 + 100 * self.wins[arm]}


class LosesHalfTheBatch(Full):
    def update_many(self, arms: list[Any], rewards: list[float], *, contexts: Any = None) -> None:
        if sum(rewards) == sum(rewards):  # not NaN
            for arm in arms:
                self.wins[arm] += 100 * (arm == self.arms[0])


class SortsByName(Plain):
    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        super().__init__(tree, rng)
        self.arms = sorted(self.arms, key=str)


class FirstOnTies(Plain):
    def choose(self, context: Any = None) -> Any:
        return max(self.arms, key=lambda arm: self.wins[arm] / (self.wins[arm] + self.losses[arm]))


class ForgetsOnDisk(Full):
    def save(self, path: Path) -> None:
        forgetful = copy.copy(self)
        forgetful.wins = dict.fromkeys(self.arms, 1.0)
        Full.save(forgetful, path)


class DifferentOnDisk(Full):
    """Loaded twice with the same seed, it makes different runs."""

    @classmethod
    def load(cls, path: Path, rng: Any) -> Full:
        return Full.load(path, None)


class SavingSpoils(Full):
    def save(self, path: Path) -> None:
        super().save(path)
        self.wins[self.arms[0]] += 1


class NewArmsAreGreat(Full):
    def add_arms(self, arms: dict[Any, Any]) -> None:
        super().add_arms(arms)
        self.wins |= dict.fromkeys(arms, 1e6)


class MovingForgets(Full):
    def move_arms(self, arms: dict[Any, Any]) -> None:
        self.wins = dict.fromkeys(self.arms, 1.0)
        self.losses = dict.fromkeys(self.arms, 1.0)


class RemovalShifts(Full):
    """The beliefs slide to the wrong arms, the usual mistake with arrays."""

    def remove_arms(self, arms: list[Any]) -> None:
        stay = [arm for arm in self.arms if arm not in arms]
        self.wins = dict(zip(stay, self.wins.values(), strict=False))
        self.losses = dict(zip(stay, self.losses.values(), strict=False))
        self.arms = stay


class RetreeStartsAnew(Full):
    def retree(self, tree: bt.Tree) -> None:
        self.__init__(tree, self.rng)  # type: ignore[misc]


class TakesNaN(Plain):
    def choose(self, context: Any = None) -> Any:
        means = [self.wins[arm] / (self.wins[arm] + self.losses[arm]) for arm in self.arms]
        return self.arms[int(self.rng.choice(np.flatnonzero(np.array(means) == np.max(means))))]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        self.wins[arm] += reward
        self.losses[arm] += 1 - reward


class NaNCountsAsSuccess(Full):
    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        super().update(arm, 1 if np.isnan(reward) else reward)


class HalfOfABadBatch(Full):
    def update_many(self, arms: list[Any], rewards: list[float], *, contexts: Any = None) -> None:
        for arm, reward in zip(arms, rewards, strict=True):
            self.update(arm, reward)


MUTANTS: list[tuple[str, type[Plain], str]] = [
    (ARM, NotAnArm, "choose returned"),
    (ARM, TooFew, r"choose_many\(7\) returned 6"),
    (ARM, OddMany, "nobody"),
    (SEED, Unseeded, "two policies with the same seed"),
    (CHOOSING, TiresOfItsChoices, "choose differently"),
    (CHOOSING, ShowsChoices, "the table changed"),
    (ADD_UP, LastRewardWins, "in another order"),
    (ADD_UP, LosesHalfTheBatch, "in a batch"),
    (RENAME, SortsByName, "renamed arms"),
    (ORDER, FirstOnTies, "before any reward"),
    (STORE, ForgetsOnDisk, "another table"),
    (STORE, DifferentOnDisk, "loaded twice"),
    (STORE, SavingSpoils, "after saving"),
    (MOVE, NewArmsAreGreat, "after add_arms"),
    (MOVE, MovingForgets, "after move_arms"),
    (MOVE, RemovalShifts, "after remove_arms"),
    (MOVE, RetreeStartsAnew, "after retree"),
    (BAD, TakesNaN, "choose fails"),
    (BAD, NaNCountsAsSuccess, "the table changed"),
    (BAD, HalfOfABadBatch, "the table changed"),
]


def check_one_law(law: str, factory: Callable[..., Any], **options: Any) -> None:
    testing.check_policy(factory, skip=[other for other in LAWS if other != law], **options)


@pytest.mark.parametrize(("law", "mutant", "says"), MUTANTS, ids=[mutant.__name__ for _, mutant, _ in MUTANTS])
def test_a_law_catches_its_mutant(law: str, mutant: type[Plain], says: str) -> None:
    load = getattr(mutant, "load", None)
    with pytest.raises(LawBroken, match=says) as caught:
        check_one_law(law, mutant, load=load)
    assert law in str(caught.value)
    assert "Tree(" in str(caught.value) or caught.value.__cause__ is not None
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, BanditreeError)
    with pytest.raises(LawBroken):
        testing.check_policy(mutant, load=load)


def test_every_law_has_a_mutant() -> None:
    assert {law for law, _, _ in (*MUTANTS, *DECISION_MUTANTS)} == set(LAWS)


# The same for policies of this package, whose arrays are compared.


class CountingTSC(bt.TSC):
    def choose(self, context: Any = None, *, only: Any = None, exclude: Any = None) -> Any:
        arm = super().choose(context, only=only, exclude=exclude)
        self.update(arm, 0)
        return arm


class ForgetfulTSC(bt.TSC):
    def update_many(self, arms: Any, rewards: Any, *, plays: Any = None, contexts: Any = None) -> None:
        super().update_many(arms[1:], rewards[1:], plays=plays, contexts=contexts)


class DroppingTSC(bt.TSC):
    def move_arms(self, arms: Any) -> None:
        self.remove_arms(arms)
        self.add_arms(arms)


@pytest.mark.parametrize(
    ("law", "mutant", "says"),
    [
        (CHOOSING, CountingTSC, "failures changed"),
        (ADD_UP, ForgetfulTSC, "their (successes|failures) differ"),
        (MOVE, DroppingTSC, "after move_arms"),
    ],
)
def test_arrays_are_compared(law: str, mutant: type[bt.TSC], says: str) -> None:
    with pytest.raises(LawBroken, match=says):
        check_one_law(law, mutant)


def test_a_failing_policy_keeps_its_own_error_with_a_note() -> None:
    class Fails(Plain):
        def choose(self, context: Any = None) -> Any:
            raise RuntimeError("out of order")

    with pytest.raises(RuntimeError, match="out of order") as caught:
        testing.check_policy(Fails)
    assert "while checking the law" in caught.value.__notes__[0]


def test_options() -> None:
    testing.check_policy(lambda tree, rng: make("LinTS", tree, rng, dim=4), trees=[SHOP], rng=7)
    testing.check_policy(bt.HTS, trees=[bt.Tree(1)], rng=np.random.SeedSequence(3))
    with pytest.raises(InvalidValue, match="skip: 'gravity' is not a law"):
        testing.check_policy(bt.TS, skip=["gravity"])
    with pytest.raises(InvalidValue, match="require: 'gravity' is not a law"):
        testing.check_policy(bt.TS, require=["gravity"])
