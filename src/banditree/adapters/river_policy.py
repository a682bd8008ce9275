"""Present a policy as a river bandit policy, with or without contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from river import bandit

from banditree.adapters.growing import GrowingPolicy, takes_contexts
from banditree.policy import Policy
from banditree.simulation.one_seed import Factory
from banditree.tree import Tree
from banditree.tree.build import Name


class RiverPolicy(bandit.base.Policy):  # type: ignore[misc]
    """A `river.bandit` policy that decides by a policy of banditree. Made by `bt.adapters.river`."""

    def __init__(
        self, factory: Factory, tree: Tree, reward_obj: Any = None, burn_in: int = 0, rng: Any = None
    ) -> None:
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.factory, self.tree, self.rng = factory, tree, rng  # by these names river finds them when it clones
        self._growing = GrowingPolicy(factory, rng, tree)

    @property
    def policy(self) -> Policy:
        """The policy, with its beliefs."""
        return self._growing.offer({}, None)

    def _pull(self, arm_ids: Iterable[Name]) -> Name:
        policy = self.policy
        return policy.choose(only=_limits(policy, arm_ids))

    def update(self, arm_id: Name, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from the reward of an arm, which river's table of arms counts too."""
        self._growing.update(arm_id, reward_args[0], None)
        super().update(arm_id, *reward_args, **reward_kwargs)


class ContextualRiverPolicy(bandit.base.ContextualPolicy):  # type: ignore[misc]
    """The same for policies with contexts, which river holds as {feature: value}."""

    def __init__(
        self, factory: Factory, tree: Tree, reward_obj: Any = None, burn_in: int = 0, rng: Any = None
    ) -> None:
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.factory, self.tree, self.rng = factory, tree, rng
        self._growing = GrowingPolicy(factory, rng, tree)

    @property
    def policy(self) -> Policy | None:
        """The policy, with its beliefs; None before the first context."""
        return self._growing.policy

    def _pull(self, arm_ids: Iterable[Name], context: Mapping[Any, Any]) -> Name:
        policy = self._growing.offer({}, context)
        return policy.choose(self._growing.vector(context), only=_limits(policy, arm_ids))

    def update(self, arm_id: Name, context: Mapping[Any, Any], *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from the reward of an arm in a context, which river's table of arms counts too."""
        self._growing.update(arm_id, reward_args[0], context)
        super().update(arm_id, context, *reward_args, **reward_kwargs)


def make(
    factory: Factory, tree: Tree, reward_obj: Any, burn_in: int, rng: Any
) -> RiverPolicy | ContextualRiverPolicy:
    """Build the kind that fits the factory."""
    kind = ContextualRiverPolicy if _is_contextual(factory, tree) else RiverPolicy
    return kind(factory, tree, reward_obj, burn_in, rng)


def _is_contextual(factory: Factory, tree: Tree) -> bool:
    """Say whether the factory's policies take contexts: they wait for a length of contexts, or have one."""
    return takes_contexts(factory) or factory(tree, rng=0).dim is not None


def _limits(policy: Policy, arm_ids: Iterable[Name]) -> list[Name] | None:
    arms = list(arm_ids)
    return None if arms == list(policy.tree.arms) else arms
