"""The laws of decisions can fail: policies broken on purpose, and policies that lack a method."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree import testing
from banditree.testing import LAWS, LawBroken
from tests.support.helpers import SHOP

*_, LIMITS, SLATES, CHANCES, FORGETTING, PLAYS = LAWS


class Counting:
    """UCB without bonus on clusters that do not matter, as a user may write it: exact probabilities are easy then."""

    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        self.tree, self.arms = tree, list(tree.arms)
        self.rng = np.random.default_rng(rng)
        self.sums, self.counts = np.zeros(len(self.arms)), np.ones(len(self.arms))

    def allowed(self, only: Any, exclude: Any) -> NDArray[np.bool_]:
        found = np.ones(len(self.arms), bool)
        for given, keep in ((only, True), (exclude, False)):
            if given is not None:
                mask = isinstance(given, np.ndarray) and given.dtype == np.bool_
                named = given if mask else self.named(given)
                found &= named == keep
        if not found.any():
            raise ValueError("nothing left")
        return found

    def named(self, given: Any) -> NDArray[np.bool_]:
        found = np.zeros(len(self.arms), bool)
        found[[self.arms.index(arm) for arm in given]] = True
        return found

    def scores(self, allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.where(allowed, self.sums / self.counts, -np.inf)

    def propensities(self, *, only: Any = None, exclude: Any = None) -> NDArray[np.float64]:
        scores = self.scores(self.allowed(only, exclude))
        best = scores == scores.max()
        return np.asarray(best / best.sum())

    def choose(self, context: Any = None, *, only: Any = None, exclude: Any = None) -> Any:
        return self.arms[self.rng.choice(len(self.arms), p=Counting.propensities(self, only=only, exclude=exclude))]

    def choose_many(self, n: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        return [Counting.choose(self, only=only, exclude=exclude) for _ in range(n)]

    def decide(self, *, only: Any = None, exclude: Any = None) -> Any:
        arm = Counting.choose(self, only=only, exclude=exclude)
        chance = float(Counting.propensities(self, only=only, exclude=exclude)[self.arms.index(arm)])
        return SimpleNamespace(arm=arm, propensity=chance, steps=(chance,), path=self.tree.path(arm))

    def slate(self, k: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        allowed = self.allowed(only, exclude)
        if k > allowed.sum():
            raise ValueError("too few")
        order = np.lexsort((self.rng.random(len(self.arms)), -self.scores(allowed)))
        return [self.arms[at] for at in order[:k]]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        self.update_many([arm], [reward])

    def update_many(self, arms: list[Any], rewards: list[float], *, plays: Any = None) -> None:
        plays = [1] * len(arms) if plays is None else plays
        places = [self.arms.index(arm) for arm in arms]
        if not all(n > 0 and 0 <= reward <= n for reward, n in zip(rewards, plays, strict=True)):
            raise ValueError("bad rewards")
        np.add.at(self.sums, places, rewards)
        np.add.at(self.counts, places, plays)

    def forget(self, factor: float) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("bad factor")
        self.sums *= factor
        self.counts = 1 + factor * (self.counts - 1)


def test_a_policy_with_everything_passes() -> None:
    testing.check_policy(Counting, require=[LIMITS, SLATES, CHANCES, FORGETTING, PLAYS])


# Broken ones


class Deaf(Counting):
    def choose(self, context: Any = None, *, only: Any = None, exclude: Any = None) -> Any:
        return super().choose()


class DeafToMasks(Counting):
    def named(self, given: Any) -> NDArray[np.bool_]:
        return super().named(given) if len(given) < 2 else super().named(given[1:])


class ManyAreDeaf(Counting):
    def choose_many(self, n: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        return super().choose_many(n)


class DecidesForItself(Counting):
    def decide(self, *, only: Any = None, exclude: Any = None) -> Any:
        return super().decide()


class AlwaysSomething(Counting):
    """Returns the first arm when none is allowed."""

    def allowed(self, only: Any, exclude: Any) -> NDArray[np.bool_]:
        try:
            return super().allowed(only, exclude)
        except ValueError:
            return np.asarray(np.arange(len(self.arms)) == 0)


class Repeats(Counting):
    def slate(self, k: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        return Counting.choose_many(self, k, only=only, exclude=exclude)


class Short(Counting):
    def slate(self, k: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        return super().slate(min(k, int(self.allowed(only, exclude).sum())), only=only, exclude=exclude)


class WorstFirst(Counting):
    def slate(self, k: int, *, only: Any = None, exclude: Any = None) -> list[Any]:
        n = max(k, int(self.allowed(only, exclude).sum()))
        return super().slate(n, only=only, exclude=exclude)[::-1][:k]


class AboveOne(Counting):
    def propensities(self, *, only: Any = None, exclude: Any = None) -> NDArray[np.float64]:
        return 1.01 * super().propensities(only=only, exclude=exclude)


class Even(Counting):
    """Sums to one, also under limits, and is wrong."""

    def propensities(self, *, only: Any = None, exclude: Any = None) -> NDArray[np.float64]:
        allowed = self.allowed(only, exclude)
        return np.asarray(allowed / allowed.sum())


class LeavesSome(Counting):
    """A chance for arms that are not allowed."""

    def propensities(self, *, only: Any = None, exclude: Any = None) -> NDArray[np.float64]:
        return super().propensities()


class LogsAnother(Counting):
    def decide(self, *, only: Any = None, exclude: Any = None) -> Any:
        decision = super().decide(only=only, exclude=exclude)
        return SimpleNamespace(**{**vars(decision), "propensity": 0.9 * decision.propensity})


class OddSteps(Counting):
    def decide(self, *, only: Any = None, exclude: Any = None) -> Any:
        decision = super().decide(only=only, exclude=exclude)
        return SimpleNamespace(**{**vars(decision), "steps": (0.5, decision.propensity)})


class OddPath(Counting):
    def decide(self, *, only: Any = None, exclude: Any = None) -> Any:
        decision = super().decide(only=only, exclude=exclude)
        return SimpleNamespace(**{**vars(decision), "path": ("nowhere",)})


class ForgetsAll(Counting):
    def forget(self, factor: float) -> None:
        super().forget(0 if factor == 1 else factor)


class NeverForgets(Counting):
    def forget(self, factor: float) -> None:
        super().forget(1 if 0 <= factor <= 1 else factor)


class ForgetsThePrior(Counting):
    def forget(self, factor: float) -> None:
        super().forget(factor)
        if factor == 0:
            self.sums[0] += 1


class TakesAnyFactor(Counting):
    def forget(self, factor: float) -> None:
        super().forget(float(np.clip(np.nan_to_num(factor), 0, 1)))


class FailuresAreRewards(Counting):
    def update_many(self, arms: list[Any], rewards: list[float], *, plays: Any = None) -> None:
        turned = rewards if plays is None else [n - r for n, r in zip(plays, rewards, strict=True)]
        super().update_many(arms, turned, plays=plays)


class TakesNoPlays(Counting):
    def update_many(self, arms: list[Any], rewards: list[float], *, plays: Any = None) -> None:
        super().update_many(arms, rewards, plays=None if plays is None else np.maximum(np.nan_to_num(plays), 1))


MUTANTS: list[tuple[str, type[Counting], str]] = [
    (LIMITS, Deaf, "choose with .* which is not allowed"),
    (LIMITS, DeafToMasks, "which is not allowed"),
    (LIMITS, ManyAreDeaf, "choose_many with .* which is not allowed"),
    (LIMITS, DecidesForItself, "decide with .* which is not allowed"),
    (LIMITS, AlwaysSomething, "should raise an error"),
    (SLATES, Repeats, "an arm twice"),
    (SLATES, Short, "should raise an error"),
    (SLATES, WorstFirst, "a slate of 1"),
    (CHANCES, AboveOne, "add up to"),
    (CHANCES, Even, "propensities are .* choices"),
    (CHANCES, LeavesSome, "not allowed"),
    (CHANCES, LogsAnother, "a propensity of"),
    (CHANCES, OddSteps, "steps of product"),
    (CHANCES, OddPath, "the path"),
    (FORGETTING, ForgetsAll, "forgot by 1"),
    (FORGETTING, NeverForgets, "forgot by 0"),
    (FORGETTING, ForgetsThePrior, "forgot by 0"),
    (FORGETTING, TakesAnyFactor, "should raise an error"),
    (PLAYS, FailuresAreRewards, "their sums with plays"),
    (PLAYS, TakesNoPlays, "should raise an error"),
]


@pytest.mark.parametrize(("law", "mutant", "says"), MUTANTS, ids=[mutant.__name__ for _, mutant, _ in MUTANTS])
def test_a_law_catches_its_mutant(law: str, mutant: type[Counting], says: str) -> None:
    with pytest.raises(LawBroken, match=says) as caught:
        testing.check_policy(mutant, skip=[other for other in LAWS if other != law])
    assert law in str(caught.value)


# The same for policies of this package


class ForgetfulTSC(bt.TSC):
    def forget(self, factor: float) -> None:
        super().forget(factor**2)


class DeafTSC(bt.TSC):
    def choose(self, context: Any = None, *, only: Any = None, exclude: Any = None) -> Any:
        return super().choose(context, exclude=exclude)


class RoundTSC(bt.TSC):
    """Its probabilities are rounded to the second digit."""

    def propensities(self, *arguments: Any, **limits: Any) -> NDArray[np.float64]:
        rounded = super().propensities(*arguments, **limits).round(2)
        return np.asarray(rounded / rounded.sum())


@pytest.mark.parametrize(
    ("law", "mutant", "says"),
    [
        (FORGETTING, ForgetfulTSC, "their (successes|failures) differ"),
        (LIMITS, DeafTSC, "which is not allowed"),
        (CHANCES, RoundTSC, "propensit"),
    ],
)
def test_arrays_and_small_errors(law: str, mutant: type[bt.TSC], says: str) -> None:
    with pytest.raises(LawBroken, match=says):
        testing.check_policy(mutant, skip=[other for other in LAWS if other != law])


# What is missing


class Two:
    """The two methods that a policy needs, and no others."""

    def __init__(self, tree: bt.Tree, rng: Any = None) -> None:
        self.arms, self.rng = tree.arms, np.random.default_rng(rng)

    def choose(self, context: Any = None) -> Any:
        return self.arms[int(self.rng.integers(len(self.arms)))]

    def update(self, arm: Any, reward: float, context: Any = None) -> None:
        """Learns nothing."""


class NoPlays(Two):
    def update_many(self, arms: list[Any], rewards: list[float]) -> None:
        """Learns nothing."""


class Cannot(Two):
    def propensities(self) -> Any:
        raise NotImplementedError("no probabilities here")


@pytest.mark.parametrize(
    ("law", "policy", "says"),
    [
        ("a choice is an arm of the tree", Two, "Two has no method `choose_many`"),
        ("rewards add up, in any order and in batches", Two, "Two has no method `update_many`"),
        ("save and load round-trips", Two, "Two has no method `save`"),
        ("changing the catalogue conserves evidence", Two, "Two has no method `add_arms`"),
        (LIMITS, Two, "`Two.choose` takes no `only`"),
        (SLATES, Two, "Two has no method `slate`"),
        (CHANCES, Two, "Two has no method `propensities`"),
        (CHANCES, Cannot, "no probabilities here"),
        (FORGETTING, Two, "Two has no method `forget`"),
        (PLAYS, Two, "Two has no method `update_many`"),
        (PLAYS, NoPlays, "`NoPlays.update_many` takes no `plays`"),
    ],
)
def test_what_is_missing_is_named_where_a_law_is_asked_for(law: str, policy: Callable[..., Any], says: str) -> None:
    testing.check_policy(policy, trees=[SHOP])  # not checked
    with pytest.raises(LawBroken, match=says):
        testing.check_policy(policy, trees=[SHOP], require=[law])


def test_a_rule_without_probabilities_is_passed_over_or_named() -> None:
    class Mean(bt.Rule):
        def score(self, view: bt.View) -> Any:
            return view.mean()

    def build(tree: bt.Tree, rng: Any) -> bt.Policy:
        return bt.Policy(tree, belief=bt.Beta(), rule=Mean(), rng=rng)

    testing.check_policy(build, trees=[SHOP])
    with pytest.raises(LawBroken, match="Mean has no method `wins`"):
        testing.check_policy(build, trees=[SHOP], require=[CHANCES])
