"""The one thread that decides, stores and learns. An answer is sent only after its events are stored."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from banditree.service.commands import ChangeArms, Command, EarnDefaults, Outcome, Refused
from banditree.service.events import ARMS, DECISION, Event, now, say, say_failure
from banditree.service.settings import Settings
from banditree.service.state import State
from banditree.service.store import Away, EventLog

MOST = 256  # commands in one transaction, at most
SNAPSHOT_EVERY = 50_000  # events between two snapshots
TICK = 0.25  # seconds between checks for events of other processes and for reward windows that have passed
LINGER = 0.005  # seconds that a command waits for others, so that they share one write to the disk
DUE = 500  # events examined at a time for default rewards

Result = Outcome | Exception
Waiting = tuple[Command, "asyncio.Future[Outcome]"]


class Engine:
    """Runs commands in order. ``watch`` is called with the events that have been folded, in order."""

    def __init__(
        self, log: EventLog, settings: Settings, watch: Callable[[Sequence[Event]], None] | None = None
    ) -> None:
        self.log, self.settings = log, settings
        self.state = State(settings)
        self.watch = watch
        self.away: str | None = None  # why the database cannot be used; None while it can
        self.head = 0  # the last event of the log that this process knows of
        self._snapshot = 0
        self._latest = 0  # times never go back
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="banditree-engine", daemon=True)
        self._stopping = False
        self._crowd = 0  # number of commands to wait for

    # Starting and stopping

    def start(self, arms: dict[str, list[str]], source: str) -> None:
        """Fold the log and start the thread; an empty log first gets the catalogue."""
        began = time.perf_counter()
        saved = self.log.load_snapshot(self.settings.key)
        if saved is not None:
            self.state = State.from_bytes(saved, self.settings)
            self._snapshot = self.state.n
        from_snapshot = self.state.n
        self.head = self.log.last()
        self._follow()  # most of the log, while other processes go on writing
        try:
            self.head = self.log.begin()
            self._follow()
            if self.state.empty:
                self._keep([Event(self._now(), ARMS, body={"add": arms, "source": source})])
        finally:
            self.log.rollback()
        took = round(time.perf_counter() - began, 3)
        say("started", events=self.state.n, from_snapshot=from_snapshot, seconds=took)
        if self.state.n - self._snapshot >= SNAPSHOT_EVERY:
            self._save_snapshot()
        self._thread.start()

    def stop(self) -> None:
        """Finish the waiting commands, store a snapshot and close the log."""
        self._waiting.put(None)
        self._thread.join()
        try:
            if self.state.n > self._snapshot and self.away is None:
                self._save_snapshot()
        except Away as error:
            say("no snapshot", level="warning", why=str(error))
        self.log.close()

    # Called by the requests

    async def do(self, command: Command) -> Outcome:
        """Run a command; returns once its events are stored."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.put((command, future))
        return await future

    # The thread

    def _loop(self) -> None:
        looked = time.monotonic()
        while not self._stopping:
            batch = self._next(max(0.0, looked + TICK - time.monotonic()))
            try:
                if batch:
                    self._work(batch)
                if time.monotonic() - looked >= TICK:
                    looked = 0.0 if self._look() else time.monotonic()
            except Exception as error:  # no error may end this thread
                say_failure("engine", error)
                self._refuse(batch, error)

    def _next(self, wait: float) -> list[Waiting]:
        """Collect the waiting commands, in order. If there were many the last time, wait briefly for as many again."""
        batch: list[Waiting] = []
        end = time.monotonic() + wait
        while len(batch) < MOST:
            try:
                left = end - time.monotonic()
                found = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if found is None:
                self._stopping = True
                break
            batch.append(found)
            if len(batch) == 1:
                end = time.monotonic() + LINGER
            if len(batch) >= self._crowd:
                end = 0.0
        self._crowd = 3 * len(batch) // 4
        return batch

    def _work(self, batch: list[Waiting]) -> None:
        part: list[Waiting] = []
        for waiting in batch:
            if isinstance(waiting[0], ChangeArms):
                self._commit(part)
                self._commit([waiting])
                part = []
            else:
                part.append(waiting)
        self._commit(part)

    def _commit(self, part: list[Waiting]) -> None:
        """Run some commands in one transaction, and answer them."""
        if not part:
            return
        try:
            results = self._transaction([command for command, _ in part])
            self._back()
        except Away as error:
            self._gone(error)
            self._refuse(part, error)
            return
        self._answer([(future, result) for (_, future), result in zip(part, results, strict=True)])

    def _transaction(self, commands: Sequence[Command]) -> list[Result]:
        try:
            self.head = self.log.begin()
            self._follow()
            results, events = self._run(commands)
            if events:
                self._keep(events)
        finally:
            self.log.rollback()  # does nothing after a commit
        return results

    def _run(self, commands: Sequence[Command]) -> tuple[list[Result], list[Event]]:
        """Compute the results of commands and their events; nothing is stored yet."""
        known = self.log.find(id_ for command in commands for id_ in command.ids)
        at = self._now()
        results: list[Result] = []
        events: list[Event] = []
        for command in commands:
            try:
                outcome = command.run(self.state, [e for id_ in command.ids for e in known.get(id_, ())], at)
            except Refused as refused:
                results.append(refused)
                continue
            results.append(outcome)
            events += outcome.events
            for event in outcome.events:
                if event.id is not None:
                    known.setdefault(event.id, []).append(event)  # later commands of this batch see it
        return results, events

    def _keep(self, events: Sequence[Event]) -> None:
        """Number events and commit them, and only then learn from them."""
        numbered = [event.numbered(self.state.n + place) for place, event in enumerate(events, 1)]
        self.log.append(numbered)
        self.log.commit()
        self._fold(numbered)

    def _follow(self) -> None:
        """Fold events that other processes have written, or that were written before this one started."""
        if self.state.n < self.head:
            part: list[Event] = []
            for event in self.log.tail(self.state.n, whole=self._thread.is_alive()):
                self.state.apply(event)
                part.append(event)
                if len(part) == MOST:
                    self._tell(part)
                    part = []
            self._tell(part)

    def _fold(self, events: Sequence[Event]) -> None:
        for event in events:
            self.state.apply(event)
        self.head = self.state.n
        self._tell(events)

    def _tell(self, events: Sequence[Event]) -> None:
        if self.watch is not None and events and self._thread.is_alive():
            self.watch(events)

    def _answer(self, pairs: list[tuple[asyncio.Future[Outcome], Result]]) -> None:
        """Pass the results to the waiting requests, with one call into their event loop."""
        if pairs:
            pairs[0][0].get_loop().call_soon_threadsafe(_resolve, pairs)

    def _refuse(self, batch: list[Waiting], error: Exception) -> None:
        self._answer([(future, error) for _, future in batch])

    # From time to time

    def _look(self) -> bool:
        """Reconnect if necessary, fold new events and give default rewards; returns whether more of those are due."""
        try:
            if self.away is not None:
                self.log.reopen()
                self.log.probe()
            self.head = self.log.last()
            self._follow()
            more = self._earn_defaults()
            self._back()
            if self.state.n - self._snapshot >= SNAPSHOT_EVERY:
                self._save_snapshot()
            return more
        except Away as error:
            self._gone(error)
            return False

    def _earn_defaults(self) -> bool:
        """Give default rewards to the next decisions of the log whose reward window has passed."""
        window = self.settings.reward_window
        if window is None or self.settings.default_reward is None:
            return False
        before = now() - round(window * 1e6)
        due = [event for event in self.log.events(self.state.swept, DUE) if event.at < before]
        commands = [EarnDefaults(event.id) for event in due if event.kind == DECISION and event.id is not None]
        if commands:
            self._transaction(commands)
        if due:
            self.state.swept = due[-1].n
        return len(due) == DUE

    def _save_snapshot(self) -> None:
        self.log.save_snapshot(self.settings.key, self.state.n, self.state.to_bytes())
        self._snapshot = self.state.n

    def _now(self) -> int:
        self._latest = max(self._latest, now())
        return self._latest

    def _gone(self, error: Away) -> None:
        if self.away is None:
            say("store is away", level="error", why=str(error))
        self.away = str(error)

    def _back(self) -> None:
        if self.away is not None:
            say("store is back")
        self.away = None


def _resolve(pairs: list[tuple[asyncio.Future[Any], Result]]) -> None:
    for future, result in pairs:
        if future.done():  # the client has disconnected
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
