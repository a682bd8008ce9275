"""The policies that a catalogue is tried with: flat, and down the tree at every depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from banditree.errors import InvalidType, InvalidValue
from banditree.policy import Policy
from banditree.policy.algorithms import ALGORITHMS, HTS, TS, TSC, UCT
from banditree.tree import Tree

DEPTHS = 8  # of a deeper tree, this many depths are tried
WITH_DEPTH = ("HTS", "UCT")
NAMES = tuple(name for name in ALGORITHMS if not name.startswith("Lin"))  # the others need contexts
WITHOUT_TREE = ("TS", "UCB1")
Named = str | type[Policy] | Iterable[str | type[Policy]]  # "TSC", bt.TSC, or several
SPELLED = re.compile(r"(\w+?)(?:[:(](?:depth=)?(\d+)\)?)?")


@dataclass(frozen=True)
class Candidate:
    """A policy by its class, and by its depth where it has a choice."""

    policy: str
    depth: int | None = None

    @property
    def name(self) -> str:
        return self.policy if self.depth is None else f"{self.policy}(depth={self.depth})"

    @property
    def code(self) -> str:
        """How to build it."""
        return f"bt.{self.policy}(tree)" if self.depth is None else f"bt.{self.policy}(tree, depth={self.depth})"

    @property
    def uses_tree(self) -> bool:
        """Whether categories have a part in it: they have none at depth 0."""
        return self.policy not in WITHOUT_TREE and self.depth != 0

    @property
    def factory(self) -> Callable[..., Any]:
        kind = ALGORITHMS[self.policy]
        return kind if self.depth is None else partial(kind, depth=self.depth)


FLAT = Candidate(TS.__name__)


def for_tree(tree: Tree) -> list[Candidate]:
    """Flat Thompson sampling, Thompson sampling down the tree at every depth, and UCT.

    >>> [candidate.name for candidate in for_tree(Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
    ['TS', 'TSC', 'HTS(depth=2)', 'UCT']
    """
    found = [FLAT]
    if tree.depth > 0:
        found.append(Candidate(TSC.__name__))
    found += [Candidate(HTS.__name__, depth) for depth in depths(tree.depth)]
    return [*found, Candidate(UCT.__name__)]


def depths(deepest: int) -> list[int]:
    """From 2 on, all or evenly chosen, the deepest being one of them."""
    if deepest <= DEPTHS:
        return list(range(2, deepest + 1))
    return sorted({round(2 + (deepest - 2) * i / (DEPTHS - 2)) for i in range(DEPTHS - 1)})


def named(names: Named, tree: Tree) -> list[Candidate]:
    """Candidates as a user spells them: "TS", "HTS" (the whole tree), "HTS:2", "HTS(depth=2)" or the class HTS.

    >>> [candidate.name for candidate in named(["ts", HTS, "HTS:1"], Tree({"a": {"b": [1, 2], "c": [3, 4]}}))]
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
            raise InvalidValue(f"policy {text!r}: {kind} has no depth to choose; {' and '.join(WITH_DEPTH)} have")
        if depth is not None and depth > tree.depth:
            raise InvalidValue(f"policy {text!r}: this tree has depth {tree.depth}")
        if kind == HTS.__name__ and depth is None:
            depth = tree.depth
        candidate = Candidate(kind, depth)
        if candidate not in found:
            found.append(candidate)
    if not found:
        raise InvalidValue("no policy; give at least one")
    return found
