"""Read logs that stay with an engine: lazy frames, many files or large ones by DuckDB, the exports of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from banditree.base.words import count
from banditree.data import cells
from banditree.data.lazy import LazyLog, Named
from banditree.data.log import (
    CONTROL,
    GROUP,
    OF_CONTROL,
    OVERALL,
    SERVICE_FILTERS,
    WITHOUT_OVERALL,
    LogError,
    require_service_log,
)
from banditree.data.sources import MAX_BYTES, as_frame, check_header, check_named, engine_at_work
from banditree.errors import InvalidType, InvalidValue, missing_extra

if TYPE_CHECKING:
    import narwhals as nw

    from banditree.data.lazy import Frame

LINES = (".ndjson", ".jsonl", ".json")
PARQUET, TEXT = (".parquet", ".pq"), (".csv", ".tsv", ".txt")


def read_lazy(
    source: object,
    arm: str | None,
    reward: str | None,
    propensity: str | None,
    context: Mapping[str, str | None],
    time: str | None,
    fold: str | None,
) -> LazyLog:
    """Read a log from a table whose rows an engine keeps; the arguments are those of `read_log`."""
    frame = as_frame(source)
    if arm is None and reward is None and propensity is None:
        return _read_service_log(frame, context)
    if arm is None or reward is None:
        raise InvalidType("name both columns, arm= and reward=; a log of `banditree serve` needs no column named")
    return _read(frame, Named(arm, reward, propensity, context, time, fold))


def _read(frame: Frame, named: Named, *, notes: Sequence[str] = (), learned_online: bool = False) -> LazyLog:
    check_named(named.given)
    log = LazyLog(frame, named, notes=notes, learned_online=learned_online)
    check_header([*log.schema], named.given, f"the rows of {log.engine}", LogError)
    log.check_types()
    return log


# ---------------------------------------------------------------- logs of the service


def _read_service_log(frame: Frame, context: Mapping[str, str | None]) -> LazyLog:
    """Read a log of `banditree serve`; the rows that say nothing about a choice are counted at once."""
    import narwhals as nw

    with engine_at_work("the engine", "looking up the columns"):
        schema = frame.collect_schema()
    require_service_log([*schema])

    def is_limit(column: str) -> nw.Expr:
        if isinstance(schema[column], nw.List):
            return nw.col(column).list.len() > 0
        text = nw.col(column).cast(nw.String).str.to_lowercase()
        return ~text.is_in([*cells.MISSING, "[]"])

    truth = nw.col("withdrawn") if schema.get("withdrawn") == nw.Boolean else nw.col("withdrawn") == "true"
    tests = {"withdrawn": truth, "shown": nw.col("shown").is_null() | (nw.col("shown") != nw.col("arm"))}
    tests |= {column: is_limit(column) for column in ("only", "exclude") if column in schema}
    reasons = [(why, tests[column]) for column, (why, _) in SERVICE_FILTERS.items() if column in schema]
    frame, notes = _leave_out(frame, reasons)
    propensity = "propensity"
    if GROUP in schema:
        is_control = (nw.col(GROUP) == CONTROL).fill_null(False)
        kinds = _fetch(frame.select(control=_number(is_control), others=_number(~is_control)))
        if all(kinds) and OVERALL in schema:
            propensity = OVERALL
            frame, more = _leave_out(frame, [(WITHOUT_OVERALL, nw.col(OVERALL).is_null())])
        elif all(kinds):
            frame, more = _leave_out(frame, [(OF_CONTROL, is_control)])
        notes += more if all(kinds) else []
    named = Named("arm", "reward", propensity, context, "at", path="path")
    return _read(frame, named, notes=notes, learned_online=True)


def _leave_out(frame: Frame, reasons: list[tuple[str, nw.Expr]]) -> tuple[Frame, list[str]]:
    """Leave out rows for these reasons, the first that fits each, and say how many."""
    import narwhals as nw

    stays, flags = nw.lit(True), {}
    for at, (_, test) in enumerate(reasons):
        is_out = test.fill_null(False)
        flags[f"bt_out{at}"] = _number(stays & is_out)
        stays = stays & ~is_out
    if not flags:
        return frame, []
    left_out = zip(reasons, _fetch(frame.select(**flags)), strict=True)
    return frame.filter(stays), [f"{count(n, 'row')} {why}: left out" for (why, _), n in left_out if n]


def _number(test: nw.Expr) -> nw.Expr:
    import narwhals as nw

    return test.cast(nw.Int64).sum()


def _fetch(frame: Frame) -> list[int]:
    with engine_at_work("the engine", "counting rows that are left out"):
        table = frame.collect(backend="pyarrow")
    return [int(table[name].to_list()[0] or 0) for name in table.columns]


# ---------------------------------------------------------------- files


def is_lake(path: Path) -> bool:
    """Whether this names several files, lines of JSON, or, where DuckDB is installed, a file too large for memory."""
    if any(sign in str(path) for sign in "*?[") or path.is_dir():
        return True
    is_large = path.is_file() and path.stat().st_size > MAX_BYTES and find_spec("duckdb") is not None
    return is_large or (path.is_file() and _kind(path) in LINES)


def open_lake(path: Path, text: Sequence[str] = ("arm",)) -> Any:
    """Open files with DuckDB: a pattern, or a folder with others in it, of Parquet, CSV or JSON lines, gzipped too.

    DuckDB's connection of this process opens them. Folders such as day=2024-03-01 become columns. The columns of
    ``text``, such as ids of arms, stay text in CSV files, as in memory.
    """
    try:
        import duckdb
    except ImportError:
        raise missing_extra("lake", "globs, folders and files larger than memory need DuckDB") from None
    pattern = str(path)
    if path.is_dir():
        first = next((file for file in sorted(path.rglob("*")) if _kind(file)), None)
        if first is None:
            raise InvalidValue(
                f"{pattern!r} has no CSV, Parquet or NDJSON files; name those of the log: '{pattern}/*.csv'"
            )
        pattern = str(path / "**" / f"*{''.join(first.suffixes)}")
    kind = _kind(Path(pattern))
    duckdb.execute("SET preserve_insertion_order = false")
    duckdb.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")  # for those who ask
    with suppress(duckdb.Error):  # without its extension for time zones all times are in UTC
        duckdb.execute("SET TimeZone = 'UTC'")
    try:
        if kind in PARQUET:
            return duckdb.read_parquet(pattern, hive_partitioning=True, union_by_name=True)
        if kind in LINES:
            return duckdb.read_json(pattern, format="newline_delimited", union_by_name=True)
        if kind in TEXT:
            present = duckdb.read_csv(pattern, hive_partitioning=False, union_by_name=True).columns
            types = {name: "VARCHAR" for name in text if name in present}
            return duckdb.read_csv(pattern, dtype=types, hive_partitioning=True, union_by_name=True)
    except duckdb.Error as cause:
        said = " ".join(str(cause).split("\n")[:3])  # what follows are options of DuckDB
        raise InvalidValue(f"DuckDB cannot read {pattern!r}: {said}") from None
    raise InvalidValue(f"{pattern!r} names no kind of files that are read: .parquet, .csv or .ndjson, and .csv.gz")


def _kind(path: Path) -> str:
    """Return the ending of a file's name that says its kind, without that of compression; "" if it is another."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() not in (".gz", ".zst")]
    return endings[-1] if endings and endings[-1] in (*PARQUET, *TEXT, *LINES) else ""
