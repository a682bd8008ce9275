"""Calls from several threads take turns: no reward is lost, and no step sees half a tree."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.errors import UnknownArm
from banditree.policy import engines
from tests.support.helpers import DIM, ENGINES, make

CLUSTERS = 5
STEPS = 150
KEPT = [f"kept {i}" for i in range(15)]  # never removed: their plays are counted


@pytest.fixture
def _eager_threads() -> Iterator[None]:
    """Threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*jobs: Callable[[], Any]) -> None:
    """Run the jobs at once; whatever one raises is raised here."""
    errors: list[BaseException] = []

    def guarded(job: Callable[[], Any]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)  # this ends a deadlock; nothing depends on speed
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if errors:
        raise errors[0]


@pytest.mark.usefixtures("_eager_threads")
@pytest.mark.parametrize("name", ["TSC", "HTS", "UCT", "TSMax", "LinTSC"])
def test_steps_while_the_catalogue_changes(name: str, engine: str) -> None:
    tree = bt.Tree({f"cluster {c}": KEPT[c::CLUSTERS] for c in range(CLUSTERS)})
    policy = make(name, tree, 0)
    x = None if policy.dim is None else np.ones(DIM)
    X = None if policy.dim is None else np.ones((4, DIM))
    counted = dict.fromkeys(range(4), 0)  # rewards that were taken for arms that stay, by thread
    done = threading.Event()

    def work(me: int) -> None:
        rng = np.random.default_rng(me)
        for step in range(STEPS):
            arm = policy.choose(x)
            try:
                policy.update(arm, int(rng.integers(2)), x)
                counted[me] += arm in KEPT
            except UnknownArm:
                assert arm not in KEPT  # it left between the two calls
            some = KEPT[step % 10 : step % 10 + 4]
            policy.update_many(some, rng.integers(2, size=4), contexts=X)
            counted[me] += 4
            if step % 10 == 0:
                assert len(policy.choose_many(4, contexts=X)) == 4
                assert policy.table(x)[0].plays >= counted[me]

    def change() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            policy.add_arms({f"guest {turn}": (f"cluster {turn % CLUSTERS}",), f"other {turn}": ("visitors",)})
            policy.move_arms({KEPT[turn % 15]: (f"cluster {turn % 3}",), f"guest {turn}": ("visitors",)})
            policy.remove_arms([f"guest {turn}", f"other {turn}"])

    def work_all() -> None:
        try:
            in_threads(*(lambda me=me: work(me) for me in range(4)))
        finally:
            done.set()

    in_threads(work_all, change)
    plays = {row.path[-1]: row.plays for row in policy.table(x) if row.path}
    assert sum(plays[arm] for arm in KEPT) == sum(counted.values())
    assert sorted(policy.tree.arms) == sorted(KEPT)
    assert policy.choose(x) in policy.tree


@pytest.mark.usefixtures("_eager_threads")
def test_saving_while_learning(engine: str, tmp_path: Path) -> None:
    """Every file is whole, and holds a state between two steps: a cluster's plays are its arms'."""
    policy = make("TSC", bt.Tree(dict.fromkeys(range(3), 4)), 0)
    done = threading.Event()

    def learn() -> None:
        try:
            for step in range(1500):
                policy.update(step % 12, step % 2)
        finally:
            done.set()

    def save() -> None:
        before = -1
        while not done.is_set():
            policy.save(tmp_path / "p")
            table = bt.load(tmp_path / "p").table()
            plays = {row.path: row.plays for row in table}
            assert (
                plays[()] == sum(plays[(c,)] for c in range(3)) == sum(n for path, n in plays.items() if len(path) == 2)
            )
            assert plays[()] >= before
            before = plays[()]

    in_threads(learn, save)
    assert policy.table()[0].plays == 1500


def test_engines_of_several_threads_end_in_any_order() -> None:
    first, second = engines.using("readable"), engines.using(ENGINES[-1])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert engines.engine() == ENGINES[-1]
    second.__exit__(None, None, None)
