"""Use banditree's policies inside other libraries: as a coba learner, or as a river bandit policy.

Each function needs the extra of the same name, which is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from banditree.errors import missing_extra
from banditree.policy.factories import Factory
from banditree.stream import Seed
from banditree.tree import Tree

if TYPE_CHECKING:
    from banditree.adapters.coba_learner import CobaLearner

Path = Callable[[Any], Sequence[object]]


def coba(factory: Factory, path: Path | None = None, *, rng: Seed = None) -> CobaLearner:
    """Return a coba learner that decides by a policy of banditree, and logs exact probabilities.

    Every action that was ever offered is an arm of the policy, added when it is first offered; a decision is limited to
    the actions offered for it. An action with the same features is the same arm, so an action whose features never come
    back is known only by its clusters.

    Parameters
    ----------
    factory
        A policy class such as `bt.LinATS` or `bt.ATS`, or a function like `partial(bt.LinTS, v=0.1)`. A policy that
        takes no contexts ignores coba's.
    path
        A function that returns the clusters of an action, coarse to fine, such as ``lambda action: (action[0],)``. If
        it is left out, the text features of an action name its clusters, in their order: ``("sports", "football", 17)``
        is below "sports" and "football". An action without text features is directly below the root.
    rng
        An int, a SeedSequence or a Generator.

    >>> import banditree as bt
    >>> from coba import Environments, Experiment
    >>> learner = bt.adapters.coba(bt.LinTS, rng=7)
    >>> action, probability = learner.predict([0.2, 0.9], ["red", "blue"])
    >>> learner.learn([0.2, 0.9], action, 1.0, probability)
    >>> action in ("red", "blue"), probability
    (True, 0.5)
    """
    try:
        from banditree.adapters.coba_learner import CobaLearner
    except ModuleNotFoundError:
        raise missing_extra("coba", "adapters.coba needs coba") from None
    return CobaLearner(factory, path, rng)


def river(factory: Factory, tree: Tree, *, reward_obj: object = None, burn_in: int = 0, rng: Seed = None) -> Any:
    """Return a river bandit policy that decides by a policy of banditree.

    Parameters
    ----------
    factory
        A policy class such as `bt.ATS` or `bt.LinATS`, or a function like `partial(bt.ATS, prior=bt.Gaussian())`. For
        one that takes contexts the result is a `river.bandit.base.ContextualPolicy`.
    tree
        The arms, by the ids that river uses: 0, 1, ... for the environments of river and Gymnasium.
    reward_obj, burn_in
        What river shows of each arm (a mean by default), and how often each arm is played first: as for river's own
        policies.
    rng
        An int, a SeedSequence or a Generator. Clones start from the same seed, as river's do.

    >>> import banditree as bt
    >>> policy = bt.adapters.river(bt.ATS, bt.Tree({"left": [0, 1], "right": [2, 3]}), rng=7)
    >>> arm = policy.pull([0, 1, 3])
    >>> policy.update(arm, 1.0)
    >>> policy.ranking == [arm]
    True
    """
    try:
        from banditree.adapters.river_policy import make
    except ModuleNotFoundError:
        raise missing_extra("river", "adapters.river needs river") from None
    return make(factory, tree, reward_obj, burn_in, rng)


__all__ = ["coba", "river"]
