"""The settings of an experiment, and where its items come from; the options of `serve`, TOML files and requests."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from banditree.base.files import Json
from banditree.base.words import count
from banditree.beliefs import Gaussian
from banditree.data.features import Features
from banditree.errors import InvalidValue
from banditree.errors.checks import positive
from banditree.policy import Policy, inputs
from banditree.policy.algorithms import parse_policy
from banditree.policy.state import hold
from banditree.service.events import MAIN
from banditree.tree import Tree

DEFAULT_POLICY = "ATS"
DEFAULT_CONTEXT_POLICY = "LinATS"
RATES, REAL = "rates", "real"
RANDOM, ITEM = "random", "item:"  # control policies that do not learn: any arm, or always the same one
FORMAT = 4  # of snapshots
MAX_SECONDS = 1e9
MAX_DIM = 10_000
MAX_WORK = 60_000_000  # `work` x `About.cost`: at most about a second for a decision
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
TIMES = ("reward_window", "sticky")  # settings that may be written as 30m


def _option(default: Any, metavar: str | None, text: str) -> Any:
    """Describe an option of ``banditree serve``, which is a key of TOML files and of requests too."""
    return field(default=default, metadata={"metavar": metavar, "help": text})


@dataclass(frozen=True)
class Settings:
    """How one experiment decides and learns. Snapshots are used again where those that the fold depends on agree."""

    policy: str = _option("", "NAME", "The policy: ATS, TSC, TS, HTS:2, ... Default: ATS; LinATS with --context.")
    explore: float = _option(0.0, "SHARE", "Share of decisions made at random.")
    half_life: float | None = _option(None, "N", "Number of rewards after which evidence counts half.")
    dim: int | None = _option(None, "N", "Length of contexts that are lists of numbers.")
    features: Mapping[str, object] | None = None  # of a request's context, as `bt.Features.to_dict` returns them
    rewards: str = _option(RATES, "KIND", "What rewards are: rates, from 0 to 1, or real: any numbers.")
    reward_sd: float | None = _option(None, "SD", "Standard deviation of real rewards, if it is known; else learned.")
    reward_window: float | None = _option(None, "TIME", "How long a reward may take: 90 (seconds), 30m, 2h, 1d.")
    default_reward: float | None = _option(None, "R", "Reward of a decision whose window passes without one.")
    learn_late: bool = _option(False, None, "Learn from rewards after the window too.")
    exposure: bool = _option(False, None, "Only decisions that are reported as seen count, or earn default rewards.")
    shadow: bool = _option(False, None, "Decide and log, but leave the choice to the caller, and learn from it.")
    control: float = _option(0.0, "SHARE", "Share of units that the control policy decides for.")
    control_policy: str = _option(RANDOM, "NAME", "Policy of the control group: random, item:ID, or any policy.")
    learn_control: bool = _option(False, None, "Learn from the control group's rewards too.")
    sticky: float | None = _option(None, "TIME", "How long a unit keeps its arm: 30m.")
    stop_at: float | None = _option(None, "R", "Reward per decision still to gain below which the report says done.")

    def __post_init__(self) -> None:
        if not self.policy:
            object.__setattr__(self, "policy", DEFAULT_CONTEXT_POLICY if self.features else DEFAULT_POLICY)
        if self.rewards not in (RATES, REAL):
            raise InvalidValue(f"rewards {self.rewards!r} must be {RATES}, from 0 to 1, or {REAL}, any numbers")
        if self.reward_sd is not None:
            object.__setattr__(self, "rewards", REAL)
        if self.default_reward is not None and self.reward_window is None:
            raise InvalidValue("default_reward needs reward_window: it is given when the window has passed")
        if self.learn_late and self.reward_window is None:
            raise InvalidValue("learn_late needs reward_window: without a window no reward is late")
        for name, time in (("reward_window", self.reward_window), ("sticky", self.sticky)):
            if time is not None and not 0 < time < MAX_SECONDS:
                raise InvalidValue(f"{name} {time:g} must be a number of seconds above 0")
        if self.dim is not None and not 1 <= self.dim <= MAX_DIM:
            raise InvalidValue(f"dim {self.dim} must be from 1 to {MAX_DIM:,}")
        if self.stop_at is not None:
            positive("stop_at", self.stop_at)
        if not 0 <= self.control < 1:
            raise InvalidValue(f"control {self.control:g} must be a share from 0 to below 1, such as 0.1")
        trial = self.build(Tree({"a": ["b", "c"]}))
        self.build_control(Tree({"a": ["b", "c"]}))
        if self.default_reward is not None:
            check_reward(trial, "b", self.default_reward)

    @property
    def named(self) -> Features | None:
        """Return what encodes contexts by name; None if there are none."""
        return None if self.features is None else Features.from_dict(self.features)

    @property
    def control_item(self) -> str | None:
        """The item that the control policy always chooses, if it is one that does."""
        return self.control_policy.removeprefix(ITEM) if self.control_policy.startswith(ITEM) else None

    @property
    def control_learns(self) -> bool:
        """Whether the control policy is one that learns: it is neither an item nor random."""
        return self.control_policy != RANDOM and self.control_item is None

    @property
    def key(self) -> str:
        """The key of snapshots; those with the same key were folded in the same way."""
        of_fold = (
            "policy explore half_life dim features rewards reward_sd reward_window default_reward control_policy "
            "learn_control"
        )
        exposure = ["exposure"] if self.exposure else []
        return json.dumps([FORMAT, *(getattr(self, name) for name in of_fold.split()), *exposure])

    def to_dict(self) -> Json:
        """Return the settings that differ from the defaults, ready for JSON."""
        defaults = {part.name: part.default for part in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    def differences(self, other: Settings) -> list[str]:
        """Say what other settings change: ``control from 0.2 to 0.5``."""
        pairs = ((part.name, getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return [f"{name} from {_shown(old)} to {_shown(new)}" for name, old, new in pairs if old != new]

    def change(self, given: Mapping[str, Any]) -> Settings:
        """Return settings with some of them changed, as `read_settings` takes them; None is the default."""
        kept = {name: value for name, value in self.to_dict().items() if name not in given}
        if "context" in given:
            kept.pop("features", None)
        features = kept.pop("features", None)
        return read_settings(kept | ({} if features is None else {"context": features}) | dict(given))

    def build(self, tree: Tree) -> Policy:
        """Build the policy, without evidence."""
        return self._build(self.policy, tree)

    def build_control(self, tree: Tree) -> Policy | None:
        """Build the control policy, or None if it is one that does not learn."""
        return self._build(self.control_policy, tree) if self.control_learns else None

    def check_arms(self, arms: Collection[str]) -> None:
        """Refuse arms among which the settings cannot decide.

        An item that is the control policy must exist; if it is removed later, any arm takes its place.
        """
        self.check_size(len(arms))
        if self.control_item is not None and self.control_item not in arms:
            raise InvalidValue(f"control_policy {self.control_policy}: there is no item {self.control_item!r}")

    def check_size(self, n_arms: int) -> None:
        """Refuse contexts too long for this many arms: each decision would keep all others waiting."""
        for name in (self.policy, self.control_policy)[: 1 + self.control_learns]:
            about = parse_policy(name)[0].about
            columns = self.named.dim if self.named is not None else self.dim or 0
            if about.takes_contexts and about.cost * work(n_arms, columns) > MAX_WORK:
                most = bisect_right(range(columns), MAX_WORK / about.cost, key=lambda fewer: work(n_arms, fewer)) - 1
                raise InvalidValue(
                    f"the policy {name} would take seconds for a decision: among {count(n_arms, 'arm')} it can have "
                    f"contexts of up to {most:,} columns, and these have {columns:,}; use fewer levels, or a policy "
                    "that is faster, such as LinTSC"
                )

    def _build(self, policy: str, tree: Tree) -> Policy:
        kind, parameters = parse_policy(policy)
        about, name = kind.about, kind.__name__
        options: Json = {"explore": self.explore, "half_life": self.half_life} | parameters
        unused = ""
        if about.takes_contexts and self.features is not None:
            options["features"] = self.named
        elif about.takes_contexts:
            if self.dim is None:
                raise InvalidValue(f"the policy {name} needs dim, the length of the contexts, or context")
            options["dim"] = self.dim
        elif self.dim is not None:
            unused = "dim"
        has_prior = about.takes_prior and not about.takes_contexts  # the others take any rewards as they are
        if self.rewards == REAL and has_prior:
            options["prior"] = Gaussian(sd=self.reward_sd)
        elif self.reward_sd is not None:
            unused = "reward_sd"
        if unused and policy == self.policy:
            raise InvalidValue(f"the policy {name} does not take {unused}; leave it out")
        return kind(tree, **options)


@dataclass(frozen=True)
class Source:
    """Where an experiment's items and its past come from."""

    items: Path
    arm: Sequence[str] = _option((), "COLUMNS", "Column of the items; the values of several, a,b, are joined.")
    path: Sequence[str] = _option((), "COLUMNS", "Columns of the categories, coarse to fine: a,b,c.")
    plays: str | None = _option(None, "COLUMN", "Column of past plays to start from.")
    successes: str | None = _option(None, "COLUMN", "Column of past successes to start from.")
    weight: float = _option(1.0, "W", "What a past play counts, compared with a new one.")
    log: Path | None = _option(None, "FILE", "A past log to start from, one row per decision.")
    log_arm: str | None = _option(None, "COLUMN", "Column of the log: what was shown.")
    log_reward: str | None = _option(None, "COLUMN", "Column of the log: what it earned.")
    log_context: Sequence[str] = _option((), "COLUMNS", "Columns of the log: contexts.")


@dataclass(frozen=True)
class Plan:
    """What to start an experiment from: its catalogue, its settings, and past evidence."""

    arms: dict[str, list[str]]  # each arm and the clusters above it
    settings: Settings = field(default_factory=Settings)
    name: str = MAIN
    source: str = ""  # where the catalogue was read from
    catalogue: str = "refuse"  # what to do if the store holds another one: refuse, update or keep
    evidence: Json | None = None  # arms, rewards, and plays or contexts, as `Policy.update_many` takes them
    updates_settings: bool = False  # whether settings that differ from the store's replace them, or are refused


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Make settings from options as they are written: times such as 30m, and features by name as ``context``."""
    options = {name: value for name, value in given.items() if value is not None}
    for name in TIMES:
        if isinstance(options.get(name), str):
            options[name] = seconds(options[name], name)
    context = options.pop("context", None)
    features = parse_context(context) if isinstance(context, str) else features_of(context)
    return Settings(**options, features=features)


def check_experiment_name(name: str) -> str:
    """Check the name of a new experiment, which is a part of addresses."""
    if not re.fullmatch("[A-Za-z0-9._-]{1,100}", name) or name in (".", ".."):
        raise InvalidValue(
            "the name of an experiment has 1 to 100 letters, digits, dots, dashes and underscores, and is not . or .."
        )
    return name


def seconds(text: str, name: str) -> float:
    """Convert a time such as 90, 30m or 2h to seconds."""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    try:
        return float(number) * unit
    except ValueError:
        raise InvalidValue(f"{name} {text!r} is not a time; write 90 (seconds), 30m, 2h or 1d") from None


def check_reward(policy: Policy, arm: str, reward: float) -> None:
    """Ask the policy whether it can learn from a reward; raise what it says if not."""
    with hold(policy) as state:
        try:
            inputs.reward(reward, state.rows, arm)
        except InvalidValue as error:
            low, high = state.rows.support
            if low <= reward <= high:
                raise
            raise InvalidValue(
                f"reward {reward:.17g} for arm {arm!r} is outside [{low:g}, {high:g}]; other rewards need "
                "the setting rewards: real"
            ) from error


def features_of(spec: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Turn features as JSON and TOML files have them into what `bt.Features.to_dict` returns.

    Each is a list of levels, a range such as [18, 90], or "bool"; a mapping with "features" is taken as it is.
    """
    if spec is None or "features" in spec:
        return spec
    return Features({name: _feature(name, value) for name, value in spec.items()}).to_dict()


def _feature(name: str, value: object) -> object:
    if value in ("bool", "boolean"):
        return bool
    if not isinstance(value, list):
        raise InvalidValue(f'feature {name!r}: give a list of levels, a range such as [18, 90], or "bool"')
    is_range = len(value) == 2 and all(type(end) in (int, float) for end in value)
    return tuple(value) if is_range else value


def parse_context(text: str) -> Mapping[str, object] | None:
    """Read features as the command line has them: device=phone|tablet|desktop,age=18..90,returning=bool.

    >>> parse_context("age=18..90,returning=bool")
    {'features': [{'name': 'age', 'range': [18, 90]}, {'name': 'returning', 'type': 'bool'}]}
    """
    spec: Json = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value:
            raise InvalidValue(f"context {part!r} must be like device=phone|tablet, age=18..90 or returning=bool")
        if name in spec:
            raise InvalidValue(f"context names {name!r} twice")
        low, dots, high = value.partition("..")
        if dots:
            try:
                spec[name] = [_number(low), _number(high)]
            except ValueError:
                raise InvalidValue(f"context {part!r}: a range is like 18..90") from None
        else:
            levels = [level.strip() for level in value.split("|")]
            if "" in levels:
                raise InvalidValue(f"context {part!r} has a level without a name")
            spec[name] = value if value == "bool" else levels
    return features_of(spec)


def work(n_arms: int, columns: int) -> float:
    """Return how much a decision takes among some arms, with contexts of some columns: for each arm, and for all."""
    return (n_arms + columns / 8) * columns**2


def _shown(value: object) -> str:
    """Write the value of a setting for a sentence."""
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
