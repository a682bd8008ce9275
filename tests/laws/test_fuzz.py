"""A short run of `make fuzz`, and policies with a fault each, which it must find."""

from __future__ import annotations

from typing import Any

import pytest

import banditree as bt
from tests.support.fuzz import Wrong, fuzz


def test_all_policies_agree_with_the_oracle() -> None:
    assert fuzz(1, iter(range(60)), steps=30) == 1800


class LearnsTheLastTwice(bt.TSC):
    def update_many(self, arms: Any, rewards: Any, **options: Any) -> None:
        super().update_many(arms, rewards, **options)
        if len(arms):
            super().update(arms[-1], 0.0)


class LearnsBeforeItLooks(bt.HTS):
    def update_many(self, arms: Any, rewards: Any, **options: Any) -> None:
        if options["contexts"] is not None:
            super().update_many(arms, rewards)
        super().update_many(arms, rewards, **options)


class DrawsBeforeItLooks(bt.LinTSC):
    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        self._stream.random()
        super().update(arm, reward, context)


class LosesWhatItMoves(bt.UCT):
    def move_arms(self, arms: Any) -> None:
        super().move_arms(arms)
        arms = {arm: self.tree.path(arm)[:-1] for arm in arms if len(self.tree) > 1}
        for arm, clusters in arms.items():
            self.remove_arms([arm])
            self.add_arms({arm: clusters})


class TakesAnyArm(bt.TS):
    def update(self, arm: Any, reward: Any, context: Any = None) -> None:
        if isinstance(arm, str | int | float) and arm not in self.tree:
            return
        super().update(arm, reward, context)


@pytest.mark.parametrize(
    ("mutant", "finding"),
    [
        (LearnsTheLastTwice, "failures of|plays of"),
        (LearnsBeforeItLooks, "changed what it must not"),
        (DrawsBeforeItLooks, "refusing moved the stream"),
        (LosesWhatItMoves, "count of|plays of"),
        (TakesAnyArm, "took a bad call"),
    ],
)
def test_a_fault_is_found(mutant: Any, finding: str) -> None:
    with pytest.raises(Wrong, match=finding):
        fuzz(2, iter(range(200)), kinds={mutant.__name__: mutant})
