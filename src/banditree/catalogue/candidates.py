"""Choose the policies to try on a catalogue: flat ones, those that use the tree at each depth, and ATS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from banditree.beliefs import Gaussian
from banditree.catalogue.variance_shares import clusters_at
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import Policy
from banditree.policy.algorithms import ALGORITHMS, ATS, HTS, TS, TSC, UCT
from banditree.rules import UCB
from banditree.tree import Tree

DEPTHS = 8  # at most this many depths are tried


@dataclass(frozen=True)
class Kind:
    """What the advice needs to know about a policy class."""

    how: str  # what it does, in words; {depth} stands for the depth it was given
    levels: int | None  # levels of clusters that it uses; None: as many as its depth says, or all
    family: str  # policies of one family that walk through the same clusters are the same policy
    has_depth: bool = False  # whether its depth can be chosen
    cost: int = 1  # time of a simulated decision, about, in those of TSC


LEARNS = "learns how far to trust the categories"
LEARNS_ALIKE = "learns how alike they are"  # where the categories do not matter
KINDS = {
    "TS": Kind("Thompson sampling on all arms at once, ignoring the categories", 0, "Thompson"),
    "TSC": Kind("Thompson sampling over the top categories, then over the arms of the best one", 1, "Thompson"),
    "HTS": Kind(
        "Thompson sampling at each of the top {depth} levels of the tree, then over arms",
        None,
        "Thompson",
        has_depth=True,
    ),
    "UCB1": Kind("an upper confidence bound for every arm, ignoring the categories", 0, "UCB"),
    "UCBC": Kind("upper confidence bounds over the top categories, then over the arms of the best one", 1, "UCB"),
    "UCT": Kind("an upper confidence bound at every node down the tree", None, "UCB", has_depth=True),
    "TSMax": Kind("Thompson sampling over the top categories, each represented by its best arm", 1, "TSMax"),
    "ATS": Kind(f"Thompson sampling on all arms at once, which {LEARNS}", None, "adaptive", cost=6),
}
NAMES = tuple(KINDS)  # the others need contexts
WITH_DEPTH = tuple(name for name, kind in KINDS.items() if kind.has_depth)
PolicyNames = str | type[Policy] | Iterable[str | type[Policy]]  # "TSC", bt.TSC, or several
SPELLED = re.compile(r"(\w+?)(?:[:(](?:depth=)?(\d+)\)?)?")


@dataclass(frozen=True)
class Candidate:
    """A policy to try: its class, its label, and the parameters to build it with."""

    policy: str
    label: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, policy: str, **parameters: Any) -> Candidate:
        """Make a candidate labelled with its parameters.

        >>> Candidate.of("HTS", depth=2).label
        'HTS(depth=2)'
        """
        given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        return cls(policy, f"{policy}({given})" if given else policy, parameters)

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
        if KINDS[self.policy].family == "UCB":
            deep = "" if self.levels is None else f", depth={self.levels}"
            return f"bt.Policy(tree, belief={belief}, rule=bt.UCB(){deep})"
        return f"{self.code[:-1]}, prior={belief})"

    @property
    def how(self) -> str:
        """What it does, in words."""
        return KINDS[self.policy].how.format(**self.parameters)

    @property
    def factory(self) -> Callable[..., Any]:
        """Builds it, called as ``factory(tree, rng=rng)``."""
        kind = ALGORITHMS[self.policy]
        return partial(kind, **self.parameters) if self.parameters else kind

    def factory_with(self, prior: Gaussian | None) -> Callable[..., Any]:
        """Return a factory that uses the prior, if there is one.

        UCB policies take no prior; with normal beliefs their bound is mean + sd sqrt(2 ln n / n_i).
        """
        if prior is None:
            return self.factory
        if KINDS[self.policy].family == "UCB":
            return partial(Policy, belief=prior, rule=UCB(), depth=self.levels)
        return partial(self.factory, prior=prior)

    @property
    def adapts(self) -> bool:
        """Whether it learns how far to trust the categories; the others trust those that they use."""
        return KINDS[self.policy].family == "adaptive"

    @property
    def levels(self) -> int | None:
        """How many levels of clusters it uses; None for all."""
        fixed = KINDS[self.policy].levels
        return self.depth if fixed is None else fixed

    def clusters(self, tree: Tree) -> frozenset[bytes]:
        """Find the clusters of this tree that affect its decisions, each as the indices of its arms.

        A cluster of one arm, a cluster of all arms, and the only cluster inside another affect no decision. If none is
        left, this is a flat policy.
        """
        walked = tree if self.levels is None else tree.cut(min(self.levels, tree.depth))
        level_of = walked.shape.level_of()
        found = set()
        for level, cluster in enumerate(clusters_at(walked)):
            order = np.argsort(cluster, kind="stable")  # (arms,) cluster by cluster
            nodes, first = np.unique(cluster[order], return_index=True)
            for node, arms in zip(nodes.tolist(), np.split(order, first[1:]), strict=True):
                if level_of[node] == level and 1 < len(arms) < tree.n_arms:
                    found.add(arms.tobytes())
        return frozenset(found)


FLAT = Candidate.of(TS.__name__)


def for_tree(tree: Tree) -> list[Candidate]:
    """List the default candidates, the simpler ones first: TS, TSC, HTS at each depth, UCT and ATS.

    >>> [candidate.label for candidate in for_tree(Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'TSC', 'HTS(depth=2)', 'UCT', 'ATS']
    """
    if tree.depth == 0:
        return [FLAT, Candidate.of(UCT.__name__)]
    deeper = [Candidate.of(HTS.__name__, depth=depth) for depth in depths(tree.depth)]
    return [FLAT, Candidate.of(TSC.__name__), *deeper, Candidate.of(UCT.__name__), Candidate.of(ATS.__name__)]


def cost(candidates: Iterable[Candidate]) -> int:
    """Return how long one simulated decision of all candidates takes, about, in decisions of TSC."""
    return sum(KINDS[candidate.policy].cost for candidate in candidates)


def depths(deepest: int) -> list[int]:
    """List the depths from 2 to the deepest: all of them, or an even selection."""
    if deepest <= DEPTHS:
        return list(range(2, deepest + 1))
    return sorted({round(2 + (deepest - 2) * i / (DEPTHS - 2)) for i in range(DEPTHS - 1)})


def distinct(candidates: Sequence[Candidate], tree: Tree) -> tuple[list[Candidate], dict[str, str]]:
    """Split into candidates that differ on this tree, and {label of a duplicate: label of the equal candidate before}.

    >>> found, same = distinct(for_tree(Tree({"all": [1, 2, 3]})), Tree({"all": [1, 2, 3]}))
    >>> [candidate.label for candidate in found], same
    (['TS', 'UCT', 'ATS'], {'TSC': 'TS'})
    """
    found: list[Candidate] = []
    same: dict[str, str] = {}
    first: dict[tuple[str, frozenset[bytes]], str] = {}
    for candidate in candidates:
        key = KINDS[candidate.policy].family, candidate.clusters(tree)
        if key in first:
            same[candidate.label] = first[key]
        else:
            first[key] = candidate.label
            found.append(candidate)
    return found, same


def named(names: PolicyNames, tree: Tree) -> list[Candidate]:
    """Parse candidates as users write them: "TS", "HTS" (the whole tree), "HTS:2", "HTS(depth=2)" or the class HTS.

    >>> [candidate.label for candidate in named(["ts", HTS, "HTS:1"], Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'HTS(depth=2)', 'HTS(depth=1)']
    """
    found: list[Candidate] = []
    for given in names if isinstance(names, Iterable) and not isinstance(names, str) else [names]:
        text = next((name for name in NAMES if ALGORITHMS[name] is given), given)
        if not isinstance(text, str):
            raise InvalidType(f"policy {given!r} must be a name such as 'TSC' or 'HTS:2', or one of {', '.join(NAMES)}")
        match = SPELLED.fullmatch(text.strip())
        kind = {name.lower(): name for name in NAMES}.get(match[1].lower()) if match else None
        if match is None or kind is None:
            raise InvalidValue(f"policy {text!r} must be one of {', '.join(NAMES)}; with a depth as in 'HTS:2'")
        depth = None if match[2] is None else int(match[2])
        if depth is not None and kind not in WITH_DEPTH:
            raise InvalidValue(f"policy {text!r}: {kind} has no depth to choose; only {' and '.join(WITH_DEPTH)} do")
        if depth is not None and depth > tree.depth:
            deepest = f"this tree has depth {tree.depth}; give at most that"
            flat = "these arms have no categories; name the columns of their path, or choose TS"
            raise InvalidValue(f"policy {text!r}: {deepest if tree.depth else flat}")
        if kind == HTS.__name__ and depth is None:
            depth = tree.depth
        candidate = Candidate.of(kind) if depth is None else Candidate.of(kind, depth=depth)
        if candidate not in found:
            found.append(candidate)
    if not found:
        raise InvalidValue("policies is empty; give at least one")
    return found
