"""The settings that a service is started with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from banditree import __version__
from banditree.beliefs import Gaussian
from banditree.errors import InvalidValue
from banditree.errors.checks import positive, real
from banditree.policy import Policy
from banditree.policy.algorithms import parse_policy
from banditree.tree import Tree

DEFAULT_POLICY = "ATS"
FORMAT = 1  # of snapshots


@dataclass(frozen=True)
class Settings:
    """How to decide and how to learn. What is learned from a log depends only on the first five."""

    policy: str = DEFAULT_POLICY  # the name of an algorithm, possibly with a depth: HTS:2
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
            raise InvalidValue("--default-reward needs --reward-window: it is given when the window has passed")
        if self.reward_window is not None and not 0 < self.reward_window < 1e9:
            raise InvalidValue(f"--reward-window {self.reward_window:g} must be a number of seconds above 0")
        if self.half_life is not None:
            real("--half-life", self.half_life, 1, why="a number of rewards")
        if self.reward_sd is not None:
            positive("--reward-sd", self.reward_sd)
        trial = self.build(Tree({"a": ["b", "c"]}))
        if self.default_reward is not None:
            context = None if trial.dim is None else [0.0] * trial.dim
            trial.update("b", self.default_reward, context=context)

    @property
    def key(self) -> str:
        """The key of snapshots; those with the same key were folded in the same way."""
        parts = [FORMAT, __version__, self.policy, self.explore, self.half_life, self.dim, self.reward_sd]
        return json.dumps(parts)

    def build(self, tree: Tree) -> Policy:
        """Build the policy, without evidence."""
        kind, parameters = parse_policy(self.policy)
        about, name = kind.about, kind.__name__
        if self.dim is None and about.takes_contexts:
            raise InvalidValue(f"the policy {name} needs --dim, the length of the contexts")
        unused = ["--dim"] if self.dim is not None and not about.takes_contexts else []
        if self.reward_sd is not None and (about.takes_contexts or not about.takes_prior):
            unused.append("--reward-sd")
        if unused:
            raise InvalidValue(f"the policy {name} does not take {' and '.join(unused)}; leave it out")
        options: dict[str, Any] = {"explore": self.explore, "half_life": self.half_life}
        if self.dim is not None:
            options["dim"] = self.dim
        if self.reward_sd is not None:
            options["prior"] = Gaussian(sd=self.reward_sd)
        return kind(tree, **parameters, **options)
