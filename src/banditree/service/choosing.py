"""Choose what to show: the group, the arms and their probabilities. The service and clients that decide do the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from banditree.base.arrays import Floats
from banditree.base.files import Json
from banditree.data.features import Features
from banditree.errors import InvalidValue
from banditree.policy import inputs
from banditree.policy.answers import Decision
from banditree.service.events import Cohort, Event, Kind, group, iso, new_id
from banditree.service.lift import in_control
from banditree.service.settings import Settings
from banditree.tree import Tree
from banditree.tree.build import Name

ANSWERED = ("arms", "path", "propensity", "steps")
IF_THERE = ("propensity_overall", "propensities", "unknown", "shadow")  # that not every decision has
_random = random.SystemRandom()
Limits = dict[str, list[str]]


class Chooser(Protocol):
    """The part of a policy that decisions use."""

    @property
    def tree(self) -> Tree: ...
    @property
    def dim(self) -> int | None: ...
    def decide(self, context: object = None, *, only: object = None, exclude: object = None) -> Decision: ...
    def propensity(
        self, arm: object, context: object = None, *, only: object = None, exclude: object = None
    ) -> float: ...


class Standing(Protocol):
    """The state that a decision depends on besides the request, after some event of the log."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def features(self) -> Features | None: ...
    @property
    def policy(self) -> Chooser: ...
    @property
    def control(self) -> Chooser | None: ...


def choose(standing: Standing, request: Json, salt: str) -> tuple[str | None, Json]:
    """Choose the group, and then the arms; return the cohort, and the body of the decision's event."""
    context = encode_context(standing, request.get("context"))
    limits, unknown = _limits(standing, request)
    cohort = _cohort(standing, request.get("unit"), salt)
    policy = standing.control if cohort in (Cohort.CONTROL, Cohort.PAUSED) else standing.policy
    k = _positions(standing, request, limits, unknown)
    choices = [_choose(standing, policy, context, limits)]
    body: Json = {"request": request, "arms": [choices[0].arm], "path": list(choices[0].path)}
    body |= {"propensity": choices[0].propensity, "steps": list(choices[0].steps)}
    if cohort in (Cohort.CONTROL, Cohort.POLICY):
        body["propensity_overall"] = _overall(standing, cohort, choices[0], context, limits)
    if k > 1:  # each position again among the arms that are left, so that its probability is exact
        for _ in range(1, k):
            limits = limits | {"exclude": [*limits.get("exclude", ()), choices[-1].arm]}
            choices.append(_choose(standing, policy, context, limits))
        body["arms"] = [choice.arm for choice in choices]
        body["propensities"] = [choice.propensity for choice in choices]
    return cohort, body | ({"unknown": unknown} if unknown else {})


def decided(experiment: str, id_: str | None, at: int, cohort: str | None, body: Json) -> Event:
    """Make the event of a decision from its body; without an id it gets one."""
    arms, unit = body["arms"], body["request"].get("unit")
    n_arms = float(len(arms)) if len(arms) > 1 else None
    id_ = id_ or new_id(at)
    return Event(
        at, Kind.DECISION, id_, arm=arms[0], value=n_arms, body=body, experiment=experiment, unit=unit, cohort=cohort
    )


def answer(decision: Event) -> Json:
    """Make the answer to a decision, which is the same whenever the request is repeated."""
    body = decision.body or {}
    fields = {"id": decision.id, "arm": body["arms"][0]}
    fields |= {key: body[key] for key in ANSWERED}
    fields |= {"group": group(decision.cohort), "experiment": decision.experiment}
    fields |= {"at": iso(body.get("at", decision.at))}
    return fields | {key: body[key] for key in IF_THERE if key in body}


def keeps(standing: Standing, decision: Event, request: Json, at: int) -> bool:
    """Whether a unit gets its last decision again: not for long, and not if one of its arms is not allowed."""
    sticky, arms = standing.settings.sticky, (decision.body or {})["arms"]
    if sticky is None or at - decision.at > sticky * 1e6:
        return False
    if (decision.cohort == Cohort.PAUSED) != standing.is_paused:  # a pause, and its end, concern everybody at once
        return False
    encode_context(standing, request.get("context"))  # one that does not fit is refused, as in any other decision
    only, exclude, tree = request.get("only"), request.get("exclude") or (), standing.policy.tree
    is_allowed = all(arm in tree and arm not in exclude and (not only or arm in only) for arm in arms)
    return is_allowed and len(arms) == _positions(standing, request, *_limits(standing, request))


def encode_context(standing: Standing, context: object) -> Floats | None:
    """Check a context and encode it, once for all policies of the experiment; None if they take none."""
    features = standing.features
    if features is not None:
        if not isinstance(context, Mapping):
            raise InvalidValue(f"context must be an object with the features {', '.join(features.spec)}")
        return features.encode(context)
    if isinstance(context, Mapping):
        raise InvalidValue("context: this experiment has no features by name; send a list of numbers")
    dim = standing.policy.dim
    return None if dim is None else inputs.Contexts(standing.settings.policy, dim).one(context)


def _cohort(standing: Standing, unit: str | None, salt: str) -> str | None:
    share = standing.settings.control
    if standing.is_paused:
        return Cohort.PAUSED
    if share == 0:
        return None
    is_control = _random.random() < share if unit is None else in_control(standing.name, salt, unit, share)
    return Cohort.CONTROL if is_control else Cohort.POLICY


def _limits(standing: Standing, request: Json) -> tuple[Limits, list[str]]:
    """Return the limits of a request to arms that exist, and the arms of ``only`` that do not."""
    only, exclude, tree = request.get("only"), request.get("exclude"), standing.policy.tree
    limits: Limits = {}
    unknown: list[str] = []
    if exclude and (known := [arm for arm in exclude if arm in tree]):  # the others need not be excluded
        limits["exclude"] = known
    if only is not None:
        limits["only"] = [arm for arm in only if arm in tree]
        unknown = [arm for arm in only if arm not in tree]
        if not limits["only"]:
            named = ", ".join(map(repr, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
            raise InvalidValue(f"only: none of these arms exists: {named}" if unknown else "only names no arm")
    return limits, unknown


def _positions(standing: Standing, request: Json, limits: Limits, unknown: Sequence[str]) -> int:
    """Return how many arms to choose: fewer than asked for where only unknown ones are left to fill the slate."""
    k = int(request.get("k", 1))
    if k == 1:
        return k
    excluded = set(limits.get("exclude", ()))
    n = len(set(limits["only"]) - excluded) if "only" in limits else standing.policy.tree.n_arms - len(excluded)
    if k > n and not unknown:
        raise InvalidValue(f"k={k} must be at most {n:,}, the number of different arms that are allowed")
    return min(k, n)


def _choose(standing: Standing, policy: Chooser | None, context: Floats | None, limits: Limits) -> Decision:
    """Choose by a policy; without one, by the item of the control policy, or uniformly at random."""
    if policy is not None:
        return policy.decide(context if policy.dim is not None else None, **limits)
    item, allowed = _without_policy(standing, limits)
    arm, chance = (item, 1.0) if item is not None else (_random.choice(allowed), 1 / len(allowed))
    return Decision(arm, standing.policy.tree.path(arm), chance, (chance,))


def _without_policy(standing: Standing, limits: Limits) -> tuple[Name | None, Sequence[Name]]:
    """Return the item that a control policy always chooses, if it is allowed, and the arms that are."""
    allowed: Sequence[Name] = standing.policy.tree.arms
    if limits:
        exclude = set(limits.get("exclude", ()))
        allowed = [arm for arm in dict.fromkeys(limits.get("only", allowed)) if arm not in exclude]
    if not allowed:
        raise InvalidValue("no arm is allowed; name others in only, or exclude fewer")
    item = standing.settings.control_item
    is_there = item is not None and item in (allowed if limits else standing.policy.tree)
    return item if is_there else None, allowed


def _overall(standing: Standing, cohort: str, choice: Decision, context: Floats | None, limits: Limits) -> float:
    """Return the probability of the arm over both groups: by the policy's and by the control policy's."""
    other = standing.policy if cohort == Cohort.CONTROL else standing.control
    if other is not None:
        chance = other.propensity(choice.arm, context if other.dim is not None else None, **limits)
    else:
        item, allowed = _without_policy(standing, limits)
        chance = 1 / len(allowed) if item is None else float(choice.arm == item)
    share = standing.settings.control
    in_control, in_policy = (choice.propensity, chance) if cohort == Cohort.CONTROL else (chance, choice.propensity)
    return share * in_control + (1 - share) * in_policy
