"""Define the algorithms: each says in ``about`` which levels of the tree, belief and rule it combines.

To add one, write its class and add it to `ALGORITHMS`; commands, advice, the service, plots and the laws go by that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict, Unpack

from banditree.beliefs import AdaptiveLinear, Beta, Counts, Hierarchical, Linear, adaptive, adaptive_linear
from banditree.beliefs.law import LAW
from banditree.beliefs.priors import Prior
from banditree.data.features import Features
from banditree.errors import InvalidType, InvalidValue
from banditree.errors.checks import choice
from banditree.policy.policy import About, Policy
from banditree.rules import UCB, BestArm, Thompson
from banditree.stream import Seed
from banditree.tree.tree import Tree


class Parameters(TypedDict, total=False):
    """Parameters of the algorithms. Every one takes the first four; `About` says which of the others it takes."""

    explore: float
    half_life: float | None
    features: Features | None
    rng: Seed
    prior: Prior | None  # the belief before any reward
    depth: int | None  # levels of clusters that are walked, None for all
    dim: int | None  # length of the contexts
    v: float  # scales the variance of the samples
    c: float  # how many spreads above the mean an upper confidence bound is
    clock: str
    best: str
    arm_sd: float | None  # how far arms lie around their cluster
    cluster_sd: float | Sequence[float] | None  # and clusters around theirs
    noise: float | None  # standard deviation of a reward around its arm's mean


class Algorithm(Policy):
    """A policy whose parts follow from its class and its parameters."""

    def __init__(self, tree: Tree, **given: Unpack[Parameters]) -> None:
        about, options = self.about, dict[str, Any](given)
        own = {name: options.pop(name) for name in about.parameters if name in options}
        for strange in options.keys() - ("explore", "half_life", "features", "rng"):
            raise self._unknown_parameter(strange)
        assert about.belief is not None
        assert about.rule is not None
        belief = about.belief(
            type(self).__name__, options.get("features"), **{name: own[name] for name in about.of_belief if name in own}
        )
        rule = about.rule(**{name: own[name] for name in about.of_rule if name in own})
        super().__init__(tree, belief=belief, rule=rule, depth=own.get("depth", about.levels), **options)


UNIFORM = Beta(1, 1)  # S_0 = F_0 = 1: the uniform prior

# The beliefs, from the policy's name, its features and what its class takes


def _uniform(_: str, __: object, prior: Prior = UNIFORM) -> Prior:
    return prior


def _counts(_: str, __: object) -> Prior:
    return Counts()


def _adaptive(_: str, __: object, prior: Prior | None = None) -> Prior:
    return adaptive(prior)


def _hierarchical(_: str, __: object, noise: float | None = None, **spreads: Any) -> Prior:
    return Hierarchical(noise, **spreads)


def _adaptive_linear(name: str, features: object, dim: int | None = None, prior: Prior | None = None) -> Prior:
    length = _length(name, features, dim, needed=prior is None)
    return AdaptiveLinear(length) if prior is None else adaptive_linear(prior, length)


def _linear(name: str, features: object, dim: int | None = None, v: float = 1.0, prior: Prior | None = None) -> Prior:
    """Return the belief for contexts of length ``dim``, or for features and a constant after them."""
    _length(name, features, dim, needed=prior is None)
    if prior is None:
        return Linear(features.dim + 1 if isinstance(features, Features) else dim, v=v)
    if dim is not None or v != 1.0:
        raise InvalidType("a prior has its own dim and v, as in prior=bt.Linear(5, v=0.5); leave out dim= and v=")
    return prior


def _length(name: str, features: object, dim: int | None, *, needed: bool) -> int | None:
    """Return the length of the contexts that users give, by ``dim`` or by the features; an error if it is needed."""
    if features is not None and dim is not None:
        raise InvalidType("features= says how long the contexts are; leave out dim=")
    length = features.dim if isinstance(features, Features) else dim
    if needed and length is None:
        raise InvalidType(f"{name} needs features=bt.Features(...), or the length of the contexts, for example dim=5")
    return length


def _cluster_clock(clock: str = "cluster") -> UCB:
    return UCB(clock={"cluster": "parent", "global": "global"}[choice("clock", clock, ("cluster", "global"))])


THOMPSON = About("", "Thompson", belief=_uniform, of_belief=("prior",), rule=Thompson)
BOUND = About("", "UCB", belief=_counts, rule=UCB)
# Defaults of the linear policies
LINEAR: dict[str, Any] = {"family": "linear Thompson", "belief": _linear, "of_belief": ("dim", "v", "prior")}
LINEAR_BOUND: dict[str, Any] = {"family": "linear UCB", "belief": _linear, "of_belief": ("dim", "prior")}
LINEAR_BOUND |= {"rule": partial(UCB, c=2.0), "of_rule": ("c",)}


class TS(Algorithm):
    """Thompson sampling on all arms, ignoring clusters (Thompson 1933).

    For each arm draw theta_a ~ Beta(S(a), F(a)); play argmax theta_a; add the reward r to S and 1 - r to F of the arm.
    """

    about = replace(
        THOMPSON,
        summary="Thompson sampling on all arms at once, ignoring the categories",
        levels=0,
        color="blue",
        marker="o",
        papers=("thompson1933",),
    )


class TSC(Algorithm):
    """Thompson sampling with clustered arms, the paper's Algorithm 1.

    For each cluster draw theta_C ~ Beta(S(C), F(C)) and take the best cluster; for each of its arms draw
    theta_a ~ Beta(S(a), F(a)) and play the best; add the reward r to S, and 1 - r to F, of the arm and of its cluster.
    """

    about = replace(
        THOMPSON,
        summary="Thompson sampling over the top categories, then over the arms of the best one",
        levels=1,
        color="vermillion",
        marker="s",
        papers=("carlsson2021",),
    )


class HTS(Algorithm):
    """Hierarchical Thompson sampling, the paper's Algorithm 2: TSC's step at every level, or at the top ``depth``."""

    about = replace(
        THOMPSON,
        summary="Thompson sampling at each of the top {depth} levels of the tree, then over arms",
        takes_depth=True,
        color="green",
        marker="^",
        papers=("carlsson2021",),
    )


class ATS(Algorithm):
    """Adaptive Thompson sampling: learns how far to trust the tree, so that there is no depth to choose.

    The rewards of an arm count for its siblings as far as they are similar, level by level, and how similar they are
    is learned. The arm with the highest draw of all is played (docs/adaptive.md). ``prior`` is what is believed about
    the mean of all arms: a `Beta`, or a `Gaussian` for rewards outside [0, 1]. In a mapping, the priors of arms and
    clusters are rewards that are known already.

    >>> import banditree as bt
    >>> policy = bt.ATS(bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]}), rng=7)
    >>> policy.update(policy.choose(), reward=1)
    """

    about = replace(
        THOMPSON,
        summary="Thompson sampling on all arms at once, which learns how far to trust the categories",
        family="adaptive",
        belief=_adaptive,
        adapts=True,
        cost=50,
        color="indigo",
        marker="*",
    )

    law = LAW


class HierTS(Algorithm):
    """Hierarchical Bayesian Thompson sampling for normal rewards (Hong et al. 2022): the belief of ATS, drawn plainly.

    Arms lie around their cluster and clusters around their parent, with standard deviations that are told, as is that
    of rewards; without any of the three they are learned, from a grid by their marginal likelihood. Draws of arms are
    independent, and no arm is taken for a stray. ``cluster_sd`` may be a sequence, the top level first.

    >>> import banditree as bt
    >>> tree = bt.Tree({"shoes": ["s1", "s2"], "hats": ["h1", "h2", "h3"]})
    >>> policy = bt.HierTS(tree, arm_sd=0.3, cluster_sd=1.0, noise=1.0, rng=7)
    >>> policy.update(policy.choose(), reward=1.7)
    """

    about = replace(
        ATS.about,
        summary="hierarchical Bayes for normal rewards: Thompson sampling over all arms, with known or learned spreads",
        family="hierarchical",
        belief=_hierarchical,
        of_belief=("arm_sd", "cluster_sd", "noise"),
        color="teal",
        marker="s",
        papers=("hong2022",),
    )


class LinATS(Algorithm):
    """Adaptive Thompson sampling with contexts: one model across arms, which learns how far to trust the tree.

    Arms, clusters and root have a level and slopes; how similar siblings are is learned per level of the tree, for
    levels and for slopes, together with the noise (docs/adaptive.md). Features are standardised, so that there is
    nothing to scale, and no constant to add. ``prior`` is what is known already: a `Linear` for the root, or a
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
        summary="Thompson sampling with contexts over arms that share what they learn, as far as they are similar",
        family="linear adaptive",
        belief=_adaptive_linear,
        of_belief=("dim", "prior"),
        cost=60,
        color="wine",
        marker="8",
    )
    law = LAW


class UCB1(Algorithm):
    """UCB1 on all arms (Auer, Cesa-Bianchi and Fischer 2002): mean + sqrt(2 ln n / n_a)."""

    about = replace(
        BOUND,
        summary="an upper confidence bound for every arm, ignoring the categories",
        levels=0,
        color="sky",
        marker="v",
        papers=("auer2002",),
    )


class UCBC(Algorithm):
    """Two-level UCB (Pandey 2007, Bouneffouf 2019): UCB1 over clusters, then over the arms of the best.

    ``clock`` is the n in the bound of an arm: the plays of its ``"cluster"``, or all plays (``"global"``).
    """

    about = replace(
        BOUND,
        summary="upper confidence bounds over the top categories, then over the arms of the best one",
        rule=_cluster_clock,
        of_rule=("clock",),
        levels=1,
        color="orange",
        marker="D",
        papers=("pandey2007", "bouneffouf2019"),
    )


class UCT(Algorithm):
    """UCB1's index at every node of the tree, with n the plays of the parent (Kocsis and Szepesvari 2006)."""

    about = replace(
        BOUND,
        summary="an upper confidence bound at every node down the tree",
        takes_depth=True,
        color="purple",
        marker="P",
        papers=("kocsis2006",),
    )


class TSMax(Algorithm):
    """Two-level Thompson sampling in which a cluster draws from the belief of its best arm (Zhao 2019).

    ``best="empirical"``: the best empirical mean among arms tried; ``"posterior"``: the best posterior mean.
    """

    about = replace(
        THOMPSON,
        summary="Thompson sampling over the top categories, each represented by its best arm",
        family="TSMax",
        rule=BestArm,
        of_rule=("best",),
        levels=1,
        color="black",
        marker="X",
        papers=("zhao2019",),
    )


class LinTS(Algorithm):
    """Thompson sampling with contexts on all arms (Agrawal and Goyal 2013): theta_a ~ N(mu_a.x, v x' B_a^-1 x)."""

    about = replace(TS.about, **LINEAR, marker="h", papers=("agrawal2013",))


class LinTSC(Algorithm):
    """Thompson sampling with contexts and clustered arms, the paper's Algorithm 3: LinTS over clusters, then inside.

    B starts at the identity and f at zero, for each cluster and each arm; x x' adds to B and r x to f.
    """

    about = replace(TSC.about, **LINEAR, marker="p")


class LinHTS(Algorithm):
    """LinTSC's step at every level of a deeper tree, or at the top ``depth``."""

    about = replace(HTS.about, **LINEAR, marker="<")


class LinUCB(Algorithm):
    """UCB with contexts on all arms (Li et al. 2010): mu_a.x + c sqrt(x' B_a^-1 x)."""

    about = replace(UCB1.about, **LINEAR_BOUND, marker=">", papers=("li2010",))


class LinUCBC(Algorithm):
    """LinUCB over clusters, then over the arms of the best (Bouneffouf 2019)."""

    about = replace(UCBC.about, **LINEAR_BOUND, marker="d", papers=("bouneffouf2019",))


class LinUCT(Algorithm):
    """LinUCBC's step at every level of a deeper tree, or at the top ``depth``."""

    about = replace(UCT.about, **LINEAR_BOUND, marker="*", papers=("li2010", "kocsis2006"))


ALGORITHMS: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (
        ATS,
        TS,
        TSC,
        HTS,
        HierTS,
        UCB1,
        UCBC,
        UCT,
        TSMax,
        LinATS,
        LinTS,
        LinTSC,
        LinHTS,
        LinUCB,
        LinUCBC,
        LinUCT,
    )
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
