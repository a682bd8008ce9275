"""Simulating on a catalogue and the advice: right on worlds we know, and honest where the data cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from banditree.catalogue import Advice, Catalogue, advise, inspect, simulate
from banditree.catalogue import advice as weighing
from banditree.catalogue.advice import weigh
from banditree.catalogue.candidates import NAMES, Candidate, depths, distinct, for_tree, named
from banditree.catalogue.comparison import WorldRuns
from banditree.catalogue.simulation import default_seeds
from banditree.errors import InvalidType, InvalidValue
from banditree.policy.engines import engine
from banditree.simulation.runs import Runs
from banditree.tree import Tree
from docs.make_advice_table import Draw, World, draw, main, row, too_often_wrong, worlds

SHOP = Tree({"shoes": {"warm": ["s1", "s2"], "light": ["s3"]}, "hats": ["h1", "h2", "h3"]})
KNOWN = Catalogue(SHOP, means=[0.1, 0.2, 0.1, 0.5, 0.6, 0.5])
COUNTED = Catalogue(SHOP, [50, 60, 40, 90, 80, 70], [5, 12, 4, 45, 44, 30])


def test_candidates_are_flat_every_depth_and_uct() -> None:
    assert [each.label for each in for_tree(SHOP)] == ["TS", "TSC", "HTS(depth=2)", "UCT"]
    assert [each.label for each in for_tree(Tree(3))] == ["TS", "UCT"]
    assert depths(8) == [2, 3, 4, 5, 6, 7, 8]
    assert depths(30)[0] == 2
    assert depths(30)[-1] == 30
    assert len(depths(30)) == 7
    assert Candidate.of("HTS", depth=2).code == "bt.HTS(tree, depth=2)"
    assert Candidate.of("TS").code == "bt.TS(tree)"


def test_candidates_as_users_spell_them() -> None:
    found = named(["ts", " HTS", "hts:1", "UCT(depth=1)", "HTS(2)", "TSMax"], SHOP)
    assert [each.label for each in found] == ["TS", "HTS(depth=2)", "HTS(depth=1)", "UCT(depth=1)", "TSMax"]
    for wrong in (["LinTS"], ["HTS:x"], ["TSC:1"], ["HTS:9"], []):
        with pytest.raises(InvalidValue):
            named(wrong, SHOP)


def test_which_candidates_use_the_tree() -> None:
    found = named(["TS", "UCB1", "HTS:0", "UCT:0", "TSC", "HTS:1", "UCT", "UCBC"], SHOP)
    flat = {"TS", "UCB1", "HTS(depth=0)", "UCT(depth=0)"}
    assert {each.label for each in found if not each.clusters(SHOP)} == flat
    assert {each.label for each in found if each.levels == 0} == flat


def test_a_simulation_has_regret_and_traffic() -> None:
    found = simulate(COUNTED, horizon=400, policies=["TS", "TSC"], seeds=6, rng=3)
    again = simulate(COUNTED, horizon=400, policies=["TSC"], seeds=6, rng=3, jobs=2)
    assert (found.runs.regret["TSC"] == again.runs.regret["TSC"]).all()
    assert found.traffic.columns == ("cluster", "arms", "TS", "TSC")
    assert sum(found.traffic["TSC"]) == pytest.approx(1.0)
    assert found.traffic[0].cluster == "hats"
    plain: Mapping[str, Any] = found.to_dict()
    assert plain["policies"][0]["policy"] in ("TS", "TSC")
    assert len(plain["regret"]["TS"]) == len(plain["times"])
    assert "hats" in str(found)


def test_each_seed_meets_a_world_of_its_own_or_the_means_that_are_known() -> None:
    assert simulate(KNOWN, horizon=50, policies=["TS"], seeds=2).runs.instance is not None
    drawn = COUNTED.world()
    assert not drawn.fixed
    assert drawn.instance(0).best() != drawn.instance(1).best()


def test_the_default_effort_follows_the_size() -> None:
    assert default_seeds(10**9) == 8
    assert default_seeds(10) == 100


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(COUNTED, horizon=300, seeds=12, rng=1)


def test_advice_is_the_same_whatever_the_jobs(advice: Advice) -> None:
    assert str(advise(COUNTED, horizon=300, seeds=12, rng=1, jobs=2)) == str(advice)


def test_advice_has_all_its_parts(advice: Advice) -> None:
    assert advice.name in advice.table["policy"]
    assert advice.table["regret"] == sorted(advice.table["regret"])
    assert sum(advice.table["best"]) == pytest.approx(1.0)
    low, high = advice.against_flat.interval
    assert low < advice.against_flat.saving < high
    plain = advice.to_dict()
    assert plain["policy"] == advice.policy
    assert plain["inspection"]["arms"] == 6
    assert len(plain["regret"]["TS"]) == len(plain["times"])
    assert f"{advice.horizon:,} decisions" in str(advice)
    assert advice.name in advice.sentences[0]


def test_bad_questions() -> None:
    with pytest.raises(InvalidValue, match="no categories"):
        advise(Catalogue(Tree(2), means=[0.1, 0.2]), horizon=10)
    for flat in (["TS"], ["UCB1"], ["TS", "UCB1", "HTS:0"]):
        with pytest.raises(InvalidValue, match=f"none of the policies uses the tree: {flat[0]}"):
            advise(KNOWN, horizon=10, policies=flat)
    with pytest.raises(InvalidValue, match="seeds"):
        advise(KNOWN, horizon=10, seeds=1)
    with pytest.raises(InvalidType, match="horizon"):
        advise(KNOWN, horizon=1.5)  # type: ignore[arg-type]


def test_flat_is_added_to_compare_with() -> None:
    found = advise(KNOWN, horizon=60, policies=["TSC"], seeds=4)
    assert set(found.table["policy"]) == {"TS", "TSC"}


# What is said, for regret that we make up


def pairs(curves: Mapping[str, Any], *, worlds: int = 40, spread: float = 0.0, one_world: bool = False) -> WorldRuns:
    """Two runs in each world: a mean curve, a share of it that the world moves, and the luck of a run."""
    times = np.linspace(1000, 20_000, 20).astype(np.int64)
    rng = np.random.default_rng(0)
    regret = {}
    for name, curve in curves.items():
        shift = rng.normal(0, spread, (worlds, 1, 1)) if name != "TS" else 0.0
        luck = rng.normal(0, 0.02, (worlds, 2, 1))
        regret[name] = curve(times.astype(float))[None, None, :] * (1 + shift + luck)
    runs = Runs(
        times=times,
        seeds=tuple(range(worlds)),
        regret={name: values.mean(axis=1) for name, values in regret.items()},
        engine=dict.fromkeys(curves, "native"),
        evaluations={name: np.ones(worlds) for name in curves},
        seconds=dict.fromkeys(curves, 1.0),
        clusters={name: [{"hats": 20_000, "shoes": 0}] * worlds for name in curves},
        plays={},
        arms=(),
        problem="made up",
        replicates=regret,
    )
    return WorldRuns(runs, one_world)


def pairs_of(curves: Mapping[str, Any], **options: Any) -> WorldRuns:
    return pairs(
        {each.label: curve for each, curve in zip(named(curves, SHOP), curves.values(), strict=True)}, **options
    )


def weighed(curves: Mapping[str, Any], *, catalogue: Catalogue = COUNTED, **options: Any) -> Advice:
    return weigh(catalogue, named(curves, SHOP), pairs_of(curves, **options), inspect(catalogue))


def test_a_tree_that_clearly_pays() -> None:
    found = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS:2": lambda t: 0.051 * t})
    assert (found.policy, found.depth, found.verdict, found.pays_from) == ("TSC", None, "tree", 1000)
    assert found.against_flat.saving == pytest.approx(1000, rel=0.02)
    assert found.against_flat.share == pytest.approx(0.5, abs=0.02)
    assert "Run TSC" in found.sentences[0]
    assert "About as good: HTS(depth=2)." in found.sentences
    assert "from about 1,000 decisions on" in str(found)


def test_a_deep_tree_is_named_with_its_depth() -> None:
    found = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS:2": lambda t: 0.03 * t})
    assert (found.name, found.code) == ("HTS(depth=2)", "bt.HTS(tree, depth=2)")


def test_of_ways_about_equally_good_the_first() -> None:
    """A hair's breadth, better in one world and worse in the next, is no reason for a deeper tree; a clear lead is."""
    curves = {"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.0503 * t, "HTS:2": lambda t: 0.05 * t}
    worlds: dict[str, Any] = {"spread": 0.1, "worlds": 4000}
    deeper = pairs_of(curves, **worlds).compare("HTS(depth=2)", "TSC")
    assert 0 < deeper.share < 0.02
    assert weighed(curves, **worlds).policy == "TSC"
    assert weighed({name: curves[name] for name in ("TS", "HTS:2", "TSC")}, **worlds).policy == "HTS"
    assert weighed(curves, worlds=4000).policy == "HTS"  # in every world


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
    (headline,) = [line for line in early.sentences if line.startswith("At the end TSC loses 0.0")]
    assert "it has stopped learning; TS loses 0.005" in headline
    assert "If that continues, TS will be ahead after about 36," in headline
    assert any(line.startswith("More traffic: beyond about 36,") for line in early.changes)


def test_a_tree_that_does_not_pay() -> None:
    found = weighed({"TS": lambda t: 0.05 * t, "TSC": lambda t: 0.1 * t})
    assert (found.policy, found.verdict, found.pays_from) == ("TS", "flat", None)
    assert "do not pay off" in found.sentences[1]


def test_a_flat_policy_is_no_tree_however_good_it_is() -> None:
    """UCB1 ignores the categories too: it is named, and has no part in whether the categories pay."""
    found = weighed({"TS": lambda t: 0.05 * t, "UCB1": lambda t: 0.02 * t, "TSC": lambda t: 0.1 * t})
    assert (found.policy, found.verdict, found.against_flat.policy) == ("TS", "flat", "TSC")
    assert "Even less regret, without the categories: UCB1." in found.sentences
    assert not any("About as good" in line for line in found.sentences)


def test_a_deeper_tree_that_may_be_better_is_named() -> None:
    """10% less regret, but all of it in one of four worlds: no reason for a deeper tree yet."""
    made = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.05 * t, "HTS(depth=2)": lambda t: 0.05 * t}, worlds=4)
    regret = {
        **made.runs.replicates,
        "HTS(depth=2)": made.regret("TSC") * np.array([0.6, 1.0, 1.0, 1.0])[:, None, None],
    }
    means = {name: values.mean(axis=1) for name, values in regret.items()}
    unsure = WorldRuns(replace(made.runs, replicates=regret, regret=means), False)
    found = weigh(COUNTED, named(["TS", "TSC", "HTS:2"], SHOP), unsure, inspect(COUNTED))
    assert found.policy == "TSC"
    assert "Possibly even less regret (more seeds would show): HTS(depth=2)." in found.sentences


def test_a_lead_too_small_to_say_since_when() -> None:
    """Likely ahead at the end, yet not beyond doubt in 4 worlds: nothing is claimed about when the lead began."""
    found = weigh(KNOWN, named(["TS", "TSC"], SHOP), ahead_by(2.5, worlds=4), inspect(KNOWN))
    assert (found.policy, found.verdict, found.pays_from) == ("TSC", "tree", None)
    assert found.against_flat.saving == pytest.approx(2.5 * found.against_flat.noise)
    assert "These seeds do not show after how many decisions it is ahead; more seeds would." in found.sentences


def ahead_by(errors: float, *, worlds: int = 40) -> WorldRuns:
    """Known means: TSC is ahead of TS by so many standard errors."""
    made = pairs({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.1 * t}, worlds=worlds, one_world=True)
    luck = made.compare("TSC", "TS")
    regret = {**made.runs.replicates, "TSC": made.regret("TSC") + luck.saving - errors * luck.noise}
    means = {name: values.mean(axis=1) for name, values in regret.items()}
    return WorldRuns(replace(made.runs, replicates=regret, regret=means), True)


def test_a_lead_that_other_seeds_would_not_find_is_a_tie_and_goes_to_the_simpler() -> None:
    """1.6 standard errors ahead: a chance of 94%, if one looks at nothing else, and TS with the next seed."""
    found = weigh(KNOWN, named(["TS", "TSC"], SHOP), ahead_by(1.6), inspect(KNOWN))
    assert found.against_flat.chance > 0.9
    assert (found.policy, found.verdict) == ("TS", "cannot tell")
    assert any(line.startswith("More seeds") for line in found.changes)


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
    found = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.1 * t}, catalogue=KNOWN, one_world=True)
    assert found.policy == "TS"
    assert found.verdict == "cannot tell"
    assert any("More seeds" in line for line in found.changes)
    clear = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.09 * t}, catalogue=KNOWN, one_world=True)
    assert clear.verdict == "tree"
    assert clear.against_flat.interval[0] > 0


def test_misplaced_arms_are_a_reason_to_move_them() -> None:
    tree = Tree({"x": list(range(80)), "y": list(range(80, 160))})
    means = np.repeat([0.1, 0.5], 80) + np.tile([0.0, 0.01, 0.02, 0.03], 40)
    means[[7, 9, 85, 90]] = 0.5, 0.5, 0.1, 0.1
    found = advise(Catalogue(tree, means=means), horizon=100, seeds=4)
    assert any("look misplaced" in line and "and 1 more" in line for line in found.changes)


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
    found = weighed({"TS": lambda t: 0.1 * t, "TSC": lambda t: 0.08 * t}, worlds=100, spread=0.2)
    row = next(row for row in found.table if row.policy == "TSC")
    reach = (row.interval[1] - row.interval[0]) / 2
    assert reach == pytest.approx(1.98 * 0.2 * 1600 / np.sqrt(100), rel=0.25)


def test_few_worlds_are_held_to_students_t() -> None:
    """Two policies equally good: two standard errors of 8 runs are as frequent as Student's t with 7 degrees says."""
    told = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        regret = {name: 100 + rng.normal(0, 5, (4, 2, 1)) for name in ("TS", "TSC")}
        made = replace(
            pairs({"TS": lambda t: t}).runs,
            replicates=regret,
            regret={name: each.mean(axis=1) for name, each in regret.items()},
        )
        told += WorldRuns(made, True).compare("TSC", "TS").told
    assert told / 400 == pytest.approx(0.0856, abs=4 * np.sqrt(0.0856 * 0.9144 / 400))


def test_a_lead_that_comes_and_goes_is_no_lead_from_the_start() -> None:
    found = weighed(
        {"TS": lambda t: 0.1 * t, "UCT": lambda t: 0.1 * t - 30 * (t > 19_500)}, catalogue=KNOWN, one_world=True
    )
    assert (found.policy, found.verdict, found.pays_from) == ("UCT", "tree", 20_000)
    assert "an upper confidence bound at every node" in found.sentences[0]


def test_a_horizon_of_one_decision() -> None:
    assert advise(KNOWN, horizon=1, seeds=4).horizon == 1


def test_checkpoints_end_at_the_horizon() -> None:
    for horizon in (1, 7, 1000):
        times = weighing._checkpoints(horizon)
        assert times[-1] == horizon
        assert times[0] >= 1


# Right on worlds we know


@pytest.mark.skipif(engine() != "native", reason="ten minutes on the readable engine")
def test_advice_is_right_on_worlds_we_know() -> None:
    """The quick form of ``make advice-table``: one more catalogue of each world, shorter and with fewer runs."""
    found = {}
    for world in worlds():
        short = World(world.name, world.problem, min(world.horizon, 3000), world.tree, world.depth)
        found[world.name] = draw(short, 100, seeds=40, truth_seeds=60, jobs=2)
    assert sum(each.right for each in found.values()) >= 9, found
    strong = found["strong dominance"]
    assert (strong.advised, strong.verdict) == ("TSC", "tree")
    assert row(worlds()[0], [strong])[-1] == "1 of 1"


def test_a_best_arm_among_bad_ones_is_no_place_for_a_tree() -> None:
    """The cluster of the best arm looks worst: going down the tree has linear regret, and the advice says so."""
    tree = Tree({cluster: [f"{cluster}{i}" for i in range(8)] for cluster in "abcd"})
    means = np.full(32, 0.5)
    means[:8] = 0.9, *[0.05] * 7
    rng = np.random.default_rng(0)
    found = advise(Catalogue(tree, np.full(32, 100), rng.binomial(100, means)), horizon=1500, seeds=80, jobs=2)
    assert (found.policy, found.verdict) == ("TS", "flat")
    assert found.against_flat.interval[1] < 0


def test_the_table_is_written(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--only", "wide and near", "--draws", "1", "--seeds", "4", "--truth-seeds", "4", "--jobs", "2"]
    assert main([*options, "--out", str(tmp_path / "table.md")]) == 0
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| strong dominance, wide and near | 3,000 | TSC (1) |" in text
    assert text.endswith("| 1 of 1 |\n")
    main(options)
    assert capsys.readouterr().out == text


def test_the_table_fails_where_the_advice_is_right_less_than_9_times_in_10() -> None:
    right, noise, wrong = (Draw("TSC", "TS", "tree", ratio, z) for ratio, z in ((1.1, 9.0), (1.5, 1.9), (1.2, 2.1)))
    assert [each.right for each in (right, noise, wrong)] == [True, True, False]
    assert not too_often_wrong([right] * 8 + [noise, wrong])
    assert too_often_wrong([right] * 8 + [wrong] * 2)


# Policies that stop learning, and policies that are the same


def films() -> Catalogue:
    """The best film is in a poor genre: TSC settles in the genre with the best average and never finds it."""
    rng = np.random.default_rng(0)
    tree = Tree({f"genre-{genre}": [f"{genre}-{i}" for i in range(20)] for genre in range(10)})
    means = rng.uniform(0.1, 0.2, 200)
    means[:20] = rng.uniform(0.29, 0.30, 20)
    means[20] = 0.4
    plays = np.full(200, 5000)
    return Catalogue(tree, plays, rng.binomial(plays, means))


@pytest.mark.skipif(engine() != "native", reason="minutes on the readable engine")
def test_a_policy_that_never_finds_the_best_arm_is_shown_up_beside_the_headline() -> None:
    found = advise(films(), horizon=18_000, policies=["TSC"], seeds=8)
    losses = {row.policy: row.loss for row in found.table}
    assert (found.policy, found.verdict) == ("TSC", "tree")  # over 18,000 decisions it is ahead
    assert losses["TSC"] > 1.3 * losses["TS"]
    assert found.overtaken is not None
    assert found.overtaken.policy == "TS"
    assert 20_000 < found.overtaken.at < 60_000
    at_the_end, where = found.sentences[2:4]
    assert "it has stopped learning; TS loses" in at_the_end
    assert "If that continues, TS will be ahead after about" in at_the_end
    assert "of its decisions are in genre-0, which holds the best arm with probability under 1%." in where
    assert found.to_dict()["overtaken"]["policy"] == "TS"


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


def test_with_one_category_the_tree_changes_nothing_whatever_the_seed() -> None:
    tree = Tree({"everything": [f"a{i}" for i in range(8)]})
    catalogue = Catalogue(tree, np.full(8, 50), [5, 6, 9, 12, 4, 8, 20, 11])
    for seed in range(3):
        found = advise(catalogue, horizon=200, seeds=4, rng=seed)
        assert (found.policy, found.verdict, found.same) == ("TS", "flat", {"TSC": "TS"})
        assert "Here the categories make no difference." in found.sentences[0]
        assert "TSC is the same policy as TS here, because all arms are in one category." in found.sentences
        assert not any("cannot tell" in line for line in found.sentences)
    asked = advise(catalogue, horizon=200, seeds=4, policies=["TSC"])
    assert asked.table["policy"] == ["TS"]
    assert asked.against_flat.saving == 0
    assert asked.to_dict()["same"] == {"TSC": "TS"}


def test_which_policies_are_the_same_on_a_tree() -> None:
    def same(spec: Any, names: Any = None) -> dict[str, str]:
        tree = Tree(spec)
        return distinct(for_tree(tree) if names is None else named(names, tree), tree)[1]

    assert same({"a": [1], "b": [2], "c": [3]}) == {"TSC": "TS"}  # every category has one arm
    assert same({"a": {"x": [1, 2]}, "b": {"y": [3, 4]}}) == {"HTS(depth=2)": "TSC"}  # one sub-category each
    assert same({"all": {"x": [1, 2], "y": [3, 4]}}) == {"TSC": "TS"}  # the lower level does differ
    assert same({"a": {"x": [1, 2], "y": [3]}, "b": [4, 5]}) == {}
    assert same({"a": {"x": [1], "y": [2]}, "b": [4, 5]}) == {"HTS(depth=2)": "TSC"}
    assert same({"a": [1, 2], "b": [3]}, ["UCT", "UCBC", "UCB1", "HTS", "TSC"]) == {
        "UCBC": "UCT",
        "TSC": "HTS(depth=1)",
    }


def test_policies_that_are_said_to_be_the_same_have_the_same_regret() -> None:
    """The claim behind it: in distribution, on a tree with a single sub-category in each category."""
    tree = Tree({"a": {"x": [0, 1, 2]}, "b": {"y": [3, 4, 5]}, "c": [6]})
    catalogue = Catalogue(tree, means=[0.2, 0.3, 0.25, 0.5, 0.4, 0.45, 0.6])
    runs = simulate(catalogue, horizon=300, policies=["TSC", "HTS:2"], seeds=150).runs
    assert abs(runs.compare("TSC", "HTS(depth=2)").z) < 4


def test_every_kind_of_candidate_is_built_and_explained() -> None:
    for name in NAMES:
        (candidate,) = named([name], SHOP)
        assert candidate.how
        assert "{" not in candidate.how
        assert candidate.factory(SHOP, rng=0).choose() in SHOP


def test_more_runs_where_luck_has_a_large_part_and_none_where_all_is_clear() -> None:
    """Arms that are nearly alike leave luck; a tree that clearly pays, nothing to ask."""
    rng = np.random.default_rng(0)
    tree = Tree({c: [f"{c}{i}" for i in range(8)] for c in "abcdef"})
    plays = np.full(48, 400)
    alike = advise(Catalogue(tree, plays, rng.binomial(400, 0.3, 48)), horizon=50, policies=["TSC"], seeds=20)
    assert alike.runs.replicates["TS"].shape[:2] == (20, 8)
    good = np.repeat([0.05, 0.05, 0.05, 0.05, 0.1, 0.8], 8)
    clear = advise(Catalogue(tree, plays, rng.binomial(400, good)), horizon=300, policies=["TSC"], seeds=20)
    assert clear.runs.replicates["TS"].shape[:2] == (20, 2)
    assert clear.against_flat.chance > 0.99
