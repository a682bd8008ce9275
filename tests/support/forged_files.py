"""Files that `save` never wrote, with checksums that fit: taken apart, changed, and put together again."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditree.policy import saving

Arrays = dict[str, NDArray[Any]]


def apart(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """The header of a file, without its index, and its arrays."""
    header, arrays = saving.decode(data, "a file")
    return header, arrays


def together(header: Any, arrays: Arrays, index: Any = None) -> bytes:
    """A file with this header and these arrays; the index may be another than theirs."""
    if index is None:
        index = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    content = b"".join(array.tobytes() for array in arrays.values())
    return sealed(json.dumps({"kind": "policy", "arrays": index, **header}).encode(), content)


def sealed(text: bytes, content: bytes = b"", version: int = saving.FORMAT, length: int | None = None) -> bytes:
    """A file with any header and content, and the checksum for them."""
    length = len(text) if length is None else length
    body = saving.MAGIC + version.to_bytes(8, "little") + length.to_bytes(8, "little") + text + content
    return body + hashlib.sha256(body).digest()


# Random changes

ODD: list[Any] = [None, True, False, -1, 0, 1, 2, 3, 10**9, 2**63, 10**30, 0.5, -0.5, 1e-300, 1e99, 1e308, float("inf")]
ODD += [float("nan"), "", "0", "s1", "Beta", "\0", "\ud800", [], {}, [[]], [0], [None], [-1, 2], {"kind": "Beta"}]
NUMBERS: list[float] = [
    0,
    -0.0,
    -1,
    1,
    2,
    3,
    1e-300,
    0.3,
    -1e-9,
    1e9,
    -1e9,
    1e99,
    1e150,
    1e308,
    np.inf,
    -np.inf,
    np.nan,
]


def change_header(header: Any, arrays: Arrays, dice: random.Random) -> None:
    """Change one value somewhere in the header: another, gone, twice, or its neighbour's."""
    holder = header
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = dice.choice(keys)
        if not (isinstance(holder[key], dict | list) and holder[key] and dice.random() < 0.7):
            break
        holder = holder[key]
    way = dice.randrange(4)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[dice.choice(keys)]))
    elif way == 2:
        holder[key] = copy.deepcopy(holder[dice.choice(keys)])
    else:
        holder[key] = copy.deepcopy(dice.choice(ODD))


def change_numbers(header: Any, arrays: Arrays, dice: random.Random) -> None:
    """Change some numbers of one array."""
    name = dice.choice(list(arrays))
    array = arrays[name] = arrays[name].copy()
    for _ in range(dice.choice([1, 1, 2, array.size])):
        number = np.clip(dice.choice(NUMBERS), -(2**31), 2**31 - 1) if array.dtype.kind == "i" else dice.choice(NUMBERS)
        array.flat[dice.randrange(array.size)] = np.array(number).astype(array.dtype)


def change_bits(header: Any, arrays: Arrays, dice: random.Random) -> None:
    """Flip a bit of one array."""
    name = dice.choice(list(arrays))
    data = bytearray(arrays[name].tobytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    arrays[name] = np.frombuffer(bytes(data), arrays[name].dtype).reshape(arrays[name].shape)


def change_array(header: Any, arrays: Arrays, dice: random.Random) -> None:
    """Leave an array out, swap it with another, cut it, or give it another type or shape."""
    name, other = dice.choice(list(arrays)), dice.choice(list(arrays))
    way = dice.randrange(5)
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif way == 2:
        arrays[name] = arrays[name][: dice.randrange(len(arrays[name]))]
    elif way == 3:
        arrays[name] = np.nan_to_num(arrays[name]).astype(dice.choice(["<f8", "<i4", "<i8", "<f4", "|u1"]))
    else:
        arrays[name] = arrays[name].reshape(dice.choice([(-1,), (1, -1), (-1, 1)]))


def change_all_numbers(header: Any, arrays: Arrays, dice: random.Random) -> None:
    """Multiply an array by a number: what was the sum of others still is."""
    name = dice.choice(list(arrays))
    factor = dice.choice([0, -1, 0.5, 3, 1e-200, 1e50, 1e90, 1e290, np.nan])
    arrays[name] = (arrays[name] * factor).astype(arrays[name].dtype)


CHANGES: list[Callable[[Any, Arrays, random.Random], None]] = [
    change_header,
    change_header,
    change_numbers,
    change_bits,
    change_array,
    change_all_numbers,
]


def forged(data: bytes, dice: random.Random) -> bytes:
    """The file after one to three changes."""
    header, arrays = apart(data)
    for _ in range(dice.choice([1, 1, 2, 3])):
        if header and arrays and all(array.size for array in arrays.values()):
            with np.errstate(all="ignore"):
                dice.choice(CHANGES)(header, arrays, dice)
    return together(header, arrays)
