"""Fold an experiment again without what was voided; a long log in a process of its own, beside the traffic."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection

from banditree.service.archive import first_state
from banditree.service.settings import Settings
from banditree.service.state import State
from banditree.service.store import EventLog

MIN_EVENTS = 50_000  # in a log for which it is worth starting a process
FEW = 1_000  # events that the service may fold between two requests

Saved = tuple[int, bytes]  # the last event of a state, and the state


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
        is_long = log.last() - log.archived >= MIN_EVENTS
    may_start = not multiprocessing.current_process().daemon  # which may not have processes of its own
    n, data = (_fold_apart if is_long and may_start else _fold)(open_log, name, settings)
    state = State.from_bytes(data, name, settings)
    state.n = n
    with closing(open_log()) as log:  # what has come in meanwhile, so that the service has little left to fold
        for page in log.pages(n, experiment=name):
            state.apply(page)
            if len(page) < FEW:  # under traffic there is always a next one
                break
    return state


def _fold(open_log: Callable[[], EventLog], name: str, settings: Settings) -> Saved:
    with closing(open_log()) as log:
        end = log.last()  # before the voids are read: all that come before the end are known
        state = first_state(log, name, settings)
        for page in log.pages(state.n, experiment=name, until=end):
            state.apply(page)
    return state.n, state.to_bytes()


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
