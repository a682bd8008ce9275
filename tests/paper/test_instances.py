"""Claims on the instances themselves: which are examined, and what is counted and measured on them."""

from __future__ import annotations

import numpy as np
import pytest

from banditree.paper.claims import CLAIMS, FAILS, HOLDS, OPEN, PART, Finding, Verdict, instances, judge_claim
from banditree.paper.claims.checks import Missing
from banditree.paper.claims.claim import Data
from banditree.paper.claims.instances import counted, examined_instances
from banditree.paper.figures import DEFAULT
from banditree.paper.results import instance
from banditree.problems import bernoulli, strong_dominance
from banditree.tree import Tree
from tests.support.made_up import MadeUp, results, runs


def test_dominance_of_instances_is_counted() -> None:
    there = Data(results(_1a=runs({"TS": 1.0}, seeds=7), _2a=runs({"TS": 1.0}, seeds=7)))

    def found(*figures: str, expected: bool = True) -> Finding:
        return counted(figures, instances._has_dominance, "strong dominance holds in", expected=expected)(there)

    assert found("1a").verdict == HOLDS
    assert found("1a", "2a").verdict == PART
    assert found("2a").verdict == FAILS
    assert found("2a", expected=False).verdict == HOLDS
    assert found("1a", expected=False).verdict == FAILS
    assert found("1a", "2a").facts == (
        "Strong dominance holds in all 40 examined instances of 1a, none of the 7 examined instances of 2a"
    )


def test_how_many_instances_are_examined_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int]] = []
    monkeypatch.setattr(instances, "instance", lambda figure, label, seed, variant: drawn.append((figure, seed)))

    def seeds(figure: str, n: int, variant: str = DEFAULT) -> list[int]:
        drawn.clear()
        made = MadeUp({(figure, variant): {"": runs({"TS": 1.0}, seeds=n)}})
        list(examined_instances(Data(made, variant), figure))
        return [seed for _, seed in drawn]

    assert seeds("2a", 100) == list(range(100))  # all that the run met
    assert seeds("2b", 100) == list(range(25))
    assert seeds("2b", 3) == [0, 1, 2]
    assert seeds("1a", 50) == list(range(5)) * 8
    assert len(seeds("1f", 50)) == 5 * 8  # depths share their instances
    assert len(seeds("1a", 50, "suboptimal")) == 5 * 8
    with pytest.raises(Missing, match="other instances in 2a"):
        seeds("2a", 100, "posterior")


def test_a_variant_that_changes_a_policy_alone_is_not_judged_on_instances() -> None:
    made = results(_2a=runs({"TS": 1.0}, seeds=2), _2b=runs({"TS": 1.0}, seeds=2))
    made.figures |= {(name, "global"): runs for (name, _), runs in made.figures.items()}
    found = judge_claim(CLAIMS["instances-violate-dominance"], made)
    assert (found.verdict, found.variants) == (HOLDS, {})


def test_widths_and_distances_are_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(**{f"_{name}": runs({"TS": 1.0}, seeds=2) for name in instances.SWEEPS})
    assert judge_claim(CLAIMS["instances-width-and-distance"], there).verdict == HOLDS
    other = strong_dominance(width=0.11).instance(0)
    monkeypatch.setattr(instances, "instance", lambda *_: other)
    assert judge_claim(CLAIMS["instances-width-and-distance"], there).verdict == FAILS


def test_similar_rewards_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(_2a=runs({"TS": 1.0}), _2b=runs({"TS": 1.0}))
    tree = Tree.from_labels([0, 0, 1, 1])

    def judged(*means: float) -> Verdict:
        drawn = bernoulli(tree, np.array(means)).instance(0)
        monkeypatch.setattr(instances, "instance", lambda *_: drawn)
        return judge_claim(CLAIMS["instances-similar-rewards"], there)

    assert judged(0.1, 0.2, 0.8, 0.9).verdict == HOLDS
    apart = judged(0.1, 0.9, 0.1, 0.9)
    assert apart.verdict == FAILS
    assert apart.finding is not None
    assert apart.finding.numbers["spread within clusters in 2a"] == pytest.approx(1.0)  # clusters say nothing


def test_diameters_by_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    there = results(_2e=runs({"LinTS": 1.0}, seeds=5), _2f=runs({"LinTS": 1.0}, seeds=5))
    found = judge_claim(CLAIMS["instances-diameter"], there)
    assert found.verdict == HOLDS
    assert found.finding is not None
    wide, narrow = found.finding.numbers.values()
    assert wide / narrow == pytest.approx(5.0, rel=0.1)  # ε = 0.5 and ε = 0.1
    monkeypatch.setattr(instances, "instance", lambda figure, label, seed, _: instance("2d", "", seed))
    assert judge_claim(CLAIMS["instances-diameter"], there).verdict == OPEN


def test_hierarchical_dominance_of_instances() -> None:
    there = results(_1f=runs({"HTS": 1.0}))
    assert judge_claim(CLAIMS["instances-hierarchical-dominance"], there).verdict == HOLDS
