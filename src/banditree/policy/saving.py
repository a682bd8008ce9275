"""Save and load policies, as files or bytes, and for pickle and copy, all in one format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditree.beliefs import BELIEFS, Belief, Rows
from banditree.beliefs.base import ROUNDING, Arrays, Floats
from banditree.beliefs.priors import Prior
from banditree.errors import BadFile, InvalidType, InvalidValue
from banditree.errors.checks import whole
from banditree.features import Features
from banditree.policy.algorithms import ALGORITHMS
from banditree.policy.policy import Policy
from banditree.policy.state import hold
from banditree.rules import RULES, Rule
from banditree.stream import Seed, Stream, seed_sequence
from banditree.tree.shape import Shape
from banditree.tree.tree import Tree, from_arrays, to_arrays

if TYPE_CHECKING:
    from banditree.policy.container import Content

BYTES = "this data"  # what errors call bytes that do not come from a file
HEADER = {"policy", "belief", "own", "rule", "depth", "arms", "clusters"}  # and "options" from format 2 on

# Of every policy beyond its parts, as parameters and attributes, with their defaults.
OPTIONS = {"explore": 0.0, "half_life": None, "features": None}


# Saving


def save(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy to one file, completely or not at all."""
    from banditree.report import files  # as in Policy.save

    files.write_whole(path, _encode(policy))


def to_bytes(policy: Policy) -> bytes:
    """Return what `save` writes."""
    return b"".join(_encode(policy))


def _encode(policy: Policy) -> list[Any]:
    from banditree.policy import container

    closed = policy._close_walk(changes=False)
    with policy._lock, closed as state:
        parent, content, arms, names = to_arrays(policy.tree)
        header = {
            "policy": type(policy).__name__,
            "belief": _describe(policy.belief),
            "own": [[_written(key), _describe(belief)] for key, belief in state.own_priors.items()],
            "rule": _describe(policy.rule),
            "depth": policy.depth,
            "options": _options(policy),
            "arms": arms,
            "clusters": names,
        }
        rows = {f"rows.{name}": array.copy() for name, array in state.rows.kept().items()}
    return container.encode("policy", header, {"parent": parent, "content": content, **rows})


def _options(policy: Policy) -> dict[str, Any]:
    options = {name: getattr(policy, name) for name in OPTIONS}
    features = options.pop("features")
    return options if features is None else options | {"features": features.to_dict()}


def _describe(part: Belief | Rule) -> dict[str, object]:
    """Describe a belief or a rule for a file. A user-defined one is passed again at loading: its name is enough."""
    if _is_built_in(part):
        return {"kind": type(part).__name__, **part.parameters()}
    return {"kind": f"{type(part).__module__}.{type(part).__qualname__}"}


def _is_built_in(part: Belief | Rule) -> bool:
    return type(part) in (*BELIEFS.values(), *RULES.values())


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
    from banditree.policy import container
    from banditree.report import files

    content = container.decode(files.read_whole(path, container.MAGIC), "policy", str(path))
    return _build(content, str(path), rng, belief, rule)


def from_bytes(data: object, *, rng: Seed = None, belief: Prior | None = None, rule: Rule | None = None) -> Policy:
    """Make a policy from the bytes of `Policy.to_bytes`, with a fresh random stream. The rest is as for `load`.

    >>> import banditree as bt
    >>> policy = bt.TSC(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1"]}), rng=7)
    >>> policy.update("h1", reward=1)
    >>> bt.from_bytes(policy.to_bytes(), rng=8).table()[0].plays
    1
    """
    return _build(_decode(data), BYTES, rng, belief, rule)


def _decode(data: object) -> Content:
    from banditree.policy import container

    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidType(f"data is a {type(data).__name__}; give the bytes that to_bytes() returned")
    return container.decode(bytes(data), "policy", BYTES)


class Saved(NamedTuple):
    """The header of a saved policy. Its types have been checked; its values are checked where they are used."""

    policy: str
    belief: dict[str, Any]
    own: list[tuple[Any, dict[str, Any]]]  # (arm or path, belief)
    rule: dict[str, Any]
    depth: int | None
    arms: list[Any]
    clusters: list[Any]
    options: dict[str, Any]


def _build(
    content: Content,
    source: str,
    rng: Seed,
    belief: Prior | None,
    rule: Rule | None,
    kind: type[Policy] | None = None,
    *,
    strict: bool = True,
) -> Policy:
    """Build a policy from decoded content.

    ``strict``: a prior that is passed must fit the tree. Those in a file may be for arms and clusters that have left.
    """
    stream = rng if isinstance(rng, np.random.Generator | Stream) else seed_sequence(rng)  # errors here are the user's
    with _whole(source):
        saved = _header(content)
    _check_kind(belief, saved.belief["kind"], BELIEFS, "belief")
    _check_kind(rule, saved.rule["kind"], RULES, "rule")
    arrays = dict(content.arrays)
    with _whole(source):
        tree = from_arrays(arrays.pop("parent"), arrays.pop("content"), saved.arms, saved.clusters)
        _check_room(saved, tree, sum(array.size for array in arrays.values()))
        prior = belief
        if prior is None:
            prior = {key: _rebuild(described, BELIEFS) for key, described in [(None, saved.belief), *saved.own]}
        rule_or_saved = rule if rule is not None else _rebuild(saved.rule, RULES)
    kind = kind or ALGORITHMS.get(saved.policy, Policy)
    policy = kind.__new__(kind)
    with _whole(source, also=belief is None and rule is None):
        strict = strict and belief is not None
        start = None if rng is None else stream  # without a seed a fork draws afresh
        policy._start(tree, prior, rule_or_saved, saved.depth, start, OPTIONS | saved.options, strict=strict)
    with _whole(source):
        restore(policy, _rows(arrays, policy, content.version))
    return policy


def restore(policy: Policy, rows: Arrays) -> None:
    """Put saved evidence, and what derives from it, in place of the present: {name: (nodes, ...)}."""
    with hold(policy) as state:
        _put_back(state.tree.shape, state.rows, rows)
        state.refresh(policy.rule)


def _put_back(shape: Shape, rows: Rows, arrays: Arrays) -> None:
    """Replace the present evidence by saved arrays from `Rows.kept`; if they cannot be right, raise and change nothing.

    The evidence of the arms is decisive. That of an inner node must be their sum, up to rounding.
    """
    arrays = {name: array for name, array in arrays.items() if name not in rows.NOT_READ}
    for name in rows.EVIDENCE:
        if name not in arrays:
            raise InvalidValue(f"{name} is missing")
        present = getattr(rows, name)
        if arrays[name].shape != present.shape:
            raise InvalidValue(f"{name} has shape {arrays[name].shape}; the tree needs {present.shape}")
        if arrays[name].dtype != present.dtype:
            raise InvalidValue(f"{name} holds {arrays[name].dtype}s, not {present.dtype}s")
    if unknown := sorted(arrays.keys() - {*rows.EVIDENCE, "scale"}):
        raise InvalidValue(f"{unknown[0]!r} is unknown; if a newer banditree saved it, upgrade banditree")
    staged = rows.stage()
    with np.errstate(all="ignore"):  # the checks find values that are not finite
        staged.put_back(arrays)
        _check_sums(shape, staged)
        staged.check_evidence()
    rows.commit(staged)


def _check_sums(shape: Shape, rows: Rows) -> None:
    """Compare the evidence of inner nodes with the sums of their arms.

    Arrays that cannot be negative may differ by rounding only. The others may have terms of both signs that are much
    larger than their sum, so that rounding is as large as the sum: those sums are recomputed.
    """
    counted = np.zeros(shape.n_nodes)  # of all of them together, because one may be the difference of others
    for name in rows.NON_NEGATIVE:
        counted[shape.node_of] += np.abs(getattr(rows, name)[shape.node_of])
    shape.sum_up(counted)
    for name in rows.EVIDENCE:
        stored: Floats = getattr(rows, name)
        sums, sizes = np.zeros_like(stored), np.zeros_like(stored)
        sums[shape.node_of] = stored[shape.node_of]
        sizes[shape.node_of] = np.abs(stored[shape.node_of])
        off = np.abs(stored - shape.sum_up(sums)).reshape(len(stored), -1).max(axis=1)  # (nodes,)
        if name in rows.NON_NEGATIVE:
            if (off > ROUNDING * counted).any():
                raise InvalidValue(f"{name} of a cluster is not the sum over its arms")
        else:
            size = shape.sum_up(sizes).reshape(len(stored), -1).max(axis=1)
            differs = ~(off <= ROUNDING * size + rows.residue(name, np.arange(len(stored))))
            stored[differs] = sums[differs]


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


def _header(content: Content) -> Saved:
    """Return the header of a file, its types checked."""
    header = content.header
    if content.version == 1:
        header = {**header, "options": {}}
    if strange := sorted(header.keys() - HEADER - {"options"}):
        raise InvalidValue(f"it has {strange[0]!r:.60}, which this version does not know; upgrade banditree")
    own = [(_key(key), _part(described)) for key, described in _of(list, header, "own")]
    depth = header["depth"]
    options = dict(_of(dict, header, "options"))
    if strange := sorted(options.keys() - OPTIONS.keys()):
        raise InvalidValue(f"it has the option {strange[0]!r:.60}, which this version does not know; upgrade banditree")
    if "features" in options:
        options["features"] = Features.from_dict(options["features"])
    return Saved(
        policy=_of(str, header, "policy"),
        belief=_part(header["belief"]),
        own=own,
        rule=_part(header["rule"]),
        depth=None if depth is None else whole("depth", depth, 0),
        arms=_of(list, header, "arms"),
        clusters=_of(list, header, "clusters"),
        options=options,
    )


def _of(kind: type, header: Mapping[str, object], key: str) -> Any:
    if not isinstance(header[key], kind):
        raise InvalidType(f"{key} is a {type(header[key]).__name__}")
    return header[key]


def _part(described: Any) -> dict[str, Any]:
    if not isinstance(described, dict) or not isinstance(described.get("kind"), str):
        raise InvalidType(f"{described!r:.60} is not a belief or a rule")
    return described


def _written(key: object) -> Any:
    """Return the key of a prior for a file, in which None stands for the ... at the end of a path."""
    return [None if name is ... else name for name in key] if isinstance(key, tuple) else key


def _key(key: object) -> Any:
    """Return the key of a prior from a file: an arm, or a path."""
    if isinstance(key, list) and len(key) > 1 and key[-1] is None:
        return (*_key(key[:-1]), ...)
    path = tuple(key) if isinstance(key, list) else (key,)
    if not path or not all(isinstance(name, str | int) and not isinstance(name, bool) for name in path):
        raise InvalidType(f"{key!r:.60} is neither an arm nor a path")
    return path if isinstance(key, list) else key


def _check_kind(part_or_parts: Any, saved: str, kinds: Mapping[str, type], what: str) -> None:
    """Require parts of the saved kind: built-in ones may be replaced by the same kind, others must be given."""
    if part_or_parts is None and saved not in kinds:
        raise InvalidType(f"this policy was built with a user-defined {what}, {saved}; pass it as {what}=")
    for part in part_or_parts.values() if isinstance(part_or_parts, Mapping) else (part_or_parts,):
        if part is not None and saved in kinds and not isinstance(part, kinds[saved]):
            raise InvalidType(f"{what}={part!r}: the file was saved with a {saved}; give one of those, or leave it out")


def _check_room(saved: Saved, tree: Tree, numbers: int) -> None:
    """Refuse contexts too long for the amount of data in the file, before memory is allocated for them."""
    walked = tree if saved.depth is None else tree.cut(saved.depth)
    for described in (saved.belief, *(described for _, described in saved.own)):
        dim = described.get("dim", 1)
        if isinstance(dim, int) and walked.shape.n_nodes * dim**2 // 2 > numbers:
            raise InvalidValue(f"{numbers} numbers are too few for {walked.shape.n_nodes} nodes with dim={dim}")


def _rebuild(described: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    parameters = dict(described)
    return kinds[parameters.pop("kind")](**parameters)


def _rows(arrays: Arrays, policy: Policy, version: int) -> dict[str, NDArray[Any]]:
    """Return the saved arrays of the beliefs. Those of version 1 that are no longer known are left out."""
    rows = {name.removeprefix("rows."): array for name, array in arrays.items()}
    known = policy._state.rows.kept() if version == 1 else rows
    return {name: array for name, array in rows.items() if name in known}


# Copying


def reduce(policy: Policy) -> tuple[Any, ...]:
    """Return what pickle and copy need: the bytes, and by reference user-defined parts and added attributes."""
    belief = None if _is_built_in(policy.belief) else {None: policy.belief, **policy._state.own_priors}
    rule = None if _is_built_in(policy.rule) else policy.rule
    return copied, (type(policy), to_bytes(policy), belief, rule), dict(vars(policy)) or None


def copied(kind: type[Policy], data: bytes, belief: Prior | None, rule: Rule | None) -> Policy:
    """Make the copy that `reduce` describes, with a fresh random stream."""
    return _build(_decode(data), BYTES, None, belief, rule, kind, strict=False)
