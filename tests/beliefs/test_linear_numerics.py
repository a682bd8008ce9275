"""Linear beliefs against exact rational arithmetic: contexts of any scale, repeated or collinear.

Means and spreads have a relative error below 1e-6: of the mean's own size in that direction, and of the spread.
Contexts, and what they are multiplied with, are doubles, which adds a few parts in 2^53 of each product.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import banditree as bt
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.forged_files import apart, together
from tests.support.helpers import ENGINES, make, needs_native, same, state

Floats = NDArray[np.float64]

DELTA = 1e-6
EPS = float(np.finfo(float).eps)
TREE = bt.Tree({"a": ["a1", "a2"], "b": ["b1"]})
Reward = tuple[str, float, Floats]


@dataclass
class Posterior:
    """The exact posterior of a node with these rewards: B and f in fractions."""

    b: list[list[Fraction]]
    f: list[Fraction]

    @classmethod
    def of(cls, dim: int, precision: float, rewards: list[Reward]) -> Posterior:
        b = [[Fraction(precision) if i == j else Fraction(0) for j in range(dim)] for i in range(dim)]
        f = [Fraction(0)] * dim
        for _, reward, context in rewards:
            x = [Fraction(value) for value in context.tolist()]
            for i in range(dim):
                f[i] += Fraction(reward) * x[i]
                for j in range(dim):
                    b[i][j] += x[i] * x[j]
        return cls(b, f)

    def solve(self, *columns: list[Fraction]) -> list[list[Fraction]]:
        """B^-1 times each column, by Gauss and Jordan."""
        d = len(self.b)
        rows = [[*self.b[i], *(column[i] for column in columns)] for i in range(d)]
        for k in range(d):
            rows[k] = [value / rows[k][k] for value in rows[k]]
            for i in range(d):
                if i != k:
                    rows[i] = [one - rows[i][k] * two for one, two in zip(rows[i], rows[k], strict=True)]
        return [[row[d + at] for row in rows] for at in range(len(columns))]

    def check(self, mean: float, spread: float, context: Floats) -> None:
        d = len(self.f)
        x = [Fraction(value) for value in context.tolist()]
        axes = [[Fraction(int(i == j)) for j in range(d)] for i in range(d)]
        along, mu, *inverse = self.solve(x, self.f, *axes)
        variance = sum(map(Fraction.__mul__, along, x), Fraction(0))
        exact_mean = float(sum(map(Fraction.__mul__, mu, x), Fraction(0)))
        exact_spread = float(variance) ** 0.5
        size = float(sum(map(Fraction.__mul__, mu, self.f), Fraction(0))) ** 0.5  # (mu' B mu)^1/2
        length = np.abs(context)
        rounding = 4 * d * EPS
        in_mean = DELTA * exact_spread * size + rounding * float(length @ [abs(float(m)) for m in mu])
        in_spread = DELTA * exact_spread + rounding * float(length @ [float(inverse[i][i]) ** 0.5 for i in range(d)])
        assert abs(mean - exact_mean) <= in_mean, (mean, exact_mean, in_mean)
        assert abs(spread - exact_spread) <= in_spread, (spread, exact_spread, in_spread)


def check(policy: bt.Policy, rewards: list[Reward], precision: float, contexts: Floats) -> None:
    """The posterior of every node, in all these contexts."""
    rows, tree = policy._state.rows, policy._state.walked_tree
    assert policy.dim is not None
    for node in range(tree.shape.n_nodes):
        path = tree.nodes.path(node)
        below = [reward for reward in rewards if tree.path(reward[0])[: len(path)] == path]
        exact = Posterior.of(policy.dim, precision, below)
        means, spreads = rows.mean(np.array([node]), contexts)[0], rows.spread(np.array([node]), contexts)[0]
        for mean, spread, context in zip(means, spreads, contexts, strict=True):
            exact.check(float(mean), float(spread), context)
            if policy.engine == "native":
                walk: Any = policy._state.walk.native
                of_engine = walk.moments(node, context.copy())
                exact.check(of_engine[0], of_engine[1], context)


KINDS = ("random", "repeated", "collinear", "multiples", "columns", "whole")


def contexts_of(kind: str, n: int, dim: int, scale: float, rng: np.random.Generator) -> Floats:
    X = rng.standard_normal((n, dim))
    if kind == "repeated":
        X = X[rng.integers(min(n, 2), size=n)]
    elif kind == "collinear":  # an intercept and columns that add up to it
        X = np.eye(dim)[rng.integers(dim, size=n)]
        X[:, 0] = 1
    elif kind == "multiples":  # of one context, large and small
        X = X[:1] * 10.0 ** rng.uniform(-9, 0, (n, 1))
    elif kind == "columns":  # a scale for each column, as of times and shares
        X *= 10.0 ** rng.uniform(-4, 0, dim)
    elif kind == "whole":  # most entries small, some large and equal, the same context again and again
        X = np.where(rng.random((1, dim)) < 0.5, 1.0, 1 / scale) * np.ones((n, 1))
    return np.asarray(X * scale)


@given(
    kind=st.sampled_from(KINDS),
    scale=st.sampled_from([1e-9, 1e-4, 1.0, 1e3, 1e5, 1e7, 1e8, 1e9]),
    precision=st.sampled_from([1.0, 1e-2, 100.0]),
    dim=st.integers(1, 5),
    n=st.integers(1, 25),
    batch=st.sampled_from(["one by one", "at once", "in parts"]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150)
@pytest.mark.parametrize("name", ENGINES)
def test_posteriors_are_exact_at_any_scale(
    name: str, kind: str, scale: float, precision: float, dim: int, n: int, batch: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = contexts_of(kind, n, dim, scale, rng)
    rewards = [
        (str(rng.choice(TREE.arms)), float(reward), x) for reward, x in zip(rng.standard_normal(n), X, strict=True)
    ]
    with engines.using(name):
        policy = bt.Policy(TREE, belief=bt.Linear(dim, precision=precision), rule=bt.Thompson(), rng=0)
    learn(policy, rewards, batch)
    fresh = contexts_of(kind, 2, dim, scale, rng)
    check(policy, rewards, precision, np.concatenate([X[:2], fresh, rng.standard_normal((1, dim))]))


def learn(policy: bt.Policy, rewards: list[Reward], batch: str) -> None:
    size = {"one by one": 1, "at once": len(rewards), "in parts": 7}[batch]
    for at in range(0, len(rewards), size):
        part = rewards[at : at + size]
        if batch == "one by one":
            policy.update(*part[0])
        else:
            arms, values, X = zip(*part, strict=True)
            policy.update_many(list(arms), list(values), contexts=np.array(X))


def test_the_report(engine: str) -> None:
    """Two equal contexts with entries of 1e9 used to leave a posterior that was not a number, for good."""
    policy = bt.LinTS(bt.Tree(2), dim=5, rng=1)
    x = np.array([1e9, 1, 1, 1e9, 1])
    policy.update(0, 1.0, x)
    policy.update(0, 1.0, x)
    assert policy.choose(np.zeros(5)) in (0, 1)
    row = next(row for row in policy.table(x) if row.path == (0,))
    # B = I + 2 x x', so x' B^-1 x = s / (1 + 2 s) and the mean is 2 s / (1 + 2 s) for s = x'x, about 2e18.
    assert row.mean == pytest.approx(1, abs=1e-6)
    assert (row.interval[1] - row.interval[0]) / (2 * 1.96) == pytest.approx(0.5**0.5, abs=1e-5)


def trained(scale: float = 1e9, engine: str = "native", n: int = 12) -> tuple[bt.Policy, list[Reward]]:
    """A policy whose nodes have seen two contexts of three numbers, and large ones."""
    rng = np.random.default_rng(4)
    X = contexts_of("repeated", n, 3, scale, rng)
    rewards = [(str(arm), float(rng.standard_normal()), x) for arm, x in zip(rng.choice(TREE.arms, n), X, strict=True)]
    with engines.using(engine):
        policy = bt.LinHTS(TREE, dim=3, rng=0)
    learn(policy, rewards, "one by one")
    return policy, rewards


def test_moved_arms_take_their_evidence_along(engine: str) -> None:
    policy, rewards = trained(engine=engine)
    probes = np.concatenate([[rewards[0][2]], np.eye(3)])
    policy.move_arms({"a2": ("b", "c")})
    check(policy, rewards, 1.0, probes)
    policy.add_arms({"new": ("b",)})
    policy.retree(bt.Tree({"x": ["b1", "a2"], "y": ["new", "a1"]}))
    check(policy, rewards, 1.0, probes)
    policy.remove_arms(["a1"])
    left = [reward for reward in rewards if reward[0] != "a1"]
    check(policy, left, 1.0, probes)
    learn(policy, left, "one by one")
    check(policy, left * 2, 1.0, probes)


def test_files_keep_every_digit(engine: str, tmp_path: Path) -> None:
    policy, rewards = trained(engine=engine)
    policy.save(tmp_path / "kept")
    again = bt.load(tmp_path / "kept", rng=1)
    assert same(state(policy), state(again))
    for each in (policy, again):
        learn(each, rewards, "at once")
    assert same(state(policy), state(again))
    check(again, rewards * 2, 1.0, np.eye(3))


def rewritten(path: Path, **changes: Any) -> None:
    """Change arrays of a saved policy; None takes one out."""
    header, arrays = apart(path.read_bytes())
    left: dict[str, Any] = arrays | changes
    path.write_bytes(together(header, {name: array for name, array in left.items() if array is not None}))


@needs_native
@pytest.mark.parametrize("scale", [1e5, 1e9])
@pytest.mark.parametrize("name", ["LinTSC", "LinUCBC", "LinHTS"])
def test_both_engines_choose_alike_where_contexts_are_collinear(name: str, scale: float) -> None:
    """On one stream the readable engine takes the steps of the native one, as everywhere else."""
    rng = np.random.default_rng(5)
    X = contexts_of("repeated", 60, 3, scale, rng)
    probes = np.concatenate([rng.standard_normal((60, 3)), X[:20] * (1 + rng.random((20, 1)))])
    found = []
    for engine in ("native", "readable"):
        with engines.using(engine, shortcuts=False):
            policy = make(name, TREE, native_stream(9))
        for at, x in enumerate(X):
            policy.update(TREE.arms[at % 3], float(at % 5), x)
        found.append([policy.choose(x) for x in probes])
    assert found[0] == found[1]


def test_large_contexts_are_refused_with_a_sentence(engine: str) -> None:
    policy = bt.LinTS(bt.Tree(2), dim=2, rng=0)
    with pytest.raises(bt.errors.InvalidValue, match="1e\\+30; scale your contexts"):
        policy.update(0, 1.0, np.array([1.0, 1e31]))
    with pytest.raises(bt.errors.InvalidValue, match="scale your contexts"):
        policy.choose(np.array([1.0, -1e31]))
    for prior in ({"precision": 1e31}, {"precision": 1e-31}, {"mean": 1e31}, {"v": 1e31}):
        with pytest.raises(bt.errors.InvalidValue):
            bt.Linear(2, **prior)
    extreme = bt.LinTS(bt.Tree(2), prior=bt.Linear(2, precision=1e-30, mean=-1e30, v=1e30), rng=0)
    for x in ([1e30, -1e30], [1e30, 1e30], [1e-30, 0.0]):
        extreme.update(0, 1e100, np.array(x))
        extreme.update_many([0, 1], [1e100, -1e100], plays=[1e15, 1e15], contexts=np.array([x, x]))
        assert extreme.choose(np.array(x)) in (0, 1)
        assert extreme.propensities(np.array(x)).sum() == pytest.approx(1)
        assert np.isfinite([row.interval for row in extreme.table(np.array(x))]).all()


@needs_native
@pytest.mark.parametrize("precision", [1e-12, 1e-30])
def test_simulations_with_next_to_no_prior(precision: float) -> None:
    """The first contexts of a node leave directions in which nothing was seen."""
    policies: list[bt.Policy] = []

    def build(tree: bt.Tree, *, rng: Any) -> bt.Policy:
        belief = bt.Linear(3, precision=precision)
        policies.append(bt.Policy(tree, belief=belief, rule=bt.Thompson(), depth=1, rng=rng))
        return policies[-1]

    theta = np.random.default_rng(0).random((3, 3))
    with engines.using("native"):
        runs = bt.simulate({"mine": build}, bt.problems.linear_from(TREE, theta), horizon=300, seeds=2, rng=0)
    assert runs.engine["mine"] == "native"
    assert np.isfinite(runs.regret["mine"]).all()
    for policy in policies:
        rows: Any = policy._state.rows
        assert rows.count[0] == 300
        b = precision * np.eye(3) + rows.gram[0]
        assert rows.posterior(np.array([0]))[0][0] == pytest.approx(np.linalg.solve(b, rows.moment[0]), rel=1e-8)


@pytest.mark.parametrize("name", ["LinTS", "LinTSC", "LinHTS"])
def test_what_was_chosen_was_not_impossible(name: str, engine: str) -> None:
    """Rewards so large that the means of arms differ by rounding alone more than draws do."""
    for seed in (12, 24, 47, 56):
        rng = np.random.default_rng(seed)
        policy = make(name, bt.Tree({"x": ["a", "b"], "y": ["c", "d"], "z": [*range(20)]}), seed)
        for size in rng.choice([1e9, 1e16], 60, p=[0.7, 0.3]):
            x = size * rng.standard_normal(3)
            decision = policy.decide(x)
            assert decision.propensity > 0
            policy.update(decision.arm, 1e43 * rng.standard_normal(), x)


def test_refused_updates_change_nothing(engine: str) -> None:
    policy, _ = trained(engine=engine)
    before = state(policy)
    wrong = [partial(policy.update, "a1", 1.0, np.full(3, 1e101)), partial(policy.update, "a1", np.inf, np.ones(3))]
    wrong.append(partial(policy.update_many, ["a1", "b1"], [1.0, np.nan], contexts=np.full((2, 3), 1e9)))
    for call in wrong:
        with pytest.raises(bt.errors.InvalidValue):
            call()
    assert same(before, state(policy))
