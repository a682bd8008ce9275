"""The log in PostgreSQL, for several processes, each of which decides from its own fold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.service.clock import Clock
from banditree.service.store import EventLog, StoreUnavailable, unavailable

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
IN_USE = 7_061_971  # the advisory lock that services share, and that an archive takes alone


class PostgresLog(EventLog):
    """Events are numbered while the row with the last number is locked: in order, without gaps."""

    LOCK = " FOR UPDATE"
    BLOB = "BYTEA"
    MARK = "%s"
    ERRORS = psycopg.Error

    def __init__(self, address: str, *, reads_only: bool = False) -> None:
        self.address, self.reads_only = address, reads_only
        self._clock = Clock()
        try:
            self.reopen()
        except StoreUnavailable as error:
            raise BadPath(f"{error}; check its address, and whether it runs") from error
        if reads_only:
            return
        try:
            self.run("BEGIN")
            self.run("SELECT pg_advisory_xact_lock(?)", (SET_UP,))
            self.create()
            self.commit()
        except StoreUnavailable:
            self.close()
            raise

    def reopen(self) -> None:
        self.close()
        try:
            self._connection = psycopg.connect(
                self.address,
                autocommit=True,
                connect_timeout=5,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=15_000,
            )
            self._connection.execute(SESSION)
            if not self.reads_only and not self.run("SELECT pg_try_advisory_lock_shared(?)", (IN_USE,))[0][0]:
                self.close()
                raise StoreUnavailable("the store cannot be used now: banditree archive is working on it")
        except psycopg.Error as error:
            self.close()
            raise unavailable(error) from error

    def take_alone(self) -> None:
        if not self.run("SELECT pg_try_advisory_lock(?)", (IN_USE,))[0][0]:
            raise InvalidValue("a banditree serve is using the store; stop it first")

    def columns(self) -> set[str]:
        where = "table_name = 'banditree_events' AND table_schema = ANY (current_schemas(false))"
        return {row[0] for row in self.run(f"SELECT column_name FROM information_schema.columns WHERE {where}")}

    def rollback(self) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if not self._connection.closed and self._connection.info.transaction_status != idle:
            self.run("ROLLBACK")

    def reader(self) -> Callable[[], EventLog]:
        return partial(PostgresLog, self.address, reads_only=True)
