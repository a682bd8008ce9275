"""Send every event to all listeners, in order, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from banditree.service.events import NAMES, Event

BEAT = 15.0  # seconds without an event after which a comment is sent, so that the connection is not closed
WAITING = 1_000  # batches that may wait for a slow listener before it is disconnected

Told = list[tuple[int, str]]  # (number, text)


class Hub:
    """The listeners of one process."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Told | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = False

    def open(self) -> None:
        """Remember the event loop of the listeners, which is the one that runs now."""
        self._loop = asyncio.get_running_loop()

    def tell(self, events: Sequence[Event]) -> None:
        """Pass events to the listeners; called by the engine's thread."""
        if self._listeners and self._loop is not None and not self.closed:
            self._loop.call_soon_threadsafe(self._pass_on, _texts(events))

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for listener in self._listeners:
            listener.put_nowait(None)

    async def listen(self, missed: Callable[[], Awaitable[Sequence[Event]]]) -> AsyncIterator[str]:
        """Yield the stream of one listener: first the events that it missed, then new ones."""
        mine: asyncio.Queue[Told | None] = asyncio.Queue()
        self._listeners.add(mine)
        last = 0
        try:
            told: Told | None = _texts(await missed())
            yield ": banditree\n\n"
            while told is not None and not self.closed:
                if new := "".join(text for n, text in told if n > last):
                    yield new
                last = told[-1][0] if told else last
                try:
                    told = await asyncio.wait_for(mine.get(), BEAT)
                except TimeoutError:
                    told = []
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(mine)

    def _pass_on(self, told: Told) -> None:
        for listener in self._listeners:
            listener.put_nowait(told if listener.qsize() < WAITING else None)


def _texts(events: Sequence[Event]) -> Told:
    return [(event.n, text(event)) for event in events if event.kind in NAMES]


def text(event: Event) -> str:
    """Format an event to be sent."""
    return f"id: {event.n}\nevent: {NAMES[event.kind]}\ndata: {json.dumps(event.told())}\n\n"
