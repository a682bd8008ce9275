"""The one thread that decides, stores and learns. An answer is sent only after its events are stored."""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from banditree.errors import BanditreeError, InvalidValue
from banditree.service.archive import DELETED_AT_ONCE, Archive, Move, base_key, first_state
from banditree.service.commands import Command, EarnDefaults, Outcome, PutExperiment, Refused, first_events
from banditree.service.events import Event, Kind, now, say, say_failure
from banditree.service.refold import fold_again, without_collecting
from banditree.service.settings import Plan, Settings
from banditree.service.state import State, change_tree, fold
from banditree.service.store import EventLog, StoreUnavailable

BATCH = 256  # commands in one transaction, at most
BATCH_SECONDS = 0.5  # after which a transaction ends, so that other processes do not wait long for the end of the log
SNAPSHOT_EVERY = 50_000  # events between two snapshots
TICK_SECONDS = 0.25  # between checks for events of other processes and for reward windows that have passed
LINGER_SECONDS = 0.005  # that a command waits for others, so that they share one write to the disk
DUE = 500  # decisions examined at a time for default rewards
ARCHIVE_SECONDS = 60.0  # between two looks for old events
MAX_CHECKED = 200_000  # events behind a snapshot that are searched for some that it should hold

Result = Outcome | Exception
T = TypeVar("T")


@dataclass(frozen=True)
class Waiting:
    """A command whose request waits for its outcome."""

    command: Command
    future: asyncio.Future[Outcome]
    is_gone: Callable[[], bool]  # whether its client has disconnected


class Queue:
    """What waits for the thread: in order within an experiment, and taken from all experiments in turn."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Waiting]] = {}
        self._size = 0
        self._wanted = 1  # size that the thread waits for: it is woken once for a crowd, not for each of it
        self._is_closed = False

    def put(self, item: Waiting) -> None:
        with self._changed:
            self._waiting.setdefault(item.command.experiment, deque()).append(item)
            self._size += 1
            if self._size >= self._wanted:
                self._changed.notify()

    def close(self) -> None:
        """Let `take` return what is left, and then nothing."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    @property
    def is_done(self) -> bool:
        """Whether it was closed, and nothing is left."""
        return self._is_closed and not self._waiting

    def take(self, most: int, timeout: float, crowd: int) -> list[Waiting]:
        """Collect what waits. With something there, wait briefly until there are as many as ``crowd``."""
        with self._changed:
            self._wait_for(1, timeout)
            if self._waiting:
                self._wait_for(crowd, LINGER_SECONDS)
            batch: list[Waiting] = []
            while self._waiting and len(batch) < most:
                for name in list(self._waiting):
                    items = self._waiting[name]
                    batch.append(items.popleft())
                    if not items:
                        del self._waiting[name]
            self._size -= len(batch)
            return batch

    def _wait_for(self, wanted: int, timeout: float) -> None:
        self._wanted = wanted
        self._changed.wait_for(lambda: self._size >= wanted or self._is_closed, timeout)


class Engine:
    """Runs commands in order. ``watch(events, own)`` is called with events that were folded, in order."""

    def __init__(self, log: EventLog, archive: Archive | None = None) -> None:
        self.log, self.archive = log, archive
        self.watch: Callable[[Sequence[Event], bool], None] | None = None
        self.states: dict[str, State] = {}
        self.unavailable: str | None = None  # why the database cannot be used; None while it can
        self.n = 0  # the last event folded
        self.head = 0  # the last event of the log that this process knows of
        self.salt = ""
        self._plans: dict[str, Plan] = {}
        self._snapshot = 0  # the event at which snapshots were last stored
        self._stored: dict[str, int] = {}  # experiment -> its last event in its snapshot
        self._latest = 0  # times never go back
        self._queue = Queue()
        self._thread = threading.Thread(target=self._loop, name="banditree-engine", daemon=True)
        self._folding = threading.Lock()  # held while events change the states
        self._crowd = 0  # number of commands to wait for
        self._refolding: dict[str, tuple[int, Future[State]]] = {}  # with the last event that was archived before
        self._archiving: Future[Move | None] | None = None
        self._archive_next = 0.0  # time of the next look for old events
        self._deleted = 0  # archived events up to this one are deleted
        self._scanned = 0  # decisions up to this event were examined for default rewards
        self._due: list[tuple[int, int, str, str]] = []  # heap of time, n, experiment and id

    # Starting and stopping

    def start(self, plans: Sequence[Plan]) -> None:
        """Fold the log and start the thread; experiments that the log does not have get their catalogues."""
        began = time.perf_counter()
        self._plans = {plan.name: plan for plan in plans}
        self.salt = str(self.log.fact("salt"))
        with without_collecting():
            while True:
                archived = self.log.archived
                self._load()
                from_snapshot = self.n
                self._catch_up()  # most of the log, while other processes go on writing
                if self.log.archived == archived:  # none of them has moved events meanwhile
                    break
        try:
            self.head = self.log.begin()
            self._follow()
            events = [event for plan in plans for event in first_events(plan, self.states[plan.name], self._now())]
            if events:
                self._keep(events)
        finally:
            self.log.rollback()
        took = round(time.perf_counter() - began, 3)
        left_out = sum(state.left_out for state in self.states.values())
        said: dict[str, Any] = {"left_out": left_out} if left_out else {}
        say("started", events=self.n, from_snapshot=from_snapshot, experiments=len(self.states), seconds=took, **said)
        self._scanned = max(int(self.log.fact("swept") or 0), self.log.archived)
        if self.n - from_snapshot >= SNAPSHOT_EVERY:
            self._save_snapshots()
        self._thread.start()

    def _load(self) -> None:
        """Make the states of all experiments, from their snapshots where those are sound."""
        settings = {name: plan.settings for name, plan in self._plans.items()}
        for event in self.log.of_kinds(Kind.EXPERIMENT):
            if event.experiment not in settings:
                settings[event.experiment] = Settings(**(event.body or {})["settings"])
        saved = {name: self.log.load_snapshot(snapshot_key(name, its)) for name, its in settings.items()}
        self.head = self.log.last()  # read after the snapshots, as the trees are: other processes may just store some
        trees = self.log.of_kinds(Kind.ARMS, Kind.EXPERIMENT)
        for name, its in settings.items():
            state = self._restore(name, its, saved[name], [event for event in trees if event.experiment == name])
            self.states[name] = state or first_state(self.log, name, its)
            self._stored[name] = self.states[name].changed_at
        self.n = self._snapshot = min((state.n for state in self.states.values()), default=0)

    def _restore(
        self, name: str, settings: Settings, saved: tuple[int, bytes] | None, trees: Sequence[Event]
    ) -> State | None:
        """Restore a snapshot, or return None if there is none that fits the log."""
        if saved is None:
            return None
        try:
            state = State.from_bytes(saved[1], name, settings)
            self._check(state, saved[0], trees)
        except Exception as error:
            why = f"{error}; the log is folded from its beginning instead"
            say("snapshot ignored", level="warning", experiment=name, why=why)
            self.log.drop_snapshot(snapshot_key(name, settings))
            return None
        state.n = saved[0]
        return state

    def _check(self, state: State, n: int, trees: Sequence[Event]) -> None:
        """Raise an error if a snapshot after event ``n`` is not that of this log."""
        if not state.changed_at <= n <= self.head:
            raise InvalidValue(f"it is said to be that of event {n}, but goes up to event {state.changed_at}")
        archived = self.log.archived
        if n < archived:
            raise InvalidValue(f"it is that of event {n}, and later ones, up to {archived}, are in the archive")
        last = [event.experiment for event in self.log.events(state.changed_at - 1, 1)]
        if state.changed_at > archived and last != [state.name]:
            raise InvalidValue(f"event {state.changed_at} of the log is not its last event")
        where = "n > ? AND n <= ? AND experiment = ?"
        if n - state.changed_at <= MAX_CHECKED and self.log.count(where, (state.changed_at, n, state.name)):
            raise InvalidValue("it lacks events of the log")
        tree = None
        for event in trees:
            if event.n <= n:
                tree = change_tree(tree, event.body or {})
        if tree != state.policy.tree:
            raise InvalidValue("its tree is not that of the log")
        if not state.voids and not archived:
            decisions = self.log.count("kind = 'decision' AND experiment = ? AND n <= ?", (state.name, n))
            if decisions != state.decisions:
                raise InvalidValue(f"it has counted {state.decisions} decisions, the log {decisions}")

    def stop(self) -> None:
        """Finish the waiting commands, store a snapshot and close the log."""
        self._queue.close()
        self._thread.join()
        try:
            if self.n > self._snapshot and self.unavailable is None:
                self._save_snapshots()
        except StoreUnavailable as error:
            say("no snapshot", level="warning", why=str(error))
        self.log.close()

    # Called by the requests

    async def do(self, command: Command, is_gone: Callable[[], bool] = lambda: False) -> Outcome:
        """Run a command; returns once its events are stored."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue.put(Waiting(command, future, is_gone))
        return await future

    async def look(self, view: Callable[[State], T], state: State) -> T:
        """Compute something from a state while no event changes it."""

        def compute() -> T:
            with self._folding:
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
                is_folded = any(folding.done() for _, folding in self._refolding.values())
                if is_folded or time.monotonic() - ticked >= TICK_SECONDS:
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
        gone = [waiting for waiting in part if waiting.is_gone()]
        self._refuse(gone, Refused(503, "the client has gone; nothing was decided"))
        return [waiting for waiting in part if waiting not in gone] if gone else part

    def _transaction(self, commands: Sequence[Command]) -> list[Result]:
        """Run as many of the commands as there is time for, and store their events."""
        self._catch_up()  # before the end of the log is reserved, because it may take a while
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
        histories = self._find(commands)
        at = self._now()
        end = time.monotonic() + BATCH_SECONDS
        results: list[Result] = []
        events: list[Event] = []
        for command in commands:
            if results and time.monotonic() > end:
                break
            name = command.experiment
            try:
                if name not in self.states and not isinstance(command, PutExperiment):
                    raise Refused(404, f"there is no experiment {name!r}")
                state = self.states.get(name) or State(name, Settings())
                history = [event for id_ in command.ids(state) for event in histories.get((name, id_), ())]
                outcome = command.run(state, history, at, self.log)
            except StoreUnavailable:
                raise
            except (Refused, BanditreeError) as error:
                results.append(error if isinstance(error, Refused) else Refused(422, str(error)))
                continue
            results.append(outcome)
            for event in outcome.events:
                events.append(event)
                if event.id is not None:  # later commands see it, with the number that it will get
                    numbered = event._replace(n=self.n + len(events))
                    histories.setdefault((event.experiment, event.id), []).append(numbered)
        return results, events

    def _find(self, commands: Sequence[Command]) -> dict[tuple[str, str], list[Event]]:
        """Look up the events of the decisions that commands are about, by experiment and id."""
        ids: dict[str, list[str]] = {}
        for command in commands:
            state = self.states.get(command.experiment)
            if state is not None:
                ids.setdefault(command.experiment, []).extend(command.ids(state))
        return {(name, id_): events for name, some in ids.items() for id_, events in self.log.find(name, some).items()}

    def _keep(self, events: Sequence[Event]) -> None:
        """Number events and commit them, and only then learn from them."""
        numbered = [event._replace(n=self.n + place) for place, event in enumerate(events, 1)]
        self.log.append(numbered)
        self.log.commit()
        self._fold(numbered)
        self.head = self.n
        self._show(numbered, own=True)

    def _catch_up(self) -> None:
        """Fold what other processes have written, without reserving the end of the log."""
        self.head = max(self.head, self.log.last())
        self._follow()

    def _follow(self) -> None:
        """Fold the events up to the head of the log: those of other processes, or from before the start."""
        if self.head < self.n:
            raise StoreUnavailable(
                f"the log ends at event {self.head}, but event {self.n} was stored; the store has lost events or was "
                "replaced by an older copy. Restart the service to go on from what is there"
            )
        if self.n < self.head:
            if self._thread.is_alive() and self.n < (archived := self.log.archived):
                raise StoreUnavailable(
                    f"events up to {archived} were archived before this process had read those after {self.n}. Restart "
                    "the service to go on from what they fold to"
                )
            for page in self.log.pages(self.n, whole=self._thread.is_alive()):
                self._fold(page)
                for start in range(0, len(page), BATCH):
                    self._show(page[start : start + BATCH])
            self.n = self.head = max(self.head, self.n)  # the last ones may have been moved to the archive

    def _fold(self, events: Sequence[Event]) -> None:
        """Apply events to their experiments, some of which they may create."""
        with self._folding:
            for event in events:
                if event.kind == Kind.EXPERIMENT and event.experiment not in self.states:
                    settings = Settings(**(event.body or {})["settings"])
                    self.states[event.experiment] = State(event.experiment, settings)
                    self._stored[event.experiment] = 0
            fold(self.states, events)
        self.n = events[-1].n

    def _show(self, events: Sequence[Event], *, own: bool = False) -> None:
        if self.watch is not None and events and self._thread.is_alive():
            self.watch(events, own)

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
            self.head = self.log.last()
            self._follow()
            self._refold()
            self._move_old_events()
            has_more = self._earn_defaults()
            self._set_available()
            if self.n - self._snapshot >= SNAPSHOT_EVERY:
                self._save_snapshots()
            return has_more
        except StoreUnavailable as error:
            self._set_unavailable(error)
            return False

    def _earn_defaults(self) -> bool:
        """Give default rewards to decisions whose reward window has passed; returns whether more are to be examined.

        Times in the log need not be in order, because processes have different clocks: each decision waits for its own
        time.
        """
        windows = self._default_windows()
        if not windows:
            return False
        end = min(self._scanned + DUE, self.n)
        for n, at, name, id_ in self.log.decisions(self._scanned, end - self._scanned):
            if name in windows:
                heapq.heappush(self._due, (at + windows[name], n, name, id_))
        self._scanned = end
        due: list[tuple[int, int, str, str]] = []
        time_now = now()
        while self._due and self._due[0][0] < time_now and len(due) < DUE:
            due.append(heapq.heappop(self._due))
        try:
            while due:
                commands = [EarnDefaults(id_, experiment=name) for _, _, name, id_ in due]
                due = due[len(self._transaction(commands)) :]
        finally:
            for decision in due:  # the store is away: they wait for it
                heapq.heappush(self._due, decision)
        return self._scanned < self.n or bool(self._due and self._due[0][0] < time_now)

    def _default_windows(self) -> dict[str, int]:
        """Return the reward windows, in microseconds, of the experiments that have a default reward."""
        return {
            name: round(state.settings.reward_window * 1e6)
            for name, state in self.states.items()
            if state.settings.default_reward is not None and state.settings.reward_window is not None
        }

    @property
    def _swept(self) -> int:
        """The last event up to which all decisions have got their default rewards."""
        return min((n for _, n, _, _ in self._due), default=self._scanned + 1) - 1

    def _save_snapshots(self) -> None:
        """Store the state of every experiment that has changed."""
        try:
            self.log.run(self.log.BEGIN)
            for name, state in self.states.items():
                key = snapshot_key(name, state.settings)
                if state.is_stale or state.is_empty:
                    continue
                if state.changed_at > self._stored[name]:
                    # One that was just folded again may hold events of other processes after the last one here.
                    self.log.save_snapshot(key, max(self.n, state.n), state.to_bytes())
                else:
                    self.log.move_snapshot(key, self.n, since=self._stored[name])
            self.log.set_fact("swept", str(self._swept))
            self.log.commit()
        finally:
            self.log.rollback()
        self._stored |= {name: state.changed_at for name, state in self.states.items() if not state.is_stale}
        self._snapshot = self.n

    # Voided decisions: the experiment is folded again without them, beside the traffic

    def _refold(self) -> None:
        """Put states that were folded again in their places, and start to fold those that are stale."""
        for name, (archived, folding) in list(self._refolding.items()):
            if not folding.done():
                continue
            del self._refolding[name]
            if (error := folding.exception()) is not None:
                say_failure("folding again", error)
                continue
            state = folding.result()
            for page in self.log.pages(state.n, experiment=name):
                state.apply(page)
            if self.log.archived != archived:
                continue  # events were moved while it was folded, which may lack some: it is folded once more
            self.states[name] = state
            self._stored[name] = 0
            say("folded again", experiment=name, n=self.n)
        for name, state in self.states.items():
            if state.is_stale and name not in self._refolding:
                self._refolding[name] = self.log.archived, _start(fold_again, self.log.reader(), name, state.settings)

    # Old events: they go to files, and are replaced by what they fold to

    def _move_old_events(self) -> None:
        """Archive old events now and then; once they are written, store their fold, and delete them in parts."""
        if self.archive is None:
            return
        if self._archiving is not None and self._archiving.done():
            writing, self._archiving = self._archiving, None
            error = writing.exception()
            if isinstance(error, BanditreeError):
                say("not archived", level="warning", why=str(error))
            elif error is not None:
                say_failure("archive", error)
            elif (move := writing.result()) is not None:
                self._note_archived(move)
        archived = self.log.archived
        if self._deleted < archived:
            first = self.log.run("SELECT MIN(n) FROM banditree_events WHERE id IS NOT NULL")[0][0]
            until = archived if first is None else min(int(first) + DELETED_AT_ONCE, archived)
            self.log.run("DELETE FROM banditree_events WHERE id IS NOT NULL AND n <= ?", (until,))
            self._deleted = until
        elif self._archiving is None and time.monotonic() >= self._archive_next:
            self._archive_next = time.monotonic() + ARCHIVE_SECONDS
            settings = {name: state.settings for name, state in self.states.items()}
            limit = self._swept if self._default_windows() else self.n
            self._archiving = _start(self.archive.write, self.log.reader(), settings, limit)

    def _note_archived(self, move: Move) -> None:
        """Store the fold of archived events, unless a void came in between, or another process was faster."""
        states = move.states
        try:
            self.head = self.log.begin()
            self._follow()
            is_same = all(self.states[name].voids.to_list() == state.voids.to_list() for name, state in states.items())
            if is_same and self.log.archived == move.after:
                for name, state in states.items():
                    self.log.save_snapshot(base_key(name, state.settings), move.end, state.to_bytes())
                self.log.set_fact("archived", str(move.end))
                move.written.replace(move.file)
                self.log.commit()
                say("archived", file=str(move.file), up_to=move.end)
        finally:
            self.log.rollback()
            move.written.unlink(missing_ok=True)  # does nothing to one that has got its name

    def _now(self) -> int:
        self._latest = max(self._latest, now())
        return self._latest

    def _set_unavailable(self, error: StoreUnavailable) -> None:
        if self.unavailable is None:
            say("store unavailable", level="error", why=str(error))
        self.unavailable = str(error)

    def _set_available(self) -> None:
        if self.unavailable is not None:
            say("store available")
        self.unavailable = None


def snapshot_key(name: str, settings: Settings) -> str:
    """Return the key of an experiment's snapshot."""
    return f"{name}/{settings.key}"


def _start(work: Callable[..., T], *args: Any) -> Future[T]:
    """Start work in a thread of its own, which does not keep the process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work(*args))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, name=f"banditree-{work.__name__}", daemon=True).start()
    return future


def _resolve(pairs: Sequence[tuple[Waiting, Any]]) -> None:
    for waiting, result in pairs:
        if waiting.future.done():  # the client has disconnected
            continue
        if isinstance(result, Exception):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)
