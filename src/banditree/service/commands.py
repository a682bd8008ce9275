"""Define the commands that requests become: each computes an outcome from the state and its decision's events.

A command changes nothing itself. The engine stores the events of its outcome, and then sends the answer.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from banditree.base.files import Json
from banditree.base.words import count
from banditree.errors import BanditreeError, InvalidValue
from banditree.service import choosing
from banditree.service.events import MAIN, Cohort, Event, Kind
from banditree.service.settings import REAL, Plan, Settings, check_reward
from banditree.service.state import State, change_tree, digest
from banditree.service.store import EventLog


@dataclass(frozen=True)
class Outcome:
    """The answer to a command, and the events to store before it is sent."""

    code: int
    answer: Json
    events: tuple[Event, ...] = ()


class Refused(Exception):
    """A request cannot be carried out; ``code`` and ``headers`` are those of the HTTP answer."""

    def __init__(self, code: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.code, self.headers = code, headers


def refusal(error: Exception) -> Refused:
    """Say how a request is answered after an error: one of banditree without a code means a value not allowed."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, BanditreeError):
        return Refused(getattr(error, "code", 422), str(error))
    return Refused(500, "the service failed to handle this request; its log on stderr has the details")


@dataclass(frozen=True)
class Command(ABC):
    """What a request asks of one experiment."""

    experiment: str = field(default=MAIN, kw_only=True)
    changes_all: ClassVar[bool] = False  # whether it must be stored alone, and folded before the next command runs
    said: ClassVar[str] = ""  # the name of its line on stderr, if it writes one

    @property
    def unit(self) -> str | None:
        """The unit for which it decides, if it does."""
        return None

    @property
    def size(self) -> int:
        """How many requests it counts as, by its cost."""
        return 1

    def ids(self, kept: str | None) -> tuple[str, ...]:
        """Return the ids of the decisions whose events `run` needs; ``kept`` is the one that its unit keeps."""
        return ()

    @abstractmethod
    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        """Compute the outcome from the state, the events of the decisions in `ids` and the time, or raise `Refused`."""


MAX_RATIO = 1e6  # of a reward to the largest before it; beyond that, something is wrong with it
MAX_SHOWN = 60  # characters of a value in a sentence


def what_differs(was: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Say what differs between two requests, "" if nothing does."""
    names = [name for name in dict.fromkeys([*was, *now]) if was.get(name) != now.get(name)]
    shown = (f"{name} was {_shown(was.get(name))} and is now {_shown(now.get(name))}" for name in names)
    return ", ".join(shown)


def _shown(value: object) -> str:
    text = "missing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


# Decisions


@dataclass(frozen=True)
class Decide(Command):
    """Choose an arm, or a slate. The same id and request again give the same answer."""

    id: str | None
    request: Json  # the fields that were given
    salt: str = ""

    @property
    def unit(self) -> str | None:
        return self.request.get("unit")

    @property
    def size(self) -> int:
        return int(self.request.get("k", 1))

    def ids(self, kept: str | None) -> tuple[str, ...]:
        id_ = self.id or kept
        return () if id_ is None else (id_,)

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        if history and self.id is not None:
            if told := what_differs((history[0].body or {})["request"], self.request):
                what = f"the id {self.id!r} was used for another request: {told}"
                raise Refused(409, f"{what}; choose a new one")
            return Outcome(200, choosing.answer(history[0]))
        counts = history and not state.voids.cover(history[0]) and not is_withdrawn(history)
        if counts and choosing.keeps(state, history[0], self.request, at):
            return Outcome(200, choosing.answer(history[0]))
        cohort, body = choosing.choose(state, self.request, self.salt)
        body |= {"policy": state.policy_version, "tree": state.tree_version}
        body |= {"shadow": True} if state.settings.shadow else {}
        event = choosing.decided(state.name, self.id, at, cohort, body)
        return Outcome(201, choosing.answer(event), (event,))


# What happens to decisions


@dataclass(frozen=True)
class AboutDecision(Command):
    """A command about one earlier decision."""

    id: str

    def ids(self, kept: str | None) -> tuple[str, ...]:
        return (self.id,)


@dataclass(frozen=True)
class GiveReward(AboutDecision):
    """Record the reward of a decision, and learn from it unless it is late."""

    reward: float
    position: int | None = None
    arm: str | None = None  # the arm that was shown, in shadow mode
    given_at: int | None = None  # when the client says that it came in

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        decision = _decision(history, self.id)
        body = decision.body or {}
        position, arm = self._earned_by(state, body)
        if is_withdrawn(history):
            raise Refused(409, f"the decision {self.id!r} was withdrawn; it cannot earn a reward")
        for event in history:
            if event.kind == Kind.REWARD and event.position == position:
                was, is_now = {"reward": event.value, "arm": event.arm}, {"reward": self.reward, "arm": arm}
                if told := what_differs(was, is_now):
                    raise Refused(409, f"the decision {self.id!r} already has another reward: {told}")
                return Outcome(200, {"status": "duplicate"})
        check_reward(state.policy, arm, self.reward)
        if 0 < state.account.largest * MAX_RATIO < abs(self.reward):
            raise Refused(
                422,
                f"reward {self.reward:g} for arm {arm!r} is more than a million times as large as all before it; is "
                "its unit right? One policy cannot learn from rewards that differ so much",
            )
        settings = state.settings
        is_late = settings.reward_window is not None and self._took(decision, at) > settings.reward_window * 1e6
        is_there, is_void = arm in state.policy.tree, state.voids.cover(decision)
        is_paused = state.is_paused and settings.default_reward is None  # else it matters when the window closes
        learned = is_there and not is_void and not is_paused and (not is_late or settings.learn_late)
        context = body["request"].get("context")  # of its decision, to learn from
        event = _about(state, decision, Kind.REWARD, at)._replace(
            position=position,
            arm=arm,
            value=self.reward,
            learned=learned,
            body=None if context is None else {"context": context},
        )
        exposure = Expose(self.id).run(state, history, at, log).events if settings.exposure and not is_late else ()
        return Outcome(200, {"status": "late" if is_late or is_void or not is_there else "applied"}, (*exposure, event))

    def _took(self, decision: Event, at: int) -> int:
        """Return the time from the decision to its reward: by the clock of the client if it made the decision too."""
        made_at = (decision.body or {}).get("at")
        return at - decision.at if made_at is None or self.given_at is None else self.given_at - int(made_at)

    def _earned_by(self, state: State, body: Json) -> tuple[int, str]:
        arms: list[str] = body["arms"]
        positions = f"the decision {self.id!r} has {count(len(arms), 'position')}, counted from 0"
        if self.position is None and len(arms) > 1:
            raise Refused(422, f'{positions}; say which one earned the reward: {{"position": ...}}')
        position = self.position or 0
        if position >= len(arms):
            raise Refused(422, f"position {position} does not exist: {positions}")
        if not body.get("shadow"):
            if self.arm not in (None, arms[position]):
                raise Refused(422, f"arm {self.arm!r} was not chosen, but {arms[position]!r}; leave arm out")
            return position, arms[position]
        if self.arm is None:
            raise Refused(422, 'this decision was made in shadow mode; say which arm was shown: {"arm": ...}')
        if self.arm not in state.policy.tree and self.arm not in state.left:
            raise Refused(422, f"there is no arm {self.arm!r}; add it with POST /v1/arms")
        return position, self.arm


@dataclass(frozen=True)
class Expose(AboutDecision):
    """Record that a decision was seen. A reward implies it."""

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        decision, window = _decision(history, self.id), state.settings.reward_window
        if not state.settings.exposure:
            raise Refused(409, "this experiment counts every decision; its setting exposure would count those seen")
        if is_withdrawn(history):
            raise Refused(409, f"the decision {self.id!r} was withdrawn: it was never shown")
        if any(event.kind == Kind.EXPOSURE for event in history):
            return Outcome(200, {"id": self.id, "status": "duplicate"})
        if window is not None and at - decision.at > window * 1e6:
            return Outcome(200, {"id": self.id, "status": "late"})
        event = _about(state, decision, Kind.EXPOSURE, at)._replace(value=decision.value)
        return Outcome(200, {"id": self.id, "status": "applied"}, (event,))


@dataclass(frozen=True)
class Withdraw(AboutDecision):
    """Record that a decision was never shown, so that it earns no default reward."""

    changes_all = True  # it must not meet a reward

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        decision = _decision(history, self.id)
        done = {"id": self.id, "status": "withdrawn"}
        if is_withdrawn(history):
            return Outcome(200, done)
        if any(event.kind in (Kind.REWARD, Kind.DEFAULT) for event in history):
            raise Refused(409, f"the decision {self.id!r} has earned a reward; it cannot be withdrawn")
        if any(event.kind == Kind.EXPOSURE for event in history):
            raise Refused(409, f"the decision {self.id!r} was seen; it cannot be withdrawn")
        if has_default(history, state.settings, at):
            raise Refused(409, f"the decision {self.id!r} has earned the default reward; it cannot be withdrawn")
        return Outcome(200, done, (_about(state, decision, Kind.WITHDRAWAL, at),))


# The whole experiment


@dataclass(frozen=True)
class ChangeArms(Command):
    """Add, move and remove arms; if one of the changes is invalid, none is made."""

    add: dict[str, list[str]]
    move: dict[str, list[str]]
    remove: list[str]
    changes_all, said = True, "arms changed"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        tree = state.policy.tree
        for arm, path in self.add.items():
            if arm in tree and tree.path(arm)[:-1] != tuple(path):
                place = " / ".join(map(str, tree.path(arm)[:-1])) or "the root"
                raise Refused(409, f"arm {arm!r} already exists, below {place}; to put it elsewhere, move it")
        add = {arm: path for arm, path in self.add.items() if arm not in tree}
        gone = {arm for arm in self.remove if arm in state.left and arm not in tree and arm not in self.add}
        remove = [arm for arm in dict.fromkeys(self.remove) if arm not in gone]
        changes = {"add": add, "move": self.move, "remove": remove}
        body = {what: value for what, value in changes.items() if value}
        after = state.tree_after(body)
        if after.n_arms > tree.n_arms:
            state.settings.check_size(after.n_arms)
        done = {"added": len(add), "moved": len(self.move), "removed": len(remove), "arms": after.n_arms}
        return Outcome(200, done, (Event(at, Kind.ARMS, body=body, experiment=state.name),) if after != tree else ())


@dataclass(frozen=True)
class Pause(Command):
    """Let the control policy decide for everybody and learn nothing, or go on."""

    paused: bool
    changes_all, said = True, "paused or resumed"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        event = Event(at, Kind.PAUSE if self.paused else Kind.RESUME, experiment=state.name)
        return Outcome(200, {"paused": self.paused}, () if state.is_paused == self.paused else (event,))


@dataclass(frozen=True)
class Void(Command):
    """Leave some decisions and their rewards out of everything that was learned."""

    what: Json  # ids, or unit, or from and to in microseconds
    changes_all, said = True, "voided"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        n = self._count(state, log)
        events = (Event(at, Kind.VOID, body=self.what, experiment=state.name),) if n else ()
        return Outcome(200, {"voided": n}, events)

    def _count(self, state: State, log: EventLog) -> int:
        """Count the decisions that are covered and were not voided before."""
        if "ids" in self.what:
            decisions = [events[0] for events in log.find(state.name, self.what["ids"]).values()]
            return sum(event.kind == Kind.DECISION and not state.voids.cover(event) for event in decisions)
        if "unit" in self.what:
            where, values = "unit = ?", [self.what["unit"]]
        else:
            where, values = "at BETWEEN ? AND ?", [self.what["from"], self.what["to"]]
        where, values = f"kind = '{Kind.DECISION}' AND experiment = ? AND {where}", [state.name, *values]
        voided: set[int] = set()
        for condition, more in state.voids.conditions():
            statement = f"SELECT n, at, id, unit FROM banditree_events WHERE {where} AND {condition}"
            for n, at, id_, unit in log.run(statement, [*values, *more]):
                if state.voids.cover(Event(at, Kind.DECISION, id_, n=n, unit=unit)):
                    voided.add(n)
        return log.count(where, values) - len(voided)


@dataclass(frozen=True)
class PutExperiment(Command):
    """Create an experiment; the same request again changes nothing."""

    settings: Settings
    arms: dict[str, list[str]]
    changes_all, said = True, "experiment created"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        described = {"name": self.experiment, "policy": self.settings.policy, "arms": len(self.arms)}
        if not state.is_empty:
            differences = state.settings.differences(self.settings)
            differences += [] if state.catalogue == digest(self.arms) else ["arms"]
            if differences:
                what = f"the experiment {self.experiment!r} exists, and this would change {', '.join(differences)}"
                raise Refused(409, f"{what}; change it with PATCH, and its arms with POST .../arms")
            return Outcome(200, described)
        self.settings.check_arms(self.arms)
        self.settings.build(change_tree(None, {"add": self.arms}))
        body = {"settings": self.settings.to_dict(), "add": self.arms}
        return Outcome(201, described, (Event(at, Kind.EXPERIMENT, body=body, experiment=self.experiment),))


@dataclass(frozen=True)
class ChangeSettings(Command):
    """Change some settings of an experiment; the log is folded again where the beliefs depend on them."""

    given: Json  # as `read_settings` takes them; None is the default
    changes_all, said = True, "settings changed"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        settings = state.settings.change(self.given)
        settings.check_arms(paths_of(state))
        settings.build(state.policy.tree)
        changed = state.settings.differences(settings)
        event = Event(at, Kind.SETTINGS, body={"settings": settings.to_dict()}, experiment=state.name)
        answer = {"name": state.name, "changed": changed, "settings": settings.to_dict()}
        return Outcome(200, answer, (event,) if changed else ())


@dataclass(frozen=True)
class DeleteExperiment(Command):
    """Delete an experiment: its events stay in the log, and its name is not used again."""

    changes_all, said = True, "experiment deleted"

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        event = Event(at, Kind.DELETION, experiment=state.name)
        return Outcome(200, {"name": state.name, "status": "deleted"}, (event,))


@dataclass(frozen=True)
class KeepTime(Command):
    """Note what time it is, because windows have closed and nothing else has happened."""

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        return Outcome(200, {}, (Event(at, Kind.TIME, experiment=state.name),))


# The start


def first_events(plan: Plan, state: State, at: int) -> list[Event]:
    """Return the events that bring the log in line with a plan: settings, catalogue, and past evidence."""
    events = []
    if body := _settings_change(plan, state):
        events.append(Event(at, Kind.SETTINGS, body=body, experiment=plan.name))
    if state.is_empty:
        plan.settings.check_arms(plan.arms)
        body = {"add": plan.arms, "source": plan.source}
        events.append(Event(at, Kind.ARMS, body=body, experiment=plan.name))
    elif state.catalogue != digest(plan.arms) and (body := _catalogue_changes(plan, state)):
        events.append(Event(at, Kind.ARMS, body=body, experiment=plan.name))
    if plan.evidence is not None and state.evidence != digest(plan.evidence):
        if state.evidence:
            raise InvalidValue(
                f"the experiment {plan.name!r} was started from other counts; leave out --plays or --log, whose "
                "counts are in the store already, or give another --store"
            )
        _check_evidence(plan, plan.evidence)
        body = plan.evidence | {"digest": digest(plan.evidence)}
        events.append(Event(at, Kind.EVIDENCE, body=body, experiment=plan.name))
    return events


def _check_evidence(plan: Plan, rows: Json) -> None:
    """Raise an error if the policy cannot start from these rows: an event with them would be left out by every fold."""
    policy = plan.settings.build(change_tree(None, {"add": plan.arms}))
    contexts = rows.get("contexts")
    if policy.dim is not None and contexts is None:
        raise InvalidValue(
            f"the policy {plan.settings.policy} learns from contexts, which past counts do not have; start from --log "
            "with --log-context, or choose a --policy without contexts, such as ATS"
        )
    contexts = None if policy.dim is None else contexts
    try:
        policy.update_many(rows["arms"], rows["rewards"], plays=rows.get("plays"), contexts=contexts)
    except InvalidValue as error:
        hint = "" if plan.settings.rewards == REAL else "; for amounts give --rewards real"
        raise InvalidValue(f"the experiment {plan.name!r} cannot start from what is known: {error}{hint}") from None


def _settings_change(plan: Plan, state: State) -> Json:
    """Compare a plan's settings with the store's; return the body of an event that makes them equal, {} if they are.

    Settings that are those of the last start say nothing new, even if some were changed through the service.
    """
    wanted = plan.settings.to_dict()
    body = {"settings": wanted, "is_start": True}
    if state.settings_version == 0:
        return body
    differences = state.settings.differences(plan.settings)
    if not differences or wanted == state.started_with:
        return {}
    if not plan.updates_settings:
        raise InvalidValue(
            f"the settings of the experiment {plan.name!r} differ from those in the store: {'; '.join(differences)}. "
            "Give --update-settings to change them, the settings of before, or another --store"
        )
    return body


def _catalogue_changes(plan: Plan, state: State) -> Json:
    """Compare a plan's catalogue with the store's; return the event body that makes them equal, {} if nothing is to do.

    A file that was not changed since it was last read says nothing new, even if arms were changed through the service.
    """
    stored = paths_of(state)
    add = {arm: path for arm, path in plan.arms.items() if arm not in stored}
    move = {arm: path for arm, path in plan.arms.items() if arm in stored and stored[arm] != path}
    remove = [arm for arm in stored if arm not in plan.arms]
    if not (add or move or remove) or plan.catalogue == "keep":
        return {}
    if plan.catalogue != "update":
        parts = [
            f"{count(len(arms), 'item')} {word} ({', '.join(map(repr, arms[:3]))}{', ...' if len(arms) > 3 else ''})"
            for word, arms in (("new", list(add)), ("moved", list(move)), ("gone", remove))
            if arms
        ]
        raise InvalidValue(
            f"{plan.source or 'the catalogue'} differs from the {len(stored):,} arms in the store: {'; '.join(parts)}. "
            "Give --update-catalogue to bring the changes in, --keep-catalogue to go on with the store's, or another "
            "--store"
        )
    changes = {"add": add, "move": move, "remove": remove}
    body: Json = {what: value for what, value in changes.items() if value}
    return body | {"source": plan.source, "catalogue": digest(plan.arms)}


def paths_of(state: State) -> dict[str, list[str]]:
    """Return the arms and the clusters above them."""
    return {str(path[-1]): [str(name) for name in path[:-1]] for path in state.policy.tree.paths()}


# Answers


def describe_decision(history: list[Event], id_: str, settings: Settings, at: int) -> Json:
    """Describe a decision and its rewards, as they are at a time."""
    decision = _decision(history, id_)
    fields = choosing.answer(decision)
    rewards = rewards_of(history, settings, at)
    fields["reward"] = rewards.get(0)
    if len(fields["arms"]) > 1:
        fields["rewards"] = [rewards.get(position) for position in range(len(fields["arms"]))]
    if is_withdrawn(history):
        fields["withdrawn"] = True
    if settings.exposure:
        fields["exposed"] = any(event.kind == Kind.EXPOSURE for event in history)
    return fields


def rewards_of(history: list[Event], settings: Settings, at: int) -> dict[int, float | None]:
    """Return the rewards of a decision by position; default ones where its window has closed without another."""
    rewards: dict[int, float | None] = {}
    if has_default(history, settings, at):
        rewards = dict.fromkeys(range(round(history[0].value or 1)), settings.default_reward)
    for kind in (Kind.DEFAULT, Kind.REWARD):
        rewards |= {event.position: event.value for event in history if event.kind == kind}
    return rewards


def has_default(history: list[Event], settings: Settings, at: int) -> bool:
    """Whether a decision has earned default rewards where nothing else came in, because its window has closed."""
    return earns_default(history[0].at, history[0].body or {}, {event.kind for event in history}, settings, at)


def earns_default(decided_at: int, body: Json, kinds: Container[str], settings: Settings, at: int) -> bool:
    """Whether a decision with this time and body has, to which events of these kinds happened."""
    if settings.default_reward is None or settings.reward_window is None or "shadow" in body:
        return False
    is_out = Kind.WITHDRAWAL in kinds or (settings.exposure and Kind.EXPOSURE not in kinds)
    return not is_out and decided_at + settings.reward_window * 1e6 < at


def is_withdrawn(history: list[Event]) -> bool:
    """Whether a decision was withdrawn, because it was never shown."""
    return any(event.kind == Kind.WITHDRAWAL for event in history)


def _decision(history: list[Event], id_: str) -> Event:
    if not history or history[0].kind != Kind.DECISION:
        raise Refused(404, f"there is no decision {id_!r}")
    return history[0]


def _about(state: State, decision: Event, kind: str, at: int) -> Event:
    """Make an event about a decision, of its unit and in its cohort, or in none that counts if it was voided."""
    cohort = Cohort.VOIDED if state.voids.cover(decision) else decision.cohort
    return Event(at, kind, decision.id, experiment=decision.experiment, unit=decision.unit, cohort=cohort)
