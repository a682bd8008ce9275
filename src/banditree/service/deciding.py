"""Make a decision with the policy, and collect everything that the log stores about it."""

from __future__ import annotations

from typing import Any

from banditree.errors import InvalidValue
from banditree.policy import Policy
from banditree.policy.decision import decided
from banditree.service.state import State


def decide(state: State, request: dict[str, Any]) -> dict[str, Any]:
    """Choose an arm or a slate, and return the body of the decision event."""
    policy = state.policy
    context = request.get("context") if policy.dim is not None else None  # logged in any case
    limits = {"only": request.get("only"), "exclude": _known(policy, request.get("exclude"))}
    if "k" in request:
        arms = [str(arm) for arm in policy.slate(request["k"], context, **limits)]
        first = _how_likely(policy, arms[0], context, limits)
    else:
        first = policy.decide(context, **limits)
        arms = [str(first.arm)]
    return {
        "request": request,
        "arms": arms,
        "path": list(first.path),
        "propensity": first.propensity,
        "steps": list(first.steps),
        "policy": state.policy_version,
        "tree": state.tree_version,
        **({"shadow": True} if state.settings.shadow else {}),
    }


def check_reward(policy: Policy, arm: str, reward: float) -> None:
    """Refuse a reward that the policy cannot learn from."""
    low, high = policy.support
    if not low <= reward <= high:
        raise InvalidValue(
            f"reward {reward:.17g} for arm {arm!r} is outside [{low:g}, {high:g}]; for other rewards start the service "
            "with --reward-sd"
        )


def _known(policy: Policy, arms: list[str] | None) -> list[str] | None:
    """Keep the arms that exist; the others need not be excluded."""
    if arms is None:
        return None
    return [arm for arm in arms if arm in policy.tree] or None


def _how_likely(policy: Policy, arm: str, context: Any, limits: dict[str, Any]) -> Any:
    """Compute the probabilities for an arm that was already drawn; nothing changes the policy in between."""
    with policy.held(changes=False) as state:
        within = policy._limits(state, **limits)
        ready = policy._contexts.one(context)
        return decided(state, within, ready, state.tree.position(arm), policy.explore)
