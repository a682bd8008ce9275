"""Fold the events of the log into the present state: the policy, the traffic, and the arms that were removed."""

from __future__ import annotations

import json
import struct
from typing import Any

from banditree.errors import BadFile, BanditreeError
from banditree.policy import Policy
from banditree.policy.saving import from_bytes
from banditree.service.events import ARMS, DECISION, DEFAULT, REWARD, Event
from banditree.service.settings import Settings
from banditree.service.traffic import Traffic
from banditree.tree import Tree

SIZE = struct.Struct("<Q")


class State:
    """The result of applying events in order. The same events give the same state, bit for bit.

    Rewards are learned one by one, because a batch may add numbers in another order, which changes the last digit.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n = 0  # the last event applied
        self.tree_version = 0  # the last event that changed the tree
        self.policy_version = 0  # the last event that the policy learned from
        self.swept = 0  # default rewards were given up to this event; see the engine
        self.left: set[str] = set()  # arms that were removed
        self.traffic = Traffic()
        self._policy: Policy | None = None
        self._category: dict[str, str] = {}

    @property
    def policy(self) -> Policy:
        if self._policy is None:
            raise BadFile("the log does not begin with a catalogue; it was not written by banditree serve")
        return self._policy

    @property
    def empty(self) -> bool:
        return self._policy is None

    def apply(self, event: Event) -> None:
        """Apply one event."""
        try:
            if event.kind == DECISION:
                assert event.arm is not None
                self.traffic.add(event.at, event.arm, self.category(event.arm))
            elif event.kind in (REWARD, DEFAULT):
                self._learn(event)
            elif event.kind == ARMS:
                self._change(event.body or {})
                self.tree_version = event.n
        except BanditreeError as error:
            raise BadFile(f"event {event.n} of the log does not fit {self.settings.policy}: {error}") from error
        self.n = event.n

    def category(self, arm: str) -> str:
        """Return the top cluster of an arm, by which traffic is counted, or the arm itself if it is in none."""
        found = self._category.get(arm)
        if found is None:
            found = str(self.policy.tree.path(arm)[0]) if arm in self.policy.tree else arm
            self._category[arm] = found
        return found

    def _learn(self, event: Event) -> None:
        if not event.learned or event.arm not in self.policy.tree:
            return
        context = None if self.policy.dim is None else (event.body or {}).get("context")
        if self.policy.dim is None or context is not None:
            self.policy.update(event.arm, event.value, context)
            self.policy_version = event.n

    def _change(self, body: dict[str, Any]) -> None:
        tree = changed(None if self._policy is None else self._policy.tree, body)
        if self._policy is None:
            self._policy = self.settings.build(tree)
        else:
            self._policy.retree(tree)
        self.left |= set(body.get("remove", ()))
        self.left -= set(body.get("add", ()))
        self._category.clear()

    # Snapshots

    def to_bytes(self) -> bytes:
        """Convert to bytes for a snapshot."""
        rest = {name: getattr(self, name) for name in ("n", "tree_version", "policy_version", "swept")}
        rest |= {"left": sorted(self.left), "traffic": self.traffic.to_dict()}
        text = json.dumps(rest, sort_keys=True).encode()
        return SIZE.pack(len(text)) + text + self.policy.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, settings: Settings) -> State:
        (size,) = SIZE.unpack_from(data)
        rest = json.loads(data[SIZE.size : SIZE.size + size])
        state = cls(settings)
        state.left, state.traffic = set(rest.pop("left")), Traffic.from_dict(rest.pop("traffic"))
        for name, value in rest.items():
            setattr(state, name, value)
        state._policy = from_bytes(data[SIZE.size + size :])
        return state


def changed(tree: Tree | None, body: dict[str, Any]) -> Tree:
    """Return the tree after a change: arms are added, moved and removed, in this order."""
    if tree is None:
        return Tree.from_paths([(*path, arm) for arm, path in body["add"].items()])
    if body.get("add"):
        tree = tree.add_arms(body["add"])
    if body.get("move"):
        tree = tree.move_arms(body["move"])
    if body.get("remove"):
        tree = tree.remove_arms(body["remove"])
    return tree
