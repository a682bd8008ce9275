"""Define the events of the log: what happened, when, and to which decision."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_COMPACT = json.JSONEncoder(separators=(",", ":"))
DECISION, REWARD, DEFAULT, WITHDRAWAL, ARMS = "decision", "reward", "default", "withdrawal", "arms"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log.

    A decision has its own id, which later events about it carry too; changes of the catalogue have none. ``learned``
    says whether the policy learned from a reward, so that the fold depends only on the log.
    """

    at: int  # microseconds since 1970, UTC
    kind: str
    id: str | None = None
    position: int = 0  # in a slate, of the arm that earned the reward
    arm: str | None = None  # the first arm chosen, or the one that earned the reward
    value: float | None = None
    learned: bool = False
    body: dict[str, Any] | None = None  # further details, as JSON
    n: int = 0  # its number in the log, from 1; 0 until it is stored

    def numbered(self, n: int) -> Event:
        """Return the event with its number."""
        return Event(self.at, self.kind, self.id, self.position, self.arm, self.value, self.learned, self.body, n)

    def row(self) -> tuple[Any, ...]:
        """Convert to a row of the table."""
        body = None if self.body is None else _COMPACT.encode(self.body)
        return (self.n, self.at, self.kind, self.id, self.position, self.arm, self.value, int(self.learned), body)

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Event:
        n, at, kind, id_, position, arm, value, learned, body = row
        return cls(at, kind, id_, position, arm, value, bool(learned), None if body is None else json.loads(body), n)

    def told(self) -> dict[str, Any]:
        """Return the fields that the live stream shows."""
        told: dict[str, Any] = {"n": self.n, "at": iso(self.at)}
        body = self.body or {}
        if self.kind == DECISION:
            told |= {"id": self.id, "arm": self.arm}
            told |= {key: body[key] for key in ("arms", "path", "propensity")}
        elif self.kind in (REWARD, DEFAULT):
            told |= {"id": self.id, "arm": self.arm, "reward": self.value, "position": self.position}
            told |= {"learned": self.learned, "default": self.kind == DEFAULT}
        elif self.kind == ARMS:
            told |= {what: len(body.get(what, ())) for what in ("add", "move", "remove")}
        return told


NAMES = {DECISION: "decision", REWARD: "reward", DEFAULT: "reward", ARMS: "arms"}  # in the live stream


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def iso(at: int) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00.000000Z'
    """
    seconds, micro = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{micro:06d}Z"


def new_id(at: int) -> str:
    """Make a unique id: the time, so that the index grows at one end, and 80 random bits."""
    return f"{at // 1000:012x}{secrets.token_hex(10)}"
