"""The log in one SQLite file: for one process, with nothing to install."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from banditree.errors import BadPath, InvalidValue
from banditree.service.store import Away, EventLog, SqlLog

T = TypeVar("T")


class SqliteLog(SqlLog):
    """Write-ahead logging, synchronised in full: what was committed survives a crash and a power cut.

    One connection writes, since SQLite before 3.51.3 can damage the file when two connections checkpoint at once; the
    others only read and never checkpoint.
    """

    shared = False

    def __init__(self, path: Path, *, reads_only: bool = False) -> None:
        self.path, self.reads_only = path, reads_only
        self._lock = None if reads_only else _taken(path)
        self._connection = self._open()
        if not reads_only:
            self._run(self.create)

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
            if self.reads_only:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                return connection
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = FULL")
            (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        except sqlite3.DatabaseError as error:
            raise BadPath(f"cannot use {self.path} as the store: {error}") from error
        if (mode, synchronous) != ("wal", 2):
            raise BadPath(
                f"{self.path} is on a file system where SQLite cannot keep its promises (journal {mode}, synchronous "
                f"{synchronous}); put the store on a local disk"
            )
        return connection

    def _run(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except sqlite3.Error as error:
            raise Away(f"the store cannot be used now: {error}") from error

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._run(lambda: self._connection.execute(statement, values).fetchall())

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._run(lambda: self._connection.executemany(statement, rows))

    def begin(self) -> int:
        self.run("BEGIN IMMEDIATE")
        return self.head()

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def reopen(self) -> None:
        """Start afresh after an error."""
        self._connection.close()
        try:
            self._connection = self._open()
        except BadPath as error:
            raise Away(str(error)) from error

    def probe(self) -> None:
        """Write something, to see whether that is possible."""
        self.run("UPDATE banditree_head SET at = at + 1 WHERE one = 1")

    def reading(self) -> EventLog:
        return SqliteLog(self.path, reads_only=True)

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)


def _taken(path: Path) -> int:
    """Take the lock that lasts as long as the process: on a file beside the store, which SQLite does not lock."""
    beside = path.with_name(path.name + ".lock")
    try:
        lock = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise BadPath(f"cannot write {beside}: {error.strerror}") from error
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
            f"another banditree serve uses {path} already; stop it first, or give --store postgresql://... for several"
        ) from None
    return lock
