"""Present a policy as a river bandit policy, with or without contexts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from river import bandit

from banditree.adapters.growing import GrowingPolicy
from banditree.policy import Policy
from banditree.policy.factories import Factory, asks_for_dim
from banditree.stream import Seed
from banditree.tree import Tree
from banditree.tree.build import Name

Context = Mapping[Hashable, object]  # {feature: value}


class _Adapted(bandit.base.Policy):
    """What both kinds share: the parameters, under the names by which river finds them when it clones."""

    def __init__(
        self, factory: Factory, tree: Tree, reward_obj: Any = None, burn_in: int = 0, rng: Seed = None
    ) -> None:
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.factory, self.tree, self.rng = factory, tree, rng
        self._growing = GrowingPolicy(factory, rng, tree)

    @property
    def policy(self) -> Policy:
        """The policy, with its beliefs. There is none before the first decision."""
        return self._growing.policy

    def _choose(self, arm_ids: Iterable[Name], context: Context | None) -> Name:
        policy = self._growing.offer({}, context)
        arms = list(arm_ids)
        only = None if arms == list(policy.tree.arms) else arms
        return policy.choose(self._growing.vector(context), only=only)


class RiverPolicy(_Adapted):
    """A `river.bandit` policy that decides by a policy of banditree. Made by `bt.adapters.river`."""

    def _pull(self, arm_ids: Iterable[Name]) -> Name:
        return self._choose(arm_ids, None)

    def update(self, arm_id: Name, *reward_args: float, **reward_kwargs: object) -> None:
        """Learn from the reward of an arm, which river's table of arms counts too."""
        self._growing.update(arm_id, reward_args[0], None)
        super().update(arm_id, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]


class ContextualRiverPolicy(_Adapted, bandit.base.ContextualPolicy):
    """The same for policies with contexts, which river holds as {feature: value}."""

    def _pull(self, arm_ids: Iterable[Name], context: Context) -> Name:  # type: ignore[override]
        return self._choose(arm_ids, context)

    def update(self, arm_id: Name, context: Context, *reward_args: float, **reward_kwargs: object) -> None:
        """Learn from the reward of an arm in a context, which river's table of arms counts too."""
        self._growing.update(arm_id, reward_args[0], context)
        super().update(arm_id, context, *reward_args, **reward_kwargs)  # type: ignore[no-untyped-call]


def make(factory: Factory, tree: Tree, reward_obj: Any, burn_in: int, rng: Seed) -> RiverPolicy | ContextualRiverPolicy:
    """Build the kind that fits the factory: with contexts if its policies take them."""
    takes_contexts = asks_for_dim(factory) or GrowingPolicy(factory, 0, tree).offer({}, None).dim is not None
    kind = ContextualRiverPolicy if takes_contexts else RiverPolicy
    return kind(factory, tree, reward_obj, burn_in, rng)
