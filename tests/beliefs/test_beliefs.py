"""Posterior arithmetic against numbers worked out by hand, samples against their laws, and priors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import banditree as bt
from banditree.beliefs import BELIEFS
from banditree.beliefs.beta import quantiles
from banditree.errors import InvalidType, InvalidValue, UnknownArm
from banditree.policy import engines
from tests.support.helpers import ENGINES, SHOP, feed

P_FLOOR = 1e-6  # of a Kolmogorov-Smirnov test; with the 30 here a right sampler fails with probability 3e-5
GREEDY = bt.UCB(c=1.0)


def learned(belief: Any, events: list[tuple[Any, float, Any]], depth: int | None = None) -> bt.Policy:
    return feed(bt.Policy(SHOP, belief=belief, rule=GREEDY, depth=depth, rng=0), events)


def node(policy: bt.Policy, *path: Any) -> Any:
    """The number of a node by its path, as an array of one."""
    table = policy.table(np.zeros(policy.dim) if policy.dim else None)
    return np.array([next(i for i, row in enumerate(table) if row.path == path)])


def rows_of(policy: bt.Policy) -> Any:
    return policy._state.rows


REWARDS: list[tuple[Any, float, Any]] = [("h1", 1, None), ("h1", 0.25, None), ("h2", 0, None), ("s1", True, None)]


def test_beta_by_hand(engine: str) -> None:
    """Beta(2, 3) everywhere. hats: 1.25 successes and 1.75 failures, Beta(3.25, 4.75); h1: 1.25 and 0.75."""
    policy = learned(bt.Beta(2, 3), REWARDS)
    hats, h1, root = node(policy, "hats"), node(policy, "hats", "h1"), node(policy)
    rows = rows_of(policy)
    assert rows.successes[hats] == 1.25
    assert rows.failures[hats] == 1.75
    assert rows.mean(hats, None)[0, 0] == 3.25 / 8
    assert rows.mean(h1, None)[0, 0] == 3.25 / 7
    assert rows.mean(root, None)[0, 0] == (2 + 2.25) / (5 + 4)
    assert rows.spread(hats, None)[0, 0] == pytest.approx(math.sqrt(3.25 * 4.75 / (8**2 * 9)))
    assert rows.plays(root)[0] == 4
    assert rows.rewards(h1)[0] == 1.25
    row = policy.table()[int(hats[0])]
    assert (row.path, row.plays) == (("hats",), 3)
    assert row.interval == pytest.approx(stats.beta(3.25, 4.75).interval(0.95), abs=1e-3)


def test_gaussian_by_hand(engine: str) -> None:
    """Default: N(sum / (n + 1), sd^2 / (n + 1)). Else the prior is worth (sd / prior_sd)^2 rewards."""
    rewards: list[tuple[Any, float, Any]] = [("h1", 5.0, None), ("h1", -1.0, None), ("h2", 2.0, None)]
    policy = learned(bt.Gaussian(sd=2.0), rewards)
    rows = rows_of(policy)
    hats, h1, s1 = node(policy, "hats"), node(policy, "hats", "h1"), node(policy, "shoes", "s1")
    assert rows.mean(hats, None)[0, 0] == 6.0 / 4
    assert rows.spread(hats, None)[0, 0] == 2.0 / 2
    assert rows.mean(h1, None)[0, 0] == pytest.approx(4.0 / 3)
    assert rows.spread(s1, None)[0, 0] == 2.0
    assert policy.table()[int(hats[0])].interval == pytest.approx((1.5 - 1.96, 1.5 + 1.96))
    # Posterior precision 1/4 + 2/1 (two rewards of sd 1): mean (10/4 + 4) / (9/4), sd 2/3.
    rows = rows_of(learned(bt.Gaussian(sd=1.0, mean=10.0, prior_sd=2.0), rewards[:2]))
    assert rows.mean(h1, None)[0, 0] == pytest.approx(6.5 / 2.25)
    assert rows.spread(h1, None)[0, 0] == pytest.approx(2 / 3)


def test_counts_by_hand(engine: str) -> None:
    policy = learned(bt.Counts(), [("h1", 5.0, None), ("h1", -1.0, None)])
    rows = rows_of(policy)
    h1, h2 = node(policy, "hats", "h1"), node(policy, "hats", "h2")
    assert rows.mean(h1, None)[0, 0] == 2.0
    assert rows.spread(h1, None)[0, 0] == 1 / math.sqrt(2)
    assert rows.spread(h2, None)[0, 0] == np.inf
    reach = math.sqrt(math.log(40) / 4)  # Hoeffding: 2 exp(-2 n reach^2) = 0.05 at n = 2
    assert policy.table()[int(h1[0])].interval == pytest.approx((2 - reach, 2 + reach))
    assert policy.table()[int(h2[0])].interval == (-np.inf, np.inf)
    with pytest.raises(InvalidValue, match="no prior to sample from"):
        rows.sample(h1, None, 1, np.random.default_rng())


def test_linear_by_hand(engine: str) -> None:
    """B = I + x x' + y y' with x = (1, 2), y = (0, 1): [[2, 2], [2, 6]], det 8; f = 3 x + 1 y = (3, 7)."""
    x, y, at = np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([[1.0, 1.0]])
    policy = learned(bt.Linear(2, v=0.5), [("h1", 3.0, x), ("h2", 1.0, y)])
    rows = rows_of(policy)
    hats = node(policy, "hats")
    assert rows.gram[hats][0].tolist() == [[1, 2], [2, 5]]
    assert rows.moment[hats][0].tolist() == [3, 7]
    coefficients, root = rows.posterior(hats)
    assert root[0] @ root[0].T == pytest.approx(np.array([[6, -2], [-2, 2]]) / 8)
    assert coefficients[0] == pytest.approx([(18 - 14) / 8, (-6 + 14) / 8])
    assert rows.mean(hats, at)[0, 0] == pytest.approx(1.5)
    assert rows.spread(hats, at)[0, 0] == pytest.approx(math.sqrt(0.5 * 4 / 8))
    assert rows.plays(hats)[0] == 2
    assert rows.rewards(hats)[0] == 4.0
    row = policy.table(context=[1, 1])[int(hats[0])]
    assert row.mean == pytest.approx(1.5)
    assert row.interval == pytest.approx((1.5 - 1.96 * 0.5, 1.5 + 1.96 * 0.5))
    blank = policy.table()[int(hats[0])]
    assert blank.mean == 2.0
    assert blank.interval == "needs context="
    # A prior mean of (1, 0) worth precision 2: B = 2 I + x x', f = 2 (1, 0) + 3 x.
    rows = rows_of(learned(bt.Linear(2, mean=(1.0, 0.0), precision=2.0), [("h1", 3.0, x)]))
    assert rows.posterior(hats)[0][0] == pytest.approx(np.linalg.solve([[3, 2], [2, 6]], [5, 6]))
    assert rows.posterior(node(policy, "shoes"))[0][0].tolist() == [1, 0]


@pytest.mark.parametrize("a", [1e-3, 0.05, 0.5, 1, 3.3, 40, 1e4, 1e7])
@pytest.mark.parametrize("b", [0.05, 1, 7, 1e4])
def test_beta_quantiles_are_scipys(a: float, b: float) -> None:
    """The mass below the quantile found is the level asked for, to three digits of the width."""
    levels = (0.025, 0.5, 0.975)
    found = quantiles(np.array([[a]]), np.array([[b]]), levels)[0]
    low, _, high = special.betaincinv(a, b, levels)
    tiny = 1e-12  # a quantile below it has no digits to compare
    for level, value in zip(levels, found, strict=True):
        exact = special.betaincinv(a, b, level)
        if min(exact, 1 - exact) > tiny:
            assert abs(value - exact) <= 2e-3 * (high - low) or abs(special.betainc(a, b, value) - level) <= 1e-3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("a", "b"), [(3e16, 1e16), (1e14, 1e10), (1e20, 3e20), (1e25, 1e30), (1e40, 2e40)])
def test_intervals_of_very_certain_beliefs_are_those_of_a_normal(engine: str, a: float, b: float) -> None:
    with engines.using(engine):
        low, high = bt.TS(SHOP, prior=bt.Beta(a, b), rng=0)["h1"].interval
    mean, n = a / (a + b), a + b
    half, rounding = 1.96 * math.sqrt(mean * (b / n) / n), 2 * np.spacing(math.log(a + b)) * mean
    assert low - mean == pytest.approx(-half, rel=2e-3, abs=rounding)
    assert high - mean == pytest.approx(half, rel=2e-3, abs=rounding)


# Samples


def sample(belief: bt.Belief, n: int, context: Any = None) -> Any:
    rows = belief.rows(2, {})
    contexts = None if context is None else np.tile(context, (n, 1))
    return rows.sample(np.array([0, 1]), contexts, n, np.random.default_rng(4))


LAWS: dict[str, tuple[bt.Belief, Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    # belief, context, its distribution function, and a wrong one as a control
    "Beta": (bt.Beta(2, 5), None, stats.beta(2, 5).cdf, stats.beta(5, 2).cdf),
    "Beta below 1": (
        bt.Beta(0.3, 0.4),
        None,
        lambda z: stats.beta(0.3, 0.4).cdf(special.expit(z)),
        lambda z: stats.beta(0.4, 0.3).cdf(special.expit(z)),
    ),
    "Gaussian": (bt.Gaussian(2.0, mean=1.0, prior_sd=0.5), None, stats.norm(1, 0.5).cdf, stats.norm(1, 0.55).cdf),
    # v scales the variance: sqrt(0.25 * 5 / 2) with precision 2 and |x|^2 = 5
    "Linear": (
        bt.Linear(2, v=0.25, mean=(1.0, 0.0), precision=2.0),
        [1.0, 2.0],
        stats.norm(1, math.sqrt(0.625)).cdf,
        stats.norm(1, 0.25 * math.sqrt(2.5)).cdf,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_samples_follow_the_belief(name: str) -> None:
    belief, context, law, wrong = LAWS[name]
    draws = sample(belief, 20_000, context)
    assert draws.shape == (2, 20_000)
    for row in draws:
        assert stats.kstest(row, law).pvalue > P_FLOOR
        assert stats.kstest(row, wrong).pvalue < P_FLOOR
    assert abs(np.corrcoef(draws)[0, 1]) < 6 / math.sqrt(20_000)


def test_tiny_priors_never_tie() -> None:
    draws = sample(bt.Beta(1e-3, 1e-3), 10_000)
    assert np.isfinite(draws).all()
    assert len(np.unique(draws)) == draws.size


# Priors


def prior_means(policy: bt.Policy) -> dict[Any, float]:
    return {row.path: row.mean for row in policy.table()}


def test_priors_by_cluster_arm_and_path(engine: str) -> None:
    tree = bt.Tree({"a": {"x": [1, 2]}, "b": {"x": [3]}, "c": [4]})
    prior: Any = {"a": bt.Beta(3, 1), ("b", "x"): bt.Beta(1, 9), 4: bt.Beta(8, 2), ("a", "x", 2): bt.Beta(1, 3)}
    means = prior_means(bt.HTS(tree, prior=prior, rng=0))
    own = {("a",): 0.75, ("b", "x"): 0.1, ("c", 4): 0.8, ("a", "x", 2): 0.25}
    assert means == pytest.approx(dict.fromkeys(means, 0.5) | own)
    # The cut passes over clusters that are not walked.
    means = prior_means(bt.TSC(tree, prior=prior, rng=0))
    assert means == pytest.approx(dict.fromkeys(means, 0.5) | {("a",): 0.75, ("c", 4): 0.8, ("a", 2): 0.25})
    base = prior_means(bt.TS(tree, prior=prior | {None: bt.Beta(2, 2)}, rng=0))
    assert base == pytest.approx(dict.fromkeys(base, 0.5) | {(4,): 0.8, (2,): 0.25})
    skewed = prior_means(bt.TS(tree, prior={None: bt.Beta(1, 3), 4: bt.Beta(8, 2)}, rng=0))
    assert skewed == pytest.approx(dict.fromkeys(skewed, 0.25) | {(4,): 0.8})


def test_linear_priors_by_cluster(engine: str) -> None:
    policy = bt.Policy(SHOP, belief={"hats": bt.Linear(2, mean=3.0)}, rule=bt.Thompson(), rng=0)
    assert policy.dim == 2
    means = {row.path: row.mean for row in policy.table(context=[1, 0])}
    assert means == dict.fromkeys(means, 0.0) | {("hats",): 3.0}


@dataclass(frozen=True)
class Needy(bt.Beta):
    """A belief without a default."""

    a: float
    b: float = 1.0

    def __init__(self, a: float) -> None:
        object.__setattr__(self, "a", a)


BAD_PRIORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bt.Beta(0, 1), InvalidValue, "Beta: a=0 must be above 0"),
    (lambda: bt.Beta(1, -2), InvalidValue, "Beta: b=-2"),
    (lambda: bt.Beta(math.nan, 1), InvalidValue, "Beta: a=nan"),
    (lambda: bt.Beta(1, math.inf), InvalidValue, "Beta: b=inf"),
    (lambda: bt.Beta("1", 1), InvalidType, "Beta: a='1' must be a number"),  # type: ignore[arg-type]
    (lambda: bt.Beta(True, 1), InvalidType, "Beta: a=True"),
    (lambda: bt.Gaussian(0), InvalidValue, "Gaussian: sd=0"),
    (lambda: bt.Gaussian(1, math.inf), InvalidValue, "Gaussian: mean=inf"),
    (lambda: bt.Gaussian(1, 0, -1), InvalidValue, "Gaussian: prior_sd=-1"),
    (bt.Linear, InvalidType, "dim=5"),
    (lambda: bt.Linear(0), InvalidValue, "dim=0 must be at least 1"),
    (lambda: bt.Linear(2.0), InvalidType, "dim=2.0 must be an int"),  # type: ignore[arg-type]
    (lambda: bt.Linear(2, v=0), InvalidValue, "Linear: v=0"),
    (lambda: bt.Linear(2, precision=-1), InvalidValue, "Linear: precision=-1"),
    (lambda: bt.Linear(2, mean=[1, 2, 3]), InvalidValue, r"Linear: mean=\[1, 2, 3\]"),
    (lambda: bt.Linear(2, mean=[1, math.nan]), InvalidValue, "Linear: mean=nan"),
    (lambda: bt.TSC(SHOP, prior={"bags": bt.Beta()}), UnknownArm, "'bags'"),
    (lambda: bt.TSC(SHOP, prior={("shoes", "h1"): bt.Beta()}), UnknownArm, "'shoes', 'h1'"),
    (lambda: bt.TSC(SHOP, prior={}), InvalidType, "a prior is a belief"),
    (lambda: bt.TSC(SHOP, prior=1), InvalidType, "not 1"),  # type: ignore[arg-type]
    (lambda: bt.TSC(SHOP, prior={"hats": bt.Beta(), "shoes": bt.Gaussian()}), InvalidType, "of one kind"),
    (lambda: bt.TSC(SHOP, prior={"hats": (1, 1)}), InvalidType, "of one kind"),  # type: ignore[dict-item]
    (lambda: bt.TSC(bt.Tree({"x": {"y": [1]}, "y": [2]}), prior={"y": bt.Beta()}), InvalidValue, "several nodes"),
    (lambda: bt.TSC(bt.Tree({"x": ["x"]}), prior={"x": bt.Beta()}), InvalidValue, "several nodes"),
    (lambda: bt.TSC(SHOP, prior=bt.Counts()), InvalidValue, "no prior to sample from"),
    (
        lambda: bt.Policy(SHOP, belief={None: bt.Linear(2), "hats": bt.Linear(3)}, rule=GREEDY),
        InvalidValue,
        "the dim and v of the whole tree, 2 and 1.0",
    ),
    (
        lambda: bt.Policy(SHOP, belief={"hats": bt.Linear(2, v=3), "shoes": bt.Linear(2, v=1)}, rule=GREEDY),
        InvalidValue,
        "the dim and v of the whole tree",
    ),
    (
        lambda: bt.Policy(SHOP, belief={"hats": bt.Linear(2), "shoes": bt.Linear(3)}, rule=GREEDY),
        InvalidType,
        r"give the prior of all other nodes, as in \{None: ..., 'hats': ...\}: give the length of the contexts",
    ),
    (
        lambda: bt.HTS(SHOP, prior={"hats": Needy(a=3.0)}),
        InvalidType,
        r"give the prior of all other nodes, as in \{None: ..., 'hats': ...\}: .*missing 1 required",
    ),
    (
        lambda: bt.HTS(SHOP, prior={"hats": bt.Beta(3, 9), ("hats",): bt.Beta(9, 3)}),
        InvalidValue,
        r"prior for \('hats',\): another prior is for the same node",
    ),
    (lambda: bt.Beta(1e308, 1), InvalidValue, r"Beta: a=1e\+308 must be from"),
    (lambda: bt.Beta(1, 5e-324), InvalidValue, "Beta: b=5e-324 must be from"),
]


@pytest.mark.parametrize(("build", "kind", "says"), BAD_PRIORS, ids=[says for _, _, says in BAD_PRIORS])
def test_bad_priors(build: Callable[[], Any], kind: type[Exception], says: str, engine: str) -> None:
    with pytest.raises(kind, match=says):
        build()


def test_numpy_numbers_are_numbers() -> None:
    three: Any = np.int64(3)
    nine: Any = np.float32(9)
    prior: dict[Any, bt.Belief] = {"hats": bt.Beta(three, nine)}
    assert prior_means(bt.TSC(SHOP, prior=prior))[("hats",)] == 0.25


def test_the_registry_has_every_belief() -> None:
    assert {bt.Beta, bt.Gaussian, bt.Linear, bt.Counts} <= set(BELIEFS.values())
    for kind in BELIEFS.values():
        try:
            belief = kind()
        except InvalidType:  # it needs the length of the contexts
            belief = kind(dim=2)  # type: ignore[call-arg]
        assert kind(**belief.parameters()) == belief


def test_what_is_common_to_the_tree_is_taken_from_the_priors_given() -> None:
    policy = bt.HTS(SHOP, prior={"hats": bt.Gaussian(sd=100, mean=5), "h1": bt.Gaussian(sd=100)})
    assert policy.belief == bt.Gaussian(sd=100)
    linear = bt.Policy(SHOP, belief={"hats": bt.Linear(2, v=3, mean=1)}, rule=GREEDY)
    assert linear.belief == bt.Linear(2, v=3)
    assert bt.HTS(SHOP, prior={"hats": bt.Beta(3, 9)}).belief == bt.Beta()
