"""ATS: its beliefs against linear algebra and by hand, its choices against its probabilities, and what it learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

import banditree as bt
from banditree.beliefs.adaptive import AdaptiveRows
from banditree.beliefs.adaptive_kinds import AdaptiveBetaRows
from banditree.errors import InvalidType, InvalidValue
from banditree.policy import engines
from tests.support.helpers import ENGINES, needs_native

Floats = NDArray[np.float64]
DEEP = bt.Tree(
    {"a": {"b": ["b1", "b2", "b3"], "c": ["c1"]}, "d": ["d1", "d2"], "e": {"f": {"g": ["g1", "g2"]}}, "h": ["x"]}
)


def rows_of(policy: bt.Policy) -> AdaptiveRows:
    rows = policy._state.rows
    assert isinstance(rows, AdaptiveRows)
    return rows


def gaussian_tree(policy: bt.Policy, k: Floats, root_variance: float) -> tuple[Floats, Floats]:
    """Covariance of the means of all nodes and of the mean rewards of the arms played: the model, written out."""
    shape = policy.tree.shape
    loadings = np.zeros((shape.n_nodes, shape.n_nodes))  # of each node on the steps from parent to child
    for node in range(shape.n_nodes):
        loadings[node, shape.path_up(node)] = 1
    steps = np.append(root_variance, 1 / k[1:])
    covariance = loadings * steps @ loadings.T
    plays = rows_of(policy).plays(shape.node_of)
    played = shape.node_of[plays > 0]
    noise = np.zeros((shape.n_nodes, shape.n_nodes))
    noise[played, played] = 1 / plays[plays > 0]
    return covariance, (covariance + noise)[np.ix_(played, played)]


def played_at_random(prior: bt.Belief, seed: int, tree: bt.Tree = DEEP, n: int = 40, **options: Any) -> bt.Policy:
    rng = np.random.default_rng(seed)
    policy = bt.ATS(tree, prior=prior, rng=seed, **options)
    arms = [tree.arms[i] for i in rng.integers(0, int(rng.integers(1, tree.n_arms + 1)), n)]
    rewards = rng.normal(1, 2, n) if isinstance(prior, bt.Gaussian) else rng.random(n) < 0.4
    policy.update_many(arms, rewards.astype(float))
    return policy


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_gaussian_beliefs_are_the_posterior_of_a_tree_of_normal_variables(seed: int) -> None:
    prior = bt.Gaussian(sd=1.5, mean=0.3, prior_sd=2.0)
    policy = played_at_random(prior, seed)
    rows, shape = rows_of(policy), policy.tree.shape
    assert prior.prior_sd is not None
    assert prior.sd is not None
    unit = prior.sd**2
    played = shape.node_of[rows.plays(shape.node_of) > 0]
    means = rows.rewards(played) / rows.plays(played)
    for copy in (0, 9, 20, 29):
        k = rows.concentration[rows.height, copy]
        covariance, seen = gaussian_tree(policy, k, prior.prior_sd**2 / unit)
        gain = np.linalg.solve(seen, covariance[played]).T
        mean = prior.mean + gain @ (means - prior.mean)
        variance = np.diag(covariance - gain @ covariance[played])
        found_mean, found_variance, _ = rows.believed(np.arange(shape.n_nodes), np.array([copy]))
        assert np.allclose(found_mean[:, 0], mean, rtol=1e-8, atol=1e-9)
        assert np.allclose(found_variance[:, 0], variance, rtol=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_the_weights_of_copies_are_their_marginal_likelihoods(seed: int) -> None:
    policy = played_at_random(bt.Gaussian(sd=1.5), seed)
    rows, shape = rows_of(policy), policy.tree.shape
    played = shape.node_of[rows.plays(shape.node_of) > 0]
    means = rows.rewards(played) / rows.plays(played)
    likelihood = []
    narrow = np.flatnonzero(rows.concentration.min(axis=0) > 0.05)  # the root's mean must be freer than any other
    for copy in narrow:
        seen = gaussian_tree(policy, rows.concentration[rows.height, copy], 1e7)[1]  # the root's mean may be anything
        likelihood.append(stats.multivariate_normal.logpdf(means, np.full(len(means), means.mean()), 1.5**2 * seen))
    expected = np.array(likelihood) + rows.log_prior()[narrow]
    found = rows.collect().log_weight[narrow]
    assert np.allclose(found - special.logsumexp(found), expected - special.logsumexp(expected), atol=1e-4)


def test_beliefs_by_hand() -> None:
    """One cluster of two arms, one of them played four times: copy 2 has k = 16 for arms and for clusters."""
    policy = bt.ATS(bt.Tree({"a": ["x", "y"]}), rng=0)
    policy.update_many(["x"] * 4, [1, 1, 1, 0])
    rows = rows_of(policy)
    w_arm = 4 * 17 / 20  # what the arm's message counts for the cluster
    w_cluster = w_arm * 17 / (w_arm + 17)
    root = (0.5 + 0.75 * w_cluster) / (1 + w_cluster)
    cluster = (16 * root + 0.75 * w_arm) / (16 + w_arm)
    x, y = (16 * cluster + 3) / 20, cluster
    found, variance, around = rows.believed(policy.tree.shape.node_of, np.array([2]))
    assert np.allclose(found[:, 0], [x, y])
    assert np.allclose(around[:, 0], cluster)
    v_cluster = 1 / (17 + w_arm) + (16 / (16 + w_arm)) ** 2 / (2 + w_cluster)
    assert np.allclose(variance[:, 0], [1 / 21 + (16 / 20) ** 2 * v_cluster, 1 / 17 + v_cluster])
    steps = np.tile(np.arange(10), 3)  # most rewards are 1, so what is usual at a level of 1/2 is usual here
    fall = 3 / 2  # by 3 over the number of arms, where they are fewer than ten
    log_weight = -fall * np.maximum(steps, 0)  # a single child tells nothing about how alike children are
    assert np.allclose(rows.collect().log_weight, log_weight - special.logsumexp(log_weight))
    leaves, copies = policy.tree.shape.node_of.astype(np.intp), np.array([2])
    arms = next(iter(rows.arms(leaves, None, copies)))
    before = 4 / 2  # four strays are expected among all arms, against there being none
    assert np.isclose(arms.odds[1], before)
    own = special.betaln(5, 3) - special.betaln(2, 2)  # strays from Beta(2, 2), as most rewards are 1
    best = 3 * np.log(0.75) + np.log(0.25)
    near = special.expit(0.05 * np.rint(special.logit(cluster) / 0.05))  # the cluster's mean, in steps
    around_cluster = 3 * np.log(near) + np.log(1 - near)
    factor = own - (best - 16 / 20 * (best - around_cluster) - 0.5 * np.log(20 / 16))
    assert np.isclose(arms.odds[0], before * np.exp(factor))
    stray_mean, stray_sd = rows.drawn(np.array([5 / 8, 1 / 2]), np.array([1 / 9, 1 / 5]))
    assert np.allclose(arms.stray_mean, stray_mean)
    assert np.allclose(arms.stray_sd, stray_sd)
    assert np.allclose([arms.mean, arms.sd], rows.drawn(found[:, 0], variance[:, 0]))


def differs(counts: Floats, chances: Floats) -> bool:
    """Whether counts are further from these chances than one time in a million (rare arms are taken together)."""
    expected = chances * counts.sum()
    rare = expected < 10
    observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (counts, expected))
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return bool(stats.chi2.sf(statistic, kept.sum() - 1) < 1e-6)


CASES = {  # tree, decisions, prior, and the highest rate
    "few arms": (DEEP, 60, None, 1.0),
    "nothing known": (bt.Tree.from_labels(np.arange(120) % 7), 0, None, 1.0),
    "wide": (bt.Tree.from_labels(np.arange(300) % 20), 400, None, 1.0),
    "one cluster": (bt.Tree(60), 200, None, 1.0),
    "a long run": (bt.Tree.from_labels(np.arange(50) % 7), 30_000, None, 0.2),
    "normal rewards": (DEEP, 60, bt.Gaussian(0.5), 1.0),
    "learned noise, wide": (bt.Tree.from_labels(np.arange(300) % 20), 400, bt.Gaussian(), 1.0),
    "rare rewards": (bt.Tree.from_labels(np.arange(300) % 20), 3_000, None, 0.02),
}


@needs_native
@pytest.mark.parametrize("case", CASES)
def test_choices_follow_the_probabilities(case: str) -> None:
    """Drawn arm by arm, or by screening many arms. The control: not those of a policy that knows a little more."""
    tree, steps, prior, highest = CASES[case]
    policy = bt.ATS(tree, prior=prior, rng=3)
    rng = np.random.default_rng(4)
    rates = highest * rng.random(tree.n_arms)
    position = {arm: i for i, arm in enumerate(tree.arms)}
    for _ in range(steps):
        arm = policy.choose()
        policy.update(arm, float(rng.random() < rates[position[arm]]))
    n = 1_000_000 if case == "few arms" else 200_000
    chosen = policy._state.walk.choose_many(n, None)
    assert chosen is not None
    counts = np.bincount(chosen, minlength=tree.n_arms).astype(float)
    assert not differs(counts, policy.propensities())
    policy.update_many([tree.arms[0]] * 20, [0.9] * 20)
    assert differs(counts, policy.propensities())


@pytest.mark.parametrize("engine", ENGINES)
def test_limited_choices_follow_the_probabilities(engine: str) -> None:
    with engines.using(engine):
        policy = played_at_random(bt.Beta(1, 1), 5, n=30)
        only = ["b1", "c1", "d2", "x"]
        chances = policy.propensities(only=only)
        assert np.isclose(chances.sum(), 1)
        assert set(np.flatnonzero(chances)) == set(policy.tree.positions(only))
        n = 20_000 if engine == "native" else 1_500
        counts = np.bincount(policy.tree.positions(policy.choose_many(n, only=only)), minlength=policy.tree.n_arms)
        assert not differs(counts.astype(float), chances)
        first = [policy.slate(2, only=only)[0] for _ in range(n // 4)]
        counts = np.bincount(policy.tree.positions(first), minlength=policy.tree.n_arms)
        assert not differs(counts.astype(float), chances)


def test_the_law_is_what_the_beliefs_go_by() -> None:
    law = bt.ATS(DEEP).law
    assert law is bt.LinATS(DEEP, dim=1).law is rows_of(bt.ATS(DEEP)).law
    assert len(law.rows()) <= 12
    for name, value, why in law.rows():
        assert f"    {name}={value!r},  # {why}" in repr(law)
    one, other = rows_of(bt.ATS(DEEP, rng=1)), rows_of(bt.ATS(DEEP, rng=1))
    other.law = replace(law, strays=0.5)
    other.attach(other.shape)
    assert one.coupling.odds == pytest.approx(4 / 9)
    assert other.coupling.odds == pytest.approx(0.5 / 9)


def test_rates_are_drawn_as_from_a_beta() -> None:
    """The normal draws of rates pass the quantiles of the Beta that they stand for about as often as this does."""
    rows = rows_of(bt.ATS(bt.Tree(5), rng=1))
    for a, b in ((4, 28), (28, 4), (3, 300), (30, 3000), (300, 300), (1, 100), (2, 2)):
        m, v = np.array([a / (a + b)]), np.array([1 / (a + b + 1)])
        mean, sd = rows.drawn(m, v)
        for tail in (0.5, 0.1, 0.01):
            at = rows.drawn(stats.beta.isf([tail], a, b), np.zeros(1) + 1e-300)[0]
            assert stats.norm.sf((at - mean) / sd)[0] / tail == pytest.approx(1, abs=0.12)
        assert rows.as_reward(mean + 0 * sd)[0] == pytest.approx(stats.beta.median(a, b), rel=0.1)


@needs_native
@pytest.mark.parametrize(
    ("prior", "rate"), [(bt.Beta(1, 1), 0.2), (bt.Beta(1, 60), 0.02), (bt.Gaussian(0.5), 0.2), (bt.Gaussian(), 0.2)]
)
def test_what_is_kept_of_earlier_decisions_changes_no_choice(prior: bt.Belief, rate: float) -> None:
    """Bounds on many arms are kept from one decision to the next; without them the same arms are chosen."""
    rng = np.random.default_rng(3)
    tree = bt.Tree({f"c{i}": [f"a{i}_{j}" for j in range(45)] for i in range(8)})
    rates = dict(zip(tree.arms, rate * np.exp(0.4 * rng.standard_normal(8)).repeat(45), strict=True))
    policies = [bt.ATS(tree, prior=prior, rng=5) for _ in range(2)]
    for policy in policies:
        policy.update_many(tree.arms, [float(np.rint(60 * rates[arm])) for arm in tree.arms], plays=[60] * len(tree))
        policy.update_many(["a0_0"], [900 * rates["a0_0"]], plays=[900])  # played most, and so drawn first
    for step in range(600):
        policies[1]._state.walk.refresh()
        excluded = rng.choice(np.array(tree.arms), 3).tolist() if rng.random() < 0.2 else None
        chosen, again = (policy.choose(exclude=excluded) for policy in policies)
        assert chosen == again
        reward, lucky = float(rng.random() < rates[chosen]), str(rng.choice(tree.arms))
        for policy in policies:
            policy.update(chosen, reward)
            if step % 60 == 0:  # an arm that was poor so far becomes the best
                policy.update_many([lucky], [40.0 + step / 4], plays=[40 + step // 4])


def test_rare_rewards_move_the_copies_and_the_strays() -> None:
    """At 1% siblings that differ by as much in odds have concentrations 25 times as high; and strays are as rare."""
    policy = bt.ATS(DEEP, rng=1)
    policy.update_many(DEEP.arms, np.full(9, 100), plays=np.full(9, 10_000))
    rows = rows_of(policy)
    assert rows.shift() == pytest.approx(np.log(4 * 0.011 * 0.989) / np.log(4), abs=0.3)
    strays = rows.strays(np.array([0]))
    assert strays.mean[0] == pytest.approx(0.0132, rel=0.2)  # the prior counts as well
    assert strays.plays[0] * strays.mean[0] == pytest.approx(1, rel=0.02)
    policy.update_many(["b1"], [1_000_000], plays=[1_000_000])
    assert isinstance(rows, AdaptiveBetaRows)
    assert rows.level() < 0.15  # one arm, however often it was played, says little about the others
    told = rows_of(bt.ATS(DEEP, prior=bt.Beta(1, 60), rng=1))
    assert told.strays(np.array([0])).mean[0] == pytest.approx(1 / 61, rel=0.2)


@needs_native
@pytest.mark.parametrize("n", [80, 20_000])
@pytest.mark.parametrize("prior", [bt.Beta(1, 1), bt.Gaussian(0.7), bt.Gaussian()], ids=["Beta", "Gaussian", "learned"])
def test_the_engines_know_the_same_probabilities(prior: bt.Belief, n: int) -> None:
    found = []
    for engine in ("native", "readable"):
        with engines.using(engine):
            policy = played_at_random(prior, 8, n=n)
            found.append(policy.propensities())
    assert np.abs(found[0] - found[1]).max() < 1e-7


def test_rewards_known_beforehand_are_rewards() -> None:
    known = bt.ATS(DEEP, prior={None: bt.Beta(1, 3), "b1": bt.Beta(30, 10)}, rng=1)
    seen = bt.ATS(DEEP, prior=bt.Beta(1, 3), rng=1)
    seen.update_many(["b1"], [30], plays=[40])
    first, second = ([row.mean for row in policy.table()] for policy in (known, seen))
    assert np.allclose(first, second)
    assert known["b1"].plays == 0
    assert seen["b1"].plays == 40
    cluster = bt.ATS(DEEP, prior={"d": bt.Beta(90, 10)}, rng=1)
    assert cluster["d1"].mean > cluster["b1"].mean > 0.5


def test_a_new_arm_starts_from_its_cluster() -> None:
    policy = bt.ATS(bt.Tree({"good": ["g1", "g2", "g3"], "poor": ["p1", "p2", "p3"]}), rng=1)
    policy.update_many(["g1", "g2", "g3", "p1", "p2", "p3"], [80, 75, 85, 5, 9, 8], plays=[100] * 6)
    policy.add_arms({"g4": ("good",), "p4": ("poor",)})
    policy.add_arms({"g5": ("good",)}, prior="cluster")
    assert policy["g4"].mean == policy["g5"].mean > 0.7
    assert policy["p4"].mean < 0.2
    policy.add_arms({"p5": ("poor",)}, prior=bt.Beta(40, 10))
    assert policy["p5"].mean > 0.6
    policy.move_arms({"g4": ("poor",)})
    assert policy["g4"].mean == policy["p4"].mean


def test_trust_is_told_in_words() -> None:
    rng = np.random.default_rng(0)
    tree = bt.Tree.from_labels(np.arange(200) % 10)
    clusters, nothing = bt.ATS(tree, rng=1), bt.ATS(tree, rng=1)
    rates = rng.uniform(0.1, 0.9, 10)[np.arange(200) % 10] + 0.05 * rng.standard_normal(200)
    clusters.update_many(tree.arms, rng.binomial(400, rates.clip(0.02, 0.98)), plays=[400] * 200)
    nothing.update_many(tree.arms, rng.binomial(400, rng.uniform(0.1, 0.9, 200)), plays=[400] * 200)
    assert bt.ATS(tree, rng=1).table()[0].trust == "too early to tell"
    told = [row.trust for row in clusters.table()]
    assert told[0].startswith("hardly alike: ±0.2")
    assert told[1].startswith("alike: ±0.0")
    assert told[-1] == ""
    assert nothing.table()[1].trust.startswith("hardly alike: ±0.2")
    assert "trust" not in bt.TSC(tree, rng=1).table()[0]


def test_what_is_computed_is_kept_until_the_next_reward() -> None:
    policy = played_at_random(bt.Beta(1, 1), 2)
    rows = rows_of(policy)
    first = policy.propensities()
    kept = rows._memo
    assert np.array_equal(policy.propensities(), first)
    assert rows._memo is kept
    policy.propensities()[:] = 7  # a copy
    assert np.array_equal(policy.propensities(), first)
    policy.update("b1", 1)
    assert not np.array_equal(policy.propensities(), first)


@pytest.mark.parametrize("bad", [bt.Counts(), bt.Linear(3), "Beta", {None: bt.Beta(1, 1), "b1": bt.Gaussian()}])
def test_other_priors_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidType, match=r"prior"):
        bt.ATS(DEEP, prior=bad)
    policy = bt.ATS(DEEP, rng=1)
    with pytest.raises(InvalidType, match=r"prior"):
        policy.add_arms({"new": ("a",)}, prior=bt.Gaussian())


def test_it_finds_the_structure_and_does_without() -> None:
    """Where clusters tell all it is far better than TS; where they tell nothing it is not much worse (40 runs)."""
    regret = {}
    for name, problem in {"clusters": bt.problems.strong_dominance(), "none": bt.problems.unstructured(50, 10)}.items():
        runs = bt.simulate([bt.ATS, bt.TS], problem, horizon=3_000, seeds=40)
        regret[name] = [row.mean for row in runs.table()]
        se = max(row.se for row in runs.table())
        assert se < 0.2 * max(regret[name])
    table = {name: dict(zip(("ATS", "TS"), values, strict=True)) for name, values in regret.items()}
    assert table["clusters"]["ATS"] < 0.5 * table["clusters"]["TS"]
    assert table["none"]["ATS"] < 1.3 * table["none"]["TS"]


@needs_native
@pytest.mark.parametrize("half_life", [3.0, 300.0, 50_000.0])
@pytest.mark.parametrize("prior", [bt.Beta(1, 1), bt.Gaussian(0.7)], ids=["Beta", "Gaussian"])
def test_choices_follow_the_probabilities_while_evidence_fades(prior: bt.Belief, half_life: float) -> None:
    """60 arms in two clusters; the rewards must be seen at once, not when they have faded by a hundredth."""
    tree = bt.Tree({"A": [f"a{i}" for i in range(30)], "B": [f"b{i}" for i in range(30)]})
    policy = bt.ATS(tree, prior=prior, half_life=half_life, rng=1)
    policy.choose()
    for i in range(200):  # in all too few for a hundredth at the longest half-life
        policy.update("b0", 1)
        policy.update("a0", 0)
        policy.update(f"b{i % 5}", float(i % 2))
    counts = np.bincount(tree.positions(policy.choose_many(50_000)), minlength=60).astype(float)
    assert not differs(counts, policy.propensities())
    with engines.using("readable"):
        copied = bt.from_bytes(policy.to_bytes(), rng=1)
    assert np.abs(copied.propensities() - policy.propensities()).max() < 2e-6
    policy.update_many(["b7"] * 60, [1.0] * 60)
    assert differs(counts, policy.propensities())


@needs_native
def test_a_policy_that_forgets_slowly_goes_on_choosing() -> None:
    tree = bt.Tree({f"c{i}": [f"a{i}"] for i in range(48)})
    policy = bt.ATS(tree, half_life=50_000, rng=1)
    for _ in range(300):
        policy.update(policy.choose(), 0)
    assert policy.table()[0].plays > 298


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("half_life", [None, 3.0])
def test_rewards_of_almost_nothing_stop_no_decision(engine: str, half_life: float | None) -> None:
    with engines.using(engine):
        policy = bt.ATS(DEEP, half_life=half_life, rng=1)
        policy.update_many(["b1"] * 10 + ["b2"], [5e-324] + [0.0] * 9 + [1.0])
        for _ in range(4):
            assert np.isfinite(policy.propensities()).all()
            assert policy.propensities().sum() == pytest.approx(1)
            assert set(policy.choose_many(20)) <= set(DEEP.arms)
            policy.update_many(["c1"] * 1073, np.zeros(1073))  # b2's success fades to less than 1e-300, then to 0


@needs_native
@pytest.mark.parametrize("decisions", [100, 1000])
@pytest.mark.parametrize("prior", [None, bt.Gaussian()])
def test_intervals_hold_the_truth_and_those_of_half_the_width_do_not(prior: Any, decisions: int) -> None:
    """95% intervals of the arms that were tried, within three standard errors over worlds."""
    shares = np.array([covered(prior, seed, decisions) for seed in range(40)])
    mean, se = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert (mean + 3 * se > 0.95).tolist() == [True, False]


def covered(prior: Any, seed: int, decisions: int) -> list[float]:
    """The share of arms tried whose mean is in the interval, and in one with half the standard deviation."""
    rng, labels = np.random.default_rng(seed), np.repeat(np.arange(6), 10)
    means = 1.4 * rng.standard_normal(6)[labels] + 0.35 * rng.standard_normal(60)
    if prior is None:
        means = special.expit(means - 2)
    policy = bt.ATS(bt.Tree.from_labels(labels.tolist()), prior=prior, rng=seed)
    for _ in range(decisions):
        arm: Any = policy.choose()
        policy.update(arm, rng.random() < means[arm] if prior is None else means[arm] + rng.standard_normal())
    rows: Any = policy._state.rows
    leaves = policy.tree.shape.node_of
    leaves = leaves[rows.plays(leaves) > 0]
    truth = means[policy.tree.shape.content[leaves]]
    centre, sd = rows._moments(leaves)
    ends = rows.interval(leaves, None), rows.ends(centre, sd / 2)
    return [float(np.mean((low <= truth) & (truth <= high))) for low, high in ends]


@pytest.mark.parametrize("shift", [-100.0, 1000.0, 1e5])
def test_where_the_noise_is_learned_so_is_the_mean(shift: float) -> None:
    """Amounts far from 0 give the same probabilities as the same amounts around 0."""
    rng = np.random.default_rng(3)
    arms = rng.integers(9, size=60)
    rewards = 0.3 * arms + rng.standard_normal(60)
    near, far = (bt.ATS(DEEP, prior=bt.Gaussian(), rng=1) for _ in range(2))
    names = [DEEP.arms[i] for i in arms]
    near.update_many(names, rewards)
    far.update_many(names, rewards + shift)
    assert np.allclose(near.propensities(), far.propensities(), atol=0.02)
    told = bt.ATS(DEEP, prior=bt.Gaussian(sd=1.0, prior_sd=1.01), rng=1)
    told.update_many(names, rewards + shift)  # a control: here the mean is believed to be near 0
    assert not np.allclose(near.propensities(), told.propensities(), atol=0.02)


def test_priors_of_one_tree_share_the_noise() -> None:
    with pytest.raises(InvalidValue, match="share the sd"):
        bt.ATS(DEEP, prior={None: bt.Gaussian(1.0), DEEP.arms[0]: bt.Gaussian(100.0)})


def test_what_is_not_a_log_is_refused() -> None:
    with pytest.raises(InvalidType, match=r"bt\.read_log"):
        bt.ATS(DEEP).learn("log.csv")  # type: ignore[arg-type]


# HierTS: the same beliefs, with other draws


@pytest.mark.parametrize("engine", ENGINES)
def test_hierarchical_beliefs_are_the_posterior_of_a_tree_that_is_told(engine: str) -> None:
    """Two levels of clusters, the top one first, and a root of which nothing is known."""
    tree = bt.Tree({"a": {"b": ["b1", "b2"], "c": ["c1", "c2"]}, "d": {"e": ["e1", "e2"], "f": ["f1", "f2"]}})
    with engines.using(engine):
        policy = bt.HierTS(tree, arm_sd=0.3, cluster_sd=(2.0, 0.5), noise=1.5, rng=1)
    rng = np.random.default_rng(3)
    arms = [tree.arms[i] for i in rng.integers(0, 6, 30)]
    policy.update_many(arms, 5 + rng.normal(0, 2, 30))
    rows, shape = rows_of(policy), policy.tree.shape
    k = 1.5**2 / np.array([0.3, 0.5, 2.0, np.inf])[rows.height] ** 2
    k[0] = 1.0
    covariance, seen = gaussian_tree(policy, k, 1e6)
    played = shape.node_of[rows.plays(shape.node_of) > 0]
    gain = np.linalg.solve(seen, covariance[played]).T
    mean = gain @ (rows.rewards(played) / rows.plays(played))
    sd = 1.5 * np.sqrt(np.diag(covariance - gain @ covariance[played]))
    for row, expected, spread in zip(policy.table(), mean, sd, strict=True):
        assert row.mean == pytest.approx(expected, rel=1e-5)
        assert row.interval == pytest.approx((expected - 1.96 * spread, expected + 1.96 * spread), rel=1e-3)
    leaves = shape.node_of.astype(np.intp)
    wins = [stats.norm(mean[leaf], sd[leaf]) for leaf in leaves]
    x = np.linspace(-20, 30, 100_001)
    below = np.array([one.cdf(x) for one in wins])
    chances = [(one.pdf(x) * np.delete(below, i, 0).prod(axis=0)).sum() * (x[1] - x[0]) for i, one in enumerate(wins)]
    order = np.argsort(shape.content[leaves])  # independent draws of the plain belief, and no stray
    assert policy.propensities() == pytest.approx(np.array(chances)[order], abs=1e-4)


def test_hierarchical_bayes_learns_its_variances_and_the_noise() -> None:
    tree = bt.Tree({f"c{i}": [f"a{i}-{j}" for j in range(12)] for i in range(12)})
    policy, rng = bt.HierTS(tree, rng=1), np.random.default_rng(0)
    means = rng.normal(0, 2, 12).repeat(12) + rng.normal(0, 0.25, 144)
    policy.update_many(list(tree.arms) * 20, np.tile(means, 20) + rng.standard_normal(144 * 20))
    rows: Any = rows_of(policy)
    assert rows.learned_sd() == pytest.approx(1, abs=0.05)
    k = rows.concentration[:, np.argmax(rows.weights())]
    assert 1 / np.sqrt(k[:2]) == pytest.approx([0.25, 2], rel=1.0)  # the grid is in steps of 2 and 4
    assert policy["c0",].trust
    again = bt.from_bytes(policy.to_bytes(), rng=1)
    assert np.allclose(again.propensities(), policy.propensities())
    told = bt.from_bytes(bt.HierTS(tree, arm_sd=1, cluster_sd=[2], noise=1, rng=1).to_bytes(), rng=1)
    assert repr(told.belief) == repr(bt.HierTS(tree, arm_sd=1, cluster_sd=[2], noise=1, rng=1).belief)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arm_sd": 1.0}, "noise is missing"),
        ({"arm_sd": 1.0, "cluster_sd": 1.0}, "noise is missing"),
        ({"arm_sd": 0.0, "cluster_sd": 1.0, "noise": 1.0}, "arm_sd"),
        ({"arm_sd": 1.0, "cluster_sd": [], "noise": 1.0}, "cluster_sd"),
        ({"arm_sd": 1.0, "cluster_sd": "x", "noise": 1.0}, "cluster_sd"),
        ({"arm_sd": 1.0, "cluster_sd": [1.0, -1.0], "noise": 1.0}, "cluster_sd"),
        ({"prior": bt.Gaussian()}, "no parameter 'prior'"),
    ],
)
def test_what_hierarchical_bayes_refuses(options: dict[str, Any], words: str) -> None:
    with pytest.raises(bt.errors.BanditreeError, match=words):
        bt.HierTS(DEEP, **options)
