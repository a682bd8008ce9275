"""Define `Tree`, the arms that can be chosen and the clusters that group them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banditree.errors import InvalidValue
from banditree.errors.checks import whole
from banditree.tree import build, text
from banditree.tree.build import Draft, Name
from banditree.tree.lookup import Lookup
from banditree.tree.nodes import Nodes
from banditree.tree.shape import Indices, Ints, Shape, lazy, number

DERIVED = ("_cuts", "nodes")  # computed on first use


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
        lookup = Lookup(draft.arms, self.__repr__)
        shape, clusters = number(np.array(draft.parent, np.intp), np.array(draft.arm, np.intp))
        self.__dict__.update(  # bypasses __setattr__, which always raises
            shape=shape,
            arms=lookup.arms,
            index=lookup.index,
            _lookup=lookup,
            _names=tuple(draft.names[node] for node in clusters.tolist()),
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

    @lazy
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

    def position(self, arm: object) -> int:
        """Return the position of an arm in :attr:`arms`."""
        return self._lookup.position(arm)

    def positions(self, arms: object, *, copy: bool = True) -> NDArray[np.int64]:
        """Return the positions of many arms, as a new array: (len(arms),). Without ``copy``, maybe ``arms`` itself."""
        return self._lookup.positions(arms, copy=copy)

    def ids(self, positions: Indices) -> NDArray[Any]:
        """Return the arms at these positions: an array of ints if all ids are ints, else of objects."""
        return np.asarray(self._lookup.ids[positions])

    # Derived trees

    def cut(self, depth: int) -> Tree:
        """Return the tree with its top ``depth`` levels of clusters; deeper arms move up to the lowest cluster kept."""
        depth = whole("depth", depth, 0, why="0 is flat, 1 the top clusters, ...")
        if depth >= self.depth:
            return self
        if depth not in self._cuts:
            self._cuts[depth] = self._cut(depth)
        return self._cuts[depth]

    @lazy
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
        draft.parent = [-1, *new[parent[1:]].tolist()]
        draft.arm = np.maximum(shape.content[old], -1).tolist()
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

    def __getstate__(self) -> dict[str, Any]:
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
    _lookup: Lookup


def to_arrays(tree: Tree) -> tuple[Ints, Ints, tuple[Name, ...], tuple[Name | None, ...]]:
    """Return (parent, content, arms, cluster names), which is all that `from_arrays` needs."""
    return tree.shape.parent, tree.shape.content, tree.arms, tree.nodes.clusters


def from_arrays(parent: Ints, content: Ints, arms: Sequence[Name], clusters: Sequence[Name | None]) -> Tree:
    """Build a tree from the output of `to_arrays`."""
    build.check_arrays(parent, content, arms, clusters)
    draft = Draft()
    draft.parent, draft.arm, draft.arms = parent.tolist(), np.maximum(content, -1).tolist(), list(arms)
    draft.names = dict(zip(np.flatnonzero(content < 0).tolist(), clusters, strict=True))
    return Tree._from_draft(draft)
