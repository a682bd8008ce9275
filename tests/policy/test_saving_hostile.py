"""Files from anywhere, with checksums that fit: each loads to a policy that works, or is a BadFile."""

from __future__ import annotations

import hashlib
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import BadFile, InvalidType
from banditree.policy.saving import CHECKSUM, MAGIC, restore
from tests.support.forged_files import apart, forged, sealed, together
from tests.support.helpers import DIM, NAMES, SHOP, contexts, make, run, same, state

WIDE = bt.Tree({"a": [f"a{i}" for i in range(150)], "b": [f"b{i}" for i in range(150)]})
DEEP = bt.Tree({"x": {"y": [1, 2], "z": {"y": [3]}}, "w": [4, "5"]})
POLICIES: dict[str, Callable[[], bt.Policy]] = {
    "TSC": lambda: bt.TSC(SHOP, prior={"h1": bt.Beta(3, 9), "shoes": bt.Beta(2, 2)}, rng=0),
    "wide TSC": lambda: bt.TSC(WIDE, rng=0),
    "HTS, Gaussian": lambda: bt.HTS(DEEP, prior=bt.Gaussian(2.0), depth=2, rng=0),
    "wide UCB1": lambda: bt.UCB1(WIDE, rng=0),
    "UCT": lambda: bt.UCT(DEEP, rng=0),
    "TSMax": lambda: bt.TSMax(SHOP, best="posterior", rng=0),
    "LinTSC": lambda: bt.LinTSC(SHOP, dim=DIM, rng=0),
    "LinUCT": lambda: bt.LinUCT(DEEP, dim=2, c=0.5, rng=0),
}


def learned(name: str) -> bt.Policy:
    policy = POLICIES[name]()
    run(policy, 30, 1)
    return policy


def use(policy: bt.Policy) -> None:
    """All that a policy can do, on a policy from a file."""
    rng = np.random.default_rng(0)
    many = {"contexts": rng.standard_normal((3, policy.dim))} if policy.dim else {}
    for context in contexts(policy, 3, rng):
        arm = policy.choose(context)
        assert arm in policy.tree
        policy.update(arm, 1, context)
    arms = policy.choose_many(3, **many)
    policy.update_many(arms, [0, 1, 1], **many)
    assert len(policy.table(contexts(policy, 1, rng)[0])) == policy._state.walked_tree.shape.n_nodes
    policy.add_arms({"one that is new": ()})
    policy.update("one that is new", 1, contexts(policy, 1, rng)[0])
    assert bt.from_bytes(policy.to_bytes()).tree == policy.tree


def opened(data: bytes) -> bt.Policy | BadFile | InvalidType:
    try:
        return bt.from_bytes(data, rng=0)
    except (BadFile, InvalidType) as error:
        return error


@pytest.mark.parametrize("name", POLICIES)
def test_a_forged_file_is_bad_or_works(name: str, engine: str) -> None:
    """200 files each; there are some of both sorts, so that neither half of the test is empty."""
    data = learned(name).to_bytes()
    dice = random.Random(name)
    ends: Counter[str] = Counter()
    for _ in range(200):
        found = opened(forged(data, dice))
        if isinstance(found, bt.Policy):
            use(found)
        elif isinstance(found, InvalidType):
            assert "pass it as" in str(found)  # the name of a belief or rule that is not ours
        ends[type(found).__name__ if isinstance(found, Exception) else "works"] += 1
    assert ends["BadFile"] > 50
    assert ends["works"] > 5


# What is refused, one by one


def changed(name: str, change: Callable[[Any, Any], Any]) -> bytes:
    """The file of a policy that has learned, after a change of its header and arrays."""
    header, arrays = apart(learned(name).to_bytes())
    change(header, arrays)
    return together(header, arrays)


def put(name: str, at: Any, value: Any) -> Callable[[Any, Any], None]:
    """Put a value at a place of an array."""

    def change(header: Any, arrays: Any) -> None:
        arrays[name][at] = value

    return change


def say(**more: Any) -> Callable[[Any, Any], None]:
    """Put something else in the header."""
    return lambda header, arrays: header.update(more)


TREES: list[tuple[Callable[[Any, Any], Any], str]] = [
    (put("parent", 0, 1), "a parent that comes before it"),
    (put("parent", 0, 0), "a parent that comes before it"),
    (put("parent", 3, -1), "a parent that comes before it"),
    (put("parent", 4, 4), "a parent that comes before it"),
    (put("parent", 4, 7), "a parent that comes before it"),
    (put("parent", 7, 3), "arms must have no children"),
    (put("parent", 3, 2), "numbered breadth-first"),
    (put("parent", [3, 4], 2), "clusters at least one"),
    (put("content", 3, -4), "clusters at least one"),
    (put("content", 3, 1), "each of its 5 arms must appear exactly once"),
    (put("content", 3, 99), "each of its 5 arms must appear exactly once"),
    (put("content", [1, 2], [-3, -2]), "clusters must be numbered in order"),
    (say(clusters=[None, "a"]), "each with one name"),
    (say(clusters=[None, "a", "a"]), "have the same name"),
    (say(clusters=["a", "b", "c"]), "the root of a tree has no name"),
    (say(clusters=[None, "b", None]), "cluster None is a NoneType"),
    (say(arms=["s1", "s2", "h1", "h2", "h2"]), "arm 'h2' appears more than once"),
    (say(arms=["s1", "s2", "h1", "h2", 1.5]), "arm 1.5 is a float"),
    (say(arms=["s1", "s2", "h1", "h2", True]), "arm True is a bool"),
    (say(arms={"s1": 0}), "arms is a dict"),
]


@pytest.mark.parametrize(("change", "says"), TREES)
def test_what_is_not_a_tree(change: Callable[[Any, Any], Any], says: str) -> None:
    with pytest.raises(BadFile, match=f"this data does not hold a whole policy: .*{says}"):
        bt.from_bytes(changed("TSC", change))


HEADERS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (say(options={"half_lives": 3}), "'option half_lives', which this version does not know; upgrade banditree"),
    (say(more=1), "it has 'more', which this version does not know; upgrade banditree"),
    (say(options=[]), "options is a list"),
    (say(policy=[]), "policy is a list"),
    (say(depth=True), "depth=True must be an int"),
    (say(depth=1.0), r"depth=1\.0 must be an int"),
    (say(belief="Beta"), "'Beta' is not a belief or a rule"),
    (say(belief={"kind": "Beta", "a": 1, "c": 1}), "unexpected keyword"),
    (say(belief={"kind": "Beta", "a": "1"}), "must be a number"),
    (say(belief={"kind": "Beta", "a": 10**400}), "too large"),
    (say(belief={"kind": "Gaussian"}), "beliefs of one kind"),
    (say(belief={"kind": "Counts"}, own=[]), "has no prior to sample from"),
    (say(own=[[None, {"kind": "Beta"}]]), "None is neither an arm nor a path"),
    (say(own=[[[], {"kind": "Beta"}]]), "neither an arm nor a path"),
    (say(own=[[["shoes", []], {"kind": "Beta"}]]), "neither an arm nor a path"),
    (say(own=[[1.0, {"kind": "Beta"}]]), "neither an arm nor a path"),
    (say(own=[1]), "cannot unpack"),
    (lambda header, arrays: header.pop("rule"), "'rule'"),
    (lambda header, arrays: header.pop("options"), "'options'"),
    (lambda header, arrays: arrays.pop("parent"), "'parent'"),
    (lambda header, arrays: arrays.pop("rows.failures"), "failures is missing"),
    (lambda header, arrays: arrays.update({"rows.more": np.zeros(8)}), "'more' is unknown; .* upgrade banditree"),
    (lambda header, arrays: arrays.update({"parent": np.zeros(8)}), "one whole number per node"),
    (lambda header, arrays: arrays.update({"rows.failures": np.zeros(8, int)}), "holds int64s, not float64s"),
    (lambda header, arrays: arrays.update({"rows.failures": np.zeros(7)}), r"shape \(7,\); the tree needs \(8,\)"),
]


@pytest.mark.parametrize(("change", "says"), HEADERS)
def test_what_is_not_a_header(change: Callable[[Any, Any], Any], says: str) -> None:
    with pytest.raises(BadFile, match=f"this data does not hold a whole policy: .*{says}"):
        bt.from_bytes(changed("TSC", change))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (sealed(b""), "not the JSON"),
        (sealed(b"{"), "not the JSON"),
        (sealed(b"[" * 100_000 + b"]" * 100_000), "not the JSON"),
        (sealed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "not the JSON"),
        (sealed(b"1" * 10_000), "not the JSON"),
        (sealed(b"\xff{}"), "not the JSON"),
        (sealed(b"[1, 2]"), "not a JSON object"),
        (sealed(b"{}", length=10**18), "a header that banditree never writes"),
        (sealed(b"{}", version=0), "a header that banditree never writes"),
        (sealed(b"{}"), "holds a None, not a 'policy'"),
        (sealed(b'{"kind": "policy"}'), "names its arrays as banditree never does"),
        (together({}, {}, index=5), "names its arrays"),
        (together({}, {}, index=[5]), "names its arrays"),
        (together({}, {}, index=[["a", "<f8"]]), "names its arrays"),
        (together({}, {}, index=[["a", "<f8", [-1]]]), "names more numbers"),
        (together({}, {}, index=[["a", "<f8", [2.0]]]), "names more numbers"),
        (together({}, {}, index=[["a", "<f8", [[]]]]), "names its arrays"),
        (together({}, {}, index=[["a", "<f8", [0] * 99]]), "names its arrays"),
        (together({}, {}, index=[[1, "<f8", [0]]]), "does not hold a whole policy"),
        (together({}, {}, index=[["a", ">f8", [0]]]), "an array of type '>f8'"),
        (together({}, {}, index=[["a", "<f8", [2**32, 2**32]]]), "more numbers than it holds"),
        (together({}, {}, index=[["a", "<f8", [0, 10**30]]]), "names its arrays"),
        (together({}, {"a": np.zeros(3)}, index=[]), "more numbers than it names"),
    ],
)
def test_what_is_not_a_file(data: bytes, says: str) -> None:
    with pytest.raises(BadFile, match=says):
        bt.from_bytes(data)


EVIDENCE: list[tuple[str, Callable[[Any, Any], Any], str]] = [
    ("TSC", put("rows.successes", 3, np.nan), "successes has entries that are not finite"),
    ("TSC", put("rows.failures", 0, np.inf), "failures has entries that are not finite"),
    ("TSC", put("rows.successes", slice(None), -1.0), "successes has entries below 0"),
    ("TSC", lambda header, arrays: np.negative(arrays["rows.failures"], arrays["rows.failures"]), "below 0"),
    ("TSC", lambda header, arrays: arrays["rows.failures"].__imul__(1e90), "plays"),
    ("wide TSC", put("rows.failures", slice(None), np.nan), "not finite"),
    ("UCT", lambda header, arrays: arrays["rows.total"].__imul__(1e150), "too large for so few rewards"),
    ("LinTSC", put("rows.gram", 5, np.nan), "gram has entries that are not finite"),
    (
        "LinTSC",
        lambda header, arrays: np.negative(arrays["rows.gram"], arrays["rows.gram"]),
        "that no sum of x x' can have",
    ),
    ("LinTSC", lambda header, arrays: arrays["rows.gram"].__imul__(np.arange(3)), "that no sum of x x' can have"),
    ("LinTSC", lambda header, arrays: arrays["rows.gram"].__isub__(np.eye(3)), "gram has a negative eigenvalue"),
    ("LinTSC", lambda header, arrays: arrays["rows.moment"].__imul__(1e250), "too large for so few rewards"),
]


@pytest.mark.parametrize(("name", "change", "says"), EVIDENCE)
def test_what_cannot_be_evidence(name: str, change: Callable[[Any, Any], Any], says: str, engine: str) -> None:
    with pytest.raises(BadFile, match=f"does not hold a whole policy: .*{says}"):
        bt.from_bytes(changed(name, change))


def test_restoring_bad_evidence_changes_nothing(engine: str) -> None:
    for name, put_where in {"TSC": "successes", "LinTSC": "count"}.items():
        policy = learned(name)
        before = state(policy)
        rows = policy._state.rows
        bad = {key: getattr(rows, key).copy() for key in rows.EVIDENCE}
        bad[put_where][3] = -1.0
        with pytest.raises(ValueError, match=f"{put_where} has entries below 0"):
            restore(policy, bad)
        assert same(before, state(policy))


def memory_to_load(data: bytes) -> int:
    """The most memory that is taken at any moment of refusing a file, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(BadFile):
            bt.from_bytes(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dim", [12_000, 10**9, 10**30])
def test_a_small_file_takes_little_memory(dim: int) -> None:
    linear = {"kind": "Linear", "dim": dim, "v": 1.0, "mean": 0.0, "precision": 1.0}
    for change in (say(belief=linear), say(own=[["h1", linear]])):
        data = changed("LinTSC", change)
        assert memory_to_load(data) < 50 * len(data) + 100_000
    index = [["parent", "<i4", [dim]], ["content", "<i4", [dim]]]
    assert memory_to_load(together({}, {}, index=index)) < 100_000


@pytest.mark.parametrize("name", POLICIES)
def test_the_scale_of_fading_evidence_in_a_file_of_0_3_is_folded_in(name: str, engine: str) -> None:
    policy = learned(name)
    header, arrays = apart(policy.to_bytes())
    arrays["rows.scale"] = np.array([2.0**-6])
    loaded = bt.from_bytes(together(header, arrays), rng=1)
    policy.forget(2.0**-6)
    assert same(state(policy), state(loaded))
    for bad in (np.array([2.0]), np.ones(2), np.array([np.nan])):
        with pytest.raises(BadFile, match="scale is not one number"):
            bt.from_bytes(together(header, arrays | {"rows.scale": bad}))


@pytest.mark.parametrize("bad", [-1, 7, 2**40])
def test_a_clock_of_fading_that_no_policy_has(bad: int, engine: str) -> None:
    header, arrays = apart(bt.TSC(SHOP, half_life=100.0).to_bytes())
    with pytest.raises(BadFile, match="since_faded is not one number from 0 to 1"):
        bt.from_bytes(together(header, arrays | {"rows.since_faded": np.array([bad])}))


def test_what_can_be_learned_can_be_loaded(engine: str) -> None:
    for name in ("UCB1", "TS"):
        policy = make(name, bt.Tree(2))
        for _ in range(10):
            policy.update_many([0, 1], [1e14, 2e14], plays=[1e15, 1e15])
        assert same(state(policy), state(bt.from_bytes(policy.to_bytes(), rng=0)))


@pytest.mark.parametrize("name", NAMES)
def test_rewards_as_large_as_can_be_learned_can_be_loaded(engine: str, name: str) -> None:
    options = {"prior": bt.Gaussian()} if "Beta" in repr(make(name, SHOP).belief) else {}
    policy = make(name, SHOP, **options)
    for context in contexts(policy, 1, np.random.default_rng(0)):
        policy.update("s1", 1e90, context)
        policy.update("h1", -1e90, context)
    assert same(state(policy), state(bt.from_bytes(policy.to_bytes(), rng=0)))


def test_a_file_of_version_0_1_is_refused_with_what_to_do() -> None:
    data = bytearray(bt.TS(SHOP).to_bytes()[:-CHECKSUM])
    data[len(MAGIC)] = 1
    with pytest.raises(BadFile, match=r"of banditree 0\.1; load it with 0\.3 and save it again"):
        bt.from_bytes(bytes(data) + hashlib.sha256(data).digest())
