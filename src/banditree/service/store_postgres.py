"""The log in PostgreSQL: for several processes, each of which decides from its own fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from banditree.errors import BadPath, missing_extra
from banditree.service.store import Away, EventLog, SqlLog

try:
    import psycopg
except ImportError:
    raise missing_extra("postgres", "a store in PostgreSQL needs psycopg") from None

T = TypeVar("T")
LONGEST = "SET statement_timeout = '60s'; SET lock_timeout = '10s'; SET synchronous_commit = on"
SET_UP = 7_061_970  # the advisory lock for making the tables: two processes may start at once


class PostgresLog(SqlLog):
    """Events get their numbers while the row with the last number is locked: in order, without gaps."""

    shared = True
    lock = " FOR UPDATE"
    blob = "BYTEA"

    def __init__(self, address: str, *, reads_only: bool = False) -> None:
        self.address, self.reads_only = address, reads_only
        try:
            self._connection = self._open()
        except Away as error:
            raise BadPath(f"cannot reach the store: {error}") from error
        if not reads_only:
            self._run(self._set_up)

    def _set_up(self) -> None:
        self.run("BEGIN")
        self.run("SELECT pg_advisory_xact_lock(?)", (SET_UP,))
        self.create()
        self.run("COMMIT")

    def _open(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(self.address, autocommit=True, connect_timeout=5)
            connection.execute(LONGEST)
        except psycopg.Error as error:
            raise Away(_first_line(error)) from error
        return connection

    def _run(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except psycopg.Error as error:
            raise Away(f"the store cannot be used now: {_first_line(error)}") from error

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        def act() -> list[tuple[Any, ...]]:
            if self._connection.closed:
                self._connection = self._open()
            cursor = self._connection.execute(_theirs(statement), values or None)
            return cursor.fetchall() if cursor.description else []

        return self._run(act)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        def act() -> None:
            with self._connection.cursor() as cursor:
                cursor.executemany(_theirs(statement), rows)

        self._run(act)

    def begin(self) -> int:
        self.run("BEGIN")
        return self.head()

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if (
            not self._connection.closed
            and self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        ):
            self.run("ROLLBACK")

    def reopen(self) -> None:
        """Start afresh after an error."""
        self._connection.close()
        self._connection = self._open()

    def probe(self) -> None:
        """Write something, to see whether that is possible."""
        self.run("UPDATE banditree_head SET at = at + 1 WHERE one = 1")

    def reading(self) -> EventLog:
        return PostgresLog(self.address, reads_only=True)

    def close(self) -> None:
        self._connection.close()


def _theirs(statement: str) -> Any:
    """psycopg writes %s where SQLite writes a question mark."""
    return statement.replace("?", "%s")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
