"""Where a table comes from: a CSV or Parquet file, a data frame of any library, or a mapping of columns."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from banditree.catalogue.troubles import CatalogueError, Trouble
from banditree.errors import InvalidType, InvalidValue, MissingExtra

DELIMITERS = (",", ";", "\t", "|")


@dataclass
class Columns:
    """The columns that were asked for, whatever they came from."""

    source: str
    values: Mapping[str, Sequence[Any]]
    rows: Sequence[int]  # the number of each row, for messages
    troubles: list[Trouble]


def load(source: Any, wanted: Sequence[str]) -> Columns:
    """Read the wanted columns. Columns that are not there are an error at once: nothing else can be checked."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            what = "is a directory" if path.is_dir() else "does not exist"
            raise InvalidValue(f"{str(path)!r} {what}; give a CSV or Parquet file")
        if path.suffix.lower() in (".parquet", ".pq"):
            return _from_frame(_parquet(path), wanted, path.name)
        return _from_csv(path, wanted)
    if isinstance(source, Mapping):
        return _from_mapping({str(name): list(column) for name, column in source.items()}, wanted, "the columns")
    return _from_frame(source, wanted, "the data frame")


def _from_csv(path: Path, wanted: Sequence[str]) -> Columns:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path.name} is not UTF-8 text (byte {error.start:,}); save it as CSV in UTF-8") from None
    except (OSError, EOFError) as error:
        raise InvalidValue(f"{path.name} cannot be read: {error}") from None
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(first, wanted))
    try:
        header = [cell.strip() for cell in next(reader, [])]
        _check_header(header, wanted, path.name)
        places = [header.index(name) for name in wanted]
        records, rows, troubles = [], [], []
        for row, record in enumerate(reader, start=2):
            if not any(cell.strip() for cell in record):
                continue  # an empty line
            if len(record) != len(header):
                troubles.append(Trouble(row, None, f"{len(record)} cells, the header has {len(header)}"))
                record = (record + [""] * len(header))[: len(header)]  # noqa: PLW2901 (so that other troubles show too)
            records.append(record)
            rows.append(row)
    except csv.Error as error:
        raise InvalidValue(f"{path.name} is no CSV file: {error}") from None
    values = {name: [record[at] for record in records] for name, at in zip(wanted, places, strict=True)}
    return Columns(path.name, values, rows, troubles)


def _delimiter(header: str, wanted: Sequence[str]) -> str:
    """The one that finds most of the wanted columns; of equals, the one that makes most columns."""

    def score(delimiter: str) -> tuple[int, int]:
        cells = {cell.strip() for cell in next(csv.reader([header], delimiter=delimiter), [])}
        return len(cells & set(wanted)), len(cells)

    return max(DELIMITERS, key=score)


def _check_header(header: Sequence[str], wanted: Sequence[str], source: str) -> None:
    troubles = []
    for name in wanted:
        if name not in header:
            near = difflib.get_close_matches(name, header, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, header)) or 'none'}"
            troubles.append(Trouble(None, name, f"no such column; {known}"))
        elif list(header).count(name) > 1:
            troubles.append(Trouble(None, name, "there are several columns of this name; rename all but one"))
    if troubles:
        raise CatalogueError(source, troubles)


def _from_mapping(columns: Mapping[str, Sequence[Any]], wanted: Sequence[str], source: str) -> Columns:
    _check_header(list(columns), wanted, source)
    values = {name: columns[name] for name in wanted}
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidValue(f"columns of different lengths: {lengths}")
    return Columns(source, values, range(next(iter(lengths.values()))), [])


def _from_frame(frame: Any, wanted: Sequence[str], source: str) -> Columns:
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtra("data frames need narwhals: pip install 'banditree[frames]'") from None
    try:
        table = nw.from_native(frame)
    except TypeError:
        raise InvalidType(f"{frame!r:.60} is no file name, no data frame and no mapping of columns") from None
    _check_header(table.columns, wanted, source)
    table = table.select(*wanted)
    whole = table.collect() if isinstance(table, nw.LazyFrame) else table
    return _from_mapping({name: whole[name].to_list() for name in wanted}, wanted, source)


def _parquet(path: Path) -> Any:
    """A data frame in the first library here that reads Parquet."""
    for library in ("polars", "pandas", "pyarrow.parquet"):
        try:
            module = __import__(library, fromlist=["*"])
            reader = module.read_table if library == "pyarrow.parquet" else module.read_parquet
            return reader(path)
        except ImportError:
            continue
        except Exception as error:
            raise InvalidValue(f"{path.name} is no Parquet file: {error}") from None
    raise MissingExtra("Parquet files need polars, pandas with pyarrow, or pyarrow; install one of them")
