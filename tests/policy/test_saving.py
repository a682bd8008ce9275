"""Save and load: what comes back, and what is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.beliefs.beta import BetaRows
from banditree.errors import BadFile, BadPath, BanditreeError, InvalidType, MissingFile
from banditree.policy import saving as store
from banditree.policy.saving import restore
from tests.support.helpers import DIM, NAMES, SHOP, TREES, contexts, events, feed, make, run, same, state


@pytest.mark.parametrize("shape", ["flat", "clusters", "uneven", "chain"])
@pytest.mark.parametrize("name", NAMES)
def test_a_round_trip(name: str, shape: str, engine: str, tmp_path: Path) -> None:
    policy = make(name, TREES[shape], 1)
    run(policy, 40, 2)
    policy.save(tmp_path / "policy")
    loaded, twin = (bt.load(tmp_path / "policy", rng=5) for _ in range(2))
    assert type(loaded) is type(policy)
    assert (loaded.tree, loaded.belief, loaded.rule, loaded.depth) == (
        policy.tree,
        policy.belief,
        policy.rule,
        policy.depth,
    )
    assert same(state(loaded), state(policy))
    assert repr(loaded) == repr(policy)
    assert run(loaded, 40, 3) == run(twin, 40, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


@pytest.mark.parametrize("half_life", [None, 20])
@pytest.mark.parametrize("name", NAMES)
def test_rewards_that_cancel_leave_the_same_policy(name: str, half_life: float | None, engine: str) -> None:
    """A reward and its opposite leave some rounding beside an exact sum of 0; the file keeps it, to the last bit."""
    options = {"prior": bt.Gaussian()} if name in ("ATS", "TS", "TSC", "HTS", "TSMax") else {}
    policy = make(name, TREES["uneven"], 7, half_life=half_life, **options)
    rng = np.random.default_rng(8)
    pool = contexts(policy, 3, rng)
    for reward in rng.standard_normal(40) * 10.0 ** rng.integers(-3, 6, 40):
        arm, x = rng.choice(policy.tree.arms), pool[rng.integers(3)]
        for sign in [1, -1] if policy._state.rows.support[0] < 0 else [0]:
            policy.update(arm, sign * reward, x)
    loaded = bt.from_bytes(policy.to_bytes(), rng=7)
    assert same(state(loaded), state(policy))
    assert loaded.to_bytes() == policy.to_bytes()
    for x in contexts(policy, 100, rng):
        assert loaded.choose(x) == policy.choose(x)


THREE: Any = np.int64(3)
HALF: Any = np.float32(0.5)
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("HTS", {"depth": 1, "prior": bt.Gaussian(sd=0.5, mean=2.0, prior_sd=1.5)}),
    ("UCBC", {"clock": "global"}),
    ("TSMax", {"best": "posterior"}),
    ("LinUCT", {"c": 0.25, "depth": 1}),
    ("LinTS", {"v": 0.1}),
    ("TSC", {"prior": {"x": bt.Beta(3, 9), ("y", "d"): bt.Beta(0.1, 0.2), None: bt.Beta(2, 2)}}),
    ("TS", {"prior": bt.Beta(THREE, HALF)}),
    ("TSC", {"prior": {"x": bt.Gaussian(HALF)}}),
    ("LinTSC", {"v": np.int32(2)}),
    ("UCT", {"depth": np.int64(2)}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=[f"{name} {options}" for name, options in OPTIONS])
def test_options_and_priors_come_back(name: str, options: dict[str, Any], engine: str, tmp_path: Path) -> None:
    policy = make(name, TREES["clusters"], 1, **options)
    run(policy, 20, 2)
    policy.save(tmp_path / "p")
    loaded = bt.load(tmp_path / "p", rng=0)
    assert (loaded.belief, loaded._state.own_priors, loaded.rule, loaded.depth) == (
        policy.belief,
        policy._state.own_priors,
        policy.rule,
        policy.depth,
    )
    assert same(state(loaded), state(policy))


def test_keys_of_a_prior_may_be_numpys(engine: str, tmp_path: Path) -> None:
    prior: dict[Any, bt.Belief] = {np.int64(3): bt.Beta(3, 9), (np.int64(0),): bt.Beta(2, 2)}
    policy = bt.TS(bt.Tree(4), prior=prior, rng=0)
    policy.save(tmp_path / "p")
    assert same(state(bt.load(tmp_path / "p")), state(policy))


def test_a_prior_of_an_arm_that_left(engine: str, tmp_path: Path) -> None:
    """It is kept for the day the arm comes back, through saving and loading."""
    policy = bt.TSC(SHOP, prior={"h1": bt.Beta(9, 1), "shoes": bt.Beta(1, 9)}, rng=0)
    policy.remove_arms(["h1", "s1", "s2"])
    policy.save(tmp_path / "p")
    loaded = bt.load(tmp_path / "p", rng=0)
    for one in (policy, loaded):
        one.add_arms({"h1": ("hats",)})
    assert same(state(loaded), state(policy))
    assert loaded.table()[-1].mean == 0.9


def test_ids_of_every_kind_come_back(tmp_path: Path) -> None:
    tree = bt.Tree({"": [0, -5, 2**80], "ünï": ["ä", "1", 1, "with\nline"], 7: {"7": [""]}})
    policy = bt.HTS(tree, rng=0)
    run(policy, 10, 0)
    policy.save(tmp_path / "p")
    assert bt.load(tmp_path / "p").tree == tree


def test_two_loaded_copies_do_not_replay_each_other(engine: str, tmp_path: Path) -> None:
    """The stream is not in the file: another rng, or none, goes another way."""
    policy = bt.TS(bt.Tree(100), rng=1)
    policy.save(tmp_path / "p")
    ways = [bt.load(tmp_path / "p", rng=rng).choose_many(50) for rng in (1, 2, None, None)]
    ways.append(policy.choose_many(50))
    same_way = [(i, j) for i in range(5) for j in range(i) if np.array_equal(ways[i], ways[j])]
    assert same_way == [(4, 0)]  # rng=1 again is the user's own wish


def test_saved_on_one_engine_and_loaded_on_another(tmp_path: Path) -> None:
    from banditree.policy import engines
    from tests.support.helpers import ENGINES

    for name in NAMES:
        files = []
        for engine in ENGINES:
            with engines.using(engine):
                policy = feed(make(name, SHOP), events(SHOP, 20, 1, DIM if name.startswith("Lin") else None))
                policy.save(tmp_path / engine)
                files.append(state(bt.load(tmp_path / ENGINES[0])))
        assert all(same(files[0], file, rtol=1e-12, atol=0) for file in files)


@dataclasses.dataclass(frozen=True)
class Shy(bt.Rule):
    c: float = 1.0

    def score(self, view: bt.View) -> Any:
        return view.mean() - self.c * view.spread()


class DoubledRows(BetaRows):
    def evidence(self, count: Any, total: Any) -> Any:
        return 2 * total, 2 * (count - total)


@dataclasses.dataclass(frozen=True)
class Doubled(bt.Beta):
    def rows(self, n_nodes: int, own: Any) -> BetaRows:
        return DoubledRows(np.full(n_nodes, float(self.a)), np.full(n_nodes, float(self.b)))


def test_parts_of_ones_own_are_passed_again(tmp_path: Path) -> None:
    policy = bt.Policy(SHOP, belief=Doubled(2, 2), rule=Shy(0.5), depth=1, rng=0)
    run(policy, 20, 0)
    policy.save(tmp_path / "p")
    with pytest.raises(InvalidType, match="Doubled; pass it as belief="):
        bt.load(tmp_path / "p")
    with pytest.raises(InvalidType, match="Shy; pass it as rule="):
        bt.load(tmp_path / "p", belief=Doubled(2, 2))
    loaded = bt.load(tmp_path / "p", belief=Doubled(2, 2), rule=Shy(0.5))
    assert type(loaded) is bt.Policy
    assert same(state(loaded), state(policy))
    assert loaded.rule == Shy(0.5)


def test_a_part_of_ones_own_may_hold_anything(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Weighing(bt.Rule):
        weigh: Any

        def score(self, view: bt.View) -> Any:
            return self.weigh(view.mean())

    policy = bt.Policy(SHOP, belief=bt.Beta(), rule=Weighing(np.sqrt), rng=0)
    policy.save(tmp_path / "p")
    assert bt.load(tmp_path / "p", rule=Weighing(np.sqrt)).choose() in SHOP


def test_a_part_of_ones_own_is_not_taken_for_a_built_in_of_its_name(tmp_path: Path) -> None:
    Beta: Any = dataclasses.dataclass(frozen=True)(type("Beta", (bt.Beta,), {}))
    policy = bt.TS(SHOP, prior=Beta(5, 7))
    policy.save(tmp_path / "p")
    with pytest.raises(InvalidType, match=r"a user-defined belief, .*Beta; pass it as belief="):
        bt.load(tmp_path / "p")
    assert bt.load(tmp_path / "p", belief=Beta(5, 7)).belief == Beta(5, 7)
    bt.TS(SHOP, prior=bt.Beta(5, 7)).save(tmp_path / "p")
    assert bt.load(tmp_path / "p", belief=Beta(5, 7)).belief == Beta(5, 7)  # a kind of Beta


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"belief": bt.Gaussian()}, r"belief=Gaussian\(.*\): the file was saved with a Beta"),
        ({"belief": {"hats": bt.Gaussian()}}, "the file was saved with a Beta"),
        ({"rule": bt.UCB()}, r"rule=UCB\(.*\): the file was saved with a Thompson"),
        ({"belief": {}}, "a prior is a belief"),
    ],
)
def test_other_parts_than_those_saved_are_refused(parts: Any, says: str, small: Path) -> None:
    with pytest.raises(InvalidType, match=says):
        bt.load(small, **parts)


def test_one_hundred_thousand_arms(engine: str, tmp_path: Path) -> None:
    policy = bt.TSC(bt.Tree.from_labels(np.arange(100_000) % 300), rng=0)
    rng = np.random.default_rng(0)
    policy.update_many(rng.integers(100_000, size=200_000), rng.integers(2, size=200_000))
    policy.save(tmp_path / "p")
    loaded = bt.load(tmp_path / "p")
    assert loaded.tree == policy.tree
    assert same(state(loaded), state(policy))


# Files that are refused


@pytest.fixture
def small(tmp_path: Path) -> Path:
    bt.TSC(bt.Tree({"a": [1], "b": [2]}), rng=0).save(tmp_path / "small")
    return tmp_path / "small"


def test_every_flipped_byte_is_noticed(small: Path) -> None:
    data = small.read_bytes()
    assert len(data) < 1500
    for at in range(len(data)):
        for bit in (0x01, 0x80):
            small.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            with pytest.raises(BadFile, match=r"small (is|has)"):
                bt.load(small)
    small.write_bytes(data)
    bt.load(small)


def test_every_truncation_is_noticed(small: Path) -> None:
    data = small.read_bytes()
    for length in range(len(data)):
        small.write_bytes(data[:length])
        with pytest.raises(BadFile, match=r"truncated|cut off"):
            bt.load(small)
    small.write_bytes(data + b"\0")
    with pytest.raises(BadFile, match="corrupt"):
        bt.load(small)


def rewritten(path: Path, form: int | None = None, **header: Any) -> None:
    """The file with another format number or header, and a checksum that fits."""
    data = path.read_bytes()
    at = len(store.MAGIC)
    end = at + 16 + int.from_bytes(data[at + 8 : at + 16], "little")
    text = json.dumps(json.loads(data[at + 16 : end]) | header).encode()
    number = store.FORMAT if form is None else form
    body = (
        store.MAGIC
        + number.to_bytes(8, "little")
        + len(text).to_bytes(8, "little")
        + text
        + data[end : -store.CHECKSUM]
    )
    path.write_bytes(body + hashlib.sha256(body).digest())


def test_a_newer_format_is_refused(small: Path) -> None:
    rewritten(small)
    bt.load(small)
    rewritten(small, form=store.FORMAT + 1)
    with pytest.raises(BadFile, match=f"format {store.FORMAT + 1}, .*upgrade"):
        bt.load(small)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"kind": "runs"}, "holds a 'runs', not a 'policy'"),
        ({"arrays": [["parent", "|O", [3]]]}, r"an array of type '\|O'"),
        ({"arrays": [["parent", "<i4", [3]]]}, "holds more numbers than it names"),
        ({"clusters": [None]}, "does not hold a whole policy"),
        ({"belief": {"kind": "Beta", "a": -1, "b": 1}}, "does not hold a whole policy"),
        ({"depth": -1}, "does not hold a whole policy"),
        ({"depth": 0}, "does not hold a whole policy"),
    ],
)
def test_headers_that_make_no_sense_are_refused(small: Path, header: dict[str, Any], says: str) -> None:
    rewritten(small, **header)
    with pytest.raises(BadFile, match=says):
        bt.load(small)


@pytest.mark.parametrize(
    "content",
    [b"", b"banditree", b"\x80\x04\x95pickled", b"PK\x03\x04" + bytes(100), np.random.default_rng(1).bytes(200)],
    ids=["empty", "name", "pickle", "zip", "noise"],
)
def test_files_of_another_kind_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(BadFile, match="is not a banditree file"):
        bt.load(tmp_path / "f")
    assert issubclass(BadFile, BanditreeError)
    assert issubclass(BadFile, ValueError)


def test_pickle_is_never_used(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "p").write_bytes(pickle.dumps(bt.Tree(3).paths()))
    with pytest.raises(BadFile, match="is not a banditree file"):
        bt.load(tmp_path / "p")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot read .*nothing: No such file") as missing:
        bt.load(tmp_path / "nothing")
    assert isinstance(missing.value, BanditreeError)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        bt.TS(SHOP).save(tmp_path / "no" / "folder")
    with pytest.raises(BadPath, match=r"cannot read .*: it is a folder"):
        bt.load(tmp_path)
    with pytest.raises(BadPath, match="it is a folder"):
        bt.TS(SHOP).save(tmp_path)
    with pytest.raises(MissingFile):
        bt.Runs.load(tmp_path / "nothing")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are a Unix thing")
def test_permissions(tmp_path: Path) -> None:
    """Those of the file that is replaced; a new file gets what the umask leaves."""
    mask = os.umask(0o027)
    try:
        bt.TS(SHOP).save(tmp_path / "p")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o640
    (tmp_path / "p").chmod(0o600)
    bt.TS(SHOP).save(tmp_path / "p")
    assert stat.S_IMODE((tmp_path / "p").stat().st_mode) == 0o600


def test_restore_checks_shapes() -> None:
    policy = bt.TS(SHOP)
    with pytest.raises(ValueError, match="successes has shape"):
        restore(policy, {"successes": np.zeros(2), "failures": np.zeros(2)})


@pytest.mark.parametrize("name", ["LinTS", "LinUCB", "LinATS"])
@pytest.mark.parametrize("size", [1e-320, 1e-160, 1e-100, 1e30])
def test_contexts_of_any_size_are_saved(name: str, size: float) -> None:
    policy = make(name, SHOP, 1, dim=2)
    for step in range(5):
        policy.update("h1", 1.0, np.array([size, -size * (step + 1) / 5]))
    assert same(state(policy), state(bt.from_bytes(policy.to_bytes())))
