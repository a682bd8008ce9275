"""LinATS: beliefs against dense algebra, the same policy whatever the scales, what it learns, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banditree as bt
from banditree.beliefs.adaptive_linear import AdaptiveLinearRows
from banditree.policy import engines
from banditree.stream import native_stream
from tests.support.helpers import ENGINES, needs_native

DEEP = bt.Tree({"a": ["a1", "a2", "a3"], "d": {"b": ["b1", "b2"], "c": ["c1"]}, "e": ["e1"]})
DIM = 3


def data(n: int, seed: int = 0, dim: int = DIM) -> tuple[list[Any], Any, Any]:
    """Arms, contexts and rewards; one arm is never played."""
    rng = np.random.default_rng(seed)
    arms = [DEEP.arms[i] for i in rng.integers(len(DEEP.arms) - 1, size=n)]
    contexts = rng.standard_normal((n, dim)) @ np.diag([1.0, 30.0, 0.1][:dim]) + [0.0, 50.0, 0.0][:dim]
    rewards = 5 + np.array([arm[0] == "a" for arm in arms]) + 0.5 * contexts[:, 0] + rng.standard_normal(n)
    return arms, contexts, rewards


def learned(n: int = 60, *, engine: str = "native", seed: int = 0, **options: Any) -> bt.Policy:
    with engines.using(engine if bt.engine() == "native" else "readable"):
        policy = bt.LinATS(DEEP, dim=DIM, rng=3, **options)
    arms, contexts, rewards = data(n, seed)
    policy.update_many(arms, rewards, contexts=contexts)
    return policy


def dense(rows: AdaptiveLinearRows, copy: int, widths: Any) -> tuple[Any, Any, float]:
    """All coefficients of one copy as one normal vector: mean and covariance of (nodes, p), and the log evidence.

    ``widths`` are the standard deviations of nodes around their parents, in units of the noise: (nodes, p).
    """
    shape, p, sums = rows.shape, rows.dim + 1, rows.sums()
    n = shape.n_nodes
    prior, gram, moment = np.zeros((n, p, n, p)), np.zeros((n, p, n, p)), np.zeros((n, p))
    paths = [set(shape.path_up(node)) for node in range(n)]
    for v in range(n):
        for u in range(n):
            prior[v, range(p), u, range(p)] = sum((widths[w] ** 2 for w in paths[v] & paths[u]), start=np.zeros(p))
    leaves = shape.node_of.astype(np.intp)
    a, b = rows._read(leaves, sums.standard)
    for leaf, of_arm, heard in zip(leaves, a, b, strict=True):
        gram[leaf, :, leaf, :], moment[leaf] = of_arm, heard
    change = np.eye(n * p) + gram.reshape(n * p, n * p) @ prior.reshape(n * p, n * p)
    covariance = prior.reshape(n * p, n * p) @ np.linalg.inv(change)
    mean = covariance @ moment.ravel()
    log = 0.5 * moment.ravel() @ mean / sums.variance[copy] - 0.5 * np.linalg.slogdet(change)[1]
    return mean.reshape(n, p), covariance.reshape(n, p, n, p), float(log)


@pytest.mark.parametrize("copy", [3, 37, 70, 92])
def test_beliefs_are_those_of_dense_algebra(copy: int) -> None:
    """Levels and slopes of all nodes at once; a stray is an arm whose own level is free."""
    rows: Any = learned(engine="readable")._state.rows
    shape, context = rows.shape, np.array([0.3, 70.0, -0.1])
    widths = np.empty((shape.n_nodes, DIM + 1))
    for node in range(1, shape.n_nodes):
        h = rows.height[node]
        widths[node] = [rows.level_width[h, copy], *[rows.slope_width[h, copy]] * DIM]
    level, slope = rows._root_widths()
    widths[0] = [level[copy], *[slope[copy]] * DIM]
    mean, covariance, log = dense(rows, copy, widths)
    z, noise = rows._standardised(context, rows.standard()), rows.sums().variance[copy]
    nodes = np.arange(shape.n_nodes)
    one = next(iter(rows.arms(nodes, context, np.array([copy]))))
    assert one.mean == pytest.approx(mean @ z, rel=1e-6)
    assert one.sd == pytest.approx([np.sqrt(noise * (z @ covariance[v, :, v] @ z)) for v in nodes], rel=1e-6)
    leaf = int(shape.node_of[1])
    freed = widths.copy()
    freed[leaf, 0] *= 4
    assert np.all(np.isclose(one.odds[shape.node_of[-1]], 4 / 7))  # of an arm that nothing is known about
    stray_mean, stray_covariance, stray_log = dense(rows, copy, freed)
    # Its cluster is believed as if it were none: so far is the closed form from the whole truth.
    assert one.stray_mean[leaf] == pytest.approx(stray_mean[leaf] @ z, abs=0.35 * one.stray_sd[leaf])
    assert one.stray_sd[leaf] == pytest.approx(np.sqrt(noise * (z @ stray_covariance[leaf, :, leaf] @ z)), rel=0.2)
    assert np.log(one.odds[leaf] / (4 / 7)) == pytest.approx(stray_log - log, abs=1.5)


@needs_native
@pytest.mark.parametrize("options", [{}, {"half_life": 25.0}, {"explore": 0.2}])
def test_both_engines_choose_alike_draw_for_draw(options: dict[str, Any]) -> None:
    with engines.using("native"):
        native = bt.LinATS(DEEP, dim=DIM, rng=9, **options)
    with engines.using("readable"):
        readable = bt.LinATS(DEEP, dim=DIM, rng=native_stream(np.random.SeedSequence(9)), **options)
    arms, contexts, rewards = data(80)
    for t, (arm, x, reward) in enumerate(zip(arms, contexts, rewards, strict=True)):
        assert native.choose(context=x) == readable.choose(context=x)
        for policy in (native, readable):
            policy.update(arm, reward, x) if t % 3 else policy.update_many([arm], [2 * reward], plays=[2], contexts=[x])
    x = contexts[0]
    assert native.slate(4, context=x) == readable.slate(4, context=x)
    np.testing.assert_allclose(native.propensities(context=x), readable.propensities(context=x), atol=1e-9)
    np.testing.assert_allclose(list(native.chances(x).values()), list(readable.chances(x).values()), atol=1e-9)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [
        ((4.0, 0.25, 16.0), (0.0, 0.0, 0.0)),
        ((10.0, 3.0, 0.01), (0.0, 0.0, 0.0)),
        ((1.0, 1.0, 1.0), (64.0, -128.0, 8.0)),
    ],
)
def test_the_scale_of_features_makes_no_difference(scale: Any, shift: Any) -> None:
    """To the last bits for powers of two; else only by the rounding of scales, which changes widths by up to a half."""
    arms, contexts, rewards = data(200)
    one, other = bt.LinATS(DEEP, dim=DIM, rng=1), bt.LinATS(DEEP, dim=DIM, rng=1)
    changed = contexts * scale + shift
    one.update_many(arms, rewards, contexts=contexts)
    other.update_many(arms, rewards, contexts=changed)
    exact = all(np.log2(factor) % 1 == 0 for factor in scale)
    for x, y in zip(contexts[:5], changed[:5], strict=True):
        here, there = one.table(context=x), other.table(context=y)
        leeway = 1e-6 if exact else 0.15
        np.testing.assert_allclose([row.mean for row in here], [row.mean for row in there], atol=leeway)


def test_constant_and_empty_features_and_units_of_rewards_make_no_difference() -> None:
    arms, contexts, rewards = data(120)
    plain = bt.LinATS(DEEP, dim=DIM, rng=1)
    padded = bt.LinATS(DEEP, dim=DIM + 2, rng=1)
    cents = bt.LinATS(DEEP, dim=DIM, rng=1)
    more = np.column_stack([contexts, np.full(120, 7.0), np.zeros(120)])
    plain.update_many(arms, rewards, contexts=contexts)
    padded.update_many(arms, rewards, contexts=more)
    cents.update_many(arms, 1024 * rewards, contexts=contexts)
    x = contexts[3]
    np.testing.assert_allclose(plain.propensities(x), padded.propensities(np.append(x, [7.0, 0.0])), atol=1e-9)
    np.testing.assert_allclose(plain.propensities(x), cents.propensities(x), atol=1e-9)
    dollars, in_cents = plain.table(context=x), cents.table(context=x)
    np.testing.assert_allclose([1024 * row.mean for row in dollars], [row.mean for row in in_cents], rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_rewards_far_from_zero_keep_their_digits(offset: float) -> None:
    arms, contexts, rewards = data(100)
    near, far = bt.LinATS(DEEP, dim=DIM, rng=1), bt.LinATS(DEEP, dim=DIM, rng=1)
    near.update_many(arms, rewards, contexts=contexts)
    far.update_many(arms, rewards + offset, contexts=contexts)
    np.testing.assert_allclose(near.propensities(contexts[0]), far.propensities(contexts[0]), atol=0.01)


def test_a_row_of_plays_says_about_the_noise_what_one_reward_does() -> None:
    arms, contexts, rewards = data(40)
    summed, spread = bt.LinATS(DEEP, dim=DIM, rng=1), bt.LinATS(DEEP, dim=DIM, rng=1)
    summed.update_many(arms, 3 * rewards, plays=[3] * 40, contexts=contexts)
    for _ in range(3):
        spread.update_many(arms, rewards, contexts=contexts)
    one, other = (policy._state.rows for policy in (summed, spread))
    np.testing.assert_allclose(one.gram, other.gram)  # type: ignore[attr-defined]
    np.testing.assert_allclose(one.moment, other.moment)  # type: ignore[attr-defined]
    assert one.draws[0] == 40 and other.draws[0] == 120  # type: ignore[attr-defined]  # noqa: PT018
    np.testing.assert_allclose(one.squares, other.squares)  # type: ignore[attr-defined]
    assert summed.table()[0].plays == 120


def test_it_learns_that_tastes_are_shared_and_levels_are_not() -> None:
    tree = bt.Tree({f"c{i}": [f"c{i}-{j}" for j in range(6)] for i in range(5)})
    policy, rng = bt.LinATS(tree, dim=2, rng=1), np.random.default_rng(0)
    assert policy.table()[0].trust == "too early to tell"
    level = dict(zip(tree.arms, rng.standard_normal(30), strict=True))
    arms = list(tree.arms) * 20
    contexts = rng.standard_normal((600, 2))
    rewards = [level[arm] for arm in arms] + contexts @ [1.0, -1.0] + rng.standard_normal(600)
    policy.update_many(arms, rewards, contexts=contexts)
    trust = policy["c0",].trust
    assert trust.startswith("levels hardly alike: ±") or trust.startswith("levels loosely alike: ±")
    assert "; slopes shared: ±" in trust or "; slopes alike: ±" in trust
    gap, slope = (float(part.split("±")[1]) for part in trust.split(";"))
    assert 0.5 < gap < 2
    assert slope < 0.15
    assert policy["c0-1"].trust == ""
    # A new arm starts from its cluster, and a new visitor's taste from everyone's.
    policy.add_arms({"new": ("c0",)})
    liked, disliked = np.array([2.0, -2.0]), np.array([-2.0, 2.0])
    table = {
        row.path[-1]: (row.mean, policy.table(context=disliked)[i].mean)
        for i, row in enumerate(policy.table(context=liked))
        if row.path
    }
    assert table["new"][0] - table["new"][1] == pytest.approx(8, abs=1.0)
    assert policy.best(context=liked) == max(level, key=lambda arm: level[arm])


def test_what_is_known_beforehand() -> None:
    x = np.array([1.0, 2.0, -1.0])
    slopes = [0.5, -0.2, 0.1]
    known = bt.LinATS(DEEP, dim=DIM, prior={"a": bt.Linear(DIM + 1, mean=[*slopes, 3.0], precision=1000.0)}, rng=1)
    arms, contexts, rewards = data(30)
    others = [i for i, arm in enumerate(arms) if arm[0] != "a"]
    known.update_many([arms[i] for i in others], 0.1 * (rewards[others] - 5), contexts=contexts[others] / [1, 30, 0.1])
    row = known.table(context=x)[1]
    assert row.path == ("a",)
    assert row.plays == 0
    assert row.mean == pytest.approx(3 + np.dot(slopes, x), abs=0.3)
    root = bt.LinATS(DEEP, prior=bt.Linear(DIM, mean=slopes, precision=50.0), rng=1)
    assert root.dim == DIM
    again = bt.from_bytes(known.to_bytes(), rng=1)
    assert repr(again.table(context=x)) == repr(known.table(context=x))
    known.add_arms({"a9": ("a",)}, prior=bt.Linear(DIM, mean=slopes, precision=5.0))
    assert known["a9"].plays == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "LinATS needs features"),
        ({"dim": 0}, "dim=0"),
        ({"dim": 3, "prior": bt.Beta(1, 1)}, "bt.Linear"),
        ({"dim": 3, "prior": bt.Linear(5)}, "5 coefficients"),
        ({"dim": 3, "prior": bt.Linear(3, v=0.5)}, "learns the noise"),
        (
            {"dim": 3, "prior": bt.Linear(3, precision=1e-30)},
            "precision=1e-30 must be from 1e-06 to .*leave out a prior",
        ),
        ({"dim": 3, "features": bt.Features({"x": bool})}, "leave out dim="),
        ({"features": bt.Features({"x": bool}), "prior": bt.Linear(3)}, "3 coefficients"),
        ({"dim": 3, "prior": {"a": bt.Linear(3), "zz": bt.Linear(3)}}, "zz"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(bt.errors.BanditreeError, match=words):
        bt.LinATS(DEEP, **options)


@pytest.mark.parametrize("engine", ENGINES)
def test_moved_arms_conserve_and_a_new_tree_is_as_from_the_start(engine: str) -> None:
    policy, x = learned(engine=engine), np.array([0.1, 40.0, 0.2])
    policy.move_arms({"b2": ("a",), "e1": ("d", "b")})
    policy.add_arms({"n1": ("a",)})
    policy.remove_arms(["c1"])
    fresh = bt.LinATS(policy.tree, dim=DIM, rng=1)
    arms, contexts, rewards = data(60)
    kept = [i for i, arm in enumerate(arms) if arm != "c1"]
    fresh.update_many([arms[i] for i in kept], rewards[kept], contexts=contexts[kept])
    np.testing.assert_allclose(policy.propensities(x), fresh.propensities(x), atol=1e-9)


@pytest.mark.parametrize(
    "rewards",
    [
        np.zeros(20),
        np.ones(20),
        np.r_[np.zeros(19), 1.0],
        np.full(20, 1e-100),
        1e90 * np.arange(20.0),
        np.r_[1e100, np.zeros(19)],
    ],
)
def test_extreme_rewards_and_contexts_give_probabilities(rewards: Any) -> None:
    arms, contexts, _ = data(20)
    for factor in (0.0, 1e-25, 1.0, 1e25):
        policy = bt.LinATS(DEEP, dim=DIM, rng=1)
        policy.update_many(arms, rewards, contexts=contexts * factor)
        chance = policy.propensities(contexts[0] * factor)
        assert np.isfinite(chance).all()
        assert chance.sum() == pytest.approx(1)
        assert policy.choose(context=contexts[0] * factor) in DEEP


@needs_native
def test_it_beats_its_rivals_where_arms_share_and_is_not_behind_where_they_do_not() -> None:
    """Means over 10 seeds; the margins are several standard errors."""
    shared = bt.problems.mixed_effects(60, 6, 3, cluster_sd=(0.5, 0.1), arm_sd=(0.3, 0.02), constant=True)
    none = bt.problems.mixed_effects(60, 6, 3, cluster_sd=(0.0, 0.0), arm_sd=(0.5, 0.3), constant=True)
    regret = {}
    for name, problem in {"shared": shared, "none": none}.items():
        runs = bt.simulate([bt.LinATS, bt.LinTS, bt.LinTSC], problem, horizon=1500, seeds=30, rng=5)
        assert runs.engine["LinATS"] == "native"
        regret[name] = {policy: float(runs.regret[policy][:, -1].mean()) for policy in runs.policies}
    assert regret["shared"]["LinATS"] < 0.6 * min(regret["shared"]["LinTS"], regret["shared"]["LinTSC"])
    assert regret["none"]["LinATS"] < 0.9 * regret["none"]["LinTS"]


def test_intervals_cover_the_truth() -> None:
    """95% intervals of arms that were tried, for visitors at random: at least 85%."""
    problem = bt.problems.mixed_effects(30, 5, 3)
    held = []
    for seed in range(6):
        instance: Any = problem.instance(seed)
        rng = np.random.default_rng(seed)
        policy = bt.LinATS(instance.tree, dim=3, rng=seed)
        for _ in range(300):
            x = instance.context(rng)
            arm = policy.choose(context=x)
            policy.update(arm, instance.reward(arm, rng, x), x)
        for _ in range(10):
            x = instance.context(rng)
            rows = [row for row in policy.table(context=x) if len(row.path) == 2 and row.plays]
            held += [row.interval[0] <= instance.expected(row.path[-1], x) <= row.interval[1] for row in rows]
    assert np.mean(held) > 0.85
    assert np.mean(held) < 0.999  # and not because they are endless


def test_memory_of_a_played_arm_is_below_ten_kilobytes() -> None:
    """The table of evidence has dim^2 / 2 numbers for each node, and the native engine as many again."""
    rows: Any = bt.LinATS(bt.Tree(10), dim=10)._state.rows
    per_node = rows.table.shape[1] * 8
    assert 2 * per_node < 2_000


@needs_native
@pytest.mark.parametrize("decisions", [100, 600])
def test_intervals_hold_the_truth_where_its_widths_are_between_those_of_the_copies(decisions: int) -> None:
    """95% intervals within three standard errors; those of the likeliest copy alone are not."""
    problem = bt.problems.mixed_effects(60, 6, 3, cluster_sd=(1.4, 0.3), arm_sd=(0.35, 0.1))
    shares = np.array([covered(problem, seed, decisions) for seed in range(60)])
    mean, se = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    assert (mean + 3 * se > 0.95).tolist() == [True, False]


def covered(problem: Any, seed: int, decisions: int) -> list[float]:
    """The share of arms tried whose mean is in the interval, and in one copy's."""
    rng = np.random.default_rng(seed)
    instance = problem.instance(rng)
    policy = bt.LinATS(instance.tree, dim=3, rng=seed)
    for _ in range(decisions):
        x = instance.context(rng)
        arm = policy.choose(x)
        policy.update(arm, instance.reward(arm, rng, x), x)
    rows: Any = policy._state.rows
    tried = np.flatnonzero(rows.plays(policy.tree.shape.node_of) > 0)
    leaves, likeliest = policy.tree.shape.node_of[tried], np.array([int(np.argmax(rows.weights()))])
    held = []
    for _ in range(10):
        x = instance.context(rng)
        truth = np.array([instance.expected(policy.tree.arms[arm], x) for arm in tried])
        ends = [rows.interval(leaves, x[None])]
        one = next(iter(rows.arms(leaves, x, likeliest)))
        centre = one.mean + rows.standard().origin
        ends.append((centre - 1.96 * one.sd, centre + 1.96 * one.sd))
        held.append([np.mean((low <= truth) & (truth <= high)) for low, high in ends])
    return list(np.mean(held, axis=0))


@needs_native
def test_what_is_kept_between_decisions_is_what_the_readable_engine_computes_anew() -> None:
    """Clusters with many arms and with few, in copies that take turns, while evidence changes."""
    tree = bt.Tree({"many": {"most": [f"m{i}" for i in range(30)], "some": ["s0", "s1"]}, "few": ["f0", "f1", "f2"]})
    rng = np.random.default_rng(4)
    policies = []
    for engine in ("readable", "native"):
        with engines.using(engine):
            policies.append(bt.LinATS(tree, dim=2, rng=1))
    nodes = np.arange(tree.shape.n_nodes)
    for step in range(20):
        for _ in range(1 if step else 80):
            arm, x, reward = tree.arms[rng.integers(len(tree.arms))], rng.standard_normal(2), rng.standard_normal()
            for policy in policies:
                policy.update(arm, reward, x)
        x = rng.standard_normal(2)
        for copies in ([5, 40], [5, 90], [1, 2, 3, 5]):
            rows: list[Any] = [policy._state.rows for policy in policies]
            readable, native = (list(each.arms(nodes, x, np.array(copies))) for each in rows)
            assert np.allclose(readable, native, rtol=1e-9, atol=1e-11), (step, copies)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("half_life", [None, 25.0])
def test_what_remains_of_rewards_of_0_or_1_is_within_0_and_1(engine: str, half_life: float | None) -> None:
    with engines.using(engine):
        rates, amounts = (bt.LinATS(DEEP, dim=1, rng=1, half_life=half_life) for _ in range(2))
    rng = np.random.default_rng(5)
    for t in range(30):
        arm, x, reward = DEEP.arms[t % 6], rng.standard_normal(1), float(rng.random() < 0.5)
        rates.update(arm, reward, x)
        amounts.update(arm, 10 * reward, x)
    assert 0 < rates.remaining([8.0]).mean <= rates.remaining([8.0]).high <= 1
    assert amounts.remaining([8.0]).high > 10  # amounts have no such bounds
