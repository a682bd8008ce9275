"""What the advice says, for regret that we make up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from banditree.beliefs import Gaussian
from banditree.catalogue.advice import better_prior
from banditree.catalogue.comparison import bootstrap, compare, tabulate
from tests.support.made_up_advice import KNOWN, Curve, runs_of, weighed

PAIR: dict[str, Curve] = {"ATS": lambda t: 0.06 * t, "ATS without the tree": lambda t: 0.08 * t}


def test_the_simplest_of_those_that_are_close_is_advised() -> None:
    close = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.0515 * t, "HTS:2": lambda t: 0.05 * t} | PAIR)
    assert (close.policy, close.depth, close.code) == ("TSC", None, "bt.TSC(tree)")
    clear = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.06 * t, "HTS:2": lambda t: 0.05 * t} | PAIR)
    assert (clear.name, clear.depth, clear.code) == ("HTS(depth=2)", 2, "bt.HTS(tree, depth=2)")
    assert weighed({"TS": lambda t: 0.0515 * t, "TSC": lambda t: 0.05 * t} | PAIR).policy == "TS"


def test_what_the_advised_policy_loses_beside_flat_ts() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t} | PAIR)
    assert advice.against_flat is not None
    assert advice.against_flat.saving == pytest.approx(1000, rel=0.02)
    assert advice.against_flat.share == pytest.approx(0.5, abs=0.02)
    assert advice.sentences[0].startswith("Run TSC: Thompson sampling over the top categories")
    assert (
        "it is expected to lose 1,010 rewards by not knowing the best arm, TS 2,000: 992 less (50%"
        in advice.sentences[1]
    )
    assert advice.sentences[1].endswith(" less).")
    flat = weighed({"TS": lambda t: 0.05 * t, "TSC": lambda t: 0.1 * t} | PAIR)
    assert flat.against_flat is None
    assert flat.sentences[1].endswith("by not knowing the best arm.")


def test_what_the_categories_are_worth_is_ats_with_them_and_without() -> None:
    """TSC has half the regret of TS here, and the categories are worth nothing: ATS does as well without them."""
    both: dict[str, Curve] = {"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t}
    same = weighed(both | {"ATS": lambda t: 0.06 * t, "ATS without the tree": lambda t: 0.06 * t})
    assert same.verdict == "cannot tell"
    assert same.sentences[2].startswith("The simulation cannot tell whether the categories pay off: ATS loses 1,20")
    assert " more to " in same.sentences[2]
    tree = weighed(both | PAIR)
    assert tree.categories is not None
    assert (tree.verdict, tree.categories.policy, tree.categories.rival) == ("tree", "ATS", "ATS without the tree")
    assert "ATS loses 1,200 with them and 1,590 without, 395" in tree.sentences[2]
    assert "less (25%; 95% interval" in tree.sentences[2]
    flat = weighed(both | {"ATS": lambda t: 0.08 * t, "ATS without the tree": lambda t: 0.06 * t})
    assert flat.verdict == "flat"
    assert flat.sentences[2].startswith("The categories do not pay off: ATS loses 1,6")
    assert "more (34%; 95% interval" in flat.sentences[2]


def test_the_policy_without_the_tree_is_advised_where_it_is_clearly_the_best() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "ATS": lambda t: 0.08 * t, "ATS without the tree": lambda t: 0.06 * t})
    assert (advice.name, advice.policy, advice.code) == ("ATS without the tree", "ATS", "bt.ATS(tree.cut(0))")


def test_a_crossing_is_said_where_the_mean_curves_cross() -> None:
    """600 + 0.05 t meets 0.1 t at 12,000."""
    late = weighed(
        {
            "TS": lambda t: 0.1 * t,
            "TSC": lambda t: 405 + 0.08 * t,
            "ATS": lambda t: 605 + 0.05 * t,
            "ATS without the tree": lambda t: 0.1 * t,
        },
        spread=1e-6,
    )
    assert late.against_flat is not None
    assert (late.policy, late.against_flat.crossing) == ("ATS", 13_000)
    assert late.sentences[1].endswith("TS loses less.")
    assert late.sentences[2].endswith("Up to about 13,000 decisions it loses less without them.")
    always = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t} | PAIR)
    assert not any("Up to about" in line for line in always.sentences)
    early = weighed(
        {"TS": lambda t: 0.1 * t, "ATS": lambda t: 600 + 0.08 * t, "ATS without the tree": lambda t: 0.1 * t}
    )
    assert early.policy == "TS"
    assert "Up to" not in early.sentences[2]  # the curves have not crossed yet


def test_there_is_one_caveat() -> None:
    sure = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t} | PAIR)
    assert sure.sentences[3:] == ("The answer is for 20,000 decisions: ask again with the number that you expect.",)
    split = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t} | PAIR, spread=0.3)
    assert split.policy in ("TSC", "ATS")
    assert "% of the worlds consistent with the data, TS loses less than " in split.caveat
    known = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t} | PAIR, spread=0.3, catalogue=KNOWN)
    assert known.caveat.startswith("The answer is for")  # one world, in which runs differ by luck


def test_the_prior_that_is_advised_does_no_worse_than_none() -> None:
    known = Gaussian(sd=2.0, mean=5.0, prior_sd=0.5)
    told = runs_of({"TS": lambda t: 0.1 * t})
    for factor, prior in ((0.9, Gaussian()), (1.1, known)):
        learned = replace(told, regret={"TS": factor * told.regret["TS"]})
        assert better_prior(known, told, learned, "TS") == prior


# Intervals


def test_an_interval_of_a_regret_is_not_negative() -> None:
    """All of the regret in one of 4 worlds: an interval by Student's t would reach far below 0."""
    runs = runs_of({"TS": lambda t: t}, worlds=4)
    runs.regret["TS"][:] = np.array([0.0, 0.0, 0.0, 100.0])[:, None]
    (row,) = tabulate(runs)
    assert row.interval == (0.0, 100.0)
    assert (row.regret, row.best) == (25.0, 1.0)


@pytest.mark.parametrize("n", [4, 8, 20, 100])
def test_intervals_hold_the_mean_as_often_as_they_say(n: int) -> None:
    rng, inside = np.random.default_rng(n), 0
    for _ in range(400):
        low, high = bootstrap(rng.normal(1.0, 2.0, n))
        inside += low <= 1.0 <= high
    assert inside / 400 == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / 400) if n > 4 else 0.12)


def test_a_difference_is_paired_by_world() -> None:
    """Worlds differ by far more than policies, and the saving is the same in all: the interval says so."""
    runs = runs_of({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.1 * t}, spread=0.5)
    runs.regret["TSC"][:] = runs.regret["TS"] - 10.0
    difference = compare(runs, "TSC", "TS")
    assert difference.interval == pytest.approx((10.0, 10.0))
    assert (difference.wins, difference.is_decisive, difference.crossing) == (1.0, True, None)
    runs.regret["TSC"][::2] = runs.regret["TS"][::2]
    assert compare(runs, "TSC", "TS").wins == 0.75
