"""The one thread that decides, stores and learns. An answer is sent only after its events are stored."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from banditree.errors import BanditreeError, InvalidValue
from banditree.service.archive import adopt_archive
from banditree.service.commands import Command, EarnDefaults, Outcome, PutExperiment, Refused, first_events
from banditree.service.defaults import DefaultRewards
from banditree.service.events import Event, Kind, say, say_failure
from banditree.service.queue import Queue, Waiting
from banditree.service.refold import Refolds, without_collecting
from banditree.service.replica import Replica
from banditree.service.settings import Plan, Settings
from banditree.service.snapshots import Snapshots
from banditree.service.state import State
from banditree.service.store import EventLog, StoreUnavailable

BATCH = 256  # commands in one transaction, at most
BATCH_SECONDS = 0.5  # after which a transaction ends, so that other processes do not wait long for the end of the log
SNAPSHOT_EVERY = 50_000  # events between two snapshots
TICK_SECONDS = 0.25  # between checks for events of other processes and for reward windows that have passed

Result = Outcome | Exception
Histories = dict[tuple[str, str], list[Event]]  # events of decisions, by experiment and id
T = TypeVar("T")


class Engine:
    """Runs commands in order. ``watch(events, own)`` is called with events that were folded, in order."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.replica = Replica(log)
        self.snapshots = Snapshots(log)
        self.refolds = Refolds(log)
        self.unavailable: str | None = None  # why the database cannot be used; None while it can
        self.salt = ""
        self._defaults = DefaultRewards(log)
        self._queue = Queue()
        self._thread = threading.Thread(target=self._loop, name="banditree-engine", daemon=True)
        self._crowd = 0  # number of commands to wait for

    @property
    def states(self) -> dict[str, State]:
        """The states of the experiments."""
        return self.replica.states

    @property
    def n(self) -> int:
        """The last event folded."""
        return self.replica.n

    @property
    def head(self) -> int:
        """The last event of the log that this process knows of."""
        return self.replica.head

    @property
    def watch(self) -> Callable[[Sequence[Event], bool], None] | None:
        return self.replica.watch

    @watch.setter
    def watch(self, watch: Callable[[Sequence[Event], bool], None] | None) -> None:
        self.replica.watch = watch

    # Starting and stopping

    def start(self, plans: Sequence[Plan]) -> None:
        """Fold the log and start the thread; experiments that the log does not have get their catalogues."""
        began = time.perf_counter()
        adopt_archive(self.log)
        self.salt = str(self.log.fact("salt"))
        self._defaults.load()
        with without_collecting():
            self.replica.load({plan.name: plan.settings for plan in plans}, self.snapshots)
            from_snapshot = self.n
            self.replica.catch_up()  # most of the log, while other processes go on writing
            try:
                self.replica.follow(self.log.begin())
                events = [event for plan in plans for event in self._first_events(plan)]
                if events:
                    self._keep(events)
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
            if self.n > self.snapshots.n and self.unavailable is None:
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
                    ticked = 0.0 if self._tick() else time.monotonic()
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
                results = self._transaction([waiting.command for waiting in part])
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

    def _transaction(self, commands: Sequence[Command]) -> list[Result]:
        """Run as many of the commands as there is time for, and store their events."""
        self.replica.catch_up()  # before the end of the log is reserved, because it may take a while
        try:
            self.replica.follow(self.log.begin())
            results, events = self._run(commands)
            if events:
                self._keep(events)
        finally:
            self.log.rollback()  # does nothing after a commit
        return results

    def _run(self, commands: Sequence[Command]) -> tuple[list[Result], list[Event]]:
        """Compute the results of commands and their events; nothing is stored yet."""
        latest: defaultdict[str, dict[str, str]] = defaultdict(dict)  # experiment -> unit -> id, of this batch
        histories = self._find(commands, latest)
        at = self.log.now()
        end = time.monotonic() + BATCH_SECONDS
        results: list[Result] = []
        events: list[Event] = []
        for command in commands:
            if results and time.monotonic() > end:
                break
            began = time.perf_counter()
            try:
                outcome = self._run_one(command, histories, latest[command.experiment], at)
            except StoreUnavailable:
                raise
            except (Refused, BanditreeError) as error:
                results.append(error if isinstance(error, Refused) else Refused(422, str(error)))
                continue
            finally:
                self._queue.note(command.experiment, time.perf_counter() - began)
            results.append(outcome)
            for event in outcome.events:
                events.append(event)
                if event.id is not None:  # later commands see it, with the number that it will get
                    numbered = event._replace(n=self.n + len(events))
                    histories.setdefault((event.experiment, event.id), []).append(numbered)
                    if event.kind == Kind.DECISION and event.unit is not None:
                        latest[event.experiment][event.unit] = event.id
        return results, events

    def _run_one(self, command: Command, histories: Histories, latest: Mapping[str, str], at: int) -> Outcome:
        name = command.experiment
        if isinstance(command, PutExperiment):
            if name in self.replica.deleted:
                raise Refused(409, f"an experiment {name!r} was deleted; choose another name")
        elif name not in self.states:
            raise Refused(404, f"there is no experiment {name!r}")
        state = self.states.get(name) or State(name, Settings())
        history = [event for id_ in command.ids(state, latest) for event in histories.get((name, id_), ())]
        return command.run(state, history, at, self.log)

    def _find(self, commands: Sequence[Command], latest: Mapping[str, Mapping[str, str]]) -> Histories:
        """Look up the events of the decisions that commands are about."""
        ids: dict[str, list[str]] = {}
        for command in commands:
            state = self.states.get(command.experiment)
            if state is not None:
                ids.setdefault(command.experiment, []).extend(command.ids(state, latest[command.experiment]))
        return {(name, id_): events for name, some in ids.items() for id_, events in self.log.find(name, some).items()}

    def _keep(self, events: Sequence[Event]) -> None:
        """Number events and commit them, and only then learn from them."""
        numbered = [event._replace(n=self.n + place) for place, event in enumerate(events, 1)]
        self.log.append(numbered)
        self.log.commit()
        self.replica.apply(numbered)
        self.replica.show(numbered, own=True)

    def _answer(self, pairs: Sequence[tuple[Waiting, Any]]) -> None:
        """Pass the results to the waiting requests, with one call into their event loop."""
        if pairs:
            pairs[0][0].future.get_loop().call_soon_threadsafe(_resolve, pairs)

    def _refuse(self, batch: Sequence[Waiting], error: Exception) -> None:
        self._answer([(waiting, error) for waiting in batch])

    # From time to time

    def _tick(self) -> bool:
        """Reconnect if necessary, fold new events and give default rewards; returns whether more of those are due."""
        try:
            if self.unavailable is not None:
                self.log.reopen()
                self.log.probe()
            self.log.check()
            self.replica.catch_up()
            self._refold()
            has_more = self._earn_defaults()
            self._set_available()
            if self.n - self.snapshots.n >= SNAPSHOT_EVERY:
                self._save_snapshots()
            return has_more
        except StoreUnavailable as error:
            self._set_unavailable(error)
            return False

    def _earn_defaults(self) -> bool:
        """Settle decisions whose reward window has passed; returns whether more are to be examined."""
        at = self.log.now()
        due = self._defaults.take(self.states, self.n, at)
        try:
            while due:
                commands = [EarnDefaults(id_, experiment=name) for _, _, name, id_ in due]
                due = due[len(self._transaction(commands)) :]
        finally:
            self._defaults.put_back(due)  # the store is away: they wait for it
        return self._defaults.has_more(self.n, at)

    def _refold(self) -> None:
        """Fold stale experiments again, beside the traffic."""
        for name in self.refolds.take(self.states, self.n):
            self.snapshots.stored[name] = 0

    def _save_snapshots(self) -> None:
        self.snapshots.save(self.states, self.n, self._defaults.swept)

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
