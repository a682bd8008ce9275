"""What a policy must know after a sequence of calls, kept in dicts and fractions, arm by arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import banditree as bt

Path = tuple[Any, ...]
Sums = NDArray[Any]  # (5 + dim^2 + dim,) fractions


class Oracle:
    """The path of every arm, and the sums of what was learned of it."""

    def __init__(self, paths: Iterable[Path], dim: int | None, depth: int | None) -> None:
        self.dim, self.depth = dim or 0, depth
        self.paths: dict[Any, Path] = {}
        self.sums: dict[Any, Sums] = {}
        self.retree(paths)

    def learn(self, arm: Any, reward: Any, context: Any) -> None:
        r = Fraction(float(reward))
        x = [Fraction(float(number)) for number in (context if self.dim else ())]
        # count, successes, failures, then the size of each kind of sum, by which rounding is measured
        row = [Fraction(1), r, 1 - r, abs(r), sum((abs(number) for number in x), Fraction(0)) ** 2]
        row += [a * b for a in x for b in x] + [r * a for a in x]
        self.sums[arm] = self.sums[arm] + np.array(row, object)

    def retree(self, paths: Iterable[Path]) -> None:
        """Arms that stay keep what was learned of them."""
        nothing = np.array([Fraction(0)] * (5 + self.dim**2 + self.dim), object)
        self.paths = {path[-1]: path for path in paths}
        self.sums = {arm: self.sums.get(arm, nothing) for arm in self.paths}

    def nodes(self) -> dict[Path, Sums]:
        """The sums of every node that is walked: of an arm its own, of a cluster those of its arms."""
        found: dict[Path, Sums] = {}
        for arm, path in self.paths.items():
            clusters = path[:-1] if self.depth is None else path[:-1][: self.depth]
            for node in (*(clusters[:level] for level in range(len(clusters) + 1)), (*clusters, arm)):
                found[node] = found[node] + self.sums[arm] if node in found else self.sums[arm]
        return found

    def evidence(self, name: str, sums: Sums) -> tuple[NDArray[np.float64], float]:
        """What one of the policy's arrays of evidence holds for a node, and the size of what was added up."""
        end = 5 + self.dim**2
        if name == "gram":
            return np.asarray(sums[5:end], np.float64).reshape(self.dim, self.dim), float(sums[4])
        if name == "moment":
            return np.asarray(sums[end:], np.float64), float(sums[3] * (1 + sums[4]))
        place = {"count": 0, "total": 1, "successes": 1, "failures": 2}[name]
        return np.asarray(sums[place], np.float64), float(sums[0] + sums[3])

    def mean(self, belief: Any, sums: Sums, context: Any) -> float:
        """The expected reward by the textbook."""
        count, total = float(sums[0]), float(sums[1])
        if isinstance(belief, bt.Beta):
            return (belief.a + total) / (belief.a + belief.b + count)
        if isinstance(belief, bt.Gaussian):
            plays = belief.prior_plays
            return (plays * belief.mean + total) / (plays + count)
        if context is None:
            return total / max(count, 1.0)
        gram, moment = self.evidence("gram", sums)[0], self.evidence("moment", sums)[0]
        b = belief.precision * np.eye(self.dim) + gram
        return float(np.linalg.solve(b, belief.precision * np.array(belief.mean) + moment) @ np.asarray(context, float))


def differences(policy: Any, oracle: Oracle, *, exact: bool) -> list[str]:
    """Where the policy's tree or evidence is not the oracle's, in words. ``exact``: to the last bit."""
    ours: Mapping[Any, Path] = dict(zip(policy.tree.arms, policy.tree.paths(), strict=True))
    if ours != oracle.paths:
        return [f"its tree has {sorted(ours.values(), key=repr)}, not {sorted(oracle.paths.values(), key=repr)}"]
    rows, paths, nodes = policy._state.rows, policy._state.walked_tree.nodes.paths(), oracle.nodes()
    found = [] if set(paths) == set(nodes) else [f"it walks {paths}, not {list(nodes)}"]
    for name in rows.EVIDENCE:
        for path, held in zip(paths, getattr(rows, name), strict=True):
            wanted, size = oracle.evidence(name, nodes[path])
            if not (np.abs(held - wanted) <= (0.0 if exact else 1e-12 * size)).all():
                found.append(f"{name} of {path} is {held}, not {wanted}")
    return found
