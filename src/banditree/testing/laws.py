"""The laws that every policy keeps: choosing, learning, changing the catalogue, saving, limits, probabilities."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from banditree.base.arrays import Floats
from banditree.beliefs import BELIEFS
from banditree.errors import InvalidType
from banditree.policy import Policy
from banditree.policy.saving import load
from banditree.rules import RULES
from banditree.testing.cases import (
    DRAWS,
    Case,
    LawBroken,
    Play,
    alike,
    choose,
    choose_many,
    fits,
    keyword,
    same_beliefs,
    table_text,
    unchanged,
    update,
    update_many,
)
from banditree.tree import Tree
from banditree.tree.build import Name


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

    def learn_bad_rewards(policy: object) -> None:
        for bad in [Play(arm, float("nan"), context) for arm in some] + [Play("no such arm", 1, context)]:
            with suppress(Exception):  # an error is right
                update(policy, bad)
        if hasattr(policy, "update_many"):
            with suppress(Exception):
                update_many(policy, [Play(some[0], 1, context), Play(some[-1], float("nan"), context)])

    policy = case.policy(events=events)
    with unchanged(case, policy, context, "after rewards that are NaN or for an unknown arm"):
        learn_bad_rewards(policy)

    def learn_and_choose(policy: object) -> None:
        learn_bad_rewards(policy)
        try:
            choose(policy, context)
        except Exception as error:
            raise LawBroken(f"law broken: {case.law}. After a NaN reward choose fails: {error!r}") from error

    what = "a policy that was given NaN, and one that was not"
    same_beliefs(case, case.maker(events), case.maker(events, learn_and_choose), what)


def _run(case: Case, policy: object, tree: Tree, contexts: Sequence[object]) -> list[Name]:
    """Run a policy with rewards that depend only on the position of the arm and the time."""
    arms = []
    for time, context in enumerate(contexts):
        arm = choose(policy, context)
        case.demand(arm in tree, f"choose returned {arm!r}, which is not an arm")
        update(policy, Play(arm, (tree.position(arm) + time) % 2, context))
        arms.append(arm)
    return arms


def _choose_often(policy: object, context: Floats | None) -> None:
    for _ in range(40):
        choose(policy, context)
    if hasattr(policy, "choose_many"):
        choose_many(policy, 40, context)


def _with_siblings(tree: Tree) -> Name:
    """Return an arm that is not alone in its cluster, if there is one, so that removing it leaves the cluster."""
    above = [path[:-1] for path in tree.paths()]
    often = Counter(above)
    return max(zip(tree.arms, above, strict=True), key=lambda pair: often[pair[1]])[0]


def _loader(policy: object) -> Callable[..., object] | None:
    """Return a function that loads a policy of this package, with its belief and rule if they are the user's own."""
    if not isinstance(policy, Policy):
        return None
    belief = None if type(policy.belief) in BELIEFS.values() else policy.belief
    rule = None if type(policy.rule) in RULES.values() else policy.rule
    return lambda path, rng: load(path, rng=rng, belief=belief, rule=rule)


Limits = dict[str, object]

METHODS: dict[str, Callable[[Any, Floats | None, Limits], list[Name]]] = {
    "choose": lambda policy, context, limits: [choose(policy, context, **limits) for _ in range(5)],
    "choose_many": lambda policy, context, limits: choose_many(policy, 20, context, **limits),
    "slate": lambda policy, context, limits: list(policy.slate(1, **keyword(context), **limits)),
    "decide": lambda policy, context, limits: [policy.decide(**keyword(context), **limits).arm],
}


def limits_hold(case: Case) -> None:
    policy, context = case.policy(events=case.history()), case.context()
    methods = [name for name in METHODS if case.takes(policy, name, "only", "exclude")]
    if "choose" not in methods:
        return
    for allowed, ways in _limits(case):
        for how, limits in ways.items():
            for method in methods:
                chosen = _compute(case, partial(METHODS[method], policy, context, limits))
                odd = [arm for arm in chosen or () if arm not in allowed]
                case.demand(not odd, f"{method} with {how} returned {odd[:1]}, which is not allowed")
    arms = case.tree.arms
    case.must_raise(lambda: choose(policy, context, exclude=list(arms)), "choose with every arm excluded")
    case.must_raise(lambda: choose(policy, context, only=[]), "choose with only=[]")
    case.must_raise(lambda: choose(policy, context, only=["no such arm"]), "choose with only an unknown arm")
    plain = Counter(choose(policy, context) for _ in range(DRAWS))
    limited = Counter(choose(policy, context, exclude=[]) for _ in range(DRAWS))
    case.demand(alike(plain, limited, case.tree), f"choices are {limited} with exclude=[], and {plain} without")


def slates_differ(case: Case) -> None:
    policy, context, n = case.policy(events=case.history()), case.context(), case.tree.n_arms
    if not case.has(policy, "slate"):
        return
    for k in sorted({1, n // 2 + 1, n}):
        slate = list(policy.slate(k, **keyword(context)))
        case.demand(len(slate) == k, f"slate({k}) has {len(slate)} arms")
        case.demand(len(set(slate)) == k, f"slate({k}) has an arm twice: {slate!r:.200}")
        case.demand(
            all(arm in case.tree for arm in slate), f"slate({k}) has something that is not an arm: {slate!r:.200}"
        )
    case.must_raise(lambda: policy.slate(n + 1, **keyword(context)), f"slate({n + 1}) of {n} arms")
    chosen = Counter(choose(policy, context) for _ in range(DRAWS))
    first = Counter(next(iter(policy.slate(1, **keyword(context)))) for _ in range(DRAWS))
    case.demand(alike(chosen, first, case.tree), f"a slate of 1 is {first}, choices are {chosen}")
    if n > 1 and case.takes(policy, "slate", "exclude"):
        gone = case.tree.arms[-1]
        case.demand(
            gone not in policy.slate(n - 1, **keyword(context), exclude=[gone]), "an excluded arm is in a slate"
        )
        case.must_raise(
            lambda: policy.slate(n, **keyword(context), exclude=[gone]), "a slate longer than the arms allowed"
        )


def propensities_match(case: Case) -> None:
    policy, context, tree = case.policy(events=case.history()), case.context(), case.tree
    if not case.has(policy, "propensities"):
        return
    chance = _compute(case, lambda: policy.propensities(**keyword(context)))
    if chance is None:
        return
    _check_chance(case, chance, range(tree.n_arms), "propensities()")
    chance = dict(zip(tree.arms, np.asarray(chance).tolist(), strict=True))
    seen = Counter(choose(policy, context) for _ in range(2 * DRAWS))
    case.demand(fits(seen, chance, tree), f"propensities are {_excerpt(chance)}, choices {_excerpt(seen)}")
    if case.takes(policy, "propensities", "only", "exclude") and case.takes(policy, "choose", "only", "exclude"):
        for allowed, ways in _limits(case):
            for how, limits in ways.items():
                limited = np.asarray(policy.propensities(**keyword(context), **limits))
                _check_chance(case, limited, [tree.position(arm) for arm in allowed], f"propensities with {how}")
            left: dict[Name, float] = dict(zip(tree.arms, limited.tolist(), strict=True))
            seen = Counter(choose(policy, context, **limits) for _ in range(DRAWS))
            case.demand(
                fits(seen, left, tree), f"with {how} propensities are {_excerpt(left)}, choices {_excerpt(seen)}"
            )
    if case.has(policy, "decide"):
        for _ in range(5):
            _check_decision(case, policy, policy.decide(**keyword(context)), chance)


def forgetting_scales(case: Case) -> None:
    events, context = case.history(), case.context()
    if not case.has(case.policy(), "forget"):
        return

    def forgetful(factor: float, repeat: int = 1) -> Callable[[int], Any]:
        return case.maker(events * repeat, methodcaller("forget", factor))

    learned = case.maker(events)
    same_beliefs(case, learned, forgetful(1), "a policy, and one that forgot by 1")
    same_beliefs(case, case.policy, forgetful(0), "a fresh policy, and one that forgot by 0")
    what = "a policy, and one that had each reward twice and forgot by 0.5"
    same_beliefs(case, learned, forgetful(0.5, repeat=2), what)
    policy = learned(0)
    with unchanged(case, policy, context, "after forgetting by a factor outside [0, 1]"):
        for bad in (-0.1, 1.1, float("nan")):
            case.must_raise(partial(policy.forget, bad), f"forget({bad})")


def plays_add_up(case: Case) -> None:
    if not case.takes(case.policy(), "update_many", "plays"):
        return
    context = {arm: case.context() for arm in case.tree.arms}
    events = [Play(event.arm, event.reward, context[event.arm]) for event in case.history()]
    plays = Counter(event.arm for event in events)
    if getattr(getattr(case.policy(), "belief", None), "learns_noise", False):  # a sum does not tell how rewards vary
        events = list({event.arm: event for event in events}.values())
        plays = Counter(event.arm for event in events)
    sums = {arm: sum(event.reward for event in events if event.arm == arm) for arm in plays}
    more = {} if case.dim is None else {"contexts": np.array([context[arm] for arm in plays])}
    learn = methodcaller("update_many", list(plays), list(sums.values()), plays=list(plays.values()), **more)
    same_beliefs(case, case.maker(events), case.maker(then=learn), "rewards one by one, and their sums with plays")
    policy, arm = case.policy(events=events), next(iter(plays))
    at = {} if case.dim is None else {"contexts": np.array([context[arm]])}
    with unchanged(case, policy, context[arm], "after invalid plays"):
        for bad in (0, -1, float("nan")):
            case.must_raise(partial(policy.update_many, [arm], [0], plays=[bad], **at), f"plays={bad}")


def _limits(case: Case) -> Iterator[tuple[set[object], dict[str, Limits]]]:
    """Yield sets of allowed arms, never with the best one, and the ways to pass them."""
    arms = case.tree.arms
    for n in sorted({1, len(arms) // 2, len(arms) - 1} - {0, len(arms)}):
        some = [arms[i] for i in case.rng.permutation(len(arms) - 1)[:n]]
        allowed = set(some)
        gone = [arm for arm in arms if arm not in allowed]
        mask = np.array([arm in allowed for arm in arms])
        ways: dict[str, Limits] = {"only": {"only": some}, "exclude": {"exclude": gone}}
        ways |= {"masks": {"only": mask, "exclude": ~mask}, "both": {"only": list(arms), "exclude": gone}}
        yield allowed, ways


def _compute(case: Case, compute: Callable[[], object]) -> Any:
    """Return the result, or None if the policy says that it cannot compute it."""
    try:
        return compute()
    except (NotImplementedError, InvalidType) as error:
        case.cannot_check(str(error))
        return None


def _check_chance(case: Case, chance: object, allowed: Iterable[int], what: str) -> None:
    chance = np.asarray(chance)
    case.demand(chance.shape == (case.tree.n_arms,), f"{what} have shape {chance.shape}")
    case.demand(bool((chance >= 0).all()), f"{what} are not all 0 or more")
    case.demand(abs(float(chance.sum()) - 1) < 1e-9, f"{what} add up to {float(chance.sum())!r}")
    others = np.delete(chance, list(allowed))
    case.demand(not others.any(), f"{what} are above 0 for an arm that is not allowed")


def _check_decision(case: Case, policy: object, decision: Any, chance: Mapping[Name, float]) -> None:
    expected = chance[decision.arm]
    same = abs(decision.propensity - expected) <= 1e-9 + 1e-6 * expected
    case.demand(same, f"decide gave {decision.arm!r} a propensity of {decision.propensity}, propensities() {expected}")
    case.demand(decision.propensity > 0, f"decide gave {decision.arm!r}, which has a propensity of 0")
    if hasattr(decision, "path"):
        fits = tuple(decision.path) == case.tree.path(decision.arm)
        case.demand(fits, f"decide gave {decision.arm!r} the path {decision.path!r}")
    if hasattr(decision, "steps") and getattr(policy, "explore", 0) == 0:
        product = float(np.prod(decision.steps))
        fits = abs(product - decision.propensity) <= 1e-9 * decision.propensity
        case.demand(fits, f"decide gave steps of product {product} and a propensity of {decision.propensity}")


def _excerpt(numbers: Mapping[Name, float]) -> str:
    """Format the first few numbers, for an error message."""
    shown = ", ".join(f"{arm!r}: {number:.4g}" for arm, number in list(numbers.items())[:8])
    return f"{{{shown}{', ...' if len(numbers) > 8 else ''}}}"
