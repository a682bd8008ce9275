"""Fold an experiment from its log: without what was voided, with its last settings, and beside the traffic."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from banditree.service.events import Event, Kind, say, say_failure
from banditree.service.settings import Settings
from banditree.service.state import State, Voids
from banditree.service.store import EventLog

MIN_EVENTS = 50_000  # in a log for which it is worth starting a process
FEW = 1_000  # events that the service may fold between two requests
SETTLED_SECONDS = 5.0  # to wait for the numbers of events to settle

Saved = tuple[int, Settings, int, bytes]  # the last event of a state, its settings, their event, and the state


def known_settings(log: EventLog) -> dict[str, tuple[Settings, int]]:
    """Return the settings of the experiments as the log has them, each with the event that it is from."""
    known = {}
    for event in log.of_kinds(Kind.EXPERIMENT, Kind.SETTINGS, Kind.FOLD):
        if "settings" in (body := event.body or {}):
            known[event.experiment] = Settings(**body["settings"]), event.n
    return known


def first_state(log: EventLog, name: str, settings: Settings) -> State:
    """Return the state that an experiment's log begins with: nothing, but its last settings and all that was voided.

    The settings that are given are those of a log without any.
    """
    state = State(name, *known_settings(log).get(name, (settings, 0)))
    state.voids = Voids(event for event in log.of_kinds(Kind.VOID) if event.experiment == name)
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

    def take(self, states: dict[str, State], head: int) -> list[str]:
        """Take over the states that are ready, start with those that are stale, and name the former."""
        taken = []
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
                taken.append(name)
                say("folded again", experiment=name, n=head)
        for name, state in states.items():
            if state.is_stale and name not in self._running:
                self._running[name] = _start(fold_again, self.log.reader(), name, state.settings)
        return taken


def _start(work: Callable[..., State], *args: Any) -> Future[State]:
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
    """Turn the garbage collector off: while a long log is folded, it looks through millions of rows in vain."""
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
    with closing(open_log()) as log:  # what has come in meanwhile, so that the service has little left to fold
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
