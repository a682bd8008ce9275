"""The calls that the fuzz makes: each good, or bad in one way that must be refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import banditree as bt
from banditree.beliefs.adaptive import AdaptiveRows
from tests.support.fuzz.oracle import Path

if TYPE_CHECKING:
    from tests.support.fuzz.world import World

BAD_ARMS = ["nobody", -(10**9), None, (), [], 0.5, 1.0, True, math.nan]
BAD_REWARDS = [math.nan, math.inf, -math.inf, None, "1", [1], 1j, 10**400, 1e200]
BAD_NUMBERS = [-1, 1.5, "3", True, 2**40]
BAD_TREES = [None, "tree", {"c": ["a"]}, 3]


class Call(NamedTuple):
    text: str
    run: Callable[[bt.Policy], Any]
    learn: Callable[[Any], None] | None = None  # what the oracle makes of the result; None: nothing may change
    refused: bool = False


# ---------------------------------------------------------------- what calls are made of


def paths(world: World, n: int) -> list[Path]:
    """Paths of n new arms, at different depths and in shared clusters."""
    found = []
    for _ in range(n):
        number = next(world.made)
        arm = number if world.ints else f"a{number}"
        found.append((*(f"c{world.rng.integers(3)}" for _ in range(world.rng.integers(4))), arm))
    return found


def reward(world: World) -> Any:
    """Anything that the policy's support allows."""
    low, high = (0.0, 1.0) if world.policy._state.rows.support[0] == 0 else (-4.0, 4.0)
    value = low + (high - low) * (world.rng.integers(9) / 8 if world.exact else world.rng.random())
    return world.pick([float, np.float64, np.float32, np.array])(value)


def context(world: World) -> Any:
    dim = world.policy.dim
    if dim is None:
        return None
    x = world.rng.integers(-8, 9, dim) / 4 if world.exact else world.rng.standard_normal(dim)
    return world.pick([list, np.array, np.float32, lambda row: np.repeat(row, 2)[::2]])(x)


def bad_arm(world: World) -> Any:
    return world.pick(BAD_ARMS + world.gone)


def bad_reward(world: World) -> Any:
    return world.pick(BAD_REWARDS + ([1.5, -0.25] if world.policy._state.rows.support[0] == 0 else []))


def bad_context(world: World) -> Any:
    dim = world.policy.dim
    if dim is None:
        return world.pick([1.0, [1.0, 2.0], np.ones(3)])
    ends = [[bad] * dim for bad in (math.nan, math.inf, 1e200, "a", None, 1j)]
    return world.pick([None, 1.0, [1.0] * (dim + 1), np.ones((1, dim)), np.ones(0), *ends])


# ---------------------------------------------------------------- the calls


def choose(world: World, bad: bool) -> Call:
    x = bad_context(world) if bad else context(world)
    return Call(f"choose({x!r})", lambda policy: _known(world, [policy.choose(x)]), refused=bad)


def choose_many(world: World, bad: bool) -> Call:
    n = int(world.rng.integers(6))
    dim = world.policy.dim
    x = None if dim is None else np.array([context(world) for _ in range(n)], float).reshape(n, dim)
    if bad and (dim is None or world.rng.random() < 0.5):
        n = world.pick(BAD_NUMBERS)
    elif bad:
        x = world.pick([None, np.ones((n + 1, dim or 1)), np.full((n or 1, dim or 1), math.nan)])
    return Call(f"({n!r}, {x!r})", lambda policy: _known(world, policy.choose_many(n, contexts=x)), refused=bad)


def _known(world: World, arms: Any) -> None:
    world.demand(all(arm in world.oracle.paths for arm in arms), f"chose {arms!r}, which are not all arms")


def update(world: World, bad: bool) -> Call:
    arm, r, x = world.pick(world.policy.tree.arms), reward(world), context(world)
    if bad:
        spoiled = world.pick(["arm", "reward", "context"])
        arm = bad_arm(world) if spoiled == "arm" else arm
        r = bad_reward(world) if spoiled == "reward" else r
        x = bad_context(world) if spoiled == "context" else x
    text, learn = f"({arm!r}, {r!r}, {x!r})", lambda _: world.oracle.learn(arm, r, x)
    return Call(text, lambda policy: policy.update(arm, r, x), learn, bad)


def update_many(world: World, bad: bool) -> Call:
    n = int(world.rng.choice([0, 1, 3, 10, 100])) + bad
    rows = [(world.pick(world.policy.tree.arms), float(reward(world)), context(world)) for _ in range(n)]
    arms, rewards = [row[0] for row in rows], [row[1] for row in rows]
    x = None if world.policy.dim is None else np.array([row[2] for row in rows], float).reshape(n, world.policy.dim)
    shaped = world.pick([list, tuple, np.array, lambda values: np.repeat(np.array(values), 2)[::2]])
    given: list[Any] = [shaped(arms), shaped(rewards), None if x is None else world.pick([np.asfortranarray, list])(x)]
    if bad:
        at, spoiled = int(world.rng.integers(n)), world.pick(["arm", "arms", "reward", "rewards", "contexts"])
        if spoiled == "arm":
            given[0] = [*arms[:at], bad_arm(world), *arms[at + 1 :]]
        elif spoiled == "arms":
            given[0] = world.pick([None, "arms", 5, [*arms, arms[0]], arms[1:], np.ma.array(arms), set(arms)])
        elif spoiled == "reward":
            given[1] = [*rewards[:at], bad_reward(world), *rewards[at + 1 :]]
        elif spoiled == "rewards":
            given[1] = world.pick([None, 1.0, [*rewards, 0.0], [[value] for value in rewards], np.ma.array(rewards)])
        else:
            given[2] = (
                np.ones((n, 3)) if x is None else world.pick([None, x[1:], x[:, 1:], np.where(x == x[at], math.inf, x)])
            )

    def learn(_: Any) -> None:
        for row in rows:
            world.oracle.learn(*row)

    return Call(repr(given), lambda policy: policy.update_many(given[0], given[1], contexts=given[2]), learn, bad)


def add_arms(world: World, bad: bool) -> Call:
    new: Any = {path[-1]: path[:-1] for path in paths(world, int(world.rng.integers(4)))}
    after = world.oracle.paths | {arm: (*clusters, arm) for arm, clusters in new.items()}
    if bad:
        old = world.pick(world.policy.tree.arms)
        new = world.pick([{**new, old: ()}, list(new), None, {**new, "new": "c1"}, {**new, "new": (None,)}])
    return Call(repr(new), lambda policy: policy.add_arms(new), partial(_retree, world, after), bad)


def move_arms(world: World, bad: bool) -> Call:
    arms = world.rng.permutation(np.array(world.policy.tree.arms, object))[: world.rng.integers(4)]
    to: Any = {arm: path[:-1] for arm, path in zip(arms, paths(world, len(arms)), strict=True)}
    after = world.oracle.paths | {arm: (*clusters, arm) for arm, clusters in to.items()}
    if bad:
        to = world.pick([{**to, "nobody": ()}, list(to), None, {**to, world.policy.tree.arms[0]: 5}])
    return Call(repr(to), lambda policy: policy.move_arms(to), partial(_retree, world, after), bad)


def remove_arms(world: World, bad: bool) -> Call:
    arms = world.policy.tree.arms
    out: Any = [arms[at] for at in world.rng.permutation(len(arms))[: min(len(arms) - 1, int(world.rng.integers(4)))]]
    after = {arm: path for arm, path in world.oracle.paths.items() if arm not in out}
    if bad:
        out = world.pick([[*out, bad_arm(world)], list(arms), None, "nobody", 5])
    return Call(repr(out), lambda policy: policy.remove_arms(out), partial(_retree, world, after), bad)


def retree(world: World, bad: bool) -> Call:
    stay = [path for path in world.oracle.paths.values() if world.rng.random() < 0.8]
    after = {path[-1]: path for path in [*stay, *paths(world, int(world.rng.integers(1, 4)))]}
    tree = world.pick(BAD_TREES) if bad else bt.Tree.from_paths(after.values())
    return Call(repr(tree), lambda policy: policy.retree(tree), partial(_retree, world, after), bad)


def _retree(world: World, after: dict[Any, Path], _: Any) -> None:
    world.gone = [arm for arm in [*world.gone, *world.oracle.paths] if arm not in after]
    world.oracle.retree(after.values())


def save_and_load(world: World, bad: bool) -> Call:
    at = world.rng.random()

    def spoil(data: bytes) -> bytes:
        place = int(at * len(data))
        return (
            data
            if not bad
            else data[:place]
            if at < 0.5
            else data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        )

    return Call(f"spoiled at {at:.3f}" if bad else "", lambda _: world.reload(spoil), world.replace, bad)


def table(world: World, bad: bool) -> Call:
    x = bad_context(world) if bad and world.policy.dim is None else world.pick([None, context(world)])
    bad = bad and world.policy.dim is None

    def check(policy: Any) -> None:
        nodes = world.oracle.nodes()
        for row in policy.table(x):
            sums = nodes[row.path]
            world.demand(row.plays == sums[0], f"shows {row.plays} plays of {row.path}, not {sums[0]}")
            if isinstance(policy._state.rows, AdaptiveRows):
                continue  # a mean depends on the whole tree; tests/policy/test_adaptive.py has its numbers
            wanted = world.oracle.mean(policy.belief, sums, x)
            close = math.isclose(row.mean, wanted, rel_tol=1e-9, abs_tol=1e-9)
            world.demand(close, f"shows a mean of {row.mean} for {row.path}, not {wanted}")

    return Call(f"({x!r})", check, refused=bad)


CALLS: dict[str, Callable[[World, bool], Call]] = {
    call.__name__: call
    for call in (
        choose,
        choose_many,
        update,
        update_many,
        add_arms,
        move_arms,
        remove_arms,
        retree,
        save_and_load,
        table,
    )
}
