"""What the advice says, for regret that we make up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from banditree.catalogue import Advice, Catalogue, inspect
from banditree.catalogue.advice import weigh
from banditree.catalogue.comparison import WorldRuns
from banditree.catalogue.simulation import parse_candidates
from banditree.tree import Tree
from tests.support.made_up_advice import COUNTED, KNOWN, SHOP, ahead_by, pairs, pairs_of, weighed


def test_a_tree_that_clearly_pays() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS:2": lambda t: 0.051 * t})
    assert (advice.policy, advice.depth, advice.verdict, advice.pays_from) == ("TSC", None, "tree", 1000)
    assert advice.against_flat.saving == pytest.approx(1000, rel=0.02)
    assert advice.against_flat.share == pytest.approx(0.5, abs=0.02)
    assert "Run TSC" in advice.sentences[0]
    assert "About as good: HTS(depth=2)." in advice.sentences
    assert "is ahead of TS after about 1,000 decisions" in str(advice)


def test_a_deep_tree_is_named_with_its_depth() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS:2": lambda t: 0.03 * t})
    assert (advice.name, advice.code) == ("HTS(depth=2)", "bt.HTS(tree, depth=2)")


def test_of_ways_about_equally_good_the_first() -> None:
    """A hair's breadth, better in one world and worse in the next, is no reason for a deeper tree; a clear lead is."""
    curves = {"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.0503 * t, "HTS:2": lambda t: 0.05 * t}
    worlds: dict[str, Any] = {"spread": 0.1, "worlds": 4000}
    deeper = pairs_of(curves, **worlds).compare("HTS(depth=2)", "TSC")
    assert 0 < deeper.share < 0.02
    assert weighed(curves, **worlds).policy == "TSC"
    assert weighed({name: curves[name] for name in ("TS", "HTS:2", "TSC")}, **worlds).policy == "HTS"
    assert weighed(curves, worlds=4000).policy == "HTS"  # in every world


def test_with_one_category_ats_is_advised_where_it_does_clearly_better() -> None:
    tree = Tree({"hats": ["h1", "h2", "h3"]})
    catalogue = Catalogue(tree, [50, 60, 40], [5, 12, 4])
    candidates = parse_candidates(["TS", "ATS"], tree)

    def said(ats: float) -> Advice:
        advice = pairs({"TS": lambda t: 0.1 * t, "ATS": lambda t: ats * t})
        return weigh(catalogue, candidates, advice, inspect(catalogue), same={"TSC": "TS"})

    better, close = said(0.05), said(0.0995)
    assert (better.policy, better.verdict, close.policy) == ("ATS", "flat", "TS")
    assert "ATS is expected to lose 998 rewards by not knowing the best arm, flat TS 2,0" in better.sentences[1]
    assert "; TS loses 0.1" in better.sentences[2]
    assert "ATS, which learns how alike they are, would lose" in close.sentences[2]
    assert close.sentences[2].endswith("the simpler TS does as well.")
    for advice in (better, close):
        assert "Here the categories make no difference." in advice.sentences[0]
        assert not any("Even less regret" in line or "rusting" in line for line in advice.sentences)


def test_ats_is_advised_where_it_does_clearly_better_and_the_verdict_stays_with_the_categories() -> None:
    flat = weighed({"TS": lambda t: 0.05 * t, "TSC": lambda t: 0.1 * t, "ATS": lambda t: 0.03 * t})
    assert (flat.policy, flat.verdict, flat.code) == ("ATS", "flat", "bt.ATS(tree)")
    assert flat.against_flat.policy == "ATS"
    assert flat.against_flat.saving == pytest.approx(400, rel=0.02)
    assert "learns how far to trust the categories" in flat.sentences[0]
    assert "Trusting the categories does not pay off: TSC, which does, loses 2,0" in flat.sentences[2]
    tree = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "ATS": lambda t: 0.03 * t})
    assert (tree.policy, tree.verdict) == ("ATS", "tree")
    assert "Trusting the categories pays off too" in tree.sentences[2]
    assert not any("Less informative categories" in line for line in tree.changes)
    unsure = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.09 * t, "ATS": lambda t: 0.03 * t}, spread=0.3)
    assert (unsure.policy, unsure.verdict) == ("ATS", "cannot tell")
    assert "The data cannot tell whether trusting the categories pays off" in unsure.sentences[2]
    assert any(line.startswith("More data: about") for line in unsure.changes)


def test_a_simpler_policy_that_does_as_well_as_ats_is_advised() -> None:
    curves = {"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "ATS": lambda t: 0.0503 * t}
    advice = weighed(curves, spread=0.1, worlds=400)
    assert (advice.policy, advice.verdict) == ("TSC", "tree")
    (sentence,) = [line for line in advice.sentences if line.startswith("ATS, which learns how far")]
    assert sentence.endswith("the simpler TSC does as well.")
    worse = weighed(curves | {"ATS": lambda t: 0.09 * t})
    assert any(line.endswith("the simpler TSC does better.") for line in worse.sentences)
    flat = weighed({"TS": lambda t: 0.05 * t, "TSC": lambda t: 0.1 * t, "ATS": lambda t: 0.05 * t})
    assert (flat.policy, flat.verdict) == ("TS", "flat")
    assert any(line.endswith("the simpler TS does as well.") for line in flat.sentences)


def test_ats_that_goes_on_learning_is_preferred_to_a_tree_that_is_stuck() -> None:
    """TSC is 4% ahead of ATS at the end, and ATS loses a third as much per decision."""
    advice = weighed({"TS": lambda t: 0.3 * t, "TSC": lambda t: 0.0912 * t, "ATS": lambda t: 250 * np.log(t / 10)})
    assert (advice.policy, advice.verdict) == ("ATS", "tree")
    assert any("Up to then, TSC has slightly less regret, but ATS" in line for line in advice.sentences)


def test_ats_that_is_ahead_by_luck_and_goes_on_learning_is_not_said_to_be_behind() -> None:
    """3% less regret on average in 4 worlds that disagree: no clear lead, and less than half the loss at the end."""
    curves = {"TS": lambda t: 0.3 * t, "TSC": lambda t: 0.1 * t, "ATS": lambda t: 245 * np.log(t / 10)}
    advice = weighed(curves, worlds=4, spread=0.05)
    difference = pairs_of(curves, worlds=4, spread=0.05).compare("ATS", "TSC")
    assert difference.saving > 0
    assert not difference.matters
    assert advice.policy == "ATS"
    assert not any("slightly less regret" in line for line in advice.sentences)


def test_ats_alone_answers_for_the_categories() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "ATS": lambda t: 0.05 * t})
    assert (advice.policy, advice.verdict, advice.against_flat.policy) == ("ATS", "tree", "ATS")


def test_a_tree_that_pays_late_and_one_that_is_overtaken() -> None:
    late = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 400 + 0.06 * t})
    assert late.verdict == "tree"
    assert late.pays_from is not None
    assert 10_000 < late.pays_from < 14_000
    assert any("Less traffic: up to about" in line and "TS has less regret" in line for line in late.changes)
    early = weighed({"TS": lambda t: 100 * np.log(t), "TSC": lambda t: 0.03 * t})
    assert early.policy == "TSC"
    assert early.overtaken is not None
    assert early.overtaken.policy == "TS"
    # at 20,000 TS is 990 - 600 = 390 behind and gains 0.03 - 100 log(4/3) / 5,000 = 0.0242 per decision
    assert early.overtaken.at == pytest.approx(20_000 + 390.3 / 0.02425, rel=0.05)
    (headline,) = [line for line in early.sentences if line.startswith("At the end, TSC loses 0.0")]
    assert "it has stopped learning; TS loses 0.005" in headline
    assert "If that continues, TS will be ahead after about 36," in headline
    assert any(line.startswith("More traffic: beyond about 36,") for line in early.changes)


def test_a_tree_that_does_not_pay() -> None:
    advice = weighed({"TS": lambda t: 0.05 * t, "TSC": lambda t: 0.1 * t})
    assert (advice.policy, advice.verdict, advice.pays_from) == ("TS", "flat", None)
    assert "do not pay off" in advice.sentences[1]


def test_a_flat_policy_is_no_tree_however_good_it_is() -> None:
    """UCB1 ignores the categories too: it is parse_candidates, and has no part in whether the categories pay."""
    advice = weighed({"TS": lambda t: 0.05 * t, "UCB1": lambda t: 0.02 * t, "TSC": lambda t: 0.1 * t})
    assert (advice.policy, advice.verdict, advice.against_flat.policy) == ("TS", "flat", "TSC")
    assert "Even less regret, without the categories: UCB1." in advice.sentences
    assert not any("About as good" in line for line in advice.sentences)


def test_a_deeper_tree_that_may_be_better_is_named() -> None:
    """10% less regret, but all of it in one of four worlds: no reason for a deeper tree yet."""
    made = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS(depth=2)": lambda t: 0.05 * t}, worlds=4)
    regret = {
        **made.runs.replicates,
        "HTS(depth=2)": made.regret("TSC") * np.array([0.6, 1.0, 1.0, 1.0])[:, None, None],
    }
    means = {name: values.mean(axis=1) for name, values in regret.items()}
    unsure = WorldRuns(replace(made.runs, replicates=regret, regret=means), False)
    advice = weigh(COUNTED, parse_candidates(["TS", "TSC", "HTS:2"], SHOP), unsure, inspect(COUNTED))
    assert advice.policy == "TSC"
    assert "Possibly even less regret (more seeds would show): HTS(depth=2)." in advice.sentences


def test_a_lead_too_small_to_say_since_when() -> None:
    """Likely ahead at the end, yet not beyond doubt in 4 worlds: nothing is claimed about when the lead began."""
    advice = weigh(KNOWN, parse_candidates(["TS", "TSC"], SHOP), ahead_by(2.5, worlds=4), inspect(KNOWN))
    assert (advice.policy, advice.verdict, advice.pays_from) == ("TSC", "tree", None)
    assert advice.against_flat.saving == pytest.approx(2.5 * advice.against_flat.noise)
    assert "These seeds do not show after how many decisions it is ahead; more seeds would." in advice.sentences


def test_a_lead_that_other_seeds_would_not_find_is_a_tie_and_goes_to_the_simpler() -> None:
    """1.6 standard errors ahead: a chance of 94%, if one looks at nothing else, and TS with the next seed."""
    advice = weigh(KNOWN, parse_candidates(["TS", "TSC"], SHOP), ahead_by(1.6), inspect(KNOWN))
    assert advice.against_flat.chance > 0.9
    assert (advice.policy, advice.verdict) == ("TS", "cannot tell")
    assert any(line.startswith("More seeds") for line in advice.changes)


def test_a_lead_that_comes_and_goes_is_no_lead_from_the_start() -> None:
    advice = weighed(
        {"TS": lambda t: 0.1 * t, "UCT": lambda t: 0.1 * t - 30 * (t > 19_500)}, catalogue=KNOWN, one_world=True
    )
    assert (advice.policy, advice.verdict, advice.pays_from) == ("UCT", "tree", 20_000)
    assert "an upper confidence bound at every node" in advice.sentences[0]


def test_of_two_that_are_close_the_one_that_goes_on_learning() -> None:
    """TSC is 4% ahead at the end and TS loses a third as much per decision; 8% ahead are too much to give away."""
    close = weighed({"TS": lambda t: 250 * np.log(t / 10), "TSC": lambda t: 0.912 * t / 10})
    assert 0 < close.against_flat.share < 0.05
    assert close.against_flat.chance > 0.99
    assert (close.policy, close.verdict) == ("TS", "flat")
    assert any("Up to then, TSC has slightly less regret, but TS" in line for line in close.sentences)
    assert close.overtaken is None
    far = weighed({"TS": lambda t: 250 * np.log(t / 10), "TSC": lambda t: 0.87 * t / 10})
    assert (far.policy, far.verdict) == ("TSC", "tree")
    other = weighed({"TS": lambda t: 0.912 * t / 10, "TSC": lambda t: 250 * np.log(t / 10)})  # the other way round
    assert (other.policy, other.verdict) == ("TSC", "tree")
    assert "more (95% interval" in other.sentences[1]


def test_worlds_that_disagree_cannot_tell() -> None:
    bet = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.09 * t}, spread=0.3)
    assert (bet.policy, bet.verdict) == ("TSC", "cannot tell")
    assert "cannot tell" in bet.sentences[0]
    assert "better bet" in bet.sentences[0]
    assert any(line.startswith("More data: about") for line in bet.changes)
    even = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.104 * t}, spread=0.3, worlds=400)
    assert (even.policy, even.verdict) == ("TS", "cannot tell")
    assert "hardly" in str(even)


def test_known_means_leave_the_noise_of_the_simulation_alone() -> None:
    advice = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.1 * t}, catalogue=KNOWN, one_world=True)
    assert advice.policy == "TS"
    assert advice.verdict == "cannot tell"
    assert any("More seeds" in line for line in advice.changes)
    clear = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.09 * t}, catalogue=KNOWN, one_world=True)
    assert clear.verdict == "tree"
    assert clear.against_flat.interval[0] > 0


def test_the_difference_tells_worlds_from_luck() -> None:
    """Runs of one world differ by luck alone: the interval is that of the mean, however lucky single runs are."""
    lucky = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t}, worlds=400)
    spread = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t}, worlds=400, spread=0.2)
    narrow, wide = lucky.compare("TSC", "TS"), spread.compare("TSC", "TS")
    widths = [high - low for low, high in (narrow.interval, wide.interval)]
    assert widths[1] == pytest.approx(2 * 1.96 * 0.2 * 1600, rel=0.15)
    assert widths[0] < 0.2 * widths[1]
    assert narrow.chance > 0.999
    same = {"TS": np.ones((4, 2, 3)), "TSC": np.ones((4, 2, 3))}
    none = WorldRuns(replace(lucky.runs, replicates=same), True)
    assert none.compare("TSC", "TS").chance == 0.5


def test_the_tables_intervals_are_over_worlds_of_which_two_runs_share_one() -> None:
    """The luck of a run is 2% here and worlds differ by 20%, so two runs in one world are hardly more than one."""
    advice = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t}, worlds=100, spread=0.2)
    row = next(row for row in advice.table if row.policy == "TSC")
    reach = (row.interval[1] - row.interval[0]) / 2
    assert reach == pytest.approx(1.98 * 0.2 * 1600 / np.sqrt(100), rel=0.25)


def test_few_worlds_are_held_to_students_t() -> None:
    """Two policies equally good: two standard errors of 8 runs are as frequent as Student's t with 7 degrees says."""
    n_decisive = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        regret = {name: 100 + rng.normal(0, 5, (4, 2, 1)) for name in ("TS", "TSC")}
        made = replace(
            pairs({"TS": lambda t: t}).runs,
            replicates=regret,
            regret={name: item.mean(axis=1) for name, item in regret.items()},
        )
        n_decisive += WorldRuns(made, True).compare("TSC", "TS").is_decisive
    assert n_decisive / 400 == pytest.approx(0.0856, abs=4 * np.sqrt(0.0856 * 0.9144 / 400))


@pytest.mark.parametrize(("worse", "is_said"), [(4.0, True), (1.0, False)])
def test_advice_says_so_where_its_bad_runs_are_the_risk(worse: float, is_said: bool) -> None:
    """ATS has half the regret of TSC on average; in one run of eight it loses several times as much."""
    made = pairs_of({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "ATS": lambda t: 0.02 * t})
    regret = dict(made.runs.replicates)
    regret["ATS"] = regret["ATS"].copy()
    regret["ATS"][::4, 0] *= worse
    runs = replace(made.runs, replicates=regret, regret={name: values.mean(axis=1) for name, values in regret.items()})
    advice = weigh(COUNTED, parse_candidates(["TS", "TSC", "ATS"], SHOP), WorldRuns(runs, False), inspect(COUNTED))
    assert advice.policy == "ATS"
    assert any("The risk is in the bad runs: in one run of twenty ATS" in line for line in advice.sentences) == is_said
    row = next(row for row in advice.table if row.policy == "ATS")
    assert row.bad_run == pytest.approx(np.quantile(regret["ATS"][:, :, -1], 0.95))
