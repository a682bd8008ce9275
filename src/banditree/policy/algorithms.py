"""The paper's algorithms and their rivals. Each names how much of the tree is walked, a belief and a rule."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from banditree.beliefs import BELIEFS, Beta, Counts, Linear
from banditree.beliefs.priors import Prior
from banditree.errors import BadFile, InvalidType
from banditree.errors.checks import choice, whole
from banditree.policy.policy import Policy
from banditree.rules import RULES, UCB, BestArm, Rule, Thompson
from banditree.tree.tree import Tree

UNIFORM = Beta(1, 1)  # S_0 = F_0 = 1: nothing is known beforehand


class TS(Policy):
    """Thompson sampling on all arms, the clusters ignored (Thompson 1933).

    For each arm draw theta_a ~ Beta(S(a), F(a)); play argmax theta_a; add the reward r to S and 1 - r to F of the arm.
    """

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, rng: Any = None) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=0, rng=rng)


class TSC(Policy):
    """Thompson sampling with clustered arms, the paper's Algorithm 1.

    For each cluster draw theta_C ~ Beta(S(C), F(C)) and take the best cluster; for each of its arms draw
    theta_a ~ Beta(S(a), F(a)) and play the best; add the reward r to S, and 1 - r to F, of the arm and of its cluster.
    """

    def __init__(self, tree: Tree, *, prior: Prior = UNIFORM, rng: Any = None) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=1, rng=rng)


class HTS(Policy):
    """Hierarchical Thompson sampling, the paper's Algorithm 2: TSC's step at every level of the tree, or of its top."""

    def __init__(self, tree: Tree, *, depth: int | None = None, prior: Prior = UNIFORM, rng: Any = None) -> None:
        super().__init__(tree, belief=prior, rule=Thompson(), depth=depth, rng=rng)


class UCB1(Policy):
    """UCB1 on all arms (Auer, Cesa-Bianchi and Fischer 2002): mean + sqrt(2 ln n / n_a)."""

    def __init__(self, tree: Tree, *, rng: Any = None) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=0, rng=rng)


class UCBC(Policy):
    """Two-level UCB (Pandey 2007, Bouneffouf 2019): UCB1 over clusters, then over the arms of the best.

    ``clock="cluster"`` counts the cluster's own plays inside it, ``"global"`` all plays.
    """

    def __init__(self, tree: Tree, *, clock: str = "cluster", rng: Any = None) -> None:
        clocks = {"cluster": "parent", "global": "global"}
        rule = UCB(clock=clocks[choice("clock", clock, tuple(clocks))])
        super().__init__(tree, belief=Counts(), rule=rule, depth=1, rng=rng)


class UCT(Policy):
    """UCB1's index at every node of the tree, with the parent's plays as the clock (Kocsis and Szepesvari 2006)."""

    def __init__(self, tree: Tree, *, depth: int | None = None, rng: Any = None) -> None:
        super().__init__(tree, belief=Counts(), rule=UCB(), depth=depth, rng=rng)


class TSMax(Policy):
    """Two-level Thompson sampling in which a cluster stands for its best arm (Zhao 2019).

    ``best="empirical"``: the best empirical mean among arms tried; ``"posterior"``: the best posterior mean of all.
    """

    def __init__(self, tree: Tree, *, best: str = "empirical", prior: Prior = UNIFORM, rng: Any = None) -> None:
        super().__init__(tree, belief=prior, rule=BestArm(best=best), depth=1, rng=rng)


class LinTS(Policy):
    """Thompson sampling with contexts on all arms (Agrawal and Goyal 2013): theta_a ~ N(mu_a.x, v x' B_a^-1 x)."""

    def __init__(self, tree: Tree, *, dim: int | None = None, v: float = 1.0, rng: Any = None) -> None:
        super().__init__(tree, belief=_linear(self, dim, v), rule=Thompson(), depth=0, rng=rng)


class LinTSC(Policy):
    """Thompson sampling with contexts and clustered arms, the paper's Algorithm 3: LinTS over clusters, then inside.

    B starts at the identity and f at zero, for each cluster and each arm; x x' adds to B and r x to f.
    """

    def __init__(self, tree: Tree, *, dim: int | None = None, v: float = 1.0, rng: Any = None) -> None:
        super().__init__(tree, belief=_linear(self, dim, v), rule=Thompson(), depth=1, rng=rng)


class LinHTS(Policy):
    """LinTSC's step at every level of a deeper tree."""

    def __init__(
        self, tree: Tree, *, dim: int | None = None, v: float = 1.0, depth: int | None = None, rng: Any = None
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim, v), rule=Thompson(), depth=depth, rng=rng)


class LinUCB(Policy):
    """UCB with contexts on all arms (Li et al. 2010): mu_a.x + c sqrt(x' B_a^-1 x)."""

    def __init__(self, tree: Tree, *, dim: int | None = None, c: float = 2.0, rng: Any = None) -> None:
        super().__init__(tree, belief=_linear(self, dim), rule=UCB(c=c), depth=0, rng=rng)


class LinUCBC(Policy):
    """LinUCB over clusters, then over the arms of the best (Bouneffouf 2019)."""

    def __init__(self, tree: Tree, *, dim: int | None = None, c: float = 2.0, rng: Any = None) -> None:
        super().__init__(tree, belief=_linear(self, dim), rule=UCB(c=c), depth=1, rng=rng)


class LinUCT(Policy):
    """LinUCBC's step at every level of a deeper tree."""

    def __init__(
        self, tree: Tree, *, dim: int | None = None, c: float = 2.0, depth: int | None = None, rng: Any = None
    ) -> None:
        super().__init__(tree, belief=_linear(self, dim), rule=UCB(c=c), depth=depth, rng=rng)


def _linear(policy: Policy, dim: int | None, v: float = 1.0) -> Linear:
    if dim is None:
        raise InvalidType(f"{type(policy).__name__} needs the length of the contexts, for example dim=5")
    return Linear(dim, v=v)


ALGORITHMS: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (TS, TSC, HTS, UCB1, UCBC, UCT, TSMax, LinTS, LinTSC, LinHTS, LinUCB, LinUCBC, LinUCT)
}


def load(
    path: str | os.PathLike[str], *, rng: Any = None, belief: Prior | None = None, rule: Rule | None = None
) -> Policy:
    """The policy that `Policy.save` wrote, with a fresh random stream.

    A policy with a belief or rule of your own needs it again: pass ``belief=`` or ``rule=``.
    """
    from banditree.output import files as store  # as in Policy.save

    header, arrays = store.read(path, "policy")
    kind = ALGORITHMS.get(header.get("policy", ""), Policy)
    policy = kind.__new__(kind)
    with _whole(path):
        tree = Tree.from_arrays(arrays.pop("parent"), arrays.pop("content"), header["arms"], header["clusters"])
        _check_kind(belief, header["belief"]["kind"], BELIEFS, "belief")
        _check_kind(rule, header["rule"]["kind"], RULES, "rule")
        prior = belief if belief is not None else _saved_prior(header)
        rule = rule if rule is not None else _rebuilt(header["rule"], RULES, "rule")
        depth = header["depth"]
        depth = None if depth is None else whole("depth", depth, 0)
    # Priors of a file may be for arms and clusters that have left the tree since; what the user passes must fit it.
    policy._start(tree, prior, rule, depth, rng, strict=belief is not None)
    with _whole(path):
        policy.restore({name.removeprefix("rows."): array for name, array in arrays.items()})
    return policy


@contextmanager
def _whole(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is missing or odd in a file that is intact was never written by `save`."""
    try:
        yield
    except InvalidType:
        raise  # a part of the user's own, to be passed again
    except (KeyError, IndexError, AttributeError, ValueError) as error:
        raise BadFile(f"{path} does not hold a whole policy: {error}") from error


def _check_kind(given: Any, saved: str, kinds: Mapping[str, type], what: str) -> None:
    """A file of built-in parts goes on with parts of the same kind."""
    parts = given.values() if isinstance(given, Mapping) else () if given is None else (given,)
    for part in parts:
        if saved in kinds and not isinstance(part, kinds[saved]):
            raise InvalidType(f"{what}={part!r}: the file was saved with a {saved}; give one of those, or leave it out")


def _saved_prior(header: Mapping[str, Any]) -> Prior:
    own = {_key(key): _rebuilt(described, BELIEFS, "belief") for key, described in header["own"]}
    return {None: _rebuilt(header["belief"], BELIEFS, "belief"), **own}


def _rebuilt(described: dict[str, Any], kinds: dict[str, Any], what: str) -> Any:
    parameters = dict(described)
    kind = parameters.pop("kind")
    if kind not in kinds:
        raise InvalidType(f"this policy was built with a {what} of its user's own, {kind}; pass it as {what}=")
    return kinds[kind](**parameters)


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
