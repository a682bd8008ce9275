"""Decisions made by clients: the policy that they need, and the record of their decisions."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.service import choosing
from banditree.service.commands import AboutDecision, Outcome, Refused, what_differs
from banditree.service.events import Cohort, Event, Json, Kind
from banditree.service.lift import in_control
from banditree.service.schema import DecisionMade
from banditree.service.settings import ITEM, Settings
from banditree.service.state import State, change_tree, tree_of_fold
from banditree.service.store import EventLog
from banditree.tree import Tree

BILLION = 10**9  # weights are billionths, whose sum is small enough for flagd
TREES = (Kind.ARMS, Kind.EXPERIMENT, Kind.FOLD)  # events that change the tree
CHANGES = (*TREES, Kind.SETTINGS, Kind.PAUSE, Kind.RESUME)
KEPT = 4  # earlier trees


# What a client needs


class Published(NamedTuple):
    """A policy and what else decisions depend on, as they are after an event."""

    event: int
    data: bytes  # of the policy
    about: str  # settings, salt, pause and versions, as JSON
    tag: str  # of data and about


class Shelf:
    """The policies of the experiments as bytes, made again only when they have changed."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[object, Published]] = {}
        self._loaded: dict[str, tuple[bytes, Policy]] = {}

    def take(self, state: State, salt: str, group: str = Cohort.POLICY) -> Published:
        """Return how the policy of a group stands. Nothing may change the state meanwhile."""
        policy = state.policy if group == Cohort.POLICY else state.control
        if policy is None:
            raise Refused(404, f"the control policy {state.settings.control_policy!r} does not learn; there is none")
        version: object = (state.version, state.settings_version, state.is_paused)
        if group != Cohort.POLICY:
            version = state.changed_at
        known = self._kept.get((state.name, group))
        if known is not None and known[0] == version:
            return known[1]._replace(event=state.changed_at)
        about = json.dumps(
            {
                "settings": state.settings.to_dict(),
                "salt": salt,
                "paused": state.is_paused,
                "policy": state.policy_version,
                "tree": state.tree_version,
            }
        )
        data = policy.to_bytes()
        tag = f'"{hashlib.sha256(data + about.encode()).hexdigest()[:32]}"'
        standing = Published(state.changed_at, data, about, tag)
        self._kept[state.name, group] = version, standing
        return standing

    def load(self, name: str, data: bytes) -> Policy:
        """Return the policy that was saved as bytes."""
        known = self._loaded.get(name)
        if known is None or known[0] != data:
            known = self._loaded[name] = data, from_bytes(data)
        return known[1]


# Weights


def chances(policy: Policy, settings: Settings, *, learns: bool, context: object) -> dict[str, int]:
    """Return the probability of each arm in billionths, whose sum is a billion, or that of a control policy's arms.

    A control policy that does not learn chooses one item, or any; ``policy`` then says only which arms there are.
    """
    arms = [str(arm) for arm in policy.tree.arms]
    if learns:
        return dict(zip(arms, quantise(policy.propensities(context)).tolist(), strict=True))
    item = settings.control_policy.removeprefix(ITEM)
    if item != settings.control_policy and item in policy.tree:
        return dict.fromkeys(arms, 0) | {item: BILLION}
    return dict(zip(arms, quantise(np.full(len(arms), 1 / len(arms))).tolist(), strict=True))


def quantise(chances: Floats) -> NDArray[np.int64]:
    """Round probabilities to billionths whose sum is a billion, by largest remainders.

    >>> quantise(np.array([1 / 3, 1 / 3, 1 / 3])).tolist()
    [333333334, 333333333, 333333333]
    """
    exact = chances / chances.sum() * BILLION
    weights: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    left = BILLION - int(weights.sum())
    weights[np.argsort(weights - exact, kind="stable")[:left]] += 1
    return weights


def as_flag(experiment: str, weights: Mapping[str, int], event: int) -> Json:
    """Write weights as the definition of a flag, which flagd evaluates by a hash of the flag and the targeting key."""
    shown = {arm: weight for arm, weight in weights.items() if weight}
    flag = {
        "state": "ENABLED",
        "variants": {arm: arm for arm in shown},
        "defaultVariant": max(shown, key=lambda arm: shown[arm]),
        "targeting": {"fractional": [[arm, weight] for arm, weight in shown.items()]},
        "metadata": {"event": event},
    }
    return {"$schema": "https://flagd.dev/schema/v0/flags.json", "flags": {experiment: flag}}


# The record


class Change(NamedTuple):
    """An event that changed more than the beliefs."""

    n: int
    kind: str
    settings: Settings | None


class Facts(NamedTuple):
    """The state that decisions depended on at an event, besides beliefs."""

    tree: Tree
    tree_version: int
    settings: Settings
    is_paused: bool


class Past:
    """What experiments were at their earlier events. Used by the engine's thread alone."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}
        self._read: dict[str, int] = {}  # the event up to which the changes of an experiment are known
        self._trees: dict[tuple[str, int], Tree] = {}

    def at(self, state: State, log: EventLog, n: int) -> Facts:
        """Return the state of an experiment at an event; events that are not folded yet count as the last one."""
        if state.changed_at > self._read.get(state.name, -1) < n:
            self._learn(state, log)
        before = [change for change in self._changes.get(state.name, []) if change.n <= n]
        later = self._changes.get(state.name, [])[len(before) :]
        settings = next((change.settings for change in reversed(before) if change.settings), state.settings)
        pauses = [change.kind for change in before if change.kind in (Kind.PAUSE, Kind.RESUME)]
        is_paused = pauses[-1] == Kind.PAUSE if pauses else state.is_paused and not later
        if not any(change.kind in TREES for change in later):
            return Facts(state.policy.tree, state.tree_version, settings, is_paused)
        version = max((change.n for change in before if change.kind in TREES), default=0)
        return Facts(self._tree(state.name, log, version), version, settings, is_paused)

    def _learn(self, state: State, log: EventLog) -> None:
        """Read the changes since the last time."""
        kinds = ", ".join("?" * len(CHANGES))
        where = f"experiment = ? AND id IS NULL AND kind IN ({kinds}) AND n > ? AND n <= ? ORDER BY n"
        values = (state.name, *CHANGES, self._read.get(state.name, 0), state.changed_at)
        known = self._changes.setdefault(state.name, [])
        for n, kind, text in log.run(f"SELECT n, kind, body FROM banditree_events WHERE {where}", values):
            body = json.loads(text) if text else {}
            known.append(Change(int(n), kind, Settings(**body["settings"]) if "settings" in body else None))
        self._read[state.name] = state.changed_at

    def _tree(self, name: str, log: EventLog, version: int) -> Tree:
        """Return the tree after an event that changed it; of archived ones only the last is known."""
        tree = self._trees.get((name, version))
        if tree is None:
            for event in log.of_kinds(*TREES):
                if event.experiment == name and (event.n <= version or tree is None):
                    body = event.body or {}
                    is_fold = event.kind == Kind.FOLD
                    tree = tree_of_fold(base64.b64decode(body["state"])) if is_fold else change_tree(tree, body)
            assert tree is not None
            while len(self._trees) >= KEPT:
                del self._trees[next(iter(self._trees))]
            self._trees[name, version] = tree
        return tree


@dataclass(frozen=True)
class RecordDecision(AboutDecision):
    """Record a decision that a client has made itself, if it agrees with the experiment's state at its event."""

    made: DecisionMade
    salt: str
    past: Past

    @property
    def unit(self) -> str | None:
        return self.made.unit

    def run(self, state: State, history: list[Event], at: int, log: EventLog) -> Outcome:
        made, request = self.made, self.made.request()
        arms = made.arms or [made.arm]
        if history:
            body = history[0].body or {}
            was = {"arms": body["arms"], "propensity": body["propensity"]} | body["request"]
            if told := what_differs(was, {"arms": arms, "propensity": made.propensity} | request):
                raise Refused(409, f"the id {self.id!r} was used for another decision: {told}")
            return Outcome(200, {"status": "duplicate"})
        facts = self.past.at(state, log, made.event)
        self._check_arms(facts.tree, arms)
        choosing.encode_context(state, made.context)
        body = {
            "request": request,
            "arms": arms,
            "path": list(facts.tree.path(made.arm)),
            "propensity": made.propensity,
            "steps": made.steps or [made.propensity],
            "policy": made.event,
            "tree": facts.tree_version,
        }
        body |= {"propensities": made.propensities} if made.propensities else {}
        body |= {} if made.propensity_overall is None else {"propensity_overall": made.propensity_overall}
        unknown = [arm for arm in made.only or () if arm not in facts.tree]
        body |= {"unknown": unknown} if unknown else {}
        body |= {} if made.at is None else {"at": made.at}
        event = Event(
            at,
            Kind.DECISION,
            self.id,
            arm=made.arm,
            value=float(len(arms)) if len(arms) > 1 else None,
            body=body,
            experiment=state.name,
            unit=made.unit,
            cohort=self._cohort(state.name, facts),
        )
        return Outcome(201, {"status": "accepted"}, (event,))

    def _check_arms(self, tree: Tree, arms: Sequence[str]) -> None:
        made = self.made
        for arm in arms:
            if arm not in tree:
                raise Refused(422, f"there was no arm {arm!r} at event {made.event}")
            if (made.only and arm not in made.only) or arm in (made.exclude or ()):
                raise Refused(422, f"arm {arm!r} is not among those that were allowed")
        most = made.k or 1
        least = most if all(arm in tree for arm in made.only or ()) else 1  # what is unknown fills no slate
        if arms[0] != made.arm or len(set(arms)) < len(arms) or not least <= len(arms) <= most:
            raise Refused(422, "arms must be k different ones, of which arm is the first")
        if len(made.propensities or ()) != (len(arms) if len(arms) > 1 else 0):
            raise Refused(422, "propensities must have one probability for each position of a slate")

    def _cohort(self, name: str, facts: Facts) -> str | None:
        """Return the cohort of the decision; raise if it is not that of its unit."""
        is_control, settings, event = self.made.group == Cohort.CONTROL, facts.settings, self.made.event
        if settings.shadow:
            raise Refused(422, f"at event {event} the experiment was in shadow mode, in which the service decides")
        if facts.is_paused:
            if not is_control:
                raise Refused(422, f"at event {event} the experiment was paused: everybody was in the control group")
            return Cohort.PAUSED
        if settings.control == 0:
            if is_control:
                raise Refused(422, f"at event {event} the experiment had no control group")
            return None
        unit = self.made.unit
        if unit is not None and in_control(name, self.salt, unit, settings.control) != is_control:
            raise Refused(422, f"the unit {unit!r} is not in the group {self.made.group!r}")
        return Cohort.CONTROL if is_control else Cohort.POLICY
