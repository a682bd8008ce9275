"""What a log of events can do, in the SQL that both databases speak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from banditree.errors import BanditreeError
from banditree.service.events import DECISION, Event

COLUMNS = "n, at, kind, id, position, arm, value, learned, body"
LIGHT = f"n, at, kind, id, position, arm, value, learned, CASE WHEN kind = '{DECISION}' THEN NULL ELSE body END"
CHUNK = 1000
TABLES = (
    "CREATE TABLE IF NOT EXISTS banditree_events (n BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL, "
    "id TEXT, position INTEGER NOT NULL, arm TEXT, value DOUBLE PRECISION, learned INTEGER NOT NULL, body TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS banditree_once ON banditree_events (id, kind, position)",
    "CREATE TABLE IF NOT EXISTS banditree_head (one INTEGER PRIMARY KEY, n BIGINT NOT NULL, at BIGINT NOT NULL)",
    "INSERT INTO banditree_head VALUES (1, 0, 0) ON CONFLICT DO NOTHING",
)


class Away(BanditreeError, RuntimeError):
    """The database cannot be reached or cannot write: nothing was kept, try again."""


class EventLog(Protocol):
    """A log of numbered events. One thread writes: ``begin``, then ``append`` and ``commit``, or ``rollback``.

    ``find``, ``tail`` and ``decisions`` belong to the writing thread, ``reading()`` gives others a log to read from.
    Whatever goes wrong with the database is raised as `Away`, and ``reopen`` starts afresh.
    """

    shared: bool  # whether other processes write to it too

    def begin(self) -> int: ...
    def last(self) -> int: ...
    def append(self, events: Sequence[Event]) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def reopen(self) -> None: ...
    def find(self, ids: Iterable[str]) -> dict[str, list[Event]]: ...
    def tail(self, after: int, *, whole: bool) -> Iterator[Event]: ...
    def events(self, after: int, most: int) -> list[Event]: ...
    def probe(self) -> None: ...
    def save_snapshot(self, key: str, n: int, data: bytes) -> None: ...
    def load_snapshot(self, key: str) -> bytes | None: ...
    def reading(self) -> EventLog: ...
    def close(self) -> None: ...


class SqlLog:
    """The statements. A database of its own kind says how they are run."""

    lock = ""  # what follows the SELECT that takes the head of the log for oneself
    blob = "BLOB"

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, written with question marks, and fetch its rows."""
        raise NotImplementedError

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        raise NotImplementedError

    def create(self) -> None:
        """Make the tables where they are missing."""
        for statement in TABLES:
            self.run(statement)
        self.run(
            "CREATE TABLE IF NOT EXISTS banditree_snapshots "
            f"(settings TEXT PRIMARY KEY, n BIGINT NOT NULL, data {self.blob} NOT NULL)"
        )

    def head(self) -> int:
        """The number of the last event, which nobody else can add to until the transaction ends."""
        return int(self.run(f"SELECT n FROM banditree_head WHERE one = 1{self.lock}")[0][0])

    def append(self, events: Sequence[Event]) -> None:
        """Add events, which have their numbers."""
        places = ", ".join("?" * 9)
        self.run_many(f"INSERT INTO banditree_events ({COLUMNS}) VALUES ({places})", [event.row() for event in events])
        self.run("UPDATE banditree_head SET n = ?, at = ? WHERE one = 1", (events[-1].n, events[-1].at))

    def find(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """All events of some decisions, in order."""
        found: dict[str, list[Event]] = defaultdict(list)
        wanted = sorted(set(ids))
        for start in range(0, len(wanted), CHUNK // 2):
            some = wanted[start : start + CHUNK // 2]
            places = ", ".join("?" * len(some))
            statement = f"SELECT {COLUMNS} FROM banditree_events WHERE id IN ({places}) ORDER BY n"
            for row in self.run(statement, some):
                event = Event.from_row(row)
                assert event.id is not None
                found[event.id].append(event)
        return found

    def last(self) -> int:
        """The number of the last event."""
        return int(self.run("SELECT n FROM banditree_head WHERE one = 1")[0][0])

    def tail(self, after: int, *, whole: bool) -> Iterator[Event]:
        """The events after one; the fold alone needs no bodies of decisions, ``whole`` has them too."""
        columns = COLUMNS if whole else LIGHT
        while rows := self.run(f"SELECT {columns} FROM banditree_events WHERE n > ? ORDER BY n LIMIT 5000", (after,)):
            yield from map(Event.from_row, rows)
            after = rows[-1][0]

    def events(self, after: int, most: int) -> list[Event]:
        """At most so many events after one, whole."""
        statement = f"SELECT {COLUMNS} FROM banditree_events WHERE n > ? ORDER BY n LIMIT ?"
        return [Event.from_row(row) for row in self.run(statement, (after, most))]

    def save_snapshot(self, key: str, n: int, data: bytes) -> None:
        """Keep a snapshot, unless there is a newer one; older ones of other settings stay, in case they come back."""
        self.run(
            "INSERT INTO banditree_snapshots (settings, n, data) VALUES (?, ?, ?) ON CONFLICT (settings) DO UPDATE "
            "SET n = excluded.n, data = excluded.data WHERE excluded.n > banditree_snapshots.n",
            (key, n, data),
        )

    def load_snapshot(self, key: str) -> bytes | None:
        rows = self.run("SELECT data FROM banditree_snapshots WHERE settings = ?", (key,))
        return bytes(rows[0][0]) if rows else None
