"""Move old events out of the store: into Parquet files, and into the state that they fold to."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from banditree.errors import BadPath, InvalidValue, missing_extra
from banditree.service.events import Event, Kind, now
from banditree.service.settings import Settings
from banditree.service.state import State, Voids, fold
from banditree.service.store import COLUMNS, PAGE, EventLog

MIN_EVENTS = 1_000  # that are old enough before they are moved
DELETED_AT_ONCE = 20_000  # rows, so that requests do not wait long


class Move(NamedTuple):
    """Events after one and up to another that were written, and are to be replaced by what they fold to."""

    after: int
    end: int
    states: dict[str, State]
    written: Path
    file: Path  # the name that it gets in the transaction that notes it, if it does


@dataclass(frozen=True)
class Archive:
    """Where events go that are older than ``keep`` seconds."""

    keep: float
    folder: Path

    def __post_init__(self) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise missing_extra("parquet", "--keep writes Parquet files with PyArrow") from None
        if not 0 < self.keep < 1e9:
            raise InvalidValue(f"--keep {self.keep:g} must be a number of seconds above 0, or a time such as 90d")
        if not self.folder.is_dir():
            raise BadPath(f"--archive {self.folder}: there is no such folder; make it first")

    def write(self, open_log: Callable[[], EventLog], experiments: Mapping[str, Settings], limit: int) -> Move | None:
        """Write and fold old events up to a limit, if there are enough of them."""
        with closing(open_log()) as log:
            times = [time or 0.0 for its in experiments.values() for time in (its.reward_window, its.sticky)]
            end = self.end(log, times, limit)
            return self._write(log, experiments, end) if end else None

    def end(self, log: EventLog, windows: Iterable[float], limit: int) -> int:
        """Return the last event to move now; 0 if there are too few. Decisions whose windows are open are not moved."""
        oldest = now() - round(max([self.keep, *windows]) * 1e6)
        young = log.run("SELECT MIN(n) FROM banditree_events WHERE at >= ?", (oldest,))[0][0]
        end = limit if young is None else min(limit, int(young) - 1)
        return end if end - log.archived >= MIN_EVENTS else 0

    def _write(self, log: EventLog, experiments: Mapping[str, Settings], end: int) -> Move:
        """Fold the events up to this one that were not archived before, and write them, in a file without its name."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        first = after = log.archived
        states = fold_base(log, experiments, after, end)
        file = self.folder / f"events-{after + 1:012d}-{end:012d}.parquet"
        text, whole, real = pa.string(), pa.int64(), pa.float64()
        kinds = {"at": whole, "position": whole, "value": real, "learned": whole, "n": whole}
        schema = pa.schema([(name, kinds.get(name, text)) for name in Event._fields])
        written = file.with_suffix(f".{secrets.token_hex(4)}.part")
        try:
            with pq.ParquetWriter(written, schema) as writer:
                statement = f"SELECT {COLUMNS} FROM banditree_events WHERE n > ? AND n <= ? ORDER BY n LIMIT {PAGE}"
                while rows := log.run(statement, (after, end)):
                    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
                    writer.write_table(table)
                    after = table["n"][-1].as_py()
        except BaseException:
            written.unlink(missing_ok=True)
            raise
        return Move(first, end, states, written, file)


def fold_base(log: EventLog, experiments: Mapping[str, Settings], after: int, end: int) -> dict[str, State]:
    """Fold the events of all experiments up to this one, from the last base on."""
    states = {name: first_state(log, name, settings) for name, settings in experiments.items()}
    for page in log.pages(after, until=end):
        for name in {event.experiment for event in page} - states.keys():
            raise InvalidValue(
                f"the store has events of the experiment {name!r}, which this service was not started with: only "
                "with its settings can they be replaced by what they fold to"
            )
        fold(states, page)
    for state in states.values():
        state.n = end
    return {name: state for name, state in states.items() if not state.is_empty}


def base_key(name: str, settings: Settings) -> str:
    """Return the key under which the fold of an experiment's archived events is stored."""
    return f"base/{name}/{settings.key}"


def first_state(log: EventLog, name: str, settings: Settings) -> State:
    """Return the state that an experiment's log begins with: nothing, or the fold of what was archived.

    It leaves out all decisions that were voided, also those that were voided since then.
    """
    state = _load_base(log, name, settings) or State(name, settings)
    state.voids = Voids(event for event in log.of_kinds(Kind.VOID) if event.experiment == name)
    return state


def _load_base(log: EventLog, name: str, settings: Settings) -> State | None:
    """Load the fold of an experiment's archived events, or None if it has none."""
    if log.archived == 0:
        return None
    saved = log.load_snapshot(base_key(name, settings))
    if saved is None:
        start, where = f"base/{name}/", "substr(settings, 1, ?) = ?"
        if log.run(f"SELECT COUNT(*) FROM banditree_snapshots WHERE {where}", (len(start), start))[0][0]:
            raise InvalidValue(
                f"events up to {log.archived} of {name!r} are in the archive, and were folded with other settings; "
                "start the service with the settings that it had, or with another --store"
            )
        return None
    state = State.from_bytes(saved[1], name, settings)
    state.n = saved[0]
    return state
