"""The contest: worlds are the same for all, stated probabilities are tested, and every loss is on the page."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import banditree as bt
from banditree.policy import algorithms
from contest import page
from contest.__main__ import Options, Versions, is_missing
from contest.contestants import ADDED, TOLD_ALL, Agent, MixedEffectTS, ours_offers
from contest.journal import Journal, Line, rows
from contest.page import Gap, Row, comparable, standing
from contest.play import NONE, RIGHT, WRONG, are_right, probed
from contest.worlds import ENVIRONMENTS, Environment, World
from tools.pages.journal import read

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.name)
def test_a_world_is_a_function_of_its_seed_and_survives_a_file(environment: Environment, tmp_path: Path) -> None:
    worlds = [environment.world(seed, horizon=30) for seed in (1, 1, 2)]
    worlds[0].save(tmp_path / "world.npz")
    first, again, other = World.load(tmp_path / "world.npz"), worlds[1], worlds[2]
    assert first.horizon == 30
    assert first.paths.shape[0] == first.n_arms == len(first.means(0))
    for t in (0, 29):
        np.testing.assert_array_equal(first.means(t), again.means(t))
        np.testing.assert_array_equal(first.context(t), again.context(t))
        assert first.reward(t, float(first.means(t)[0])) == again.reward(t, float(again.means(t)[0]))
    differs = any(not np.array_equal(first.means(t), other.means(t)) for t in range(30))
    assert differs or not np.array_equal(first.draws, other.draws)


def test_every_environment_can_be_named_in_a_list_with_commas() -> None:
    assert not [environment.name for environment in ENVIRONMENTS if "," in environment.name]


def test_what_other_libraries_run_needs_no_banditree() -> None:
    """They play in environments of their own, where NumPy alone is installed beside them."""
    modules = "contest.contestants, contest.play, contest.worlds, benchmarks.harness, benchmarks.jobs, benchmarks.peers"
    code = f"import sys; sys.modules['banditree'] = None; import {modules}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]


def test_rewards_are_around_their_means() -> None:
    for name in ("mixed 20", "shop 300"):
        world = next(e for e in ENVIRONMENTS if e.name == name).world(3, horizon=2000)
        means = np.array([world.means(t)[0] for t in range(world.horizon)])
        rewards = np.array([world.reward(t, mean) for t, mean in enumerate(means)])
        assert abs((rewards - means).mean()) < 4 * (rewards - means).std() / np.sqrt(world.horizon)


# the stated probability


def agent(state: Callable[[int], float | None]) -> Agent:
    """Chooses arm 0 in 70% of the decisions, and states what it is told to."""
    rng = np.random.default_rng(1)

    def choose(x: object) -> tuple[int, float | None]:
        arm = int(rng.random() > 0.7)
        return arm, state(arm)

    return Agent(choose, lambda *learned: None)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (lambda arm: [0.7, 0.3][arm], RIGHT),
        (lambda arm: [0.5, 0.5][arm], WRONG),
        (lambda arm: 1.0, WRONG),  # the probability of what was drawn, given that it was drawn
        (lambda arm: None, NONE),
    ],
)
def test_probabilities_are_tested_by_deciding_again_and_again(
    state: Callable[[int], float | None], verdict: str
) -> None:
    assert probed(agent(state), None, n_probes=400, limit=10.0)[0] == verdict


def test_rare_arms_are_tested_together_and_one_that_comes_too_often_is_noticed() -> None:
    p, n_arms, n = 0.0005, 2000, 40
    rng = np.random.default_rng(3)
    for _ in range(200):
        counts = Counter(rng.integers(n_arms, size=n).tolist())
        assert are_right(counts, dict.fromkeys(counts, p))
    assert not are_right({7: n}, {7: p})
    assert not are_right({1: 20, 2: 20}, {1: 0.9, 2: 0.001})


# the mixed-effect paper's algorithm


def test_mixed_effects_have_the_posterior_of_the_joint_normal_model() -> None:
    rng = np.random.default_rng(2)
    weights, noise = rng.dirichlet(np.ones(2), 4), 0.5
    effect_sd, arm_sd = np.array([1.0, 2.0]), np.array([0.3, 0.6])
    algorithm = MixedEffectTS(weights, effect_sd, arm_sd, noise)
    rows, rewards = [], []
    for _ in range(25):
        arm, z, reward = int(rng.integers(4)), np.array([1.0, rng.normal()]), float(rng.normal())
        algorithm.learn(arm, z, reward)
        rows.append(np.kron(np.eye(4)[arm], z))
        rewards.append(reward)
    between = np.kron(weights, np.eye(2))  # (arms * d, effects * d)
    effects = np.kron(np.eye(2), np.diag(effect_sd**2))
    prior = between @ effects @ between.T + np.kron(np.eye(4), np.diag(arm_sd**2))
    X = np.array(rows)
    gain = np.linalg.solve(X @ prior @ X.T + noise**2 * np.eye(25), np.array(rewards))
    np.testing.assert_allclose(algorithm.effects().ravel(), effects @ between.T @ X.T @ gain, atol=1e-9)
    np.testing.assert_allclose(algorithm.arms(algorithm.effects()).ravel(), prior @ X.T @ gain, atol=1e-9)
    posterior = prior - prior @ X.T @ np.linalg.solve(X @ prior @ X.T + noise**2 * np.eye(25), X @ prior)
    draws = np.array([algorithm.draw(rng).ravel() for _ in range(4000)])
    np.testing.assert_allclose(np.cov(draws.T), posterior, atol=6 * posterior.max() * np.sqrt(2 / 4000))


# who wins


def row(label: str, regrets: list[float], package: str = "other", note: str = "default", **more: object) -> Row:
    values = {"seconds": [1.0] * len(regrets), **more}
    return Row("mixed 20", package, label, note, dict(enumerate(regrets)), **values)  # type: ignore[arg-type]


def test_fewer_seeds_are_compared_on_the_seeds_that_both_played() -> None:
    ours = row("LinATS", [10.0, 30.0, 50.0], package="banditree")
    lucky = row("lucky", [12.0])  # its only seed is the easy one
    assert Gap.of(lucky, ours) == Gap(2.0, float("inf"), 1)
    assert comparable(lucky, ours) == 32.0
    better = row("better", [9.0, 28.0, 49.0])
    it = standing([ours, lucky, better])
    assert it is not None
    assert it.best is better
    assert it.difference.mean == pytest.approx(4 / 3)
    assert it.difference.reach == pytest.approx(4.3027 * np.std([1, 2, 1], ddof=1) / np.sqrt(3), rel=1e-3)
    assert it.ratio == pytest.approx(30 / (30 - 4 / 3))
    assert (it.is_lowest_or_tied, it.verdict) == (True, "a tie")
    clear = standing([ours, row("clear", [5.0, 25.1, 44.9])])
    assert clear is not None
    assert (clear.is_lowest_or_tied, clear.verdict) == (False, "**higher**")


def test_what_is_told_the_world_or_did_not_finish_is_outside_of_the_ranking() -> None:
    ours = row("LinATS", [10.0, 30.0], package="banditree")
    it = standing(
        [ours, row("meTS", [1.0, 1.0], note=TOLD_ALL), row("slow", [], reached=7), row("worse", [40.0, 40.0])]
    )
    assert it is not None
    assert it.best is not None
    assert (it.best.label, it.is_lowest_or_tied) == ("worse", True)
    assert standing([row("worse", [1.0])]) is None


def test_every_loss_is_on_the_page_and_everybody_in_its_file(tmp_path: Path) -> None:
    environment = next(e for e in ENVIRONMENTS if e.name == "mixed 20")
    rows = [
        row("LinATS", [10.0, 30.0, 20.0], package="banditree", probability=RIGHT),
        row("quick", [5.0, 25.0, 15.1]),
        row("meTS", [3.0, 20.0, 10.0], note=TOLD_ALL),
        row("slow", [], reached=12),
        row("broken", [], failure="no memory"),
    ]
    facts = {"seeds": 2, "at_least": 1, "allowance": 5.0, "patience": 9}
    text = page.written([environment], rows, {"other": "1"}, {"third": "no wheel"}, facts, left=7, folder=tmp_path)
    assert "in 0 of 1 environments (0%; aim 80%: **missed**)" in text
    assert "at most 1.33 times the best, in mixed 20 (aim 1.25: **missed**)" in text
    assert "**mixed 20**: quick (default) has 15.0 where LinATS has 20.0, 1.33 times" in text
    assert "| mixed 20 | 0.55 |" in text
    assert "**Pending: 7 runs" in text
    assert "third could not take part: no wheel" in text
    summary = (tmp_path / "data/contest-summary.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[2] for line in summary[1:]] == ["meTS", "quick", "LinATS", "slow", "broken"]
    assert summary[4].endswith("stopped at round 12")
    assert summary[5].endswith("no memory")
    assert (tmp_path / "images/contest.png").stat().st_size > 5000


def line(label: str, seed: int, package: str = "other", **more: object) -> Line:
    values = {"regret": 1.0 + seed, "seconds": 0.5, "world": "w", "version": "1", **more}
    return Line("mixed 20", package, label, "default", seed, **values)  # type: ignore[arg-type]


def test_a_run_goes_on_where_it_stopped_and_plays_again_what_was_of_another_version(tmp_path: Path) -> None:
    worlds, versions = {"mixed 20": "w"}, {"quick": "1", "slow": "1", "LinATS": "law 1", "LinTS": "law 1"}

    def version_of(package: str, label: str) -> str | None:
        return versions.get(label)

    first = Journal(tmp_path / "data/lines.csv", worlds, version_of)
    kept = [line("quick", 0, probability=RIGHT), line("quick", 1), line("slow", 0, reached=12, seconds=9.0)]
    ours = [line(label, 0, package="banditree", version="law 1") for label in ("LinTS", "LinATS")]
    for one in (*kept, *ours):
        first.add(one)
    first.close()
    versions["LinATS"] = "law 2"
    again = Journal(tmp_path / "data/lines.csv", worlds, version_of)
    assert again.lines == [ours[0], *kept]
    assert Journal(tmp_path / "data/lines.csv", {"mixed 20": "another"}, version_of).lines == []


def test_a_line_of_ours_depends_on_the_law_of_its_policy_alone() -> None:
    versions = Versions({"banditree": "9", "river": "1"})
    assert versions.of("river", "river UCB") == "1"
    assert versions.of("coba", "coba LinTS") is None
    assert versions.of("banditree", "TS") != versions.of("banditree", "ATS")


def test_seeds_of_an_offer_make_one_row() -> None:
    lines = [line("quick", 1), line("quick", 0, probability=RIGHT), line("quick", 2, reached=7)]
    assert rows(lines) == [row("quick", [1.0, 2.0], seconds=[0.5, 0.5], probability=RIGHT, reached=7)]


@pytest.mark.parametrize(
    ("lines", "seed", "expected"),
    [
        ([], 0, True),
        ([line("quick", 0)], 0, False),
        ([line("quick", 0)], 1, True),
        ([line("slow", 0, reached=12)], 1, False),
        ([line("broken", 0, failure="no memory")], 1, False),
        ([line("slow", 0, seconds=50.0)], 1, True),  # whoever is slow plays two seeds in any case
        ([line("slow", seed, seconds=50.0) for seed in range(2)], 2, False),
        ([line("fair", seed, seconds=10.0) for seed in range(5)], 5, True),
        ([line("fair", seed, seconds=10.0) for seed in range(6)], 6, False),
    ],
)
def test_the_slow_play_fewer_seeds(lines: list[Line], seed: int, expected: bool) -> None:
    assert is_missing(lines, seed, Options(at_least=2, allowance=60.0)) is expected


def test_a_policy_of_another_package_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**algorithms.ALGORITHMS, "Sure": bt.TS, "LinSure": bt.LinTS}
    monkeypatch.setattr(algorithms, "known_policies", lambda: known)
    for name, expected in (("shop 300", "Sure"), ("mixed 20", "LinSure")):
        world = next(e for e in ENVIRONMENTS if e.name == name).world(0, horizon=20)
        (offer,) = (one for one in ours_offers(world) if one.note == ADDED)
        assert offer.label == expected
        agent = offer.make(world, 1)
        arm, _ = agent.choose(world.context(0))
        agent.learn(world.context(0), arm, 0.5, None)


ONE_OF_EACH_KIND = ("mixed 20", "effects", "open bandit men", "coba linear", "wine")


def test_the_quick_form_plays_everything_that_this_environment_has(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "contest", "--quick", "--here", "--jobs", "1", "--out", str(tmp_path)]
    command += ["--only", ",".join(ONE_OF_EACH_KIND)]

    def run(*more: str) -> str:
        done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    assert "seed 0: 0 of" in run("--minutes", "0.00001")  # no time for any
    data = tmp_path / "data/contest.csv"
    assert len(read(data)) == 0
    run()
    played = data.read_text(encoding="utf-8")
    assert "seed 0: 0 of 0 worlds played" in run()
    assert data.read_text(encoding="utf-8") == played
    lines = list(map(Line.read, read(tmp_path / "data/contest.csv")))
    assert {one.environment for one in lines} == set(ONE_OF_EACH_KIND)
    assert {"banditree", "coba", "river"} <= {one.package for one in lines}
    stated = {(one.label, one.probability) for one in lines if not one.ended_early}
    assert ("coba LinTS", WRONG) in stated
    assert not any(verdict == WRONG for label, verdict in stated if not label.startswith("coba"))
    assert not any(one.failure for one in lines if one.package == "banditree")
    assert "## In short" in (tmp_path / "contest.md").read_text(encoding="utf-8")
