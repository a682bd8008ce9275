"""Define what requests and answers contain. Types are strict: "1" is not 1, and true is not a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from math import isfinite
from typing import Annotated, Literal, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails

from banditree.base.files import Json
from banditree.errors import InvalidValue
from banditree.service.events import from_iso
from banditree.service.lift import Lift
from banditree.service.settings import TIMES, Settings

Given = TypeVar("Given")
Model = TypeVar("Model")
MAX_ARMS = 10_000  # in one list of a request
MAX_K = 100
MAX_NAME = 200  # characters
MAX_ARM_NAME = 1_000  # characters; what a file of items may hold, a request can name
MAX_CONTEXT = 100_000
MAX_LIST = 500  # requests in one list
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it contains a character that cannot be printed")
    return text


def _no_slash(text: str) -> str:
    if "/" in text:
        raise ValueError("it contains a slash")
    return text


def storable(text: str) -> str:
    """Refuse text that a database cannot store."""
    if UNSTORABLE.search(text):
        raise ValueError("it contains a character that cannot be stored")
    return text


def _microseconds(text: object) -> int | None:
    if text is None:
        return None
    try:
        return from_iso(text if isinstance(text, str) else "")
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r:.60} is not an ISO time such as 2026-11-16T09:30:00Z") from None


def _context(value: object) -> object:
    """Name the feature that is wrong, before each form that a context may have is said to be another."""
    if isinstance(value, dict):
        for name, entry in value.items():
            if not isinstance(entry, str | int | float | None) or (isinstance(entry, float) and not isfinite(entry)):
                raise ValueError(f"feature {name!r:.60} is {entry!r:.60}; give text, a finite number, true or false")
    elif not isinstance(value, list | None):
        raise ValueError("give an object with features by name, or a list of numbers")
    return value


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(_printable)]
Id = Annotated[Name, AfterValidator(_no_slash)]
Arm = Annotated[str, Field(min_length=1, max_length=MAX_ARM_NAME), AfterValidator(storable)]
Arms = Annotated[list[Arm], Field(max_length=MAX_ARMS)]
Paths = Annotated[dict[Arm, Annotated[list[Arm], Field(max_length=50)]], Field(max_length=MAX_ARMS)]
Time = Annotated[int | None, BeforeValidator(_microseconds), WithJsonSchema({"type": ["string", "null"]})]
Vector = Annotated[list[float], Field(max_length=MAX_CONTEXT)]
Named = Annotated[dict[Name, str | int | float | bool | None], Field(max_length=1000)]


class RequestBody(BaseModel):
    """A request: unknown fields are refused, and no value is converted."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Asked(RequestBody):
    """What was asked of a decision."""

    context: Annotated[Vector | Named | None, BeforeValidator(_context)] = Field(
        None, description="What is known about this visitor: features by name, or one number per dimension."
    )
    only: Arms | None = Field(None, description="Arms to choose from; unknown ones are left out, and listed.")
    exclude: Arms | None = Field(None, description="Arms that must not be chosen; unknown ones are ignored.")
    k: Annotated[int, Field(ge=1, le=MAX_K)] | None = Field(None, description="How many different arms.")
    unit: Name | None = Field(None, description="Whom it is for, such as a visitor; always in the same group.")

    def request(self) -> Json:
        """Return the fields that were given, without the id."""
        given = {name: getattr(self, name) for name in Asked.model_fields}
        return {what: value for what, value in given.items() if value is not None}


class DecisionRequest(Asked):
    """What to decide. All fields are optional."""

    id: Id | None = Field(None, description="An id of your choice, which makes it safe to repeat the request.")


class RewardRequest(RequestBody):
    """The reward of a decision."""

    reward: float
    position: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="The position in a slate, from 0; may be left out where there is only one."
    )
    arm: Arm | None = Field(None, description="In shadow mode: the arm that was shown.")


class ListedReward(RewardRequest):
    """The reward of a decision, which it names."""

    id: Id


List = TypeAdapter(Annotated[list[object], Field(max_length=MAX_LIST)])  # each request in it is checked by itself


class DecisionMade(Asked):
    """A decision that a client has made itself, from the policy as it stood at an event."""

    id: Id
    arm: Arm
    propensity: Annotated[float, Field(gt=0, le=1)]
    group: Literal["policy", "control"]
    at: Time = Field(None, description="ISO time at which it was made.")
    event: Annotated[int, Field(ge=0)] = Field(description="The event that the policy stood at.")
    arms: Annotated[list[Arm], Field(min_length=1, max_length=MAX_K)] | None = None
    propensity_overall: Annotated[float, Field(ge=0, le=1)] | None = None
    propensities: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(max_length=MAX_K)] | None = None
    steps: list[Annotated[float, Field(ge=0, le=1)]] | None = None


class RewardGiven(ListedReward):
    """A reward that a client reports in a batch."""

    at: Time = Field(None, description="ISO time at which it was given.")


class Exposure(RequestBody):
    """A decision that somebody saw."""

    id: Id


class BatchRequest(RequestBody):
    """Decisions that a client has made itself, and rewards. Each row is checked by itself."""

    decisions: list[object] = Field(
        default_factory=list, description="Rows with id, arm, propensity, group, at, event."
    )
    exposures: list[object] = Field(default_factory=list, description="Rows with id: of decisions that were seen.")
    rewards: list[object] = Field(default_factory=list, description="Rows with id, reward, position, at.")


class ArmsRequest(RequestBody):
    """Changes of the catalogue; if one of them is invalid, none is made."""

    add: Paths = Field(default_factory=dict, description="New arms and the clusters above them, coarse to fine.")
    move: Paths = Field(default_factory=dict, description="Arms and the clusters they go to.")
    remove: Arms = Field(default_factory=list)


class VoidRequest(RequestBody):
    """Which decisions no longer count: those in a stretch of time, or with certain ids, or of a unit."""

    from_: Annotated[Time, Field(alias="from", description="ISO time of the first decision.")] = None
    to: Annotated[Time, Field(description="ISO time of the last decision.")] = None
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_ARMS)] | None = None
    unit: Name | None = None

    @model_validator(mode="after")
    def _one_way(self) -> VoidRequest:
        ways = [self.from_ is not None or self.to is not None, self.ids is not None, self.unit is not None]
        if sum(ways) != 1 or (self.from_ is None) != (self.to is None):
            raise ValueError('give {"from": ..., "to": ...}, or {"ids": [...]}, or {"unit": ...}')
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise ValueError("from is after to")
        return self

    def what(self) -> Json:
        """Return the decisions to void, with times in microseconds."""
        if self.ids is not None:
            return {"ids": sorted(set(self.ids))}
        return {"unit": self.unit} if self.unit is not None else {"from": self.from_, "to": self.to}


class ContextRequest(RequestBody):
    context: Json | str | None = Field(
        None, description='Features: {"device": ["phone", "desktop"], "age": [18, 90], "returning": "bool"}.'
    )


class ArmsOfExperiment(ContextRequest):
    """A new experiment."""

    arms: Paths = Field(description="The arms and the clusters above them, coarse to fine.", min_length=1)


def _settings() -> Json:
    """Describe the settings as `Settings` does; null is the default, and times may be text, such as 30m."""
    types = get_type_hints(Settings)
    types |= {name: types[name] | str for name in TIMES}
    described = [part for part in fields(Settings) if part.metadata]
    return {
        part.name: (types[part.name] | None, Field(part.default, description=part.metadata["help"]))
        for part in described
    }


SettingsRequest = create_model("SettingsRequest", __base__=ContextRequest, **_settings())
ExperimentRequest = create_model("ExperimentRequest", __base__=ArmsOfExperiment, **_settings())


class Visitor(BaseModel):
    """Whom to decide for; further fields are the context by name."""

    model_config = ConfigDict(strict=True, extra="allow")

    targetingKey: Name  # noqa: N815


class FlagRequest(BaseModel):
    """What OpenFeature's protocol asks."""

    context: Visitor


class DecisionAnswer(BaseModel):
    """A decision. For a slate, ``arm``, ``path``, ``propensity`` and ``steps`` are those of the first arm."""

    id: str
    arm: str
    arms: list[str]
    path: list[str]
    propensity: float
    steps: list[float]
    group: Literal["policy", "control"]
    experiment: str
    at: str
    propensity_overall: float | None = Field(None, description="With a control group: over both groups.")
    propensities: list[float] = Field([], description="For a slate: of each position, given those before it.")
    unknown: list[str] = Field([], description="Arms of `only` that do not exist.")
    shadow: bool = False


class DecisionLooked(DecisionAnswer):
    """A decision and its rewards."""

    reward: float | None
    rewards: list[float | None] = []
    withdrawn: bool = False
    exposed: bool | None = Field(None, description="With the setting exposure: whether somebody saw it.")


class RewardAnswer(BaseModel):
    status: Literal["applied", "duplicate", "late"]


class RewardListedAnswer(RewardAnswer):
    id: str


class NotDone(BaseModel):
    """Why one request of a list was not carried out, and the status that it would have had by itself."""

    id: str | None = None
    error: str
    status: int


class BatchAnswer(BaseModel):
    accepted: int
    duplicate: int
    refused: list[NotDone]


class WeightsAnswer(BaseModel):
    """How likely each arm is to be chosen, in billionths, and the event that the policy stood at."""

    weights: dict[str, float]
    event: int


class FlagdAnswer(BaseModel):
    """The same weights as the definition of a flag."""

    flags: dict[str, Json]


class WithdrawnAnswer(BaseModel):
    id: str
    status: str


class ArmsAnswer(BaseModel):
    added: int
    moved: int
    removed: int
    arms: int


class ArmsListed(BaseModel):
    """The arms and the clusters above them."""

    arms: dict[str, list[str]]


class PausedAnswer(BaseModel):
    paused: bool


class VoidAnswer(BaseModel):
    voided: int


class ExperimentAnswer(BaseModel):
    name: str
    policy: str
    arms: int


class ExperimentListed(ExperimentAnswer):
    decisions: int
    paused: bool


class ExperimentLooked(ExperimentListed):
    """An experiment, with the settings that differ from the defaults."""

    settings: Json


class SettingsAnswer(BaseModel):
    """What was changed, such as ``control from 0.2 to 0.5``, and the settings that there are now."""

    name: str
    changed: list[str]
    settings: Json


class DeletedAnswer(BaseModel):
    name: str
    status: Literal["deleted"]


class ExperimentsAnswer(BaseModel):
    experiments: list[ExperimentListed]


class Node(BaseModel):
    """A node. ``mean`` and ``interval`` are what the policy believes: of a cluster, about a typical arm of it."""

    path: list[str]
    plays: float
    reward: float = Field(description="The sum of rewards learned.")
    mean: float
    interval: list[float] | None
    children: int


class TreeAnswer(BaseModel):
    nodes: list[Node]
    left_out: int = Field(description="Nodes that are not listed, because there are too many; ask for them by `under`.")


class TrafficAnswer(BaseModel):
    """Decisions by category over time: one count for each interval of ``seconds``; and each group's."""

    start: str
    seconds: float
    categories: dict[str, list[int]]
    groups: dict[str, dict[str, list[float]]]
    lift: list[Json | None]


class GroupAnswer(BaseModel):
    decisions: int
    units: int
    reward: float | None = Field(description="Reward per decision.")


class ReportAnswer(BaseModel):
    """What the experiment is worth, and what is left to gain."""

    experiment: str
    policy: str
    paused: bool
    settings: Json
    groups: dict[str, GroupAnswer]
    lift: Lift | None
    best: list[Json] | None
    remaining: dict[str, float] | None
    done: bool
    sentences: list[str]


class ErrorAnswer(BaseModel):
    error: str


class FlagAnswer(BaseModel):
    """An experiment as a flag of OpenFeature; `metadata.decision` is the id to report the reward for."""

    key: str
    reason: str
    variant: str
    value: str
    metadata: Json


class FlagsAnswer(BaseModel):
    flags: list[Json]


class FlagError(BaseModel):
    """What OpenFeature's protocol answers instead of a flag."""

    key: str = ""
    errorCode: str  # noqa: N815
    errorDetails: str  # noqa: N815


class Misread(InvalidValue):
    """A request is not what its model describes; ``code`` is the HTTP status to answer with."""

    def __init__(self, error: ValidationError) -> None:
        self.errors = error.errors(include_url=False)
        self.code = 400 if self.errors[0]["type"] == "json_invalid" else 422
        super().__init__(_describe(self.errors))


def read(validate: Callable[[Given], Model], given: Given) -> Model:
    """Read something by the function that validates it."""
    try:
        return validate(given)
    except ValidationError as error:
        raise Misread(error) from None


def _describe(errors: Sequence[ErrorDetails]) -> str:
    """Say in one sentence what is wrong with a request."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error']}"
    place = ".".join(str(part) for part in _place(first)) or "the body"
    others = len({_place(error) for error in errors}) - 1
    more = f"; and {others} more" if others else ""
    is_other = first["type"] == "model_type"  # whose words name a class of ours
    what = "input should be an object" if is_other else first["msg"].removeprefix("Value error, ")
    return f"{place[:200]}: {what[:1].lower()}{what[1:]}{more}"


def _place(error: ErrorDetails) -> tuple[int | str, ...]:
    """Return where an error is, without the names of types among which a value may choose."""
    kinds = ("query", "float", "int", "str", "bool")
    return tuple(part for part in error["loc"] if part not in kinds and "[" not in str(part))
