"""The laws of every policy, ours or yours: `check_policy` runs them with NumPy alone.

Statistical laws compare how often arms and clusters are chosen in two samples of equal size, `samples.alike`.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditree.beliefs import BELIEFS
from banditree.errors import BanditreeError, InvalidValue
from banditree.policy import Policy
from banditree.policy.saving import load
from banditree.rules import RULES
from banditree.stream import seed_sequence
from banditree.testing.samples import alike
from banditree.tree import Tree

__all__ = ["LAWS", "LawBroken", "check_policy", "example_trees"]

DRAWS = 150  # choices compared in distribution where one policy can make them all
COPIES = 80  # and where each choice needs a policy of its own


class LawBroken(BanditreeError, AssertionError):
    """A policy broke a law; the message names it."""


class Event(NamedTuple):
    arm: Any
    reward: float
    context: Any


@dataclass(frozen=True)
class Case:
    """What a law is checked on."""

    law: str
    factory: Callable[..., Any]
    tree: Tree
    dim: int | None
    rng: Any
    load: Callable[..., Any] | None

    def policy(self, seed: int = 0, tree: Tree | None = None, events: Iterable[Event] = ()) -> Any:
        """A policy that has learned from some events."""
        policy = self.factory(self.tree if tree is None else tree, rng=seed)
        for event in events:
            update(policy, event)
        return policy

    def context(self) -> Any:
        """About one in every direction, so that a reward tells nearly the same in all contexts."""
        return None if self.dim is None else 1 + 0.2 * self.rng.standard_normal(self.dim)

    def history(self) -> list[Event]:
        """Rewards after which one arm, the last, is clearly the best."""
        *others, best = self.tree.arms
        some = self.rng.permutation(len(others))[:11]
        events = [Event(others[i], 0, self.context()) for i in some for _ in range(3)]
        events += [Event(best, 1, self.context()) for _ in range(12)]
        return [events[i] for i in self.rng.permutation(len(events))]

    def demand(self, kept: bool, what: str) -> None:
        if not kept:
            raise LawBroken(f"law broken: {self.law}. {what} (on {self.tree!r})")


def choose(policy: Any, context: Any = None) -> Any:
    return policy.choose() if context is None else policy.choose(context=context)


def update(policy: Any, event: Event) -> None:
    if event.context is None:
        policy.update(event.arm, event.reward)
    else:
        policy.update(event.arm, event.reward, context=event.context)


def choose_many(policy: Any, n: int, context: Any) -> list[Any]:
    return list(policy.choose_many(n) if context is None else policy.choose_many(n, contexts=np.tile(context, (n, 1))))


def update_many(policy: Any, events: Sequence[Event]) -> None:
    arms, rewards, contexts = zip(*events, strict=True)
    more = {} if contexts[0] is None else {"contexts": np.array(contexts)}
    policy.update_many(list(arms), list(rewards), **more)


def beliefs(policy: Any) -> dict[str, Any] | None:
    """Copies of all the arrays of a policy of this package; None for others, which are known by what they do."""
    if not isinstance(policy, Policy):
        return None
    state = policy._state
    kept = {} if state.summary is None else {"summary": state.summary.copy()}
    return {name: array.copy() for name, array in state.rows.arrays().items()} | kept


def shown(policy: Any, context: Any) -> str | None:
    """All that ``policy.table()`` says, where it has one; huge ones are left out to save time."""
    if not hasattr(policy, "table") or len(getattr(policy, "tree", ())) > 200:
        return None
    return repr(list(policy.table() if context is None else policy.table(context=context)))


def same_beliefs(case: Case, one: Callable[[int], Any], two: Callable[[int], Any], what: str) -> None:
    """Demand that policies made in two ways (from a seed) believe the same, but for rounding."""
    arrays, others = beliefs(one(0)), beliefs(two(0))
    if arrays is not None and others is not None:
        for name, array in arrays.items():
            fits = array.shape == others[name].shape and np.allclose(array, others[name], rtol=1e-8, atol=1e-10)
            case.demand(fits, f"{what}: their {name} differ")
        return
    context = case.context()
    decided = [Counter(choose(make(seed), context) for seed in range(COPIES)) for make in (one, two)]
    case.demand(alike(*decided, case.tree), f"{what}: they choose differently, {decided[0]} and {decided[1]}")


@contextmanager
def unchanged(case: Case, policy: Any, context: Any, what: str) -> Iterator[None]:
    """Demand that a policy of this package, or one with a table, shows exactly the same afterwards."""
    arrays, table = beliefs(policy), shown(policy, context)
    yield
    for name, array in (beliefs(policy) or {}).items():
        case.demand(arrays is not None and np.array_equal(array, arrays[name]), f"{what}: {name} changed")
    case.demand(table == shown(policy, context), f"{what}: the table changed")


# The laws


def returns_an_arm(case: Case) -> None:
    policy, context = case.policy(), case.context()
    for event in case.history()[:10]:
        arm = choose(policy, context)
        case.demand(arm in case.tree, f"choose gave {arm!r}")
        update(policy, event)
    if hasattr(policy, "choose_many"):
        for n in (0, 7):
            arms = choose_many(policy, n, context)
            case.demand(len(arms) == n, f"choose_many({n}) gave {len(arms)} arms")
            case.demand(all(arm in case.tree for arm in arms), f"choose_many({n}) gave {arms!r}")


def same_seed_same_run(case: Case) -> None:
    contexts = [case.context() for _ in range(30)]
    runs = [_run(case, case.policy(seed=11), case.tree, contexts) for _ in range(2)]
    case.demand(runs[0] == runs[1], f"two policies of one seed chose {runs[0]} and {runs[1]}")


def choosing_changes_nothing(case: Case) -> None:
    events, context = case.history(), case.context()
    policy = case.policy(events=events)
    with unchanged(case, policy, context, "after choosing often"):
        _choose_often(policy, context)

    def chosen_from(seed: int) -> Any:
        policy = case.policy(seed, events=events)
        _choose_often(policy, context)
        return policy

    same_beliefs(
        case, lambda seed: case.policy(seed, events=events), chosen_from, "a policy that chose, one that did not"
    )


def rewards_add_up(case: Case) -> None:
    events = case.history()
    mixed = [events[i] for i in case.rng.permutation(len(events))]

    def in_order(seed: int) -> Any:
        return case.policy(seed, events=events)

    def in_a_batch(seed: int) -> Any:
        policy = case.policy(seed, events=mixed[:5])
        update_many(policy, mixed[5:])
        return policy

    same_beliefs(case, in_order, lambda seed: case.policy(seed, events=mixed), "the same rewards in another order")
    if hasattr(case.policy(), "update_many"):
        same_beliefs(case, in_order, in_a_batch, "rewards one by one and in a batch")


def renaming_renames(case: Case) -> None:
    n = case.tree.n_arms
    new = {arm: f"renamed {n - place}" for place, arm in enumerate(case.tree.arms)}
    renamed = Tree.from_paths([(*path[:-1], new[path[-1]]) for path in case.tree.paths()])
    plain = Tree.from_paths(case.tree.paths())
    contexts = [case.context() for _ in range(30)]
    runs = [_run(case, case.policy(5, tree), tree, contexts) for tree in (plain, renamed)]
    case.demand([new[arm] for arm in runs[0]] == runs[1], "the run on renamed arms is another one")


def order_does_not_matter(case: Case) -> None:
    turned, context = Tree.from_paths(case.tree.paths()[::-1]), case.context()
    for events, when in (([], "before any reward"), (case.history(), "after some rewards")):
        policies = [case.policy(seed, tree, events) for seed, tree in ((1, case.tree), (2, turned))]
        decided = [Counter(choose(policy, context) for _ in range(DRAWS)) for policy in policies]
        case.demand(
            alike(*decided, case.tree), f"{when} the arms in reverse order are chosen {decided[1]}, not {decided[0]}"
        )


def save_and_load(case: Case) -> None:
    events, context = case.history(), case.context()
    policy = case.policy(events=events)
    reload = case.load or _loader(policy)
    if reload is None or not hasattr(policy, "save"):
        return
    cold, contexts = case.policy(), [case.context() for _ in range(20)]
    with tempfile.TemporaryDirectory() as folder:
        path, cold_path = Path(folder) / "policy", Path(folder) / "cold"
        with unchanged(case, policy, context, "after saving"):
            policy.save(path)
        cold.save(cold_path)
        loaded, *twins = reload(path, rng=3), reload(cold_path, rng=3), reload(cold_path, rng=3)
    case.demand(shown(policy, context) == shown(loaded, context), "the loaded policy has another table")
    same_beliefs(case, lambda _: policy, lambda _: loaded, "a policy, and the same one saved and loaded")
    runs = [_run(case, twin, case.tree, contexts) for twin in twins]
    case.demand(runs[0] == runs[1], f"loaded twice with one seed it chose {runs[0]} and {runs[1]}")


def moving_conserves(case: Case) -> None:
    """Changes of the catalogue: what comes out is a policy built anew on the new tree and fed the same rewards."""
    tree, events = case.tree, case.history()
    arm = _with_siblings(tree)
    changes: list[tuple[str, Any]] = [
        ("add_arms", {"an added arm": tree.path(arm)[:-1], "one in a new cluster": ("a new cluster",)}),
        ("move_arms", {arm: ("a new cluster",)}),
        ("retree", Tree.from_paths(tree.paths()[::-1])),
    ]
    changes += [("remove_arms", [arm])] if tree.n_arms > 1 else []
    for change, argument in changes:
        if not hasattr(case.policy(), change):
            continue
        new = argument if change == "retree" else getattr(tree, change)(argument)
        stay = [event for event in events if event.arm in new]

        def changed(seed: int, change: str = change, argument: Any = argument) -> Any:
            policy = case.policy(seed, events=events)
            getattr(policy, change)(argument)
            return policy

        def anew(seed: int, new: Tree = new, stay: list[Event] = stay) -> Any:
            return case.policy(seed, new, stay)

        same_beliefs(case, changed, anew, f"after {change} and built anew on the new tree with the same rewards")


def bad_rewards_change_nothing(case: Case) -> None:
    events, context = case.history(), case.context()
    some = [*case.tree.arms[:10], case.tree.arms[-1]]

    def learn_nonsense(policy: Any) -> None:
        for bad in [Event(arm, float("nan"), context) for arm in some] + [Event("no such arm", 1, context)]:
            with suppress(Exception):  # refusing is right
                update(policy, bad)
        if hasattr(policy, "update_many"):
            with suppress(Exception):
                update_many(policy, [Event(some[0], 1, context), Event(some[-1], float("nan"), context)])

    policy = case.policy(events=events)
    with unchanged(case, policy, context, "after rewards that are NaN or for an unknown arm"):
        learn_nonsense(policy)

    def told_nonsense(seed: int) -> Any:
        policy = case.policy(seed, events=events)
        learn_nonsense(policy)
        try:
            choose(policy, context)
        except Exception as error:
            raise LawBroken(f"law broken: {case.law}. After a NaN reward choose fails: {error!r}") from error
        return policy

    what = "a policy that was told NaN, and one that was not"
    same_beliefs(case, lambda seed: case.policy(seed, events=events), told_nonsense, what)


LAWS: dict[str, Callable[[Case], None]] = {
    "a choice is an arm of the tree": returns_an_arm,
    "the same seed gives the same run": same_seed_same_run,
    "choosing changes no belief": choosing_changes_nothing,
    "rewards add up, in any order and in batches": rewards_add_up,
    "renaming arms renames the run": renaming_renames,
    "the order of the arms does not matter": order_does_not_matter,
    "save and load round-trips": save_and_load,
    "changing the catalogue conserves evidence": moving_conserves,
    "a bad reward changes nothing": bad_rewards_change_nothing,
}


def check_policy(
    factory: Callable[..., Any],
    *,
    trees: Iterable[Tree] | None = None,
    dim: int | None = None,
    load: Callable[..., Any] | None = None,
    skip: Collection[str] = (),
    rng: Any = 0,
) -> None:
    """Run the laws on the policies that ``factory(tree, rng=seed)`` makes; raise `LawBroken` where one fails.

    A policy needs ``choose(context=None)`` and ``update(arm, reward, context=None)`` and takes rewards 0 and 1. What it
    has beyond that under the names of `bt.Policy` (``choose_many``, ``update_many``, ``table``, ``save``, ``add_arms``,
    ``move_arms``, ``remove_arms``, ``retree``) is checked too. ``trees`` are those to try, by default some of every
    shape; ``dim`` is the length of the contexts, by default ``policy.dim`` if there is one; ``load(path, rng=...)``
    reads what ``save`` wrote; ``skip`` names laws, keys of `LAWS`, that do not hold on purpose.

    Laws of chance are held against some hundred draws: a gross mistake is found, such as ties that always go to the
    first arm, a bias of a few percent is not.

    >>> import banditree as bt
    >>> bt.testing.check_policy(lambda tree, rng: bt.TSC(tree, rng=rng))
    """
    for law in skip:
        if law not in LAWS:
            raise InvalidValue(f"skip: {law!r} is no law; the laws are {', '.join(map(repr, LAWS))}")
    for tree in example_trees().values() if trees is None else trees:
        length = getattr(factory(tree, rng=0), "dim", None) if dim is None else dim
        for place, (law, check) in enumerate(LAWS.items()):
            if law in skip:
                continue
            stream = np.random.default_rng([place, *_words(rng)])
            try:
                check(Case(law, factory, tree, length, stream, load))
            except LawBroken:
                raise
            except Exception as error:
                error.add_note(f"while checking the law {law!r} on {tree!r}")
                raise


def example_trees() -> dict[str, Tree]:
    """Small trees of every shape.

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


def _words(rng: Any) -> list[int]:
    return [int(word) for word in seed_sequence(rng).generate_state(4)]


def _run(case: Case, policy: Any, tree: Tree, contexts: Sequence[Any]) -> list[Any]:
    """A run whose rewards depend on the arm's place and the time alone."""
    arms = []
    for time, context in enumerate(contexts):
        arm = choose(policy, context)
        case.demand(arm in tree, f"choose gave {arm!r}, which is no arm")
        update(policy, Event(arm, (tree.position(arm) + time) % 2, context))
        arms.append(arm)
    return arms


def _choose_often(policy: Any, context: Any) -> None:
    for _ in range(40):
        choose(policy, context)
    if hasattr(policy, "choose_many"):
        choose_many(policy, 40, context)


def _with_siblings(tree: Tree) -> Any:
    """An arm that is not alone in its cluster, where there is one, so that its cluster stays when it goes."""
    above = [path[:-1] for path in tree.paths()]
    often = Counter(above)
    return max(zip(tree.arms, above, strict=True), key=lambda pair: often[pair[1]])[0]


def _loader(policy: Any) -> Callable[..., Any] | None:
    """How a policy of this package is loaded; its belief and rule are passed where they are the user's own."""
    if not isinstance(policy, Policy):
        return None
    belief = None if type(policy.belief) in BELIEFS.values() else policy.belief
    rule = None if type(policy.rule) in RULES.values() else policy.rule
    return lambda path, rng: load(path, rng=rng, belief=belief, rule=rule)
