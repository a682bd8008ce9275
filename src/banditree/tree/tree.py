"""Define `Tree`, the arms that can be chosen and the clusters that group them, and `Nodes`, its nodes by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banditree.base.arrays import Array, Indices, Places
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.errors.checks import refuse_masked, whole
from banditree.tree import build, text
from banditree.tree.build import PLAIN, Draft, Name, to_list
from banditree.tree.shape import Ints, Shape, number

DERIVED = ("_counts_up", "_cuts", "_ids", "_table", "nodes")  # computed on first use
FEW_CHILDREN = 256  # that are looked through for a name; where there are more, all clusters are put into a table


class Tree:
    """Arms grouped into nested clusters of any depth (the paper's :math:`\\mathcal{T}`). A tree is immutable.

    ``spec`` is a number of arms or a list of arm ids (a flat tree), or a mapping from cluster names to specs, nested to
    any depth; a list may mix arms and mappings. Arm ids are strings or ints, unique in the whole tree; cluster names
    are unique among siblings.

    >>> tree = Tree({"shoes": ["s1", "s2"], "hats": {"warm": ["h1", "h2"], "sun": ["h3"]}})
    >>> tree
    Tree(5 arms, 4 clusters, depth 2)
    >>> tree.arms
    ('s1', 's2', 'h1', 'h2', 'h3')
    >>> tree.path("h2")
    ('hats', 'warm', 'h2')
    >>> print(tree.cut(1))
    Tree(5 arms, 2 clusters, depth 1)
    ├── shoes (2 arms)
    │   ├── s1
    │   └── s2
    └── hats (3 arms)
        ├── h1
        ├── h2
        └── h3
    """

    shape: Shape  # the structure as flat arrays, nodes numbered breadth-first
    arms: tuple[Name, ...]  # arm ids in the user's order
    index: dict[Name, int]  # arm -> its position in that order

    def __init__(self, spec: object) -> None:
        self._fill(build.from_spec(spec))

    @classmethod
    def from_labels(cls, labels: Iterable[object], arms: Iterable[object] | None = None) -> Self:
        """Build disjoint clusters from one label per arm; arms default to 0, 1, ...

        >>> Tree.from_labels(["a", "b", "a"]).clusters
        {'a': [0, 2], 'b': [1]}
        """
        return cls._from_draft(build.from_labels(labels, arms))

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[object]]) -> Self:
        """Build a tree from one path per arm: cluster names from coarse to fine, then the arm. Depths may differ.

        >>> Tree.from_paths([("sports", "football", "ball-1"), ("sports", "net"), ("voucher",)]).depth
        2
        """
        return cls._from_draft(build.from_paths(paths))

    @staticmethod
    def from_frame(frame: object, *, arm: str | Sequence[str], path: Sequence[str] = ()) -> Tree:
        """Build a tree from a data frame, or a mapping of columns, with one row per arm.

        ``arm`` is the column of the ids (of several, values are joined by ", "); ``path`` are the columns of the
        categories, from coarse to fine. All problems are reported at once.

        >>> items = {"item": ["s1", "h1", "h2"], "kind": ["shoes", "hats", "hats"]}
        >>> Tree.from_frame(items, arm="item", path=["kind"]).clusters
        {'shoes': ['s1'], 'hats': ['h1', 'h2']}
        """
        from banditree.data.items import read_tree  # which reads tables, a layer above trees

        return read_tree(frame, arm=arm, path=path)

    @classmethod
    def from_linkage(cls, Z: object, arms: Iterable[object] | None = None) -> Self:
        """Build the binary tree of a SciPy linkage matrix; clusters keep SciPy's numbers as names.

        >>> Tree.from_linkage([[0, 1, 0.5, 2], [2, 3, 0.9, 3]]).path(1)
        (3, 1)
        """
        return cls._from_draft(build.from_linkage(Z, arms))

    @classmethod
    def _from_draft(cls, draft: Draft) -> Self:
        tree = cls.__new__(cls)
        tree._fill(draft)
        return tree

    def _fill(self, draft: Draft) -> None:
        if not draft.arms:
            raise InvalidValue("a tree needs at least one arm")
        arms = tuple(draft.arms)
        index = draft.index or dict(zip(arms, range(len(arms)), strict=True))
        if len(index) < len(arms):
            twice = next(arm for at, arm in enumerate(arms) if index[arm] != at)
            raise InvalidValue(f"arm {twice!r} appears more than once; arm ids are unique over the whole tree")
        shape, clusters = number(np.asarray(draft.parent, np.intp), np.asarray(draft.arm, np.intp))
        self.__dict__.update(  # bypasses __setattr__, which always raises
            shape=shape, arms=arms, index=index, _names=tuple(draft.names[node] for node in clusters.tolist())
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a tree is immutable; build a new one instead of setting {name!r}")

    # Contents

    @property
    def n_arms(self) -> int:
        """Number of arms (the paper's N)."""
        return len(self.arms)

    @property
    def n_clusters(self) -> int:
        """Number of clusters at all depths, without the root."""
        return len(self._names) - 1

    @property
    def depth(self) -> int:
        """Number of clusters above the deepest arm (the paper's L): 0 is flat, 1 is disjoint clusters."""
        return len(self.shape.levels) - 3

    @property
    def clusters(self) -> dict[Name, list[Name]]:
        """The arms of each top cluster."""
        nodes = self.nodes
        arms_of: dict[Name, list[Name]] = {name: [] for name in nodes.top_clusters}
        for arm, node in zip(self.arms, nodes.top_of_arms.tolist(), strict=True):
            if node >= 0:
                arms_of[nodes.name(node)].append(arm)
        return arms_of

    @cached_property
    def nodes(self) -> Nodes:
        """The nodes by number, for code that walks: names, paths, what is below."""
        return Nodes(self.shape, self.arms, self._names)

    def path(self, arm: Name) -> tuple[Name, ...]:
        """Return the path of an arm: cluster names from coarse to fine, then the arm."""
        return self.nodes.path(int(self.shape.node_of[self.position(arm)]))

    def paths(self) -> list[tuple[Name, ...]]:
        """Return the path of every arm, in the user's order."""
        of_node = self.nodes.paths()
        return [of_node[node] for node in self.shape.node_of.tolist()]

    # Finding arms

    def position(self, arm: Any) -> int:
        """Return the position of an arm in :attr:`arms`."""
        if type(arm) not in PLAIN and (isinstance(arm, bool) or not isinstance(arm, str | int | np.integer)):
            raise self._unknown_arm(arm, f"; ids are strings or ints, not of type {type(arm).__name__}")
        try:
            return self.index[arm]
        except KeyError:
            raise self._unknown_arm(arm) from None

    def _unknown_arm(self, arm: object, more: str = "") -> UnknownArm:
        shown = ", ".join(repr(arm) for arm in self.arms[:5])
        shown += f", ... ({len(self.arms):,} in all)" if len(self.arms) > 5 else ""
        return UnknownArm(f"arm {arm!r:.100} is not in {self!r}; its arms are {shown}{more}")

    def positions(self, arms: object) -> NDArray[np.int64]:
        """Return the positions of many arms, as a new array: (len(arms),)."""
        refuse_masked("arms", arms)
        if isinstance(arms, np.ndarray) and arms.ndim == 1 and arms.dtype.kind in "iu" and self._table is not None:
            low, table = self._table
            offset = arms.astype(np.int64) - low if low else arms.astype(np.int64)
            is_signed = arms.dtype.kind == "i" or low >= 0  # else huge ids could be taken for negative ones
            if is_signed and len(offset) and offset.view(np.uint64).max() < len(table):  # negative offsets become huge
                positions = offset if self._counts_up else table[offset]
                if positions.min() >= 0:
                    return positions
        if isinstance(arms, set | frozenset):
            raise InvalidType("arms is a set, which has no order; give a list, for example sorted(...)")
        listed = to_list(arms, "arms")
        if set(map(type, listed)) <= PLAIN:
            try:
                return np.array([self.index[arm] for arm in listed], np.int64)
            except KeyError:
                pass  # the slow way below raises for the right arm
        return np.array([self.position(arm) for arm in listed], np.int64)

    def ids(self, positions: Indices) -> Array:
        """Return the arms at these positions: an array of ints if all ids are ints, else of objects."""
        return np.asarray(self._ids[positions])

    @cached_property
    def _ids(self) -> Array:
        """The ids as an array: of ints if all are ints, else of objects."""
        if set(map(type, self.arms)) == {int}:
            try:
                return np.array(self.arms, np.int64)
            except OverflowError:
                pass
        array = np.empty(len(self.arms), object)
        array[:] = self.arms
        return array

    @cached_property
    def _table(self) -> tuple[int, NDArray[np.int64]] | None:
        """(lowest id, positions of the ids from there on, -1 for gaps); None unless ids are ints without large gaps."""
        if self._ids.dtype == object:
            return None
        low, high = int(self._ids.min()), int(self._ids.max())
        if high - low > 8 * len(self.arms) + 1024:
            return None
        table = np.full(high - low + 1, -1, np.int64)
        table[self._ids - low] = np.arange(len(self.arms))
        return low, table

    @cached_property
    def _counts_up(self) -> bool:
        """Whether the ids are 0, 1, 2, ..., so that an id is its own position."""
        return bool((self._ids == np.arange(len(self.arms))).all())

    # Derived trees

    def cut(self, depth: int) -> Tree:
        """Return the tree with its top ``depth`` levels of clusters; deeper arms move up to the lowest cluster kept."""
        depth = whole("depth", depth, 0, why="0 is flat, 1 the top clusters, ...")
        if depth >= self.depth:
            return self
        if depth not in self._cuts:
            self._cuts[depth] = self._cut(depth)
        return self._cuts[depth]

    @cached_property
    def _cuts(self) -> dict[int, Tree]:
        """The cuts made so far, by depth: a simulation builds many policies on one tree."""
        return {}

    def _cut(self, depth: int) -> Tree:
        shape = self.shape
        stand_in = np.arange(shape.n_nodes)
        shape.hand_down(stand_in, from_level=depth)  # (nodes,) the kept node that replaces each node
        level = shape.level_of()
        stays = (shape.content >= 0) | (level <= depth)
        old = np.flatnonzero(stays)
        new = np.empty(shape.n_nodes, np.intp)
        new[old] = np.arange(len(old))
        parent = np.where(level[old] <= depth, shape.parent[old], stand_in[old])
        draft = Draft()
        draft.parent = np.concatenate([[-1], new[parent[1:]]])
        draft.arm = np.maximum(shape.content[old], -1)
        clusters = np.flatnonzero(shape.content[old] < 0)
        draft.names = {int(node): self._names[~int(shape.content[old[node]])] for node in clusters}
        draft.arms = list(self.arms)
        return Tree._from_draft(draft)

    def add_arms(self, arms: Mapping[Any, Sequence[object]]) -> Tree:
        """Return a tree with more arms, each below the clusters named; missing clusters are created.

        >>> Tree({"shoes": ["s1"]}).add_arms({"h1": ("hats", "warm"), "voucher": ()}).path("h1")
        ('hats', 'warm', 'h1')
        """
        return Tree._from_draft(build.add_arms(self, arms))

    def move_arms(self, arms: Mapping[Any, Sequence[object]]) -> Tree:
        """Return a tree in which some arms are below other clusters. Clusters that become empty are removed."""
        return Tree._from_draft(build.move_arms(self, arms))

    def remove_arms(self, arms: Iterable[object]) -> Tree:
        """Return a tree without some arms. Clusters that become empty are removed."""
        return Tree._from_draft(build.remove_arms(self, arms))

    # Python protocols

    def __getstate__(self) -> dict[str, object]:
        """Return what pickle keeps: everything except derived values, which are computed again when needed."""
        return {name: value for name, value in vars(self).items() if name not in DERIVED}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        same = self.arms == other.arms and self._names == other._names
        return same and all(
            np.array_equal(getattr(self.shape, field), getattr(other.shape, field)) for field in ("start", "content")
        )

    def __hash__(self) -> int:
        return hash((self.arms, self._names))

    def __len__(self) -> int:
        return self.n_arms

    def __contains__(self, arm: object) -> bool:
        try:
            return arm in self.index
        except TypeError:
            return False

    def __repr__(self) -> str:
        return text.summary(self)

    def __str__(self) -> str:
        return text.tree_as_text(self)

    def _repr_html_(self) -> str:
        return text.tree_as_html(self)

    _names: tuple[Name | None, ...]  # cluster names breadth-first, the root's first (None)


class Nodes:
    """Names and places of the nodes that ``shape`` numbers; the root is node 0."""

    def __init__(self, shape: Shape, arms: tuple[Name, ...], clusters: tuple[Name | None, ...]) -> None:
        self.shape, self.arms = shape, arms
        self.clusters = clusters  # names of the inner nodes, the root's (None) first

    def name(self, node: int) -> Name:
        """Return the name of a node: its arm id or its cluster's name."""
        content = int(self.shape.content[node])
        name = self.arms[content] if content >= 0 else self.clusters[~content]
        return "root" if name is None else name

    def path(self, node: int) -> tuple[Name, ...]:
        """Return the names on the path from the root (excluded) to a node; () for the root."""
        return tuple(self.name(step) for step in reversed(self.shape.path_up(node)[:-1]))

    def paths(self) -> list[tuple[Name, ...]]:
        """Return the path of every node, starting with () for the root."""
        known: list[tuple[Name, ...]] = [()] * self.shape.n_nodes
        for node, parent in enumerate(self.shape.parent.tolist()):
            if node:
                known[node] = (*known[parent], self.name(node))
        return known

    def child(self, node: int, name: object) -> int | None:
        """Return the cluster of this name directly below a node, or None."""
        first, last = self.shape.start[node : node + 2].tolist()
        if last - first > FEW_CHILDREN:
            return self._children.get((node, name))
        below = range(first, last)
        return next((child for child in below if self.shape.content[child] < 0 and self.name(child) == name), None)

    def cluster(self, path: Sequence[object]) -> int | None:
        """Return the node of the cluster at the end of a path, or None."""
        node: int | None = 0
        for name in path:
            node = None if node is None else self.child(node, name)
        return node

    def arms_below(self, node: int) -> Places:
        """Return the positions of all arms below a node, in order."""
        shape, level = self.shape, np.array([node])
        leaves = []
        while len(level):  # the children of adjacent nodes are adjacent
            leaves.append(level[shape.content[level] >= 0])
            level = np.concatenate([np.arange(shape.start[inner], shape.start[inner + 1]) for inner in level.tolist()])
        return np.sort(shape.content[np.concatenate(leaves)]).astype(np.intp)

    @cached_property
    def top_clusters(self) -> dict[Name, int]:
        """The node of each top cluster, by its name."""
        first, last = self.shape.start[0], self.shape.start[1]
        return {self.name(node): node for node in range(first, last) if self.shape.content[node] < 0}

    @cached_property
    def top_of_arms(self) -> Places:
        """The node of each arm's top cluster, -1 for an arm directly below the root: (arms,), read-only."""
        node = np.arange(self.shape.n_nodes)
        node[self.shape.content >= 0] = -1
        top = self.shape.hand_down(node, from_level=1)[self.shape.node_of]
        top.flags.writeable = False
        return top

    def sums_of_top(self, values: NDArray[np.int64]) -> dict[Name, int]:
        """Sum ``values``, one per arm, over each top cluster; arms directly below the root are left out."""
        sums = np.bincount(self.top_of_arms + 1, values, minlength=int(self.shape.start[1]) + 1).tolist()
        return {name: int(sums[node + 1]) for name, node in self.top_clusters.items()}

    @cached_property
    def _children(self) -> dict[tuple[int, object], int]:
        inner = self.shape.inner[1:]
        pairs = zip(self.shape.parent[inner].tolist(), self.clusters[1:], inner.tolist(), strict=True)
        return {(parent, name): node for parent, name, node in pairs if name is not None}


def to_arrays(tree: Tree) -> tuple[Ints, Ints, tuple[Name, ...], tuple[Name | None, ...]]:
    """Return (parent, content, arms, cluster names), which is all that `from_arrays` needs."""
    return tree.shape.parent, tree.shape.content, tree.arms, tree.nodes.clusters


def from_arrays(parent: Ints, content: Ints, arms: Sequence[Name], clusters: Sequence[Name | None]) -> Tree:
    """Build a tree from the output of `to_arrays`."""
    build.check_arrays(parent, content, arms, clusters)
    draft = Draft()
    draft.parent, draft.arm, draft.arms = parent, np.maximum(content, -1), list(arms)
    draft.names = dict(zip(np.flatnonzero(content < 0).tolist(), clusters, strict=True))
    return Tree._from_draft(draft)
