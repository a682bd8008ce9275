"""Trees: every way to build one, what it says of itself, and cutting it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy

import banditree as bt
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.tree.tree import FEW_CHILDREN, from_arrays, to_arrays
from tests.support.hypothesis_strategies import Paths, specs, trees


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_makes_a_tree_by_the_columns_that_are_named_and_no_other_way(library: str) -> None:
    columns = {"id": [3, 1, 2], "kind": ["hat", "shoe", "hat"], "price": [1.5, 2.0, 3.0]}
    frame: Any = getattr(pytest.importorskip(library), "table" if library == "pyarrow" else "DataFrame")(columns)
    tree = bt.Tree.from_frame(frame, arm="id", path=["kind"])
    assert tree == bt.Tree.from_paths([("hat", 3), ("shoe", 1), ("hat", 2)])
    assert bt.Tree.from_frame(frame, arm="id").depth == 0
    makers: list[Any] = [bt.Tree, bt.Tree.from_labels, lambda frame: bt.Tree({"hats": frame})]
    for make in makers:
        with pytest.raises(InvalidType, match=r"data frame .*bt\.Tree\.from_frame"):
            make(frame)
    with pytest.raises(InvalidValue, match="brand"):
        bt.Tree.from_frame(frame, arm="id", path=["brand"])


@given(specs())
def test_a_nested_spec_means_its_paths(both: tuple[Any, Paths]) -> None:
    spec, paths = both
    tree = bt.Tree(spec)
    assert tree.paths() == paths
    assert tree.arms == tuple(path[-1] for path in paths)
    assert [tree.path(arm) for arm in tree.arms] == paths
    assert tree.n_arms == len(tree) == len(paths)
    assert tree.depth == max(map(len, paths)) - 1
    assert tree.n_clusters == len({path[:end] for path in paths for end in range(1, len(path))})
    tops = {path[0]: [other[-1] for other in paths if other[0] == path[0]] for path in paths if len(path) > 1}
    assert tree.clusters == tops
    for path, top in zip(paths, tree.nodes.top_of_arms.tolist(), strict=True):
        assert (top == -1) if len(path) == 1 else (tree.nodes.name(top) == path[0])


@given(trees)
def test_nodes_are_numbered_breadth_first(tree: bt.Tree) -> None:
    shape = tree.shape
    nodes = np.arange(shape.n_nodes)
    for node in nodes:
        children = np.arange(shape.start[node], shape.start[node + 1])
        assert (shape.parent[children] == node).all()
        assert (len(children) == 0) == (shape.content[node] >= 0)
    assert shape.parent[0] == -1
    assert (shape.parent[1:] < nodes[1:]).all()
    level = shape.level_of()
    assert (level[1:] == level[shape.parent[1:]] + 1).all()
    assert (np.diff(level) >= 0).all()
    assert (shape.content[shape.node_of] == np.arange(tree.n_arms)).all()
    assert (shape.content[shape.inner] == ~np.arange(tree.n_clusters + 1)).all()
    assert not shape.start.flags.writeable
    assert not shape.node_of.flags.writeable


@given(trees)
def test_paths_and_arrays_rebuild_the_tree(tree: bt.Tree) -> None:
    rebuilt = bt.Tree.from_paths(tree.paths())
    assert rebuilt.paths() == tree.paths()
    assert from_arrays(*to_arrays(tree)) == tree
    assert hash(from_arrays(*to_arrays(tree))) == hash(tree)


@given(trees, st.integers(0, 6), st.integers(0, 6))
def test_cutting(tree: bt.Tree, depth: int, other: int) -> None:
    cut = tree.cut(depth)
    assert cut.depth == min(tree.depth, depth)
    assert cut.arms == tree.arms
    assert cut.paths() == [(*path[:-1][:depth], path[-1]) for path in tree.paths()]
    assert cut.cut(other) == tree.cut(min(depth, other))
    if depth >= tree.depth:
        assert cut is tree
    assert tree.cut(0).clusters == {}
    assert tree.cut(1).clusters == tree.clusters


@given(st.lists(st.one_of(st.integers(-2, 5), st.sampled_from("xyz")), min_size=1, max_size=20))
def test_labels(labels: list[Any]) -> None:
    tree = bt.Tree.from_labels(labels)
    assert tree.arms == tuple(range(len(labels)))
    assert tree.paths() == [(label, arm) for arm, label in enumerate(labels)]
    assert tree.clusters == {label: [i for i, own in enumerate(labels) if own == label] for label in labels}
    named = bt.Tree.from_labels(labels, arms=[f"arm {i}" for i in range(len(labels))])
    assert named.arms == tuple(f"arm {i}" for i in range(len(labels)))


def test_labels_may_be_numpy() -> None:
    tree = bt.Tree.from_labels(np.array([2, 0, 2]), arms=np.array(["a", "b", "c"]))
    assert tree.clusters == {2: ["a", "c"], 0: ["b"]}
    assert type(next(iter(tree.clusters))) is int
    assert all(type(arm) is str for arm in tree.arms)


@given(st.integers(2, 30), st.integers(0, 2**32))
def test_linkage_is_scipys_tree(n: int, seed: int) -> None:
    merges = hierarchy.linkage(np.random.default_rng(seed).random((n, 2)), "ward")
    tree = bt.Tree.from_linkage(merges)
    assert tree.arms == tuple(range(n))
    root, nodes = hierarchy.to_tree(merges, rd=True)
    for node in nodes:
        if not node.is_leaf() and node.id != root.id:
            below = sorted(path[-1] for path in tree.paths() if node.id in path[:-1])
            assert below == sorted(node.pre_order())
    assert tree.n_clusters == n - 2
    named = bt.Tree.from_linkage(merges, arms=[str(i) for i in range(n)])
    assert named.paths() == [(*path[:-1], str(path[-1])) for path in tree.paths()]


def test_flat_specs() -> None:
    assert bt.Tree(3).arms == (0, 1, 2)
    assert bt.Tree(np.int64(3)) == bt.Tree(3) == bt.Tree([0, 1, 2]) == bt.Tree(np.arange(3)) == bt.Tree(range(3))
    assert bt.Tree(["a", "b"]).depth == 0
    assert bt.Tree(("a",)).n_clusters == 0
    assert bt.Tree(["a"]).cut(0).arms == ("a",)


def test_numbers_in_a_mapping_count_on() -> None:
    assert bt.Tree({"a": 2, "b": {"c": 1, "d": 2}}).clusters == {"a": [0, 1], "b": [2, 3, 4]}


def test_equality() -> None:
    spec: Any = {"a": [1, 2], "b": [3]}
    tree = bt.Tree(spec)
    assert tree == bt.Tree(spec)
    assert hash(tree) == hash(bt.Tree(spec))
    others: list[Any] = [
        {"a": [2, 1], "b": [3]},
        {"a": [1], "b": [2, 3]},
        {"a": [1, 2], "c": [3]},
        {"b": [3], "a": [1, 2]},
    ]
    for other in others:
        assert tree != bt.Tree(other)
    assert tree != "tree"
    assert tree != bt.Tree(3)


def test_a_tree_never_changes() -> None:
    tree = bt.Tree(3)
    with pytest.raises(AttributeError, match="immutable"):
        tree.arms = (1,)
    with pytest.raises(ValueError, match="read-only"):
        tree.shape.parent[0] = 1


def test_membership() -> None:
    tree = bt.Tree(["a", 1])
    assert "a" in tree
    assert 1 in tree
    assert "1" not in tree
    assert ["a"] not in tree
    assert tree.position(1) == 1
    assert tree.nodes.name(0) == "root"
    assert tree.nodes.path(0) == ()
    for unknown in ("b", ["a"], None):
        with pytest.raises(UnknownArm, match="is not in Tree"):
            tree.position(unknown)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
@pytest.mark.parametrize("ids", [range(120), range(-100, 100), [5, 3, 9, 100], [-3, 120], [0, 10**6], [2**70, 5, 7]])
def test_many_ints_are_looked_up_like_one(ids: Any, dtype: Any) -> None:
    """Whatever the ids and the array's type: as if one by one, also where a difference leaves the type's range."""
    tree = bt.Tree(list(ids))
    info = np.iinfo(dtype)
    known = [arm for arm in tree.arms if isinstance(arm, int) and info.min <= arm <= info.max]
    found = tree.positions(np.array(known, dtype))
    assert found.dtype == np.int64
    assert found.tolist() == [tree.position(arm) for arm in known]
    assert list(tree.ids(found)) == known
    missing = next(i for i in range(int(info.max), 0, -1) if i not in tree)
    with pytest.raises(UnknownArm, match=str(missing)):
        tree.positions(np.array([*known, missing], dtype))
    assert tree.positions(np.array([], dtype)).tolist() == []


def test_many_names_are_looked_up_like_one() -> None:
    tree = bt.Tree(["a", "b", 3])
    assert tree.positions(["b", 3, "b"]).tolist() == [1, 2, 1]
    assert tree.positions(np.array(["b", "a"])).tolist() == [1, 0]
    assert tree.positions(arm for arm in "ab").tolist() == [0, 1]
    assert tree.ids(np.array([2, 0])).tolist() == [3, "a"]
    for odd in ("ab", 3, None):
        with pytest.raises(InvalidType, match="list or an array"):
            tree.positions(odd)


def test_drawing_shows_a_small_tree_whole() -> None:
    tree = bt.Tree({"shoes": ["s1"], "hats": {"warm": ["h1", "h2"]}})
    assert repr(tree) == "Tree(3 arms, 3 clusters, depth 2)"
    assert str(tree).splitlines() == [
        "Tree(3 arms, 3 clusters, depth 2)",
        "├── shoes (1 arm)",
        "│   └── s1",
        "└── hats (2 arms)",
        "    └── warm (2 arms)",
        "        ├── h1",
        "        └── h2",
    ]


@pytest.mark.parametrize(
    "tree",
    [
        bt.Tree(5000),
        bt.Tree(dict.fromkeys(range(100), 100)),
        bt.Tree({i: {j: dict.fromkeys(range(5), 3) for j in range(5)} for i in range(5)}),
        bt.Tree.from_paths([(*range(i), f"arm {i}") for i in range(300)]),
    ],
    ids=["flat", "clusters", "deep", "chain"],
)
def test_drawing_stays_short(tree: bt.Tree) -> None:
    lines = str(tree).splitlines()
    assert len(lines) <= 41
    assert "..." in str(tree)


def test_a_million_arms() -> None:
    tree = bt.Tree(dict.fromkeys(range(1000), 1000))
    shape = tree.shape
    used = sum(a.nbytes for a in (shape.start, shape.parent, shape.content, shape.node_of, shape.levels))
    assert tree.n_arms == 1_000_000
    assert used / tree.n_arms <= 50
    assert tree.path(999_999) == (999, 999_999)
    assert tree.cut(0).depth == 0
    assert len(str(tree)) < 2000
    labels = bt.Tree.from_labels(np.repeat(np.arange(1000), 1000))
    assert labels.clusters[7] == list(range(7000, 8000))


def test_clusters_are_found_by_name_below_few_and_many_children() -> None:
    """Where there are few, they are looked through; where there are many, they are put into a table."""
    for n in (3, FEW_CHILDREN + 1):
        tree = bt.Tree({f"c{i}": {"same": [f"{i}-0", f"{i}-1"]} for i in range(n)} | {"arm": 1})
        below = [tree.nodes.cluster((f"c{i}", "same")) for i in range(n)]
        assert [tree.nodes.path(node) for node in below if node is not None] == [(f"c{i}", "same") for i in range(n)]
        assert tree.nodes.cluster(("c0", "0-0")) is None  # an arm
        assert tree.nodes.child(0, "same") is None


def test_one_more_arm_in_a_deep_tree_makes_no_table_of_its_clusters() -> None:
    merges = hierarchy.linkage(np.random.default_rng(0).random((500, 2)), "ward")
    tree = bt.Tree.from_linkage(merges, arms=map(str, range(500)))
    changed = tree.add_arms({"new": tree.path(tree.arms[0])[:-1]})
    assert changed.path("new")[:-1] == tree.path(tree.arms[0])[:-1]
    assert "_children" not in vars(tree.nodes)


def test_depth_has_no_limit() -> None:
    spec: Any = ["end"]
    for level in range(3000):
        spec = {level: spec}
    tree = bt.Tree(spec)
    assert tree.depth == 3000
    assert tree.path("end")[:2] == (2999, 2998)
    assert tree.cut(1).depth == 1


BAD: list[tuple[Any, type[Exception], str]] = [
    (0, InvalidValue, r"the tree has no arms \(0\)"),
    (-3, InvalidValue, r"no arms \(-3\)"),
    ([], InvalidValue, "the tree has no arms"),
    ({}, InvalidValue, "the tree has no arms"),
    ({"a": []}, InvalidValue, "cluster 'a' has no arms"),
    ({"a": {"b": []}}, InvalidValue, "cluster 'b' has no arms"),
    ([1, {"a": {}}], InvalidValue, "cluster 'a' has no arms"),
    ([1, 1], InvalidValue, "arm 1 appears more than once"),
    ({"a": ["x"], "b": ["x"]}, InvalidValue, "arm 'x' appears more than once"),
    ([{"a": [1]}, {"a": [2]}], InvalidValue, "cluster 'a' appears twice"),
    ("abc", InvalidType, "the tree is 'abc'"),
    ({"a"}, InvalidType, "a set has no order; give a list"),
    ({"a": frozenset("x")}, InvalidType, "cluster 'a': a set has no order"),
    (None, InvalidType, "the tree is None"),
    (True, InvalidType, "the tree is True"),
    (2.5, InvalidType, "the tree is 2.5"),
    ({"a": "x"}, InvalidType, "cluster 'a' is 'x'"),
    ([1.5], InvalidType, "arm 1.5 is a float"),
    ([["a"]], InvalidType, r"arm \['a'\] is a list"),
    ([None], InvalidType, "arm None is a NoneType"),
    ([True], InvalidType, "arm True is a bool"),
    ({(1, 2): [1]}, InvalidType, r"cluster \(1, 2\) is a tuple"),
]


@pytest.mark.parametrize(("spec", "kind", "says"), BAD, ids=[repr(spec) for spec, _, _ in BAD])
def test_bad_specs(spec: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        bt.Tree(spec)


def test_bad_labels_paths_and_linkage() -> None:
    with pytest.raises(InvalidValue, match="2 arms for 3 labels"):
        bt.Tree.from_labels([0, 0, 1], arms=["a", "b"])
    with pytest.raises(InvalidType, match=r"label 0.5 is a float"):
        bt.Tree.from_labels([0.5])
    with pytest.raises(InvalidValue, match="at least one arm"):
        bt.Tree.from_labels([])
    with pytest.raises(InvalidValue, match="at least one arm"):
        bt.Tree.from_paths([])
    with pytest.raises(InvalidValue, match="path 1 is 'ab'"):
        bt.Tree.from_paths([("a",), "ab"])
    with pytest.raises(InvalidValue, match=r"path 0 is \(\)"):
        bt.Tree.from_paths([()])
    with pytest.raises(InvalidType, match=r"cluster in path 0 1.5"):
        bt.Tree.from_paths([(1.5, "a")])
    with pytest.raises(InvalidType, match="arm None"):
        bt.Tree.from_paths([("a", None)])
    with pytest.raises(InvalidValue, match="arm 'a' appears more than once"):
        bt.Tree.from_paths([("x", "a"), ("y", "a")])
    bad_linkage: list[tuple[Any, str]] = [
        ([[0, 1, 2]], "shape"),
        ([0, 1], "shape"),
        ([[0, 0, 1, 2]], "not a linkage"),
        ([[0, 3, 1, 2], [1, 2, 1, 3]], "not a linkage"),
        ([[0, 1.5, 1, 2]], "not a linkage"),
        ([[-1, 1, 1, 2]], "not a linkage"),
    ]
    for merges, says in bad_linkage:
        with pytest.raises(InvalidValue, match=says):
            bt.Tree.from_linkage(merges)
    with pytest.raises(InvalidValue, match="3 arms for 2 rows"):
        bt.Tree.from_linkage([[0, 1, 1.0, 2]], arms=list("abc"))
    odd: Any = 5
    for build in (bt.Tree.from_labels, bt.Tree.from_paths, lambda x: bt.Tree.from_linkage([[0, 1, 1.0, 2]], arms=x)):
        for value in (odd, "abc"):
            with pytest.raises(InvalidType, match="must be a list"):
                build(value)
    with pytest.raises(InvalidType, match="array of numbers"):
        bt.Tree.from_linkage("x")
    with pytest.raises(InvalidValue, match="not finite"):
        bt.Tree.from_linkage([[0, 1, float("nan"), 2]])


@pytest.mark.parametrize("depth", [-1, 1.0, "1", True, None])
def test_bad_depth(depth: Any) -> None:
    with pytest.raises((InvalidType, InvalidValue), match=f"depth={depth!r}"):
        bt.Tree(3).cut(depth)


def test_a_tree_that_comes_in_unaligned_memory_is_aligned() -> None:
    """Some transports hand out arrays that begin anywhere in a buffer; the native engine needs them aligned."""
    tree = bt.Tree({"a": ["x", "y"], "b": ["z"]})
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(tree, protocol=5, buffer_callback=buffers.append)
    moved = [memoryview(b"." + bytes(buffer.raw()))[1:] for buffer in buffers]
    again = pickle.loads(data, buffers=moved)  # noqa: S301 (made here)
    assert moved
    assert again == tree
    assert all(getattr(again.shape, field.name).flags.aligned for field in fields(again.shape))
    assert bt.TSC(again, rng=0).choose() in ("x", "y", "z")


@pytest.mark.parametrize(
    "build",
    [
        lambda: bt.Tree(np.array(0.5)),
        lambda: bt.Tree(np.ma.masked),
        lambda: bt.Tree({"a": np.array(3)}),
        lambda: bt.Tree.from_paths(np.array(0.5)),
        lambda: bt.Tree.from_paths([np.array(0.5)]),  # type: ignore[list-item]
        lambda: bt.Tree.from_labels(np.ma.masked),
        lambda: bt.Tree.from_labels([1, 2], arms=np.array(3)),
        lambda: bt.TS(bt.Tree(2), rng=np.timedelta64(1)),  # type: ignore[arg-type]
    ],
)
def test_arrays_of_no_dimension_are_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(bt.errors.BanditreeError):
        build()
