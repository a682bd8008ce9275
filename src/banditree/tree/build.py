"""Build trees from specs, labels, paths, linkage matrices or saved arrays, and change them.

Each result is a draft, which ``shape`` numbers. Changes work on the arrays of a tree, not on the paths of its arms, so
a deep tree costs no more than a flat one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Array
from banditree.errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from banditree.tree.tree import Tree

Name = str | int
PLAIN = {str, int}  # types that are valid ids; True and 1.0 equal 1 but are not ids
MAX_ARMS = 2**30  # most arms in a tree: node numbers have 32 bits


class Draft:
    """The nodes of a tree in the order in which they were read. Node 0 is the root."""

    def __init__(self) -> None:
        self.parent: Any = [-1]  # a list while it grows, or an array
        self.arm: Any = [-1]  # the arm's position in the user's order, -1 for a cluster
        self.names: dict[int, Name | None] = {0: None}  # cluster node -> name
        self.arms: list[Name] = []
        self.index: dict[Name, int] | None = None  # the positions of the arms, if they are known

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


def names(values: Iterable[object], what: str) -> list[Name]:
    """Check that ids are strings or ints, and convert NumPy scalars to Python's."""
    _refuse_sets(values, f"{what}s")
    ids = to_list(values, f"{what}s")
    if set(map(type, ids)) <= PLAIN:
        return ids
    return [_name(value, what) for value in ids]


def _is_list(values: object) -> TypeGuard[Iterable[object]]:
    """Say whether these are several values: not text, and not a NumPy array without dimensions, which is one number."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def to_list(values: object, what: str) -> list[Any]:
    """Return the values of a list or an array, as Python's own where the array is NumPy's or PyArrow's."""
    _refuse_frames(values, what)
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    if not _is_list(values):
        raise InvalidType(f"{what} must be a list or an array, not {values!r}")
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _refuse_sets(values: object, where: str) -> None:
    if isinstance(values, set | frozenset):  # its order, and so a seeded run, differs between processes
        raise InvalidType(f"{where}: a set has no order; give a list, for example sorted(...)")


def _refuse_frames(values: object, where: str) -> None:
    if hasattr(type(values), "columns"):  # it would be taken for the list of its columns' names
        how = 'bt.Tree.from_frame(frame, path=["category"], arm="item")'
        raise InvalidType(f"{where} is a data frame ({type(values).__name__}); name its columns: {how}")


def _name(value: object, what: str) -> Name:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    if isinstance(value, tuple | list) and value:
        example = ", ".join(map(str, value))
        how = f"join it into one string, such as {example[:60]!r}, with ', '.join(map(str, ...))"
        raise InvalidType(f"{what} {value!r:.60} is a {type(value).__name__}; use strings or ints as names: {how}")
    raise InvalidType(f"{what} {value!r:.60} is a {type(value).__name__}; use strings or ints as names")


def from_spec(spec: object) -> Draft:
    """Build from an int, a list of ids, or a mapping from cluster names to specs; lists may mix arms and mappings."""
    draft = Draft()
    # Depth first with an explicit stack: arms keep the order in which they are read, and depth is unlimited.
    open_clusters = [(0, iter(_read(spec, "the tree", 0)), "the tree", set[Name]())]
    while open_clusters:
        node, children, where, seen = open_clusters[-1]
        for child in children:
            if not isinstance(child, tuple):
                draft.add_arms((node,), (child,))
                continue
            cluster = child[0] if type(child[0]) in PLAIN else _name(child[0], "cluster")
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


def _read(part: object, where: str, n_before: int) -> list[Any]:
    """Return the children in one part of a spec: arm ids, and (name, spec) pairs for clusters.

    A number of arms continues the numbering after the ``n_before`` arms read so far.
    """
    children: list[object] = []
    if isinstance(part, dict | Mapping):  # `dict` first: the check of an abstract class is slow
        children = list(part.items())
    elif type(part) is list and part and set(map(type, part)) <= PLAIN:
        return part
    elif isinstance(part, int | np.integer) and not isinstance(part, bool | np.timedelta64):
        if part > MAX_ARMS:
            raise InvalidValue(f"{where} has {part!s:.60} arms; a tree holds at most {MAX_ARMS:,}")
        children = list(range(n_before, n_before + int(part)))
    elif not _is_list(part):
        _refuse_frames(part, where)
        raise InvalidType(f"{where} is {part!r}; use a number of arms, a list of arm ids or a mapping of clusters")
    else:
        _refuse_sets(part, where)
        for item in to_list(part, where):
            children.extend(item.items() if isinstance(item, Mapping) else [_name(item, "arm")])
    if not children:
        raise InvalidValue(f"{where} has no arms ({part!r}); it needs at least one")
    return children


def from_paths(paths: Iterable[Sequence[object]]) -> Draft:
    """Build from one path per arm: cluster names from coarse to fine, then the arm."""
    if not _is_list(paths):
        raise InvalidType(f"paths must be a list with one path per arm, not {paths!r}")
    _refuse_sets(paths, "paths")
    draft = Draft()
    clusters: dict[tuple[int, Name], int] = {}
    parents: list[int] = []
    arms: list[object] = []
    previous: list[Name] = []  # the clusters of the last path, and their nodes: neighbours share most of them
    nodes = [0]
    for row, path in enumerate(paths):
        if (type(path) is not tuple and not _is_path(path)) or not len(path):
            raise InvalidValue(f"path {row} is {path!r}; give cluster names from coarse to fine, then the arm")
        *steps, arm = path
        if steps != previous or not set(map(type, steps)) <= PLAIN:
            names_of_steps: list[Any] = [
                step if type(step) in PLAIN else _name(step, f"cluster in path {row}") for step in steps
            ]
            same = 0
            for before, name in zip(previous, names_of_steps, strict=False):
                if before != name:
                    break
                same += 1
            del nodes[same + 1 :]
            for name in names_of_steps[same:]:
                below = clusters.get((nodes[-1], name))
                if below is None:
                    below = clusters[nodes[-1], name] = draft.add_cluster(nodes[-1], name)
                nodes.append(below)
            previous = names_of_steps
        parents.append(nodes[-1])
        arms.append(arm)
    draft.add_arms(parents, names(arms, "arm"))
    return draft


def _is_path(path: object) -> bool:
    return _is_list(path) and isinstance(path, Sequence | np.ndarray) and len(path) > 0


def from_labels(labels: Iterable[object], arms: Iterable[object] | None) -> Draft:
    """Build from one cluster label per arm."""
    names_of_arms = names(labels, "label")
    ids = ids_of(arms, len(names_of_arms), "labels")
    draft = Draft()
    cluster: dict[Name, int] = {}
    for label in names_of_arms:
        if label not in cluster:
            cluster[label] = draft.add_cluster(0, label)
    draft.add_arms([cluster[label] for label in names_of_arms], ids)
    return draft


def from_linkage(merges: object, arms: Iterable[object] | None) -> Draft:
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


def ids_of(arms: Iterable[object] | None, n: int, what: str) -> list[Name]:
    """Return the ids of n arms: the given ones, or 0, 1, ..., n - 1."""
    ids: list[Name] = list(range(n)) if arms is None else names(arms, "arm")
    if len(ids) != n:
        raise InvalidValue(f"{len(ids)} arms for {n} {what}; give exactly one arm for each")
    return ids


def check_arrays(parent: Array, content: Array, arms: Sequence[object], clusters: Sequence[object]) -> None:
    """Raise unless these are valid output of `to_arrays`: a tree whose nodes are numbered breadth-first."""
    whole = all(array.ndim == 1 and array.dtype.kind == "i" for array in (parent, content))
    if not whole or len(parent) != len(content) or len(parent) < 2:
        raise InvalidValue("these arrays are not a tree: each needs one whole number per node, for two nodes or more")
    n = len(parent)
    if parent[0] != -1 or (parent[1:] < 0).any() or (parent[1:] >= np.arange(1, n)).any():
        raise InvalidValue("these arrays are not a tree: each node except the root needs a parent that comes before it")
    if (np.diff(parent) < 0).any():
        raise InvalidValue("these arrays are not a tree whose nodes are numbered breadth-first")
    has_children = np.bincount(parent[1:], minlength=n) > 0
    if ((content < 0) != has_children).any():
        raise InvalidValue("these arrays are not a tree: arms must have no children, and clusters at least one")
    if not np.array_equal(np.sort(content[content >= 0]), np.arange(len(arms))):
        raise InvalidValue(f"these arrays are not a tree: each of its {len(arms)} arms must appear exactly once")
    inner = np.flatnonzero(content < 0)
    if not np.array_equal(content[inner], ~np.arange(len(inner))) or len(clusters) != len(inner):
        raise InvalidValue("these arrays are not a tree: clusters must be numbered in order, each with one name")
    names(arms, "arm")
    _check_clusters(parent[inner[1:]].tolist(), *clusters)


def _check_clusters(parents: list[int], root: object, *clusters: object) -> None:
    if root is not None:
        raise InvalidValue(f"the root of a tree has no name; this one is called {root!r:.60}")
    seen = set(zip(parents, names(clusters, "cluster"), strict=True))
    if len(seen) < len(clusters):
        raise InvalidValue("these arrays are not a tree: two sibling clusters have the same name")


Targets = dict[Name, tuple[Name, ...]]  # arm -> the clusters above it
NO_ARM = np.iinfo(np.int64).max  # stands for the first arm of an empty cluster


def add_arms(tree: Tree, arms: Mapping[object, Sequence[object]]) -> Draft:
    targets = _targets(tree, arms)
    for arm in targets:
        if arm in tree:
            raise InvalidValue(f"arm {arm!r} is already in the tree; use move_arms to put it elsewhere")
    return _edit(tree, added=targets)


def move_arms(tree: Tree, arms: Mapping[object, Sequence[object]]) -> Draft:
    targets = _targets(tree, arms)
    for arm in targets:
        tree.position(arm)
    return _edit(tree, moved=targets)


def remove_arms(tree: Tree, arms: Iterable[object]) -> Draft:
    gone = np.unique(np.array([tree.position(arm) for arm in to_list(arms, "arms to remove")], np.int64))
    if len(gone) == tree.n_arms:
        raise InvalidValue("a tree needs at least one arm; this would remove all of them")
    return _edit(tree, gone=gone)


def _edit(
    tree: Tree, *, added: Targets | None = None, moved: Targets | None = None, gone: NDArray[np.int64] | None = None
) -> Draft:
    """Return the draft after a change. Clusters are in the order of their first arms, and come before the arms."""
    shape = tree.shape
    new_clusters: dict[tuple[int, Name], int] = {}  # (parent, name) -> node, numbered after the nodes of the tree
    parent_of_new: list[int] = []

    def node_of(clusters: tuple[Name, ...]) -> int:
        node = 0
        for name in clusters:
            below = tree.nodes.child(node, name) if node < shape.n_nodes else None
            if below is None:
                below = new_clusters.setdefault((node, name), shape.n_nodes + len(new_clusters))
                if below == shape.n_nodes + len(parent_of_new):
                    parent_of_new.append(node)
            node = below
        return node

    above = shape.parent[shape.node_of].astype(np.int64)  # (arms,) the cluster above each arm
    for arm, clusters in (moved or {}).items():
        above[tree.position(arm)] = node_of(clusters)
    above = np.concatenate([above, np.fromiter(map(node_of, (added or {}).values()), np.int64)])
    arms = [*tree.arms, *(added or {})]
    if gone is not None:
        stays = np.ones(len(arms), bool)
        stays[gone] = False
        above, arms = above[stays], list(compress(arms, stays.tolist()))
    parent = np.concatenate([shape.parent, np.array(parent_of_new, np.int64)])
    first = _first_arms(tree, parent, above)
    old = np.concatenate([shape.inner, np.arange(shape.n_nodes, len(parent))])  # clusters, the root first
    old = old[first[old] < NO_ARM]
    old[1:] = old[1:][np.argsort(first[old[1:]], kind="stable")]
    new_number = np.empty(len(parent), np.int64)
    new_number[old] = np.arange(len(old))
    names = [*tree.nodes.clusters, *(name for _, name in new_clusters)]
    place = np.empty(len(parent), np.int64)  # of the name of each cluster
    place[np.concatenate([shape.inner, np.arange(shape.n_nodes, len(parent))])] = np.arange(len(names))
    draft = Draft()
    draft.parent = np.concatenate([[-1], new_number[parent[old[1:]]], new_number[above]])
    draft.arm = np.concatenate([np.full(len(old), -1), np.arange(len(arms))])
    draft.names = dict(enumerate(map(names.__getitem__, place[old].tolist())))
    draft.arms = arms
    if gone is None:  # a copy is quicker than building it again
        draft.index = tree.index | {arm: tree.n_arms + at for at, arm in enumerate(added or {})}
    return draft


def _first_arms(tree: Tree, parent: NDArray[np.int64], above: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest arm position below each cluster, NO_ARM for an empty one: (nodes and new clusters,)."""
    first = np.full(len(parent), NO_ARM)
    np.minimum.at(first, above, np.arange(len(above)))
    for node in range(len(parent) - 1, tree.shape.n_nodes - 1, -1):  # new clusters: a child comes after its parent
        first[parent[node]] = min(first[parent[node]], first[node])
    for level in range(len(tree.shape.levels) - 2, 0, -1):
        nodes = slice(tree.shape.levels[level], tree.shape.levels[level + 1])
        np.minimum.at(first, parent[nodes], first[nodes])
    return first


def _targets(tree: Tree, arms: Mapping[object, Sequence[object]]) -> Targets:
    if not isinstance(arms, Mapping):
        raise InvalidType(f"give a mapping from arms to the clusters above them, not {arms!r}")
    targets: Targets = {}
    for arm, clusters in zip(names(arms, "arm"), arms.values(), strict=True):
        if isinstance(clusters, str | bytes) or not isinstance(clusters, Sequence):
            raise InvalidType(f"the clusters above arm {arm!r} must be a tuple such as ('hats',), not {clusters!r}")
        targets[arm] = tuple(names(clusters, "cluster"))
        _check_end(tree, arm, targets[arm])
    return targets


def _check_end(tree: Tree, arm: Name, clusters: tuple[Name, ...]) -> None:
    """Refuse the path of an arm where the clusters above it are needed: it would create a cluster named like the arm.

    Clusters and arms may share names, as when both are numbers. So only the whole path of an arm, or clusters that end
    in the arm itself, count as a mistake, and only if there is no such cluster.
    """
    if not clusters:
        return
    last = clusters[-1]
    doubtful = last == arm or (last in tree and tree.path(last) == clusters)
    if doubtful and tree.nodes.cluster(clusters) is None:
        end = f"end in arm {last!r}: the path of an arm has the arm last"
        raise InvalidValue(f"the clusters {clusters!r} above arm {arm!r} {end}; leave it off: {clusters[:-1]!r}")
