"""The pages about robustness: their numbers are those of the runs, and all their worlds are what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import banditree as bt
from banditree.simulation.statistics import over_seeds
from tests.support.helpers import needs_native
from tools.pages import evidence
from tools.pages import robustness as pages
from tools.pages import worlds as made
from tools.pages.evidence import Page
from tools.pages.robustness import measure, points_of, ratio_of
from tools.pages.worlds import HIDDEN, NO_TREE, Drawn, Misplaced, Normal, World

CONTEXTS = {world.name: world for world in made.context_worlds()}


def test_lines_of_a_world_use_all_its_seeds_and_are_those_of_the_runs() -> None:
    world = World("small", bt.problems.unstructured(6, 2), 100, 5, 2)
    lines = measure(world, "TS", jobs=1)
    assert [(int(line["time"]), len(line["regrets"].split())) for line in lines] == [(10, 5), (100, 5), (1000, 2)]
    runs = bt.simulate(world.policies(), world.problem, horizon=100, seeds=5, checkpoints=[10])  # all policies together
    regret = runs.regret["TS"][:, 1]
    assert np.array(lines[1]["regrets"].split(), float) == pytest.approx(regret, rel=1e-4)
    expected = [regret.mean(), over_seeds(regret).se, np.median(regret), np.quantile(regret, 0.95)]
    shown = [float(lines[1][column]) for column in ("mean", "se", "median", "worst")]
    assert shown == pytest.approx(expected, rel=1e-4)


def test_another_law_measures_again_the_policies_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def digests(changed: str) -> dict[str, str]:
        monkeypatch.setattr(evidence, "law", lambda names: f"{names} {changed in names}")
        world = World("small", bt.problems.unstructured(6, 2), 100, 2)
        return {part.name: part.digest for part in pages.parts([world])}

    before, after = digests("nobody"), digests("ATS")
    assert {name for name in before if before[name] != after[name]} == {"small: ATS", f"small: ATS {NO_TREE}"}


def test_a_ratio_is_paired_over_seeds() -> None:
    """Policies with proportional regret have a ratio without error; the error of independent ones is the usual one."""
    rng = np.random.default_rng(0)
    b = rng.uniform(1.0, 2.0, 4000)
    assert ratio_of(0.7 * b, b) == pytest.approx((0.7, 0.0), abs=1e-12)
    a = rng.uniform(1.0, 2.0, 4000)
    value, se = ratio_of(a, b)
    assert se == pytest.approx(value * np.hypot(*(over_seeds(x).se / x.mean() for x in (a, b))), rel=0.05)


def lines(name: str, *times: tuple[int, float, float, float]) -> list[dict[str, str]]:
    """Times of a world, each with the regret of ATS, TS and TSC, which two seeds share to a hundredth."""
    return [
        pages.line(World(name, Misplaced(0.5), 100, 2), policy, time, np.array([0.99, 1.01]) * mean)
        for time, *means in times
        for policy, mean in zip(("ATS", "TS", "TSC"), means, strict=True)
    ]


def test_the_page_says_where_ats_is_behind_in_one_line_per_world() -> None:
    worlds = [World("easy", Misplaced(0.5), 100, 4), World("hard", Misplaced(0.5), 1000, 4, why=HIDDEN)]
    known = lines("easy", (100, 50.0, 80.0, 60.0)) + lines("hard", (100, 50.0, 60.0, 75.0), (1000, 90.0, 60.0, 75.0))
    groups = {"some": points_of(worlds, known)}
    assert pages.seeds_of(known) == "Lines have 2 seeds."
    assert pages.seeds_of([*known, *lines("long", (10**6, 1.0, 1.0, 1.0))]).endswith("2 beyond 100,000 decisions.")
    text = pages.losses(groups)
    assert "On 1 of 2 worlds" in text
    assert f"| hard | 100 / 1,000 | 0.83 / 1.50 | TS | 0.83 / 1.50 | {HIDDEN} |" in text
    assert "| hard | 100 / 1,000 | 0.83 / 1.50 | 0.83 / 1.50 | 0.83 / 1.50 | 0.83 / 1.50 |" in pages.hostile(
        groups["some"]
    )
    summary = pages.summary(groups, ("TS",))
    assert "| ... the largest | 1.50 |" in summary
    assert "1 of 3" in summary
    trusting = points_of(worlds[1:], lines("hard", (100, 50.0, 80.0, 40.0)))[0]
    assert pages.reason(trusting) == "TSC takes the tree for granted"
    assert pages.reason([replace(trusting[0], world=replace(worlds[1], rival="kmeans"))]) == pages.reason(trusting)


@needs_native
@pytest.mark.parametrize("page", [pages.TREES, pages.CONTEXTUAL], ids=lambda page: page.name)
def test_a_page_is_made_of_few_worlds(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    few = {"made against ATS": lambda: pages.quick(made.hostile_worlds()[2:4])}
    monkeypatch.setattr(pages, "GROUPS", few)
    monkeypatch.setattr(pages, "long_worlds", lambda: pages.quick(made.long_worlds()[1:], 1000))
    monkeypatch.setattr(pages, "context_worlds", lambda: pages.quick([CONTEXTS["slopes shared"]]))
    assert page.make(tmp_path) == 0
    text = (tmp_path / f"{page.name}.md").read_text(encoding="utf-8")
    assert not re.search(r"\bnan\b|Pending", text)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (tmp_path / link).stat().st_size > 500
    for row in text.splitlines():
        assert row.count("|") == 0 or row.startswith("|")


def test_every_depth_competes_and_ats_without_its_tree() -> None:
    found = {world.name: list(world.policies()) for world in (*made.paper_worlds(), *made.hostile_worlds())}
    depths = [f"HTS {depth}" for depth in range(2, 7)]
    deep = [name for name in found["binary tree, 256 arms"] if name.startswith("HTS")]
    assert deep == [*depths, "HTS"]
    assert f"ATS {NO_TREE}" in found["small tree that misleads"]
    assert "TSC" not in found["two arms, 0.9 and 0.8"]
    assert found["bumps, Ward"][-1] == "TSC on kmeans"


def test_the_misplaced_arm_is_the_best_and_in_the_poorest_cluster() -> None:
    for high in (0.5, 0.7):
        instance = Misplaced(high).instance(3)
        means = np.asarray(instance.means).reshape(10, 10)
        centres = np.linspace(0.1, high, 10)[:, None]
        assert means[0, 0] == instance.best() == 0.8
        assert np.abs(means - centres).ravel()[1:].max() <= 0.05
        assert instance.tree.clusters[0] == list(range(10))


def test_noisy_amounts_have_the_noise_that_the_page_says() -> None:
    world = next(world for world in made.hostile_worlds() if "276" in world.name)
    assert isinstance(world.problem, Normal)
    assert world.problem.n_clusters * world.problem.n_per_cluster == 276
    spread = np.mean([np.std(np.asarray(world.problem.instance(seed).means)) for seed in range(20)])
    assert world.problem.noise / spread == pytest.approx(3.4, rel=0.1)


def test_random_worlds_are_the_same_each_time_and_within_their_bounds() -> None:
    assert made.random_worlds() == made.random_worlds()
    shapes = [world.problem for world in made.random_worlds()]
    for drawn in shapes:
        assert isinstance(drawn, Drawn)
        instance = drawn.instance(np.random.SeedSequence(1))
        assert 10 <= instance.tree.n_arms == drawn.n_arms <= 2000
        assert 1 <= instance.tree.depth == len(drawn.widths) <= 6
        assert 0.001 <= min(instance.means) <= max(instance.means) <= 0.9  # type: ignore[arg-type]
    assert len({len(drawn.widths) for drawn in shapes if isinstance(drawn, Drawn)}) == 6


def test_effects_of_random_worlds_are_where_they_should_be() -> None:
    """With effects of the top level alone, arms of a top cluster are equal, and clusters differ."""
    instance = Drawn(0, 200, (4, 3), 0.2, (1.0, 0.0, 0.0), 0.0, 1000).instance(7)
    for arms in instance.tree.clusters.values():
        assert len({round(instance.expected(arm), 12) for arm in arms}) == 1
    assert len({round(float(mean), 12) for mean in instance.means}) == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_world_has_contexts_with_a_constant_or_the_papers(name: str) -> None:
    x = CONTEXTS[name].problem.instance(3).context(np.random.default_rng(0))
    assert x is not None
    assert "figure" in name or x[0] == 1.0


def test_the_best_arm_is_misplaced_with_contexts() -> None:
    instance = CONTEXTS["misplaced"].problem.instance(5)
    theta = instance.theta  # type: ignore[attr-defined]
    cluster = np.array([instance.tree.path(arm)[0] for arm in instance.tree.arms])
    best = int(theta[:, 0].argmax())
    others = {name: theta[(cluster == name) & (np.arange(len(theta)) != best), 0].mean() for name in set(cluster)}
    assert sorted(others, key=lambda name: float(others[name])).index(cluster[best]) < 3
