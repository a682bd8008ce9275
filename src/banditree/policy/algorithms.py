"""Define the paper's algorithms and those it compares with: each combines a depth of the tree, a belief and a rule."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

from banditree.beliefs import Beta, Counts, Linear, adaptive
from banditree.beliefs.priors import Prior
from banditree.errors import InvalidType
from banditree.errors.checks import choice
from banditree.features import Features
from banditree.policy.policy import Policy
from banditree.rules import UCB, BestArm, Thompson
from banditree.tree.tree import Tree


class Options(TypedDict, total=False):
    """Parameters of every algorithm besides its own; `Policy` documents them."""

    explore: float
    half_life: float | None
    features: Features | None
    rng: Any


UNIFORM = Beta(1, 1)  # S_0 = F_0 = 1: the uniform prior


class TS(Policy):
    """Thompson sampling on all arms, ignoring clusters (Thompson 1933).

    For each arm draw theta_a ~ Beta(S(a), F(a)); play argmax theta_a; add the reward r to S and 1 - r to F of the arm.
    """

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=0, **options)


class TSC(Policy):
    """Thompson sampling with clustered arms, the paper's Algorithm 1.

    For each cluster draw theta_C ~ Beta(S(C), F(C)) and take the best cluster; for each of its arms draw
    theta_a ~ Beta(S(a), F(a)) and play the best; add the reward r to S, and 1 - r to F, of the arm and of its cluster.
    """

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=1, **options)


class HTS(Policy):
    """Hierarchical Thompson sampling, the paper's Algorithm 2: TSC's step at every level, or at the top levels."""

    def __init__(
        self, tree: Tree, *, depth: int | None = None, prior: Prior = UNIFORM, **options: Unpack[Options]
    ) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=depth, **options)


class ATS(Policy):
    """Adaptive Thompson sampling: learns how far to trust the tree, so that there is no depth to choose.

    The rewards of an arm count for its siblings as far as they are alike, level by level, and how alike they are is
    learned. The arm with the highest draw of all is played (docs/adaptive.md). ``prior`` is what is believed about the
    mean of all arms: a `Beta`, or a `Gaussian` for rewards outside [0, 1]. In a mapping, the priors of arms and
    clusters are rewards known beforehand.

    >>> import banditree as bt
    >>> policy = bt.ATS(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]}), rng=7)
    >>> policy.update(policy.choose(), reward=1)
    """

    def __init__(self, tree: Tree, *, prior: Prior | None = None, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=adaptive(prior), rule=Thompson(), **options)


class UCB1(Policy):
    """UCB1 on all arms (Auer, Cesa-Bianchi and Fischer 2002): mean + sqrt(2 ln n / n_a)."""

    def __init__(self, tree: Tree, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=0, **options)


class UCBC(Policy):
    """Two-level UCB (Pandey 2007, Bouneffouf 2019): UCB1 over clusters, then over the arms of the best.

    ``clock`` is the n in the bound of an arm: the plays of its ``"cluster"``, or all plays (``"global"``).
    """

    def __init__(self, tree: Tree, *, clock: str = "cluster", **options: Unpack[Options]) -> None:
        clocks = {"cluster": "parent", "global": "global"}
        rule = UCB(clock=clocks[choice("clock", clock, tuple(clocks))])
        super().__init__(tree, belief=Counts(), rule=rule, depth=1, **options)


class UCT(Policy):
    """UCB1's index at every node of the tree, with n the plays of the parent (Kocsis and Szepesvari 2006)."""

    def __init__(self, tree: Tree, *, depth: int | None = None, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=depth, **options)


class TSMax(Policy):
    """Two-level Thompson sampling in which a cluster draws from the belief of its best arm (Zhao 2019).

    ``best="empirical"``: the best empirical mean among arms tried; ``"posterior"``: the best posterior mean.
    """

    def __init__(
        self, tree: Tree, *, best: str = "empirical", prior: Prior = UNIFORM, **options: Unpack[Options]
    ) -> None:
        super().__init__(tree, belief=prior, rule=BestArm(best=best), depth=1, **options)


class LinTS(Policy):
    """Thompson sampling with contexts on all arms (Agrawal and Goyal 2013): theta_a ~ N(mu_a.x, v x' B_a^-1 x)."""

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        v: float = 1.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options, v), rule=Thompson(), depth=0, **options)


class LinTSC(Policy):
    """Thompson sampling with contexts and clustered arms, the paper's Algorithm 3: LinTS over clusters, then inside.

    B starts at the identity and f at zero, for each cluster and each arm; x x' adds to B and r x to f.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        v: float = 1.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options, v), rule=Thompson(), depth=1, **options)


class LinHTS(Policy):
    """LinTSC's step at every level of a deeper tree."""

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        v: float = 1.0,
        prior: Prior | None = None,
        depth: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options, v), rule=Thompson(), depth=depth, **options)


class LinUCB(Policy):
    """UCB with contexts on all arms (Li et al. 2010): mu_a.x + c sqrt(x' B_a^-1 x)."""

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        c: float = 2.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options), rule=UCB(c=c), depth=0, **options)


class LinUCBC(Policy):
    """LinUCB over clusters, then over the arms of the best (Bouneffouf 2019)."""

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        c: float = 2.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options), rule=UCB(c=c), depth=1, **options)


class LinUCT(Policy):
    """LinUCBC's step at every level of a deeper tree."""

    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        c: float = 2.0,
        prior: Prior | None = None,
        depth: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, prior, options), rule=UCB(c=c), depth=depth, **options)


def _linear(policy: Policy, dim: int | None, prior: Prior | None, options: Options, v: float = 1.0) -> Prior:
    """Return the belief of a linear policy: of contexts of length ``dim``, or of features and a constant after them."""
    features = options.get("features")
    if features is not None and dim is not None:
        raise InvalidType("features= says how long the contexts are; leave out dim=")
    if prior is not None:
        if dim is not None or v != 1.0:
            raise InvalidType("a prior has its own dim and v, as in prior=bt.Linear(5, v=0.5); leave out dim= and v=")
        return prior
    if isinstance(features, Features):
        dim = features.dim + 1
    if dim is None:
        raise InvalidType(
            f"{type(policy).__name__} needs features=bt.Features(...), or the length of the contexts, for example dim=5"
        )
    return Linear(dim, v=v)


ALGORITHMS: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (ATS, TS, TSC, HTS, UCB1, UCBC, UCT, TSMax, LinTS, LinTSC, LinHTS, LinUCB, LinUCBC, LinUCT)
}
