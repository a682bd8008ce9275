"""Define what requests and answers contain. Types are strict: "1" is not 1, and true is not a number."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_ARMS = 10_000  # in one list of a request
MOST_K = 1_000
LONGEST_NAME = 200


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it contains a character that cannot be printed")
    return text


def _no_slash(text: str) -> str:
    if "/" in text:
        raise ValueError("it contains a slash")
    return text


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_printable)]
Id = Annotated[Name, AfterValidator(_no_slash)]
Arms = Annotated[list[Name], Field(max_length=MOST_ARMS)]
Paths = Annotated[dict[Name, Annotated[list[Name], Field(max_length=50)]], Field(max_length=MOST_ARMS)]


class Asked(BaseModel):
    """A request: unknown fields are refused, and no value is converted."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class DecisionAsked(Asked):
    """What to decide. All fields are optional."""

    context: Annotated[list[float] | None, Field(max_length=100_000)] = Field(
        None, description="What is known about this visitor, one number per dimension; needed by linear policies."
    )
    only: Arms | None = Field(None, description="Arms to choose from.")
    exclude: Arms | None = Field(None, description="Arms that must not be chosen; unknown ones are ignored.")
    k: Annotated[int, Field(ge=1, le=MOST_K)] | None = Field(None, description="How many different arms.")
    id: Id | None = Field(None, description="An id of your choice, which makes it safe to repeat the request.")

    def request(self) -> dict[str, Any]:
        """Return the fields that were given, without the id."""
        given = {"context": self.context, "only": self.only, "exclude": self.exclude, "k": self.k}
        return {what: value for what, value in given.items() if value is not None}


class RewardAsked(Asked):
    """The reward of a decision."""

    reward: float
    position: Annotated[int, Field(ge=0, lt=MOST_K)] = Field(0, description="The position in a slate, from 0.")
    arm: Name | None = Field(None, description="In shadow mode: the arm that was shown.")


class ArmsAsked(Asked):
    """Changes of the catalogue; if one of them is invalid, none is made."""

    add: Paths = Field(default_factory=dict, description="New arms and the clusters above them, coarse to fine.")
    move: Paths = Field(default_factory=dict, description="Arms and the clusters they go to.")
    remove: Arms = Field(default_factory=list)


class DecisionAnswer(BaseModel):
    """A decision. For a slate, ``arm``, ``path``, ``propensity`` and ``steps`` are those of the first arm."""

    id: str
    arm: str
    arms: list[str]
    path: list[str]
    propensity: float
    steps: list[float]
    at: str
    shadow: bool = False


class DecisionLooked(DecisionAnswer):
    """A decision and its rewards."""

    reward: float | None
    rewards: list[float | None] = []
    withdrawn: bool = False


class RewardAnswer(BaseModel):
    status: str = Field(json_schema_extra={"enum": ["applied", "duplicate", "late"]})


class WithdrawnAnswer(BaseModel):
    id: str
    status: str


class ArmsAnswer(BaseModel):
    added: int
    moved: int
    removed: int
    arms: int


class Node(BaseModel):
    path: list[str]
    plays: float
    reward: float
    mean: float
    interval: list[float] | None


class TreeAnswer(BaseModel):
    nodes: list[Node]


class TrafficAnswer(BaseModel):
    """Decisions by category over time: one count for each interval of ``seconds``."""

    start: str
    seconds: float
    categories: dict[str, list[int]]


class ErrorAnswer(BaseModel):
    error: str
