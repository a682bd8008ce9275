"""The log of numbered events, in the SQL that SQLite and PostgreSQL have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from banditree.errors import BanditreeError
from banditree.service.events import DECISION, Event

COLUMNS = "n, at, kind, id, position, arm, value, learned, body"
LIGHT = f"n, at, kind, id, position, arm, value, learned, CASE WHEN kind = '{DECISION}' THEN NULL ELSE body END"
CHUNK = 500  # ids looked up with one statement
TABLES = (
    "CREATE TABLE IF NOT EXISTS banditree_events (n BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL, "
    "id TEXT, position INTEGER NOT NULL, arm TEXT, value DOUBLE PRECISION, learned INTEGER NOT NULL, body TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS banditree_once ON banditree_events (id, kind, position)",
    "CREATE TABLE IF NOT EXISTS banditree_head (one INTEGER PRIMARY KEY, n BIGINT NOT NULL, at BIGINT NOT NULL)",
    "INSERT INTO banditree_head VALUES (1, 0, 0) ON CONFLICT DO NOTHING",
)


class Away(BanditreeError, RuntimeError):
    """The database cannot be reached or cannot write. Nothing was stored; the same request may be sent again."""


class EventLog(ABC):
    """A log of numbered events. One thread writes: ``begin``, then ``append`` and ``commit``, or ``rollback``.

    Other threads read from the log that ``reading()`` returns. Errors of the database are raised as `Away`; ``reopen``
    connects again.
    """

    BEGIN = "BEGIN"
    LOCK = ""  # added to the SELECT that reserves the end of the log for this transaction
    BLOB = "BLOB"

    @abstractmethod
    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, written with question marks, and fetch its rows."""

    @abstractmethod
    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run one statement for each of the rows."""

    @abstractmethod
    def rollback(self) -> None:
        """Abandon the transaction, if there is one."""

    @abstractmethod
    def reopen(self) -> None:
        """Connect again after an error."""

    @abstractmethod
    def reading(self) -> EventLog:
        """Open a second connection, to read from."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def create(self) -> None:
        """Create the tables that do not exist yet."""
        for statement in TABLES:
            self.run(statement)
        self.run(
            "CREATE TABLE IF NOT EXISTS banditree_snapshots "
            f"(settings TEXT PRIMARY KEY, n BIGINT NOT NULL, data {self.BLOB} NOT NULL)"
        )

    def begin(self) -> int:
        """Begin a transaction; return the number of the last event, after which only this transaction can append."""
        self.run(self.BEGIN)
        return self.last(self.LOCK)

    def commit(self) -> None:
        self.run("COMMIT")

    def probe(self) -> None:
        """Write something, to test whether that is possible."""
        self.run("UPDATE banditree_head SET at = at + 1 WHERE one = 1")

    def last(self, lock: str = "") -> int:
        """Return the number of the last event."""
        return int(self.run(f"SELECT n FROM banditree_head WHERE one = 1{lock}")[0][0])

    def append(self, events: Sequence[Event]) -> None:
        """Append events, which already have their numbers."""
        places = ", ".join("?" * 9)
        self.run_many(f"INSERT INTO banditree_events ({COLUMNS}) VALUES ({places})", [event.row() for event in events])
        self.run("UPDATE banditree_head SET n = ?, at = ? WHERE one = 1", (events[-1].n, events[-1].at))

    def find(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Look up all events of some decisions, in order; decisions that do not exist have none."""
        found: dict[str, list[Event]] = defaultdict(list)
        wanted = sorted(set(ids))
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            places = ", ".join("?" * len(some))
            statement = f"SELECT {COLUMNS} FROM banditree_events WHERE id IN ({places}) ORDER BY n"
            for row in self.run(statement, some):
                event = Event.from_row(row)
                assert event.id is not None
                found[event.id].append(event)
        return found

    def tail(self, after: int, *, whole: bool) -> Iterator[Event]:
        """Yield the events after this one; decisions have a body only if ``whole``, because the fold needs none."""
        columns = COLUMNS if whole else LIGHT
        while rows := self.run(f"SELECT {columns} FROM banditree_events WHERE n > ? ORDER BY n LIMIT 5000", (after,)):
            yield from map(Event.from_row, rows)
            after = rows[-1][0]

    def events(self, after: int, most: int) -> list[Event]:
        """Return at most so many of the events after this one."""
        statement = f"SELECT {COLUMNS} FROM banditree_events WHERE n > ? ORDER BY n LIMIT ?"
        return [Event.from_row(row) for row in self.run(statement, (after, most))]

    def save_snapshot(self, key: str, n: int, data: bytes) -> None:
        """Store a snapshot, unless there is a newer one. Those of other settings stay, in case they are used again."""
        self.run(
            "INSERT INTO banditree_snapshots (settings, n, data) VALUES (?, ?, ?) ON CONFLICT (settings) DO UPDATE "
            "SET n = excluded.n, data = excluded.data WHERE excluded.n > banditree_snapshots.n",
            (key, n, data),
        )

    def load_snapshot(self, key: str) -> bytes | None:
        """Load the snapshot of these settings, if there is one."""
        rows = self.run("SELECT data FROM banditree_snapshots WHERE settings = ?", (key,))
        return bytes(rows[0][0]) if rows else None
