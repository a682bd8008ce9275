"""Save and load policies, as files or bytes, and for pickle and copy, all in one format.

A file is: magic | format (8 bytes) | length of the header (8 bytes) | header as JSON | arrays, end to end | SHA-256 of
the rest. Nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from banditree.base import files
from banditree.base.arrays import Array
from banditree.base.files import Json
from banditree.beliefs import BELIEFS, Belief, Rows
from banditree.beliefs.base import Arrays
from banditree.beliefs.priors import Prior, parts
from banditree.data.features import Features
from banditree.errors import BadFile, InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.policy.algorithms import ALGORITHMS, known_policies
from banditree.policy.policy import Policy
from banditree.policy.state import hold
from banditree.rules import RULES, Rule
from banditree.stream import Seed, Stream, seed_sequence
from banditree.tree.tree import Tree, from_arrays, to_arrays

MAGIC = b"banditree\x00"
FORMAT = 2  # that of 0.2 and later
DTYPES = ("<f8", "<i4", "<i8")  # types of arrays that may be stored
CHECKSUM = hashlib.sha256().digest_size
START = len(MAGIC) + 16  # where the header begins

BYTES = "this data"  # what errors call bytes that do not come from a file
HEADER = {"policy", "belief", "own", "rule", "depth", "arms", "clusters", "options"}
OPTIONS = {"explore", "half_life", "features"}  # of every policy beyond its parts, as parameters and attributes
Part = TypeVar("Part", Belief, Rule)


# Saving


def save(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy to one file, completely or not at all."""
    files.write_whole(path, _encode(policy))


def to_bytes(policy: Policy) -> bytes:
    """Return what `save` writes."""
    return b"".join(_encode(policy))


def _encode(policy: Policy) -> list[files.Bytes]:
    """Return pieces of bytes, to be written one after the other."""
    with hold(policy) as state:
        parent, content, arms, names = to_arrays(policy.tree)
        arrays = {"parent": parent, "content": content}
        arrays |= {f"rows.{name}": getattr(state.rows, name).copy() for name in state.rows.EVIDENCE}
        if policy.half_life is not None:
            arrays["rows.since_faded"] = np.array([state.walk.since_faded])
        own_priors = [[_written(key), _describe(belief)] for key, belief in state.own_priors.items()]
    arrays = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.str not in DTYPES:
            raise InvalidType(
                f"{name} cannot be saved: it is an array of {array.dtype.str}; use one of {', '.join(DTYPES)}"
            )
    options: dict[str, object] = {"explore": policy.explore, "half_life": policy.half_life}
    if policy.features is not None:
        options["features"] = policy.features.to_dict()
    header = {
        "kind": "policy",
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()],
        "policy": type(policy).__name__,
        "belief": _describe(policy.belief),
        "own": own_priors,
        "rule": _describe(policy.rule),
        "depth": policy.depth,
        "options": options,
        "arms": arms,
        "clusters": names,
    }
    try:
        text = json.dumps(header, default=_plain, allow_nan=False).encode()
    except ValueError as error:  # a number that is not finite, or an int of thousands of digits
        raise InvalidValue(f"this cannot be saved: {error}") from None
    start = MAGIC + FORMAT.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text
    pieces: list[files.Bytes] = [start, *(array.data.cast("B") for array in arrays.values() if array.size)]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def _describe(part: Belief | Rule) -> dict[str, object]:
    """Describe a belief or a rule for a file. A user-defined one is passed again at loading: its name is enough."""
    if _is_built_in(part):
        return {"kind": type(part).__name__, **part.parameters()}
    return {"kind": f"{type(part).__module__}.{type(part).__qualname__}"}


def _is_built_in(part: Belief | Rule) -> bool:
    return type(part) in (*BELIEFS.values(), *RULES.values())


def _written(key: object) -> object:
    """Return the key of a prior for a file, in which None stands for the ... at the end of a path."""
    return [None if name is ... else name for name in key] if isinstance(key, tuple) else key


def _plain(value: object) -> object:
    """Convert NumPy's numbers and arrays to Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise InvalidType(f"{value!r:.60} cannot be saved: it is a {type(value).__name__}, neither numbers nor text")


# Loading


def load(
    path: str | os.PathLike[str], *, rng: Seed = None, belief: Prior | None = None, rule: Rule | None = None
) -> Policy:
    """Load the policy that `Policy.save` wrote, with a fresh random stream.

    Files from unknown sources are safe to load: their content is checked, and none of it is executed.

    Parameters
    ----------
    path
        The file.
    rng
        An int, a SeedSequence or a Generator.
    belief, rule
        A belief or a rule of your own that the policy has: a file holds no code.
    """
    return _build(files.read_whole(path, MAGIC), str(path), rng, belief, rule)


def from_bytes(data: object, *, rng: Seed = None, belief: Prior | None = None, rule: Rule | None = None) -> Policy:
    """Make a policy from the bytes of `Policy.to_bytes`, with a fresh random stream. The rest is as for `load`.

    >>> import banditree as bt
    >>> policy = bt.TSC(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1"]}), rng=7)
    >>> policy.update("h1", reward=1)
    >>> bt.from_bytes(policy.to_bytes(), rng=8).table()[0].plays
    1
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidType(f"data is a {type(data).__name__}; give the bytes that to_bytes() returned")
    return _build(bytes(data), BYTES, rng, belief, rule)


def _build(
    data: bytes,
    source: str,
    rng: Seed,
    belief: Prior | None,
    rule: Rule | None,
    own: Mapping[object, Belief] | None = None,
    kind: type[Policy] | None = None,
) -> Policy:
    """Build a policy from a file's content, or with the parts that are given in place of those in it.

    ``own`` are the priors of some nodes, by arm or path: as in a file, they may be for nodes that have left the tree.
    """
    content = decode(data, source)
    stream = rng if isinstance(rng, np.random.Generator | Stream) else seed_sequence(rng)  # errors here are the user's
    with _whole(source):
        saved = _read_header(content)
    _check_kind(belief, saved["belief"]["kind"], BELIEFS, "belief")
    _check_kind(rule, saved["rule"]["kind"], RULES, "rule")
    arrays, has_own_parts = dict(content.arrays), belief is not None or rule is not None
    with _whole(source):
        tree = from_arrays(arrays.pop("parent"), arrays.pop("content"), saved["arms"], saved["clusters"])
        _check_room(saved, tree, sum(array.size for array in arrays.values()))
        if belief is None:
            described = [(None, saved["belief"]), *saved["own"]]
            belief, own = parts({key: _rebuild(part, BELIEFS) for key, part in described})
        rule = _rebuild(saved["rule"], RULES) if rule is None else rule
        if kind is None and (kind := ALGORITHMS.get(saved["policy"])) is None:
            kind = known_policies().get(saved["policy"], Policy)
    policy = kind.__new__(kind)
    with _whole(source, also=not has_own_parts):
        start = None if rng is None else stream  # without a seed a fork draws afresh
        Policy.__init__(policy, tree, belief=belief, rule=rule, depth=saved["depth"], rng=start, **saved["options"])
        if own:
            policy._state = policy._with_walk(tree, dict(own), policy._new_rows(tree, own))
    with _whole(source):
        rows = {name.removeprefix("rows."): array for name, array in arrays.items()}
        restore(policy, rows)
    return policy


def restore(policy: Policy, rows: Arrays) -> None:
    """Replace the evidence by saved arrays: {name: (nodes, ...)}; if they cannot be right, raise and change nothing.

    Files of 0.3 have a ``scale`` by which fading evidence is still to be multiplied.
    """
    arrays = dict(rows)
    scale = _one_number(arrays.pop("scale", np.ones(1)), "scale", 2.0**-20, 1)
    with hold(policy) as state:
        since = _one_number(arrays.pop("since_faded", np.zeros(1)), "since_faded", 0, state.walk.fading.every)
        _put_back(state.rows, arrays, scale)
        state.walk.since_faded = int(since)
        state.walk.refresh()


def _one_number(array: Array, name: str, low: float, high: float) -> float:
    if array.shape != (1,) or not low <= array[0] <= high:
        raise InvalidValue(f"{name} is not one number from {low:g} to {high:g}")
    return float(array[0])


def _put_back(rows: Rows, arrays: Arrays, scale: float) -> None:
    for name in rows.EVIDENCE:
        if name not in arrays:
            raise InvalidValue(f"{name} is missing")
        present = getattr(rows, name)
        if arrays[name].shape != present.shape:
            raise InvalidValue(f"{name} has shape {arrays[name].shape}; the tree needs {present.shape}")
        if arrays[name].dtype != present.dtype:
            raise InvalidValue(f"{name} holds {arrays[name].dtype}s, not {present.dtype}s")
    if unknown := sorted(arrays.keys() - set(rows.EVIDENCE)):
        raise InvalidValue(f"{unknown[0]!r} is unknown; if a newer banditree saved it, upgrade banditree")
    present = rows.table.copy()
    try:
        with np.errstate(all="ignore"):  # the checks find values that are not finite
            for name in rows.EVIDENCE:
                getattr(rows, name)[...] = arrays[name] * scale
            rows.check_evidence()
    except BaseException:
        rows.table[...] = present
        raise


@contextmanager
def _whole(source: str, also: bool = True) -> Iterator[None]:
    """Raise `BadFile` for content that `save` never writes; unless ``also``, errors are those of the user's parts."""
    try:
        yield
    except BadFile:
        raise
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        if not also:
            raise
        raise BadFile(f"{source} does not hold a whole policy: {error}") from error


def _read_header(content: Content) -> Json:
    """Return the header of a file, with its keys and types checked; values are checked where they are used."""
    header = content.header
    for key, kind in {"policy": str, "own": list, "arms": list, "clusters": list, "options": dict}.items():
        if not isinstance(header[key], kind):
            raise InvalidType(f"{key} is a {type(header[key]).__name__}")
    for strange in sorted(header.keys() - HEADER) + [f"option {name}" for name in header["options"].keys() - OPTIONS]:
        raise InvalidValue(f"it has {strange!r:.60}, which this version does not know; upgrade banditree")
    own = [(_key(key), described) for key, described in header["own"]]
    for described in (header["belief"], header["rule"], *(described for _, described in own)):
        if not isinstance(described, dict) or not isinstance(described.get("kind"), str):
            raise InvalidType(f"{described!r:.60} is not a belief or a rule")
    depth = None if header["depth"] is None else whole("depth", header["depth"], 0)
    options = dict(header["options"])
    if "features" in options:
        options["features"] = Features.from_dict(options["features"])
    return header | {"own": own, "depth": depth, "options": options}


def _key(key: object) -> Any:
    """Return the key of a prior from a file: an arm, or a path."""
    if isinstance(key, list) and len(key) > 1 and key[-1] is None:
        return (*_key(key[:-1]), ...)
    path = tuple(key) if isinstance(key, list) else (key,)
    if not path or not all(isinstance(name, str | int) and not isinstance(name, bool) for name in path):
        raise InvalidType(f"{key!r:.60} is neither an arm nor a path")
    return path if isinstance(key, list) else key


def _check_kind(part_or_parts: object, saved: str, kinds: Mapping[str, type], what: str) -> None:
    """Require parts of the saved kind: built-in ones may be replaced by the same kind, others must be given."""
    if part_or_parts is None and saved not in kinds:
        raise InvalidType(f"this policy was built with a user-defined {what}, {saved}; pass it as {what}=")
    for part in part_or_parts.values() if isinstance(part_or_parts, Mapping) else (part_or_parts,):
        if part is not None and saved in kinds and not isinstance(part, kinds[saved]):
            raise InvalidType(f"{what}={part!r}: the file was saved with a {saved}; give one of those, or leave it out")


def _check_room(saved: Json, tree: Tree, numbers: int) -> None:
    """Refuse contexts too long for the amount of data in the file, before memory is allocated for them."""
    n_nodes = (tree if saved["depth"] is None else tree.cut(saved["depth"])).shape.n_nodes
    for described in (saved["belief"], *(described for _, described in saved["own"])):
        dim = described.get("dim", 1)
        if isinstance(dim, int) and n_nodes * dim**2 // 2 > numbers:
            raise InvalidValue(f"{numbers} numbers are too few for {n_nodes} nodes with dim={dim}")


def _rebuild(described: Json, kinds: Mapping[str, Callable[..., Part]]) -> Part:
    parameters = dict(described)
    return kinds[parameters.pop("kind")](**parameters)


# The content of a file


class Content(NamedTuple):
    """The decoded content of a file."""

    header: Json
    arrays: dict[str, Array]


def decode(data: bytes, source: str) -> Content:
    """Decode what `save` wrote. Any other bytes raise a `BadFile` before anything large is allocated."""
    if not data.startswith(MAGIC) or len(data) < START + CHECKSUM:
        raise BadFile(f"{source} is not a banditree file, or was cut off; give a file that save() wrote")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    if hashlib.sha256(memoryview(data)[:-CHECKSUM]).digest() != data[-CHECKSUM:]:
        raise BadFile(f"{source} is truncated or corrupt (its checksum does not match); restore it from a copy")
    if version > FORMAT:
        raise BadFile(
            f"{source} has format {version}, this version of banditree reads up to {FORMAT}; upgrade banditree"
        )
    end = START + int.from_bytes(data[START - 8 : START], "little")
    if version == 1:
        raise BadFile(f"{source} has format {version}, of banditree 0.1; load it with 0.3 and save it again")
    if version < 1 or end > len(data) - CHECKSUM:
        raise BadFile(f"{source} has a header that banditree never writes")
    try:
        header = json.loads(data[START:end])
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{source} has a header that is not the JSON that banditree writes: {error}") from None
    if not isinstance(header, dict):
        raise BadFile(f"{source} has a header that is not a JSON object")
    kind = header.pop("kind", None)
    if kind != "policy":
        raise BadFile(f"{source} holds a {kind!r:.60}, not a 'policy'")
    return Content(header, _read_arrays(data, end, header.pop("arrays", None), source))


def _read_arrays(data: bytes, end: int, index: Any, source: str) -> dict[str, Array]:
    """Read the arrays in the index; together they fill the data from ``end`` to the checksum."""
    arrays: dict[str, Array] = {}
    try:
        for name, dtype, shape in index:
            if dtype not in DTYPES:
                raise BadFile(f"{source} holds an array of type {dtype!r}, which banditree never writes")
            n, size = math.prod(shape), np.dtype(dtype).itemsize
            if not 0 <= n * size <= len(data) - CHECKSUM - end:
                raise BadFile(f"{source} names more numbers than it holds")
            arrays[name] = np.frombuffer(data, dtype, n, end).reshape(shape).astype(dtype[1:])
            end += n * size
    except (TypeError, ValueError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{source} names its arrays as banditree never does: {index!r:.60}") from None
    if end != len(data) - CHECKSUM:
        raise BadFile(f"{source} holds more numbers than it names")
    return arrays


# Copying


def reduce(policy: Policy) -> tuple[object, ...]:
    """Return what pickle and copy need: the bytes, and by reference user-defined parts and added attributes."""
    belief = None if _is_built_in(policy.belief) else {None: policy.belief, **policy._state.own_priors}
    rule = None if _is_built_in(policy.rule) else policy.rule
    return copied, (type(policy), to_bytes(policy), belief, rule), dict(vars(policy)) or None


def copied(kind: type[Policy], data: bytes, belief: Prior | None, rule: Rule | None) -> Policy:
    """Make the copy that `reduce` describes, with a fresh random stream."""
    default, own = (None, None) if belief is None else parts(belief)
    return _build(data, BYTES, None, default, rule, own, kind)
