"""Run commands: compute their events, store them in one transaction, and only then learn from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from banditree.errors import BanditreeError
from banditree.service.commands import Command, Outcome, PutExperiment, Refused
from banditree.service.events import Event, Kind
from banditree.service.replica import Replica
from banditree.service.settings import Settings
from banditree.service.state import State
from banditree.service.store import Conflict, EventLog, Kept, StoreUnavailable

BATCH_SECONDS = 0.5  # after which the other commands of a batch wait for the next one
FOLLOW_SECONDS = 0.02  # between two looks at what other processes have written, while there is something to do
ATTEMPTS = 20  # to store what other processes store at the same time
UNSTORED = 2**62  # the number of an event that has none yet: it is later than all others

Result = Outcome | Exception


@dataclass
class Work:
    """What commands have looked up and computed."""

    histories: dict[tuple[str, str], list[Event]]  # events of decisions, by experiment and id
    kept: dict[tuple[str, str], str]  # experiment and unit -> the decision that the unit keeps
    results: list[Result] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    keeps: list[Kept] = field(default_factory=list)

    def add(self, outcome: Outcome, state: State) -> None:
        """Take in an outcome; the next commands see its events."""
        self.results.append(outcome)
        self.events += outcome.events
        for event in outcome.events:
            if event.id is not None:
                self.histories.setdefault((state.name, event.id), []).append(event._replace(n=UNSTORED))
                if event.kind == Kind.DECISION and event.unit is not None and state.settings.sticky is not None:
                    unit = (state.name, event.unit)
                    self.keeps.append(Kept(*unit, event.id, event.at, self.kept.get(unit, "")))
                    self.kept[unit] = event.id


class Writer:
    """Runs commands against the states of a replica.

    Most commands are computed first and stored together, beside those of other processes. If another process has
    stored the same decision or reward meanwhile, or an event that changes all, nothing is stored, and they are computed
    again. A command that changes all is computed and stored while nobody else writes.
    """

    def __init__(self, log: EventLog, replica: Replica, note: Callable[[str, float], None]) -> None:
        self.log, self.replica = log, replica
        self._note = note  # called with an experiment and the seconds that a command of it took
        self.on_stored: Callable[[Sequence[Event]], None] = lambda events: None

    def run(self, commands: Sequence[Command]) -> list[Result]:
        """Run as many of the commands as there is time for; one that changes all must be alone."""
        for _ in range(ATTEMPTS):
            self.replica.catch_up(least=FOLLOW_SECONDS if self.log.is_shared else 0.0)
            try:
                return self._alone(commands[0]) if commands[0].changes_all else self._beside(commands)
            except Conflict:
                continue
            finally:
                self.log.rollback()  # does nothing after a commit
        raise StoreUnavailable("other processes store the same decisions again and again; try again")

    def _beside(self, commands: Sequence[Command]) -> list[Result]:
        work = self._compute(commands)
        if work.events:
            fence = self.log.begin()
            if fence > self.replica.n:
                self.log.rollback()
                self.replica.follow(fence)
                raise Conflict
            self.store(work.events, work.keeps)
        return work.results

    def _alone(self, command: Command) -> list[Result]:
        self.replica.follow(self.log.begin(alone=True))
        work = self._compute([command])
        if work.events:
            self.store(work.events, alone=True)
        return work.results

    def store(self, events: Sequence[Event], keeps: Sequence[Kept] = (), *, alone: bool = False) -> None:
        """Store events in the transaction that has begun, and learn from them if they are the next ones for sure."""
        stored = self.log.append(events, keeps)
        self.log.commit()
        self.on_stored(stored)
        if alone or not self.log.is_shared:
            self.replica.apply(stored)

    def _compute(self, commands: Sequence[Command]) -> Work:
        """Compute the results of commands and their events."""
        work = self._look_up(commands)
        at = self.log.now()
        end = time.monotonic() + BATCH_SECONDS
        for command in commands:
            if work.results and time.monotonic() > end:
                break
            began = time.perf_counter()
            try:
                state = self._state(command)
                ids = command.ids(work.kept.get((state.name, command.unit or "")))
                history = [event for id_ in ids for event in work.histories.get((state.name, id_), ())]
                work.add(command.run(state, history, at, self.log), state)
            except StoreUnavailable:
                raise
            except (Refused, BanditreeError) as error:
                work.results.append(error if isinstance(error, Refused) else Refused(422, str(error)))
            finally:
                self._note(command.experiment, time.perf_counter() - began)
        return work

    def _state(self, command: Command) -> State:
        name = command.experiment
        if isinstance(command, PutExperiment):
            if name in self.replica.deleted:
                raise Refused(409, f"an experiment {name!r} was deleted; choose another name")
            return self.replica.states.get(name) or State(name, Settings())
        if name not in self.replica.states:
            raise Refused(404, f"there is no experiment {name!r}")
        return self.replica.states[name]

    def _look_up(self, commands: Sequence[Command]) -> Work:
        """Look up the decisions that units keep, and the events of the decisions that commands are about."""
        units: dict[str, list[str]] = {}
        ids: dict[str, list[str]] = {}
        for command in commands:
            state = self.replica.states.get(command.experiment)
            if state is not None and command.unit is not None and state.settings.sticky is not None:
                units.setdefault(state.name, []).append(command.unit)
        kept = {(name, unit): id_ for name, some in units.items() for unit, id_ in self.log.kept(name, some).items()}
        for command in commands:
            wanted = command.ids(kept.get((command.experiment, command.unit or "")))
            ids.setdefault(command.experiment, []).extend(wanted)
        histories = {
            (name, id_): events for name, some in ids.items() for id_, events in self.log.find(name, some).items()
        }
        return Work(histories, kept)
