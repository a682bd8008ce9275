"""What a service was started with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from banditree import __version__
from banditree.beliefs import Gaussian
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import Policy
from banditree.policy.algorithms import ALGORITHMS
from banditree.tree import Tree

DEFAULT_POLICY = "ATS"
FORMAT = 1  # of snapshots


@dataclass(frozen=True)
class Settings:
    """How to decide and how to learn. Only the first five matter to what is learned from a log."""

    policy: str = DEFAULT_POLICY  # an algorithm, with a depth where it takes one: HTS:2
    explore: float = 0.0
    half_life: float | None = None
    dim: int | None = None  # length of the contexts, for the linear policies
    reward_sd: float | None = None  # rewards are any numbers with about this standard deviation; None: from 0 to 1
    reward_window: float | None = None  # seconds
    default_reward: float | None = None
    learn_late: bool = False
    shadow: bool = False

    def __post_init__(self) -> None:
        if self.default_reward is not None and self.reward_window is None:
            raise InvalidValue("--default-reward needs --reward-window: it is earned when the window has passed")
        if self.reward_window is not None and not 0 < self.reward_window < 1e9:
            raise InvalidValue(f"--reward-window {self.reward_window:g} must be a number of seconds above 0")
        trial = self.build(Tree({"a": ["b", "c"]}))
        if self.default_reward is not None:
            context = None if trial.dim is None else [0.0] * trial.dim
            trial.update("b", self.default_reward, context=context)

    @property
    def key(self) -> str:
        """Snapshots of the same key hold the same fold."""
        parts = [FORMAT, __version__, self.policy, self.explore, self.half_life, self.dim, self.reward_sd]
        return json.dumps(parts)

    def build(self, tree: Tree) -> Policy:
        """The policy, with nothing learned."""
        name, _, depth = self.policy.partition(":")
        kind = ALGORITHMS.get(name)
        if kind is None:
            raise InvalidValue(f"there is no policy {name!r}; there are {', '.join(ALGORITHMS)}")
        options: dict[str, Any] = {"explore": self.explore, "half_life": self.half_life}
        if depth:
            if not depth.isdigit():
                raise InvalidValue(f"--policy {self.policy!r}: the depth must be a whole number, as in HTS:2")
            options["depth"] = int(depth)
        if self.dim is not None:
            options["dim"] = self.dim
        if self.reward_sd is not None:
            options["prior"] = Gaussian(sd=self.reward_sd)
        try:
            return kind(tree, **options)
        except TypeError as error:
            if isinstance(error, InvalidType):
                raise
            given = [f"--{what}" for what in ("dim", "reward-sd") if getattr(self, what.replace("-", "_")) is not None]
            given += ["a depth"] if depth else []
            raise InvalidValue(f"the policy {name} does not take {' and '.join(given)}") from None
