"""Load the columns of a table from a CSV or Parquet file, a data frame of any library, or a mapping of columns."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Floats
from banditree.base.words import count
from banditree.data import cells
from banditree.data.cells import Name, Times, Wrong
from banditree.data.defects import MAX_CHARACTERS, Defect, TableError, first_few, quote
from banditree.errors import BanditreeError, EngineFailed, InvalidType, InvalidValue, missing_extra
from banditree.errors.checks import MAX_REWARD

MAX_NUMBER = MAX_REWARD / 1e10  # so that sums and simulated rewards stay below MAX_REWARD
TOO_LARGE = "is too large to compute with; use a smaller unit"
WAITING = "{} without a reward yet: left out"
MAX_BYTES = 500_000_000  # that a compressed file may expand to by default
CHUNK_BYTES = 1 << 20
DELIMITERS = ",;\t|"

Mask = NDArray[np.bool_]


@dataclass
class Columns:
    """The requested columns, whatever they were loaded from, and the problems that were met so far."""

    source: str
    values: Mapping[str, Sequence[object]]
    rows: Sequence[int]  # the number of each row as users count them
    problems: list[Defect] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was cleaned up
    untyped: bool = False  # whether all cells are text because a file has no types
    categories: frozenset[str] = frozenset()  # columns that a frame says are categories

    def __len__(self) -> int:
        return len(self.rows)

    def report(self, at: int | Iterable[int] | Mask, column: str, message: str, kind: str = "") -> None:
        """Record a problem at an index, at several, or where a mask is true, if there are any.

        Problems of the same ``kind`` are grouped; by default it is the message without the value.
        """
        if isinstance(at, np.ndarray):
            at = np.flatnonzero(at).tolist() if at.dtype == bool else at.tolist()
        places = [at] if isinstance(at, int) else list(at)
        if places:
            kind = kind or message.replace(quote(self.values[column][places[0]]), "")
            rows = tuple(self.rows[place] for place in places)
            self.problems.append(Defect(rows[0], column, message, kind, rows))

    def report_wrong(self, wrong: Wrong, column: str) -> None:
        """Record the problems of single cells."""
        places: dict[str, list[int]] = {}
        for at, message in wrong.items():
            places.setdefault(message, []).append(at)
        for message, where in places.items():
            self.report(where, column, message)

    def report_table(self, message: str, column: str | None = None) -> None:
        """Record a problem of the whole table."""
        self.problems.append(Defect(None, column, message))

    def check(self, error: type[TableError] = TableError) -> None:
        """Raise an error with all problems, if there are any."""
        if self.problems:
            raise error(self.source, self.problems)

    def keep(self, mask: Mask) -> Columns:
        """Return only these rows; problems and notes are shared with this table."""
        if mask.all():
            return self
        places = np.flatnonzero(mask).tolist()
        values = {name: [column[at] for at in places] for name, column in self.values.items()}
        return replace(self, values=values, rows=[self.rows[at] for at in places])

    def names(self, column: str, *, if_empty: str = "") -> list[Name]:
        """Read a column of names: text or ints, None for empty cells, which are reported with ``if_empty``."""
        names, wrong = cells.names(self.values[column])
        self.report_wrong(wrong, column)
        if if_empty:
            self.report([at for at, name in enumerate(names) if name is None and at not in wrong], column, if_empty)
        return names

    def numbers(
        self, column: str, *, low: float = -np.inf, needed: bool | Mask = True, if_empty: str = "", truths: bool = False
    ) -> Floats:
        """Read a column of numbers: (rows,), NaN where a cell is empty or wrong.

        Numbers below ``low`` are problems, and so are empty cells where numbers are ``needed``. With ``truths``, the
        words true and false stand for 1 and 0.
        """
        numbers, wrong = cells.numbers(self.values[column], truths=truths)
        self.report_wrong(wrong, column)
        empty = np.isnan(numbers) & needed
        empty[list(wrong)] = False
        if if_empty:
            self.report(empty, column, if_empty)
        else:
            self._report_cells(empty, column, "is not a number; give one (0 is allowed)")
        self._report_cells(numbers < low, column, "is negative; give 0 or more")
        self._report_cells(np.abs(numbers) > MAX_NUMBER, column, TOO_LARGE)
        return numbers

    def _report_cells(self, mask: Mask, column: str, what: str) -> None:
        """Record what is wrong with each cell where the mask is true."""
        for at in np.flatnonzero(mask).tolist():
            self.report(at, column, f"{quote(self.values[column][at])} {what}")

    def counts(self, column: str) -> Floats:
        """Read a column of whole numbers; others become NaN, so that they are reported only once: (rows,)."""
        numbers = self.numbers(column, low=0.0)
        for at, (value, number) in enumerate(zip(self.values[column], numbers.tolist(), strict=True)):
            wrong = cells.not_a_count(value, number)
            if wrong is not None:
                self.report(at, column, wrong, kind="count")
                numbers[at] = np.nan
        return numbers

    def rewards(self, column: str) -> tuple[Floats, Mask]:
        """Read the rewards of single decisions, and which rows have one: (rows,) both.

        A reward may not have arrived yet: rows without one are counted and noted, and the caller leaves them out.
        """
        rewards, wrong = cells.numbers(self.values[column], truths=True)
        self.report_wrong(wrong, column)
        self._report_cells(np.abs(rewards) > MAX_NUMBER, column, TOO_LARGE)
        is_known = ~np.isnan(rewards)
        is_known[list(wrong)] = True
        n_missing = len(self) - int(is_known.sum())
        if n_missing:
            self.notes.append(WAITING.format(count(n_missing, "row")))
        return rewards, is_known

    def times(self, column: str) -> Times:
        """Read a column of times: (rows,) numbers, or datetime64 in UTC."""
        times, wrong = cells.times(self.values[column])
        self.report_wrong(wrong, column)
        return times


# ---------------------------------------------------------------- what to load


def require_list(what: str, given: object, order: str = "") -> list[str]:
    """Require a list of columns, not a single string."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = [column.strip() for column in str(given).split(",")]
        ordered = f" {order}" if order else ""
        raise InvalidType(f"{what}={given!r} must be a list of columns{ordered}, for example {example}")
    return list(given)


def check_named(wanted: Sequence[object]) -> None:
    """Require names of columns, each of them once."""
    for name in wanted:
        if not isinstance(name, str):
            raise InvalidType(f"column {name!r} must be the name of a column")
        if wanted.count(name) > 1:
            raise InvalidValue(f"column {name!r} is named twice; each column has one meaning")


def load(
    source: object, wanted: Sequence[str], *, max_bytes: int = MAX_BYTES, error: type[TableError] = TableError
) -> Columns:
    """Read the wanted columns of a CSV (gzipped too) or Parquet file, a data frame, or a mapping of columns.

    A missing column is an ``error`` at once, because nothing else can be checked; a gzipped file may expand to at most
    ``max_bytes``.
    """
    check_named(wanted)
    if isinstance(source, str | os.PathLike):
        path = existing_file(source)
        if is_parquet(path):
            return _from_frame(_read_parquet(path), wanted, path.name, error)
        return _from_csv(path, wanted, max_bytes, error)
    if isinstance(source, Mapping):
        columns = {str(name): list(column) for name, column in source.items()}
        return _from_mapping(columns, wanted, "the columns", error)
    return _from_frame(source, wanted, "the data frame", error)


def is_lazy(source: object) -> bool:
    """Whether this is a table whose rows an engine keeps until they are asked for, such as a DuckDB relation."""
    if isinstance(source, str | os.PathLike | Mapping):
        return False
    try:
        import narwhals as nw
    except ImportError:
        return False
    return isinstance(nw.from_native(source, pass_through=True), nw.LazyFrame)


def column_names(source: object, *, max_bytes: int = MAX_BYTES) -> list[str]:
    """Return the names of a table's columns, without reading their values."""
    if isinstance(source, Mapping):
        return [str(name) for name in source]
    if isinstance(source, str | os.PathLike):
        path = existing_file(source)
        if is_parquet(path):
            return list(as_frame(_read_parquet(path)).columns)
        try:
            return _header(next(_read_csv(path, max_bytes), []))
        except csv.Error as cause:
            raise InvalidValue(f"{path.name} is not a CSV file: {cause}") from None
    with engine_at_work("the data frame", "looking up the columns"):
        return list(as_frame(source).collect_schema())


def check_header(header: Sequence[str], wanted: Sequence[str], source: str, error: type[TableError]) -> None:
    """Require columns with these names, each of them once."""
    if not header:
        raise error(source, [Defect(None, None, "it is empty; give a table whose columns have names")])
    problems = []
    for name in wanted:
        if name not in header:
            near = difflib.get_close_matches(name, [column for column in header if len(column) <= MAX_CHARACTERS], n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {first_few(header)}"
            problems.append(Defect(None, name, f"no such column; {known}"))
        elif list(header).count(name) > 1:
            problems.append(Defect(None, name, "there are several columns with this name; rename all but one"))
    if problems:
        raise error(source, problems)


# ---------------------------------------------------------------- CSV


def _from_csv(path: Path, wanted: Sequence[str], max_bytes: int, error: type[TableError]) -> Columns:
    table = _read_csv(path, max_bytes)
    try:
        header = _header(next(table, []))
        check_header(header, wanted, path.name, error)
        places = [header.index(name) for name in wanted]
        pick = itemgetter(*places, places[0])  # the first column twice, so that a single column gives a tuple too
        records, rows, problems = [], [], []
        for row, record in enumerate(table, start=2):
            if not "".join(record).strip():
                continue  # an empty line
            if len(record) != len(header):
                message = f"{count(len(record), 'cell')}, but the header has {len(header)}; add or remove cells"
                problems.append(Defect(row, None, message, kind="cells"))
                record = (record + [""] * len(header))[: len(header)]  # noqa: PLW2901 (to find other problems too)
            records.append(pick(record))
            rows.append(row)
    except csv.Error as cause:
        raise InvalidValue(f"{path.name} is not a CSV file: {cause}") from None
    values = {name: [record[at] for record in records] for at, name in enumerate(wanted)}
    return Columns(path.name, values, rows, problems, untyped=True)


def _read_csv(path: Path, max_bytes: int) -> Iterator[list[str]]:
    """Read the rows of a CSV file, whose delimiter is the one that its header has most of."""
    lines = io.StringIO(read_text(path, max_bytes), newline="")  # accepts \n, \r\n, or \r alone
    delimiter = max(DELIMITERS, key=next(lines, "").count)
    lines.seek(0)
    return csv.reader(lines, delimiter=delimiter)


def _header(cells: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in cells]


# ---------------------------------------------------------------- mappings, data frames, Parquet


def _from_mapping(
    columns: Mapping[str, Sequence[object]], wanted: Sequence[str], source: str, error: type[TableError]
) -> Columns:
    check_header(list(columns), wanted, source, error)
    values = {name: columns[name] for name in wanted}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidValue(
            f"columns of different lengths: {first_few([f'{name}: {n:,}' for name, n in lengths.items()])}; "
            "give as many values in each"
        )
    return Columns(source, values, range(next(iter(lengths.values()))))


def _from_frame(frame: object, wanted: Sequence[str], source: str, error: type[TableError]) -> Columns:
    table = as_frame(frame)
    with engine_at_work(source, "reading it"):
        check_header(list(table.collect_schema()), wanted, source, error)
        table = table.select(*wanted)
        whole = table.collect() if hasattr(table, "collect") else table
    columns = _from_mapping({name: whole[name].to_list() for name in wanted}, wanted, source, error)
    columns.categories = frozenset(name for name in wanted if is_category(whole[name].dtype))
    return columns


def distinct(frame: object, wanted: Sequence[str], error: type[TableError]) -> object:
    """Let the engine of a lazy frame find the rows that differ in these columns, in order."""
    check_named(wanted)
    check_header(column_names(frame), wanted, "the data frame", error)
    with engine_at_work("the data frame", "looking for the arms"):
        return as_frame(frame).select(*wanted).unique().collect(backend="pyarrow").sort(*wanted)


@contextmanager
def engine_at_work(engine: str, what: str) -> Iterator[None]:
    """Quote what an engine says when it fails."""
    try:
        yield
    except BanditreeError:
        raise
    except Exception as cause:
        raise EngineFailed(f"{engine} failed while {what}: {cause}") from cause


def is_category(dtype: object) -> bool:
    """Whether a frame says that a column is one of categories."""
    return str(dtype).startswith(("Categorical", "Enum"))


def as_frame(frame: object, what: str = "a file, a data frame or a mapping of columns") -> Any:
    """Return a data frame of any library as one of narwhals; ``what`` is what an error asks for."""
    try:
        import narwhals as nw
    except ImportError:
        raise missing_extra("frames", "data frames need narwhals") from None
    try:
        return nw.from_native(frame)
    except TypeError:
        raise InvalidType(f"{frame!r:.60} is a {type(frame).__name__}; give {what}") from None
    except nw.exceptions.DuplicateError:
        raise InvalidValue("columns of this frame have the same name; rename all but one of them") from None


def _read_parquet(path: Path) -> object:
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("parquet", "Parquet files need pyarrow") from None
    try:
        return parquet.read_table(path)
    except Exception as cause:
        raise InvalidValue(f"{path.name} is not a Parquet file: {cause}") from None


# ---------------------------------------------------------------- files

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
OTHER_KIND = "is not a CSV or Parquet file; save it as CSV in UTF-8, or read it into a data frame and give that"


def existing_file(source: str | os.PathLike[str]) -> Path:
    """Require a file that exists."""
    path = Path(source)
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is not a file"
        raise InvalidValue(f"{str(path)!r} {what}; give a CSV or Parquet file")
    return path


def is_parquet(path: Path) -> bool:
    """Whether this is a Parquet file, by its name or its first bytes."""
    return path.suffix.lower() in (".parquet", ".pq") or _first_bytes(path).startswith(PARQUET)


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, decompressing gzip up to ``max_bytes``."""
    try:
        packed = path.suffix.lower() == ".gz" or _first_bytes(path).startswith(GZIP)
        return _unpack(path, max_bytes) if packed else path.read_bytes()
    except (OSError, EOFError, zlib.error) as cause:
        raise InvalidValue(f"{path.name} cannot be read: {cause}") from None


def read_text(path: Path, max_bytes: int = MAX_BYTES) -> str:
    """Read the text of a CSV file, decompressing gzip up to ``max_bytes``."""
    content = read_bytes(path, max_bytes)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InvalidValue(f"{path.name} {OTHER_KIND}")
    return text


def _first_bytes(path: Path) -> bytes:
    """Read the first bytes; empty if the file cannot be read (reading it whole then raises the error)."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""


def _unpack(path: Path, max_bytes: int) -> bytes:
    parts, size = [], 0
    with gzip.open(path) as file:
        while part := file.read(min(CHUNK_BYTES, max_bytes + 1 - size)):
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                what = f"{path.name} unpacks to more than {max_bytes:,} bytes"
                raise InvalidValue(f"{what}; if you trust it, raise max_bytes (--max-bytes), or unpack it first")
    return b"".join(parts)
