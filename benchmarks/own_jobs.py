"""Jobs of banditree alone, inside its worker: batches, whole runs, growth, threads and arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

import banditree as bt
from benchmarks.contestants import Agent
from benchmarks.ours import Nodes, beta_agent, linear_agent, ucb_agent

# ---------------------------------------------------------------- trees


def fan_out(n_arms: int, branching: int) -> bt.Tree:
    """Arms 0, 1, ... in clusters of ``branching`` neighbours, those in clusters of ``branching``, up to the root."""
    sizes = []
    size = branching
    while size < n_arms:
        sizes.append(size)
        size *= branching
    sizes.reverse()
    return bt.Tree.from_paths([(*(arm // size for size in sizes), arm) for arm in range(n_arms)])


def clusters(n_arms: int, n_clusters: int) -> bt.Tree:
    """Arms 0, 1, ... in this many clusters of neighbours."""
    return bt.Tree.from_labels([arm * n_clusters // n_arms for arm in range(n_arms)])


# ---------------------------------------------------------------- arrays


def arrays(contestant: object, *, n_arms: int) -> dict[str, float]:
    labels = np.arange(n_arms) // max(1, round(n_arms**0.5))
    begin = perf_counter()
    tree = bt.Tree.from_labels(labels)
    grown = perf_counter()
    policy = bt.TSC(tree, rng=0)
    policy.update(policy.choose(), 1)
    ready = perf_counter()
    shape = tree.shape
    skeleton = sum(array.nbytes for array in (shape.start, shape.parent, shape.content, shape.node_of, shape.levels))
    beliefs = sum(array.nbytes for array in policy._state.rows.native_arrays() if isinstance(array, np.ndarray))
    return {
        "tree": skeleton / n_arms,
        "beliefs": beliefs / n_arms,
        "grow": grown - begin,
        "policy": ready - grown,
    }


# ---------------------------------------------------------------- many arms


def build(contestant: object, *, how: str, n_arms: int) -> dict[str, float]:
    """Build a tree: one level of clusters, or a binary tree from a nested mapping or a linkage matrix."""
    labels, halves, linked = _labels(n_arms), _halves(0, n_arms), _linkage(n_arms)
    begin = perf_counter()
    if how == "labels":
        bt.Tree.from_labels(labels)
    else:
        bt.Tree(halves) if how == "nested" else bt.Tree.from_linkage(linked)
    return {"seconds": perf_counter() - begin}


@cache
def _labels(n_arms: int) -> Any:
    return (np.arange(n_arms) // max(1, round(n_arms**0.5))).tolist()


@cache
def _halves(start: int, stop: int) -> Any:
    if stop - start <= 2:
        return list(range(start, stop))
    middle = (start + stop) // 2
    return {part[0]: _halves(*part) for part in ((start, middle), (middle, stop))}


@cache
def _linkage(n_arms: int) -> Any:
    """Neighbours joined in pairs, those in pairs, and so on."""
    rows: list[tuple[float, ...]] = []
    open_ = list(range(n_arms))
    while len(open_) > 1:
        pairs = list(zip(open_[::2], open_[1::2], strict=False))
        joined = [n_arms + len(rows) + at for at in range(len(pairs))]
        rows += [(*pair, float(len(rows) + at), 2.0) for at, pair in enumerate(pairs)]
        open_ = joined + open_[2 * len(pairs) :]
    return np.array(rows)


def change(contestant: object, *, what: str, policy: str, n_arms: int) -> dict[str, float]:
    """Time a change of one arm among many, a decision with its probability, or the table."""
    played, arms = _played(policy, n_arms), iter(range(n_arms, n_arms + 100))
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: played.add_arms({next(arms): (0,)}),
        "move": lambda: played.move_arms({0: (1,)}),
        "remove": lambda: played.remove_arms([played.tree.arms[-1]]),
        "table": played.table,
        "choose": played.choose,
        "decide": played.decide,
    }
    calls[what]()
    begin = perf_counter()
    for _ in range(3):
        calls[what]()
    return {"seconds": (perf_counter() - begin) / 3}


@cache
def _played(policy: str, n_arms: int) -> bt.Policy:
    """A policy in whose tree every arm was tried a few times."""
    rng = np.random.default_rng(0)
    made: bt.Policy = getattr(bt, policy)(bt.Tree.from_labels(_labels(n_arms)), rng=0)
    arms = rng.integers(n_arms, size=3 * n_arms)
    made.update_many(arms, (rng.random(3 * n_arms) < 0.1).astype(float))
    return made


# ---------------------------------------------------------------- batches


def batches(contestant: object, *, what: str, n: int, size: int, seed: int) -> dict[str, float]:
    call = _update if what == "update" else _choose
    return {"seconds": call(n, size, seed) / n}


def _update(n: int, size: int, seed: int) -> float:
    """Seconds to learn n rewards on 10,000 arms in 100 clusters, ``size`` of them in a call."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(10_000) // 100), rng=seed)
    arms, rewards = rng.integers(10_000, size=n), rng.integers(2, size=n).astype(float)
    if size > 1:
        batches = [(arms[at : at + size], rewards[at : at + size]) for at in range(0, n, size)]
        begin = perf_counter()
        for batch in batches:
            policy.update_many(*batch)
        return perf_counter() - begin
    one_by_one = list(zip(arms.tolist(), rewards.tolist(), strict=True))
    update_one = policy.update
    begin = perf_counter()
    for arm, reward in one_by_one:
        update_one(arm, reward)
    return perf_counter() - begin


def _choose(n: int, size: int, seed: int) -> float:
    """Seconds for n decisions of TSC on 1,000 arms in 32 clusters that have seen 3,000 rewards: one by one, or all."""
    rng = np.random.default_rng(seed)
    policy = bt.TSC(bt.Tree.from_labels(np.arange(1000) % 32), rng=seed)
    policy.update_many(rng.integers(1000, size=3000), rng.integers(2, size=3000).astype(float))
    choose_one = policy.choose
    begin = perf_counter()
    if size > 1:
        policy.choose_many(n)
    else:
        for _ in range(n):
            choose_one()
    return perf_counter() - begin


# ---------------------------------------------------------------- growth


HORIZON = 3000
FAN_OUT = 16


def growth(contestant: object, *, policy: str, n_arms: int, seed: int, seeds: int) -> dict[str, float]:
    """Seconds per step over ``seeds`` runs of 3,000 steps; building the tree and the policy is not counted."""
    if policy == "category":
        problem, factory = _category(n_arms), bt.ALGORITHMS["TSC"]
    else:
        problem, factory = _sorted(n_arms, policy), bt.ALGORITHMS[policy]
    runs = bt.simulate({policy: factory}, problem, horizon=HORIZON, seeds=seeds, rng=seed, jobs=1, progress=False)
    return {"seconds": runs.seconds[policy] / (seeds * HORIZON), "evaluations": float(runs.evaluations[policy].mean())}


def _sorted(n_arms: int, policy: str) -> Any:
    """Means from the best to the worst, so that neighbours are similar and the best arm is in a full cluster."""
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, n_arms))[::-1]
    return bt.problems.bernoulli(_tree(n_arms, policy == "HTS"), means)


@cache  # a tree of a million arms takes seconds to build, and every round needs it
def _tree(n_arms: int, deep: bool) -> bt.Tree:
    """Fan-out 16, or sqrt N clusters."""
    return fan_out(n_arms, FAN_OUT) if deep else clusters(n_arms, round(n_arms**0.5))


def _category(n_arms: int) -> Any:
    """Nineteen categories of 50 arms, and one of ``n_arms`` that is better than them all."""
    tree = bt.Tree({"wide": list(range(n_arms)), **{f"c{i}": [f"{i}-{j}" for j in range(50)] for i in range(19)}})
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.uniform(0.5, 0.8, n_arms), rng.uniform(0.1, 0.3, 19 * 50)])
    return bt.problems.bernoulli(tree, means)


# ---------------------------------------------------------------- simulate


@dataclass(frozen=True)
class Whole:
    """A policy on a problem, and the loop that does the same in NumPy on the tree cut at ``depth``."""

    policy: Callable[..., Any]
    problem: Callable[[], Any]
    loop: Callable[[Nodes, int], Agent]
    depth: int | None


def _strong(n_arms: int, n_clusters: int) -> Any:
    return bt.problems.strong_dominance(n_arms=n_arms, n_clusters=n_clusters, n_best=n_clusters)


def _sorted_fan_out(n_arms: int, branching: int) -> Any:
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, n_arms))
    return bt.problems.bernoulli(fan_out(n_arms, branching), means)


_small, _large = partial(_strong, 100, 10), partial(_strong, 1000, 32)
_linear = partial(bt.problems.linear, n_arms=400, n_clusters=20, spread=0.5)
_lints = partial(linear_agent, dim=5, v=1.0)

CASES = {
    "TS, 100 arms": Whole(bt.TS, _small, beta_agent, 0),
    "TS, 1,000 arms": Whole(bt.TS, _large, beta_agent, 0),
    "UCB1, 1,000 arms": Whole(bt.UCB1, _large, ucb_agent, 0),
    "TSC, 1,000 arms in 32 clusters": Whole(bt.TSC, _large, beta_agent, 1),
    "HTS, 4,096 arms, fan-out 16": Whole(bt.HTS, partial(_sorted_fan_out, 4096, 16), beta_agent, None),
    "HTS, 1,024 arms, binary": Whole(bt.HTS, partial(bt.problems.hierarchical_dominance, 1024), beta_agent, None),
    "LinTS, 400 arms, 5 features": Whole(partial(bt.LinTS, dim=5), _linear, _lints, 0),
    "LinTSC, 400 arms in 20 clusters": Whole(partial(bt.LinTSC, dim=5), _linear, _lints, 1),
}


def simulate(contestant: object, *, case: str, how: str, seed: int, seeds: int = 1) -> dict[str, Any]:
    """Seconds per step over ``seeds`` runs of 3,000 steps.

    Building the policy is not counted, nor what all policies share: the instance, and with contexts the contexts and
    the best arm's value in each.
    """
    whole = CASES[case]
    if how == "native":
        problem = whole.problem()
        runs = bt.simulate(
            {"policy": whole.policy}, problem, horizon=HORIZON, seeds=seeds, rng=seed, jobs=1, progress=False
        )
        regrets = runs.regret["policy"][:, -1].tolist()
        return {
            "seconds": runs.seconds["policy"] / (seeds * HORIZON),
            "regrets": regrets,
            "engine": runs.engine["policy"],
        }
    seconds, regret = _numpy_run(whole, seed)
    return {"seconds": seconds / HORIZON, "regrets": [regret], "engine": "NumPy"}


def _numpy_run(whole: Whole, seed: int) -> tuple[float, float]:
    instance = whole.problem().instance(seed)
    tree = instance.tree if whole.depth is None else instance.tree.cut(whole.depth)
    agent = whole.loop(Nodes.of(tree), seed)
    rng = np.random.default_rng(seed)
    return (_flat_run if instance.theta is None else _contextual_run)(agent, instance, rng)


def _flat_run(agent: Agent, instance: Any, rng: np.random.Generator) -> tuple[float, float]:
    choose, update, random = agent.choose, agent.update, rng.random
    means: list[float] = instance.means.tolist()
    best, regret = max(means), 0.0
    begin = perf_counter()
    for _ in range(HORIZON):
        arm = choose()
        update(arm, 1 if random() < means[arm] else 0)
        regret += best - means[arm]
    return perf_counter() - begin, regret


def _contextual_run(agent: Agent, instance: Any, rng: np.random.Generator) -> tuple[float, float]:
    choose, update, random, theta, regret = agent.choose, agent.update, rng.random, instance.theta, 0.0
    contexts = rng.standard_normal((HORIZON, theta.shape[1]))
    best: list[float] = (contexts @ theta.T).max(axis=1).tolist()
    begin = perf_counter()
    for x, highest in zip(contexts, best, strict=True):
        arm = choose(x)
        expected = float(theta[arm] @ x)
        update(arm, 2 * expected * random(), x)  # uniform between 0 and twice the mean
        regret += highest - expected
    return perf_counter() - begin, regret


# ---------------------------------------------------------------- threads


def threads(contestant: object, *, jobs: int, seeds: int, horizon: int, seed: int) -> dict[str, float]:
    means = np.sort(np.random.default_rng(0).uniform(0.1, 0.8, 1000))
    problem = bt.problems.bernoulli(clusters(1000, 32), means)
    begin = perf_counter()
    bt.simulate([bt.TSC], problem, horizon=horizon, seeds=seeds, rng=seed, jobs=jobs, progress=False)
    return {"seconds": perf_counter() - begin}


# ---------------------------------------------------------------- decisions, logs


def decide(contestant: object, *, policy: str, n_arms: int, seed: int) -> dict[str, float]:
    """CPU seconds of a choice, of the first decision with its probability after a reward, and of the next ones.

    The policy has seen 3,000 rewards of arms in sqrt N clusters that are clicked at rates of their own.
    """
    rng = np.random.default_rng(seed)
    linear = {"dim": 5} if policy.startswith("Lin") else {}
    built = getattr(bt, policy)(clusters(n_arms, round(n_arms**0.5)), rng=seed, **linear)
    rates = rng.beta(1, 15, n_arms)
    contexts = rng.standard_normal((HORIZON, 5))
    seen = [(x,) if linear else () for x in contexts]
    for x in seen:
        arm = built.choose(*x)
        built.update(arm, int(rng.random() < rates[arm]), *x)
    few = seen[:200]
    begin = process_time()
    for x in few:
        built.choose(*x)
    chosen = process_time() - begin
    first = next_ones = 0.0
    for x in few[:20]:
        built.update(built.choose(*x), 0, *x)
        begin = process_time()
        built.decide(*x)
        first += process_time() - begin
        begin = process_time()
        for _ in range(10):
            built.decide(*x)
        next_ones += process_time() - begin
    return {"choose": chosen / len(few), "first": first / 20, "next": next_ones / 200}


def logs(contestant: object, *, rows: int, seed: int) -> dict[str, float]:
    """Seconds to read a log from arrays, to learn it, and to evaluate a policy by all estimators."""
    rng = np.random.default_rng(seed)
    tree = clusters(100, 10)
    arms = rng.integers(100, size=rows)
    table = {"arm": arms, "reward": (rng.random(rows) < 0.05 + arms / 1000).astype(float), "p": np.full(rows, 0.01)}
    begin = perf_counter()
    log = bt.read_log(table, arm="arm", reward="reward", propensity="p")
    read = perf_counter()
    policy = bt.ATS(tree, rng=seed)
    policy.learn(log)
    learned = perf_counter()
    bt.evaluate(log, policy, tree=tree, behaviour=np.full(100, 0.01), rng=seed)
    return {"read": read - begin, "learn": learned - read, "evaluate": perf_counter() - learned}


ROWS = """
    SELECT visit, arm, (hash(visit, 1) % 1000 < 50 + arm)::INT AS click, 0.01 AS p
    FROM (SELECT range AS visit, (hash(range) % 100)::INT AS arm FROM range({rows}))
"""


def lake(contestant: object, *, rows: int) -> dict[str, float]:
    """Seconds for ATS to learn a log that DuckDB makes up on the way, and for its evaluation; bytes of memory."""
    import resource

    import duckdb

    duckdb.execute("SET enable_progress_bar = false")
    tree = clusters(100, 10)
    log = bt.read_log(duckdb.sql(ROWS.format(rows=rows)), arm="arm", reward="click", propensity="p", fold="visit")
    begin = perf_counter()
    policy = bt.ATS(tree, rng=0)
    policy.learn(log)
    learned = perf_counter()
    result = bt.evaluate(log, policy, tree=tree)
    assert result.rows == rows
    taken = {"learn": learned - begin, "evaluate": perf_counter() - learned}
    return taken | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0}
