"""Open the store that a path or an address names."""

from __future__ import annotations

from banditree.base.files import find_target
from banditree.service.store import EventLog, SqliteLog


def open_log(store: str) -> EventLog:
    """Open the log at a path or an address."""
    if store.startswith(("postgresql://", "postgres://")):
        from banditree.service.store_postgres import PostgresLog

        return PostgresLog(store)
    return SqliteLog(find_target(store))
