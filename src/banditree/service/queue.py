"""Where requests wait for the engine's thread: in order within an experiment, and in turn among experiments."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from banditree.service.commands import Command, Outcome

LINGER_SECONDS = 0.005  # that a command waits for others, so that they share one write to the disk
LEAST_SECONDS = 1e-4  # that a command is taken to need before one was timed
TURN_SECONDS = 0.05  # of commands taken at once, about, so that those of other experiments do not wait long


@dataclass(frozen=True)
class Waiting:
    """A command whose request waits for its outcome."""

    command: Command
    future: asyncio.Future[Outcome]
    is_gone: Callable[[], bool]  # whether its client has disconnected


class Queue:
    """Commands that wait for the thread. Experiments take turns by the time they use, not by requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Waiting]] = {}
        self._used: dict[str, float] = {}  # experiment -> seconds of the thread that it has used
        self._cost: dict[str, float] = {}  # experiment -> seconds that a command takes, about
        self._size = 0
        self._wanted = 1  # size that the thread waits for: it is woken once for a crowd, not for each of it
        self._is_closed = False

    def put(self, item: Waiting) -> None:
        with self._changed:
            name = item.command.experiment
            if name not in self._waiting:  # an experiment that had nothing to do does not save up time
                least = min((self._used.get(other, 0.0) for other in self._waiting), default=0.0)
                self._used[name] = max(self._used.get(name, 0.0), least)
                self._waiting[name] = deque()
            self._waiting[name].append(item)
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
        """Collect what waits, for about one turn. With something there, wait briefly for as many as ``crowd``."""
        with self._changed:
            self._wait_for(1, timeout)
            if self._waiting:
                self._wait_for(crowd, LINGER_SECONDS)
            batch: list[Waiting] = []
            seconds = 0.0
            while self._waiting and len(batch) < most and seconds < TURN_SECONDS:
                name = min(self._waiting, key=lambda name: self._used[name])
                items = self._waiting[name]
                batch.append(items.popleft())
                if not items:
                    del self._waiting[name]
                seconds += self._charge(name, self._cost.get(name, LEAST_SECONDS))
            self._size -= len(batch)
            return batch

    def note(self, experiment: str, seconds: float) -> None:
        """Note how long a command of an experiment took; `take` had counted what commands took before."""
        with self._changed:
            known = self._cost.get(experiment, LEAST_SECONDS)
            self._charge(experiment, seconds - known)
            self._cost[experiment] = known + (seconds - known) / 8

    def _charge(self, experiment: str, seconds: float) -> float:
        self._used[experiment] = self._used.get(experiment, 0.0) + seconds
        return seconds

    def _wait_for(self, wanted: int, timeout: float) -> None:
        self._wanted = wanted
        self._changed.wait_for(lambda: self._size >= wanted or self._is_closed, timeout)
