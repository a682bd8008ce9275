"""The page about robustness: its numbers are those of the runs, and all its worlds are what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import banditree as bt
from banditree.simulation.statistics import over_seeds
from tools.pages.robustness import main, plan
from tools.pages.robustness_growth import Growth, verdict
from tools.pages.robustness_numbers import Point, Ratio, geometric_mean, measure
from tools.pages.robustness_page import NORMAL, PAPER, RANDOM, SHOPS, losses, mean, summary
from tools.pages.robustness_worlds import (
    HIDDEN,
    OTHER_TREE,
    UNKNOWN,
    Drawn,
    Misplaced,
    World,
    random_worlds,
    table_worlds,
)

GROUPS, GROWING = plan(quick=True)
TABLE, DRAWN = GROUPS[PAPER], GROUPS[SHOPS] + GROUPS[RANDOM]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    pytest.importorskip("sklearn", reason="trees of k-means and Ward need the extra `cluster`")
    out = tmp_path_factory.mktemp("robustness") / "robustness.md"
    assert main(["--quick", "--part", "trees", "--jobs", "1", "--out", str(out)]) == 0
    return out


def tables(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, row by row."""
    lines = iter(text.split(f"# {heading}\n")[1].splitlines())
    rows = []
    for line in lines:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            break
    return rows


def test_the_page_has_its_parts_and_its_picture(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall("^## (.+)$", text, re.MULTILINE) == [
        "In short",
        "Where it loses, and why",
        "Worlds of the paper, and worlds made against ATS",
        "Normal rewards",
        "Shops",
        "Worlds drawn at random",
        "Does regret grow like log T?",
        "Every policy",
    ]
    assert not re.search(r"\bnan\b", text)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / link).stat().st_size > 10_000
    for row in text.splitlines():
        assert row.count("|") == 0 or row.startswith("|")


def test_every_world_is_there_with_every_time_and_every_policy(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    _, _, *rows = tables(text, "Worlds of the paper, and worlds made against ATS")
    expected = [(world.name, t) for world in TABLE for t in (5, 50, 500)[: 3 if world.long_seeds else 2]]
    assert [(row[0], int(row[1].replace(",", ""))) for row in rows] == expected
    _, _, *rows = tables(text, "Worlds drawn at random")
    assert [row[0] for row in rows] == [world.name for world in GROUPS[RANDOM] for _ in range(2)]
    for world in TABLE + GROUPS[NORMAL]:
        _, _, *rows = tables(text, world.name[0].upper() + world.name[1:])
        assert [row[0] for row in rows] == list(world.policies())
    header, _, *rows = tables(text, "Shops and worlds drawn at random, every policy")
    for world, row in zip(DRAWN, rows, strict=True):
        assert {name for name, cell in zip(header, row, strict=True) if cell} == {"world", *world.policies()}


def test_the_numbers_are_those_of_the_runs(page: Path) -> None:
    """A world of the page, run here by hand: the same seeds give the same regret, and the page shows it."""
    world = TABLE[0]
    long = bt.simulate([bt.ATS, bt.TS], world.problem, horizon=500, seeds=2, checkpoints=[5, 50])
    rest = bt.simulate([bt.ATS, bt.TS], world.problem, horizon=50, seeds=[2], checkpoints=[5])
    _, _, *rows = tables(page.read_text(encoding="utf-8"), "Worlds of the paper, and worlds made against ATS")
    for place, row in enumerate(rows[:3]):
        for name, cell in (("ATS", row[3]), ("TS", row[6])):
            shown = long.regret[name][:, place]
            if place < 2:
                shown = np.append(shown, rest.regret[name][:, place])
            found = over_seeds(shown)
            assert [float(x.replace(",", "")) for x in cell.split(" ± ")] == pytest.approx(
                [found.mean, found.se], rel=0.05
            )
        assert int(row[2]) == (3 if place < 2 else 2)


def test_the_growth_of_regret_adds_up(page: Path) -> None:
    header, _, *rows = tables(page.read_text(encoding="utf-8"), "Does regret grow like log T?")
    assert header[2:] == ["10 to 100", "100 to 1,000", "1 to 1,000"]
    runs = bt.simulate([bt.ATS, bt.TS], GROWING[1].problem, horizon=1000, seeds=3, checkpoints=[10, 100])
    assert [row[1] for row in rows] == ["ATS", "TS"] * 2
    for name, row in zip(runs.policies, rows[2:], strict=True):
        *added, total = [float(cell.split(" ± ")[0]) for cell in row[2:]]
        assert added == pytest.approx(np.diff(runs.regret[name].mean(axis=0)), rel=0.01)
        assert total == pytest.approx(runs.over_seeds(name).mean[-1], rel=0.01)


def test_the_page_says_whether_regret_grows_like_log_t() -> None:
    """A straight line adds ten times as much with every factor of ten, log T the same."""
    times = np.array([1, 10, 100, 1000])
    runs = bt.simulate([bt.ATS], bt.problems.unstructured(4, 2), horizon=1000, seeds=2, checkpoints=times[:-1])
    said = {
        "grows like log T, or slower": [[1.0, 10.0, 20.0, 35.0], [1.0, 11.0, 21.0, 30.0]],
        "may grow like log T": [[1.0, 10.0, 20.0, 30.0], [1.0, 10.0, 20.0, 130.0]],
        "grows faster than log T": [[1.0, 10.0, 100.0, 1000.0], [1.0, 10.0, 100.0, 1020.0]],
    }
    for words, regret in said.items():
        assert words in verdict([Growth(GROWING[0], replace(runs, regret={"ATS": np.array(regret)}))])


def test_a_ratio_is_paired_over_seeds() -> None:
    """Policies with proportional regret have a ratio without error; the error of independent ones is the usual one."""
    rng = np.random.default_rng(0)
    b = rng.uniform(1.0, 2.0, 4000)
    assert Ratio.of(0.7 * b, b).value == pytest.approx(0.7)
    assert Ratio.of(0.7 * b, b).se == pytest.approx(0.0, abs=1e-12)
    a = rng.uniform(1.0, 2.0, 4000)
    relative = [over_seeds(x).se / x.mean() for x in (a, b)]
    assert Ratio.of(a, b).se == pytest.approx(Ratio.of(a, b).value * np.hypot(*relative), rel=0.05)
    assert geometric_mean([1.0, 4.0, 16.0]) == pytest.approx(4.0)


def point(name: str, time: int, *, ats: float, ts: float, tsc: float, **options: str) -> Point:
    """Four seeds with these means; every policy is a hundredth more or less lucky."""
    luck = np.array([0.99, 1.01, 1.0, 1.0])
    world = World(name, Misplaced(0.5), time, 4, **options)  # type: ignore[arg-type]
    return Point(world, time, {"ATS": ats * luck, "TS": ts * luck[::-1], "TSC": tsc * luck})


def test_the_page_says_where_ats_loses_and_only_there() -> None:
    wins = point("easy", 100, ats=50.0, ts=80.0, tsc=60.0, why=UNKNOWN)
    loses = point("hard", 1000, ats=90.0, ts=60.0, tsc=75.0, why=HIDDEN)
    text = losses({PAPER: [wins, loses], RANDOM: [wins]})
    assert "on 1 of the 2 lines." in text
    assert "- *hard*: at T = 1,000 1.50 ± 0.01 times the regret of TS. " + HIDDEN in text
    assert "easy" not in text
    assert "*Random worlds*: behind by more than two standard errors on none of the 1 lines." in text
    assert "1.50 ± 0.01 times" in losses({PAPER: [wins], RANDOM: [loses]}).split("*Random worlds*")[1]
    rows = [line.split("|")[2].strip() for line in summary({PAPER: [wins, loses], RANDOM: [wins]}).splitlines()[2:]]
    assert rows[0] == "1.50 ± 0.01 **missed** (hard, T = 1,000)"
    assert rows[1] == f"{np.sqrt(1.5 * 50 / 60):.2f} **missed**"
    assert rows[2] == "1.50 ± 0.01 **missed** (hard, T = 1,000)"
    assert rows[5] == "1 of 2, 1 by more than two standard errors"


def test_reasons_follow_from_who_is_better() -> None:
    trusting = point("tree", 100, ats=50.0, ts=80.0, tsc=40.0, why=HIDDEN)
    assert "TSC takes for granted" in losses({PAPER: [trusting]})
    assert HIDDEN not in losses({PAPER: [trusting]})
    nothing = Point(replace(trusting.world, tells=False), 100, trusting.regret)
    assert UNKNOWN in losses({PAPER: [nothing]})
    found = point("other", 100, ats=50.0, ts=80.0, tsc=60.0, rival="kmeans")
    found = Point(found.world, 100, {**found.regret, "TSC on kmeans": 0.5 * found.regret["ATS"]})
    assert OTHER_TREE in losses({PAPER: [found]})


def test_points_of_a_world_use_all_its_seeds() -> None:
    world = World("small", bt.problems.unstructured(6, 2), 100, 5, 2)
    points = measure(world, jobs=1)
    assert [(each.time, len(each.regret["ATS"])) for each in points] == [(10, 5), (100, 5), (1000, 2)]
    runs = bt.simulate([bt.TS], world.problem, horizon=100, seeds=5, checkpoints=[10])
    assert points[1].regret["TS"].tolist() == runs.regret["TS"][:, 1].tolist()
    assert mean(points[1], "TS").startswith(f"{runs.table()[0].mean:.3g}"[:3])


def test_the_misplaced_arm_is_the_best_and_in_the_poorest_cluster() -> None:
    for high in (0.5, 0.7):
        instance = Misplaced(high).instance(3)
        means = np.asarray(instance.means).reshape(10, 10)
        centres = np.linspace(0.1, high, 10)[:, None]
        assert means[0, 0] == instance.best() == 0.8
        assert np.abs(means - centres).ravel()[1:].max() <= 0.05
        assert instance.tree.clusters[0] == list(range(10))


def test_random_worlds_are_the_same_each_time_and_within_their_bounds() -> None:
    worlds = random_worlds(24, 20)
    assert worlds == random_worlds(24, 20)
    shapes = [world.problem for world in worlds]
    for drawn in shapes:
        assert isinstance(drawn, Drawn)
        assert 10 <= drawn.n_arms <= 2000
        assert 1 <= len(drawn.widths) <= 6
        assert set(drawn.widths) <= set(range(2, 9))
        assert drawn.horizon % 10 == 0
        instance = drawn.instance(np.random.SeedSequence(1))
        assert instance.tree.n_arms == drawn.n_arms
        assert instance.tree.depth == len(drawn.widths)
        assert 0.001 <= min(instance.means) <= max(instance.means) <= 0.9  # type: ignore[arg-type]
    assert len({len(drawn.widths) for drawn in shapes if isinstance(drawn, Drawn)}) == 6


def test_effects_of_random_worlds_are_where_they_should_be() -> None:
    """With effects of the top level alone, arms of a top cluster are alike, and clusters are not."""
    drawn = Drawn(0, 200, (4, 3), 0.2, (1.0, 0.0, 0.0), 0.0, 1000)
    instance = drawn.instance(7)
    for arms in instance.tree.clusters.values():
        assert len({round(instance.expected(arm), 12) for arm in arms}) == 1
    assert len({round(float(mean), 12) for mean in instance.means}) == 4  # type: ignore[union-attr]


def test_every_depth_competes() -> None:
    found = {world.name: list(world.policies()) for world in table_worlds()}
    assert found["binary tree, 256 arms"] == ["ATS", "TS", "TSC", *(f"HTS {d}" for d in range(2, 7)), "HTS"]
    assert found["strong dominance"] == ["ATS", "TS", "TSC"]
    assert found["two arms, 0.9 and 0.8"] == ["ATS", "TS"]
    assert found["bumps, Ward"][-1] == "TSC on kmeans"
