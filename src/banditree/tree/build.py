"""Build trees from nested specs, labels, paths or a linkage matrix: the result is a draft that ``shape`` numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import shown

Name = str | int
MOST = 2**30  # most arms in a tree: node numbers have 32 bits


class Draft:
    """The nodes of a tree in the order in which they were read. Node 0 is the root."""

    def __init__(self) -> None:
        self.parent: list[int] = [-1]
        self.arm: list[int] = [-1]  # the arm's position in the user's order, -1 for a cluster
        self.names: dict[int, Name | None] = {0: None}  # cluster node -> name
        self.arms: list[Name] = []

    def add_cluster(self, parent: int, cluster: Name) -> int:
        node = len(self.parent)
        self.parent.append(parent)
        self.arm.append(-1)
        self.names[node] = cluster
        return node

    def add_arms(self, parents: Iterable[int], arms: Sequence[Name]) -> None:
        self.parent.extend(parents)
        self.arm.extend(range(len(self.arms), len(self.arms) + len(arms)))
        self.arms.extend(arms)


def names(values: Iterable[Any], what: str) -> list[Name]:
    """Check that ids are strings or ints, and convert NumPy scalars to Python's."""
    if not _is_list(values):
        raise InvalidType(f"{what}s must be a list or an array, not {values!r}")
    _refuse_sets(values, f"{what}s")
    found = _listed(values)
    if set(map(type, found)) <= {str, int}:
        return found
    return [_name(value, what) for value in found]


def _is_list(values: Any) -> bool:
    """Say whether these are several values: not a text, nor a NumPy array of no dimension, which is one number."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def _listed(values: Iterable[Any]) -> list[Any]:
    """Return the values of a list or an array, as Python's own where the array is NumPy's or PyArrow's."""
    if isinstance(values, np.ndarray):
        return values.tolist()  # type: ignore[no-any-return]
    return values.to_pylist() if hasattr(values, "to_pylist") else list(values)


def _refuse_sets(values: Any, where: str) -> None:
    if isinstance(values, set | frozenset):  # its order, and so a seeded run, differs between processes
        raise InvalidType(f"{where}: a set has no order; give a list, for example sorted(...)")


def _name(value: Any, what: str) -> Name:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    if isinstance(value, tuple | list) and value:
        example = ", ".join(map(str, value))
        how = f"join it into one string, such as {example[:60]!r}, with ', '.join(map(str, ...))"
        raise InvalidType(f"{what} {value!r:.60} is a {type(value).__name__}; use strings or ints as names: {how}")
    raise InvalidType(f"{what} {value!r:.60} is a {type(value).__name__}; use strings or ints as names")


def from_spec(spec: Any) -> Draft:
    """Build from an int, a list of ids, or a mapping from cluster names to specs; lists may mix arms and mappings."""
    draft = Draft()
    # Depth first with an explicit stack: arms keep the order in which they are read, and depth is unlimited.
    open_clusters = [(0, iter(_read(spec, "the tree", 0)), "the tree", set[Name]())]
    while open_clusters:
        node, children, where, seen = open_clusters[-1]
        for child in children:
            if not isinstance(child, tuple):
                draft.add_arms([node], [child])
                continue
            cluster = _name(child[0], "cluster")
            if cluster in seen:
                raise InvalidValue(f"cluster {cluster!r} appears twice in {where}; merge the two or rename one")
            seen.add(cluster)
            inside = f"cluster {cluster!r}"
            below = _read(child[1], inside, len(draft.arms))
            open_clusters.append((draft.add_cluster(node, cluster), iter(below), inside, set()))
            break
        else:
            open_clusters.pop()
    return draft


def _read(part: Any, where: str, n_before: int) -> list[Any]:
    """Return the children in one part of a spec: arm ids, and (name, spec) pairs for clusters.

    A number of arms continues the numbering after the ``n_before`` arms read so far.
    """
    children: list[Any] = []
    if isinstance(part, Mapping):
        children = list(part.items())
    elif isinstance(part, int | np.integer) and not isinstance(part, bool | np.timedelta64):
        if part > MOST:
            raise InvalidValue(f"{where} has {shown(part)} arms; a tree holds at most {MOST:,}")
        children = list(range(n_before, n_before + int(part)))
    elif not _is_list(part):
        raise InvalidType(f"{where} is {part!r}; use a number of arms, a list of arm ids or a mapping of clusters")
    else:
        _refuse_sets(part, where)
        for item in _listed(part):
            children.extend(item.items() if isinstance(item, Mapping) else [_name(item, "arm")])
    if not children:
        raise InvalidValue(f"{where} has no arms ({part!r}); it needs at least one")
    return children


def from_paths(paths: Iterable[Sequence[Any]]) -> Draft:
    """Build from one path per arm: cluster names from coarse to fine, then the arm."""
    if not _is_list(paths):
        raise InvalidType(f"paths must be a list with one path per arm, not {paths!r}")
    _refuse_sets(paths, "paths")
    draft = Draft()
    clusters: dict[tuple[int, Name], int] = {}
    parents: list[int] = []
    arms: list[Any] = []
    for row, path in enumerate(paths):
        if not _is_path(path):
            raise InvalidValue(f"path {row} is {path!r}; give cluster names from coarse to fine, then the arm")
        node = 0
        for step in path[:-1]:
            name = step if type(step) is str else _name(step, f"cluster in path {row}")
            below = clusters.get((node, name))
            if below is None:
                below = clusters[node, name] = draft.add_cluster(node, name)
            node = below
        parents.append(node)
        arms.append(path[-1])
    draft.add_arms(parents, names(arms, "arm"))
    return draft


def _is_path(path: Any) -> bool:
    return isinstance(path, Sequence | np.ndarray) and _is_list(path) and len(path) > 0


def from_labels(labels: Iterable[Any], arms: Iterable[Any] | None) -> Draft:
    """Build from one cluster label per arm."""
    found = names(labels, "label")
    ids = ids_of(arms, len(found), "labels")
    draft = Draft()
    cluster: dict[Name, int] = {}
    for label in found:
        if label not in cluster:
            cluster[label] = draft.add_cluster(0, label)
    draft.add_arms([cluster[label] for label in found], ids)
    return draft


def from_linkage(merges: Any, arms: Iterable[Any] | None) -> Draft:
    """Build from a SciPy linkage matrix: row i merges two nodes into node n + i, and n + i is its name."""
    try:
        matrix = np.asarray(merges, dtype=float)
    except (TypeError, ValueError):
        raise InvalidType("a linkage matrix is an array of numbers, as from scipy.cluster.hierarchy.linkage") from None
    if not np.isfinite(matrix).all():
        raise InvalidValue("this linkage matrix has entries that are not finite")
    if matrix.ndim != 2 or matrix.shape[1] not in (2, 4):
        raise InvalidValue(f"a linkage matrix has shape (arms - 1, 4); this one has shape {matrix.shape}")
    n = len(matrix) + 1
    pairs = matrix[:, :2].astype(np.intp)
    merged = np.sort(pairs.ravel())
    in_order = bool((pairs < n + np.arange(n - 1)[:, None]).all())
    if (pairs != matrix[:, :2]).any() or not in_order or (merged != np.arange(2 * n - 2)).any():
        raise InvalidValue("this is not a linkage matrix: each arm and earlier cluster must be merged exactly once")
    ids = ids_of(arms, n, "rows of the linkage")
    draft = Draft()
    node_of = {2 * n - 2: 0}  # SciPy's number of a cluster -> ours
    arm_parent = [0] * n
    for row in range(n - 2, -1, -1):
        for child in pairs[row].tolist():
            parent = node_of[n + row]
            if child < n:
                arm_parent[child] = parent
            else:
                node_of[child] = draft.add_cluster(parent, child)
    draft.add_arms(arm_parent, ids)
    return draft


def ids_of(arms: Iterable[Any] | None, n: int, what: str) -> list[Name]:
    """Return the ids of n arms: the given ones, or 0, 1, ..., n - 1."""
    ids: list[Name] = list(range(n)) if arms is None else names(arms, "arm")
    if len(ids) != n:
        raise InvalidValue(f"{len(ids)} arms for {n} {what}; give exactly one arm for each")
    return ids
