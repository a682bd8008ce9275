"""Choose the policies to try on a catalogue: flat ones, those that use the tree at each depth, and ATS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from banditree.beliefs import Gaussian
from banditree.catalogue.inspection import clusters_at
from banditree.errors import InvalidValue
from banditree.policy import Policy
from banditree.policy.algorithms import ATS, HTS, TS, TSC, UCT, WITHOUT_CONTEXTS, PolicyChoice, parse_policy
from banditree.policy.engines import engine
from banditree.policy.policy import About
from banditree.rules import UCB
from banditree.tree import Tree

MAX_DEPTHS = 8  # depths that are tried
TSC_SECONDS = {"native": (1e-7, 5e-10), "readable": (5e-5, 0.0)}  # of a decision of TSC, and more per arm


LEARNS = "learns how far to trust the categories"
LEARNS_ALIKE = "learns how alike they are"  # where the categories do not matter
PolicyNames = str | type[Policy] | Iterable[str | type[Policy]]  # "TSC", bt.TSC, or several


class Candidate(PolicyChoice):
    """A policy to try on a catalogue: its class, and the parameters to build it with."""

    __slots__ = ()

    @property
    def policy(self) -> str:
        """The name of its class."""
        return self.kind.__name__

    @property
    def depth(self) -> int | None:
        """The depth that it was given; None where it has no such parameter."""
        return self.parameters.get("depth")

    @property
    def code(self) -> str:
        """The Python code that builds it."""
        return f"bt.{self.policy}({', '.join(['tree', *(f'{k}={v!r}' for k, v in self.parameters.items())])})"

    def code_with(self, prior: Gaussian | None) -> str:
        """Return the Python code that builds it with a prior, if there is one: see `factory_with`."""
        if prior is None:
            return self.code
        belief = f"bt.Gaussian(sd={prior.sd:.4g}, mean={prior.mean:.4g}, prior_sd={prior.prior_sd:.4g})"
        if not self.about.takes_prior:
            deep = "" if self.levels is None else f", depth={self.levels}"
            return f"bt.Policy(tree, belief={belief}, rule=bt.UCB(){deep})"
        return f"{self.code[:-1]}, prior={belief})"

    @property
    def about(self) -> About:
        """What its class is."""
        return self.kind.about

    @property
    def how(self) -> str:
        """What it does, in words."""
        return self.about.summary.format(**self.parameters)

    def factory_with(self, prior: Gaussian | None) -> Callable[..., Policy]:
        """Return a factory that uses the prior, if there is one.

        UCB policies take no prior; with normal beliefs their bound is mean + sd sqrt(2 ln n / n_i).
        """
        if prior is None:
            return self.factory
        if not self.about.takes_prior:
            return partial(Policy, belief=prior, rule=UCB(), depth=self.levels)
        return partial(self.factory, prior=prior)

    @property
    def adapts(self) -> bool:
        """Whether it learns how far to trust the categories; the others trust those that they use."""
        return self.about.adapts

    @property
    def levels(self) -> int | None:
        """How many levels of clusters it uses; None for all."""
        return self.depth if self.about.levels is None else self.about.levels

    def clusters(self, tree: Tree) -> frozenset[bytes]:
        """Find the clusters of this tree that affect its decisions, each as the indices of its arms.

        A cluster of one arm, a cluster of all arms, and the only cluster inside another affect no decision. If none is
        left, this is a flat policy.
        """
        walked = tree if self.levels is None else tree.cut(min(self.levels, tree.depth))
        level_of = walked.shape.level_of()
        clusters = set()
        for level, cluster in enumerate(clusters_at(walked)):
            order = np.argsort(cluster, kind="stable")  # (arms,) cluster by cluster
            nodes, first = np.unique(cluster[order], return_index=True)
            for node, arms in zip(nodes.tolist(), np.split(order, first[1:]), strict=True):
                if level_of[node] == level and 1 < len(arms) < tree.n_arms:
                    clusters.add(arms.tobytes())
        return frozenset(clusters)


FLAT = Candidate(TS, {})


def for_tree(tree: Tree) -> list[Candidate]:
    """List the default candidates, the simpler ones first: TS, TSC, HTS at each depth, UCT and ATS.

    >>> [candidate.label for candidate in for_tree(Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'TSC', 'HTS(depth=2)', 'UCT', 'ATS']
    """
    if tree.depth == 0:
        return [FLAT, Candidate(UCT, {})]
    deeper = [Candidate(HTS, {"depth": depth}) for depth in depths(tree.depth)]
    return [FLAT, Candidate(TSC, {}), *deeper, Candidate(UCT, {}), Candidate(ATS, {})]


def decision_seconds(candidates: Iterable[Candidate], n_arms: int) -> float:
    """Return how long one simulated decision of all candidates takes, about, on one core of an ordinary machine.

    A rule of thumb and not a measurement, so that the number of worlds that follows from it is the same everywhere.
    """
    fixed, per_arm = TSC_SECONDS[engine()]
    return sum(candidate.about.cost for candidate in candidates) * (fixed + per_arm * n_arms)


def depths(deepest: int) -> list[int]:
    """List the depths from 2 to the deepest: all of them, or an even selection."""
    if deepest <= MAX_DEPTHS:
        return list(range(2, deepest + 1))
    return sorted({round(2 + (deepest - 2) * i / (MAX_DEPTHS - 2)) for i in range(MAX_DEPTHS - 1)})


def distinct(candidates: Sequence[Candidate], tree: Tree) -> tuple[list[Candidate], dict[str, str]]:
    """Split into candidates that differ on this tree, and {label of a duplicate: label of the equal candidate before}.

    >>> kept, same = distinct(for_tree(Tree({"all": [1, 2, 3]})), Tree({"all": [1, 2, 3]}))
    >>> [candidate.label for candidate in kept], same
    (['TS', 'UCT', 'ATS'], {'TSC': 'TS'})
    """
    kept: list[Candidate] = []
    same: dict[str, str] = {}
    first: dict[tuple[str, frozenset[bytes]], str] = {}
    for candidate in candidates:
        key = candidate.about.family, candidate.clusters(tree)
        if key in first:
            same[candidate.label] = first[key]
        else:
            first[key] = candidate.label
            kept.append(candidate)
    return kept, same


def parse_candidates(names: PolicyNames, tree: Tree) -> list[Candidate]:
    """Parse candidates as users write them: "TS", "HTS" (the whole tree), "HTS:2", "HTS(depth=2)" or the class HTS.

    >>> tree = Tree({"a": {"b": [1, 2], "c": [3, 4]}})
    >>> [candidate.label for candidate in parse_candidates(["ts", HTS, "HTS:1"], tree)]
    ['TS', 'HTS(depth=2)', 'HTS(depth=1)']
    """
    listed: list[Candidate] = []
    for given in names if isinstance(names, Iterable) and not isinstance(names, str) else [names]:
        kind, parameters = parse_policy(given, tree=tree, among=WITHOUT_CONTEXTS)
        if kind is HTS and not parameters:
            parameters = {"depth": tree.depth}
        candidate = Candidate(kind, parameters)
        if candidate not in listed:
            listed.append(candidate)
    if not listed:
        raise InvalidValue("policies is empty; give at least one")
    return listed
