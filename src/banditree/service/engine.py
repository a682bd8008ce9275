"""The one thread that decides, stores and learns. An answer is sent only after its events are stored."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from banditree.base.files import Json
from banditree.errors import BanditreeError
from banditree.service.archive import adopt_archive
from banditree.service.commands import Command, KeepTime, Outcome, PutExperiment, Refused, first_events, refusal
from banditree.service.events import Event, Kind, say, say_failure
from banditree.service.replica import Refolds, Replica, Snapshots, without_collecting
from banditree.service.settings import Plan, Settings
from banditree.service.state import State
from banditree.service.store import Conflict, EventLog, Kept, StoreUnavailable

BATCH = 256  # commands in one transaction, at most
SNAPSHOT_EVERY = 50_000  # events between two snapshots
TICK_SECONDS = 0.25  # between checks for events of other processes and for reward windows that have passed
START_SECONDS = 30.0  # to wait for other processes' writes at the start
QUIET_SECONDS = 1.0  # without an event, after which a window that has closed is noted; up to twice as long

T = TypeVar("T")


class Engine:
    """Runs commands in order, each experiment in turn."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.replica = Replica(log)
        self.snapshots = Snapshots(log)
        self.refolds = Refolds(log)
        self.unavailable: str | None = None  # why the database cannot be used; None while it can
        self.salt = ""
        self._queue = Queue()
        self.writer = Writer(log, self.replica, self._queue.note)
        self._thread = threading.Thread(target=self._loop, name="banditree-engine", daemon=True)
        self._crowd = 0  # number of commands to wait for
        self._quiet = round(QUIET_SECONDS * random.uniform(1, 2) * 1e6)  # so that one process is the first
        self._noted: dict[str, float] = {}  # experiment -> the window whose end was noted

    @property
    def states(self) -> dict[str, State]:
        """The states of the experiments."""
        return self.replica.states

    @property
    def n(self) -> int:
        """The last event folded."""
        return self.replica.n

    # Starting and stopping

    def start(self, plans: Sequence[Plan]) -> None:
        """Fold the log and start the thread; experiments that the log does not have get their catalogues."""
        began = time.perf_counter()
        adopt_archive(self.log)
        self.salt = str(self.log.fact("salt"))
        with without_collecting():
            self.replica.load({plan.name: plan.settings for plan in plans}, self.snapshots)
            from_snapshot = self.n
            self.replica.catch_up(START_SECONDS)  # most of the log, while other processes go on writing
            try:
                self.replica.follow(self.log.begin(alone=True))
                at = self.log.now()
                events = [event for plan in plans for event in first_events(plan, self.states[plan.name], at)]
                if events:
                    self.writer.store(events, alone=True)
            finally:
                self.log.rollback()
            while any(state.is_stale for state in self.states.values()):  # its settings were changed
                self._refold()
                time.sleep(0.001)
        took = round(time.perf_counter() - began, 3)
        left_out = sum(state.left_out for state in self.states.values())
        said: Json = {"left_out": left_out} if left_out else {}
        say("started", events=self.n, from_snapshot=from_snapshot, experiments=len(self.states), seconds=took, **said)
        self.snapshots.n = from_snapshot
        if self.n - from_snapshot >= SNAPSHOT_EVERY:
            self.snapshots.save(self.states, self.n)
        self.replica.is_live = True
        self._thread.start()

    def stop(self) -> None:
        """Finish the waiting commands, store a snapshot and close the log."""
        self._queue.close()
        self._thread.join()
        try:
            if self.unavailable is None:
                self.replica.catch_up(START_SECONDS)  # its own last events too
                if self.n > self.snapshots.n:
                    self.snapshots.save(self.states, self.n)
        except StoreUnavailable as error:
            say("no snapshot", level="warning", why=str(error))
        self.log.close()
        say("stopped", events=self.n)

    # Called by the requests

    async def do(self, command: Command, is_gone: Callable[[], bool] = lambda: False) -> Outcome:
        """Run a command; returns once its events are stored."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.put(Waiting(command, future, is_gone))
        return await future

    async def look(self, view: Callable[[State], T], state: State) -> T:
        """Compute something from a state while no event changes it."""

        def compute() -> T:
            with self.replica.changing:
                return view(state)

        return await asyncio.to_thread(compute)

    def is_refolding(self, name: str) -> bool:
        """Whether an experiment still counts voided decisions."""
        state = self.states.get(name)
        return state is not None and state.is_stale

    # The thread

    def _loop(self) -> None:
        ticked = time.monotonic()
        while not self._queue.is_done:
            batch = self._queue.take(BATCH, max(0.0, ticked + TICK_SECONDS - time.monotonic()), self._crowd)
            self._crowd = 3 * len(batch) // 4
            try:
                for is_alone, waiting in groupby(batch, lambda item: item.command.changes_all):
                    for part in ([item] for item in waiting) if is_alone else [list(waiting)]:
                        self._commit(part)
                if self.refolds.is_ready or time.monotonic() - ticked >= TICK_SECONDS:
                    self._tick()
                    ticked = time.monotonic()
            except Exception as error:  # no error may end this thread
                say_failure("engine", error)
                self._refuse(batch, error)

    def _commit(self, part: list[Waiting]) -> None:
        """Run some commands, in one transaction if that does not take long, and answer them."""
        while part := self._present(part):
            try:
                results = self.writer.run([waiting.command for waiting in part])
                self._set_available()
            except StoreUnavailable as error:
                self._set_unavailable(error)
                self._refuse(part, error)
                return
            self._answer(part, results)
            part = part[len(results) :]

    def _present(self, part: list[Waiting]) -> list[Waiting]:
        """Refuse the commands whose clients have gone, and return the others."""
        gone = [waiting for waiting in part if waiting.is_gone()]
        if not gone:
            return part
        self._refuse(gone, Refused(503, "the client has gone; nothing was decided"))
        return [waiting for waiting in part if waiting not in gone]

    def _answer(self, part: Sequence[Waiting], results: Sequence[Reply]) -> None:
        """Pass results to the first of some waiting requests, with one call into their event loop."""
        if part:
            part[0].future.get_loop().call_soon_threadsafe(_resolve, part, results)

    def _refuse(self, part: Sequence[Waiting], error: Exception) -> None:
        self._answer(part, [error] * len(part))

    # From time to time

    def _tick(self) -> None:
        """Reconnect if necessary, fold new events, and note that time passes where windows have closed."""
        try:
            if self.unavailable is not None:
                self.log.reopen()
                self.log.probe()
                self.replica.until = self.n
            self.log.check()
            self.replica.catch_up()
            self._refold()
            self._keep_time()
            self._set_available()
            if self.n - self.snapshots.n >= SNAPSHOT_EVERY:
                self.snapshots.save(self.states, self.n)
        except StoreUnavailable as error:
            self._set_unavailable(error)

    def _keep_time(self) -> None:
        """Store an event where windows with default rewards have closed, and no other event says so."""
        at = self.log.now() - self._quiet
        due = {name: state.next_default for name, state in list(self.states.items()) if state.next_default < at}
        late = [KeepTime(experiment=name) for name, end in due.items() if self._noted.get(name) != end]
        if late:
            self.writer.run(late)
            self._noted |= due

    def _refold(self) -> None:
        """Fold stale experiments again, beside the traffic."""
        self.refolds.take(self.states, self.n)

    def _set_unavailable(self, error: StoreUnavailable) -> None:
        if self.unavailable is None:
            say("store unavailable", level="error", why=str(error))
        self.unavailable = str(error)

    def _set_available(self) -> None:
        if self.unavailable is not None:
            say("store available")
        self.unavailable = None


def _resolve(part: Sequence[Waiting], results: Sequence[Reply]) -> None:
    for waiting, result in zip(part, results, strict=False):
        if not waiting.future.done():  # else the client has disconnected
            if isinstance(result, Exception):
                waiting.future.set_exception(result)
            else:
                waiting.future.set_result(result)


LINGER_SECONDS = 0.005  # that a command waits for others, so that they share one write to the disk
LEAST_SECONDS = 1e-4  # that a command is taken to need before one was timed
TURN_SECONDS = 0.05  # of commands taken at once, about, so that those of other experiments do not wait long
SLOW_SECONDS = 0.01  # a command that takes longer is not answered together with those of other experiments
EXPECTED_SECONDS = 0.01  # after its answers, in which an experiment may ask again before a slower one has its turn


@dataclass(frozen=True)
class Waiting:
    """A command whose request waits for its outcome."""

    command: Command
    future: asyncio.Future[Outcome]
    is_gone: Callable[[], bool]  # whether its client has disconnected


class Queue:
    """Commands that wait for the thread. Experiments take turns by the time of it that they use, not by requests.

    Clients ask again once they have their answers. So before a slow command, those experiments that have used less
    time, and were answered just now, get a moment to ask again, which is time that they use.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Waiting]] = {}
        self._used: dict[str, float] = {}  # experiment -> seconds of the thread that it has used
        self._least = 0.0  # what the one last taken from had used: nobody saves up time while it has nothing to do
        self._cost: dict[str, float] = {}  # experiment -> seconds that a command takes, about
        self._turn: dict[str, float] = {}  # experiment -> seconds that its last commands take, about
        self._began = 0.0  # when they were taken
        self._expected: dict[str, float] = {}  # experiment -> until when it may ask again
        self._size = 0
        self._wanted = 1  # size that the thread waits for: it is woken once for a crowd, not for each of it
        self._is_closed = False

    def put(self, item: Waiting) -> None:
        with self._changed:
            name = item.command.experiment
            if name not in self._waiting:
                if name not in self._turn and time.monotonic() > self._expected.get(name, 0.0):
                    self._used[name] = max(self._used.get(name, 0.0), self._least)
                self._waiting[name] = deque()
            self._waiting[name].append(item)
            self._size += 1
            if self._size >= self._wanted:
                self._changed.notify()

    def close(self) -> None:
        """Let `take` return the remaining commands, and then none."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    @property
    def is_done(self) -> bool:
        """Whether it was closed, and nothing is left."""
        return self._is_closed and not self._waiting

    def take(self, most: int, timeout: float, crowd: int) -> list[Waiting]:
        """Collect waiting commands for about one turn; once there is one, wait briefly until there are ``crowd``."""
        with self._changed:
            self._end_turn()
            self._wait_for(1, timeout)
            if self._waiting:
                self._wait_for(crowd, LINGER_SECONDS)
                self._let_others_ask()
            batch: list[Waiting] = []
            seconds = 0.0
            while self._waiting and len(batch) < most and seconds < TURN_SECONDS:
                name = min(self._waiting, key=lambda name: self._used[name] + self._turn.get(name, 0.0))
                cost = self._cost.get(name, LEAST_SECONDS)
                if cost > SLOW_SECONDS and self._turn.keys() - {name}:
                    break
                self._least = max(self._least, self._used[name])
                batch.append(self._waiting[name].popleft())
                if not self._waiting[name]:
                    del self._waiting[name]
                self._turn[name] = self._turn.get(name, 0.0) + cost
                seconds += cost
            self._size -= len(batch)
            self._began = time.monotonic()
            return batch

    def note(self, experiment: str, seconds: float) -> None:
        """Note how long a command of an experiment took."""
        with self._changed:
            known = self._cost.get(experiment, LEAST_SECONDS)
            self._cost[experiment] = known + (seconds - known) / 8

    def _end_turn(self) -> None:
        """Charge the time since the last commands were taken to their experiments, which may ask again now."""
        end, total = time.monotonic(), sum(self._turn.values())
        self._expected = {name: until for name, until in self._expected.items() if until > end}
        for name, seconds in self._turn.items():
            self._used[name] += (end - self._began) * seconds / total
            self._expected[name] = end + EXPECTED_SECONDS
        self._turn.clear()

    def _let_others_ask(self) -> None:
        """Wait a moment, if the next command is slow, for experiments that have used less time and are expected."""
        slow = min(self._waiting, key=lambda name: self._used[name])
        expected = [
            name for name in self._expected if name not in self._waiting and self._used[name] < self._used[slow]
        ]
        if not expected or self._cost.get(slow, LEAST_SECONDS) <= SLOW_SECONDS:
            return
        began, self._wanted = time.monotonic(), 0
        timeout = max(self._expected[name] for name in expected) - began
        self._changed.wait_for(lambda: self._is_closed or any(map(self._waiting.__contains__, expected)), timeout)
        for name in expected:
            self._used[name] += (time.monotonic() - began) / len(expected)

    def _wait_for(self, wanted: int, timeout: float) -> None:
        self._wanted = wanted
        self._changed.wait_for(lambda: self._size >= wanted or self._is_closed, timeout)


BATCH_SECONDS = 0.5  # after which the other commands of a batch wait for the next one
FOLLOW_SECONDS = 0.02  # between two reads of other processes' events, while there is work to do
ATTEMPTS = 20  # to store events that conflict with those of other processes
UNSTORED = 2**62  # the number of an event that has none yet: it is later than all others

Reply = Outcome | Exception


@dataclass
class Work:
    """What commands have looked up and computed."""

    histories: dict[tuple[str, str], list[Event]]  # events of decisions, by experiment and id
    kept: dict[tuple[str, str], str]  # experiment and unit -> the decision that the unit keeps
    results: list[Reply] = field(default_factory=list)
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

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        """Run as many of the commands as there is time for; one that changes all must be alone."""
        alone = commands[0].changes_all
        for _ in range(ATTEMPTS):
            self.replica.catch_up(least=FOLLOW_SECONDS if self.log.is_shared else 0.0)
            try:
                if alone:
                    self.replica.follow(self.log.begin(alone=True))
                work = self._compute(commands)
                if work.events and not alone and (fence := self.log.begin()) > self.replica.n:
                    self.log.rollback()
                    self.replica.follow(fence)
                    continue
                if work.events:
                    self.store(work.events, work.keeps, alone=alone)
                return work.results
            except Conflict:
                continue
            finally:
                self.log.rollback()  # does nothing after a commit
        raise StoreUnavailable("other processes store the same decisions again and again; try again")

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
                work.results.append(refusal(error))
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
