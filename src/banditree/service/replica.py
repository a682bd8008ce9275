"""What the log folds to in this process: the states of all experiments, brought up to date event by event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from banditree.service.events import Event, Kind
from banditree.service.refold import first_state, known_settings
from banditree.service.settings import Settings
from banditree.service.snapshots import Snapshots
from banditree.service.state import State, fold
from banditree.service.store import EventLog, StoreUnavailable

SHOWN = 256  # events shown at a time


class Replica:
    """The states of all experiments after event ``n``. ``watch`` is called with events that are new."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.states: dict[str, State] = {}
        self.deleted: set[str] = set()  # names of experiments that were deleted
        self.n = 0  # the last event folded
        self.until = 0  # no event up to this number is left to fold; numbers may be missing
        self.changing = threading.Lock()  # held while events change the states
        self.watch: Callable[[Sequence[Event]], None] | None = None
        self.is_watched: Callable[[], bool] = bool  # whether anybody looks at them
        self.is_live = False  # whether what is folded is news
        self._followed = 0.0  # when the log was last looked at

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

    def catch_up(self, wait: float = 0.0, *, least: float = 0.0) -> None:
        """Fold what other processes have written, as far as nothing can come before it any more.

        If that was done less than ``least`` seconds ago, it is left to the next time: many events fold faster together.
        """
        if time.monotonic() >= self._followed + least:
            self.follow(self.log.settled(wait))
            self._followed = time.monotonic()

    def follow(self, until: int) -> None:
        """Fold the events up to this one, between which no others can come any more."""
        if self.log.head < self.n:
            raise StoreUnavailable(
                f"the log ends at event {self.log.head}, but event {self.n} was stored; the store has lost events or "
                "was replaced by an older copy. Restart the service to go on from what is there"
            )
        if until > self.until or until > self.n > self.until:
            for page in self.log.pages(self.n, whole=self._needs_bodies(), until=until):
                self.apply(page)
            self.until = until

    def _needs_bodies(self) -> bool:
        """Whether decisions are folded with all that is known about them."""
        return (self.is_live and self.is_watched()) or any(state.needs_bodies for state in self.states.values())

    def apply(self, events: Sequence[Event]) -> None:
        """Apply events to their experiments, some of which they may create or delete, and show them."""
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
        self.until = max(self.until, self.n)
        if self.watch is not None and self.is_live:
            for start in range(0, len(events), SHOWN):
                self.watch(events[start : start + SHOWN])
