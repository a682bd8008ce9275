"""Send every event to all listeners, in order, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from banditree.service.events import Event, Kind

BEAT_SECONDS = 15.0  # without an event for so long, a comment is sent, so that the connection is not closed
MAX_QUEUE_BYTES = 2**20  # texts that may wait for a slow listener before it is disconnected
MAX_LISTENERS = 100
PAGE_BYTES = 2**16  # missed events read at a time, about
MAX_PAGE = 500  # and at most this many
MAX_REPLAYED = 10_000  # missed events that a listener gets

Texts = list[tuple[int, str, str]]  # (number, experiment, text)


class _Queue:
    """The texts that wait for one listener; bounded in bytes, because one event can be a slate of a thousand arms."""

    def __init__(self) -> None:
        self.texts: Texts = []
        self.size = 0
        self.is_closed = False
        self.wakes = asyncio.Event()

    def put(self, texts: Texts) -> None:
        self.texts += texts
        self.size += sum(len(text) for _, _, text in texts)
        if self.size > MAX_QUEUE_BYTES:
            self.close()
        self.wakes.set()

    def close(self) -> None:
        self.is_closed = True
        self.texts = []
        self.wakes.set()

    def take(self) -> Texts:
        texts, self.texts, self.size = self.texts, [], 0
        self.wakes.clear()
        return texts


class Hub:
    """The listeners of one process."""

    def __init__(self) -> None:
        self._listeners: set[_Queue] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # of the listeners
        self.is_closed = False

    def has_listeners(self) -> bool:
        return bool(self._listeners)

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= MAX_LISTENERS

    def send(self, events: Sequence[Event]) -> None:
        """Pass events to the listeners; called by the engine's thread."""
        if self._listeners and self._loop is not None and not self.is_closed:
            self._loop.call_soon_threadsafe(self._pass_on, _texts(events))

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        for listener in self._listeners:
            listener.close()

    async def listen(
        self,
        last: int | None,
        read: Callable[[int, int], Awaitable[Sequence[Event]]],
        experiment: str | None = None,
    ) -> AsyncIterator[str]:
        """Yield the stream of one listener: the events after ``last`` that it missed, if any, then new ones.

        ``read(after, most)`` reads events of the log; ``experiment`` limits new ones to those of an experiment.
        """
        queue, self._loop = _Queue(), asyncio.get_running_loop()
        self._listeners.add(queue)
        try:
            yield ": banditree\n\n"
            if last is not None:
                end, most = last + MAX_REPLAYED, 1
                while last < end and (events := await read(last, most)):
                    last = events[-1].n
                    missed = "".join(text for _, _, text in _texts(events))
                    yield missed
                    fitting = PAGE_BYTES * len(events) // max(len(missed), 1)
                    most = max(1, min(2 * most, fitting, MAX_PAGE))
            while not queue.is_closed and not self.is_closed:
                texts = queue.take()
                new = [text for n, name, text in texts if (last is None or n > last) and experiment in (None, name)]
                if new:
                    yield "".join(new)
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        await queue.wakes.wait()
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(queue)

    def _pass_on(self, texts: Texts) -> None:
        for listener in self._listeners:
            if not listener.is_closed:
                listener.put(texts)


def _texts(events: Sequence[Event]) -> Texts:
    """Format events to be sent."""
    texts = []
    for event in events:
        if event.kind not in (Kind.WITHDRAWAL, Kind.EXPOSURE, Kind.TIME):
            name = Kind.REWARD if event.kind == Kind.DEFAULT else event.kind
            texts.append(
                (event.n, event.experiment, f"id: {event.n}\nevent: {name}\ndata: {json.dumps(event.shown())}\n\n")
            )
    return texts
