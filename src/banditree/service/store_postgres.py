"""The log in PostgreSQL, for several processes, each of which decides from its own fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from banditree.errors import BadPath, missing_extra
from banditree.service.store import EventLog, StoreUnavailable

try:
    import psycopg
except ImportError:
    raise missing_extra("postgres", "a store in PostgreSQL needs psycopg") from None

# A process that is paused, or cut off, while it holds the end of the log loses its transaction after 3 seconds, before
# the others give up waiting for it: the server closes its session, and nothing of it was stored.
SESSION = (
    "SET statement_timeout = '60s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '3s'; "
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'"
)
SET_UP = 7_061_970  # the advisory lock for creating the tables, because two processes may start at the same time


class PostgresLog(EventLog):
    """Events are numbered while the row with the last number is locked: in order, without gaps."""

    LOCK = " FOR UPDATE"
    BLOB = "BYTEA"

    def __init__(self, address: str, *, reads_only: bool = False) -> None:
        self.address = address
        try:
            self._connection = self._open()
        except StoreUnavailable as error:
            raise BadPath(f"cannot reach the store: {error}; check its address, and whether it runs") from error
        if not reads_only:
            with ExitStack() as opened:
                opened.callback(self.close)
                self.run("BEGIN")
                self.run("SELECT pg_advisory_xact_lock(?)", (SET_UP,))
                self.create()
                self.commit()
                opened.pop_all()

    def _open(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=5,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=15_000,
            )
            with ExitStack() as opened:
                opened.callback(connection.close)
                connection.execute(SESSION)
                opened.pop_all()
        except psycopg.Error as error:
            raise StoreUnavailable(_first_line(error)) from error
        return connection

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            if self._connection.closed:
                self._connection = self._open()
            cursor = self._connection.execute(_with_percent(statement), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise _unavailable(error) from error

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(_with_percent(statement), rows)
        except psycopg.Error as error:
            raise _unavailable(error) from error

    def check(self) -> None:
        """Do nothing: the server itself says when it cannot store."""

    def columns(self) -> set[str]:
        where = "table_name = 'banditree_events' AND table_schema = ANY (current_schemas(false))"
        return {row[0] for row in self.run(f"SELECT column_name FROM information_schema.columns WHERE {where}")}

    def rollback(self) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if not self._connection.closed and self._connection.info.transaction_status != idle:
            try:
                self.run("ROLLBACK")
            except StoreUnavailable:  # the session is lost, and its transaction with it
                self._connection.close()

    def reopen(self) -> None:
        self._connection.close()
        self._connection = self._open()

    def reader(self) -> Callable[[], EventLog]:
        return partial(PostgresLog, self.address, reads_only=True)

    def close(self) -> None:
        self._connection.close()


def _with_percent(statement: str) -> Any:
    """Write a statement as psycopg reads it, with %s for a question mark."""
    return statement.replace("?", "%s")


def _unavailable(error: psycopg.Error) -> StoreUnavailable:
    return StoreUnavailable(f"the store cannot be used now: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
