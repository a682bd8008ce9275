"""Decisions made by clients: the policy that they need, and the record of their decisions."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.base.files import Json
from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.service import choosing
from banditree.service.commands import AboutDecision, Outcome, Refused, what_differs
from banditree.service.events import Cohort, Event
from banditree.service.lift import in_control
from banditree.service.schema import DecisionMade
from banditree.service.settings import Settings
from banditree.service.state import SETTING, State
from banditree.service.store import EventLog
from banditree.tree import Tree

BILLION = 10**9  # weights are billionths, whose sum is small enough for flagd
KEPT = 4  # earlier states
MAX_POLICIES = 8  # kept for questions about weights


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
        self.load = lru_cache(MAX_POLICIES)(from_bytes)  # the policy that was saved as bytes

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


# Weights


def chances(policy: Policy, settings: Settings, *, learns: bool, context: object) -> dict[str, int]:
    """Return the probability of each arm in billionths, whose sum is a billion, or that of a control policy's arms.

    A control policy that does not learn chooses one item, or any; ``policy`` then says only which arms there are.
    """
    arms = [str(arm) for arm in policy.tree.arms]
    if learns:
        return dict(zip(arms, quantise(policy.propensities(context)).tolist(), strict=True))
    if settings.control_item is not None and settings.control_item in policy.tree:
        return dict.fromkeys(arms, 0) | {settings.control_item: BILLION}
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


class Past:
    """What experiments were at their earlier events. Used by the engine's thread alone."""

    def __init__(self) -> None:
        self._known: deque[tuple[range, State]] = deque(maxlen=KEPT)  # the events between two changes, and the state

    def at(self, state: State, log: EventLog, n: int) -> State:
        """Return an experiment as it was at an event, without beliefs; of archived events, only the last is known."""
        if n >= state.set_at:
            return state
        for events, earlier in self._known:
            if n in events and earlier.name == state.name:
                return earlier
        earlier, since, until = State(state.name, state.settings), n, state.set_at
        for event in log.of_kinds(*SETTING, experiment=state.name):
            if event.n > n and not earlier.is_empty:
                until = event.n
                break
            earlier.apply([event])
            since = min(event.n, n)
        self._known.append((range(since, until), earlier))
        return earlier


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
            known = {"arms": body["arms"], "propensity": body["propensity"]} | body["request"]
            if told := what_differs(known, {"arms": arms, "propensity": made.propensity} | request):
                raise Refused(409, f"the id {self.id!r} was used for another decision: {told}")
            return Outcome(200, {"status": "duplicate"})
        was = self.past.at(state, log, made.event)
        tree = was.policy.tree
        self._check_arms(tree, arms)
        choosing.encode_context(state, made.context)
        body = {
            "request": request,
            "arms": arms,
            "path": list(tree.path(made.arm)),
            "propensity": made.propensity,
            "steps": made.steps or [made.propensity],
            "policy": made.event,
            "tree": was.tree_version,
        }
        body |= {"propensities": made.propensities} if made.propensities else {}
        body |= {} if made.propensity_overall is None else {"propensity_overall": made.propensity_overall}
        unknown = [arm for arm in made.only or () if arm not in tree]
        body |= {"unknown": unknown} if unknown else {}
        body |= {} if made.at is None else {"at": made.at}
        event = choosing.decided(state.name, self.id, at, self._cohort(was), body)
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

    def _cohort(self, was: State) -> str | None:
        """Return the cohort of the decision; raise if it is not that of its unit."""
        is_control, settings, event = self.made.group == Cohort.CONTROL, was.settings, self.made.event
        if settings.shadow:
            raise Refused(422, f"at event {event} the experiment was in shadow mode, in which the service decides")
        if was.is_paused:
            if not is_control:
                raise Refused(422, f"at event {event} the experiment was paused: everybody was in the control group")
            return Cohort.PAUSED
        if settings.control == 0:
            if is_control:
                raise Refused(422, f"at event {event} the experiment had no control group")
            return None
        unit = self.made.unit
        if unit is not None and in_control(was.name, self.salt, unit, settings.control) != is_control:
            raise Refused(422, f"the unit {unit!r} is not in the group {self.made.group!r}")
        return Cohort.CONTROL if is_control else Cohort.POLICY
