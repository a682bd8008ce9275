"""The log in one SQLite file, for one process, with nothing to install."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from banditree.errors import BadPath, InvalidValue
from banditree.service.store import Away, EventLog


class SqliteLog(EventLog):
    """Uses write-ahead logging with full synchronisation: what was committed survives a crash and a power cut.

    Only one connection writes, because SQLite before 3.51.3 can damage the file when two connections checkpoint at
    once; the others read and never checkpoint.
    """

    BEGIN = "BEGIN IMMEDIATE"

    def __init__(self, path: Path, *, reads_only: bool = False) -> None:
        self.path, self.reads_only = path, reads_only
        with ExitStack() as opened:
            if not reads_only:
                opened.callback(os.close, _locked(path))
            self._connection = self._open()
            opened.callback(self._disconnect)
            if not reads_only:
                self.create()
            self._opened = opened.pop_all()

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
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

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise _away(error) from error

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise _away(error) from error

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def _disconnect(self) -> None:
        self._connection.close()

    def reopen(self) -> None:
        self._disconnect()
        try:
            self._connection = self._open()
        except BadPath as error:
            raise Away(str(error)) from error

    def reading(self) -> EventLog:
        return SqliteLog(self.path, reads_only=True)

    def close(self) -> None:
        self._opened.close()


def _away(error: sqlite3.Error) -> Away:
    return Away(f"the store cannot be used now: {error}")


def _locked(path: Path) -> int:
    """Take the lock that lasts as long as the process, on a file next to the store, which SQLite does not lock."""
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
            f"another banditree serve is using {path}; stop it first, or give --store postgresql://... for several"
        ) from None
    return lock
