"""The laws of choosing, learning, changing the catalogue, and saving."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from banditree.beliefs import BELIEFS
from banditree.policy import Policy
from banditree.policy.saving import load
from banditree.rules import RULES
from banditree.testing.cases import (
    DRAWS,
    Case,
    Event,
    LawBroken,
    choose,
    choose_many,
    same_beliefs,
    table_text,
    unchanged,
    update,
    update_many,
)
from banditree.testing.samples import alike
from banditree.tree import Tree


def returns_an_arm(case: Case) -> None:
    policy, context = case.policy(), case.context()
    for event in case.history()[:10]:
        arm = choose(policy, context)
        case.demand(arm in case.tree, f"choose returned {arm!r}")
        update(policy, event)
    if case.has(policy, "choose_many"):
        for n in (0, 7):
            arms = choose_many(policy, n, context)
            case.demand(len(arms) == n, f"choose_many({n}) returned {len(arms)} arms")
            case.demand(all(arm in case.tree for arm in arms), f"choose_many({n}) returned {arms!r}")


def same_seed_same_run(case: Case) -> None:
    contexts = [case.context() for _ in range(30)]
    runs = [_run(case, case.policy(seed=11), case.tree, contexts) for _ in range(2)]
    case.demand(runs[0] == runs[1], f"two policies with the same seed chose {runs[0]} and {runs[1]}")


def choosing_changes_nothing(case: Case) -> None:
    events, context = case.history(), case.context()
    choose_often = partial(_choose_often, context=context)
    policy = case.policy(events=events)
    with unchanged(case, policy, context, "after choosing often"):
        choose_often(policy)
    what = "a policy that chose, and one that did not"
    same_beliefs(case, case.maker(events), case.maker(events, choose_often), what)


def rewards_add_up(case: Case) -> None:
    events = case.history()
    mixed = [events[i] for i in case.rng.permutation(len(events))]
    same_beliefs(case, case.maker(events), case.maker(mixed), "the same rewards in another order")
    if case.has(case.policy(), "update_many"):
        in_a_batch = case.maker(mixed[:5], lambda policy: update_many(policy, mixed[5:]))
        same_beliefs(case, case.maker(events), in_a_batch, "rewards one by one and in a batch")


def renaming_renames(case: Case) -> None:
    n = case.tree.n_arms
    new = {arm: f"renamed {n - i}" for i, arm in enumerate(case.tree.arms)}
    renamed = Tree.from_paths([(*path[:-1], new[path[-1]]) for path in case.tree.paths()])
    plain = Tree.from_paths(case.tree.paths())
    contexts = [case.context() for _ in range(30)]
    runs = [_run(case, case.policy(5, tree), tree, contexts) for tree in (plain, renamed)]
    case.demand([new[arm] for arm in runs[0]] == runs[1], "the run on renamed arms is different")


def order_does_not_matter(case: Case) -> None:
    turned, context = Tree.from_paths(case.tree.paths()[::-1]), case.context()
    for events, when in (([], "before any reward"), (case.history(), "after some rewards")):
        policies = [case.policy(seed, tree, events) for seed, tree in ((1, case.tree), (2, turned))]
        plain, other = (Counter(choose(policy, context) for _ in range(DRAWS)) for policy in policies)
        what = f"{when} the arms in reverse order are chosen {other}, instead of {plain}"
        case.demand(alike(plain, other, case.tree), what)


def save_and_load(case: Case) -> None:
    events, context = case.history(), case.context()
    policy = case.policy(events=events)
    reload = case.load or _loader(policy)
    if not case.has(policy, "save") or (reload is None and not case.cannot_check("pass load= to read what save wrote")):
        return
    assert reload is not None
    cold, contexts = case.policy(), [case.context() for _ in range(20)]
    with tempfile.TemporaryDirectory() as folder:
        path, cold_path = Path(folder) / "policy", Path(folder) / "cold"
        with unchanged(case, policy, context, "after saving"):
            policy.save(path)
        cold.save(cold_path)
        loaded, *twins = reload(path, rng=3), reload(cold_path, rng=3), reload(cold_path, rng=3)
    case.demand(table_text(policy, context) == table_text(loaded, context), "the loaded policy has another table")
    same_beliefs(case, lambda _: policy, lambda _: loaded, "a policy before saving and after loading")
    runs = [_run(case, twin, case.tree, contexts) for twin in twins]
    case.demand(runs[0] == runs[1], f"loaded twice with the same seed it chose {runs[0]} and {runs[1]}")


def moving_conserves(case: Case) -> None:
    """After a change of the catalogue, a policy equals one built on the new tree that learned the same rewards."""
    tree, events = case.tree, case.history()
    arm = _with_siblings(tree)
    changes: list[tuple[str, Any]] = [
        ("add_arms", {"an added arm": tree.path(arm)[:-1], "one in a new cluster": ("a new cluster",)}),
        ("move_arms", {arm: ("a new cluster",)}),
        ("retree", Tree.from_paths(tree.paths()[::-1])),
    ]
    changes += [("remove_arms", [arm])] if tree.n_arms > 1 else []
    for change, argument in changes:
        if not case.has(case.policy(), change):
            continue
        new = argument if change == "retree" else getattr(tree, change)(argument)
        stay = [event for event in events if event.arm in new]
        changed = case.maker(events, methodcaller(change, argument))
        what = f"after {change}, and built on the new tree with the same rewards"
        same_beliefs(case, changed, case.maker(stay, tree=new), what)


def bad_rewards_change_nothing(case: Case) -> None:
    events, context = case.history(), case.context()
    some = [*case.tree.arms[:10], case.tree.arms[-1]]

    def learn_bad_rewards(policy: Any) -> None:
        for bad in [Event(arm, float("nan"), context) for arm in some] + [Event("no such arm", 1, context)]:
            with suppress(Exception):  # an error is right
                update(policy, bad)
        if hasattr(policy, "update_many"):
            with suppress(Exception):
                update_many(policy, [Event(some[0], 1, context), Event(some[-1], float("nan"), context)])

    policy = case.policy(events=events)
    with unchanged(case, policy, context, "after rewards that are NaN or for an unknown arm"):
        learn_bad_rewards(policy)

    def learn_and_choose(policy: Any) -> None:
        learn_bad_rewards(policy)
        try:
            choose(policy, context)
        except Exception as error:
            raise LawBroken(f"law broken: {case.law}. After a NaN reward choose fails: {error!r}") from error

    what = "a policy that was given NaN, and one that was not"
    same_beliefs(case, case.maker(events), case.maker(events, learn_and_choose), what)


def _run(case: Case, policy: Any, tree: Tree, contexts: Sequence[Any]) -> list[Any]:
    """Run a policy with rewards that depend only on the position of the arm and the time."""
    arms = []
    for time, context in enumerate(contexts):
        arm = choose(policy, context)
        case.demand(arm in tree, f"choose returned {arm!r}, which is not an arm")
        update(policy, Event(arm, (tree.position(arm) + time) % 2, context))
        arms.append(arm)
    return arms


def _choose_often(policy: Any, context: Any) -> None:
    for _ in range(40):
        choose(policy, context)
    if hasattr(policy, "choose_many"):
        choose_many(policy, 40, context)


def _with_siblings(tree: Tree) -> Any:
    """Return an arm that is not alone in its cluster, if there is one, so that removing it leaves the cluster."""
    above = [path[:-1] for path in tree.paths()]
    often = Counter(above)
    return max(zip(tree.arms, above, strict=True), key=lambda pair: often[pair[1]])[0]


def _loader(policy: Any) -> Callable[..., Any] | None:
    """Return a function that loads a policy of this package, with its belief and rule if they are the user's own."""
    if not isinstance(policy, Policy):
        return None
    belief = None if type(policy.belief) in BELIEFS.values() else policy.belief
    rule = None if type(policy.rule) in RULES.values() else policy.rule
    return lambda path, rng: load(path, rng=rng, belief=belief, rule=rule)
