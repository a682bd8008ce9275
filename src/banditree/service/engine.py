"""The one thread that decides, stores and learns. An answer is sent only after its events are stored."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from banditree.errors import InvalidValue
from banditree.service.archive import adopt_archive
from banditree.service.commands import Command, KeepTime, Outcome, Refused, first_events
from banditree.service.events import Event, say, say_failure
from banditree.service.queue import Queue, Waiting
from banditree.service.refold import Refolds, without_collecting
from banditree.service.replica import Replica
from banditree.service.settings import Plan
from banditree.service.snapshots import Snapshots
from banditree.service.state import State
from banditree.service.store import EventLog, StoreUnavailable
from banditree.service.writer import Writer

BATCH = 256  # commands in one transaction, at most
SNAPSHOT_EVERY = 50_000  # events between two snapshots
TICK_SECONDS = 0.25  # between checks for events of other processes and for reward windows that have passed
START_SECONDS = 30.0  # to wait for what other processes are writing, at the start
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

    @property
    def lag(self) -> int:
        """How many numbers of the log may have events that this process has not folded."""
        return max(0, self.log.head - self.replica.until)

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
                events = [event for plan in plans for event in self._first_events(plan)]
                if events:
                    self.writer.store(events, alone=True)
            finally:
                self.log.rollback()
            while any(state.is_stale for state in self.states.values()):  # its settings were changed
                self._refold()
                time.sleep(0.001)
        took = round(time.perf_counter() - began, 3)
        left_out = sum(state.left_out for state in self.states.values())
        said: dict[str, Any] = {"left_out": left_out} if left_out else {}
        say("started", events=self.n, from_snapshot=from_snapshot, experiments=len(self.states), seconds=took, **said)
        self.snapshots.n = from_snapshot
        if self.n - from_snapshot >= SNAPSHOT_EVERY:
            self._save_snapshots()
        self.replica.is_live = True
        self._thread.start()

    def _first_events(self, plan: Plan) -> list[Event]:
        if plan.name in self.replica.deleted:
            raise InvalidValue(f"the experiment {plan.name!r} was deleted; choose another name, or another --store")
        return first_events(plan, self.states[plan.name], self.log.now())

    def stop(self) -> None:
        """Finish the waiting commands, store a snapshot and close the log."""
        self._queue.close()
        self._thread.join()
        try:
            if self.unavailable is None:
                self.replica.catch_up(START_SECONDS)  # its own last events too
                if self.n > self.snapshots.n:
                    self._save_snapshots()
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
        """Whether an experiment still counts what was voided."""
        state = self.states.get(name)
        return state is not None and state.is_stale

    # The thread

    def _loop(self) -> None:
        ticked = time.monotonic()
        while not self._queue.is_done:
            batch = self._queue.take(BATCH, max(0.0, ticked + TICK_SECONDS - time.monotonic()), self._crowd)
            self._crowd = 3 * len(batch) // 4
            try:
                if batch:
                    self._work(batch)
                if self.refolds.is_ready or time.monotonic() - ticked >= TICK_SECONDS:
                    self._tick()
                    ticked = time.monotonic()
            except Exception as error:  # no error may end this thread
                say_failure("engine", error)
                self._refuse(batch, error)

    def _work(self, batch: list[Waiting]) -> None:
        part: list[Waiting] = []
        for item in batch:
            if item.command.changes_all:
                self._commit(part)
                self._commit([item])
                part = []
            else:
                part.append(item)
        self._commit(part)

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
            self._answer(list(zip(part, results, strict=False)))
            part = part[len(results) :]

    def _present(self, part: list[Waiting]) -> list[Waiting]:
        """Refuse the commands whose clients have gone, and return the others."""
        present: list[Waiting] = []
        gone: list[Waiting] = []
        for waiting in part:
            (gone if waiting.is_gone() else present).append(waiting)
        self._refuse(gone, Refused(503, "the client has gone; nothing was decided"))
        return present

    def _answer(self, pairs: Sequence[tuple[Waiting, Any]]) -> None:
        """Pass the results to the waiting requests, with one call into their event loop."""
        if pairs:
            pairs[0][0].future.get_loop().call_soon_threadsafe(_resolve, pairs)

    def _refuse(self, batch: Sequence[Waiting], error: Exception) -> None:
        self._answer([(waiting, error) for waiting in batch])

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
                self._save_snapshots()
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
        for name in self.refolds.take(self.states, self.n):
            self.snapshots.stored[name] = 0

    def _save_snapshots(self) -> None:
        self.snapshots.save(self.states, self.n)

    def _set_unavailable(self, error: StoreUnavailable) -> None:
        if self.unavailable is None:
            say("store unavailable", level="error", why=str(error))
        self.unavailable = str(error)

    def _set_available(self) -> None:
        if self.unavailable is not None:
            say("store available")
        self.unavailable = None


def _resolve(pairs: Sequence[tuple[Waiting, Any]]) -> None:
    for waiting, result in pairs:
        if waiting.future.done():  # the client has disconnected
            continue
        if isinstance(result, Exception):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)
