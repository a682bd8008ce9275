"""The fold of the log in this process: the states of all experiments, updated event by event."""

from __future__ import annotations

import base64
import gc
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection

from banditree.errors import InvalidValue
from banditree.service.events import Event, Kind, say, say_failure
from banditree.service.settings import Settings
from banditree.service.state import State, Voids, change_tree, fold, tree_of_fold
from banditree.service.store import EventLog, StoreUnavailable
from banditree.tree import Tree

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
        self.is_live = False  # whether folded events are news
        self._followed = 0.0  # when the log was last looked at

    def load(self, given: Mapping[str, Settings], snapshots: Snapshots) -> None:
        """Make the states, from snapshots where they are sound; ``given`` are settings that the log may not have."""
        known = {name: (settings, 0) for name, settings in given.items()} | known_settings(self.log)
        self.deleted = {event.experiment for event in self.log.of_kinds(Kind.DELETION)}
        for name in given:
            if name in self.deleted:
                what = f"the experiment {name!r} was deleted"
                raise InvalidValue(f"{what}; choose another name (in --config), or another --store")
        names = [name for name in known if name not in self.deleted]
        self.states = snapshots.restore(known, names)
        for name in names:
            if name not in self.states:
                self.states[name] = first_state(self.log, name, known[name][0])
        self.n = min((state.n for state in self.states.values()), default=0)

    def catch_up(self, wait: float = 0.0, *, least: float = 0.0) -> None:
        """Fold the events of other processes, up to the last before which none can still appear.

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
            is_shown = self.is_live and self.is_watched()
            needs_bodies = is_shown or any(state.needs_bodies for state in self.states.values())
            for page in self.log.pages(self.n, whole=needs_bodies, until=until):
                self.apply(page)
            self.until = until

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


MIN_EVENTS = 50_000  # in a log for which it is worth starting a process
FEW = 1_000  # events that the service may fold between two requests
SETTLED_SECONDS = 5.0  # to wait for the numbers of events to settle

Saved = tuple[int, Settings, int, bytes]  # the last event of a state, its settings, their event, and the state


def known_settings(log: EventLog, experiment: str | None = None) -> dict[str, tuple[Settings, int]]:
    """Return the settings of the experiments, or of one, as the log has them, each with the event that it is from."""
    known = {}
    for event in log.of_kinds(Kind.EXPERIMENT, Kind.SETTINGS, Kind.FOLD, experiment=experiment):
        if "settings" in (body := event.body or {}):
            known[event.experiment] = Settings(**body["settings"]), event.n
    return known


def first_state(log: EventLog, name: str, settings: Settings) -> State:
    """Return the state that an experiment's log begins with: nothing, but its last settings and all that was voided.

    The settings that are given are those of a log without any.
    """
    state = State(name, *known_settings(log, name).get(name, (settings, 0)))
    state.voids = Voids(log.of_kinds(Kind.VOID, experiment=name))
    return state


def pages_of(state: State, log: EventLog, until: int) -> Iterator[list[Event]]:
    """Yield the events of a state's experiment that it has not folded, up to one."""
    return log.pages(state.n, whole=state.needs_bodies, experiment=state.name, until=until)


class Refolds:
    """Folds stale experiments again, beside the traffic, and puts them in their places."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self._running: dict[str, Future[State]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether there is one to take over."""
        return any(folding.done() for folding in self._running.values())

    def take(self, states: dict[str, State], head: int) -> None:
        """Take over the states that are ready, and start with those that are stale."""
        for name, folding in list(self._running.items()):
            if not folding.done():
                continue
            del self._running[name]
            if (error := folding.exception()) is not None:
                say_failure("folding again", error)
            elif name in states:
                state = folding.result()
                for page in pages_of(state, self.log, head):
                    state.apply(page)
                states[name] = state
                say("folded again", experiment=name, n=head)
        for name, state in states.items():
            if state.is_stale and name not in self._running:
                self._running[name] = _start(fold_again, self.log.reader(), name, state.settings)


def _start(work: Callable[..., State], *args: object) -> Future[State]:
    """Start work in a thread of its own, which does not keep the process alive."""
    future: Future[State] = Future()

    def run() -> None:
        try:
            future.set_result(work(*args))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, name=f"banditree-{work.__name__}", daemon=True).start()
    return future


@contextmanager
def without_collecting() -> Iterator[None]:
    """Turn the garbage collector off: while a long log is folded, it would scan millions of rows for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def fold_again(open_log: Callable[[], EventLog], name: str, settings: Settings) -> State:
    """Return the state that an experiment's log folds to."""
    with closing(open_log()) as log:
        is_long = log.count("experiment = ?", (name,)) >= MIN_EVENTS
    may_start = not multiprocessing.current_process().daemon  # which may not have processes of its own
    n, settings, version, data = (_fold_apart if is_long and may_start else _fold)(open_log, name, settings)
    state = State.from_bytes(data, name, settings, version)
    state.n = n
    with closing(open_log()) as log:  # events that came in meanwhile, so that the service has little left to fold
        for page in pages_of(state, log, log.settled(SETTLED_SECONDS)):
            state.apply(page)
            if len(page) < FEW:  # under traffic there is always a next one
                break
    return state


def _fold(open_log: Callable[[], EventLog], name: str, settings: Settings) -> Saved:
    with closing(open_log()) as log:
        end = log.settled(SETTLED_SECONDS)  # before the voids are read: all that come before the end are known
        state = first_state(log, name, settings)
        for page in pages_of(state, log, end):
            state.apply(page)
    return state.n, state.settings, state.settings_version, state.to_bytes()


def _fold_apart(open_log: Callable[[], EventLog], name: str, settings: Settings) -> Saved:
    """Do it in another process: in this one, reading many rows and answering requests would wait for each other."""
    spawning = multiprocessing.get_context("spawn")
    receiver, sender = spawning.Pipe(duplex=False)
    process = spawning.Process(target=_send_fold, args=(sender, open_log, name, settings), daemon=True)
    with receiver:
        with sender:
            process.start()
        saved: Saved = receiver.recv()  # an EOFError if the process has died
    process.join()
    return saved


def _send_fold(sender: Connection, open_log: Callable[[], EventLog], name: str, settings: Settings) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends this process too
    with without_collecting(), sender, suppress(BrokenPipeError):
        sender.send(_fold(open_log, name, settings))


MAX_CHECKED = 200_000  # events behind a snapshot that are searched for some that it should hold


class Snapshots:
    """The snapshots in a store: of each experiment one for each key of its settings."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.n = 0  # the event at which they were last stored

    def restore(self, known: Mapping[str, tuple[Settings, int]], names: Sequence[str]) -> dict[str, State]:
        """Return the states of those experiments that have a sound snapshot."""
        saved = {name: self.log.load_snapshot(snapshot_key(name, known[name][0])) for name in names}
        head = self.log.last()  # read after the snapshots, as the trees are: other processes may just store some
        trees = self.log.of_kinds(Kind.ARMS, Kind.EXPERIMENT, Kind.FOLD)
        states = {}
        for name, data in saved.items():
            if data is None:
                continue
            settings, version = known[name]
            try:
                state = State.from_bytes(data[1], name, settings, version)
                self._check(state, data[0], head, [event for event in trees if event.experiment == name])
            except Exception as error:
                why = f"{error}; the log is folded from its beginning instead"
                say("snapshot ignored", level="warning", experiment=name, why=why)
                self.log.drop_snapshot(snapshot_key(name, settings))
                continue
            state.n = data[0]
            states[name] = state
            state.stored_at = state.changed_at
        return states

    def _check(self, state: State, n: int, head: int, trees: Sequence[Event]) -> None:
        """Raise an error if a snapshot after event ``n`` is not that of this log."""
        if not state.changed_at <= n <= head:
            raise InvalidValue(f"it is said to be that of event {n}, but goes up to event {state.changed_at}")
        last = [event.experiment for event in self.log.events(state.changed_at - 1, 1)]
        if last != [state.name]:
            raise InvalidValue(f"event {state.changed_at} of the log is not its last event")
        where = "n > ? AND n <= ? AND experiment = ?"
        if n - state.changed_at <= MAX_CHECKED and self.log.count(where, (state.changed_at, n, state.name)):
            raise InvalidValue("it lacks events of the log")
        tree: Tree | None = None
        for event in trees:
            if event.n <= n:
                body, is_fold = event.body or {}, event.kind == Kind.FOLD
                tree = tree_of_fold(base64.b64decode(body["state"])) if is_fold else change_tree(tree, body)
        if tree != state.policy.tree:
            raise InvalidValue("its tree is not that of the log")
        if not state.voids and not any(event.kind == Kind.FOLD for event in trees):
            decisions = self.log.count("kind = 'decision' AND experiment = ? AND n <= ?", (state.name, n))
            if decisions != state.decisions:
                raise InvalidValue(f"it has counted {state.decisions} decisions, the log {decisions}")

    def save(self, states: Mapping[str, State], n: int) -> None:
        """Store the states that have changed; of the others, say that they are still the same after event ``n``."""
        sound = {name: state for name, state in states.items() if not (state.is_stale or state.is_empty)}
        try:
            self.log.run("BEGIN")
            for name, state in sound.items():
                key = snapshot_key(name, state.settings)
                if state.stored_at == state.changed_at:
                    self.log.move_snapshot(key, n, since=state.changed_at)
                else:  # one that was just folded again may hold events of other processes after the last one here
                    self.log.save_snapshot(key, max(n, state.n), state.to_bytes())
            self.log.commit()
        finally:
            self.log.rollback()
        for state in sound.values():
            state.stored_at = state.changed_at
        self.n = n


def snapshot_key(name: str, settings: Settings) -> str:
    """Return the key of an experiment's snapshot."""
    return f"{name}/{settings.key}"
