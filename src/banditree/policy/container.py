"""Encode a JSON header and arrays as bytes and back: with a version and a checksum, and without executable content."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs.base import Arrays
from banditree.errors import BadFile, InvalidType, InvalidValue

# magic | format (8 bytes) | length of the header (8 bytes) | header as JSON | arrays, end to end | SHA-256 of the rest
MAGIC = b"banditree\x00"
FORMAT = 2  # 1 is that of version 0.1: the same without "options" in a policy's header
DTYPES = ("<f8", "<i4", "<i8")  # types of arrays that may be stored
CHECKSUM = hashlib.sha256().digest_size
START = len(MAGIC) + 16  # where the header begins


class Content(NamedTuple):
    """The decoded content of a file."""

    version: int  # of the format
    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def encode(kind: str, header: Mapping[str, object], arrays: Arrays) -> list[Any]:
    """Encode a header and arrays as pieces of bytes, to be written one after the other."""
    plain = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    index = [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    for name, dtype, _ in index:
        if dtype not in DTYPES:
            raise InvalidType(f"{name} cannot be saved: it is an array of {dtype}; use one of {', '.join(DTYPES)}")
    try:
        text = json.dumps({"kind": kind, "arrays": index, **header}, default=_plain, allow_nan=False).encode()
    except ValueError as error:  # a number that is not finite, or an int of thousands of digits
        raise InvalidValue(f"this cannot be saved: {error}") from None
    start = MAGIC + FORMAT.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text
    pieces: list[Any] = [start, *(array.data.cast("B") for array in plain.values() if array.size)]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def _plain(value: object) -> Any:
    """Convert NumPy's numbers and arrays to Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InvalidType(f"{value!r:.60} cannot be saved: it is a {type(value).__name__}, neither numbers nor text")


def decode(data: bytes, kind: str, source: str) -> Content:
    """Decode what `encode` wrote. Any other bytes raise a `BadFile` before anything large is allocated."""
    if not data.startswith(MAGIC) or len(data) < START + CHECKSUM:
        raise BadFile(f"{source} is not a banditree file, or was cut off; give a file that save() wrote")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    intact = hashlib.sha256(memoryview(data)[:-CHECKSUM]).digest() == data[-CHECKSUM:]
    if not intact:
        raise BadFile(f"{source} is truncated or corrupt (its checksum does not match); restore it from a copy")
    if version > FORMAT:
        raise BadFile(
            f"{source} has format {version}, this version of banditree reads up to {FORMAT}; upgrade banditree"
        )
    end = START + int.from_bytes(data[START - 8 : START], "little")
    if version < 1 or end > len(data) - CHECKSUM:
        raise BadFile(f"{source} has a header that banditree never writes")
    header = _header(data[START:end], source)
    content = header.pop("kind", None)
    if content != kind:
        raise BadFile(f"{source} holds a {content!r:.60}, not a {kind!r}")
    return Content(version, header, _arrays(data, end, header.pop("arrays", None), source))


def _header(text: bytes, source: str) -> dict[str, Any]:
    try:
        header = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{source} has a header that is not the JSON that banditree writes: {error}") from None
    if not isinstance(header, dict):
        raise BadFile(f"{source} has a header that is not a JSON object")
    return header


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _arrays(data: bytes, end: int, index: object, source: str) -> dict[str, NDArray[Any]]:
    """Read the arrays in the index; together they fill the data from ``end`` to the checksum."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in _entries(index, source):
        if name in arrays:
            raise BadFile(f"{source} holds two arrays called {name!r}")
        if dtype not in DTYPES:
            raise BadFile(f"{source} holds an array of type {dtype!r}, which banditree never writes")
        n, size = math.prod(shape), np.dtype(dtype).itemsize
        if max(n, *shape, 0) * size > len(data) - CHECKSUM - end:
            raise BadFile(f"{source} names more numbers than it holds")
        arrays[name] = np.frombuffer(data, dtype, n, end).reshape(shape).astype(dtype[1:])
        end += n * size
    if end != len(data) - CHECKSUM:
        raise BadFile(f"{source} holds more numbers than it names")
    return arrays


def _entries(index: Any, source: str) -> list[tuple[str, str, list[int]]]:
    """Check the entries of the index, each a name, a type and a shape."""
    for entry in index if isinstance(index, list) else [None]:
        if isinstance(entry, list) and len(entry) == 3:
            name, dtype, shape = entry
            lengths = isinstance(shape, list) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)
            if isinstance(name, str) and isinstance(dtype, str) and lengths:
                continue
        raise BadFile(f"{source} names its arrays as banditree never does: {entry!r:.60}")
    return [(name, dtype, shape) for name, dtype, shape in index]
