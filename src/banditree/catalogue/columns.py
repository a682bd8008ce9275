"""Load the columns of a table from a CSV or Parquet file, a data frame of any library, or a mapping of columns."""

from __future__ import annotations

import csv
import difflib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from banditree.catalogue import content
from banditree.catalogue.defects import LONGEST, CatalogueError, Defect, first_few
from banditree.errors import InvalidType, InvalidValue, MissingExtra, missing_extra
from banditree.report.words import count

DELIMITERS = (",", ";", "\t", "|")


@dataclass
class Columns:
    """The requested columns, whatever they were loaded from."""

    source: str
    values: Mapping[str, Sequence[Any]]
    rows: Sequence[int]  # the number of each row, for messages
    defects: list[Defect]


def listed(what: str, given: Any, order: str = "") -> list[str]:
    """Require a list of columns, not a single string."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = [column.strip() for column in str(given).split(",")]
        ordered = f" {order}" if order else ""
        raise InvalidType(f"{what}={given!r} must be a list of columns{ordered}, for example {example}")
    return list(given)


def check_once(wanted: Sequence[str]) -> None:
    """Refuse a column that is named twice."""
    for name in wanted:
        if wanted.count(name) > 1:
            raise InvalidValue(f"column {name!r} is named twice; each column has one meaning")


def load(source: Any, wanted: Sequence[str], *, max_bytes: int = content.MOST) -> Columns:
    """Read the wanted columns. A missing column is an error at once, because nothing else can be checked."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is not a file"
            raise InvalidValue(f"{str(path)!r} {what}; give a CSV or Parquet file")
        if content.is_parquet(path):
            return _from_frame(_parquet(path), wanted, path.name)
        return _from_csv(path, wanted, max_bytes)
    if isinstance(source, Mapping):
        return _from_mapping({str(name): list(column) for name, column in source.items()}, wanted, "the columns")
    return _from_frame(source, wanted, "the data frame")


def _from_csv(path: Path, wanted: Sequence[str], max_bytes: int) -> Columns:
    text = content.text(path, max_bytes)
    lines = io.StringIO(text, newline="")  # newline="" accepts the line ends of every system: \n, \r\n, or \r alone
    try:
        delimiter = _delimiter(next(lines, ""), wanted)
        lines.seek(0)
        reader = csv.reader(lines, delimiter=delimiter)
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, wanted, path.name)
        places = [header.index(name) for name in wanted]
        pick = itemgetter(*places, places[0])  # the first column twice, so that a single column gives a tuple too
        records, rows, defects = [], [], []
        for row, record in enumerate(reader, start=2):
            if not "".join(record).strip():
                continue  # an empty line
            if len(record) != len(header):
                cells = count(len(record), "cell")
                defects.append(
                    Defect(row, None, f"{cells}, but the header has {len(header)}; add or remove cells", kind="cells")
                )
                record = (record + [""] * len(header))[: len(header)]  # noqa: PLW2901 (so that other defects are found too)
            records.append(pick(record))
            rows.append(row)
    except csv.Error as error:
        raise InvalidValue(f"{path.name} is not a CSV file: {error}") from None
    values = {name: [record[at] for record in records] for at, name in enumerate(wanted)}
    return Columns(path.name, values, rows, defects)


def _delimiter(header: str, wanted: Sequence[str]) -> str:
    """Choose the delimiter that finds most of the wanted columns, then the one that gives most columns."""

    def score(delimiter: str) -> tuple[int, int]:
        try:
            cells = {cell.strip() for cell in next(csv.reader([header], delimiter=delimiter), [])}
        except csv.Error:  # with the wrong delimiter a wide header is one cell, which may be too long
            return 0, 0
        return len(cells & set(wanted)), len(cells)

    return max(DELIMITERS, key=score)


def _check_header(header: Sequence[str], wanted: Sequence[str], source: str) -> None:
    defects = []
    for name in wanted:
        if name not in header:
            near = difflib.get_close_matches(name, [each for each in header if len(each) <= LONGEST], n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {first_few(header) or 'none'}"
            defects.append(Defect(None, name, f"no such column; {known}"))
        elif list(header).count(name) > 1:
            defects.append(Defect(None, name, "there are several columns with this name; rename all but one"))
    if defects:
        raise CatalogueError(source, defects)


def _from_mapping(columns: Mapping[str, Sequence[Any]], wanted: Sequence[str], source: str) -> Columns:
    _check_header(list(columns), wanted, source)
    values = {name: columns[name] for name in wanted}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidValue(
            f"columns of different lengths: {first_few([f'{name}: {n:,}' for name, n in lengths.items()])}; "
            "give as many values in each"
        )
    return Columns(source, values, range(next(iter(lengths.values()))), [])


def _from_frame(frame: Any, wanted: Sequence[str], source: str) -> Columns:
    try:
        import narwhals as nw
    except ImportError:
        raise missing_extra("frames", "data frames need narwhals") from None
    try:
        table = nw.from_native(frame)
    except TypeError:
        kind = type(frame).__name__
        raise InvalidType(f"{frame!r:.60} is a {kind}; give a file, a data frame or a mapping of columns") from None
    _check_header(table.columns, wanted, source)
    table = table.select(*wanted)
    whole = table.collect() if isinstance(table, nw.LazyFrame) else table
    return _from_mapping({name: whole[name].to_list() for name in wanted}, wanted, source)


def _parquet(path: Path) -> Any:
    """Read a data frame with the first installed library that reads Parquet."""
    for library in ("polars", "pandas", "pyarrow.parquet"):
        try:
            module = __import__(library, fromlist=["*"])
            reader = module.read_table if library == "pyarrow.parquet" else module.read_parquet
            return reader(path)
        except ImportError:
            continue
        except Exception as error:
            raise InvalidValue(f"{path.name} is not a Parquet file: {error}") from None
    raise MissingExtra("Parquet files need polars, pandas with pyarrow, or pyarrow; install one of them")
