"""Move old events out of a store: into a Parquet file, and into one event per experiment that holds their fold."""

from __future__ import annotations

import base64
import hashlib
import os
from contextlib import closing
from pathlib import Path

from banditree.base.files import Json
from banditree.base.words import count
from banditree.errors import BadFile, BadPath, BanditreeError, InvalidValue, missing_extra
from banditree.service.events import AT_ONCE, Event, Kind, from_iso
from banditree.service.replica import first_state, known_settings, pages_of
from banditree.service.settings import Settings
from banditree.service.state import tree_of_fold
from banditree.service.store import COLUMNS, PAGE, EventLog, open_log

HELD = "what was archived of the experiment {!r} is {}; the store cannot be opened without it. Restore a backup"


def archive(store: str, before: str, folder: Path) -> str:
    """Archive the events of a store from before a time; return a summary in one sentence."""
    try:
        limit = from_iso(before)
    except ValueError:
        raise InvalidValue(f"--before {before!r} is not a date; write 2026-08-01 or 2026-08-01T12:00:00Z") from None
    if "://" not in store and not Path(store).exists():
        raise BadPath(f"there is no store {store}; give the file that banditree serve --store names")
    with closing(open_log(store)) as log:
        log.take_alone()
        adopt_archive(log)
        settings = _settings(log)
        end = _end(log, settings, limit)
        if not end:
            return f"nothing to archive: no event is from before {before}, with its reward window closed"
        file, n_events = _export(log, folder, end)
        _replace(log, settings, end)
        return f"{count(n_events, 'event')} up to event {end:,} are in {file}; the store holds what they fold to"


def _settings(log: EventLog) -> dict[str, Settings]:
    """Return the settings of all experiments that have events."""
    known = {name: settings for name, (settings, _) in known_settings(log).items()}
    for (name,) in log.run("SELECT DISTINCT experiment FROM banditree_events"):
        if name not in known:
            raise InvalidValue(
                f"the settings of the experiment {name!r} are not in the store, which is of an older version; start "
                "banditree serve on it once, with the settings that it had"
            )
    return known


def _end(log: EventLog, settings: dict[str, Settings], limit: int) -> int:
    """Return the last event to archive; 0 if there is none. Decisions with open windows, or that units keep, stay."""
    times = [time or 0.0 for its in settings.values() for time in (2 * (its.reward_window or 0.0), its.sticky)]
    oldest = min(limit, log.now() - round(max(times, default=0.0) * 1e6))
    young = log.run("SELECT MIN(n) FROM banditree_events WHERE at >= ? AND kind <> ?", (oldest, Kind.FOLD))[0][0]
    end = log.last() if young is None else int(young) - 1
    old = log.count("n <= ? AND kind NOT IN (?, ?)", (end, Kind.FOLD, Kind.DELETION))
    return end if old else 0


def _export(log: EventLog, folder: Path, end: int) -> tuple[Path, int]:
    """Write the events up to this one to a Parquet file that is on the disk when this returns."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_extra("parquet", "banditree archive writes Parquet files with PyArrow") from None
    text, whole, real = pa.string(), pa.int64(), pa.float64()
    kinds = {"at": whole, "position": whole, "value": real, "learned": whole, "n": whole}
    schema = pa.schema([(name, kinds.get(name, text)) for name in Event._fields])
    where = f"n > ? AND n <= ? AND kind NOT IN ('{Kind.FOLD}', '{Kind.DELETION}')"
    first = int(log.run(f"SELECT MIN(n) FROM banditree_events WHERE {where}", (0, end))[0][0])
    mark = hashlib.sha256(str(log.fact("salt")).encode()).hexdigest()[:8]  # one folder may hold several stores' files
    file = folder / f"events-{mark}-{first:012d}-{end:012d}.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(f"events-{mark}-{first:012d}-*"):
            unfinished.unlink()  # of a run that was interrupted: the store still has its events
        part, after, n_events = file.with_suffix(".part"), 0, 0
        with pq.ParquetWriter(part, schema) as writer:
            statement = f"SELECT {COLUMNS} FROM banditree_events WHERE {where} ORDER BY n LIMIT {PAGE}"
            while rows := log.run(statement, (after, end)):
                table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema)
                writer.write_table(table)
                after, n_events = table["n"][-1].as_py(), n_events + len(rows)
        _sync(part)
        part.replace(file)
        if os.name != "nt":  # where folders cannot be opened
            _sync(folder)
    except OSError as error:
        raise BadPath(f"cannot write {file}: {error.strerror}; nothing was archived") from error
    return file, n_events


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(log: EventLog, settings: dict[str, Settings], end: int) -> None:
    """Replace the events up to this one by their fold, in one transaction."""
    gone = {event.experiment for event in log.of_kinds(Kind.DELETION)}
    folds = []
    for name, its in settings.items():
        state = first_state(log, name, its)
        for page in pages_of(state, log, end):
            state.apply(page)
        if state.changed_at and name not in gone:
            folds.append(fold_event(log, name, state.changed_at, state.to_bytes(), its))
    try:
        log.begin(alone=True)
        log.run("DELETE FROM banditree_events WHERE n <= ? AND kind <> ?", (end, Kind.DELETION))
        log.insert(folds)
        log.commit()
    finally:
        log.rollback()


def fold_event(log: EventLog, name: str, n: int, data: bytes, settings: Settings | None) -> Event:
    """Make the event that holds a state; it has the number of the last event in it."""
    body: Json = {"state": base64.b64encode(data).decode()}
    body |= {} if settings is None else {"settings": settings.to_dict()}
    rows = log.run("SELECT at FROM banditree_events WHERE n = ?", (n,))
    return Event(int(rows[0][0]) if rows else 0, Kind.FOLD, body=body, n=n, experiment=name)


# Stores of version 0.3, which kept folds of archived events among the snapshots


DEFAULTS_AT_ONCE = (
    f"UPDATE banditree_events SET learned = {AT_ONCE} WHERE kind = '{Kind.DEFAULT}' AND learned = 1 AND NOT EXISTS ("
    "SELECT 1 FROM banditree_events AS its WHERE its.experiment = banditree_events.experiment AND "
    f"its.id = banditree_events.id AND its.kind = '{Kind.DECISION}')"
)


def adopt_archive(log: EventLog) -> None:
    """Replace what version 0.3 archived by events with the same folds, whatever its settings were."""
    archived = int(log.fact("archived") or 0)
    if not archived:
        return
    columns = f"settings, n, CAST(data AS {log.BLOB})"
    statement = f"SELECT {columns} FROM banditree_snapshots WHERE substr(settings, 1, 5) = ?"
    bases: dict[str, tuple[int, bytes]] = {}
    for key, n, data in sorted(log.run(statement, ("base/",)), key=lambda row: int(row[1])):
        bases[key.removeprefix("base/").partition("/[")[0]] = int(n), bytes(data)
    known = known_settings(log)
    try:
        log.begin(alone=True)
        for name, n in log.run(
            "SELECT experiment, MAX(n) FROM banditree_events WHERE n <= ? GROUP BY experiment", (archived,)
        ):
            if name not in bases or bases[name][0] != archived:
                raise BadFile(HELD.format(name, "missing"))
            try:
                tree_of_fold(bases[name][1])
            except (BanditreeError, ValueError, KeyError) as error:
                raise BadFile(HELD.format(name, f"damaged ({error})")) from None
            fold = fold_event(log, name, int(n), bases[name][1], known.get(name, (None, 0))[0])
            log.run("DELETE FROM banditree_events WHERE experiment = ? AND n <= ?", (name, archived))
            log.insert([fold])
        log.run(DEFAULTS_AT_ONCE)
        log.drop_fact("archived")
        log.run("DELETE FROM banditree_snapshots")
        log.commit()
    finally:
        log.rollback()
