"""The tree of arms: what may be chosen, and how it is grouped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.errors.checks import whole
from banditree.tree import build as _grow
from banditree.tree import edit as _edit
from banditree.tree import text as _draw
from banditree.tree.build import Name, Rough
from banditree.tree.shape import Ints, Shape, number


class Tree:
    """Arms grouped in clusters, clusters in clusters, to any depth (the paper's :math:`\\mathcal{T}`). Never changes.

    ``spec`` is a number of arms or a list of arm ids (flat), or a mapping from cluster names to specs (clusters, and
    clusters in clusters); a list may hold mappings among its arms. Arm ids are strings or ints, unique over the tree;
    cluster names are unique among siblings.

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

    shape: Shape  # the skeleton: flat arrays, nodes numbered breadth-first
    arms: tuple[Name, ...]  # arm ids in the user's order
    index: dict[Name, int]  # arm -> its place in that order

    def __init__(self, spec: Any) -> None:
        self._grow(_grow.from_spec(spec))

    @classmethod
    def from_labels(cls, labels: Iterable[Any], arms: Iterable[Any] | None = None) -> Self:
        """Clusters from one label an arm; arms default to 0, 1, ...

        >>> Tree.from_labels(["a", "b", "a"]).clusters
        {'a': [0, 2], 'b': [1]}
        """
        return cls._from_rough(_grow.from_labels(labels, arms))

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[Any]]) -> Self:
        """A tree from one path an arm: cluster names from coarse to fine, the arm last. Depths may differ.

        >>> Tree.from_paths([("sports", "football", "ball-1"), ("sports", "net"), ("voucher",)]).depth
        2
        """
        return cls._from_rough(_grow.from_paths(paths))

    @classmethod
    def from_linkage(cls, Z: Any, arms: Iterable[Any] | None = None) -> Self:
        """The binary tree of a SciPy linkage matrix; clusters keep SciPy's numbers as names.

        >>> Tree.from_linkage([[0, 1, 0.5, 2], [2, 3, 0.9, 3]]).path(1)
        (3, 1)
        """
        return cls._from_rough(_grow.from_linkage(Z, arms))

    @classmethod
    def _from_rough(cls, rough: Rough) -> Self:
        tree = cls.__new__(cls)
        tree._grow(rough)
        return tree

    def _grow(self, rough: Rough) -> None:
        if not rough.arms:
            raise InvalidValue("a tree needs at least one arm")
        index = dict(zip(rough.arms, range(len(rough.arms)), strict=True))
        if len(index) < len(rough.arms):
            twice = next(arm for place, arm in enumerate(rough.arms) if index[arm] != place)
            raise InvalidValue(f"arm {twice!r} appears more than once; arm ids are unique over the whole tree")
        shape, clusters = number(np.array(rough.parent, np.intp), np.array(rough.arm, np.intp))
        self.__dict__.update(  # past __setattr__, which is closed
            shape=shape,
            arms=tuple(rough.arms),
            index=index,
            _names=tuple(rough.names[node] for node in clusters.tolist()),
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a tree never changes; build a new one instead of setting {name!r}")

    # What is in it

    @property
    def n_arms(self) -> int:
        """How many arms (the paper's N)."""
        return len(self.arms)

    @property
    def n_clusters(self) -> int:
        """How many clusters at all depths, the root not counted."""
        return len(self._names) - 1

    @property
    def depth(self) -> int:
        """Clusters above the deepest arm (the paper's L): 0 is flat, 1 is disjoint clusters."""
        return len(self.shape.levels) - 3

    @property
    def clusters(self) -> dict[Name, list[Name]]:
        """The arms of each top cluster."""
        top = self.top_cluster()
        found: dict[Name, list[Name]] = {self.name(node): [] for node in self.top_nodes()}
        for arm, node in zip(self.arms, top.tolist(), strict=True):
            if node >= 0:
                found[self.name(node)].append(arm)
        return found

    def top_nodes(self) -> list[int]:
        """The nodes of the top clusters."""
        first, last = self.shape.start[0], self.shape.start[1]
        return [node for node in range(first, last) if self.shape.content[node] < 0]

    def top_cluster(self) -> NDArray[np.intp]:
        """The node of each arm's top cluster, -1 for an arm directly below the root: (arms,)."""
        node = np.arange(self.shape.n_nodes)
        node[self.shape.content >= 0] = -1
        return self.shape.hand_down(node, from_level=1)[self.shape.node_of]

    def name(self, node: int) -> Name:
        """The name of a node: its arm id or its cluster's name."""
        content = int(self.shape.content[node])
        name = self.arms[content] if content >= 0 else self._names[~content]
        return "root" if name is None else name

    def path(self, arm: Name) -> tuple[Name, ...]:
        """Cluster names from coarse to fine, the arm last."""
        return self.path_of_node(int(self.shape.node_of[self.position(arm)]))

    def path_of_node(self, node: int) -> tuple[Name, ...]:
        """The names on the way from the root, not included, to a node; () for the root."""
        return tuple(self.name(step) for step in reversed(self.shape.path_up(node)[:-1]))

    def paths(self) -> list[tuple[Name, ...]]:
        """The path of every arm, in the user's order."""
        of_node = self.paths_of_nodes()
        return [of_node[node] for node in self.shape.node_of.tolist()]

    def paths_of_nodes(self) -> list[tuple[Name, ...]]:
        """The path of every node, the root's () first."""
        known: list[tuple[Name, ...]] = [()] * self.shape.n_nodes
        for node, parent in enumerate(self.shape.parent.tolist()):
            if node:
                known[node] = (*known[parent], self.name(node))
        return known

    # Finding arms

    def position(self, arm: Any) -> int:
        """The place of an arm in :attr:`arms`."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            raise UnknownArm(f"arm {arm!r} is not in {self!r}; its arms are {_few(self.arms)}") from None

    def positions(self, arms: Any) -> NDArray[np.int64]:
        """The places of many arms: (len(arms),). A NumPy array of ints is looked up without touching Python objects."""
        if isinstance(arms, np.ndarray) and arms.ndim == 1 and arms.dtype.kind in "iu" and self._table is not None:
            found = self._looked_up(arms, *self._table)
            if found is not None:
                return found
        if isinstance(arms, np.ndarray):
            arms = arms.tolist()
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise InvalidType(f"arms must be a list or an array of arm ids, not {arms!r}")
        return np.fromiter((self.position(arm) for arm in arms), np.int64)

    def _looked_up(self, arms: NDArray[Any], low: int, table: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The places of ints by the table, None where one is not there or the types do not allow it."""
        if len(arms) == 0 or (low < 0 and arms.dtype.kind == "u"):
            return None
        offset = arms.astype(np.int64, copy=False)  # the difference may leave the range of a narrow type
        offset = offset - low if low else offset
        if int(offset.view(np.uint64).max()) >= len(table):  # what is below 0 is huge so
            return None
        found = offset if self._counts_up else table[offset]
        return found if self._counts_up or int(found.min()) >= 0 else None

    def ids(self, positions: NDArray[Any]) -> NDArray[Any]:
        """The arms at these places, as an array of ints where all ids are ints, else of objects."""
        return np.asarray(self._id_array[positions])

    @cached_property
    def _id_array(self) -> NDArray[Any]:
        if set(map(type, self.arms)) == {int} and all(abs(arm) < 2**62 for arm in self.arms if isinstance(arm, int)):
            return np.array(self.arms, np.int64)
        array = np.empty(self.n_arms, object)
        array[:] = self.arms
        return array

    @cached_property
    def _table(self) -> tuple[int, NDArray[np.int64]] | None:
        """(lowest id, place of every id from there on or -1), where ids are ints without great gaps."""
        if self._id_array.dtype == object:
            return None
        low, high = int(self._id_array.min()), int(self._id_array.max())
        if high - low > 8 * self.n_arms + 1024:
            return None
        table = np.full(high - low + 1, -1, np.int64)
        table[self._id_array - low] = np.arange(self.n_arms)
        return low, table

    @cached_property
    def _counts_up(self) -> bool:
        """Whether the ids are 0, 1, 2, ..., so that an id is its own place."""
        return bool((self._id_array == np.arange(self.n_arms)).all())

    # Other trees from this one

    def cut(self, depth: int) -> Tree:
        """The tree with its top ``depth`` levels of clusters; deeper arms hang from the last cluster that is kept."""
        depth = whole("depth", depth, 0, why="0 is flat, 1 the top clusters, ...")
        if depth >= self.depth:
            return self
        shape = self.shape
        kept = np.arange(shape.n_nodes)
        shape.hand_down(kept, from_level=depth)  # (nodes,) the kept node in whose place each node stands
        level = shape.level_of()
        stays = (shape.content >= 0) | (level <= depth)
        old = np.flatnonzero(stays)
        new = np.empty(shape.n_nodes, np.intp)
        new[old] = np.arange(len(old))
        parent = np.where(level[old] <= depth, shape.parent[old], kept[old])
        rough = Rough()
        rough.parent = [-1, *new[parent[1:]].tolist()]
        rough.arm = np.maximum(shape.content[old], -1).tolist()
        clusters = np.flatnonzero(shape.content[old] < 0)
        rough.names = {int(node): self._names[~int(shape.content[old[node]])] for node in clusters}
        rough.arms = list(self.arms)
        return Tree._from_rough(rough)

    def add_arms(self, arms: Mapping[Any, Sequence[Any]]) -> Tree:
        """A tree with more arms, each below the clusters named; those that are not there yet are made.

        >>> Tree({"shoes": ["s1"]}).add_arms({"h1": ("hats", "warm"), "voucher": ()}).path("h1")
        ('hats', 'warm', 'h1')
        """
        return Tree.from_paths(_edit.added(self, arms))

    def move_arms(self, arms: Mapping[Any, Sequence[Any]]) -> Tree:
        """A tree in which some arms are below other clusters. A cluster that becomes empty goes."""
        return Tree.from_paths(_edit.moved(self, arms))

    def remove_arms(self, arms: Iterable[Any]) -> Tree:
        """A tree without some arms. A cluster that becomes empty goes."""
        return Tree.from_paths(_edit.removed(self, arms))

    def to_arrays(self) -> tuple[Ints, Ints, tuple[Name, ...], tuple[Name | None, ...]]:
        """(parent, content, arms, cluster names): all that `from_arrays` needs."""
        return self.shape.parent, self.shape.content, self.arms, self._names

    @classmethod
    def from_arrays(cls, parent: Ints, content: Ints, arms: Sequence[Name], names: Sequence[Name | None]) -> Self:
        """The tree that `to_arrays` took apart."""
        leaves = np.sort(content[content >= 0])
        in_order = (
            len(parent) == len(content) and (parent[1:] < np.arange(1, len(parent))).all() and parent[1:].min() >= 0
        )
        if not in_order or not np.array_equal(leaves, np.arange(len(arms))):
            raise InvalidValue("these arrays are no tree")
        rough = Rough()
        rough.parent, rough.arm, rough.arms = parent.tolist(), np.maximum(content, -1).tolist(), list(arms)
        rough.names = dict(zip(np.flatnonzero(content < 0).tolist(), names, strict=True))
        return cls._from_rough(rough)

    # Python

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
        return _draw.summary(self)

    def __str__(self) -> str:
        return _draw.draw(self)

    _names: tuple[Name | None, ...]  # cluster names breadth-first, the root's first (None)


def _few(arms: Sequence[Name]) -> str:
    shown = ", ".join(repr(arm) for arm in arms[:5])
    return shown if len(arms) <= 5 else f"{shown}, ... ({len(arms):,} in all)"
