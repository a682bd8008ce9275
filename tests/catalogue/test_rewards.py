"""Rewards that are not rates, logs with one row per event, and arms made of several columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import banditree as bt
from banditree.catalogue import Catalogue, CatalogueError, inspect, read_catalogue, simulate
from banditree.catalogue.posterior import Posterior
from banditree.catalogue.simulation import parse_candidates
from banditree.errors import InvalidValue
from banditree.policy.algorithms import without_contexts

Floats = NDArray[np.float64]
TREE = bt.Tree({f"k{k}": [f"i{k}{i}" for i in range(8)] for k in range(6)})
SD = 9.0


def made(rng: np.random.Generator, between: float = 5.0, inside: float = 2.0) -> tuple[Floats, Catalogue]:
    """True means from the model, and a catalogue of rewards around them: (arms,)."""
    true = 20 + np.repeat(between * rng.standard_normal(6), 8) + inside * rng.standard_normal(48)
    plays = rng.integers(2, 60, 48)
    rewards = [mean + SD * rng.standard_normal(n) for mean, n in zip(true, plays, strict=True)]
    mean = [float(item.mean()) for item in rewards]
    sd = [float(item.std(ddof=1)) for item in rewards]
    return true, Catalogue(TREE, plays=plays, reward_mean=mean, reward_sd=sd)


def moved(catalogue: Catalogue, add: float, times: float) -> Catalogue:
    """The same rewards on another scale."""
    assert catalogue.reward_mean is not None
    assert catalogue.reward_sd is not None
    mean, sd = add + times * catalogue.reward_mean, times * catalogue.reward_sd
    return Catalogue(catalogue.tree, plays=catalogue.plays, reward_mean=mean, reward_sd=sd)


def test_another_scale_is_the_same_problem() -> None:
    _, catalogue = made(np.random.default_rng(0))
    for add, times in ((0.0, 1e-9), (-5000.0, 3.0), (1e6, 1e4)):
        other = moved(catalogue, add, times)
        one, two = (item.draws(20, np.random.default_rng(1)) for item in (catalogue, other))
        assert two == pytest.approx(add + times * one, rel=1e-9, abs=1e-9 * times)
        assert catalogue.prior is not None
        assert other.prior is not None
        assert other.prior.sd == pytest.approx(times * (catalogue.prior.sd or 0.0))
        assert other.prior.prior_sd == pytest.approx(times * (catalogue.prior.prior_sd or 0.0))
        assert other.prior.mean == pytest.approx(add + times * catalogue.prior.mean)
        inspection, scaled = inspect(catalogue, worlds=50), inspect(other, worlds=50)
        assert scaled.levels["share"] == pytest.approx(inspection.levels["share"], rel=1e-6)


def test_intervals_hold_what_they_promise() -> None:
    """90% of the true means are in their 90% intervals; of intervals half as wide that is not so."""
    held: dict[float, list[float]] = {1.0: [], 0.5: []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true, catalogue = made(rng)
        draws = catalogue.draws(200, rng)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        middle = (low + high) / 2
        for share, result in held.items():
            result.append(float((np.abs(true - middle) <= share * (high - low) / 2).mean()))
    mean, error = np.mean(held[1.0]), np.std(held[1.0], ddof=1) / np.sqrt(40)
    assert abs(mean - 0.9) < 4 * error + 0.01  # 0.01: quantiles of 200 draws, and a spread that is estimated
    assert np.mean(held[0.5]) < 0.9 - 10 * error


def test_much_data_leaves_nothing_open_and_none_leaves_it_to_the_siblings() -> None:
    tree = bt.Tree({"x": ["a", "b", "new"], "y": ["c", "d"]})
    plays = [10**8, 10**8, 0, 10**8, 10**8]
    catalogue = Catalogue(tree, plays=plays, reward_mean=[1, 2, np.nan, 8, 9], reward_sd=[1, 1, np.nan, 1, 1])
    draws = catalogue.draws(400, np.random.default_rng(0))
    assert np.abs(draws[:, [0, 1, 3, 4]] - [1, 2, 8, 9]).max() < 6e-4  # 6 standard errors of 1e-4
    assert 0 < np.median(draws[:, 2]) < 5  # nearer to 1 and 2 than to 8 and 9
    assert np.isnan(catalogue.rates[2])


def test_the_common_spread_is_pooled() -> None:
    tree = bt.Tree(["a", "b", "c"])
    known = Posterior.normal(tree, np.array([3.0, 5, 1]), np.array([1.0, 2, 3]), np.array([2.0, 1, np.nan]))
    assert known.sd is not None
    assert known.sd**2 == pytest.approx((2 * 4 + 4 * 1) / (2 + 4))
    # Variances (2 * 4 + 10 * 2) / 12, (4 * 1 + 10 * 2) / 14 and 2: an arm counts for plays * 2 / its own.
    assert known.plays == pytest.approx([3 * 2 / (28 / 12), 5 * 2 / (24 / 14), 1.0])
    assert known.totals / known.plays == pytest.approx([1, 2, 3])


@pytest.mark.parametrize("name", without_contexts())
def test_policies_play_with_normal_beliefs(name: str) -> None:
    _, catalogue = made(np.random.default_rng(3))
    (candidate,) = parse_candidates(name, TREE)
    policy = candidate.factory(catalogue.prior)(TREE, rng=0)
    assert catalogue.prior is not None
    assert asdict(policy.belief) == asdict(catalogue.prior)
    assert policy.depth == candidate.factory(None)(TREE, rng=0).depth
    assert "bt.Gaussian(sd=" in candidate.code(catalogue.prior)
    result = simulate(catalogue, horizon=200, policies=name, seeds=2)
    assert np.isfinite(result.runs.regret[candidate.label]).all()


def test_thompson_sampling_learns_on_rewards_in_the_thousands() -> None:
    _, catalogue = made(np.random.default_rng(4))
    result = simulate(moved(catalogue, -5000.0, 1000.0), horizon=4000, policies=["TS"], seeds=8)
    regret = result.runs.regret["TS"].mean(axis=0)  # (times,)
    half = len(regret) // 2
    assert regret[-1] - regret[half] < 0.8 * regret[half]  # flat playing would lose as much again


def test_revenue_is_not_counted_in_rewards_and_the_page_names_the_prior() -> None:
    _, catalogue = made(np.random.default_rng(4))
    result = bt.advise(catalogue, horizon=300, seeds=4, progress=False)
    assert "in reward by not knowing the best arm" in result.sentences[1]
    assert "rewards" not in str(result)
    assert "Policies start without data; their prior is the mean and the spread of all arms." in result.to_html()


def test_a_log_is_the_same_as_its_summary(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    item = rng.integers(0, 12, 500)
    amount = np.round(rng.gamma(2.0, 20.0, 500) + item, 2)
    log = {"item": item.tolist(), "kind": (item % 3).tolist(), "amount": amount.tolist()}
    events = read_catalogue(log, arm="item", path=["kind"], reward="amount")
    arms = list(events.tree.arms)
    groups = [amount[item == arm] for arm in arms]
    table: dict[str, list[Any]] = {"item": arms, "kind": [int(arm) % 3 for arm in arms]}
    table |= {"n": [len(entry) for entry in groups], "m": [entry.mean() for entry in groups]}
    table["s"] = [entry.std(ddof=1) for entry in groups]
    summary = read_catalogue(table, arm="item", path=["kind"], plays="n", reward_mean="m", reward_sd="s")
    for name in ("plays", "reward_mean", "reward_sd"):
        assert getattr(events, name) == pytest.approx(getattr(summary, name))
    assert any("500 events" in note for note in events.notes)
    halves = [slice(0, 250), slice(250, 500)]  # an arm on two rows
    rows = [(arm, amount[part][item[part] == arm]) for part in halves for arm in arms]
    twice: dict[str, list[Any]] = {"item": [arm for arm, _ in rows], "kind": [int(arm) % 3 for arm, _ in rows]}
    twice |= {"n": [len(entry) for _, entry in rows], "m": [entry.mean() for _, entry in rows]}
    twice["s"] = [entry.std(ddof=1) for _, entry in rows]
    added = read_catalogue(twice, arm="item", path=["kind"], plays="n", reward_mean="m", reward_sd="s")
    assert added.reward_sd == pytest.approx(summary.reward_sd)


def test_clicks_of_a_log_are_counted() -> None:
    log: dict[str, list[Any]] = {
        "item": list("abacab"),
        "kind": list("xxxyxx"),
        "click": ["1", "0", True, "false", "TRUE", 0.0],
    }
    result = read_catalogue(log, arm="item", path=["kind"], reward="click")
    assert result.plays is not None
    assert result.successes is not None
    assert (result.plays.tolist(), result.successes.tolist()) == ([3, 2, 1], [3, 0, 0])


def test_rows_without_a_reward_are_counted_and_left_out_as_in_a_log() -> None:
    table: dict[str, list[Any]] = {"item": list("abac"), "kind": list("xxxy"), "click": ["1", None, "", "n/a"]}
    result = read_catalogue(table, arm="item", path=["kind"], reward="click")
    assert result.plays is not None
    assert (result.tree.arms, result.plays.tolist()) == (("a", "b", "c"), [1, 0, 0])
    note = "3 rows without a reward yet: left out"
    assert note in result.notes
    assert note in bt.read_log(table, arm="item", reward="click").notes
    with pytest.raises(CatalogueError, match="column 'click': no row has a reward"):
        read_catalogue(table | {"click": [None] * 4}, arm="item", path=["kind"], reward="click")


def test_items_without_counts_can_be_read() -> None:
    items = read_catalogue({"item": ["a", "b"], "kind": ["x", "y"]}, arm="item", path=["kind"])
    assert items.tree.clusters == {"x": ["a"], "y": ["b"]}
    assert items.policy(bt.TSC, rng=1).choose() in ("a", "b")
    for question in (inspect, lambda items: bt.advise(items, horizon=9), lambda items: simulate(items, horizon=9)):
        with pytest.raises(bt.errors.InvalidValue, match=r"no arm .* was ever played"):
            question(items)


def test_rewards_that_tell_nothing_are_refused() -> None:
    table = {"item": ["a", "b"], "n": [5, 1], "m": [3, 4], "s": [0, ""]}
    options = {"arm": "item", "plays": "n", "reward_mean": "m", "reward_sd": "s"}
    with pytest.raises(CatalogueError, match="no arm has rewards that differ"):
        read_catalogue(table, **options)  # type: ignore[arg-type]
    result = read_catalogue(table | {"s": [2, ""]}, **options)  # type: ignore[arg-type]
    assert result.reward_sd is not None
    assert result.reward_sd[0] == 2
    with pytest.raises(CatalogueError, match="row 0, column 's': '' is not a number"):
        read_catalogue(table | {"s": ["", ""]}, **options)  # type: ignore[arg-type]
    with pytest.raises(CatalogueError, match="row 1, column 's': -1 is negative"):
        read_catalogue(table | {"s": [2, -1]}, **options)  # type: ignore[arg-type]
    with pytest.raises(CatalogueError) as caught:  # a negative number of successes is one problem, not two
        read_catalogue({"item": ["a"], "n": [-5], "k": [-1]}, arm="item", plays="n", successes="k")
    assert str(caught.value).count("row 0") == 2
    with pytest.raises(CatalogueError, match="row 0, column 'm': 1e"):
        read_catalogue(table | {"s": [2, ""], "m": [1e200, 3]}, **options)  # type: ignore[arg-type]
    for bad in ({"reward_mean": [np.nan, 1]}, {"reward_sd": [np.inf, 1]}, {"reward_sd": [0, 0]}):
        fields: dict[str, Any] = {"plays": [5, 5], "reward_mean": [1, 2], "reward_sd": [1, 1]} | bad
        with pytest.raises(InvalidValue, match=next(iter(bad))):
            Catalogue(bt.Tree(["a", "b"]), **fields)


def test_two_columns_make_one_id() -> None:
    table = {"title": ["Heat", "Heat", "It"], "year": [1986, 1995, 1990], "kind": ["x", "y", "y"], "m": [0.1, 0.2, 0.3]}
    result = read_catalogue(table, arm=["title", "year"], path=["kind"], mean="m")
    assert result.tree.paths() == [("x", "Heat, 1986"), ("y", "Heat, 1995"), ("y", "It, 1990")]
    by_kind = read_catalogue(table, arm=["title", "kind"], path=["kind"], mean="m")
    assert by_kind.tree.arms == ("Heat, x", "Heat, y", "It, y")
    clash = {"title": ["a, b", "a"], "part": ["c", "b, c"], "m": [0.1, 0.2]}
    with pytest.raises(CatalogueError, match=r"'a, b, c' .* row 0"):
        read_catalogue(clash, arm=["title", "part"], mean="m")


@pytest.mark.parametrize(
    "build",
    [
        lambda: bt.Tree([("Heat", 1995)]),
        lambda: bt.Tree({"x": [("Heat", 1995)]}),
        lambda: bt.Tree.from_paths([("x", ("Heat", 1995))]),
        lambda: bt.Tree.from_labels(["x"], [("Heat", 1995)]),
    ],
)
def test_a_tuple_as_an_id_is_refused_with_the_way_to_join_it(build: Any) -> None:
    with pytest.raises(bt.errors.InvalidType, match=r"\('Heat', 1995\) is a tuple; .*'Heat, 1995'"):
        build()
