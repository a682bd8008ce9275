"""One file for arrays and JSON: versioned, checked byte by byte, written whole or not at all. No pickle."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.errors import BadFile, BadPath, InvalidType, MissingFile, NotAFile

# magic | format (8 bytes) | length of the header (8 bytes) | header as JSON | arrays, end to end | SHA-256 of the rest
MAGIC = b"banditree\x00"
FORMAT = 1
DTYPES = ("<f8", "<i4", "<i8")  # what a file may hold
CHECKSUM = hashlib.sha256().digest_size


def write(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a file atomically: whoever reads it finds the old one or the new one, whatever happens in between."""
    plain = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    index = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    text = json.dumps({"kind": kind, "arrays": index, **header}, default=_plain).encode()
    start = MAGIC + FORMAT.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text
    pieces: list[Any] = [start, *(array.data.cast("B") for array in plain.values() if array.size)]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    write_whole(path, [*pieces, digest.digest()])


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InvalidType(f"{value!r:.60} cannot be saved: it is a {type(value).__name__}, neither numbers nor text")


def place(path: str | os.PathLike[str]) -> Path:
    """The file that writing to this path would make or replace, found through links; or why nothing can be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise MissingFile(f"cannot write {path}: there is no folder {target.parent}; make it first")
    if target.is_dir():
        raise NotAFile(f"cannot write {path}: it is a folder; give the name of a file")
    if target.exists() and not target.is_file():
        raise BadPath(f"cannot write {path}: it is a device or a pipe; give the name of a file")
    return target


def write_whole(path: str | os.PathLike[str], pieces: Iterable[Any]) -> None:
    """Write bytes to a file, all of them or none: what was there before stays until everything is on the disk.

    A link stays a link: the file that it leads to is replaced.
    """
    target = place(path)
    scratch = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(scratch, flags, 0o666), "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            scratch.chmod(target.stat().st_mode & 0o777)
        scratch.replace(target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """All of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        kinds = {FileNotFoundError: MissingFile, IsADirectoryError: NotAFile}
        if type(error) not in kinds:
            raise  # Python's own sentence will do
        raise kinds[type(error)](f"cannot read {path}: {error.strerror}") from None


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file that `write` wrote."""
    data = read_whole(path)
    fixed = len(MAGIC) + 16
    if not data.startswith(MAGIC) or len(data) < fixed + CHECKSUM:
        raise BadFile(f"{path} is not a banditree file, or was cut off; give a file that save() wrote")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    intact = hashlib.sha256(memoryview(data)[:-CHECKSUM]).digest() == data[-CHECKSUM:]
    if intact and version > FORMAT:
        raise BadFile(f"{path} has format {version}, this version of banditree reads up to {FORMAT}; upgrade banditree")
    if not intact:
        raise BadFile(f"{path} is truncated or corrupt (its checksum does not match); restore it from a copy")
    end = fixed + int.from_bytes(data[fixed - 8 : fixed], "little")
    header = json.loads(data[fixed:end])
    if header.get("kind") != kind:
        raise BadFile(f"{path} holds a {header.get('kind')!r}, not a {kind!r}")
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in header.pop("arrays"):
        if dtype not in DTYPES:
            raise BadFile(f"{path} holds an array of type {dtype!r}, which banditree never writes")
        n = int(np.prod(shape, dtype=np.int64))
        if n < 0 or end + n * np.dtype(dtype).itemsize > len(data) - CHECKSUM:
            raise BadFile(f"{path} names more numbers than it holds")
        arrays[name] = np.frombuffer(data, dtype, n, end).reshape(shape).astype(dtype[1:])
        end += n * np.dtype(dtype).itemsize
    return header, arrays
