"""What the log folds to in this process: the states of all experiments, brought up to date event by event."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from banditree.service.events import Event, Kind
from banditree.service.refold import first_state, known_settings
from banditree.service.settings import Settings
from banditree.service.snapshots import Snapshots
from banditree.service.state import State, fold
from banditree.service.store import EventLog, StoreUnavailable

SHOWN = 256  # events shown at a time


class Replica:
    """The states of all experiments after event ``n``. ``watch(events, own)`` is called with events that are new."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.states: dict[str, State] = {}
        self.deleted: set[str] = set()  # names of experiments that were deleted
        self.n = 0  # the last event folded
        self.head = 0  # the last event of the log that this process knows of
        self.changing = threading.Lock()  # held while events change the states
        self.watch: Callable[[Sequence[Event], bool], None] | None = None
        self.is_live = False  # whether what is folded is news

    def load(self, given: Mapping[str, Settings], snapshots: Snapshots) -> None:
        """Make the states, from snapshots where they are sound; ``given`` are settings that the log may not have."""
        known = {name: (settings, 0) for name, settings in given.items()} | known_settings(self.log)
        self.deleted = {event.experiment for event in self.log.of_kinds(Kind.DELETION)}
        names = [name for name in known if name not in self.deleted]
        self.states, _ = snapshots.restore(known, names)
        for name in names:
            if name not in self.states:
                self.states[name] = first_state(self.log, name, known[name][0])
        self.n = min((state.n for state in self.states.values()), default=0)

    def catch_up(self) -> None:
        """Fold what other processes have written, and what was written before the start."""
        self.follow(self.log.last())

    def follow(self, head: int) -> None:
        """Fold the events up to the last one of the log."""
        self.head = head
        if head < self.n:
            raise StoreUnavailable(
                f"the log ends at event {head}, but event {self.n} was stored; the store has lost events or was "
                "replaced by an older copy. Restart the service to go on from what is there"
            )
        if self.n < head:
            for page in self.log.pages(self.n, whole=self.is_live, until=head):
                self.apply(page)
                for start in range(0, len(page), SHOWN):
                    self.show(page[start : start + SHOWN])
            self.n = head

    def apply(self, events: Sequence[Event]) -> None:
        """Apply events to their experiments, some of which they may create or delete."""
        with self.changing:
            for event in events:
                name = event.experiment
                if name not in self.states and name not in self.deleted and "settings" in (event.body or {}):
                    self.states[name] = State(name, Settings(**(event.body or {})["settings"]))
            fold(self.states, events)
            for event in events:
                if event.kind == Kind.DELETION:
                    self.states.pop(event.experiment, None)
                    self.deleted.add(event.experiment)
        self.n = max(self.n, events[-1].n)
        self.head = max(self.head, self.n)

    def show(self, events: Sequence[Event], *, own: bool = False) -> None:
        """Pass events on to those who watch."""
        if self.watch is not None and events and self.is_live:
            self.watch(events, own)
