"""Define the commands that requests become: each computes an outcome from the state and its decision's events.

A command changes nothing itself. The engine stores the events of its outcome, and then sends the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from banditree.errors import BanditreeError
from banditree.report.words import count
from banditree.service import deciding
from banditree.service.events import ARMS, DECISION, DEFAULT, REWARD, WITHDRAWAL, Event, iso, new_id
from banditree.service.state import State, changed


@dataclass(frozen=True)
class Outcome:
    """The answer to a command, and the events to store before it is sent."""

    code: int
    answer: dict[str, Any]
    events: tuple[Event, ...] = ()


class Refused(Exception):
    """A request cannot be carried out; ``code`` is the HTTP status to answer with."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Decide:
    """Choose an arm, or a slate. The same id and request again give the same answer."""

    id: str | None
    request: dict[str, Any]  # the fields that were given

    @property
    def ids(self) -> tuple[str, ...]:
        return () if self.id is None else (self.id,)

    def run(self, state: State, known: list[Event], at: int) -> Outcome:
        if known:
            if (known[0].body or {})["request"] != self.request:
                raise Refused(409, f"the id {self.id!r} was used for another request; choose a new one")
            return Outcome(200, answer(known[0]))
        try:
            body = deciding.decide(state, self.request)
        except BanditreeError as error:
            raise Refused(422, str(error)) from None
        event = Event(at, DECISION, self.id or new_id(at), arm=body["arms"][0], body=body)
        return Outcome(201, answer(event), (event,))


@dataclass(frozen=True)
class AboutDecision:
    """A command about one earlier decision."""

    id: str

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id,)


@dataclass(frozen=True)
class GiveReward(AboutDecision):
    """Record the reward of a decision, and learn from it unless it is late."""

    reward: float
    position: int = 0
    arm: str | None = None  # the arm that was shown, in shadow mode

    def run(self, state: State, known: list[Event], at: int) -> Outcome:
        decision = _decision(known, self.id)
        body = decision.body or {}
        arm = self._earned_by(state, body)
        if any(event.kind == WITHDRAWAL for event in known):
            raise Refused(409, f"the decision {self.id!r} was withdrawn; it cannot earn a reward")
        for event in known:
            if event.kind == REWARD and event.position == self.position:
                if (event.value, event.arm) != (self.reward, arm):
                    raise Refused(409, f"the decision {self.id!r} already has another reward: {event.value:.17g}")
                return Outcome(200, {"status": "duplicate"})
        try:
            deciding.check_reward(state.policy, arm, self.reward)
        except BanditreeError as error:
            raise Refused(422, str(error)) from None
        late = any(event.kind == DEFAULT and event.position == self.position for event in known)
        window = state.settings.reward_window
        late = late or (window is not None and at - decision.at > window * 1e6)
        there = arm in state.policy.tree
        learned = there and (not late or state.settings.learn_late)
        event = Event(at, REWARD, self.id, self.position, arm, self.reward, learned, _context(body))
        first = EarnDefaults(self.id).run(state, known, at).events if late else ()
        return Outcome(200, {"status": "late" if late or not there else "applied"}, (*first, event))

    def _earned_by(self, state: State, body: dict[str, Any]) -> str:
        arms: list[str] = body["arms"]
        if self.position >= len(arms):
            many = f"the decision {self.id!r} has {count(len(arms), 'position')}, counted from 0"
            raise Refused(422, f"position {self.position} does not exist: {many}")
        if not body.get("shadow"):
            if self.arm not in (None, arms[self.position]):
                raise Refused(422, f"arm {self.arm!r} was not chosen, but {arms[self.position]!r}; leave arm out")
            return arms[self.position]
        if self.arm is None:
            raise Refused(422, 'this decision was made in shadow mode; say which arm was shown: {"arm": ...}')
        if self.arm not in state.policy.tree and self.arm not in state.left:
            raise Refused(422, f"there is no arm {self.arm!r}; add it with POST /v1/arms")
        return self.arm


@dataclass(frozen=True)
class Withdraw(AboutDecision):
    """Record that a decision was never shown, so that it earns no default reward."""

    def run(self, state: State, known: list[Event], at: int) -> Outcome:
        _decision(known, self.id)
        done = {"id": self.id, "status": "withdrawn"}
        if any(event.kind == WITHDRAWAL for event in known):
            return Outcome(200, done)
        if any(event.kind in (REWARD, DEFAULT) for event in known):
            raise Refused(409, f"the decision {self.id!r} has earned a reward; it cannot be withdrawn")
        return Outcome(200, done, (Event(at, WITHDRAWAL, self.id),))


@dataclass(frozen=True)
class EarnDefaults(AboutDecision):
    """Give a decision whose reward window has passed its default reward, at each position without a reward."""

    def run(self, state: State, known: list[Event], at: int) -> Outcome:
        body = known[0].body or {}
        value = state.settings.default_reward
        if value is None or body.get("shadow") or any(event.kind == WITHDRAWAL for event in known):
            return Outcome(200, {})
        has = {event.position for event in known if event.kind in (REWARD, DEFAULT)}
        events = (
            Event(at, DEFAULT, self.id, position, arm, value, arm in state.policy.tree, _context(body))
            for position, arm in enumerate(body["arms"])
            if position not in has
        )
        return Outcome(200, {}, tuple(events))


@dataclass(frozen=True)
class ChangeArms:
    """Add, move and remove arms; if one of the changes is invalid, none is made."""

    add: dict[str, list[str]] = field(default_factory=dict)
    move: dict[str, list[str]] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    ids: ClassVar[tuple[str, ...]] = ()

    def run(self, state: State, known: list[Event], at: int) -> Outcome:
        tree = state.policy.tree
        for arm, path in self.add.items():
            if arm in tree and tree.path(arm)[:-1] != tuple(path):
                there = " / ".join(map(str, tree.path(arm)[:-1])) or "the root"
                raise Refused(409, f"arm {arm!r} already exists, below {there}; to put it elsewhere, move it")
        gone = {arm for arm in self.remove if arm in state.left and arm not in tree and arm not in self.add}
        body: dict[str, Any] = {
            "add": {arm: path for arm, path in self.add.items() if arm not in tree},
            "move": self.move,
            "remove": [arm for arm in dict.fromkeys(self.remove) if arm not in gone],
        }
        body = {what: value for what, value in body.items() if value}
        try:
            after = changed(tree, body)
        except BanditreeError as error:
            raise Refused(422, str(error)) from None
        done = {
            f"{what}{'d' if what[-1] == 'e' else 'ed'}": len(body.get(what, ())) for what in ("add", "move", "remove")
        }
        events = (Event(at, ARMS, body=body),) if after != tree else ()
        return Outcome(200, done | {"arms": after.n_arms}, events)


Command = Decide | GiveReward | Withdraw | EarnDefaults | ChangeArms


def answer(decision: Event) -> dict[str, Any]:
    """Make the answer to a decision, which is the same whenever the request is repeated."""
    body = decision.body or {}
    found = {"id": decision.id, "arm": decision.arm}
    found |= {key: body[key] for key in ("arms", "path", "propensity", "steps")}
    found["at"] = iso(decision.at)
    return found | ({"shadow": True} if body.get("shadow") else {})


def looked_up(known: list[Event], id_: str) -> dict[str, Any]:
    """Describe a decision and its rewards."""
    decision = _decision(known, id_)
    found = answer(decision)
    rewards = earned(known)
    found["reward"] = rewards.get(0)
    if len(found["arms"]) > 1:
        found["rewards"] = [rewards.get(position) for position in range(len(found["arms"]))]
    if any(event.kind == WITHDRAWAL for event in known):
        found["withdrawn"] = True
    return found


def earned(known: list[Event]) -> dict[int, float | None]:
    """Return the rewards of a decision by position; a given reward replaces a default one."""
    ordered = sorted((event for event in known if event.kind in (DEFAULT, REWARD)), key=lambda e: e.kind == REWARD)
    return {event.position: event.value for event in ordered}


def _decision(known: list[Event], id_: str) -> Event:
    if not known:
        raise Refused(404, f"there is no decision {id_!r}")
    return known[0]


def _context(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the body of a reward event: the context of its decision, if there is one."""
    context = body["request"].get("context")
    return None if context is None else {"context": context}
