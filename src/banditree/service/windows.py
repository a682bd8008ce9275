"""Decisions whose reward windows are open, and what they have earned so far."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from banditree.service.events import Event, Kind

SAVED = ("at", "cohort", "unit", "arms", "context", "is_exposed")  # of `Open`, beside the rewards
GRACE = 5_000_000  # microseconds that a window stays open, so that rewards given in time and just stored still count


@dataclass
class Open:
    """A decision whose window is open."""

    at: int
    cohort: str | None
    unit: str | None
    arms: list[str]  # by position
    context: Any = None
    is_exposed: bool = False
    rewards: dict[int, tuple[str, float, bool]] = field(default_factory=dict)  # position -> arm, value, is it learned

    def outcomes(self, default: float | None) -> Iterator[tuple[str, float, bool]]:
        """Yield arm, reward and whether it is learned, for each position that has a reward, or a default one."""
        for position, arm in enumerate(self.arms):
            if position in self.rewards:
                yield self.rewards[position]
            elif default is not None:
                yield arm, default, True


class Windows:
    """The open windows of one experiment. They close by the times of its events, so that every replica folds the same.

    A window closes a little late, so that the order in which events of the same moment are stored changes nothing.
    """

    def __init__(self, window: float, *, only_exposed: bool = False) -> None:
        self.window, self.only_exposed = round(window * 1e6), only_exposed
        self._grace = min(self.window, GRACE)
        self._heap: list[tuple[int, str]] = []  # times and ids of decisions; a withdrawn one stays until its time
        self._open: dict[str, Open] = {}

    def add(self, event: Event) -> bool:
        """Take in a decision, or what happens to one; returns whether its window is open."""
        assert event.id is not None
        if event.kind == Kind.DECISION:
            body = event.body or {}
            arms = body.get("arms") or [event.arm] * round(event.value or 1)
            context = body["request"].get("context") if "request" in body else None
            heapq.heappush(self._heap, (event.at, event.id))
            is_shadow = body.get("shadow", False)
            self._open[event.id] = Open(event.at, event.cohort, event.unit, [] if is_shadow else arms, context)
            return True
        decision = self._open.get(event.id)
        if decision is None:
            return False
        if event.kind == Kind.WITHDRAWAL:
            del self._open[event.id]
        elif event.kind == Kind.EXPOSURE:
            decision.is_exposed = True
        elif event.learned or event.at <= decision.at + self.window:
            if not decision.arms:  # in shadow mode the reward says what was shown
                decision.arms = [event.arm or ""]
            if event.kind == Kind.REWARD or event.position not in decision.rewards:
                decision.rewards[event.position] = (event.arm or "", event.value or 0.0, bool(event.learned))
        return True

    @property
    def next_close(self) -> int | None:
        """The time at which the next window closes."""
        return self._heap[0][0] + self.window + self._grace if self._heap else None

    def close(self, at: int) -> Iterator[tuple[str, Open]]:
        """Take out the decisions whose window has closed at a time, in order; yield those that count."""
        while self._heap and self._heap[0][0] + self.window + self._grace < at:
            _, id_ = heapq.heappop(self._heap)
            decision = self._open.pop(id_, None)
            if decision is not None and self._counts(decision):
                yield id_, decision

    def closed(self, at: int) -> Iterator[tuple[str, Open]]:
        """Yield them, and change nothing."""
        places = [0]
        while places:
            place = places.pop()
            if place >= len(self._heap) or self._heap[place][0] + self.window + self._grace >= at:
                continue  # in a heap, all below it are later
            places += [2 * place + 1, 2 * place + 2]
            decision = self._open.get(self._heap[place][1])
            if decision is not None and self._counts(decision):
                yield self._heap[place][1], decision

    def _counts(self, decision: Open) -> bool:
        return decision.is_exposed or not self.only_exposed

    # Snapshots

    def to_list(self) -> list[Any]:
        """Convert to what JSON can hold."""
        return [
            [id_, *(getattr(its, name) for name in SAVED), [[p, *r] for p, r in its.rewards.items()]]
            for id_, its in self._open.items()
        ]

    @classmethod
    def from_list(cls, saved: list[Any], window: float, *, only_exposed: bool = False) -> Windows:
        windows = cls(window, only_exposed=only_exposed)
        for id_, *values, rewards in saved:
            given = {position: (arm, value, learned) for position, arm, value, learned in rewards}
            windows._open[id_] = Open(**dict(zip(SAVED, values, strict=True)), rewards=given)
        windows._heap = sorted((its.at, id_) for id_, its in windows._open.items())  # which is a heap
        return windows
