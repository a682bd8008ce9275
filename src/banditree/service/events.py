"""Define the events of the log (what happened, when, to which decision), and write lines about it to stderr."""

from __future__ import annotations

import json
import logging
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from banditree.base.files import Json

_COMPACT = json.JSONEncoder(separators=(",", ":"))
MAIN = "main"  # the experiment of the routes that name none
Record = tuple[Any, ...]  # of a database


class Kind:
    """What an event is about: the first five about a decision, the others about a whole experiment.

    Default rewards are events in stores of version 0.3 only: now they follow from the time at which a window closes.
    """

    DECISION, REWARD, DEFAULT, WITHDRAWAL = "decision", "reward", "default", "withdrawal"
    EXPOSURE = "exposure"  # a decision was seen
    ARMS, EXPERIMENT, EVIDENCE, PAUSE, RESUME, VOID = "arms", "experiment", "evidence", "pause", "resume", "void"
    SETTINGS, DELETION = "settings", "deletion"
    TIME = "time"  # nothing has happened, but windows have closed
    FOLD = "fold"  # the fold of the archived events before it


class Cohort:
    """The part of the traffic that a decision, and so its reward, belongs to."""

    ALL = "all"  # there is no control group; None in the log
    POLICY, CONTROL = "policy", "control"
    PAUSED = "paused"  # decided by the control policy while the experiment was paused; in neither group
    VOIDED = "void"  # a reward that came in after its decision was voided


AT_ONCE = 2


class Event(NamedTuple):
    """One entry of the log.

    A decision has its own id, which later events about it carry too, with its unit and cohort; events about a whole
    experiment have none. ``learned`` says whether a reward counts, so that the fold depends only on the log; `AT_ONCE`
    also that it waits for no window, because its decision is not in the log.
    """

    at: int  # microseconds since 1970, UTC
    kind: str
    id: str | None = None
    position: int = 0  # in a slate, of the arm that earned the reward
    arm: str | None = None  # the first arm chosen, or the one that earned the reward
    value: float | None = None
    learned: int = False
    body: Json | None = None  # further details, as JSON
    n: int = 0  # its number in the log, from 1; 0 until it is stored
    experiment: str = MAIN
    unit: str | None = None  # for whom the decision was made
    cohort: str | None = None

    def row(self) -> Record:
        """Convert to a row of the table."""
        body = None if self.body is None else _COMPACT.encode(self.body)
        return self._replace(body=body, learned=int(self.learned))  # type: ignore[arg-type]

    @classmethod
    def from_rows(cls, rows: Sequence[Record]) -> list[Event]:
        """Convert from rows of the table. Most rows that are folded have no body, and are converted the short way."""
        return [
            tuple.__new__(cls, row) if row[7] is None else cls._make((*row[:7], json.loads(row[7]), *row[8:]))
            for row in rows
        ]

    def shown(self) -> Json:
        """Return the fields that the live stream shows."""
        fields: Json = {"n": self.n, "at": iso(self.at), "experiment": self.experiment}
        body = self.body or {}
        if self.kind == Kind.DECISION:
            fields |= {"id": self.id, "arm": self.arm, "group": group(self.cohort)}
            fields |= {key: body[key] for key in ("arms", "path", "propensity") if key in body}
        elif self.kind in (Kind.REWARD, Kind.DEFAULT):
            fields |= {"id": self.id, "arm": self.arm, "reward": self.value, "position": self.position}
            fields |= {"learned": bool(self.learned), "default": self.kind == Kind.DEFAULT}
        elif self.kind == Kind.ARMS:
            fields |= {what: len(body.get(what, ())) for what in ("add", "move", "remove")}
        return fields


def group(cohort: str | None) -> str:
    """Name the group of a decision as its answer does."""
    return Cohort.CONTROL if cohort in (Cohort.CONTROL, Cohort.PAUSED) else Cohort.POLICY


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def iso(at: int) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00.000000Z'
    """
    seconds, micro = divmod(at, 1_000_000)
    return f"{_to_the_second(seconds)}.{micro:06d}Z"


@lru_cache(maxsize=64)  # many events are in the same second
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def from_iso(text: str) -> int:
    """Read an ISO 8601 time as microseconds since 1970; one without a zone is in UTC.

    >>> from_iso("1970-01-01T00:00:01Z")
    1000000
    """
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)


def new_id(at: int) -> str:
    """Make a unique id: the time, so that the index grows at one end, and 80 random bits."""
    return f"{at // 1000:012x}{secrets.token_hex(10)}"


# Lines on stderr: one JSON object each


def say(event: str, *, level: str = "info", **fields: object) -> None:
    """Write one line about the service."""
    line = {"at": iso(now()), "level": level, "event": event} | fields
    print(json.dumps(line, ensure_ascii=False, default=str), file=sys.stderr, flush=True)


def say_failure(where: str, error: BaseException) -> None:
    """Write an unexpected error with its traceback, which clients never see."""
    say("failure", level="error", where=where, error=repr(error), trace="".join(traceback.format_exception(error)))


class _JsonHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else None
        fields = {"logger": record.name} | ({"trace": trace} if trace else {})
        say(record.getMessage(), level=record.levelname.lower(), **fields)


def log_as_json() -> None:
    """Write what libraries log, warn of and leave unhandled in threads as JSON lines too."""
    logging.basicConfig(handlers=[_JsonHandler()], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    threading.excepthook = lambda failed: say_failure(
        f"thread {failed.thread.name if failed.thread else ''}", failed.exc_value or failed.exc_type()
    )


SLEW = 0.1  # how much faster or slower than true time it may go, to follow its source


def monotonic() -> int:
    """Return a time in microseconds that nobody can set; where possible, one that counts while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
    return time.monotonic_ns() // 1000


class Clock:
    """Tells the time in microseconds since 1970.

    It starts at the time of its source and goes on at the pace of a monotonic clock. When the source differs, by
    whatever amount, it goes up to a tenth faster or slower until they agree again: a source that jumps by 30 days for a
    second moves it by a tenth of a second.
    """

    def __init__(self, source: int) -> None:
        self._at, self._read = source, monotonic()
        self._telling = threading.Lock()

    def now(self, source: int | None = None) -> int:
        """Return the time, given that of the source if it is known."""
        with self._telling:
            read = monotonic()
            passed = read - self._read
            slack = round(passed * SLEW)
            ahead = 0 if source is None else source - (self._at + passed)
            self._at += max(passed + max(-slack, min(slack, ahead)), 0)
            self._read = read
            return self._at
