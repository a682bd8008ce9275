"""The settings of an experiment: how it decides, what it learns from, and what it is compared with."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from banditree import __version__
from banditree.beliefs import Gaussian
from banditree.errors import InvalidValue
from banditree.errors.checks import positive, real
from banditree.features import Features
from banditree.policy import Policy, inputs
from banditree.policy.algorithms import parse_policy
from banditree.policy.state import hold
from banditree.tree import Tree

DEFAULT_POLICY = "ATS"
DEFAULT_CONTEXT_POLICY = "LinATS"
RATES, REAL = "rates", "real"
RANDOM, ITEM = "random", "item:"  # control policies that do not learn: any arm, or always the same one
FORMAT = 2  # of snapshots
MAX_SECONDS = 1e9


@dataclass(frozen=True)
class Settings:
    """How one experiment decides and learns. Snapshots are used again where those that the fold depends on agree."""

    policy: str = ""  # the name of an algorithm, possibly with a depth: HTS:2; by default ATS, with features LinATS
    explore: float = 0.0
    half_life: float | None = None
    dim: int | None = None  # length of the contexts, for the linear policies
    features: Mapping[str, Any] | None = None  # what a request's context is made of, as `bt.Features.to_dict` has it
    rewards: str = RATES  # rates, from 0 to 1, or real numbers
    reward_sd: float | None = None  # standard deviation of real rewards, where it is known; else it is learned
    reward_window: float | None = None  # seconds
    default_reward: float | None = None
    learn_late: bool = False
    shadow: bool = False
    control: float = 0.0  # share of units, or of decisions without a unit, that the control policy decides for
    control_policy: str = RANDOM
    learn_control: bool = False
    sticky: float | None = None  # seconds for which a unit keeps its arm
    stop_at: float | None = None  # reward per decision still to be gained below which the report says that it is done

    def __post_init__(self) -> None:
        if not self.policy:
            object.__setattr__(self, "policy", DEFAULT_CONTEXT_POLICY if self.features else DEFAULT_POLICY)
        if self.rewards not in (RATES, REAL):
            raise InvalidValue(f"--rewards {self.rewards!r} must be {RATES}, from 0 to 1, or {REAL}, any numbers")
        if self.reward_sd is not None:
            object.__setattr__(self, "rewards", REAL)
        if self.default_reward is not None and self.reward_window is None:
            raise InvalidValue("--default-reward needs --reward-window: it is given when the window has passed")
        for name, seconds in (("--reward-window", self.reward_window), ("--sticky", self.sticky)):
            if seconds is not None and not 0 < seconds < MAX_SECONDS:
                raise InvalidValue(f"{name} {seconds:g} must be a number of seconds above 0")
        if self.half_life is not None:
            real("--half-life", self.half_life, 1, why="a number of rewards")
        for name, value in (("--reward-sd", self.reward_sd), ("--stop-at", self.stop_at)):
            if value is not None:
                positive(name, value)
        if not 0 <= self.control < 1:
            raise InvalidValue(f"--control {self.control:g} must be a share from 0 to below 1, such as 0.1")
        trial = self.build(Tree({"a": ["b", "c"]}))
        self.build_control(Tree({"a": ["b", "c"]}))
        if self.default_reward is not None:
            check_reward(trial, "b", self.default_reward)

    @property
    def key(self) -> str:
        """The key of snapshots; those with the same key were folded in the same way."""
        of_fold = (
            "policy explore half_life dim features rewards reward_sd reward_window control_policy learn_control sticky"
        )
        return json.dumps([FORMAT, __version__, *(getattr(self, name) for name in of_fold.split())])

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, ready for JSON."""
        defaults = {part.name: part.default for part in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def build(self, tree: Tree) -> Policy:
        """Build the policy, without evidence."""
        return self._build(self.policy, tree, "--policy")

    def build_control(self, tree: Tree) -> Policy | None:
        """Build the control policy, or None if it is one that does not learn."""
        if self.control_policy == RANDOM or self.control_policy.startswith(ITEM):
            return None
        return self._build(self.control_policy, tree, "--control-policy")

    def check_control(self, arms: Container[str]) -> None:
        """Refuse an item that does not exist as the control policy; if it is removed later, any arm takes its place."""
        item = self.control_policy.removeprefix(ITEM)
        if item != self.control_policy and item not in arms:
            raise InvalidValue(f"--control-policy {self.control_policy}: there is no item {item!r}")

    def _build(self, policy: str, tree: Tree, option: str) -> Policy:
        kind, parameters = parse_policy(policy)
        about, name = kind.about, kind.__name__
        options: dict[str, Any] = {"explore": self.explore, "half_life": self.half_life} | parameters
        unused = []
        if about.takes_contexts and self.features is not None:
            options["features"] = parse_features(self.features)
        elif about.takes_contexts:
            if self.dim is None:
                raise InvalidValue(f"the policy {name} needs --dim, the length of the contexts, or --context")
            options["dim"] = self.dim
        elif self.dim is not None:
            unused.append("--dim")
        has_prior = about.takes_prior and not about.takes_contexts  # the others take any rewards as they are
        if self.rewards == REAL and has_prior:
            options["prior"] = Gaussian(sd=self.reward_sd)
        elif self.reward_sd is not None:
            unused.append("--reward-sd")
        if unused and option == "--policy":
            raise InvalidValue(f"the policy {name} does not take {' and '.join(unused)}; leave it out")
        return kind(tree, **options)


def check_reward(policy: Policy, arm: str, reward: float) -> None:
    """Ask the policy whether it can learn from a reward; raise what it says if not."""
    with hold(policy, changes=False) as state:
        try:
            inputs.reward(reward, state.rows, arm)
        except InvalidValue as error:
            low, high = state.rows.support
            if low <= reward <= high:
                raise
            raise InvalidValue(
                f"reward {reward:.17g} for arm {arm!r} is outside [{low:g}, {high:g}]; for other rewards start the "
                "service with --rewards real"
            ) from error


def parse_features(plain: Mapping[str, Any]) -> Features:
    """Build the features of contexts from what `bt.Features.to_dict` returned."""
    return Features.from_dict(plain)


def features_of(spec: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Turn features as JSON and TOML files have them into what `bt.Features.to_dict` returns.

    Each is a list of levels, a range such as [18, 90], or "bool"; a mapping with "features" is taken as it is.
    """
    if spec is None or "features" in spec:
        return spec
    return Features({name: _feature(name, value) for name, value in spec.items()}).to_dict()


def _feature(name: str, value: Any) -> Any:
    if value in ("bool", "boolean"):
        return bool
    is_range = isinstance(value, list) and len(value) == 2 and all(type(end) in (int, float) for end in value)
    if is_range:
        return tuple(value)
    if not isinstance(value, list):
        raise InvalidValue(f'feature {name!r}: give a list of levels, a range such as [18, 90], or "bool"')
    return value


def parse_context(text: str) -> Mapping[str, Any] | None:
    """Read features as the command line has them: device=phone|tablet|desktop,age=18..90,returning=bool.

    >>> parse_context("age=18..90,returning=bool")
    {'features': [{'name': 'age', 'range': [18, 90]}, {'name': 'returning', 'type': 'bool'}]}
    """
    spec: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value:
            raise InvalidValue(f"--context {part!r} must be like device=phone|tablet, age=18..90 or returning=bool")
        if name in spec:
            raise InvalidValue(f"--context names {name!r} twice")
        low, dots, high = value.partition("..")
        if dots:
            try:
                spec[name] = [_number(low), _number(high)]
            except ValueError:
                raise InvalidValue(f"--context {part!r}: a range is like 18..90") from None
        else:
            spec[name] = value if value == "bool" else value.split("|")
    return features_of(spec)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
