"""The laws of limits, slates, propensities, forgetting, and sums of rewards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from banditree.errors import InvalidType
from banditree.testing.cases import DRAWS, Case, Event, choose, choose_many, keyword, same_beliefs, unchanged
from banditree.testing.samples import alike, fits

Limits = dict[str, Any]

METHODS: dict[str, Callable[[Any, Any, Limits], list[Any]]] = {
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
                found = _computed(case, partial(METHODS[method], policy, context, limits))
                odd = [arm for arm in found or () if arm not in allowed]
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
    chance = _computed(case, lambda: policy.propensities(**keyword(context)))
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
            left: dict[Hashable, float] = dict(zip(tree.arms, limited.tolist(), strict=True))
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
    events = [Event(event.arm, event.reward, context[event.arm]) for event in case.history()]
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


def _limits(case: Case) -> Iterator[tuple[set[Any], dict[str, Limits]]]:
    """Yield sets of allowed arms, never with the best one, and the ways to pass them."""
    arms = case.tree.arms
    for n in sorted({1, len(arms) // 2, len(arms) - 1} - {0, len(arms)}):
        some = [arms[i] for i in case.rng.permutation(len(arms) - 1)[:n]]
        allowed = set(some)
        gone = [arm for arm in arms if arm not in allowed]
        mask = np.array([arm in allowed for arm in arms])
        yield (
            allowed,
            {
                "only": {"only": some},
                "exclude": {"exclude": gone},
                "masks": {"only": mask, "exclude": ~mask},
                "both": {"only": list(arms), "exclude": gone},
            },
        )


def _computed(case: Case, compute: Callable[[], Any]) -> Any:
    """Return the result, or None if the policy says that it cannot compute it."""
    try:
        return compute()
    except (NotImplementedError, InvalidType) as error:
        case.cannot_check(str(error))
        return None


def _check_chance(case: Case, chance: Any, allowed: Any, what: str) -> None:
    chance = np.asarray(chance)
    case.demand(chance.shape == (case.tree.n_arms,), f"{what} have shape {chance.shape}")
    case.demand(bool((chance >= 0).all()), f"{what} are not all 0 or more")
    case.demand(abs(float(chance.sum()) - 1) < 1e-9, f"{what} add up to {float(chance.sum())!r}")
    others = np.delete(chance, list(allowed))
    case.demand(not others.any(), f"{what} are above 0 for an arm that is not allowed")


def _check_decision(case: Case, policy: Any, decision: Any, chance: dict[Any, float]) -> None:
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


def _excerpt(numbers: Any) -> str:
    """Format the first few numbers, for an error message."""
    shown = ", ".join(f"{arm!r}: {number:.4g}" for arm, number in list(numbers.items())[:8])
    return f"{{{shown}{', ...' if len(numbers) > 8 else ''}}}"
