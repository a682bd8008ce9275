"""Find the decisions whose reward windows have passed, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from banditree.service.state import State
from banditree.service.store import EventLog

DUE = 500  # decisions examined at a time

Due = tuple[int, int, str, str]  # a time, an event, an experiment and an id


class DefaultRewards:
    """Decisions of experiments with a default reward, each waiting for its own time.

    Times in the log need not be in order: the clock may have been set back between two starts.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._scanned = 0  # decisions up to this event were examined
        self._has_windows = False
        self._due: list[Due] = []  # a heap

    def load(self) -> None:
        """Go on where the last process, or another one, was at its last snapshot."""
        self._scanned = int(self.log.fact("swept") or 0)

    @property
    def swept(self) -> int:
        """The last event up to which all decisions have got their default rewards."""
        return min((n for _, n, _, _ in self._due), default=self._scanned + 1) - 1

    def take(self, states: Mapping[str, State], n: int, at: int) -> list[Due]:
        """Return some of the decisions up to event ``n`` whose windows have closed at a time."""
        windows = {
            name: round(state.settings.reward_window * 1e6)
            for name, state in states.items()
            if state.settings.default_reward is not None and state.settings.reward_window is not None
        }
        self._has_windows = bool(windows)
        if not windows:
            return []
        end = min(self._scanned + DUE, n)
        for number, decided, name, id_ in self.log.decisions(self._scanned, end - self._scanned):
            if name in windows:
                heapq.heappush(self._due, (decided + windows[name], number, name, id_))
        self._scanned = end
        due: list[Due] = []
        while self._due and self._due[0][0] < at and len(due) < DUE:
            due.append(heapq.heappop(self._due))
        return due

    def put_back(self, due: Sequence[Due]) -> None:
        """Let decisions wait that could not be stored."""
        for decision in due:
            heapq.heappush(self._due, decision)

    def has_more(self, n: int, at: int) -> bool:
        """Whether there are more to be examined at once."""
        return (self._has_windows and self._scanned < n) or bool(self._due and self._due[0][0] < at)
