"""The log in PostgreSQL, for several processes, each of which decides from its own fold and writes without waiting.

Decisions and rewards do not depend on the order in which they are stored: the processes insert them side by side, and
the unique key of each says whether another process was first. They are numbered by a sequence, so numbers may become
visible out of order, and some are missing. A number is *settled* once no transaction is running that may have drawn it
or one below it; every process folds settled events, in the order of numbers.

Each transaction of a writer holds an advisory lock, shared; what changes all (arms, settings, pauses, voids) holds it
alone. So the latter waits for pending inserts, and every number below its own is settled.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.service.events import Clock, Event, Record
from banditree.service.store import COLUMNS, KEEP, Conflict, EventLog, Kept, StoreUnavailable, unavailable

try:
    import psycopg
except ImportError:
    raise missing_extra("postgres", "a store in PostgreSQL needs psycopg") from None

# A process that is paused, or cut off, while it writes loses its transaction after 3 seconds: the server closes its
# session, and nothing of it was stored.
SESSION = (
    "SET statement_timeout = '60s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '3s'; "
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'"
)
SET_UP = 7_061_970  # the advisory lock for creating the tables, because two processes may start at the same time
IN_USE = 7_061_971  # the advisory lock that services share, and that an archive takes alone
WRITING = 7_061_972  # the advisory lock that writers share, and that what changes all takes alone
TIME = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
LAST = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM banditree_numbers"
# The transaction gets its id before it draws a number: otherwise one might be drawn by a transaction that a snapshot
# taken later does not know of.
NUMBER = "CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('banditree_numbers') END"
INSERT = (
    f"INSERT INTO banditree_events ({COLUMNS}) "
    f"VALUES ({', '.join(NUMBER if name == 'n' else '?' for name in Event._fields)}) ON CONFLICT DO NOTHING"
)
OWN_ID = "SELECT pg_current_xact_id()::text::bigint"
OLDEST_ID = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
NUMBER_PLACE = Event._fields.index("n")
POLL_SECONDS = 0.002  # between two looks at whether a number is settled


class PostgresLog(EventLog):
    """Events are numbered by a sequence. Requires PostgreSQL 13."""

    is_shared = True
    BLOB = "BYTEA"
    MARK = "%s"
    ERRORS = psycopg.Error

    def __init__(self, address: str, *, reads_only: bool = False) -> None:
        self.address, self.reads_only = address, reads_only
        self._settled = 0
        self._drawn: deque[tuple[int, int]] = deque()  # transaction ids, and numbers that only those below have drawn
        self._is_alone = False
        try:
            self.reopen()
            self._clock = Clock(int(self.run(f"SELECT {TIME}")[0][0]))
        except StoreUnavailable as error:
            raise BadPath(f"{error}; check its address, and whether it runs") from error
        if reads_only:
            return
        try:
            self.run("BEGIN")
            self.run("SELECT pg_advisory_xact_lock(?)", (SET_UP,))
            self.create()
            self.run("CREATE SEQUENCE IF NOT EXISTS banditree_numbers")
            self.run(  # in a store of version 0.3, which had none
                "SELECT setval('banditree_numbers', n) FROM (SELECT MAX(n) AS n FROM banditree_events) AS stored "
                f"WHERE n > ({LAST})"
            )
            self.commit()
        except StoreUnavailable:
            self.close()
            raise

    def reopen(self) -> None:
        self.close()
        self._drawn.clear()  # after a crash of the server, numbers and ids that were not stored are drawn again
        self._settled = 0
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

    # Writing

    def begin(self, *, alone: bool = False) -> int:
        self._is_alone = alone
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        fence = LAST if alone else "SELECT n FROM banditree_head WHERE one = 1"
        *_, number, at = self._ask("BEGIN", f"SELECT {lock}({WRITING})", f"SELECT ({fence}), {TIME}")
        self._clock.now(int(at))
        return int(number)

    def append(self, events: Sequence[Event], keeps: Sequence[Kept] = ()) -> list[Event]:
        if self._is_alone:
            stored = []
            for event in events:
                rows = self.run(f"{INSERT} RETURNING n", _values(event))
                if not rows:
                    raise Conflict
                stored.append(event._replace(n=int(rows[0][0])))
            self.run("UPDATE banditree_head SET n = ?, at = ? WHERE one = 1", (stored[-1].n, stored[-1].at))
            self.head = stored[-1].n
            return stored
        # All processes store in the same order, so that two of them never wait for each other; a decision comes before
        # what happens to it.
        ordered = sorted(events, key=lambda event: (event.experiment, event.id or "", event.kind, event.position))
        try:
            cursor = self._connection.cursor()
            rows = [_values(event) for event in ordered]
            for statement, values in ((KEEP, sorted(keeps, key=lambda kept: kept[:2])), (INSERT, rows)):
                if values:
                    cursor.executemany(statement.replace("?", "%s"), values)
                    if cursor.rowcount < len(values):
                        raise Conflict
        except psycopg.Error as error:
            raise unavailable(error) from error
        return list(events)

    def rollback(self) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        if not self._connection.closed and self._connection.info.transaction_status != idle:
            self.run("ROLLBACK")

    # Reading

    def now(self) -> int:
        return self._clock.now()

    def last(self) -> int:
        self.head = int(self.run(LAST)[0][0])
        return self.head

    def settled(self, wait: float = 0.0) -> int:
        end = time.monotonic() + wait
        wanted = None
        while True:
            last, at = self._ask(f"SELECT ({LAST}), {TIME}")
            self._clock.now(int(at))
            self.head = int(last)
            wanted = self.head if wanted is None else wanted
            if self.head > (self._drawn[-1][1] if self._drawn else self._settled):
                # An id of our own, because a snapshot does not tell of those that were given after the last that ended.
                self._drawn.append((int(self._ask(OWN_ID)[0]), self.head))
            if self._drawn:
                oldest = int(self._ask(OLDEST_ID)[0])
                while self._drawn and self._drawn[0][0] <= oldest:
                    self._settled = self._drawn.popleft()[1]
            if self._settled >= wanted or time.monotonic() >= end:
                return self._settled
            time.sleep(POLL_SECONDS)

    def _ask(self, *statements: str) -> list[Any]:
        """Run some statements in one round trip, each with a snapshot of its own; return the values of their rows."""
        try:
            cursor = self._connection.execute("; ".join(statements))
            values: list[Any] = []
            while True:
                if cursor.description:
                    values += cursor.fetchone()
                if not cursor.nextset():
                    return values
        except psycopg.Error as error:
            raise unavailable(error) from error

    def reader(self) -> Callable[[], EventLog]:
        return partial(PostgresLog, self.address, reads_only=True)


def _values(event: Event) -> Record:
    """Return the values of an event's row, without its number."""
    row = event.row()
    return (*row[:NUMBER_PLACE], *row[NUMBER_PLACE + 1 :])
