"""The log of numbered events: the SQL that all stores have in common, and the store in one SQLite file."""

from __future__ import annotations

import os
import secrets
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from banditree.base.files import find_target
from banditree.errors import BadPath, BanditreeError, InvalidValue
from banditree.service.events import Clock, Event, Kind, Record, now

COLUMNS = ", ".join(Event._fields)
LIGHT = COLUMNS.replace(
    "body", f"CASE WHEN kind = '{Kind.DECISION}' THEN NULL ELSE body END"
)  # the columns that a fold needs
CHUNK = 500  # ids looked up with one statement
PAGE = 2_000  # events read with one statement, few enough to stay in the processor's cache
TABLES = (
    "CREATE TABLE IF NOT EXISTS banditree_events (n BIGINT PRIMARY KEY, at BIGINT NOT NULL, kind TEXT NOT NULL, "
    "id TEXT, position INTEGER NOT NULL, arm TEXT, value DOUBLE PRECISION, learned INTEGER NOT NULL, body TEXT, "
    "experiment TEXT NOT NULL DEFAULT 'main', unit TEXT, cohort TEXT)",
    "CREATE TABLE IF NOT EXISTS banditree_head (one INTEGER PRIMARY KEY, n BIGINT NOT NULL, at BIGINT NOT NULL)",
    "INSERT INTO banditree_head VALUES (1, 0, 0) ON CONFLICT DO NOTHING",
    "CREATE TABLE IF NOT EXISTS banditree_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS banditree_kept (experiment TEXT NOT NULL, unit TEXT NOT NULL, id TEXT NOT NULL, "
    "at BIGINT NOT NULL, PRIMARY KEY (experiment, unit))",
    "CREATE UNIQUE INDEX IF NOT EXISTS banditree_once_each ON banditree_events (experiment, id, kind, position)",
    "CREATE INDEX IF NOT EXISTS banditree_units ON banditree_events (experiment, unit) WHERE unit IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS banditree_rare ON banditree_events (kind, n) WHERE id IS NULL",
)
# The decision that a unit keeps; nothing happens if it is no longer the one that was seen.
KEEP = (
    "INSERT INTO banditree_kept (experiment, unit, id, at) VALUES (?, ?, ?, ?) ON CONFLICT (experiment, unit) "
    "DO UPDATE SET id = excluded.id, at = excluded.at WHERE banditree_kept.id = ?"
)


class Kept(NamedTuple):
    """The decision that a unit keeps for a while."""

    experiment: str
    unit: str
    id: str
    at: int
    seen: str  # the one that it kept before, "" if none


class StoreUnavailable(BanditreeError, RuntimeError):
    """The database cannot be reached or cannot write. Nothing was stored; the same request may be sent again."""

    code = 503  # the HTTP status to answer with


class Conflict(Exception):
    """Another process has stored the same decision or reward, or an event that changes all. Nothing was stored."""


def unavailable(error: Exception) -> StoreUnavailable:
    """Make the error to raise for one of the database; its first line says enough."""
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return StoreUnavailable(f"the store cannot be used now: {first}")


class EventLog(ABC):
    """A log of numbered events. One thread writes: ``begin``, then ``append`` and ``commit``, or ``rollback``.

    Other threads read from the log that ``reading()`` returns. Errors of the database are raised as
    `StoreUnavailable`; ``reopen`` connects again.
    """

    is_shared: ClassVar[bool] = False  # whether other processes write too
    BLOB = "BLOB"
    MARK = "?"  # where a value goes in a statement
    ERRORS: type[Exception]  # the database's exceptions
    head = 0  # the last number that is known to have been given
    _connection: Any = None
    _clock: Clock

    @abstractmethod
    def now(self) -> int:
        """Return the time of the store's clock, in microseconds since 1970. It never goes back."""

    @abstractmethod
    def begin(self, *, alone: bool = False) -> int:
        """Begin a transaction; return the number of an event that must be folded before anything is stored.

        It is the last event that changed all, and if the transaction is ``alone``, with nobody else writing, the last
        of all. Everything up to it is settled.
        """

    @abstractmethod
    def append(self, events: Sequence[Event], keeps: Sequence[Kept] = ()) -> list[Event]:
        """Append events and what units keep; return them, with their numbers if nobody else writes.

        Raises `Conflict` if another process was first.
        """

    @abstractmethod
    def last(self) -> int:
        """Return the last number that was given to an event."""

    @abstractmethod
    def settled(self, wait: float = 0.0) -> int:
        """Return a number up to which no event is still to come; wait some seconds for the last one that was given."""

    def run(self, statement: str, values: Sequence[object] = ()) -> list[Record]:
        """Run one statement, written with question marks, and fetch its rows."""
        try:
            cursor = self._connection.execute(statement.replace("?", self.MARK), values)
            return cursor.fetchall() if cursor.description else []
        except self.ERRORS as error:
            raise unavailable(error) from error

    @abstractmethod
    def rollback(self) -> None:
        """Abandon the transaction, if there is one."""

    @abstractmethod
    def reopen(self) -> None:
        """Connect again after an error."""

    @abstractmethod
    def reader(self) -> Callable[[], EventLog]:
        """Return a function that opens another connection, to read from, in this process or in another one."""

    def reading(self) -> EventLog:
        """Open another connection, to read from."""
        self.check()
        return self.reader()()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def take_alone(self) -> None:  # noqa: B027
        """Refuse if a service uses the store, and keep others from it until it is closed."""

    def check(self) -> None:  # noqa: B027
        """Raise `StoreUnavailable` if writes would be lost without an error of the database."""

    def create(self) -> None:
        """Create missing tables, and upgrade a store of version 0.3."""
        for statement in TABLES:
            self.run(statement)
        self.run(
            "CREATE TABLE IF NOT EXISTS banditree_snapshots "
            f"(settings TEXT PRIMARY KEY, n BIGINT NOT NULL, data {self.BLOB} NOT NULL)"
        )
        salt = secrets.token_hex(16)
        self.run("INSERT INTO banditree_facts VALUES ('salt', ?) ON CONFLICT DO NOTHING", (salt,))
        if self.fact("kept") is None:
            self.run(
                "INSERT INTO banditree_kept SELECT experiment, unit, id, at FROM banditree_events WHERE n IN (SELECT "
                "MAX(n) FROM banditree_events WHERE kind = 'decision' AND unit IS NOT NULL GROUP BY experiment, unit)"
            )
            self.set_fact("kept", "yes")

    def commit(self) -> None:
        self.run("COMMIT")

    def probe(self) -> None:
        """Write something, to test whether that is possible."""
        self.run("UPDATE banditree_head SET at = at + 1 WHERE one = 1")

    def fact(self, name: str) -> str | None:
        """Return the value of a fact, if there is one."""
        rows = self.run("SELECT value FROM banditree_facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def drop_fact(self, name: str) -> None:
        """Delete a fact."""
        self.run("DELETE FROM banditree_facts WHERE name = ?", (name,))

    def set_fact(self, name: str, value: str) -> None:
        """Set the value of a fact."""
        change = "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self.run(f"INSERT INTO banditree_facts VALUES (?, ?) {change}", (name, value))

    def insert(self, events: Sequence[Event]) -> None:
        """Write events with the numbers that they have."""
        statement = f"INSERT INTO banditree_events ({COLUMNS}) VALUES ({', '.join([self.MARK] * len(Event._fields))})"
        try:
            self._connection.cursor().executemany(statement, [event.row() for event in events])
        except self.ERRORS as error:
            raise unavailable(error) from error

    def kept(self, experiment: str, units: Iterable[str]) -> dict[str, str]:
        """Return the decisions that some units keep, by unit."""
        wanted = sorted(set(units))
        ids: dict[str, str] = {}
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            where = f"experiment = ? AND unit IN ({', '.join('?' * len(some))})"
            rows = self.run(f"SELECT unit, id FROM banditree_kept WHERE {where}", (experiment, *some))
            ids |= dict(rows)
        return ids

    def find(self, experiment: str, ids: Iterable[str]) -> dict[str, list[Event]]:
        """Look up all events of some decisions, in order; decisions that do not exist have none."""
        events: dict[str, list[Event]] = defaultdict(list)
        wanted = sorted(set(ids))
        for start in range(0, len(wanted), CHUNK):
            some = wanted[start : start + CHUNK]
            where = f"experiment = ? AND id IN ({', '.join('?' * len(some))})"
            for event in self._select(f"{where} ORDER BY n", (experiment, *some)):
                assert event.id is not None
                events[event.id].append(event)
        return events

    def events(
        self, after: int, limit: int, experiment: str | None = None, *, until: int | None = None, columns: str = COLUMNS
    ) -> list[Event]:
        """Return up to ``limit`` events with ``after < n <= until``, in order."""
        where: str = "n > ?"
        values: list[object] = [after]
        if until is not None:
            where, values = f"{where} AND n <= ?", [*values, until]
        if experiment is not None:  # joined with '' so that no store takes its index, and sorts, but reads in order
            where, values = f"{where} AND experiment || '' = ?", [*values, experiment]
        return self._select(f"{where} ORDER BY n LIMIT {limit:d}", values, columns)

    def pages(
        self, after: int, *, whole: bool = False, experiment: str | None = None, until: int | None = None
    ) -> Iterator[list[Event]]:
        """Yield the same events in lists; decisions have a body only if ``whole``, because the fold needs none."""
        columns = COLUMNS if whole else LIGHT
        while page := self.events(after, PAGE, experiment, until=until, columns=columns):
            yield page
            after = page[-1].n

    def _select(self, where: str, values: Sequence[object], columns: str = COLUMNS) -> list[Event]:
        return Event.from_rows(self.run(f"SELECT {columns} FROM banditree_events WHERE {where}", values))

    def of_kinds(self, *kinds: str, experiment: str | None = None) -> list[Event]:
        """Return all events of these kinds, which must not be about single decisions; or those of one experiment."""
        where, values = f"id IS NULL AND kind IN ({', '.join('?' * len(kinds))})", [*kinds]
        if experiment is not None:
            where, values = f"{where} AND experiment = ?", [*values, experiment]
        return self._select(f"{where} ORDER BY n", values)

    def count(self, where: str, values: Sequence[object]) -> int:
        """Count the events that fulfil a condition."""
        return int(self.run(f"SELECT COUNT(*) FROM banditree_events WHERE {where}", values)[0][0])

    def save_snapshot(self, key: str, n: int, data: bytes) -> None:
        """Store a snapshot, unless there is a newer one. Those of other settings stay, in case they are used again."""
        self.run(
            "INSERT INTO banditree_snapshots (settings, n, data) VALUES (?, ?, ?) ON CONFLICT (settings) DO UPDATE "
            "SET n = excluded.n, data = excluded.data WHERE excluded.n >= banditree_snapshots.n",
            (key, n, data),
        )

    def move_snapshot(self, key: str, n: int, since: int) -> None:
        """Say that a snapshot after event ``since``, or a later one, is also right after event n."""
        self.run("UPDATE banditree_snapshots SET n = ? WHERE settings = ? AND n < ? AND n >= ?", (n, key, n, since))

    def drop_snapshot(self, key: str) -> None:
        """Remove the snapshot of these settings."""
        self.run("DELETE FROM banditree_snapshots WHERE settings = ?", (key,))

    def load_snapshot(self, key: str) -> tuple[int, bytes] | None:
        """Load the snapshot of these settings and the number of its last event, if there is one."""
        columns = f"CAST(n AS BIGINT), CAST(data AS {self.BLOB})"  # SQLite keeps values of any type in any column
        rows = self.run(f"SELECT {columns} FROM banditree_snapshots WHERE settings = ?", (key,))
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else None


class SqliteLog(EventLog):
    """The log in one SQLite file, for one process, with nothing to install.

    Uses write-ahead logging with full synchronisation: what was committed survives a crash and a power cut. Only one
    connection writes, because SQLite before 3.51.3 can damage the file when two connections checkpoint at once; the
    others read and never checkpoint.
    """

    ERRORS = sqlite3.Error

    def __init__(self, path: Path, *, reads_only: bool = False) -> None:
        self.path, self.reads_only = path.resolve(), reads_only
        self._lock = None if reads_only else _lock(self.path)
        self._clock = Clock(now())
        try:
            self._connection = self._open("rw" if reads_only else "rwc")
            if not reads_only:
                self.create()
        except BaseException:
            self.close()
            raise
        self._files = self._identities()

    def _open(self, mode: str) -> sqlite3.Connection:
        try:
            address = f"{self.path.as_uri()}?mode={mode}"
            connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=5)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except sqlite3.DatabaseError as error:
            raise BadPath(f"cannot use {self.path} as the store: {error}; give another file") from error
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self.reads_only:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            return
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        if (mode, synchronous) != ("wal", 2):
            raise BadPath(
                f"{self.path} is on a file system where SQLite cannot make commits durable (journal {mode}, "
                f"synchronous {synchronous}); put the store on a local disk"
            )

    def _identities(self) -> list[tuple[int, int] | None]:
        """Return the device and inode of the store's files; None for a missing one."""
        identities: list[tuple[int, int] | None] = []
        for name in (self.path.name, f"{self.path.name}-wal"):
            try:
                status = self.path.with_name(name).stat()
                identities.append((status.st_dev, status.st_ino))
            except OSError:
                identities.append(None)
        return identities

    def check(self) -> None:
        """Raise `StoreUnavailable` if a file of the store was deleted or replaced: SQLite would go on writing to it."""
        if self._files != self._identities():
            raise StoreUnavailable(
                f"the store {self.path}, or the -wal file beside it, was deleted or replaced while it was in use; what "
                "is written now would be lost. Put the files back and restart the service"
            )

    def now(self) -> int:
        return self._clock.now(now())

    def begin(self, *, alone: bool = False) -> int:
        self.run("BEGIN IMMEDIATE")
        return self.last()

    def append(self, events: Sequence[Event], keeps: Sequence[Kept] = ()) -> list[Event]:
        last = self.last()
        stored = [event._replace(n=last + place) for place, event in enumerate(events, 1)]
        self.insert(stored)
        for kept in keeps:
            self.run(KEEP, kept)
        self.head = stored[-1].n
        self.run("UPDATE banditree_head SET n = ?, at = ? WHERE one = 1", (self.head, stored[-1].at))
        return stored

    def last(self) -> int:
        self.head = int(self.run("SELECT n FROM banditree_head WHERE one = 1")[0][0])
        return self.head

    def settled(self, wait: float = 0.0) -> int:
        return self.last()

    def commit(self) -> None:
        super().commit()
        self.check()  # before an answer is sent: a deleted file would lose its event

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def reopen(self) -> None:
        self.check()
        self._connection.close()
        try:
            self._connection = self._open("rw")  # never a new, empty store
            self.last()
            self._files = self._identities()
        except BadPath as error:
            raise StoreUnavailable(str(error)) from error

    def reader(self) -> Callable[[], EventLog]:
        return partial(SqliteLog, self.path, reads_only=True)

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(path: Path) -> int:
    """Take the lock that lasts as long as the process, on a file next to the store, which SQLite does not lock."""
    lock_file = path.with_name(path.name + ".lock")
    if path.exists() and path.stat().st_nlink > 1:
        raise InvalidValue(
            f"{path} has another name (a hard link), under which it may be in use; SQLite keeps what is not yet in the "
            "file beside each name. Remove the other name, or copy the file"
        )
    try:
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise BadPath(f"cannot write {lock_file}: {error.strerror}") from error
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InvalidValue(
            f"another banditree process is using {path}; stop it first, or give --store postgresql://... for several"
        ) from None
    return lock


def open_log(store: str) -> EventLog:
    """Open the log at a path or an address."""
    if store.startswith(("postgresql://", "postgres://")):
        from banditree.service.store_postgres import PostgresLog

        return PostgresLog(store)
    return SqliteLog(find_target(store))
