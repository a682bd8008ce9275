"""Define the algorithms: each combines a depth of the tree, a belief and a rule, and says what it is in ``about``.

To add one, write its class and add it to `ALGORITHMS`; commands, advice, the service, plots and the laws go by that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict, Unpack

from banditree.beliefs import AdaptiveLinear, Beta, Counts, Linear, adaptive, adaptive_linear
from banditree.beliefs.law import LAW, Law
from banditree.beliefs.priors import Prior
from banditree.data.features import Features
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import choice
from banditree.policy.policy import About, Policy
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

    about = About(
        "Thompson sampling on all arms at once, ignoring the categories", "Thompson", levels=0, color="blue", marker="o"
    )

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=0, **options)


class TSC(Policy):
    """Thompson sampling with clustered arms, the paper's Algorithm 1.

    For each cluster draw theta_C ~ Beta(S(C), F(C)) and take the best cluster; for each of its arms draw
    theta_a ~ Beta(S(a), F(a)) and play the best; add the reward r to S, and 1 - r to F, of the arm and of its cluster.
    """

    about = About(
        "Thompson sampling over the top categories, then over the arms of the best one",
        "Thompson",
        levels=1,
        color="vermillion",
        marker="s",
    )

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=1, **options)


class HTS(Policy):
    """Hierarchical Thompson sampling, the paper's Algorithm 2: TSC's step at every level, or at the top levels."""

    about = About(
        "Thompson sampling at each of the top {depth} levels of the tree, then over arms",
        "Thompson",
        takes_depth=True,
        color="green",
        marker="^",
    )

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

    about = About(
        "Thompson sampling on all arms at once, which learns how far to trust the categories",
        "adaptive",
        adapts=True,
        cost=50,
        color="indigo",
        marker="*",
    )

    def __init__(self, tree: Tree, *, prior: Prior | None = None, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=adaptive(prior), rule=Thompson(), **options)

    @property
    def law(self) -> Law:
        """Numbers that its beliefs go by and that were chosen rather than derived, each with a sentence."""
        return LAW


class LinATS(Policy):
    """Adaptive Thompson sampling with contexts: one model across arms, which learns how far to trust the tree.

    Arms, clusters and root have a level and slopes; how far siblings are alike is learned per level of the tree, for
    levels and for slopes, together with the noise (docs/adaptive.md). Features are standardised, so that there is
    nothing to scale, and no constant to add. ``prior`` is what is known beforehand: a `Linear` for the root, or a
    mapping from arms and clusters to them, whose ``mean`` are slopes (and last a level, if it is one longer than
    contexts), and whose ``precision`` is the number of plays that they are worth.

    >>> import banditree as bt
    >>> features = bt.Features({"device": ["phone", "desktop"], "age": (18, 90)})
    >>> policy = bt.LinATS(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2"]}), features=features, rng=7)
    >>> visitor = {"device": "phone", "age": 30}
    >>> policy.update(policy.choose(context=visitor), reward=1, context=visitor)
    """

    about = replace(
        ATS.about,
        summary="Thompson sampling with contexts over arms that share what they learn, as far as they are alike",
        family="linear adaptive",
        takes_contexts=True,
        cost=60,
        color="wine",
        marker="8",
    )

    def __init__(
        self, tree: Tree, *, dim: int | None = None, prior: Prior | None = None, **options: Unpack[Options]
    ) -> None:
        length = _length(self, dim, options, needed=prior is None)
        belief = AdaptiveLinear(length) if prior is None else adaptive_linear(prior, length)
        super().__init__(tree, belief=belief, rule=Thompson(), **options)


class UCB1(Policy):
    """UCB1 on all arms (Auer, Cesa-Bianchi and Fischer 2002): mean + sqrt(2 ln n / n_a)."""

    about = About(
        "an upper confidence bound for every arm, ignoring the categories",
        "UCB",
        levels=0,
        takes_prior=False,
        color="sky",
        marker="v",
    )

    def __init__(self, tree: Tree, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=0, **options)


class UCBC(Policy):
    """Two-level UCB (Pandey 2007, Bouneffouf 2019): UCB1 over clusters, then over the arms of the best.

    ``clock`` is the n in the bound of an arm: the plays of its ``"cluster"``, or all plays (``"global"``).
    """

    about = About(
        "upper confidence bounds over the top categories, then over the arms of the best one",
        "UCB",
        levels=1,
        takes_prior=False,
        color="orange",
        marker="D",
    )

    def __init__(self, tree: Tree, *, clock: str = "cluster", **options: Unpack[Options]) -> None:
        clocks = {"cluster": "parent", "global": "global"}
        rule = UCB(clock=clocks[choice("clock", clock, tuple(clocks))])
        super().__init__(tree, belief=Counts(), rule=rule, depth=1, **options)


class UCT(Policy):
    """UCB1's index at every node of the tree, with n the plays of the parent (Kocsis and Szepesvari 2006)."""

    about = About(
        "an upper confidence bound at every node down the tree",
        "UCB",
        takes_depth=True,
        takes_prior=False,
        color="purple",
        marker="P",
    )

    def __init__(self, tree: Tree, *, depth: int | None = None, **options: Unpack[Options]) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=depth, **options)


class TSMax(Policy):
    """Two-level Thompson sampling in which a cluster draws from the belief of its best arm (Zhao 2019).

    ``best="empirical"``: the best empirical mean among arms tried; ``"posterior"``: the best posterior mean.
    """

    about = About(
        "Thompson sampling over the top categories, each represented by its best arm",
        "TSMax",
        levels=1,
        color="black",
        marker="X",
    )

    def __init__(
        self, tree: Tree, *, best: str = "empirical", prior: Prior = UNIFORM, **options: Unpack[Options]
    ) -> None:
        super().__init__(tree, belief=prior, rule=BestArm(best=best), depth=1, **options)


class _LinearThompson(Policy):
    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        v: float = 1.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        belief = _linear(self, dim, prior, options, v)
        super().__init__(tree, belief=belief, rule=Thompson(), depth=self.about.levels, **options)


class LinTS(_LinearThompson):
    """Thompson sampling with contexts on all arms (Agrawal and Goyal 2013): theta_a ~ N(mu_a.x, v x' B_a^-1 x)."""

    about = replace(TS.about, family="linear Thompson", takes_contexts=True, marker="h")


class LinTSC(_LinearThompson):
    """Thompson sampling with contexts and clustered arms, the paper's Algorithm 3: LinTS over clusters, then inside.

    B starts at the identity and f at zero, for each cluster and each arm; x x' adds to B and r x to f.
    """

    about = replace(TSC.about, family="linear Thompson", takes_contexts=True, marker="p")


class LinHTS(Policy):
    """LinTSC's step at every level of a deeper tree."""

    about = replace(HTS.about, family="linear Thompson", takes_contexts=True, marker="<")

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


class _LinearUCB(Policy):
    def __init__(
        self,
        tree: Tree,
        *,
        dim: int | None = None,
        c: float = 2.0,
        prior: Prior | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            tree, belief=_linear(self, dim, prior, options), rule=UCB(c=c), depth=self.about.levels, **options
        )


class LinUCB(_LinearUCB):
    """UCB with contexts on all arms (Li et al. 2010): mu_a.x + c sqrt(x' B_a^-1 x)."""

    about = replace(UCB1.about, family="linear UCB", takes_contexts=True, takes_prior=True, marker=">")


class LinUCBC(_LinearUCB):
    """LinUCB over clusters, then over the arms of the best (Bouneffouf 2019)."""

    about = replace(UCBC.about, family="linear UCB", takes_contexts=True, takes_prior=True, marker="d")


class LinUCT(Policy):
    """LinUCBC's step at every level of a deeper tree."""

    about = replace(UCT.about, family="linear UCB", takes_contexts=True, takes_prior=True, marker="*")

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


def _length(policy: Policy, dim: int | None, options: Options, *, needed: bool) -> Any:
    """Return the length of the contexts that users give, by ``dim`` or by the features; an error if it is needed."""
    features = options.get("features")
    if features is not None and dim is not None:
        raise InvalidType("features= says how long the contexts are; leave out dim=")
    length = features.dim if isinstance(features, Features) else dim
    if needed and length is None:
        kind = type(policy).__name__
        raise InvalidType(f"{kind} needs features=bt.Features(...), or the length of the contexts, for example dim=5")
    return length


def _linear(policy: Policy, dim: int | None, prior: Prior | None, options: Options, v: float = 1.0) -> Prior:
    """Return the belief of a linear policy: of contexts of length ``dim``, or of features and a constant after them."""
    length = _length(policy, dim, options, needed=prior is None)
    if prior is None:
        return Linear(length + 1 if dim is None else dim, v=v)
    if dim is not None or v != 1.0:
        raise InvalidType("a prior has its own dim and v, as in prior=bt.Linear(5, v=0.5); leave out dim= and v=")
    return prior


ALGORITHMS: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (ATS, TS, TSC, HTS, UCB1, UCBC, UCT, TSMax, LinATS, LinTS, LinTSC, LinHTS, LinUCB, LinUCBC, LinUCT)
}


class PolicyChoice(NamedTuple):
    """A policy as users name it: the class, and the parameters that came with the name."""

    kind: type[Policy]
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """The name with its parameters, such as 'HTS(depth=2)'."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.kind.__name__}({options})" if options else self.kind.__name__

    @property
    def factory(self) -> Callable[..., Policy]:
        """Builds it, called as ``factory(tree, rng=rng)``."""
        return partial(self.kind, **self.parameters) if self.parameters else self.kind


ENTRY_POINTS = "banditree.policies"  # the group under which another package names its policies


@cache
def known_policies() -> Mapping[str, type[Policy]]:
    """Return the policies by name: those above, and those of other packages that are installed.

    A package offers a policy by an entry point: ``Mine = "package.module:Mine"`` in the group ``banditree.policies``.
    """
    import logging  # `import banditree` does not wait for these two
    from importlib.metadata import entry_points

    known = dict(ALGORITHMS)
    for point in entry_points(group=ENTRY_POINTS):
        try:
            kind = point.load()
            if not (isinstance(kind, type) and issubclass(kind, Policy) and point.name not in ALGORITHMS):
                raise TypeError(f"{kind!r:.60} must be a subclass of Policy, and its name not one of banditree's")
            known[point.name] = kind
        except Exception as error:  # whatever is wrong with that package, the others work
            logging.getLogger("banditree").warning(
                "the policy %s of %s is left out: %s", point.name, point.value, error
            )
    return MappingProxyType(known)


def without_contexts() -> dict[str, type[Policy]]:
    """Return the policies that take no contexts."""
    return {name: kind for name, kind in known_policies().items() if not kind.about.takes_contexts}


SPELLING = re.compile(r"(\w+?)(?:[:(](?:depth=)?(\d+)\)?)?")


def parse_policy(
    name: str | type[Policy], *, tree: Tree | None = None, among: Mapping[str, type[Policy]] | None = None
) -> PolicyChoice:
    """Find the policy that a user names: "TS", "HTS" (the whole tree), "HTS:2", "HTS(depth=2)" or the class HTS.

    Names may be in any case; a depth must not exceed that of the tree.

    >>> parse_policy("hts:2").label, parse_policy(LinTS).label
    ('HTS(depth=2)', 'LinTS')
    """
    among = known_policies() if among is None else among
    text = next((key for key, kind in among.items() if kind is name), name)
    if not isinstance(text, str):
        raise InvalidType(f"policy {name!r} must be a name such as 'TSC' or 'HTS:2', or one of {', '.join(among)}")
    match = SPELLING.fullmatch(text.strip())
    kind = {key.lower(): value for key, value in among.items()}.get(match[1].lower()) if match else None
    if match is not None and kind is None and match[1].lower() in (key.lower() for key in known_policies()):
        raise InvalidValue(f"policy {text!r} needs contexts, and there are none here; it must be one of {_join(among)}")
    if match is None or kind is None:
        raise InvalidValue(f"there is no policy {text!r}; it must be one of {_join(among)}; with a depth as in 'HTS:2'")
    if match[2] is None:
        return PolicyChoice(kind, {})
    if not kind.about.takes_depth:
        deep = [key for key, value in among.items() if value.about.takes_depth]
        raise InvalidValue(f"policy {text!r}: {kind.__name__} has no depth to choose; only {_join(deep, 'and')} do")
    depth = int(match[2])
    if tree is not None and depth > tree.depth:
        deepest = f"this tree has depth {tree.depth}; give at most that"
        flat = "these arms have no categories; name the columns of their path, or choose TS"
        raise InvalidValue(f"policy {text!r}: {deepest if tree.depth else flat}")
    return PolicyChoice(kind, {"depth": depth})


def _join(names: Iterable[str], last: str = "or") -> str:
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end
