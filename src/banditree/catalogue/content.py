"""Read the text of a CSV file, or raise an error that says what the file is instead and what to do about it."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

from banditree.errors import InvalidValue

MOST = 500_000_000  # bytes that a compressed file may expand to by default
CHUNK = 1 << 20
GZIP, PARQUET, ZIP = b"\x1f\x8b", b"PAR1", b"PK\x03\x04"
JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"\d\]])")
SAVE = "save it as CSV in UTF-8"
FRAME = "read it into a data frame and pass that to bt.read_catalogue, or write it as CSV"
KINDS = {  # first bytes -> (what it is, what to do)
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save the sheet as CSV in UTF-8"),
    b"\xff\xfe": ("text in UTF-16", SAVE),
    b"\xfe\xff": ("text in UTF-16", SAVE),
    b"ARROW1": ("an Arrow file", FRAME),
    b"\x89HDF": ("an HDF5 file", FRAME),
    b"SQLite format 3": ("an SQLite database", FRAME),
    b"%PDF": ("a PDF document", SAVE),
    b"BZh": ("packed with bzip2", "unpack it first, or pack it with gzip"),
    b"\xfd7zXZ": ("packed with xz", "unpack it first, or pack it with gzip"),
    b"\x28\xb5\x2f\xfd": ("packed with Zstandard", "unpack it first, or pack it with gzip"),
}


def is_parquet(path: Path) -> bool:
    """Whether this is a Parquet file, by its name or its first bytes."""
    return path.suffix.lower() in (".parquet", ".pq") or _start(path).startswith(PARQUET)


def text(path: Path, most: int = MOST) -> str:
    """Read the text of a CSV file, decompressing gzip up to ``most`` bytes."""
    try:
        packed = path.suffix.lower() == ".gz" or _start(path).startswith(GZIP)
        content = _unpacked(path, most) if packed else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidValue(f"{path.name} cannot be read: {error}") from None
    found = _other_kind(content)
    if found is not None:
        raise InvalidValue(f"{path.name} is {found[0]}, not a CSV or Parquet file; {found[1]}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{path.name} is not UTF-8 text (byte {error.start:,}); {SAVE}") from None


def _start(path: Path) -> bytes:
    """Read the first bytes; empty if the file cannot be read (reading it whole then raises the error)."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""


def _unpacked(path: Path, most: int) -> bytes:
    parts, size = [], 0
    with gzip.open(path) as file:
        while part := file.read(min(CHUNK, most + 1 - size)):
            parts.append(part)
            size += len(part)
            if size > most:
                what = f"{path.name} unpacks to more than {most:,} bytes"
                raise InvalidValue(f"{what}; if you trust it, raise max_bytes (--max-bytes), or unpack it first")
    return b"".join(parts)


def _other_kind(content: bytes) -> tuple[str, str] | None:
    """Return (what this is, what to do) if it is recognisably not CSV."""
    start = content[:1000]
    for mark, kind in KINDS.items():
        if start.startswith(mark):
            return kind
    if start.startswith(ZIP):
        if b"xl/workbook" in content or b"xl/worksheets" in content:
            return "an Excel workbook", "save the sheet as CSV in UTF-8"
        if b"opendocument.spreadsheet" in start:
            return "an OpenDocument spreadsheet", "save the sheet as CSV in UTF-8"
        return "a ZIP archive", "unpack it first"
    if JSON.match(start):
        return "JSON", FRAME
    if start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page or XML", SAVE
    if b"\0" in start:
        return "not text", SAVE
    return None
