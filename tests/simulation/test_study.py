"""What a study needs: plays over time, simple regret, common random numbers, and comparisons of all pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import banditree as bt
from banditree.errors import InvalidValue
from banditree.simulation.runs import Run, Runs

TREE = bt.Tree({"a": [0, 1], "b": [2], "c": {"deep": [3]}})
MEANS = np.array([0.1, 0.4, 0.7, 0.6])
FIXED = bt.problems.bernoulli(TREE, MEANS.tolist())
CONTEXTUAL = bt.problems.mixed_effects(n_arms=4, n_clusters=2, dim=2)


class Stepped(bt.TSC):
    """Steps from Python, as a user's own policy does."""

    def choose(self, *args: Any, **options: Any) -> Any:
        return super().choose(*args, **options)


def test_traces_are_the_plays_until_each_time() -> None:
    runs = bt.simulate({"TSC": bt.TSC, "own": Stepped}, FIXED, horizon=300, seeds=3, checkpoints=300, traces=True)
    for name in runs.policies:
        trace = runs.traces[name]
        assert trace.shape == (3, 300, 4)
        np.testing.assert_array_equal(trace[:, -1], runs.plays[name])
        steps = np.diff(trace, axis=1, prepend=0)
        assert set(np.unique(steps)) == {0, 1}
        np.testing.assert_array_equal(steps.sum(axis=2), 1)
        np.testing.assert_allclose((steps @ (MEANS.max() - MEANS)).cumsum(axis=1), runs.regret[name])
        for seed, clusters in enumerate(runs.cluster_traces[name]):
            np.testing.assert_array_equal(clusters["a"], trace[seed, :, :2].sum(axis=1))
            np.testing.assert_array_equal(clusters["c"], trace[seed, :, 3])
        expected = MEANS.max() - MEANS[trace.argmax(axis=2)]
        np.testing.assert_allclose(runs.simple_regret[name], expected)
    plain = bt.simulate({"TSC": bt.TSC}, FIXED, horizon=300, seeds=3, checkpoints=300)
    assert plain.traces == plain.cluster_traces == plain.simple_regret == {}
    np.testing.assert_array_equal(plain.regret["TSC"], runs.regret["TSC"])


def test_traces_are_recorded_where_instances_differ_and_have_contexts() -> None:
    runs = bt.simulate([bt.LinTSC], CONTEXTUAL, horizon=50, seeds=2, checkpoints=[10], traces=True)
    assert runs.traces["LinTSC"].sum(axis=2).tolist() == [[10, 50], [10, 50]]
    assert runs.simple_regret == {}
    assert runs.plays == {}
    with pytest.raises(InvalidValue, match="without replicates"):
        bt.simulate([bt.TS], FIXED, horizon=10, seeds=1, replicates=2, traces=True)


def test_traces_are_saved_selected_and_joined(tmp_path: Path) -> None:
    def part(seeds: list[int], policies: Any = (bt.TS, bt.TSC)) -> Runs:
        return bt.simulate(policies, FIXED, horizon=60, seeds=seeds, checkpoints=6, traces=True)

    runs = part([0, 1])
    runs.save(tmp_path / "runs.npz")
    for same in (
        Runs.load(tmp_path / "runs.npz"),
        part([0]) | part([1]),
        part([0, 1], [bt.TS]) | part([0, 1], [bt.TSC]),
    ):
        for name in runs.policies:
            np.testing.assert_array_equal(same.traces[name], runs.traces[name])
            np.testing.assert_array_equal(same.simple_regret[name], runs.simple_regret[name])
            for ours, theirs in zip(same.cluster_traces[name], runs.cluster_traces[name], strict=True):
                assert {k: v.tolist() for k, v in ours.items()} == {k: v.tolist() for k, v in theirs.items()}
    assert list(runs.select(["TSC"]).traces) == list(runs.select(["TSC"]).cluster_traces) == ["TSC"]


@pytest.mark.parametrize("kind", [bt.TSC, Stepped], ids=["native", "stepped"])
def test_with_common_rewards_the_same_arm_at_the_same_step_has_the_same_reward(kind: Any) -> None:
    def sums(**options: Any) -> list[float]:
        """What three policies have learned that have one arm each, two of them the same."""
        built: list[bt.Policy] = []

        def only(arm: int) -> Any:
            def factory(tree: bt.Tree, *, rng: Any) -> bt.Policy:
                built.append(kind(bt.Tree([arm]), rng=rng))
                return built[-1]

            return factory

        policies = {"first": only(2), "second": only(2), "third": only(1)}
        bt.simulate(policies, FIXED, horizon=500, seeds=1, **options)
        return [policy.row(policy.tree.arms[0]).mean for policy in built]

    first, second, third = sums(common_rewards=True)
    assert first == second > third
    first, second, _ = sums()
    assert first != second


def test_runs_with_and_without_common_rewards_are_not_joined() -> None:
    one, two = (bt.simulate([bt.TS], FIXED, horizon=10, seeds=[s], common_rewards=bool(s)) for s in (0, 1))
    assert two.about["common_rewards"]
    with pytest.raises(InvalidValue, match="different settings"):
        one.join(two)


def test_comparisons_of_all_pairs_are_adjusted_after_holm() -> None:
    rng = np.random.default_rng(2)
    regret = {"a": rng.normal(10, 1, 8), "b": rng.normal(10.5, 1, 8), "c": rng.normal(14, 1, 8)}
    runs = Runs.gather(
        {
            name: [Run("native", np.array([value]), np.zeros(4, np.int64)) for value in of]
            for name, of in regret.items()
        },
        seeds=range(8),
        times=np.array([5]),
        problem=FIXED,
    )
    table = runs.compare_all()
    expected = {pair: scipy.stats.ttest_rel(*(regret[name] for name in pair)).pvalue for pair in ("ab", "ac", "bc")}
    assert {row.a + row.b: row.p for row in table} == pytest.approx(expected, rel=1e-6)
    smallest, middle, largest = sorted(expected.values())
    adjusted = [3 * smallest, max(3 * smallest, 2 * middle), max(3 * smallest, 2 * middle, largest)]
    assert table["holm"] == pytest.approx(adjusted)
    assert table[-1].holm > 0.05 > table[1].holm
