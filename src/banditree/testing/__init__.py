"""Check the laws that every policy must keep, built-in or your own: `check_policy` needs only NumPy.

Statistical laws compare how often arms and clusters are chosen: in two samples of equal size (`alike`), or in one
sample against given probabilities (`cases.fits`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from banditree.errors import InvalidValue
from banditree.stream import Seed, seed_sequence
from banditree.testing import laws
from banditree.testing.cases import Case, LawBroken, alike, beliefs
from banditree.tree import Tree

__all__ = ["LAWS", "LawBroken", "alike", "beliefs", "check_policy", "example_trees"]

LAWS: dict[str, Callable[[Case], None]] = {
    "a choice is an arm of the tree": laws.returns_an_arm,
    "the same seed gives the same run": laws.same_seed_same_run,
    "choosing changes no belief": laws.choosing_changes_nothing,
    "rewards add up, in any order and in batches": laws.rewards_add_up,
    "renaming arms renames the run": laws.renaming_renames,
    "the order of the arms does not matter": laws.order_does_not_matter,
    "save and load round-trips": laws.save_and_load,
    "changing the catalogue conserves evidence": laws.moving_conserves,
    "a bad reward changes nothing": laws.bad_rewards_change_nothing,
    "an excluded arm is never chosen": laws.limits_hold,
    "a slate has different arms": laws.slates_differ,
    "propensities sum to one and match choices": laws.propensities_match,
    "forgetting by 1 changes nothing, by 0 everything": laws.forgetting_scales,
    "plays stand for rewards one by one": laws.plays_add_up,
}


def check_policy(
    factory: Callable[..., object],
    *,
    trees: Iterable[Tree] | None = None,
    dim: int | None = None,
    load: Callable[..., object] | None = None,
    skip: Collection[str] = (),
    require: Collection[str] = (),
    rng: Seed = 0,
) -> None:
    """Check the laws on the policies that ``factory(tree, rng=seed)`` makes; raise `LawBroken` where one fails.

    A policy needs ``choose(context=None)`` and ``update(arm, reward, context=None)``, and accepts rewards 0 and 1. What
    else it has under the names of `bt.Policy` is checked too, with the parameters ``only``, ``exclude`` and ``plays``.
    Statistical laws use a few hundred draws. They detect gross errors, such as ties that always go to the first arm,
    but not a bias of a few percent.

    Parameters
    ----------
    factory
        Builds a policy on a tree.
    trees
        The trees to try; by default some of every shape.
    dim
        Length of the contexts; by default ``policy.dim`` if there is one.
    load
        ``load(path, rng=...)`` reads what ``save`` wrote.
    skip
        Laws, keys of `LAWS`, that are broken on purpose.
    require
        Laws that must be checked in full: if a method is missing for one of them, that is an error.
    rng
        The seed.

    >>> import banditree as bt
    >>> bt.testing.check_policy(lambda tree, rng: bt.TSC(tree, rng=rng))
    """
    for what, laws_named in {"skip": skip, "require": require}.items():
        for law in laws_named:
            if law not in LAWS:
                raise InvalidValue(f"{what}: {law!r} is not a law; the laws are {', '.join(map(repr, LAWS))}")
    for tree in example_trees().values() if trees is None else trees:
        length = getattr(factory(tree, rng=0), "dim", None) if dim is None else dim
        for i, (law, check) in enumerate(LAWS.items()):
            if law in skip:
                continue
            stream = np.random.default_rng([i, *(int(word) for word in seed_sequence(rng).generate_state(4))])
            try:
                check(Case(law, factory, tree, length, stream, load, law in require))
            except LawBroken:
                raise
            except Exception as error:
                error.add_note(f"while checking the law {law!r} on {tree!r}")
                raise


def example_trees() -> dict[str, Tree]:
    """Return small trees of every shape.

    >>> example_trees()["uneven"]
    Tree(7 arms, 4 clusters, depth 3)
    """
    return {
        "flat": Tree(5),
        "two arms": Tree(["a", "b"]),
        "one cluster": Tree({"only": ["a", "b", "c"]}),
        "clusters": Tree({"x": ["a", "b", "c"], "y": ["d", "e"], "z": ["f"]}),
        "singletons": Tree({f"cluster {i}": [i] for i in range(4)}),
        "uneven": Tree([{"x": ["a", {"deep": ["b", "c"], "deeper": {"still": ["d", "e"]}}]}, "f", "g"]),
        "chain": Tree({1: ["a", {2: ["b", {3: ["c", {4: ["d", "e"]}]}]}]}),
    }
